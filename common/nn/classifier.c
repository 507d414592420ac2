/* Texts are run in passes of whole texts, as many as fit. */
#include "common/nn/classifier.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/family/config_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SEQS = 256, ROWS = 64 };

void tg_classifier_destroy(tg_classifier **classifier) {
    tg_classifier *c = *classifier;
    if (!c) return;
    for (int i = 0; c->labels && i < c->n_labels; i++) tg_free(c->labels[i]);
    tg_free(c->labels);
    tg_free(c->rows);
    tg_free(c->row_ids);
    tg_pass_destroy(&c->pass);
    tg_model_destroy(&c->model);
    tg_free(c);
    *classifier = NULL;
}

/* What id2label calls a label: numbers, as of stars or classes, too. */
static char *name_of(const json_t *named, int label) {
    char none[32];
    if (json_is_string(named)) return tg_strdup(json_string_value(named));
    snprintf(none, sizeof none, "LABEL_%d", label);
    if (!json_is_number(named) && !json_is_boolean(named)) return tg_strdup(none);
    char *text = json_dumps(named, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    char *name = text ? tg_strdup(text) : NULL;
    free(text);
    return name;
}

static tg_status read_names(tg_classifier *c, const tg_config_json *config, tg_error *err) {
    const json_t *names = json_object_get(config->root, "id2label");
    if (json_object_size(names) != (size_t)c->n_labels) names = NULL; /* of other labels */
    c->labels = tg_alloc_array((size_t)c->n_labels, sizeof *c->labels);
    if (!c->labels) return tg_fail_nomem(err, (size_t)c->n_labels * sizeof *c->labels);
    for (int i = 0; i < c->n_labels; i++) {
        char id[32];
        snprintf(id, sizeof id, "%d", i);
        if (!(c->labels[i] = name_of(json_object_get(names, id), i))) return tg_fail_nomem(err, 32);
    }
    return TG_OK;
}

/* problem_type, or as transformers guesses: one label is a regression. */
static tg_status read_problem(tg_classifier *c, const tg_config_json *config, tg_error *err) {
    static const char *const names[] = {"single_label_classification", "multi_label_classification",
                                        "regression"};
    const char *name;
    tg_status st = tg_config_json_str(config, "problem_type", NULL, &name, err);
    c->problem = c->n_labels == 1 ? TG_PROBLEM_REGRESSION : TG_PROBLEM_SINGLE_LABEL;
    if (st != TG_OK || !name) return st;
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (!strcmp(name, names[i])) {
            c->problem = (tg_problem)i;
            return TG_OK;
        }
    return tg_fail(err, TG_DATA, "%s: problem_type: expected %s, %s or %s, found \"%.60s\"",
                   config->path, names[0], names[1], names[2], name);
}

static tg_status read_labels(tg_classifier *c, const char *folder, tg_error *err) {
    tg_config_json config;
    tg_status st = tg_config_json_open(&config, folder, "config.json", err);
    if (st != TG_OK) return st;
    st = read_names(c, &config, err);
    if (st == TG_OK) st = read_problem(c, &config, err);
    tg_config_json_close(&config);
    return st;
}

static tg_status make_pass(tg_classifier *c, int max_tokens, tg_error *err) {
    int tokens = TG_MAX(max_tokens, c->max_length);
    c->caps = (tg_pass_caps){.tokens = tokens, .seqs = TG_MIN(tokens, MAX_SEQS)};
    c->rows = tg_alloc_array(ROWS * (size_t)c->width, sizeof *c->rows);
    c->row_ids = tg_alloc_array(ROWS, sizeof *c->row_ids);
    if (!c->rows || !c->row_ids) return tg_fail_nomem(err, ROWS * (size_t)c->width * sizeof(float));
    return tg_pass_create(&c->pass, c->model, c->caps, TG_PASS_SCORE, err);
}

/* n_layers 0: all. */
static tg_status open_model(tg_classifier **out, tg_backend *be, const char *folder, int n_layers,
                            int max_tokens, tg_error *err) {
    *out = NULL;
    tg_classifier *c = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    tg_status st = n_layers ? tg_model_open_first(&c->model, be, folder, n_layers, err)
                            : tg_model_open(&c->model, be, folder, 0, 0, err);
    if (st == TG_OK && c->model->arch.kind != TG_KIND_ENCODER && !c->model->arch.labels)
        st =
            tg_fail(err, TG_DATA,
                    "%s: a %s model is no encoder, and has no labels: architectures in config.json "
                    "names no …ForSequenceClassification",
                    folder, c->model->arch.family);
    if (st == TG_OK) {
        const tg_arch *a = &c->model->arch;
        c->n_labels = a->labels ? a->n_labels : 0;
        c->width = a->width;
        c->max_length = a->max_positions;
        if (c->n_labels) st = read_labels(c, folder, err);
    }
    if (st == TG_OK) st = make_pass(c, max_tokens, err);
    if (st != TG_OK) tg_classifier_destroy(&c);
    *out = c;
    return st;
}

tg_status tg_classifier_open(tg_classifier **out, tg_backend *be, const char *folder,
                             int max_tokens, tg_error *err) {
    return open_model(out, be, folder, 0, max_tokens, err);
}

tg_status tg_classifier_open_first(tg_classifier **out, tg_backend *be, const char *folder,
                                   int n_layers, int max_tokens, tg_error *err) {
    if (n_layers < 1)
        return tg_fail(err, TG_CONFIG, "%s: %d layers: expected at least 1", folder, n_layers);
    return open_model(out, be, folder, n_layers, max_tokens, err);
}

/* The texts from `first` on that fit one pass, as a batch of their own; offsets has room for MAX_SEQS + 1. */
static int next_batch(const tg_classifier *c, const tg_texts *t, int first, int32_t *offsets,
                      tg_batch *b) {
    int end = first + 1;
    while (end < t->n && end - first < c->caps.seqs &&
           t->offsets[end + 1] - t->offsets[first] <= c->caps.tokens)
        end++;
    int begin = t->offsets[first];
    for (int i = first; i <= end; i++) offsets[i - first] = t->offsets[i] - begin;
    *b = (tg_batch){.n_tokens = t->offsets[end] - begin,
                    .n_seqs = end - first,
                    .tokens = t->tokens + begin,
                    .offsets = offsets,
                    .types = t->types ? t->types + begin : NULL};
    return end;
}

/* Of all texts, before any is run, so that messages count texts from the first. */
static tg_status check_texts(const tg_classifier *c, const tg_texts *t, tg_error *err) {
    for (int i = 0; i < t->n; i++) {
        int n = t->offsets[i + 1] - t->offsets[i];
        if (n < 1 || n > c->max_length)
            return tg_fail(err, TG_DATA, "text %d has %d tokens, the model takes 1 to %d", i, n,
                           c->max_length);
    }
    return TG_OK;
}

tg_status tg_classifier_score(tg_classifier *c, const tg_texts *texts, float *logits,
                              tg_error *err) {
    if (!c->n_labels)
        return tg_fail(err, TG_DATA,
                       "%s: has no classification head: architectures in config.json does not name "
                       "one ending in ForSequenceClassification",
                       c->model->folder);
    tg_status st = check_texts(c, texts, err);
    int32_t offsets[MAX_SEQS + 1];
    for (int i = 0; i < texts->n && st == TG_OK;) {
        tg_batch b;
        int end = next_batch(c, texts, i, offsets, &b);
        st = tg_pass_labels(c->pass, &b, logits + (size_t)i * (size_t)c->n_labels, err);
        i = end;
    }
    return st;
}

static void softmax(float *x, int n) {
    double most = -(double)INFINITY, sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, (double)x[i]);
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - most);
    for (int i = 0; i < n; i++) x[i] = (float)(exp((double)x[i] - most) / sum);
}

