/* Opening a run: everything that can be wrong is found before the first token is generated. */
#include "learner/train/run_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/locate.h"
#include "learner/train/memory_plan.h"
#include "learner/train/perplexity.h"
#include "proto/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- tokenizer ---------------------------------------------------------------------------- */

static tg_status open_tokenizer(tg_run *run, tg_error *err) {
    const tg_node *name = tg_node_get(run->opts.config->tokenizer, "model_name");
    if (!name || name->kind != TG_NODE_SCALAR)
        return tg_node_fail(run->opts.config->tokenizer, "tokenizer.model_name", err, "missing");
    tg_status st = tg_model_locate(name->text, &run->tokenizer_folder, err);
    if (st == TG_OK) st = tg_tokenizer_open(&run->tokenizer, run->tokenizer_folder, err);
    if (st != TG_OK) return tg_node_blame(name, "tokenizer.model_name", st, err);
    const tg_node *pad = tg_node_get(run->opts.config->tokenizer, "pad_token_as_eos_token");
    bool as_eos = true;
    if (!pad || (tg_node_bool(pad, &as_eos) && as_eos)) tg_tokenizer_set_pad_as_eos(run->tokenizer);
    return TG_OK;
}

/* ---- workers ------------------------------------------------------------------------------ */

static tg_status open_security(tg_run *run, bool *insecure, tg_error *err) {
    const tg_pool_config *p = &run->opts.config->pool;
    tg_security_opts keys = run->opts.security;
    if (!keys.key) keys = (tg_security_opts){p->key, p->server_key, p->allow, p->insecure};
    *insecure = keys.insecure || run->opts.security.insecure;
    tg_status st = tg_security_open(&run->security, &keys, err);
    if (st == TG_OK) tg_security_harden(run->security);
    return st;
}

static bool stopped(const void *run) {
    return tg_halt_requested(((const tg_run *)run)->opts.halt);
}

static tg_status open_pool(tg_run *run, tg_error *err) {
    const tg_pool_config *p = &run->opts.config->pool;
    bool given = run->opts.bind || run->opts.connect;
    tg_pool_opts opts = {.bind = given ? run->opts.bind : p->bind,
                         .connect = given ? run->opts.connect : p->connect,
                         .min_workers = (int)p->min_workers,
                         .call_timeout_ms = (int)p->call_timeout_ms,
                         .heartbeat_ms = (int)p->heartbeat_ms,
                         .stop = stopped,
                         .stop_arg = run};
    if (!opts.bind && !opts.connect)
        return tg_fail(err, TG_USAGE,
                       "no address for the workers: give --bind or --connect (textgen train does "
                       "it by itself)");
    tg_status st = open_security(run, &opts.insecure, err);
    opts.security = run->security;
    if (st == TG_OK) st = tg_operations_open(&run->operations, &run->opts.ops, run->security, err);
    if (st == TG_OK) st = tg_pool_open(&run->pool, &opts, err);
    if (st != TG_OK) return st;
    tg_operations_set_pool(run->operations, run->pool);
    run->spec = tg_pool_spec(run->pool);
    uint64_t ours = tg_tokenizer_digest(run->tokenizer);
    if (run->spec->tokenizer_digest && run->spec->tokenizer_digest != ours)
        return tg_fail(err, TG_CONFIG,
                       "the workers have another tokenizer (digest %016" PRIx64 ", here %016" PRIx64
                       "): start them with the same config",
                       run->spec->tokenizer_digest, ours);
    return TG_OK;
}

static tg_status find_special(tg_run *run, tg_error *err) {
    int V = run->arch.vocab_size;
    run->special = tg_alloc_array((size_t)tg_mask_words(V), sizeof *run->special);
    if (!run->special) return tg_fail_nomem(err, (size_t)V / 8);
    for (int32_t t = 0; t < V; t++)
        if (tg_tokenizer_is_special(run->tokenizer, t)) run->special[t / 32] |= 1u << (t % 32);
    return TG_OK;
}

/* Identity of a run: what may not change when it is resumed. */
static uint64_t run_digest(const tg_run *run) {
    tg_buf b = {0};
    tg_train_settings_alg_json(run->settings, &b);
    tg_buf_printf(&b, "|%" PRIu64 "|%d|%d|%016" PRIx64 "|%016" PRIx64, run->seed, run->compat,
                  run->n_envs, run->spec->config_digest, run->spec->tokenizer_digest);
    uint64_t digest = b.failed ? 0 : tg_hash64(b.data, b.len);
    tg_buf_fini(&b);
    return digest;
}

/* ---- folder and trackers ------------------------------------------------------------------ */

static tg_status write_config(const tg_run *run, tg_error *err) {
    char *path = tg_path_join(run->run_dir, "config.json");
    if (!path) return tg_fail_nomem(err, 0);
    tg_status st = TG_OK;
    if (!tg_path_exists(path)) {
        tg_arena arena = {0};
        tg_buf mine = {0}, all = {0};
        tg_node *part = NULL;
        tg_train_settings_json(run->settings, &mine);
        st = mine.failed ? tg_fail_nomem(err, 0)
                         : tg_tree_parse(&arena, "alg", mine.data, mine.len, &part, err);
        const tg_node *parts[] = {part};
        if (st == TG_OK) tg_run_config_json(run->opts.config, parts, 1, &all);
        if (st == TG_OK)
            st = all.failed ? tg_fail_nomem(err, 0)
                            : tg_file_write_atomic(path, all.data, all.len, err);
        tg_buf_fini(&mine);
        tg_buf_fini(&all);
        tg_arena_fini(&arena);
    }
    tg_free(path);
    return st;
}

