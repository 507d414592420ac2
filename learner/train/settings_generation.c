/* generation_kwargs of a run: what the config says, behind it what the model's folder says; and what a run decides by itself. */
#include "learner/train/settings.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/locate.h"

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

/* What a run does not follow, in rollouts or at all: lengths and ends of episodes are the environment's, and a prompt has one result. In a
 * config such a key is refused; a folder may have it for other uses. */
static const char *why_not(const tg_train_settings *s, const tg_gen_settings *gen, const char *key,
                           bool own_limit) {
    if (!strcmp(key, "num_return_sequences") && gen->num_return_sequences > 1)
        return "a prompt has one result here; leave it out, or give train_evaluation.compare_sample";
    if (s->supervised) return NULL;
    if (!strcmp(key, "max_length") && !own_limit)
        return "would count the prompt; give max_new_tokens";
    if (!strcmp(key, "eos_token_id") && gen == &s->rollout_gen)
        return "episodes end with the tokenizer's end token; leave it out, or give "
               "env.args.stop_strings (train_evaluation.generation_kwargs may have its own)";
    return NULL;
}

static tg_status check_own_keys(const tg_train_settings *s, const tg_gen_settings *gen,
                                const tg_node *own, const char *path, tg_error *err) {
    const bool own_limit = !tg_node_is_null(tg_node_get(own, "max_new_tokens"));
    for (size_t i = 0; own && i < own->n_items; i++) {
        const tg_node *given = own->items[i];
        const char *why = why_not(s, gen, given->key, own_limit);
        char at[128];
        snprintf(at, sizeof at, "%s.%s", path, given->key);
        if (why && !tg_node_is_null(given)) return tg_node_fail(given, at, err, "%s", why);
    }
    return TG_OK;
}

/* The resolved form, without what the config does not say and the run does not follow: it can be read again. */
static tg_status resolve(const tg_train_settings *s, const tg_gen_settings *gen, const char *path,
                         tg_arena *arena, const tg_node **node, tg_error *err) {
    enum { MOST = 96 };
    tg_opt shown[MOST];
    size_t n = 0;
    for (const tg_opt *o = tg_gen_options; o->key; o++) {
        bool hidden = !strcmp(o->key, "num_return_sequences") ||
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
    if (st == TG_OK) st = check_own_keys(s, gen, own, path, err);
    if (st != TG_OK) return st;
    gen->own_eos = !tg_node_is_null(tg_node_get(own, "eos_token_id"));
    gen->num_return_sequences = 1;
    tg_error unsupported;
    st = tg_gen_settings_supported(gen, path, &unsupported);
    if (st != TG_OK) {
        if (!schema_only) {
            if (err) *err = unsupported;
            return st;
        }
        if (!s->missing[0]) snprintf(s->missing, sizeof s->missing, "%.*s", 199, unsupported.msg);
    }
    return resolve(s, gen, path, arena, node, err);
}
