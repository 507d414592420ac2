/* attention_forward, _backward and _decode with a bias by distance, and to keys of another text. */
#include "tests/ops/ops.h"

#include <math.h>

enum { MAX_SEQS = 40 };

typedef struct shape {
    int H, G, D, causal, reach, n_seqs; /* reach < 0: no bias */
    int lengths[MAX_SEQS];
    int sources[MAX_SEQS]; /* 0: the text itself */
} shape;

static int total(const int *lengths, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += lengths[i];
    return sum;
}

static bool is_cross(const shape *s) {
    return s->n_seqs > 0 && s->sources[0] > 0;
}

/* Rows of keys: those of the sources lie apart, in reverse order. */
static int key_rows(const shape *s) {
    return is_cross(s) ? total(s->sources, s->n_seqs) + 3 * s->n_seqs
                       : total(s->lengths, s->n_seqs);
}

static tg_attn_dims dims_of(const ops_problem *p) {
    return (tg_attn_dims){.H = p->d[0],
                          .G = p->d[1],
                          .D = p->d[2],
                          .scale = (float)p->x[0],
                          .causal = p->d[3],
                          .reach = p->d[5],
                          .softcap = (float)p->x[1]};
}

/* Queries lie alone; keys and values side by side. */
static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    const float *kv = b[3];
    d.bias = b[5], d.k_begin = b[6], d.k_end = b[7];
    d.kv_stride = 2 * d.G * d.D;
    be->ops->attention_forward(be, b[0], b[1], b[2], kv, kv + d.G * d.D, d.H * d.D, b[4], p->d[4],
                               d);
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    float *dkv = b[1];
    const float *kv = b[7];
    int v = d.G * d.D;
    d.dbias = b[2], d.bias = b[9], d.k_begin = b[10], d.k_end = b[11];
    d.kv_stride = 2 * d.G * d.D;
    be->ops->attention_backward(be, b[0], dkv, dkv + v, b[3], b[4], b[5], b[6], kv, kv + v,
                                d.H * d.D, b[8], p->d[4], d);
}

static void begin(ops_problem *p, ops_ctx *c, const char *op, ops_run *run, const shape *s) {
    const bool capped = s->D % 3 == 0;
    ops_begin(p, c, op, run, "H=%d G=%d D=%d%s%s reach %d, %d seqs, %d rows, %d keys", s->H, s->G,
              s->D, s->causal ? " causal" : "", capped ? " capped" : "", s->reach, s->n_seqs,
              total(s->lengths, s->n_seqs), key_rows(s));
    const int d[] = {s->H, s->G, s->D, s->causal, s->n_seqs, s->reach};
    for (int i = 0; i < 6; i++) p->d[i] = d[i];
    p->x[0] = s->D <= 4 ? 1 : 1 / sqrt(s->D); /* T5 has no scale */
    p->x[1] = capped ? 1.5 : 0;
    for (int i = 0; i < s->n_seqs; i++)
        p->flops += 4.0 * s->lengths[i] * (is_cross(s) ? s->sources[i] : s->lengths[i]) * s->D *
                    s->H * (s->causal ? 0.5 : 1);
}

static size_t bias_floats(const shape *s) {
    return (size_t)(2 * s->reach + 1) * (size_t)s->H;
}

static void add_inputs(ops_problem *p, const shape *s) {
    ops_in(p, "q", (size_t)total(s->lengths, s->n_seqs) * (size_t)(s->H * s->D), 2);
    ops_in(p, "kv", (size_t)key_rows(s) * 2 * (size_t)(s->G * s->D), 2);
    ops_offsets(p, s->lengths, s->n_seqs);
    if (s->reach >= 0)
        ops_in(p, "bias", bias_floats(s), 2);
    else
        ops_null(p, "bias");
    if (!is_cross(s)) {
        ops_null(p, "k_begin");
        ops_null(p, "k_end");
        return;
    }
    int32_t *first = ops_ints(p, "k_begin", (size_t)s->n_seqs, 1);
    int32_t *end = ops_ints(p, "k_end", (size_t)s->n_seqs, 1);
    for (int i = s->n_seqs - 1, at = 0; i >= 0; i--) {
        first[i] = at + 1;
        end[i] = first[i] + s->sources[i];
        at = end[i] + 2;
    }
}

static void make_forward(ops_problem *p, ops_ctx *c, const shape *s) {
    size_t n = (size_t)total(s->lengths, s->n_seqs);
    begin(p, c, "attention_forward", run_forward, s);
    ops_out(p, "out", n * (size_t)(s->H * s->D), 2e-6);
    ops_out(p, "lse", n * (size_t)s->H, 2e-6);
    add_inputs(p, s);
}

static void make_backward(ops_problem *p, ops_ctx *c, const shape *s) {
    size_t n = (size_t)total(s->lengths, s->n_seqs), wide = n * (size_t)(s->H * s->D);
    begin(p, c, "attention_backward", run_backward, s);
    ops_out(p, "dq", wide, 1e-5);
    ops_out(p, "dkv", (size_t)key_rows(s) * 2 * (size_t)(s->G * s->D), 1e-5);
    if (s->reach >= 0)
        ops_out(p, "dbias", bias_floats(s), 4e-5); /* sums of many */
    else
        ops_null(p, "dbias");
    ops_in(p, "dout", wide, 1);
    ops_in(p, "out", wide, 1);
    ops_in(p, "lse", n * (size_t)s->H, 1);
    add_inputs(p, s);
    p->flops *= 2.5;
}

