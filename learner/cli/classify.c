/* Lines are gathered, judged in packed passes, and answered in their order, a bad line by an error in its place. */
#include "learner/cli/classify.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/jsonl.h"
#include "common/config/locate.h"
#include "common/nn/classifier.h"
#include "common/nn/tensor_set.h"
#include "common/text/encode.h"
#include "learner/cli/open_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 64 };

typedef struct entry {
    long number;
    bool good;
    char why[256];
} entry;

typedef struct job {
    tg_backend *be;
    tg_classifier *c;
    tg_tokenizer *tokenizer;
    tg_encodings row;
    bool embed, normalize;
    tg_pooling pooling;
    /* of the lines gathered */
    entry entries[CHUNK];
    int n_entries, chunk, n_texts;
    tg_ids tokens, types;
    int32_t offsets[CHUNK + 1];
    float *results, *logits; /* (CHUNK, width of a result) */
    tg_buf out;
    long n_lines, n_bad;
} job;

/* ---- lines ---- */

static tg_status push(job *j, int32_t token, int32_t type, tg_error *err) {
    return tg_ids_push(&j->tokens, token) && tg_ids_push(&j->types, type)
               ? TG_OK
               : tg_fail_nomem(err, j->tokens.n * sizeof(int32_t));
}

/* One or two texts (pair NULL), cut to what the model takes. */
static tg_status add_text(job *j, const char *text, size_t len, const char *pair, size_t pair_len,
                          tg_error *err) {
    if (!j->tokenizer)
        return tg_fail(err, TG_DATA,
                       "text needs a tokenizer, and the model folder has none; give "
                       "\"ids\" with --jsonl");
    tg_encode_options o = tg_encode_defaults(j->tokenizer);
    o.truncate = true;
    o.max_length = j->c->max_length;
    tg_text one = {text, len, pair, pair_len};
    tg_status st = tg_tokenizer_encode_batch(j->tokenizer, &one, 1, &o, NULL, &j->row, err);
    const tg_arch *a = &j->c->model->arch;
    for (size_t i = 0; st == TG_OK && i < j->row.start[1]; i++) {
        int32_t type = a->types && a->n_types > 1 ? j->row.types[i] : 0;
        st = push(j, j->row.ids[i], type, err);
    }
    return st;
}

/* An element of a list of numbers below a limit. */
static tg_status number_at(const json_t *list, const char *key, size_t i, int limit, int32_t *out,
                           tg_error *err) {
    const json_t *v = json_array_get(list, i);
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    if (n < 0 || n >= limit)
        return tg_fail(err, TG_DATA, "\"%s\"[%zu]: expected a number from 0 to %d", key, i,
                       limit - 1);
    *out = (int32_t)n;
    return TG_OK;
}

static tg_status add_ids(job *j, const json_t *ids, const json_t *types, tg_error *err) {
    const tg_arch *a = &j->c->model->arch;
    if (!json_is_array(ids) || (types && json_array_size(types) != json_array_size(ids)))
        return tg_fail(err, TG_DATA,
                       "\"ids\" must be a list of numbers, and \"types\" one of the same length");
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < json_array_size(ids); i++) {
        int32_t id = 0, type = 0;
        st = number_at(ids, "ids", i, a->vocab_size, &id, err);
        if (st == TG_OK && types)
            st = number_at(types, "types", i, TG_MAX(a->n_types, 1), &type, err);
        if (st == TG_OK) st = push(j, id, type, err);
    }
    return st;
}

static tg_status add_value(job *j, const json_t *v, tg_error *err) {
    const json_t *text = json_is_string(v) ? v : json_object_get(v, "text");
    const json_t *pair = json_object_get(v, "pair"), *ids = json_object_get(v, "ids");
    if (ids && !text) return add_ids(j, ids, json_object_get(v, "types"), err);
    if (!json_is_string(text) || ids || (pair && !json_is_string(pair)))
        return tg_fail(err, TG_DATA,
                       "expected a string, {\"text\": …, \"pair\": …} or {\"ids\": […]}");
    return add_text(j, json_string_value(text), json_string_length(text), json_string_value(pair),
                    json_string_length(pair), err);
}

/* After a line was added, or could not be. */
static tg_status end_line(job *j, long number, tg_status st, const tg_error *bad, tg_error *err) {
    const int first = j->offsets[j->n_texts], n = (int)j->tokens.n - first;
    tg_error why = *bad;
    if (st == TG_NOMEM) return tg_fail_nomem(err, j->tokens.n * sizeof(int32_t));
    if (st == TG_OK && (n < 1 || n > j->c->max_length))
        st = tg_fail(&why, TG_DATA, "%d tokens, the model takes 1 to %d", n, j->c->max_length);
    for (int i = first; st == TG_OK && i < first + n; i++)
        if (j->tokens.data[i] >= j->c->model->arch.vocab_size)
            st = tg_fail(&why, TG_DATA,
                         "token id %d of the text is outside the model's vocabulary of %d",
                         j->tokens.data[i], j->c->model->arch.vocab_size);
    entry *e = &j->entries[j->n_entries++];
    *e = (entry){.number = number, .good = st == TG_OK};
    if (e->good) {
        j->offsets[++j->n_texts] = (int32_t)j->tokens.n;
        return TG_OK;
    }
    j->tokens.n = j->types.n = (size_t)first;
    snprintf(e->why, sizeof e->why, "%.250s", why.msg);
    j->n_bad++;
    return TG_OK;
}

