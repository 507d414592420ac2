/* model-eval FOLDER BATCH OUT [--backend NAME] [--threads N] [--save DIR] [--compute f32|bf16]
 *
 * What a model computes, for comparison with another implementation. BATCH is a safetensors file with tokens, offsets, act_row,
 * act_token (I64, see pass.h) and dlogp, dentropy, dvalue (F32). OUT becomes a safetensors file with
 *   logits (tokens, V)   decoded (tokens, V): the same by a decoder, token by token
 *   logp, entropy, value (actions)
 *   states (source tokens, C): the encoder's, of a seq2seq model, whose batch also has src_tokens and src_offsets
 *   grad.<name>          of the mean of -logp
 *   mixed.<name>         of sum(dlogp logp + dentropy entropy + dvalue value)
 * --save writes the model as a folder again; --compute bf16 rounds what the pass's products multiply. */
#include "common/base/str.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *folder, *batch, *out, *backend, *save;
    int threads;
    bool rounded;
};

struct result {
    tg_st_write list[8 + 2 * 4096];
    size_t n;
};

static int32_t *ints(const tg_safetensors *st, const char *name, int *n) {
    const tg_st_tensor *t = tg_safetensors_find(st, name);
    if (!t || t->dtype != TG_I64) {
        fprintf(stderr, "model-eval: batch: no I64 tensor %s\n", name);
        return NULL;
    }
    int32_t *out = malloc(t->count * sizeof *out + 1);
    for (size_t i = 0; i < t->count; i++) {
        int64_t v;
        memcpy(&v, t->data + 8 * i, sizeof v);
        out[i] = (int32_t)v;
    }
    *n = (int)t->count;
    return out;
}

static const float *weights(const tg_safetensors *st, const char *name, int n) {
    const tg_st_tensor *t = tg_safetensors_find(st, name);
    float *out = calloc((size_t)n + 1, sizeof *out);
    if (t && t->count == (size_t)n && tg_st_to_f32(t, out, NULL) == TG_OK) return out;
    fprintf(stderr, "model-eval: batch: no tensor %s of %d numbers\n", name, n);
    return NULL;
}

static float *add(struct result *r, const char *name, int rows, int columns) {
    float *x = calloc((size_t)rows * (size_t)columns + 1, sizeof *x);
    tg_st_write *t = &r->list[r->n++];
    *t = (tg_st_write){
        .name = strdup(name), .dtype = TG_F32, .ndim = columns > 1 ? 2 : 1, .data = x};
    t->shape[0] = rows;
    t->shape[1] = columns;
    return x;
}

static tg_status add_grads(struct result *r, tg_model *m, const char *prefix, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < m->params.n && st == TG_OK; i++) {
        const tg_param *p = &m->params.list[i];
        char name[160];
        if (p->fixed) continue;
        snprintf(name, sizeof name, "%s.%s", prefix, p->name);
        float *x = add(r, name, p->shape[0], (int)(p->count / (size_t)p->shape[0]));
        st = tg_model_get_grad(m, p->name, x, p->count, err);
    }
    m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
    return st;
}

static tg_status add_states(struct result *r, tg_pass *p, int n, int width, tg_error *err) {
    int32_t *rows = malloc((size_t)n * sizeof *rows);
    for (int i = 0; i < n; i++) rows[i] = i;
    tg_status st = tg_pass_source_states(p, rows, n, add(r, "states", n, width), err);
    free(rows);
    return st;
}

static tg_status run_pass(struct result *r, tg_model *m, const tg_batch *b, const float *const w[3],
                          tg_error *err) {
    int N = b->n_tokens, A = b->n_actions;
    float *logits = add(r, "logits", N, m->arch.vocab_size);
    tg_pass_out out = {add(r, "logp", A, 1), add(r, "entropy", A, 1), add(r, "value", A, 1)};
    float *mean = malloc((size_t)A * sizeof *mean + 1);
    int32_t *rows = malloc((size_t)N * sizeof *rows);
    for (int i = 0; i < A; i++) mean[i] = (float)(-1.0 / A);
    for (int i = 0; i < N; i++) rows[i] = i;
    tg_pass *p = NULL;
    tg_status st = tg_pass_create(
        &p, m, (tg_pass_caps){.tokens = N, .seqs = b->n_seqs, .actions = A, .src = b->n_src}, true,
        err);
    if (st == TG_OK) st = tg_pass_forward(p, b, out, err);
    if (st == TG_OK) st = tg_pass_logits(p, rows, N, logits, err);
    if (st == TG_OK && b->n_src) st = add_states(r, p, b->n_src, m->arch.width, err);
    if (st == TG_OK) st = tg_pass_backward(p, mean, NULL, NULL, err);
    if (st == TG_OK) st = add_grads(r, m, "grad", err);
    if (st == TG_OK) st = tg_pass_backward(p, w[0], w[1], w[2], err);
    if (st == TG_OK) st = add_grads(r, m, "mixed", err);
    tg_pass_destroy(&p);
    free(mean);
    free(rows);
    return st;
}