static void run_decode(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_attn_dims d = dims_of(p);
    d.bias = b[6];
    be->ops->attention_decode(be, b[0], b[1], d.H * d.D, b[2], b[3], p->d[6], b[4], b[5], p->d[4],
                              d);
}

static void make_decode(ops_problem *p, ops_ctx *c, int H, int G, int D, int B, int max_len,
                        int reach) {
    const shape s = {H, G, D, 0, reach, 0, {0}, {0}};
    begin(p, c, "attention_decode", run_decode, &s);
    p->d[4] = B, p->d[6] = max_len;
    size_t cache = (size_t)(B + 2) * (size_t)(max_len * G * D);
    ops_out(p, "out", (size_t)(B * H * D), 2e-6);
    ops_in(p, "q", (size_t)(B * H * D), 2);
    ops_in(p, "k_cache", cache, 2);
    ops_in(p, "v_cache", cache, 2);
    int32_t *slots = ops_ints(p, "slots", (size_t)B, B + 2);
    for (int i = 0; i < B; i++) slots[i] = (int32_t)((i * 7 + 1) % (B + 2));
    int32_t *lengths = ops_ints(p, "lengths", (size_t)B, max_len);
    for (int i = 0; i < B; i++) lengths[i] += 1;
    ops_in(p, "bias", bias_floats(&s), 2);
}

static void test(ops_ctx *c) {
    static const shape shapes[] = {
        {1, 1, 1, 1, 0, 1, {1}, {0}},
        {2, 2, 4, 1, 3, 2, {3, 5}, {0}},
        {2, 1, 16, 0, 128, 3, {1, 0, 33}, {0}},
        {3, 3, 20, 0, 9, 4, {2, 31, 32, 33}, {0}},
        {3, 3, 20, 1, 9, 4, {2, 31, 32, 33}, {0}},
        {1, 1, 16, 1, 40, 1, {600}, {0}},
        {2, 1, 64, 0, 128, 2, {300, 5}, {0}},
        {4, 2, 9, 0, 5, 2, {17, 70}, {0}},
        {1, 1, 4, 0, -1, 1, {1}, {1}},
        {2, 2, 4, 0, -1, 2, {3, 5}, {40, 1}},
        {3, 3, 20, 0, -1, 4, {2, 31, 32, 33}, {33, 1, 300, 32}},
        {4, 2, 9, 0, -1, 2, {17, 70}, {5, 260}},
        {2, 1, 64, 0, -1, 3, {1, 0, 33}, {64, 3, 65}},
        {2, 2, 128, 0, -1, 1, {45}, {30}},
    };
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (ops_wanted(c, "attention_forward")) {
            make_forward(&p, c, &shapes[i]);
            ops_compare(c, &p);
        }
        if (ops_wanted(c, "attention_backward")) {
            ops_problem f;
            make_forward(&f, c, &shapes[i]);
            make_backward(&p, c, &shapes[i]);
            ops_share(&f, &p);
            ops_end(&f);
            ops_compare(c, &p);
        }
    }
    static const int decode[][6] = {{1, 1, 1, 1, 1, 1},
                                    {2, 1, 16, 3, 9, 128},
                                    {4, 4, 32, 17, 50, 7},
                                    {3, 3, 21, 5, 300, 128},
                                    {12, 12, 64, 2, 600, 128}};
    for (size_t i = 0; i < sizeof decode / sizeof *decode && ops_wanted(c, "attention_decode");
         i++) {
        const int *d = decode[i];
        make_decode(&p, c, d[0], d[1], d[2], d[3], d[4], d[5]);
        ops_compare(c, &p);
    }
}

static void grad(ops_ctx *c) {
    static const shape shapes[] = {{2, 1, 4, 1, 2, 2, {3, 5}, {0}},
                                   {2, 2, 3, 0, 3, 2, {4, 7}, {0}},
                                   {1, 1, 4, 0, 50, 1, {34}, {0}},
                                   {2, 1, 4, 0, -1, 2, {3, 2}, {1, 6}},
                                   {3, 3, 3, 0, -1, 1, {2}, {35}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "attention_backward");
         i++) {
        ops_problem f, b;
        make_forward(&f, c, &shapes[i]);
        make_backward(&b, c, &shapes[i]);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = shapes[i].reach >= 0 ? 3 : 2,
                                     .n_outs = 1,
                                     .tol = 1e-3,
                                     .wrt = {{"q", "dq"}, {"kv", "dkv"}, {"bias", "dbias"}},
                                     .outs = {{"out", "dout"}}});
    }
}

static void perf(ops_ctx *c) {
    shape s[] = {{12, 12, 64, 0, 128, 1, {512}, {0}}, {12, 12, 64, 0, -1, 8, {0}, {0}}};
    for (int i = 0; i < 8; i++) s[1].lengths[i] = 64, s[1].sources[i] = 256;
    for (int i = 0; i < 2; i++)
        for (int backward = 0; backward < 2; backward++) {
            ops_problem p;
            if (backward)
                make_backward(&p, c, &s[i]);
            else
                make_forward(&p, c, &s[i]);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
}

const ops_suite ops_suite_relative = {"relative", test, grad, perf};
