/* Keys, types and defaults of RL4LMs's other reward functions, so that every config of it is
 * understood. A row moves to a file of its own when the function is built. */
#include "env-server/reward/rows.h"

#include <stdint.h>

/* One struct serves all tables: a table names the fields that its function has. */
struct args {
    const char *model_name, *shaping_fn, *rouge_type, *language, *checkpoint, *tokenize,
        *smooth_method;
    const char *length_limit_type, *model_type, *device;
    const tg_node *apply_best;
    int64_t label_ix, max_n, length_limit, batch_size;
    double smooth_value, alpha, weight_factor, spice_coeff, cider_coeff, intent_coeff, auto_coeff;
    double concept_penalty_coeff, meteor_coeff;
    bool include_prompt_for_eval, use_single_ref, force, lowercase, use_effective_order, shape;
    bool limit_length, apply_avg, stemming, ensure_compatibility;
};

#define REQUIRED(f, T, h) TG_OPT_ROW(struct args, f, T, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)
#define SHAPING TG_OPT_STR(struct args, shaping_fn, NULL, "Reward function whose value is added.")

static const tg_opt no_options[] = {TG_OPT_END};
static const tg_opt learned_reward[] = {
    REQUIRED(model_name, TG_T_STR, "Sequence classifier, as a folder or a name."),
    REQUIRED(label_ix, TG_T_INT, "Label whose probability is the reward."),
    TG_OPT_BOOL(struct args, include_prompt_for_eval, "true", "Classify the prompt with the text."),
    TG_OPT_END};
static const tg_opt meteor[] = {SHAPING, TG_OPT_END};
static const tg_opt rouge[] = {
    TG_OPT_ROW(struct args, rouge_type, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0,
               "rouge1|rouge2|rougeL|rougeLsum", "Which ROUGE."),
    SHAPING, TG_OPT_BOOL(struct args, use_single_ref, "true", "Only the first reference counts."),
    TG_OPT_END};
static const tg_opt bert_score[] = {
    TG_OPT_STR(struct args, language, "en", "Language, which decides the model."), TG_OPT_END};
static const tg_opt bleurt[] = {TG_OPT_STR(struct args, checkpoint, NULL, "BLEURT checkpoint."),
                                TG_OPT_END};
static const tg_opt sacre_bleu[] = {
    TG_OPT_STR(struct args, tokenize, NULL, "Tokeniser: none, 13a, intl, char or zh."),
    TG_OPT_STR(struct args, smooth_method, "exp", "Smoothing: exp, floor, add-k or none."),
    TG_OPT_ROW(struct args, smooth_value, TG_T_FLOAT, TG_OPT_NULLABLE, NULL, 0, 0, NULL,
               "Value of floor and add-k smoothing."),
    TG_OPT_BOOL(struct args, force, "false", "Do not warn about tokenised input."),
    TG_OPT_BOOL(struct args, lowercase, "false", "Ignore case."),
    TG_OPT_BOOL(struct args, use_effective_order, "false",
                "Stop at the longest order that occurs."),
    TG_OPT_END};
static const tg_opt rouge_l_max[] = {
    TG_OPT_ROW(struct args, max_n, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 0, NULL, "Longest n-gram."),
    TG_OPT_BOOL(struct args, limit_length, "true", "Cut summaries at length_limit."),
    TG_OPT_INT(struct args, length_limit, "665", 0, 1e9, "Where summaries are cut."),
    TG_OPT_STR_ONE_OF(struct args, length_limit_type, "bytes", "bytes|words",
                      "Unit of length_limit."),
    TG_OPT_BOOL(struct args, apply_avg, "true", "Average over references."),
    TG_OPT_NODE(struct args, apply_best,
                "Best over references; any value that is not empty is true."),
    TG_OPT_BOOL(struct args, stemming, "true", "Compare stems."),
    TG_OPT_FLOAT(struct args, alpha, "0.5", 0, 1, "Weight of recall in F."),
    TG_OPT_FLOAT(struct args, weight_factor, "1.0", 0, 1e6, "Exponent of precision and recall."),
    TG_OPT_BOOL(struct args, ensure_compatibility, "true", "Stem as the original Perl script."),
    TG_OPT_END};
static const tg_opt spider[] = {REQUIRED(spice_coeff, TG_T_FLOAT, "Weight of SPICE."),
                                REQUIRED(cider_coeff, TG_T_FLOAT, "Weight of CIDEr-D."), SHAPING,
                                TG_OPT_END};
static const tg_opt intent_accuracy[] = {
    TG_OPT_BOOL(struct args, shape, "true", "Add METEOR."),
    TG_OPT_FLOAT(struct args, intent_coeff, "1.0", -1e9, 1e9, "Weight of the intent's match."),
    TG_OPT_FLOAT(struct args, auto_coeff, "1.0", -1e9, 1e9, "Weight of METEOR."), TG_OPT_END};
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
    ROW("rouge", rouge, "ROUGE F against the first or all references."),
    ROW("rouge_combined", meteor, "Mean of ROUGE-1, ROUGE-2 and ROUGE-L F."),
    ROW("bert_score", bert_score, "BERTScore F1 against the references."),
    ROW("bleu", no_options, "BLEU-4 of the text against its references."),
    ROW("bleurt", bleurt, "BLEURT against the references."),
    ROW("sacre_bleu", sacre_bleu, "SacreBLEU of the text, between 0 and 1."),
    ROW("ter", no_options, "1 - translation edit rate."),
    ROW("chrf", no_options, "chrF, between 0 and 1."),
    ROW("rouge_l_max", rouge_l_max, "Best ROUGE-L F over the references, as py-rouge computes it."),
    ROW("spider", spider, "Weighted sum of SPICE and CIDEr-D."),
    ROW("intent_accuracy", intent_accuracy, "Match of the dialogue intent, with METEOR."),
    ROW("common_gen_preference_model", preference_model,
        "Probability of a good sentence under a preference model."),
    {0},
};
