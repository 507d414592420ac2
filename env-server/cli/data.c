/* textgen data: samples of a config's data pool as the model will see them: the prompt as its
 * tokens say it, with what is cut off marked, and the numbers of tokens. */
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/config/json.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/env/env.h"
#include "proto/split.h"

#include <stdio.h>
#include <string.h>

typedef struct request {
    const char *config, *split_name;
    int64_t n;
    bool json, jsonl;
} request;

typedef struct view {
    tg_datapool pool;
    tg_tokenizer *tokenizer; /* NULL: it is not there, so tokens are not counted */
    tg_prompt_encoder encoder;
    uint64_t shown, cut, fewest, most;
} view;

/* A prompt in tokens. */
typedef struct seen {
    size_t tokens, kept;
    tg_buf text; /* of the kept tokens, special ones included */
} seen;

static tg_status look(const view *v, const tg_sample *s, seen *out, tg_error *err) {
    const tg_prompt_encoder *e = &v->encoder;
    tg_ids ids = {0};
    size_t len = strlen(s->prompt_text);
    tg_status st = tg_tokenizer_encode(v->tokenizer, s->prompt_text, len, 0, &ids, err);
    out->tokens = ids.n + e->n_before + e->n_after;
    if (st == TG_OK) st = tg_prompt_encode(e, s->prompt_text, &ids, err);
    out->kept = ids.n;
    if (st == TG_OK) st = tg_tokenizer_decode(v->tokenizer, ids.data, ids.n, 0, &out->text, err);
    tg_ids_fini(&ids);
    return st;
}

