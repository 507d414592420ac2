/* Reading a recording: JSON into arrays, safetensors into networks. Everything missing or of the
 * wrong shape is TG_DATA by name. */
#include "tests/support/replay.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/nn/safetensors.h"
#include "learner/rl/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- JSON ---- */

double tg_json_f64(const json_t *v, double missing) {
    if (!v) return missing;
    if (json_is_boolean(v)) return json_is_true(v) ? 1 : 0;
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

const json_t *tg_recording_at(const tg_recording *rec, const char *path, tg_error *err) {
    const json_t *v = rec->root;
    char part[128];
    for (const char *p = path; v && *p;) {
        size_t n = strcspn(p, ".");
        if (n >= sizeof part) break;
        memcpy(part, p, n);
        part[n] = 0;
        v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(part, NULL, 10))
                             : json_object_get(v, part);
        p += n + (p[n] == '.');
    }
    if (!v) tg_fail(err, TG_DATA, "%s/recording.json: %s is missing", rec->dir, path);
    return v;
}

tg_status tg_recording_numbers(const tg_recording *rec, const json_t *list, const char *what,
                               double *out, size_t n, tg_error *err) {
    if (!json_is_array(list) || json_array_size(list) != n)
        return tg_fail(err, TG_DATA, "%s/recording.json: %s: expected a list of %zu numbers",
                       rec->dir, what, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        /* arrays of shape (n, 1) are read as (n) */
        if (json_is_array(v) && json_array_size(v) == 1) v = json_array_get(v, 0);
        out[i] = tg_json_f64(v, (double)NAN);
    }
    return TG_OK;
}

static tg_status load_json(tg_recording *rec, tg_error *err) {
    char *path = tg_path_join(rec->dir, "recording.json");
    if (!path) return tg_fail_nomem(err, 1);
    json_error_t bad;
    rec->root = json_load_file(path, JSON_REJECT_DUPLICATES, &bad);
    tg_status st = TG_OK;
    if (!rec->root) st = tg_fail(err, TG_DATA, "%s:%d: %s", path, bad.line, bad.text);
    tg_free(path);
    return st;
}

/* ---- settings ---- */

/* The recorded hyperparameters that the algorithm has an option for, as its options. */
static tg_status load_options(tg_recording *rec, const json_t *h, tg_error *err) {
    json_t *given = json_object();
    for (const tg_opt *o = rec->algo->options; o->key; o++) {
        json_t *v = json_object_get(h, o->key);
        if (v) json_object_set(given, o->key, v);
        if (!strcmp(o->key, "minibatch"))
            json_object_set_new(given, o->key, json_string("transition"));
    }
    char *text = json_dumps(given, JSON_REAL_PRECISION(17));
    json_decref(given);
    tg_node *node;
    tg_status st = tg_tree_parse(&rec->arena, "hyperparameters", text, strlen(text), &node, err);
    free(text);
    rec->opts = tg_arena_alloc(&rec->arena, rec->algo->options_size);
    if (st == TG_OK && !rec->opts) st = tg_fail_nomem(err, rec->algo->options_size);
    if (st == TG_OK)
        st = tg_opts_read(rec->algo->options, rec->opts, node, "hyperparameters", &rec->arena, err);
    return st;
}

/* The class of torch.optim, by its name in small letters. */
static void load_optimizer(tg_recording *rec, const json_t *group) {
    static const char *const kinds[] = {"adamw", "adam", "rmsprop", "sgd"};
    const json_t *torch = json_object_get(json_object_get(rec->root, "optimizer"), "class");
    const char *name = json_is_string(torch) ? strrchr(json_string_value(torch), '.') : NULL;
    const json_t *betas = json_object_get(group, "betas");
    rec->optim =
        (tg_optim_opts){.kind = kinds[0],
                        .beta1 = tg_json_f64(json_array_get(betas, 0), 0.9),
                        .beta2 = tg_json_f64(json_array_get(betas, 1), 0.999),
                        .alpha = tg_json_f64(json_object_get(group, "alpha"), 0.99),
                        .momentum = tg_json_f64(json_object_get(group, "momentum"), 0),
                        .eps = tg_json_f64(json_object_get(group, "eps"), 1e-8),
                        .weight_decay = tg_json_f64(json_object_get(group, "weight_decay"), 1e-6)};
    for (size_t i = 0; name && i < TG_COUNT_OF(kinds); i++)
        if (!strcasecmp(name + 1, kinds[i])) rec->optim.kind = kinds[i];
}

