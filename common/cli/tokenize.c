/* textgen tokenize: text to ids on files and pipes.
 *
 * Without --jsonl the whole input is one text, so that `tokenize | detokenize` gives the same text back. With it each
 * line is a text (or two) of its own and gives one line, in order; lines are encoded in batches. */
#include "common/cli/tokenizer.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/cli/tokenize_show.h"
#include "common/config/jsonl.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16, BATCH_LINES = 256, BATCH_BYTES = 1 << 20 };

typedef struct job {
    tg_tokenizer *opened;
    const tg_tokenizer *tokenizer; /* it, or its other language */
    tg_encode_options options;
    bool pieces, colors, masks;
    FILE *in;
    tg_team *team;
    tg_encodings rows;
    tg_buf out;
    /* The batch: lines and their texts, one after the other in `bytes`. */
    struct line {
        long number;
        size_t from, len, pair_len;
        bool pair;
        char *why; /* owned; not NULL: the line is bad */
    } * lines;
    size_t n_lines, cap_lines;
    tg_buf bytes;
    tg_text *texts;
    long bad;
} job;

static void clear_lines(job *j) {
    for (size_t i = 0; i < j->n_lines; i++) tg_free(j->lines[i].why);
    j->n_lines = 0;
    tg_buf_reset(&j->bytes);
}

/* "text", {"text", "pair"} or ["text", "pair"]. */
static const char *read_line(job *j, const json_t *value, struct line *line) {
    const json_t *text = value, *pair = NULL;
    if (json_is_object(value))
        text = json_object_get(value, "text"), pair = json_object_get(value, "pair");
    if (json_is_array(value) && json_array_size(value) == 2)
        text = json_array_get(value, 0), pair = json_array_get(value, 1);
    if (!json_is_string(text) || (pair && !json_is_string(pair) && !json_is_null(pair)))
        return "expected a JSON string, {\"text\": …, \"pair\": …} or [\"text\", \"pair\"]";
    line->from = j->bytes.len;
    line->len = json_string_length(text);
    line->pair = json_is_string(pair);
    line->pair_len = line->pair ? json_string_length(pair) : 0;
    tg_buf_append(&j->bytes, json_string_value(text), line->len);
    if (line->pair) tg_buf_append(&j->bytes, json_string_value(pair), line->pair_len);
    return NULL;
}

static tg_status add_line(job *j, const tg_jsonl *in, tg_error *err) {
    if (j->n_lines == j->cap_lines) {
        size_t cap = j->cap_lines ? 2 * j->cap_lines : BATCH_LINES;
        struct line *lines = tg_realloc_array(j->lines, cap, sizeof *lines);
        if (lines) j->lines = lines;
        tg_text *texts = lines ? tg_realloc_array(j->texts, cap, sizeof *texts) : NULL;
        if (!texts) return tg_fail_nomem(err, cap * sizeof *lines);
        j->texts = texts, j->cap_lines = cap;
    }
    struct line *line = &j->lines[j->n_lines];
    *line = (struct line){.number = in->number};
    const char *why = in->value ? read_line(j, in->value, line) : in->why;
    if (why) line->why = tg_strdup(why);
    if ((why && !line->why) || j->bytes.failed) return tg_fail_nomem(err, j->bytes.len);
    j->n_lines++;
    return TG_OK;
}

static tg_text text_of(const job *j, const struct line *line) {
    const char *at = j->bytes.data ? j->bytes.data + line->from : "";
    return (tg_text){at, line->len, line->pair ? at + line->len : NULL, line->pair_len};
}

/* Encodes the good lines; *n gets their number. */
static tg_status encode_lines(job *j, size_t *n, tg_error *err) {
    *n = 0;
    for (size_t i = 0; i < j->n_lines; i++)
        if (!j->lines[i].why) j->texts[(*n)++] = text_of(j, &j->lines[i]);
    return tg_tokenizer_encode_batch(j->tokenizer, j->texts, *n, &j->options, j->team, &j->rows,
                                     err);
}

/* Finds the lines that cannot be encoded, one by one. */
static tg_status find_bad(job *j, tg_error *err) {
    for (size_t i = 0; i < j->n_lines; i++) {
        if (j->lines[i].why) continue;
        tg_text text = text_of(j, &j->lines[i]);
        tg_error why = {0};
        tg_status st =
            tg_tokenizer_encode_batch(j->tokenizer, &text, 1, &j->options, NULL, &j->rows, &why);
        if (st == TG_OK) continue;
        const char *colon = strstr(why.msg, ": ");
        if (st != TG_NOMEM) j->lines[i].why = tg_strdup(colon ? colon + 2 : why.msg);
        if (!j->lines[i].why) return tg_fail_nomem(err, sizeof why);
    }
    return TG_OK;
}

static void put_line(job *j, size_t *row) {
    size_t text = j->rows.text[*row];
    tg_show_json(j->tokenizer, &j->rows, (*row)++, j->masks, &j->out);
    if (j->options.overflow) tg_buf_puts(&j->out, ",\"overflow\":[");
    const char *comma = "";
    for (; *row < j->rows.n && j->rows.text[*row] == text; ++*row, comma = ",") {
        tg_buf_puts(&j->out, comma);
        tg_show_json(j->tokenizer, &j->rows, *row, j->masks, &j->out);
        tg_buf_putc(&j->out, '}');
    }
    tg_buf_puts(&j->out, j->options.overflow ? "]}\n" : "}\n");
}

