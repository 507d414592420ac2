/* generation_kwargs of a run: what the config says, behind it what the model's folder says; and what a run decides by itself. */
#include "learner/train/settings.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/locate.h"
#include "common/config/unused.h"

#include <stdio.h>
#include <string.h>

/* What the model's folder says stands behind what the config says. A model that is not there is somebody else's error. */
static tg_status add_model_defaults(const tg_train_settings *s, const tg_node **node,
                                    tg_arena *arena, tg_error *err) {
    const char *name = s->supervised ? s->sup.model_name : s->policy_args.model_name;
    char *folder = NULL;
    tg_error missing;
    if (!name || tg_model_locate(name, &folder, &missing) != TG_OK) return TG_OK;
    tg_status st = tg_gen_model_defaults(node, folder, arena, err);
    tg_free(folder);
    return st;
}

/* A folder may ask for several results, for other uses; a config that does so means something else than a run does. */
static tg_status check_results(const tg_gen_settings *gen, const tg_node *own, const char *path,
                               tg_error *err) {
    static const char key[] = "num_return_sequences";
    const tg_node *given = tg_node_get(own, key);
    if (tg_node_is_null(given) || gen->num_return_sequences == 1) return TG_OK;
    char at[128];
    snprintf(at, sizeof at, "%s.%s", path, key);
    return tg_node_fail(given, at, err,
                        "a prompt has one result here; leave it out, or give "
                        "train_evaluation.compare_sample");
}

/* Lengths and ends of episodes are the environment's. Evaluations may have end tokens of their own. */
#define OVERRULED(key, help)                                                                       \
    { key, TG_T_NODE, TG_OPT_NULLABLE | TG_OPT_IGNORED, 0, NULL, 0, 0, NULL, help }
#define LENGTH OVERRULED("max_length", "Texts are as long as max_new_tokens or the episode says.")

void tgi_generation_unused(const tg_node *root, tg_buf *out) {
    static const tg_opt of_rollouts[] = {
        LENGTH,
        OVERRULED("eos_token_id",
                  "Episodes end with the tokenizer's end token and env.args.stop_strings."),
        TG_OPT_END};
    static const tg_opt of_evaluations[] = {LENGTH, TG_OPT_END};
    const char *rollouts = "alg.policy.args.generation_kwargs";
    const char *evaluations = "train_evaluation.generation_kwargs";
    const char *const all[] = {rollouts, evaluations, "alg.generation_kwargs"};
    for (size_t i = 0; i < TG_COUNT_OF(all); i++)
        tg_opts_unused(tg_gen_options, tg_node_at(root, all[i]), all[i], out);
    tg_opts_unused(of_rollouts, tg_node_at(root, rollouts), rollouts, out);
    tg_opts_unused(of_evaluations, tg_node_at(root, evaluations), evaluations, out);
}

/* The resolved form, without what the config does not say and the run does not follow: it can be read again. */
static tg_status resolve(const tg_train_settings *s, const tg_gen_settings *gen, const char *path,
                         tg_arena *arena, const tg_node **node, tg_error *err) {
    enum { MOST = 96 };
    tg_opt shown[MOST];
    size_t n = 0;
    for (const tg_opt *o = tg_gen_options; o->key; o++) {
        bool hidden = o->flags & TG_OPT_IGNORED || !strcmp(o->key, "num_return_sequences") ||
                      (!s->supervised && !strcmp(o->key, "max_length")) ||
                      (!gen->own_eos && !strcmp(o->key, "eos_token_id"));
        TG_ASSERT(n + 1 < MOST);
        if (!hidden) shown[n++] = *o;
    }
    shown[n] = (tg_opt)TG_OPT_END;
    return tgi_resolved_node(shown, gen, path, arena, node, err);
}

tg_status tgi_generation_read(tg_train_settings *s, tg_gen_settings *gen, const tg_node **node,
                              const char *path, bool schema_only, tg_arena *arena, tg_error *err) {
    const tg_node *own = *node;
    tg_status st = schema_only ? TG_OK : add_model_defaults(s, node, arena, err);
    if (st == TG_OK) st = tg_gen_settings_read(gen, *node, path, arena, err);
    if (st == TG_OK) st = check_results(gen, own, path, err);
    if (st != TG_OK) return st;
    gen->own_eos = !tg_node_is_null(tg_node_get(own, "eos_token_id"));
    gen->num_return_sequences = 1;
    tg_error unsupported;
    st = tg_gen_settings_supported(gen, path, &unsupported);
    if (st != TG_OK) st = tgi_note_missing(s, schema_only, &unsupported, err);
    if (st != TG_OK) return st;
    return resolve(s, gen, path, arena, node, err);
}