/* ---- answers ---- */

static void put_numbers(tg_buf *out, const float *x, int n) {
    tg_buf_putc(out, '[');
    for (int i = 0; i < n; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_json_number(out, (double)x[i]);
    }
    tg_buf_putc(out, ']');
}

static void put_labels(job *j, const float *p, const float *logits) {
    const tg_classifier *c = j->c;
    int best = 0;
    for (int i = 1; i < c->n_labels; i++)
        if (p[i] > p[best]) best = i;
    tg_buf_putc(&j->out, '{');
    if (c->problem != TG_PROBLEM_REGRESSION) {
        tg_buf_puts(&j->out, "\"label\": ");
        tg_json_string(&j->out, c->labels[best], strlen(c->labels[best]));
        tg_buf_puts(&j->out, ", ");
    }
    tg_buf_puts(&j->out, "\"scores\": {");
    for (int i = 0; i < c->n_labels; i++) {
        if (i) tg_buf_puts(&j->out, ", ");
        tg_json_string(&j->out, c->labels[i], strlen(c->labels[i]));
        tg_buf_puts(&j->out, ": ");
        tg_json_number(&j->out, (double)p[i]);
    }
    tg_buf_puts(&j->out, "}, \"logits\": ");
    put_numbers(&j->out, logits, c->n_labels);
    tg_buf_puts(&j->out, "}\n");
}

static void put_vector(job *j, float *x) {
    double sum = 0;
    for (int i = 0; i < j->c->width; i++) sum += (double)x[i] * (double)x[i];
    for (int i = 0; j->normalize && sum > 0 && i < j->c->width; i++)
        x[i] = (float)((double)x[i] / sqrt(sum));
    tg_buf_puts(&j->out, "{\"embedding\": ");
    put_numbers(&j->out, x, j->c->width);
    tg_buf_puts(&j->out, "}\n");
}

static tg_status flush(job *j, tg_error *err) {
    const tg_texts texts = {j->n_texts, j->tokens.data, j->offsets, j->types.data};
    const size_t L = (size_t)j->c->n_labels, C = (size_t)j->c->width;
    tg_status st = TG_OK;
    if (j->n_texts && j->embed) {
        st = tg_classifier_embed(j->c, &texts, j->pooling, j->results, err);
    } else if (j->n_texts) {
        st = tg_classifier_score(j->c, &texts, j->logits, err);
        memcpy(j->results, j->logits, (size_t)j->n_texts * L * sizeof(float));
        tg_classifier_normalize(j->c, j->results, j->n_texts);
    }
    for (int i = 0, at = 0; st == TG_OK && i < j->n_entries; i++) {
        const entry *e = &j->entries[i];
        if (!e->good)
            tg_jsonl_put_error(&j->out, e->number, e->why);
        else if (j->embed)
            put_vector(j, j->results + (size_t)at++ * C);
        else
            put_labels(j, j->results + (size_t)at * L, j->logits + (size_t)at * L), at++;
    }
    j->n_lines += j->n_entries;
    j->n_entries = j->n_texts = 0;
    j->tokens.n = j->types.n = 0;
    return st == TG_OK ? tg_stdout_write(&j->out, err) : st;
}

static tg_status run_jsonl(job *j, tg_error *err) {
    tg_jsonl in;
    tg_jsonl_open(&in, stdin);
    tg_status st = TG_OK;
    while (st == TG_OK && tg_jsonl_next(&in)) {
        tg_error why = {0};
        tg_status line =
            in.value ? add_value(j, in.value, &why) : tg_fail(&why, TG_DATA, "%s", in.why);
        st = end_line(j, in.number, line, &why, err);
        if (st == TG_OK && j->n_entries == j->chunk) st = flush(j, err);
    }
    if (st == TG_OK) st = tg_jsonl_check(&in, err);
    tg_jsonl_close(&in);
    return st == TG_OK ? flush(j, err) : st;
}

/* A tab parts two texts. */
static tg_status run_text(job *j, tg_error *err) {
    char *text = NULL;
    size_t cap = 0;
    ssize_t len;
    long number = 0;
    tg_status st = TG_OK;
    while (st == TG_OK && (len = getline(&text, &cap, stdin)) >= 0) {
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r')) len--;
        const char *tab = memchr(text, '\t', (size_t)len);
        size_t first = tab ? (size_t)(tab - text) : (size_t)len;
        tg_error why = {0};
        tg_status line =
            add_text(j, text, first, tab ? tab + 1 : NULL, tab ? (size_t)len - first - 1 : 0, &why);
        st = end_line(j, ++number, line, &why, err);
        if (st == TG_OK && j->n_entries == j->chunk) st = flush(j, err);
    }
    free(text); /* getline's memory */
    if (st == TG_OK) st = flush(j, err);
    return st == TG_OK ? tg_lines_check(stdin, number, err) : st;
}