static tg_status load_settings(tg_recording *rec, tg_error *err) {
    const json_t *h = tg_recording_at(rec, "hyperparameters", err);
    const json_t *g = tg_recording_at(rec, "optimizer.groups.0", err);
    const json_t *name = tg_recording_at(rec, "algorithm", err);
    if (!h || !g || !name) return err->status;
    tg_status st = tg_algo_find(json_string_value(name), &rec->algo, err);
    if (st == TG_OK) st = load_options(rec, h, err);
    if (st != TG_OK) return st;
    rec->learning_rate = tg_json_f64(json_object_get(h, "learning_rate"), (double)NAN);
    rec->clip_range = tg_json_f64(json_object_get(h, "clip_range"), (double)NAN);
    rec->gamma = tg_json_f64(json_object_get(h, "gamma"), (double)NAN);
    rec->gae_lambda = tg_json_f64(json_object_get(h, "gae_lambda"), (double)NAN);
    const json_t *before = tg_recording_at(rec, "rollout.kl_coeff_before", err);
    if (!before) return err->status;
    rec->kl.coeff = json_number_value(before);
    rec->kl.target = tg_json_f64(json_object_get(h, "kl_target"), (double)NAN);
    rec->norm_reward = tg_json_f64(json_object_get(h, "norm_reward"), 0) != 0;
    load_optimizer(rec, g);
    if (rec->algo->optimizer) rec->algo->optimizer(rec->opts, &rec->optim);
    return TG_OK;
}

/* ---- episodes ---- */

/* Calls visit for every episode, in the order of the buffer. */
typedef tg_status visit_fn(tg_recording *rec, const json_t *episode, int number, tg_error *err);

static tg_status each_episode(tg_recording *rec, visit_fn *visit, int *count, tg_error *err) {
    const json_t *batches = tg_recording_at(rec, "rollout.batches", err);
    if (!batches) return err->status;
    size_t b, e;
    const json_t *batch, *episode;
    tg_status st = TG_OK;
    *count = 0;
    json_array_foreach(batches, b, batch) {
        json_array_foreach(json_object_get(batch, "episodes"), e, episode) {
            if (visit && st == TG_OK) st = visit(rec, episode, *count, err);
            ++*count;
        }
    }
    return st;
}

static int prompt_length(const json_t *episode) {
    const json_t *mask = json_object_get(episode, "prompt_attention_mask"), *v;
    size_t i;
    int n = 0;
    json_array_foreach(mask, i, v) n += json_integer_value(v) != 0;
    return n;
}

static int (*episode_lengths(tg_recording *rec, int n, tg_error *err))[2] {
    int(*lengths)[2] = tg_arena_array(&rec->arena, (size_t)n, sizeof *lengths);
    const json_t *batches = tg_recording_at(rec, "rollout.batches", err), *batch, *episode;
    if (!lengths || !batches) return NULL;
    size_t b, e;
    int i = 0;
    json_array_foreach(batches, b, batch) {
        json_array_foreach(json_object_get(batch, "episodes"), e, episode) {
            lengths[i][0] = prompt_length(episode);
            lengths[i++][1] = (int)json_array_size(json_object_get(episode, "actions"));
        }
    }
    return lengths;
}

