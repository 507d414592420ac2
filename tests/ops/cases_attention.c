/* attention_forward, attention_backward, attention_decode. */
#include "tests/ops/ops.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

enum { MAX_SEQS = 40 };

typedef struct shape {
    int H, G, D, causal, n_seqs;
    int lengths[MAX_SEQS];
} shape;

/* What the scores are beside products. */
enum { PLAIN, CAPPED, SLOPES, BOTH, N_KINDS };
typedef struct variant {
    int kind, window, by_head; /* by_head: q, k and v of a head lie together (H = G) */
} variant;
static const variant plain = {0, 0, 0};

static bool by_head(const ops_problem *p) {
    return p->x[1] > 0;
}

/* Without q_step, kv_step and slopes, which differ between the layouts below. */
static tg_attn_dims dims_of(const ops_problem *p) {
    int kind = (int)p->x[0] % N_KINDS;
    return (tg_attn_dims){.H = p->d[0],
                          .G = p->d[1],
                          .D = p->d[2],
                          .scale = (float)(1 / sqrt(p->d[2])),
                          .causal = p->d[3],
                          .window = (int)p->x[0] / N_KINDS,
                          .softcap = kind & CAPPED ? 1.5f : 0,
                          .q_step = by_head(p) ? 3 * p->d[2] : 0,
                          .kv_step = by_head(p) ? 3 * p->d[2] : 0};
}

static int k_offset(const ops_problem *p) {
    return by_head(p) ? p->d[2] : p->d[0] * p->d[2];
}

static int v_offset(const ops_problem *p) {
    return by_head(p) ? 2 * p->d[2] : (p->d[0] + p->d[1]) * p->d[2];
}

static void set_variant(ops_problem *p, const variant *v, int H) {
    p->x[0] = v->window * N_KINDS + v->kind;
    p->x[1] = v->by_head;
    if (v->kind &
        SLOPES) { /* positive, as they are; scores then grow with the distance, and their rounding errors */
        float *slopes = ops_in(p, "slopes", (size_t)H, 0.1);
        for (int h = 0; h < H; h++) slopes[h] = fabsf(slopes[h]);
        for (int i = 0; i < p->n; i++) p->buf[i].tol *= 4;
    } else {
        ops_null(p, "slopes");
    }
    size_t at = strlen(p->label);
    snprintf(p->label + at, sizeof p->label - at, "%s%s%s window %d",
             v->kind & CAPPED ? " capped" : "", v->kind & SLOPES ? " slopes" : "",
             v->by_head ? " by head" : "", v->window);
}

/* q, k, v lie in one buffer of rows (H + 2G) D, as in a model. */
static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    const float *qkv = b[2];
    d.slopes = b[4];
    be->ops->attention_forward(be, b[0], b[1], qkv, qkv + k_offset(p), qkv + v_offset(p),
                               (d.H + 2 * d.G) * d.D, b[3], p->d[4], d);
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    float *dqkv = b[0];
    const float *qkv = b[4];
    int k = k_offset(p), v = v_offset(p), stride = (d.H + 2 * d.G) * d.D;
    d.slopes = b[6];
    be->ops->attention_backward(be, dqkv, dqkv + k, dqkv + v, b[1], b[2], b[3], qkv, qkv + k,
                                qkv + v, stride, b[5], p->d[4], d);
}

static int total(const shape *s) {
    int n = 0;
    for (int i = 0; i < s->n_seqs; i++) n += s->lengths[i];
    return n;
}

static void label(ops_problem *p, ops_ctx *c, const char *op, ops_run *run, const shape *s) {
    ops_begin(p, c, op, run, "H=%d G=%d D=%d%s, %d seqs, %d tokens", s->H, s->G, s->D,
              s->causal ? " causal" : "", s->n_seqs, total(s));
    int d[] = {s->H, s->G, s->D, s->causal, s->n_seqs};
    for (int i = 0; i < 5; i++) p->d[i] = d[i];
    for (int i = 0; i < s->n_seqs;
         i++) { /* two products forward, five backward; half of each when causal */
        double n = s->lengths[i];
        p->flops += 4.0 * n * n * s->D * s->H * (s->causal ? 0.5 : 1);
    }
}

