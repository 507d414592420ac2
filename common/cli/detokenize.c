/* textgen detokenize: ids to text on files and pipes.
 *
 * Without --jsonl the whole input is one list of ids; with it each line is a list of its own and
 * gives one line, in order. */
#include "common/cli/tokenizer.h"

#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "common/text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16 }; /* of output, unless someone watches */

typedef struct job {
    tg_tokenizer *tokenizer;
    unsigned flags;
    FILE *in;
    tg_ids ids; /* reused between lines */
    tg_buf text, out;
} job;

static tg_status push_id(job *j, int64_t id, tg_error *err) {
    if (id < 0 || id >= tg_tokenizer_size(j->tokenizer))
        return tg_fail(err, TG_DATA, "id %lld is outside 0..%d", (long long)id,
                       (int)tg_tokenizer_size(j->tokenizer) - 1);
    return tg_ids_push(&j->ids, (int32_t)id) ? TG_OK : tg_fail_nomem(err, sizeof(int32_t));
}

static tg_status detokenize_line(job *j, const json_t *value, tg_error *err) {
    if (json_is_object(value)) value = json_object_get(value, "ids");
    if (!json_is_array(value))
        return tg_fail(err, TG_DATA, "expected a JSON list of ids or {\"ids\": …}");
    tg_status st = TG_OK;
    j->ids.n = 0;
    for (size_t i = 0; i < json_array_size(value) && st == TG_OK; i++) {
        const json_t *id = json_array_get(value, i);
        st = json_is_integer(id)
                 ? push_id(j, json_integer_value(id), err)
                 : tg_fail(err, TG_DATA, "item %zu of the list is not an integer", i);
    }
    tg_buf_reset(&j->text);
    if (st == TG_OK)
        st = tg_tokenizer_decode(j->tokenizer, j->ids.data, j->ids.n, j->flags, &j->text, err);
    if (st == TG_OK) tg_json_string(&j->out, j->text.data ? j->text.data : "", j->text.len);
    return st;
}

/* A line that cannot be used gives {"error": …} in its place; *bad counts them. */
static tg_status detokenize_lines(job *j, long *bad, tg_error *err) {
    bool watched = isatty(STDOUT_FILENO);
    tg_jsonl in;
    tg_jsonl_open(&in, j->in);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error line_err = {0};
        tg_status line_st = in.value ? detokenize_line(j, in.value, &line_err) : TG_DATA;
        if (line_st == TG_NOMEM)
            st = tg_fail(err, line_st, "line %ld: %s", in.number, line_err.msg);
        else if (line_st == TG_OK)
            tg_buf_putc(&j->out, '\n');
        else
            tg_jsonl_put_error(&j->out, in.number, in.value ? line_err.msg : in.why);
        if (in.value && line_st != TG_OK) in.n_bad++;
        if (st == TG_OK && (watched || j->out.len >= PIECE)) st = tg_stdout_write(&j->out, err);
    }
    if (st == TG_OK) st = tg_stdout_write(&j->out, err);
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    *bad = in.n_bad;
    tg_jsonl_close(&in);
    return st;
}

/* Ids with white space or commas between, brackets allowed around. */
static tg_status detokenize_all(job *j, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_stream_read(j->in, "input", &text, err);
    static const char between[] = " \t\r\n,[]";
    for (char *p = text.data; st == TG_OK && p && *p;) {
        p += strspn(p, between);
        size_t n = strcspn(p, between);
        int64_t id;
        char end = p[n];
        p[n] = 0;
        if (n)
            st = tg_parse_i64(p, &id) ? push_id(j, id, err)
                                      : tg_fail(err, TG_DATA, "'%.40s' is not an id", p);
        p += n + (end != 0);
    }
    tg_buf_fini(&text);
    if (st == TG_OK)
        st = tg_tokenizer_decode(j->tokenizer, j->ids.data, j->ids.n, j->flags, &j->out, err);
    return st == TG_OK ? tg_stdout_write(&j->out, err) : st;
}

int tg_cmd_detokenize(int argc, char **argv) {
    const char *tokenizer = NULL;
    bool jsonl = false, skip = false, clean = false;
    const tg_flag flags[] = {
        {"tokenizer", TG_FLAG_STR, &tokenizer, "DIR",
         "A model folder, a model's name, or a tokenizer.json."},
        {"jsonl", TG_FLAG_SWITCH, &jsonl, NULL,
         "A JSON list of ids a line in; a JSON string a line out."},
        {"skip-special", TG_FLAG_SWITCH, &skip, NULL, "Leave special tokens out."},
        {"clean-up", TG_FLAG_SWITCH, &clean, NULL,
         "Remove spaces before punctuation, as transformers' clean-up does."},
        {0}};
    const tg_args_spec spec = {
        "textgen detokenize",
        "--tokenizer DIR [--jsonl] [--skip-special] [--clean-up] [FILE]",
        "Turns token ids into text.",
        flags,
        "  echo 15496 995 | textgen detokenize --tokenizer models/gpt2\n"
        "  echo '[15496, 995]' | textgen detokenize --tokenizer models/gpt2 --jsonl\n",
        0,
        1,
        true};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    job j = {.flags = (skip ? TG_DECODE_SKIP_SPECIAL : 0u) | (clean ? TG_DECODE_CLEAN_UP : 0u)};
    long bad = 0;
    tg_status st = TG_OK;
    if (!args.help) {
        st = tg_cli_open_tokenizer(tokenizer, &j.tokenizer, &err);
        if (st == TG_OK) st = tg_cli_open_input(&args, &j.in, &err);
        if (st == TG_OK) st = jsonl ? detokenize_lines(&j, &bad, &err) : detokenize_all(&j, &err);
        if (st == TG_OK) st = tg_cli_bad_lines(bad, &err);
    }
    if (j.in && j.in != stdin) fclose(j.in);
    tg_tokenizer_destroy(&j.tokenizer);
    tg_ids_fini(&j.ids);
    tg_buf_fini(&j.text);
    tg_buf_fini(&j.out);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