static tg_status open_folder(tg_run *run, tg_error *err) {
    tg_status st = tg_run_folder_prepare(run->run_dir, run->opts.resume, run->opts.overwrite, err);
    char *log = st == TG_OK ? tg_path_join(run->run_dir, "log.txt") : NULL;
    if (st == TG_OK) st = log ? tg_log_set_file(log, err) : tg_fail_nomem(err, 0);
    tg_free(log);
    return st == TG_OK ? write_config(run, err) : st;
}

static tg_status open_track(tg_run *run, tg_error *err) {
    const tg_train_settings *s = run->settings;
    const char *model = s->supervised ? s->sup.model_name : s->policy_args.model_name;
    snprintf(run->title, sizeof run->title, "%s on %s",
             s->supervised ? "supervised" : s->algo->name, model ? model : "a fresh model");
    tg_track_run t = {.run_dir = run->run_dir,
                      .title = run->title,
                      .unit = s->supervised ? "step" : "iteration",
                      .curve_file = s->supervised ? "training_info.jsonl" : "rollout_info.jsonl",
                      .curve_key = s->supervised ? "supervised/loss" : "rollout_info/ep_rew",
                      .curve_x = s->supervised ? "supervised/step" : NULL,
                      .n_samples_shown = s->eval.n_samples_shown,
                      .terminal = isatty(STDERR_FILENO) == 1,
                      .quiet = getenv("TEXTGEN_QUIET") != NULL};
    const tg_eval_opts *e = run->opts.evaluation;
    if (e) {
        snprintf(run->title, sizeof run->title, "evaluation of %s",
                 model ? model : "a fresh model");
        t.unit = "sample";
        t.curve_file = NULL;
        t.results = e->json ? TG_RESULTS_JSON : TG_RESULTS_TABLE;
    }
    return tg_track_open(&run->track, &t, err);
}

const char *tg_run_products(const tg_train_settings *s, const char *backend) {
    if (!(s->train & TG_MODEL_ROUNDED)) return "f32";
    return tg_backend_fast_bf16(backend)
               ? "bf16 with f32 sums"
               : "bf16 with f32 sums, no faster than f32: this processor has no avx512_bf16";
}

tg_status tg_run_open(tg_run *run, const tg_run_opts *opts, tg_error *err) {
    *run = (tg_run){.opts = *opts,
                    .settings = opts->settings,
                    .run_dir = opts->run_dir,
                    .seed = (uint64_t)opts->config->seed,
                    .compat = opts->config->compat != NULL,
                    .n_envs = 1};
    tg_log_set_stderr(TG_LOG_WARN); /* the progress line is for people; log.txt has the rest */
    int64_t n_envs = 1;
    const tg_node *node = tg_node_get(opts->config->env, "n_envs");
    if (node && tg_node_int(node, &n_envs)) run->n_envs = (int)TG_MAX(1, TG_MIN(n_envs, 1 << 20));
    tg_status st = open_tokenizer(run, err);
    if (st == TG_OK)
        st = tg_run_arch(opts->config->root, run->settings, run->tokenizer, &run->arch,
                         &run->model_folder, err);
    if (st == TG_OK) tg_perplexity_prepare(run);
    if (st == TG_OK) st = open_folder(run, err);
    if (st == TG_OK)
        st = tg_backend_open(&run->be, opts->config->learner.backend,
                             (int)opts->config->learner.threads, err);
    if (st == TG_OK) st = open_pool(run, err);
    if (st == TG_OK) st = tg_run_settle_generation(run, err);
    if (st == TG_OK) st = find_special(run, err);
    if (st == TG_OK && (opts->evaluation || !run->settings->supervised))
        st = tg_run_plan_memory(run, NULL, err);
    if (st == TG_OK) {
        run->digest = run_digest(run);
        st = open_track(run, err);
    }
    if (st != TG_OK) tg_run_close(run);
    return st;
}

void tg_run_close(tg_run *run) {
    if (run->track)
        tg_log_info("train", "memory: peak %.1f MiB, planned %.1f MiB",
                    (double)tg_memory_peak() / (1 << 20), (double)run->planned / (1 << 20));
    tg_track_close(&run->track);
    tg_operations_close(&run->operations);
    if (run->pool) tg_pool_close(&run->pool);
    tg_security_close(&run->security);
    if (run->be) tg_backend_close(&run->be);
    tg_stop_strings_destroy(&run->stops);
    tg_stop_strings_destroy(&run->rollout_stops);
    if (run->text_tokenizer != run->tokenizer) tg_tokenizer_destroy(&run->text_tokenizer);
    tg_tokenizer_destroy(&run->tokenizer);
    tg_free(run->tokenizer_folder);
    tg_free(run->model_folder);
    tg_free(run->special);
    tg_error ignored;
    if (tg_log_set_file(NULL, &ignored) != TG_OK) return; /* nothing to do about it */
}

tg_status tg_run_save_model(const tg_run *run, const tg_model *m, tg_error *err) {
    char *folder = tg_path_join(run->run_dir, "model");
    if (!folder) return tg_fail_nomem(err, 0);
    tg_status st = tg_model_save(m, folder, err);
    if (st == TG_OK) st = tg_tokenizer_save(run->tokenizer, folder, err);
    if (st == TG_OK) tg_log_info("train", "model saved in %s", folder);
    tg_free(folder);
    return st;
}

void tg_run_tell_skipped(const tg_run_state *state, const char *what) {
    if (state->skipped)
        tg_log_warn("train", "%" PRId64 " %s of this run were not finite and left out",
                    state->skipped, what);
}