static tg_status flush_lines(job *j, tg_error *err) {
    size_t n, row = 0;
    tg_status st = encode_lines(j, &n, err);
    if (st == TG_DATA || st == TG_CONFIG) {
        st = find_bad(j, err);
        if (st == TG_OK) st = encode_lines(j, &n, err);
    }
    for (size_t i = 0; i < j->n_lines && st == TG_OK; i++) {
        const struct line *line = &j->lines[i];
        if (line->why)
            tg_jsonl_put_error(&j->out, line->number, line->why), j->bad++;
        else
            put_line(j, &row);
        if (j->out.len >= PIECE) st = tg_stdout_write(&j->out, err);
    }
    if (st == TG_OK) st = tg_stdout_write(&j->out, err);
    clear_lines(j);
    return st;
}

static tg_status tokenize_lines(job *j, tg_error *err) {
    bool watched = isatty(STDOUT_FILENO);
    bool whole = j->options.pad == TG_PAD_LONGEST; /* the longest of all lines */
    tg_jsonl in;
    tg_jsonl_open(&in, j->in);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        st = add_line(j, &in, err);
        bool full = watched || j->n_lines >= BATCH_LINES || j->bytes.len >= BATCH_BYTES;
        if (st == TG_OK && full && !whole) st = flush_lines(j, err);
    }
    if (st == TG_OK) st = flush_lines(j, err);
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    tg_jsonl_close(&in);
    return st;
}

static tg_status tokenize_all(job *j, tg_error *err) {
    tg_status st = tg_stream_read(j->in, "input", &j->bytes, err);
    tg_text text = {j->bytes.data, j->bytes.len, NULL, 0};
    if (st == TG_OK)
        st = tg_tokenizer_encode_batch(j->tokenizer, &text, 1, &j->options, NULL, &j->rows, err);
    for (size_t row = 0; st == TG_OK && row < j->rows.n; row++) {
        if (j->colors)
            tg_show_colors(j->tokenizer, &j->rows, row, &text, &j->out);
        else if (j->pieces)
            tg_show_pieces(j->tokenizer, &j->rows, row, &j->out);
        else
            tg_show_ids(&j->rows, row, &j->out);
    }
    return st == TG_OK ? tg_stdout_write(&j->out, err) : st;
}

/* ---- the command line ---- */

typedef struct choices {
    const char *tokenizer, *truncate, *truncation_side, *pad, *padding_side;
    bool jsonl, no_special, target;
    int64_t threads;
} choices;

/* Place of value in "a|b|c"; TG_USAGE when it is not there. NULL: *out stays as it is. */
static tg_status choose(const char *flag, const char *value, const char *list, int *out,
                        tg_error *err) {
    if (!value) return TG_OK;
    int i = 0;
    for (const char *p = list; *p; i++) {
        size_t n = strcspn(p, "|");
        if (n == strlen(value) && !strncmp(p, value, n)) {
            *out = i;
            return TG_OK;
        }
        p += n + (p[n] == '|');
    }
    return tg_fail(err, TG_USAGE, "--%s %s: expected one of %s", flag, value, list);
}

static tg_status set_options(job *j, const choices *c, const tg_encode_options *given,
                             tg_error *err) {
    tg_encode_options *o = &j->options;
    *o = tg_encode_defaults(j->tokenizer);
    o->special = !c->no_special;
    o->offsets = c->jsonl || j->colors;
    o->max_length = given->max_length, o->stride = given->stride, o->overflow = given->overflow;
    o->pad_length = given->pad_length, o->pad_multiple = given->pad_multiple;
    int strategy = TG_TRUNCATE_LONGEST_FIRST, pad = TG_PAD_NONE;
    int cut_left = o->truncate_left, pad_left = o->pad_left;
    tg_status st =
        choose("truncate", c->truncate, "longest_first|only_first|only_second", &strategy, err);
    if (st == TG_OK)
        st = choose("truncation-side", c->truncation_side, "right|left", &cut_left, err);
    if (st == TG_OK) st = choose("padding-side", c->padding_side, "right|left", &pad_left, err);
    if (st == TG_OK) st = choose("pad", c->pad, "none|longest|length", &pad, err);
    if (st != TG_OK) return st;
    o->strategy = (tg_truncation)strategy, o->pad = (tg_padding)pad;
    o->truncate_left = cut_left, o->pad_left = pad_left;
    if (!c->pad && o->pad_length) o->pad = TG_PAD_LENGTH;
    if (o->pad == TG_PAD_LENGTH && !o->pad_length) o->pad_length = o->max_length;
    if (c->truncate && !o->max_length) o->max_length = tg_tokenizer_max_length(j->tokenizer);
    o->truncate = c->truncate || o->max_length;
    if (o->truncate && o->max_length == INT64_MAX)
        return tg_fail(err, TG_USAGE, "--max-length N is missing: the tokenizer names none");
    if (o->pad == TG_PAD_LENGTH && !o->pad_length)
        return tg_fail(err, TG_USAGE, "--pad-to N is missing");
    if (o->pad && tg_tokenizer_pad(j->tokenizer) < 0)
        return tg_fail(err, TG_CONFIG,
                       "--pad: the tokenizer has no pad token; name one in tokenizer_config.json");
    return TG_OK;
}