void tg_classifier_normalize(const tg_classifier *c, float *logits, int n) {
    const size_t N = (size_t)n, L = (size_t)c->n_labels;
    if (c->problem == TG_PROBLEM_SINGLE_LABEL)
        for (size_t i = 0; i < N; i++) softmax(logits + i * L, c->n_labels);
    if (c->problem == TG_PROBLEM_MULTI_LABEL)
        for (size_t i = 0; i < N * L; i++) logits[i] = (float)(1 / (1 + exp(-(double)logits[i])));
}

tg_status tg_classifier_probabilities(tg_classifier *c, const tg_texts *texts, float *out,
                                      tg_error *err) {
    tg_status st = tg_classifier_score(c, texts, out, err);
    if (st == TG_OK) tg_classifier_normalize(c, out, texts->n);
    return st;
}

static void pool_rows(const tg_classifier *c, int n, tg_pooling pooling, bool is_first,
                      float *out) {
    const size_t C = (size_t)c->width;
    for (int r = 0; r < n; r++)
        for (size_t k = 0; k < C; k++) {
            float x = c->rows[(size_t)r * C + k];
            if (is_first && r == 0)
                out[k] = x;
            else if (pooling == TG_POOL_MEAN)
                out[k] += x;
            else if (pooling == TG_POOL_MAX)
                out[k] = x > out[k] ? x : out[k];
        }
}

