/* textgen tokenize and textgen detokenize: text to ids and back on files and pipes.
 *
 * Without --jsonl the whole input is one text (or one list of ids), so that `tokenize | detokenize` gives the same text
 * back. With it each line is a JSON value of its own and gives one line, in order. */
#include "common/cli/tokenizer.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "common/config/locate.h"
#include "common/text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16 }; /* of output, unless someone watches */

typedef struct job {
    const char *name; /* of the command */
    tg_tokenizer *tokenizer;
    unsigned encode_flags, decode_flags;
    FILE *in;
    tg_ids ids; /* reused between lines */
    tg_spans spans;
    tg_buf out;
} job;

/* One line of input to one JSON value in j->out. */
typedef tg_status line_fn(job *j, const json_t *value, tg_error *err);

static tg_status tokenize_line(job *j, const json_t *value, tg_error *err) {
    if (json_is_object(value)) value = json_object_get(value, "text");
    if (!json_is_string(value))
        return tg_fail(err, TG_DATA, "expected a JSON string or {\"text\": …}");
    j->ids.n = j->spans.n = 0;
    tg_status st =
        tg_tokenizer_encode_spans(j->tokenizer, json_string_value(value), json_string_length(value),
                                  j->encode_flags, &j->ids, &j->spans, err);
    if (st != TG_OK) return st;
    tg_buf_puts(&j->out, "{\"ids\":[");
    for (size_t i = 0; i < j->ids.n; i++)
        tg_buf_printf(&j->out, i ? ",%d" : "%d", (int)j->ids.data[i]);
    tg_buf_puts(&j->out, "],\"tokens\":[");
    for (size_t i = 0; i < j->ids.n; i++) {
        const char *token = tg_tokenizer_token(j->tokenizer, j->ids.data[i]);
        if (i) tg_buf_putc(&j->out, ',');
        tg_json_string(&j->out, token ? token : "", token ? strlen(token) : 0);
    }
    tg_buf_puts(&j->out, "],\"offsets\":[");
    for (size_t i = 0; i < j->ids.n; i++)
        tg_buf_printf(&j->out, i ? ",[%u,%u]" : "[%u,%u]", j->spans.data[i].start,
                      j->spans.data[i].end);
    tg_buf_puts(&j->out, "]}");
    return TG_OK;
}

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
    tg_buf text = {0};
    if (st == TG_OK)
        st = tg_tokenizer_decode(j->tokenizer, j->ids.data, j->ids.n, j->decode_flags, &text, err);
    if (st == TG_OK) tg_json_string(&j->out, text.data ? text.data : "", text.len);
    tg_buf_fini(&text);
    return st;
}

/* A line that cannot be used gives {"error": …} in its place; *bad counts them. */
static tg_status run_lines(job *j, line_fn *run, long *bad, tg_error *err) {
    bool watched = isatty(STDOUT_FILENO);
    tg_jsonl in;
    tg_jsonl_open(&in, j->in);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error line_err = {0};
        tg_status line_st = in.value ? run(j, in.value, &line_err) : TG_DATA;
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

static tg_status tokenize_all(job *j, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_stream_read(j->in, "input", &text, err);
    if (st == TG_OK)
        st = tg_tokenizer_encode(j->tokenizer, text.data, text.len, j->encode_flags, &j->ids, err);
    tg_buf_fini(&text);
    for (size_t i = 0; i < j->ids.n && st == TG_OK; i++)
        tg_buf_printf(&j->out, i ? " %d" : "%d", (int)j->ids.data[i]);
    tg_buf_putc(&j->out, '\n');
    return st == TG_OK ? tg_stdout_write(&j->out, err) : st;
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
        st =
            tg_tokenizer_decode(j->tokenizer, j->ids.data, j->ids.n, j->decode_flags, &j->out, err);
    return st == TG_OK ? tg_stdout_write(&j->out, err) : st;
}

/* A path is opened as it is; anything else is a model's name. */
static tg_status open_tokenizer(job *j, const char *name, tg_error *err) {
    if (tg_path_exists(name)) return tg_tokenizer_open(&j->tokenizer, name, err);
    char *folder = NULL;
    tg_status st = tg_model_locate(name, &folder, err);
    if (st == TG_OK) st = tg_tokenizer_open(&j->tokenizer, folder, err);
    tg_free(folder);
    return st;
}

/* What both commands share; all is the reader without --jsonl. */
static int run_job(job *j, const tg_args *args, const char *tokenizer, bool jsonl, line_fn *line,
                   tg_status (*all)(job *, tg_error *)) {
    tg_error err = {0};
    long bad = 0;
    tg_status st = tokenizer ? TG_OK : tg_fail(&err, TG_USAGE, "--tokenizer DIR is missing");
    if (st == TG_OK) st = open_tokenizer(j, tokenizer, &err);
    j->in = stdin;
    if (st == TG_OK && args->n_positional) {
        j->in = fopen(args->positional[0], "rb");
        if (!j->in) st = tg_fail_errno(&err, TG_NOINPUT, "%s", args->positional[0]);
    }
    if (st == TG_OK) st = jsonl ? run_lines(j, line, &bad, &err) : all(j, &err);
    if (st == TG_OK && bad)
        st = tg_fail(&err, TG_DATA, "%ld line%s could not be used", bad, bad == 1 ? "" : "s");
    if (j->in && j->in != stdin) fclose(j->in);
    tg_tokenizer_destroy(&j->tokenizer);
    tg_ids_fini(&j->ids);
    tg_spans_fini(&j->spans);
    tg_buf_fini(&j->out);
    return st == TG_OK ? 0 : tg_args_report(j->name, &err);
}

int tg_cmd_tokenize(int argc, char **argv) {
    const char *tokenizer = NULL;
    bool jsonl = false, no_special = false;
    const tg_flag flags[] = {
        {"tokenizer", TG_FLAG_STR, &tokenizer, "DIR",
         "A model folder, a model's name, or a tokenizer.json."},
        {"jsonl", TG_FLAG_SWITCH, &jsonl, NULL,
         "A JSON string a line in; ids, tokens and offsets (code points) out."},
        {"no-special", TG_FLAG_SWITCH, &no_special, NULL,
         "Do not add the tokens that the tokenizer puts around a text."},
        {0}};
    const tg_args_spec spec = {"textgen tokenize",
                               "--tokenizer DIR [--jsonl] [--no-special] [FILE]",
                               "Turns text into token ids.",
                               flags,
                               "  echo 'Hello world' | textgen tokenize --tokenizer models/gpt2\n",
                               0,
                               1,
                               true};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    job j = {.name = spec.name, .encode_flags = no_special ? 0 : TG_ENCODE_SPECIAL};
    int code = args.help ? 0 : run_job(&j, &args, tokenizer, jsonl, tokenize_line, tokenize_all);
    tg_args_fini(&args);
    return code;
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
    const tg_args_spec spec = {"textgen detokenize",
                               "--tokenizer DIR [--jsonl] [--skip-special] [FILE]",
                               "Turns token ids into text.",
                               flags,
                               "  echo 15496 995 | textgen detokenize --tokenizer models/gpt2\n",
                               0,
                               1,
                               true};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    job j = {.name = spec.name,
             .decode_flags =
                 (skip ? TG_DECODE_SKIP_SPECIAL : 0u) | (clean ? TG_DECODE_CLEAN_UP : 0u)};
    int code =
        args.help ? 0 : run_job(&j, &args, tokenizer, jsonl, detokenize_line, detokenize_all);
    tg_args_fini(&args);
    return code;
}