static tg_status fill_episode(tg_recording *rec, const json_t *episode, int number, tg_error *err) {
    const tg_episode *ep = &rec->rollout->episodes[number];
    int32_t *tokens = tg_rollout_tokens(rec->rollout, number);
    const json_t *ids = json_object_get(episode, "prompt_token_ids");
    const json_t *mask = json_object_get(episode, "prompt_attention_mask");
    const json_t *steps = json_object_get(episode, "steps"), *v;
    size_t i, n = 0;
    json_array_foreach(ids, i, v) {
        if (json_integer_value(json_array_get(mask, i)) && n < (size_t)ep->n_prompt)
            tokens[n++] = (int32_t)json_integer_value(v);
    }
    if (json_array_size(steps) != (size_t)ep->n_actions || n != (size_t)ep->n_prompt)
        return tg_fail(err, TG_DATA, "%s: episode %d: prompt, actions and steps do not agree",
                       rec->dir, number);
    json_array_foreach(steps, i, v) {
        int at = ep->first_action + (int)i;
        tokens[n + i] = (int32_t)json_integer_value(json_object_get(v, "action"));
        rec->rollout->task_reward[at] = tg_json_f64(json_object_get(v, "task_reward"), (double)NAN);
        rec->logp[at] = tg_json_f64(json_object_get(v, "log_prob"), (double)NAN);
        rec->ref_logp[at] = tg_json_f64(json_object_get(v, "ref_log_prob"), (double)NAN);
        rec->entropy[at] = tg_json_f64(json_object_get(v, "entropy"), (double)NAN);
        rec->value[at] = tg_json_f64(json_object_get(v, "value"), (double)NAN);
        rec->kl_div[at] = tg_json_f64(json_object_get(v, "kl_div"), (double)NAN);
        rec->kl_reward[at] = tg_json_f64(json_object_get(v, "kl_reward"), (double)NAN);
        rec->total_reward[at] = tg_json_f64(json_object_get(v, "total_reward"), (double)NAN);
    }
    return TG_OK;
}

static tg_status load_episodes(tg_recording *rec, tg_error *err) {
    const json_t *actions = tg_recording_at(rec, "buffer.actions", err);
    if (!actions) return err->status;
    int n_episodes, n_rows = (int)json_array_size(actions);
    tg_status st = each_episode(rec, NULL, &n_episodes, err);
    if (st != TG_OK) return st;
    int(*lengths)[2] = episode_lengths(rec, n_episodes, err);
    if (!lengths) return tg_fail_nomem(err, (size_t)n_episodes * sizeof *lengths);
    st = tg_rollout_create(&rec->rollout, (const int(*)[2])lengths, n_episodes, n_rows, err);
    if (st != TG_OK) return st;
    double **per_action[] = {&rec->logp,   &rec->ref_logp,  &rec->entropy,     &rec->value,
                             &rec->kl_div, &rec->kl_reward, &rec->total_reward};
    for (size_t i = 0; i < sizeof per_action / sizeof per_action[0]; i++) {
        *per_action[i] =
            tg_arena_array(&rec->arena, (size_t)rec->rollout->n_actions, sizeof(double));
        if (!*per_action[i]) return tg_fail_nomem(err, 1);
    }
    return each_episode(rec, fill_episode, &n_episodes, err);
}