/* Rows begin .. end - 1 of the last forward. */
static tg_status pool_text(tg_classifier *c, int begin, int end, tg_pooling pooling, float *out,
                           tg_error *err) {
    int rows = pooling == TG_POOL_FIRST ? 1 : end - begin;
    for (int at = 0; at < rows; at += ROWS) {
        int n = TG_MIN(rows - at, ROWS);
        for (int i = 0; i < n; i++) c->row_ids[i] = begin + at + i;
        tg_status st = tg_pass_states(c->pass, c->row_ids, n, c->rows, err);
        if (st != TG_OK) return st;
        pool_rows(c, n, pooling, at == 0, out);
    }
    for (int k = 0; pooling == TG_POOL_MEAN && k < c->width; k++) out[k] /= (float)rows;
    return TG_OK;
}

tg_status tg_classifier_embed(tg_classifier *c, const tg_texts *texts, tg_pooling pooling,
                              float *vectors, tg_error *err) {
    tg_status st = check_texts(c, texts, err);
    int32_t offsets[MAX_SEQS + 1];
    for (int i = 0; i < texts->n && st == TG_OK;) {
        tg_batch b;
        int end = next_batch(c, texts, i, offsets, &b);
        st = tg_pass_forward(c->pass, &b, (tg_pass_out){0}, err);
        for (int k = 0; k < b.n_seqs && st == TG_OK; k++)
            st = pool_text(c, offsets[k], offsets[k + 1], pooling,
                           vectors + (size_t)(i + k) * (size_t)c->width, err);
        i = end;
    }
    return st;
}

/* Rows of the last forward, all of them. */
static tg_status read_states(tg_classifier *c, int n, float *states, tg_error *err) {
    tg_status st = TG_OK;
    for (int at = 0; at < n && st == TG_OK; at += ROWS) {
        int k = TG_MIN(n - at, ROWS);
        for (int i = 0; i < k; i++) c->row_ids[i] = at + i;
        st = tg_pass_states(c->pass, c->row_ids, k, states + (size_t)at * (size_t)c->width, err);
    }
    return st;
}

tg_status tg_classifier_states(tg_classifier *c, const tg_texts *texts, float *states,
                               tg_error *err) {
    tg_status st = check_texts(c, texts, err);
    int32_t offsets[MAX_SEQS + 1];
    for (int i = 0; i < texts->n && st == TG_OK;) {
        tg_batch b;
        int end = next_batch(c, texts, i, offsets, &b);
        st = tg_pass_forward(c->pass, &b, (tg_pass_out){0}, err);
        if (st == TG_OK)
            st = read_states(c, b.n_tokens, states + (size_t)texts->offsets[i] * (size_t)c->width,
                             err);
        i = end;
    }
    return st;
}