static void make_forward(ops_problem *p, ops_ctx *c, const shape *s, const variant *v) {
    size_t n = (size_t)total(s);
    label(p, c, "attention_forward", run_forward, s);
    ops_out(p, "out", n * (size_t)(s->H * s->D), 2e-6);
    ops_out(p, "lse", n * (size_t)s->H, 2e-6);
    ops_in(p, "qkv", n * (size_t)((s->H + 2 * s->G) * s->D), 2);
    ops_offsets(p, s->lengths, s->n_seqs);
    set_variant(p, v, s->H);
}

static void make_backward(ops_problem *p, ops_ctx *c, const shape *s, const variant *v) {
    size_t n = (size_t)total(s), wide = n * (size_t)((s->H + 2 * s->G) * s->D);
    label(p, c, "attention_backward", run_backward, s);
    ops_out(p, "dqkv", wide, 1e-5);
    ops_in(p, "dout", n * (size_t)(s->H * s->D), 1);
    ops_in(p, "out", n * (size_t)(s->H * s->D), 1);
    ops_in(p, "lse", n * (size_t)s->H, 1);
    ops_in(p, "qkv", wide, 2);
    ops_offsets(p, s->lengths, s->n_seqs);
    set_variant(p, v, s->H);
    p->flops *= 2.5;
}

static void run_decode(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    int B = p->d[4], max_len = p->d[5], q_stride = p->d[6];
    d.slopes = b[6];
    d.half_cache = p->d[7];
    if (!d.half_cache) {
        be->ops->attention_decode(be, b[0], b[1], q_stride, b[2], b[3], max_len, b[4], b[5], B, d);
        return;
    }
    const int rows = (B + 2) * max_len, C = d.G * d.D;
    uint16_t *k = tg_backend_alloc(be, 2 * (size_t)rows * (size_t)C * sizeof *k, NULL);
    TG_ASSERT(k);
    uint16_t *v = k + (size_t)rows * (size_t)C;
    be->ops->put_rows(be, k, true, b[2], NULL, rows, C);
    be->ops->put_rows(be, v, true, b[3], NULL, rows, C);
    be->ops->attention_decode(be, b[0], b[1], q_stride, k, v, max_len, b[4], b[5], B, d);
    tg_backend_free(be, k);
}

static void make_decode(ops_problem *p, ops_ctx *c, int H, int G, int D, int B, int max_len,
                        bool half, const variant *v) {
    const int n_slots = B + 2, q_stride = (H + 2 * G) * D;
    ops_begin(p, c, "attention_decode", run_decode, "H=%d G=%d D=%d B=%d max_len=%d%s", H, G, D, B,
              max_len, half ? " bf16" : "");
    ops_out(p, "out", (size_t)(B * H * D), 2e-6);
    ops_in(p, "q", (size_t)(B * q_stride), 2);
    size_t cache = (size_t)n_slots * (size_t)(max_len * G * D);
    ops_in(p, "k_cache", cache, 2);
    ops_in(p, "v_cache", cache, 2);
    int32_t *slots = ops_ints(p, "slots", (size_t)B, n_slots);
    for (int i = 0; i < B; i++) slots[i] = (int32_t)((i * 7 + 1) % n_slots);
    int32_t *lengths = ops_ints(p, "lengths", (size_t)B, max_len);
    for (int i = 0; i < B; i++) lengths[i] += 1, p->bytes += 8.0 * lengths[i] * G * D;
    int d[] = {H, G, D, 0, B, max_len, q_stride, half};
    for (int i = 0; i < 8; i++) p->d[i] = d[i];
    p->flops = p->bytes / 2 * H / G;
    set_variant(p, v, H);
}

static const variant variants[] = {{PLAIN, 0, 0}, {CAPPED, 0, 0},  {SLOPES, 0, 0}, {BOTH, 40, 0},
                                   {PLAIN, 3, 0}, {PLAIN, 300, 0}, {PLAIN, 0, 1},  {SLOPES, 1, 1}};