static tg_status load_buffer(tg_recording *rec, tg_error *err) {
    static const char *const keys[] = {"buffer.rewards", "buffer.log_probs", "buffer.values",
                                       "buffer.advantages", "buffer.returns"};
    double **const arrays[] = {&rec->row_reward, &rec->row_logp, &rec->row_value, &rec->row_adv,
                               &rec->row_ret};
    size_t n = (size_t)rec->rollout->n_rows;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *list = tg_recording_at(rec, keys[i], err);
        if (!list) return err->status;
        *arrays[i] = tg_arena_array(&rec->arena, n, sizeof(double));
        if (!*arrays[i]) return tg_fail_nomem(err, n * sizeof(double));
        tg_status st = tg_recording_numbers(rec, list, keys[i], *arrays[i], n, err);
        if (st != TG_OK) return st;
    }
    const json_t *perms = tg_recording_at(rec, "update.permutations", err), *perm, *v;
    if (!perms) return err->status;
    rec->n_permutations = (int)json_array_size(perms);
    rec->permutations = tg_arena_array(&rec->arena, (size_t)rec->n_permutations, sizeof(int32_t *));
    if (!rec->permutations) return tg_fail_nomem(err, 1);
    size_t p, i;
    json_array_foreach(perms, p, perm) {
        int32_t *out = tg_arena_array(&rec->arena, n, sizeof(int32_t));
        if (!out) return tg_fail_nomem(err, n * sizeof(int32_t));
        if (json_array_size(perm) != n)
            return tg_fail(err, TG_DATA, "%s: permutation %zu has %zu entries, the buffer %zu rows",
                           rec->dir, p, json_array_size(perm), n);
        json_array_foreach(perm, i, v) out[i] = (int32_t)json_integer_value(v);
        rec->permutations[p] = out;
    }
    return TG_OK;
}

/* The recorded sets of allowed tokens. Actions that the buffer had no room for have none recorded: all tokens. */
static tg_status load_masks(tg_recording *rec, tg_error *err) {
    const json_t *masks = json_object_get(json_object_get(rec->root, "buffer"), "action_masks");
    if (!masks || !rec->algo->masked) return TG_OK;
    tg_rollout *r = rec->rollout;
    int words = tg_mask_words((int)json_array_size(json_array_get(masks, 0)));
    tg_status st = tg_rollout_add_masks(r, words, err);
    for (int i = 0; st == TG_OK && i < r->n_actions; i++) {
        uint32_t *row = r->masks + (size_t)i * (size_t)words;
        const json_t *list = json_array_get(masks, (size_t)i), *v;
        if (!list) memset(row, 0xff, (size_t)words * sizeof *row);
        size_t t;
        json_array_foreach(list, t, v) {
            if (json_integer_value(v)) row[t / 32] |= 1u << (t % 32);
        }
    }
    return st;
}

tg_status tg_recording_load(tg_recording *rec, const char *dir, tg_error *err) {
    *rec = (tg_recording){.dir = dir};
    tg_status st = load_json(rec, err);
    if (st == TG_OK) st = load_settings(rec, err);
    if (st == TG_OK) st = load_episodes(rec, err);
    if (st == TG_OK) st = load_buffer(rec, err);
    if (st == TG_OK) st = load_masks(rec, err);
    return st;
}

void tg_recording_close(tg_recording *rec) {
    tg_rollout_destroy(&rec->rollout);
    json_decref(rec->root);
    tg_arena_fini(&rec->arena);
}

/* ---- networks ---- */

/* The first of these that has a config.json: models/<name>, dir/../<folder>, dir/<folder>,
 * dir/../../<folder>. */
static tg_status find_arch(tg_recording *rec, const char *models, tg_arch *arch, tg_error *err) {
    const json_t *v = tg_recording_at(rec, "model.folder", err);
    if (!v) return err->status;
    const char *folder = json_string_value(v) ? json_string_value(v) : "";
    const char *base = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    char path[4][4096];
    snprintf(path[0], sizeof path[0], "%s/%s", models ? models : ".", base);
    snprintf(path[1], sizeof path[1], "%s/../%s", rec->dir, folder);
    snprintf(path[2], sizeof path[2], "%s/%s", rec->dir, folder);
    snprintf(path[3], sizeof path[3], "%s/../../%s", rec->dir, folder);
    for (int i = models ? 0 : 1; i < 4; i++) {
        char config[4200];
        snprintf(config, sizeof config, "%s/config.json", path[i]);
        if (tg_path_exists(config)) return tg_arch_load(arch, path[i], err);
    }
    return tg_fail(err, TG_NOINPUT,
                   "model folder %s of %s not found (looked in %s; --models FOLDER says where)",
                   folder, rec->dir, path[1]);
}

