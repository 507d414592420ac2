/* encoder-eval FOLDER BATCH OUT [--backend NAME] [--save DIR]
 *
 * What an encoder computes, for comparison with another implementation. BATCH is a safetensors file with tokens, offsets, types (I64, see
 * pass.h) and, for a model with labels, dlabels (texts, labels), else dvalue (tokens). OUT becomes a safetensors file with
 *   states (tokens, C)      first, mean (texts, C): pooled by classifier.h
 *   labels (texts, labels)  logits; scored: the same by classifier.h in small passes; or value (tokens) by a value head
 *   mixed.<name>            gradient of sum(dlabels labels), or of sum(dvalue value)
 * --save writes the model as a folder again. */
#include "common/nn/classifier.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result {
    tg_st_write list[4096];
    size_t n;
};

static float *add(struct result *r, const char *name, int rows, int columns) {
    float *x = calloc((size_t)rows * (size_t)columns + 1, sizeof *x);
    r->list[r->n++] = (tg_st_write){
        .name = strdup(name), .dtype = TG_F32, .ndim = 2, .shape = {rows, columns}, .data = x};
    return x;
}

static int32_t *ints(const tg_safetensors *st, const char *name, int *n) {
    const tg_st_tensor *t = tg_safetensors_find(st, name);
    if (!t || t->dtype != TG_I64) return NULL;
    int32_t *out = malloc(t->count * sizeof *out + 1);
    for (size_t i = 0; i < t->count; i++) {
        int64_t v;
        memcpy(&v, t->data + 8 * i, sizeof v);
        out[i] = (int32_t)v;
    }
    *n = (int)t->count;
    return out;
}

static tg_status run_train(struct result *r, tg_model *m, const tg_batch *b,
                           const tg_safetensors *in, tg_error *err) {
    const int N = b->n_tokens, S = b->n_seqs, L = m->arch.n_labels;
    const tg_st_tensor *d = tg_safetensors_find(in, m->arch.labels ? "dlabels" : "dvalue");
    if (!d) return tg_fail(err, TG_DATA, "batch: no dlabels or dvalue");
    float *weights = malloc(d->bytes + 4);
    tg_status st = tg_st_to_f32(d, weights, err);
    tg_pass *p = NULL;
    if (st == TG_OK)
        st = tg_pass_create(&p, m, (tg_pass_caps){.tokens = N, .seqs = S, .actions = N}, true, err);
    if (st == TG_OK && m->arch.labels) {
        st = tg_pass_labels(p, b, add(r, "labels", S, L), err);
        if (st == TG_OK) st = tg_pass_labels_backward(p, weights, err);
    } else if (st == TG_OK) {
        st = tg_pass_forward(p, b, (tg_pass_out){.value = add(r, "value", N, 1)}, err);
        if (st == TG_OK) st = tg_pass_backward(p, NULL, NULL, weights, err);
    }
    if (st == TG_OK) st = tg_pass_states(p, b->act_row, N, add(r, "states", N, m->arch.width), err);
    for (size_t i = 0; i < m->params.n && st == TG_OK; i++) {
        const tg_param *q = &m->params.list[i];
        char name[160];
        snprintf(name, sizeof name, "mixed.%s", q->name);
        st = tg_model_get_grad(m, q->name, add(r, name, 1, (int)q->count), q->count, err);
    }
    tg_pass_destroy(&p);
    free(weights);
    return st;
}

static tg_status run_classifier(struct result *r, tg_backend *be, const char *folder,
                                const tg_texts *texts, tg_error *err) {
    tg_classifier *c = NULL;
    tg_status st = tg_classifier_open(&c, be, folder, 0, err);
    if (st == TG_OK)
        st = tg_classifier_embed(c, texts, TG_POOL_MEAN, add(r, "mean", texts->n, c->width), err);
    if (st == TG_OK)
        st = tg_classifier_embed(c, texts, TG_POOL_FIRST, add(r, "first", texts->n, c->width), err);
    if (st == TG_OK && c->n_labels)
        st = tg_classifier_score(c, texts, add(r, "scored", texts->n, c->n_labels), err);
    tg_classifier_destroy(&c);
    return st;
}

static tg_status evaluate(char **argv, const char *backend, const char *save, tg_error *err) {
    static struct result r;
    tg_safetensors in;
    tg_status st = tg_safetensors_open(&in, argv[2], err);
    if (st != TG_OK) return st;
    int N, S, T;
    int32_t *tokens = ints(&in, "tokens", &N), *offsets = ints(&in, "offsets", &S),
            *types = ints(&in, "types", &T);
    if (!tokens || !offsets) return tg_fail(err, TG_DATA, "batch: no tokens or offsets");
    int32_t *rows = malloc((size_t)N * sizeof *rows);
    for (int i = 0; i < N; i++) rows[i] = i;
    tg_batch b = {.n_tokens = N,
                  .n_seqs = S - 1,
                  .n_actions = N,
                  .tokens = tokens,
                  .offsets = offsets,
                  .act_row = rows,
                  .act_token = tokens,
                  .types = types};
    tg_texts texts = {S - 1, tokens, offsets, types};
    tg_backend *be = NULL;
    tg_model *m = NULL;
    st = tg_backend_open(&be, backend, 0, err);
    if (st == TG_OK)
        st = tg_model_open(&m, be, argv[1], TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, err);
    if (st == TG_OK) st = run_train(&r, m, &b, &in, err);
    if (st == TG_OK) st = run_classifier(&r, be, argv[1], &texts, err);
    if (st == TG_OK) st = tg_safetensors_write(argv[3], r.list, r.n, NULL, err);
    if (st == TG_OK && save) st = tg_model_save(m, save, err);
    tg_model_destroy(&m);
    tg_backend_close(&be);
    return st;
}

int main(int argc, char **argv) {
    const char *backend = "cpu", *save = NULL;
    for (int i = 4; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--backend")) backend = argv[i + 1];
        if (!strcmp(argv[i], "--save")) save = argv[i + 1];
    }
    if (argc < 4 || argc % 2) {
        fprintf(stderr, "usage: encoder-eval FOLDER BATCH OUT [--backend NAME] [--save DIR]\n");
        return 64;
    }
    tg_error err = {0};
    tg_status st = evaluate(argv, backend, save, &err);
    if (st != TG_OK) fprintf(stderr, "encoder-eval: %s\n", err.msg);
    return tg_status_exit_code(st);
}
