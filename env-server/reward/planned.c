/* Keys, types and defaults of RL4LMs's other reward functions, so that every config of it is
 * understood. A row moves to a file of its own when the function is built. */
#include "env-server/reward/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its function has. */
struct args {
    const char *model_name, *language, *checkpoint, *model_type, *device;
    int64_t label_ix, batch_size;
    double concept_penalty_coeff, meteor_coeff;
    bool include_prompt_for_eval;
};

#define REQUIRED(f, T, h) TG_OPT_ROW(struct args, f, T, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)

static const tg_opt learned_reward[] = {
    REQUIRED(model_name, TG_T_STR, "Sequence classifier, as a folder or a name."),
    REQUIRED(label_ix, TG_T_INT, "Label whose probability is the reward."),
    TG_OPT_BOOL(struct args, include_prompt_for_eval, "true", "Classify the prompt with the text."),
    TG_OPT_END};
static const tg_opt bert_score[] = {
    TG_OPT_STR(struct args, language, "en", "Language, which decides the model."), TG_OPT_END};
static const tg_opt bleurt[] = {TG_OPT_STR(struct args, checkpoint, NULL, "BLEURT checkpoint."),
                                TG_OPT_END};
static const tg_opt preference_model[] = {
    REQUIRED(model_type, TG_T_STR, "Size of the preference model: 11b."),
    REQUIRED(device, TG_T_STR, "Device of the preference model."),
    REQUIRED(batch_size, TG_T_INT, "Texts per forward pass."),
    TG_OPT_FLOAT(struct args, concept_penalty_coeff, "0.0", -1e9, 1e9,
                 "Penalty per missing concept."),
    TG_OPT_FLOAT(struct args, meteor_coeff, "0.0", -1e9, 1e9, "Weight of METEOR."),
    TG_OPT_END};

#define ROW(id, table, text)                                                                       \
    { .name = id, .summary = text, .options = table, .options_size = sizeof(struct args) }

const tg_entry tg_reward_planned[] = {
    ROW("learned_reward", learned_reward, "Probability of a label under a sequence classifier."),
    ROW("bert_score", bert_score, "BERTScore F1 against the references."),
    ROW("bleurt", bleurt, "BLEURT against the references."),
    ROW("common_gen_preference_model", preference_model,
        "Probability of a good sentence under a preference model."),
    {0},
};