/* ---- the command ---- */

static tg_status job_open(job *j, const char *name, const char *backend, int threads,
                          tg_error *err) {
    char *folder = NULL;
    tg_status st = tg_model_locate(name, &folder, err);
    if (st == TG_OK) st = tg_backend_open(&j->be, backend, threads, err);
    if (st == TG_OK) st = tg_classifier_open(&j->c, j->be, folder, 4096, err);
    if (st == TG_OK && tg_tokenizer_is_there(folder))
        st = tg_tokenizer_open(&j->tokenizer, folder, err);
    if (st == TG_OK && !j->embed && !j->c->n_labels)
        st = tg_fail(err, TG_DATA,
                     "%s: has no labels (architectures in config.json names no "
                     "…ForSequenceClassification); --embed mean gives vectors",
                     folder);
    tg_free(folder);
    if (st != TG_OK) return st;
    size_t n = CHUNK * (size_t)TG_MAX(j->c->width, j->c->n_labels);
    j->results = tg_alloc_array(n, sizeof(float));
    j->logits = tg_alloc_array(n, sizeof(float));
    j->chunk = isatty(STDIN_FILENO) ? 1 : CHUNK;
    return j->results && j->logits ? TG_OK : tg_fail_nomem(err, 2 * n * sizeof(float));
}

static void job_close(job *j) {
    tg_classifier_destroy(&j->c);
    tg_backend_close(&j->be);
    tg_tokenizer_destroy(&j->tokenizer);
    tg_encodings_fini(&j->row);
    tg_ids_fini(&j->tokens);
    tg_ids_fini(&j->types);
    tg_buf_fini(&j->out);
    tg_free(j->results);
    tg_free(j->logits);
}

static tg_status parse_pooling(job *j, const char *name, tg_error *err) {
    static const char *const names[] = {
        [TG_POOL_FIRST] = "first", [TG_POOL_MEAN] = "mean", [TG_POOL_MAX] = "max"};
    if (!name) return TG_OK;
    j->embed = true;
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (!strcmp(names[i], name)) {
            j->pooling = (tg_pooling)i;
            return TG_OK;
        }
    return tg_fail(err, TG_USAGE, "--embed: expected first, mean or max, found \"%s\"", name);
}

int tg_cmd_classify(int argc, char **argv) {
    const char *model = NULL, *backend = "cpu", *embed = NULL;
    int64_t threads = 0;
    bool jsonl = false, normalize = false;
    const tg_flag flags[] = {
        {"model", TG_FLAG_STR, &model, "NAME", "Model folder, or a name as in model_name."},
        {"jsonl", TG_FLAG_SWITCH, &jsonl, NULL,
         "JSON lines in: a string, {\"text\", \"pair\"} or {\"ids\", \"types\"}."},
        {"embed", TG_FLAG_STR, &embed, "POOLING",
         "One vector for a text in place of labels: mean, first or max of its states."},
        {"normalize", TG_FLAG_SWITCH, &normalize, NULL, "Vectors of length 1."},
        {"backend", TG_FLAG_STR, &backend, "NAME", "Which backend computes: cpu (default) or ref."},
        {"threads", TG_FLAG_INT, &threads, "N", "Threads; 0 (default): one per CPU."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen classify",
        .usage = "--model NAME [options] < LINES",
        .summary =
            "Labels of texts by an encoder (BERT, RoBERTa, DistilBERT, ALBERT …) or a causal model "
            "with "
            "labels, one text a line, two with a tab between them.\n"
            "Prints {\"label\", \"scores\", \"logits\"} for each: scores are probabilities, or for "
            "a regression the numbers themselves.",
        .flags = flags,
        .examples = "  echo 'I liked it.' | textgen classify --model models/sentiment\n"
                    "  textgen classify --model models/minilm --embed mean --normalize < lines\n",
        .no_overrides = true};
    tg_error err = {0};
    tg_args args;
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    bool help = args.help;
    tg_args_fini(&args);
    if (help) return 0;
    job *j = tg_alloc(sizeof *j);
    st = j ? parse_pooling(j, embed, &err) : tg_fail_nomem(&err, sizeof *j);
    if (st == TG_OK && !model)
        st = tg_fail(&err, TG_USAGE, "--model is missing: give a model folder or name");
    if (st == TG_OK && normalize && !embed)
        st = tg_fail(&err, TG_USAGE, "--normalize is for vectors: give --embed POOLING too");
    if (st == TG_OK) st = tg_cli_threads(threads, &err);
    if (st == TG_OK) {
        j->normalize = normalize;
        st = job_open(j, model, backend, (int)threads, &err);
    }
    if (st == TG_OK) st = jsonl ? run_jsonl(j, &err) : run_text(j, &err);
    const long n_bad = j ? j->n_bad : 0, n_lines = j ? j->n_lines : 0;
    if (j) job_close(j);
    tg_free(j);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    return tg_lines_report(spec.name, n_bad, n_lines);
}