/* All sequences at once, from their first token on. */
static tg_status run_decoder(struct result *r, tg_model *m, const tg_batch *b, tg_error *err) {
    size_t V = (size_t)m->arch.vocab_size;
    float *decoded = add(r, "decoded", b->n_tokens, (int)V);
    int longest = 0, source = 0, S = b->n_seqs;
    int32_t *slots = malloc((size_t)S * sizeof *slots),
            *tokens = malloc((size_t)S * sizeof *tokens);
    int32_t *ones = malloc(((size_t)S + 1) * sizeof *ones);
    float *logits = malloc((size_t)S * V * sizeof *logits);
    for (int s = 0; s <= S; s++) ones[s] = s;
    for (int s = 0; s < S; s++)
        if (b->offsets[s + 1] - b->offsets[s] > longest)
            longest = b->offsets[s + 1] - b->offsets[s];
    for (int s = 0; s < S && b->n_src; s++)
        if (b->src_offsets[s + 1] - b->src_offsets[s] > source)
            source = b->src_offsets[s + 1] - b->src_offsets[s];
    for (int s = 0; s < S; s++) slots[s] = s;
    tg_decoder *d = NULL;
    tg_status st =
        tg_decoder_create(&d, m, (tg_decoder_caps){.slots = S, .len = longest, .src = source}, err);
    if (st == TG_OK && source)
        st = tg_decoder_encode(d, slots, b->src_tokens, b->src_offsets, S, err);
    for (int at = 0; at < longest && st == TG_OK; at++) {
        int n = 0;
        for (int s = 0; s < S; s++) {
            if (b->offsets[s] + at >= b->offsets[s + 1]) continue;
            slots[n] = s;
            tokens[n++] = b->tokens[b->offsets[s] + at];
        }
        st = at ? tg_decoder_step(d, slots, tokens, n, logits, err)
                : tg_decoder_prefill(d, slots, tokens, ones, n, logits, err);
        for (int i = 0; i < n; i++)
            memcpy(decoded + (size_t)(b->offsets[slots[i]] + at) * V, logits + (size_t)i * V,
                   V * sizeof *logits);
    }
    tg_decoder_destroy(&d);
    free(slots);
    free(tokens);
    free(ones);
    free(logits);
    return st;
}

static tg_status evaluate(const struct options *o, const tg_batch *b, const float *const w[3],
                          tg_error *err) {
    static struct result r;
    tg_backend *be = NULL;
    tg_model *m = NULL;
    tg_status st = tg_backend_open(&be, o->backend, o->threads, err);
    if (st == TG_OK)
        st = tg_model_open(&m, be, o->folder,
                           TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD |
                               (o->rounded ? TG_MODEL_ROUNDED : 0u),
                           1, err);
    if (st == TG_OK) st = run_pass(&r, m, b, w, err);
    if (st == TG_OK) st = run_decoder(&r, m, b, err);
    if (st == TG_OK) st = tg_safetensors_write(o->out, r.list, r.n, NULL, err);
    if (st == TG_OK && o->save) st = tg_model_save(m, o->save, err);
    tg_model_destroy(&m);
    tg_backend_close(&be);
    return st;
}

static bool parse(struct options *o, int argc, char **argv) {
    *o = (struct options){.backend = "cpu"};
    const char **places[] = {&o->folder, &o->batch, &o->out};
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        int64_t threads = 0;
        if (argv[i][0] != '-') {
            if (n == 3) return false;
            *places[n++] = argv[i];
        } else if (i + 1 == argc) {
            return false;
        } else if (!strcmp(argv[i], "--backend")) {
            o->backend = argv[++i];
        } else if (!strcmp(argv[i], "--save")) {
            o->save = argv[++i];
        } else if (!strcmp(argv[i], "--compute")) {
            o->rounded = !strcmp(argv[++i], "bf16");
        } else if (!strcmp(argv[i], "--threads") && tg_parse_i64(argv[i + 1], &threads)) {
            o->threads = (int)threads;
            i++;
        } else {
            return false;
        }
    }
    return n == 3;
}

int main(int argc, char **argv) {
    struct options o;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr,
                "usage: model-eval FOLDER BATCH OUT [--backend NAME] [--threads N] [--save DIR] "
                "[--compute f32|bf16]\n");
        return 64;
    }
    tg_safetensors in;
    tg_error err;
    tg_status st = tg_safetensors_open(&in, o.batch, &err);
    if (st == TG_OK) {
        int n[6] = {0};
        static const char *const names[] = {"tokens",    "offsets",    "act_row",
                                            "act_token", "src_tokens", "src_offsets"};
        int32_t *x[6] = {0};
        bool ok = true;
        int lists = tg_safetensors_find(&in, "src_tokens") ? 6 : 4;
        for (int k = 0; k < lists; k++) ok = (x[k] = ints(&in, names[k], &n[k])) && ok;
        if (!ok || n[1] < 2 || n[2] != n[3]) return 65;
        const float *w[] = {weights(&in, "dlogp", n[2]), weights(&in, "dentropy", n[2]),
                            weights(&in, "dvalue", n[2])};
        if (!w[0] || !w[1] || !w[2]) return 65;
        tg_batch b = {.n_tokens = n[0],
                      .n_seqs = n[1] - 1,
                      .n_actions = n[2],
                      .tokens = x[0],
                      .offsets = x[1],
                      .act_row = x[2],
                      .act_token = x[3],
                      .n_src = n[4],
                      .src_tokens = x[4],
                      .src_offsets = x[5]};
        st = evaluate(&o, &b, w, &err);
    }
    if (st != TG_OK) fprintf(stderr, "model-eval: %s\n", err.msg);
    return tg_status_exit_code(st);
}
