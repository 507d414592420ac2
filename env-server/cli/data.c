/* textgen-env data: samples of a config's data pool as the environment will see them. */
#include "common/base/file.h"
#include "common/config/json.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/datapool/datapool.h"

#include <string.h>

static void text_json(tg_buf *out, const char *key, const char *text) {
    tg_buf_printf(out, "\"%s\": ", key);
    tg_json_string(out, text, strlen(text));
}

static void sample_json(const tg_datapool *pool, const tg_sample *s, tg_buf *out) {
    tg_buf_putc(out, '{');
    if (pool->ops->integer_ids)
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
    tg_buf_printf(out, "], \"meta\": %s}\n", *s->meta_json ? s->meta_json : "null");
}

static void sample_text(const tg_sample *s, tg_buf *out) {
    tg_buf_printf(out, "%s\n  prompt     %s\n", s->id, s->prompt_text);
    for (size_t i = 0; i < s->n_references; i++)
        tg_buf_printf(out, "  reference  %s\n", s->references[i]);
    if (*s->meta_json) tg_buf_printf(out, "  meta       %s\n", s->meta_json);
}

static tg_status show(const tg_datapool *pool, uint64_t n, bool jsonl, tg_error *err) {
    tg_arena arena = {0};
    tg_buf out = {0};
    tg_status st = TG_OK;
    for (uint64_t i = 0; i < n && i < pool->count && st == TG_OK; i++) {
        tg_sample sample;
        tg_arena_reset(&arena);
        tg_buf_reset(&out);
        st = tg_datapool_get(pool, i, &arena, &sample, err);
        if (st != TG_OK) break;
        if (jsonl)
            sample_json(pool, &sample, &out);
        else
            sample_text(&sample, &out);
        st = tg_stdout_write(&out, err);
    }
    if (st == TG_OK && !jsonl) {
        tg_buf_reset(&out);
        tg_buf_printf(&out, "%llu of %llu samples\n",
                      (unsigned long long)(n < pool->count ? n : pool->count),
                      (unsigned long long)pool->count);
        st = tg_stdout_write(&out, err);
    }
    tg_buf_fini(&out);
    tg_arena_fini(&arena);
    return st;
}

static tg_status data(const char *config, const tg_args *args, const char *split_name, int64_t n,
                      bool jsonl, tg_error *err) {
    tg_split split;
    if (!tg_split_parse(split_name, &split))
        return tg_fail(err, TG_USAGE, "--split: expected train, val or test, found \"%s\"",
                       split_name);
    if (n < 0)
        return tg_fail(err, TG_USAGE, "--n: expected a number of samples, found %lld",
                       (long long)n);
    tg_loaded l;
    tg_datapool pool = {0};
    tg_status st = tg_loaded_open(&l, config, args, err);
    if (st != TG_OK) return st;
    const tg_choice *c = &l.settings.datapool;
    st = tg_choice_require_built(c, err);
    if (st == TG_OK)
        st = tg_datapool_open(&pool, (const tg_datapool_ops *)c->entry, c->options, NULL, split,
                              err);
    if (st == TG_OK && pool.count == 0)
        st = tg_fail(err, TG_NOINPUT, "the data pool has no %s split (see datapool.args)",
                     split_name);
    if (st == TG_OK) st = show(&pool, (uint64_t)n, jsonl, err);
    tg_datapool_close(&pool);
    tg_loaded_close(&l);
    return st;
}

int tg_command_data(int argc, char **argv) {
    const char *config = NULL, *split = "train";
    int64_t n = 10;
    bool jsonl = false;
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &config, "FILE", "The config."},
        {"split", TG_FLAG_STR, &split, "SPLIT", "train (default), val or test."},
        {"n", TG_FLAG_INT, &n, "N", "How many samples (10)."},
        {"jsonl", TG_FLAG_SWITCH, &jsonl, NULL, "One JSON object a line."},
        {0}};
    const tg_args_spec spec = {"textgen-env data",
                               "CONFIG [--split train] [--n 10] [--jsonl] [key=value…]",
                               "Shows samples as the environment will see them.",
                               flags,
                               "  textgen-env data configs/increasing_numbers.yml --n 3 --jsonl\n",
                               0,
                               1,
                               false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) st = data(config, &args, split, n, jsonl, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