static tg_status fill_model(tg_recording *rec, tg_model *m, const tg_safetensors *st,
                            const char *prefix, tg_error *err) {
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        char name[TG_PARAM_NAME_MAX + 16];
        bool head = strcmp(p->name, "value_head.weight") == 0;
        snprintf(name, sizeof name, "%s%s", head ? "" : prefix, p->name);
        const tg_st_tensor *t = tg_safetensors_find(st, name);
        if (!t || t->count != p->count)
            return tg_fail(err, TG_DATA, "%s: initial weights: tensor %s is %s", rec->dir, name,
                           t ? "of another size" : "missing");
        float *values = tg_alloc_array(t->count, sizeof(float));
        if (!values) return tg_fail_nomem(err, t->count * sizeof(float));
        tg_status s = tg_st_to_f32(t, values, err);
        if (s == TG_OK) s = tg_model_set(m, p->name, values, t->count, err);
        tg_free(values);
        if (s != TG_OK) return s;
    }
    return TG_OK;
}

static tg_status make_models(tg_recording *rec, tg_backend *be, const tg_arch *arch,
                             tg_model *models[3], tg_error *err) {
    static const char *const prefixes[] = {"policy.", "value.", "ref."};
    static const unsigned flags[] = {TG_MODEL_TRAINABLE, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD,
                                     0};
    const json_t *v = tg_recording_at(rec, "initial_weights_file", err);
    if (!v) return err->status;
    char *path = tg_path_join(rec->dir, json_string_value(v));
    if (!path) return tg_fail_nomem(err, 1);
    tg_safetensors file;
    tg_status st = tg_safetensors_open(&file, path, err);
    tg_free(path);
    if (st != TG_OK) return st;
    for (int i = 0; st == TG_OK && i < 3; i++) {
        st = tg_model_create(&models[i], be, arch, flags[i], 0, err);
        if (st == TG_OK) st = fill_model(rec, models[i], &file, prefixes[i], err);
    }
    tg_safetensors_close(&file);
    return st;
}

tg_status tg_recording_networks(tg_recording *rec, tg_backend *be, const char *models,
                                tg_actor_critic **out, tg_error *err) {
    *out = NULL;
    tg_arch arch;
    tg_model *m[3] = {NULL, NULL, NULL};
    tg_status st = find_arch(rec, models, &arch, err);
    if (st == TG_OK) st = make_models(rec, be, &arch, m, err);
    if (st != TG_OK) {
        for (int i = 0; i < 3; i++) tg_model_destroy(&m[i]);
        return st;
    }
    int prompt = 1, new = 1;
    for (int i = 0; i < rec->rollout->n_episodes; i++) {
        const tg_episode *ep = &rec->rollout->episodes[i];
        if (ep->n_prompt > prompt) prompt = ep->n_prompt;
        if (ep->n_actions > new) new = ep->n_actions;
    }
    tg_algo_plan plan;
    rec->algo->plan(rec->opts, 1, prompt + new, &plan);
    plan.caps.seqs = plan.caps.actions =
        plan.caps.tokens; /* whatever n_envs was: never the limit */
    if (arch.kind == TG_KIND_SEQ2SEQ) {
        plan.caps = tg_pack_seq2seq_caps(plan.caps, prompt, new);
        rec->rollout->start_id = arch.start_id;
    }
    tg_actor_critic_opts opts = {
        .critic = TG_CRITIC_SEPARATE,
        .reference = true,
        .critic_only = rec->algo->critic_only,
        .mask = {.kind = rec->algo->masked ? TG_MASK_LEARNED_TOP_P : TG_MASK_NONE,
                 .every = 1,
                 .compat = true},
        .optim = rec->optim,
        .train_caps = plan.caps};
    return tg_actor_critic_create(out, &opts, m[0], m[1], m[2], err);
}