static tg_status count_tokens(const view *v, const char *text, size_t *n, tg_error *err) {
    tg_ids ids = {0};
    tg_status st = tg_tokenizer_encode(v->tokenizer, text, strlen(text), 0, &ids, err);
    *n = ids.n;
    tg_ids_fini(&ids);
    return st;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void text_json(tg_buf *out, const char *key, const char *text) {
    tg_buf_printf(out, "\"%s\": ", key);
    tg_json_string(out, text, strlen(text));
}

static void sample_json(const view *v, const tg_sample *s, tg_buf *out) {
    tg_buf_putc(out, '{');
    if (v->pool.ops->integer_ids)
        tg_buf_printf(out, "\"id\": %s", s->id);
    else
        text_json(out, "id", s->id);
    tg_buf_puts(out, ", ");
    text_json(out, "prompt", s->prompt_text);
    tg_buf_puts(out, ", \"references\": [");
    for (size_t i = 0; i < s->n_references; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_json_string(out, s->references[i], strlen(s->references[i]));
    }
    tg_buf_printf(out, "], \"meta\": %s", *s->meta_json ? s->meta_json : "null");
}

static tg_status tokens_json(const view *v, const tg_sample *s, const seen *p, tg_buf *out,
                             tg_error *err) {
    if (!v->tokenizer) {
        tg_buf_puts(out, ", \"tokens\": null");
        return TG_OK;
    }
    tg_buf_printf(out,
                  ", \"tokens\": %zu, \"kept\": %zu, \"truncated\": %s, \"truncation_side\": "
                  "\"%s\", \"seen\": ",
                  p->tokens, p->kept, p->kept < p->tokens ? "true" : "false",
                  v->encoder.keep_end ? "left" : "right");
    tg_json_string(out, p->text.data ? p->text.data : "", p->text.len);
    tg_buf_puts(out, ", \"reference_tokens\": [");
    tg_status st = TG_OK;
    for (size_t i = 0; i < s->n_references && st == TG_OK; i++) {
        size_t n;
        st = count_tokens(v, s->references[i], &n, err);
        tg_buf_printf(out, "%s%zu", i ? ", " : "", n);
    }
    tg_buf_putc(out, ']');
    return st;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Further lines of a text stand below its first. */
static void put_text(tg_buf *out, const char *label, const char *before, const char *text,
                     const char *after) {
    tg_buf_printf(out, "  %-10s %s", label, before);
    for (; *text; text++) {
        tg_buf_putc(out, *text);
        if (*text == '\n') tg_buf_puts(out, "             ");
    }
    tg_buf_printf(out, "%s\n", after);
}

static tg_status sample_text(const view *v, const tg_sample *s, const seen *p, tg_buf *out,
                             tg_error *err) {
    char mark[64] = "";
    tg_buf_printf(out, "%s\n", s->id);
    bool left = v->encoder.keep_end, cut = v->tokenizer && p->kept < p->tokens;
    if (cut) snprintf(mark, sizeof mark, "[… %zu tokens cut …]", p->tokens - p->kept);
    put_text(out, "prompt", left ? mark : "", cut ? p->text.data : s->prompt_text,
             left ? "" : mark);
    if (v->tokenizer) tg_buf_printf(out, "  %-10s %zu", "tokens", p->tokens);
    if (cut)
        tg_buf_printf(out, ", the %s %zu are cut (env.args.max_prompt_length is %zu)",
                      left ? "first" : "last", p->tokens - p->kept, v->encoder.max_length);
    if (v->tokenizer) tg_buf_putc(out, '\n');
    tg_status st = TG_OK;
    for (size_t i = 0; i < s->n_references && st == TG_OK; i++) {
        char tokens[32] = "";
        size_t n;
        if (v->tokenizer && (st = count_tokens(v, s->references[i], &n, err)) == TG_OK)
            snprintf(tokens, sizeof tokens, "  (%zu tokens)", n);
        put_text(out, "reference", "", s->references[i], tokens);
    }
    if (*s->meta_json) tg_buf_printf(out, "  %-10s %s\n", "meta", s->meta_json);
    return st;
}

static void put_summary(const view *v, tg_buf *out) {
    tg_buf_printf(out, "%llu of %llu samples", (unsigned long long)v->shown,
                  (unsigned long long)v->pool.count);
    if (v->tokenizer && v->shown)
        tg_buf_printf(out, ", prompts of %llu to %llu tokens, %llu cut",
                      (unsigned long long)v->fewest, (unsigned long long)v->most,
                      (unsigned long long)v->cut);
    tg_buf_putc(out, '\n');
}

/* ---- the command --------------------------------------------------------------------------- */

static tg_status show_one(view *v, const request *r, uint64_t i, tg_arena *arena, tg_buf *out,
                          tg_error *err) {
    tg_sample s;
    seen p = {0};
    tg_status st = tg_datapool_get(&v->pool, i, arena, &s, err);
    if (st == TG_OK && v->tokenizer && !r->jsonl) st = look(v, &s, &p, err);
    if (st == TG_OK && (r->json || r->jsonl)) {
        sample_json(v, &s, out);
        if (!r->jsonl) st = tokens_json(v, &s, &p, out, err);
        tg_buf_puts(out, "}\n");
    } else if (st == TG_OK) {
        st = sample_text(v, &s, &p, out, err);
    }
    v->cut += p.kept < p.tokens;
    if (!v->shown++ || p.tokens < v->fewest) v->fewest = p.tokens;
    if (p.tokens > v->most) v->most = p.tokens;
    tg_buf_fini(&p.text);
    return st;
}

static tg_status show(view *v, const request *r, tg_error *err) {
    tg_arena arena = {0};
    tg_buf out = {0};
    tg_status st = TG_OK;
    for (uint64_t i = 0; i < (uint64_t)r->n && i < v->pool.count && st == TG_OK; i++) {
        tg_arena_reset(&arena);
        tg_buf_reset(&out);
        st = show_one(v, r, i, &arena, &out, err);
        if (st == TG_OK) st = tg_stdout_write(&out, err);
    }
    if (st == TG_OK && !r->json && !r->jsonl) {
        tg_buf_reset(&out);
        put_summary(v, &out);
        st = tg_stdout_write(&out, err);
    }
    tg_buf_fini(&out);
    tg_arena_fini(&arena);
    return st;
}

/* Texts can be looked at without the model's folder. */
static tg_status open_tokenizer(view *v, const tg_env_settings *s, tg_error *err) {
    tg_status st = tg_env_open_tokenizer(s, &v->tokenizer, err);
    if (st == TG_NOINPUT) {
        tg_log_warn("data", "tokens are not counted: %s", err->msg);
        return TG_OK;
    }
    return st == TG_OK
               ? tg_prompt_init(&v->encoder, v->tokenizer, tg_env_prompt_length(s, v->tokenizer),
                                !strcmp(s->mdp.prompt_truncation_side, "left"), err)
               : st;
}

static tg_status data(const request *r, const tg_args *args, tg_error *err) {
    tg_split split;
    if (!tg_split_parse(r->split_name, &split))
        return tg_fail(err, TG_USAGE, "--split: expected train, val or test, found \"%s\"",
                       r->split_name);
    if (r->n < 0)
        return tg_fail(err, TG_USAGE, "--limit: expected a number of samples, found %lld",
                       (long long)r->n);
    tg_loaded l;
    view v = {0};
    tg_status st = tg_loaded_open(&l, r->config, args, err);
    if (st != TG_OK) return st;
    const tg_choice *c = &l.settings.datapool;
    st = tg_choice_require_built(c, err);
    if (st == TG_OK) st = open_tokenizer(&v, &l.settings, err);
    const tg_datapool_context context = {.compat = l.settings.context.compat,
                                         .seed = l.settings.seed,
                                         .tokenizer = v.tokenizer,
                                         .max_prompt_length = v.encoder.max_length};
    if (st == TG_OK)
        st = tg_datapool_open(&v.pool, (const tg_datapool_ops *)c->entry, c->options, &context,
                              split, err);
    if (st == TG_OK && v.pool.count == 0)
        st = tg_fail(err, TG_NOINPUT, "the data pool has no %s split (see datapool.args)",
                     r->split_name);
    if (st == TG_OK) st = show(&v, r, err);
    tg_datapool_close(&v.pool);
    tg_tokenizer_destroy(&v.tokenizer);
    tg_loaded_close(&l);
    return st;
}

int tg_command_data(int argc, char **argv) {
    request r = {.split_name = "train", .n = 10};
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &r.config, "FILE", "The config."},
        {"split", TG_FLAG_STR, &r.split_name, "SPLIT", "train (default), val or test."},
        {"limit", TG_FLAG_INT, &r.n, "N", "How many samples (10)."},
        {"n", TG_FLAG_INT, &r.n, "N", "The same as --limit."},
        {"json", TG_FLAG_SWITCH, &r.json, NULL,
         "One JSON object a line, with tokens, kept, truncated and seen."},
        {"jsonl", TG_FLAG_SWITCH, &r.jsonl, NULL,
         "One JSON object a line: id, prompt, references, meta."},
        {0}};
    const tg_args_spec spec = {
        "textgen data",
        "CONFIG [--split train] [--limit 10] [--json] [key=value…]",
        "Shows samples as the model will see them, with token counts and what is cut off marked.",
        flags,
        "  textgen data configs/increasing_numbers.yml --limit 3\n"
        "  textgen data summarization.yml --split val --json datapool.args.path=data/cnn\n"
        "  textgen data imdb.yml datapool.args.seed=7 env.args.max_prompt_length=64\n",
        0,
        1,
        false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) st = data(&r, &args, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