static void test(ops_ctx *c) {
    static const shape shapes[] = {
        {1, 1, 1, 1, 1, {1}},
        {2, 2, 4, 1, 2, {3, 5}},
        {2, 1, 16, 1, 3, {1, 0, 33}},
        {4, 2, 8, 0, 2, {7, 40}},
        {3, 3, 20, 1, 4, {2, 31, 32, 33}},
        {4, 4, 32, 1, 3, {20, 64, 100}},
        {2, 2, 64, 1, 2, {130, 257}},
        {1, 1, 16, 1, 1, {600}},
        {2, 1, 64, 0, 2, {300, 5}},
        {6, 3, 5, 1, 2, {17, 70}},
        {2, 2, 128, 1, 1, {45}},
        {1, 1, 8, 1, 0, {0}},
    };
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            const variant *v = &variants[k];
            if (total(&shapes[i]) > 120 && k % 3)
                continue; /* ref takes long: few variants of the large ones */
            if ((v->window && !shapes[i].causal) || (v->by_head && shapes[i].H != shapes[i].G))
                continue;
            if (ops_wanted(c, "attention_forward")) {
                make_forward(&p, c, &shapes[i], v);
                ops_compare(c, &p);
            }
            if (ops_wanted(c, "attention_backward")) {
                ops_problem f;
                make_forward(&f, c, &shapes[i], v);
                make_backward(&p, c, &shapes[i], v);
                ops_share(&f, &p);
                ops_end(&f);
                ops_compare(c, &p);
            }
        }
    static const int decode[][5] = {{1, 1, 1, 1, 1},    {2, 1, 16, 3, 9},     {4, 4, 32, 17, 50},
                                    {3, 3, 20, 5, 300}, {12, 12, 64, 2, 600}, {2, 2, 7, 0, 4},
                                    {40, 2, 24, 2, 70}};
    for (size_t i = 0; i < sizeof decode / sizeof *decode && ops_wanted(c, "attention_decode");
         i++) {
        const int *d = decode[i];
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            if (variants[k].by_head && d[0] != d[1]) continue;
            for (int half = 0; half < 2; half++) {
                make_decode(&p, c, d[0], d[1], d[2], d[3], d[4], half, &variants[k]);
                ops_compare(c, &p);
            }
        }
    }
}

static void grad(ops_ctx *c) {
    static const shape shapes[] = {
        {2, 1, 4, 1, 2, {3, 5}}, {2, 2, 3, 0, 2, {4, 2}}, {1, 1, 4, 1, 1, {34}}};
    static const variant cases[] = {{PLAIN, 0, 0}, {BOTH, 0, 0}, {CAPPED, 3, 0}, {SLOPES, 2, 1}};
    for (size_t i = 0; i < 3 * 4 && ops_wanted(c, "attention_backward"); i++) {
        const shape *s = &shapes[i / 4];
        const variant *v = &cases[i % 4];
        if ((v->window && !s->causal) || (v->by_head && s->H != s->G)) continue;
        ops_problem f, b;
        make_forward(&f, c, s, v);
        make_backward(&b, c, s, v);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = 1,
                                     .n_outs = 1,
                                     .tol = 1e-3,
                                     .wrt = {{"qkv", "dqkv"}},
                                     .outs = {{"out", "dout"}}});
    }
}

static void perf(ops_ctx *c) {
    shape s[] = {{12, 12, 64, 1, 8, {0}}, {4, 4, 32, 1, 20, {0}}, {12, 12, 64, 1, 1, {1024}}};
    ops_problem p;
    for (int i = 0; i < 8; i++) s[0].lengths[i] = 112;
    for (int i = 0; i < 20; i++) s[1].lengths[i] = 30;
    for (int i = 0; i < 3; i++)
        for (int backward = 0; backward < 2; backward++) {
            if (backward)
                make_backward(&p, c, &s[i], &plain);
            else
                make_forward(&p, c, &s[i], &plain);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
    if (!ops_wanted(c, "attention_decode")) return;
    make_decode(&p, c, 12, 12, 64, 32, 112, false, &plain);
    ops_perf(c, &p);
    make_decode(&p, c, 4, 4, 32, 16, 40, false, &plain);
    ops_perf(c, &p);
}

const ops_suite ops_suite_attention = {"attention", test, grad, perf};