static tg_status run(job *j, const choices *c, const tg_encode_options *given, const tg_args *args,
                     tg_error *err) {
    tg_status st = tg_cli_open_tokenizer(c->tokenizer, &j->opened, err);
    if (st == TG_OK) j->tokenizer = c->target ? tg_tokenizer_target(j->opened) : j->opened;
    if (st == TG_OK) st = set_options(j, c, given, err);
    if (st == TG_OK && (c->threads < 1 || c->threads > 64))
        st = tg_fail(err, TG_USAGE, "--threads %lld: expected 1 to 64", (long long)c->threads);
    if (st == TG_OK && c->threads > 1) st = tg_team_create(&j->team, (int)c->threads, err);
    if (st == TG_OK) st = tg_cli_open_input(args, &j->in, err);
    if (st == TG_OK) st = c->jsonl ? tokenize_lines(j, err) : tokenize_all(j, err);
    return st == TG_OK ? tg_cli_bad_lines(j->bad, err) : st;
}

static void job_fini(job *j) {
    if (j->in && j->in != stdin) fclose(j->in);
    clear_lines(j);
    tg_team_destroy(&j->team);
    tg_tokenizer_destroy(&j->opened);
    tg_encodings_fini(&j->rows);
    tg_buf_fini(&j->out);
    tg_buf_fini(&j->bytes);
    tg_free(j->lines);
    tg_free(j->texts);
}

int tg_cmd_tokenize(int argc, char **argv) {
    choices c = {.threads = 1};
    tg_encode_options o = {0};
    job j = {0};
    const tg_flag flags[] = {
        {"tokenizer", TG_FLAG_STR, &c.tokenizer, "DIR",
         "A model folder, a model's name, a tokenizer.json or a SentencePiece .model."},
        {"jsonl", TG_FLAG_SWITCH, &c.jsonl, NULL,
         "A text a line in: a JSON string, {\"text\", \"pair\"} or [\"text\", \"pair\"]; ids, "
         "tokens and "
         "offsets (code points) out."},
        {"no-special", TG_FLAG_SWITCH, &c.no_special, NULL,
         "Do not add the tokens that the tokenizer puts around a text."},
        {"target", TG_FLAG_SWITCH, &c.target, NULL,
         "Marian: texts are in the language that is translated into."},
        {"pieces", TG_FLAG_SWITCH, &j.pieces, NULL, "Show tokens, one a line, instead of ids."},
        {"colors", TG_FLAG_SWITCH, &j.colors, NULL, "Show the text with its tokens in colours."},
        {"masks", TG_FLAG_SWITCH, &j.masks, NULL,
         "With --jsonl: also attention_mask, type_ids and special_tokens_mask."},
        {"max-length", TG_FLAG_INT, &o.max_length, "N",
         "Cut rows to N tokens, special ones counted."},
        {"truncate", TG_FLAG_STR, &c.truncate, "HOW",
         "Which of two texts is cut: longest_first, only_first or only_second."},
        {"truncation-side", TG_FLAG_STR, &c.truncation_side, "SIDE",
         "Cut on the left or the right."},
        {"stride", TG_FLAG_INT, &o.stride, "N", "Tokens that a cut-off part repeats."},
        {"overflow", TG_FLAG_SWITCH, &o.overflow, NULL, "Show what was cut off, too."},
        {"pad", TG_FLAG_STR, &c.pad, "HOW", "Pad rows to the longest one, or to a length."},
        {"pad-to", TG_FLAG_INT, &o.pad_length, "N", "The length; --max-length when not given."},
        {"pad-multiple", TG_FLAG_INT, &o.pad_multiple, "N", "Pad to a multiple of N."},
        {"padding-side", TG_FLAG_STR, &c.padding_side, "SIDE", "Pad on the left or the right."},
        {"threads", TG_FLAG_INT, &c.threads, "N", "With --jsonl: threads that encode."},
        {0}};
    const tg_args_spec spec = {
        "textgen tokenize",
        "--tokenizer DIR [--jsonl] [options] [FILE]",
        "Turns text into token ids.",
        flags,
        "  echo 'Hello world' | textgen tokenize --tokenizer models/gpt2\n"
        "  echo 'Hello world' | textgen tokenize --tokenizer models/gpt2 --colors\n"
        "  echo '[\"A question?\", \"An answer.\"]' | textgen tokenize --tokenizer models/bert "
        "--jsonl --masks\n"
        "  textgen tokenize --tokenizer models/t5 --jsonl --max-length 64 --pad length --masks "
        "texts.jsonl\n",
        0,
        1,
        true};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    tg_status st = args.help ? TG_OK : run(&j, &c, &o, &args, &err);
    job_fini(&j);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
