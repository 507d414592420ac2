/* The inner loops of the cpu backend: one thread, one tile. The files in kernels/ are compiled once
 * for each instruction set; the table that suits the machine is chosen when the backend is opened.
 *
 * Rows are dense or `ld` floats apart. Summation orders are fixed, so that results depend on the
 * instruction set alone. */
#ifndef TG_NN_CPU_KERNELS_H
#define TG_NN_CPU_KERNELS_H

#include "common/nn/op/adam8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The constants of an Adam step, rounded to f32 as torch does; l2: weight decay that goes through the gradient. */
typedef struct tg_adamw_consts {
    float grad_scale, l2, decay, w1, beta2, w2, root2, eps, step_size;
} tg_adamw_consts;

/* Of gradient descent and RMSprop. lr is negative; w = 1 - alpha. */
typedef struct tg_descent_consts {
    float grad_scale, l2, lr, momentum;
    float fresh; /* sgd: 1 - dampening */
    bool nesterov, first;
    float alpha, w, eps; /* rmsprop */
} tg_descent_consts;

/* The columns [first, first + cols) of logits, for `rows` rows ld apart. */
typedef struct tg_logit_tile {
    float *logits;
    size_t ld;
    int rows, first, cols;
    const int32_t *tokens; /* (rows) */
} tg_logit_tile;

/* Partial softmax of one row: top = max l, sum = sum exp(l - top), weighted = sum exp(l - top) (l -
 * top). */
typedef struct tg_softmax_part {
    float top, sum, weighted;
} tg_softmax_part;

/* Attention scores of up to 32 queries, transposed: key j and query r at s[j * TG_SCORE_LD + r]. Queries are treated in groups of 16;
 * lanes without a query hold numbers of no meaning. When causal, query r sees the first limit + r keys. */
enum { TG_SCORE_LD = 32, TG_SCORE_GROUP = 16 };
typedef struct tg_score_tile {
    float *s;
    int rows, cols, limit; /* queries, keys */
    int window;            /* > 0: of the keys up to its own, a query sees the last `window` */
    bool causal;
    float scale;
} tg_score_tile;

/* Memory that is fetched in passing, two cache lines for each step of a loop: at `at` and `pair` bytes behind it; then `step` bytes
 * on, or, every turn + 1 steps (a power of two), `jump`. */
typedef struct tg_fetch {
    const char *at;
    size_t pair, step, jump;
    int turn;
} tg_fetch;

/* c (rows, cols) = (or +=) a b, then + bias (cols) if given; a and b packed, see kernels/gemm.c. With `pack` b is as it lies in memory,
 * gemm_cols columns of f32, rows ldb apart, and is packed to there in passing. */
typedef struct tg_gemm_block {
    float *c;
    size_t ldc;
    const void *a; /* f32, or for gemm_pairs pairs of bf16 */
    const void *b; /* f32, or with `half` pairs of bf16 */
    float *pack;
    size_t ldb;
    const float *bias;
    int rows, cols, depth;
    bool half, add;
    tg_fetch fetch;
} tg_gemm_block;

/* What a score is beside a product (op/attention.h). bias: of one head, bias[(i - j, clamped to reach) * bias_step]; NULL: none. */
typedef struct tg_score_shape {
    float scale, softcap, slope;
    const float *bias;
    size_t bias_step;
    int reach;
} tg_score_shape;

/* Query heads [first, first + heads) of one token against n rows of a cache, `ld` elements apart, f32 or with `half` bf16; `share` query
 * heads use one head of a row. out (heads, D); heads of q lie q_step apart; shape (heads). */
enum { TG_DECODE_HEADS = 16 }; /* at most */
typedef struct tg_decode_task {
    float *out;
    const float *q;
    size_t q_step;
    const void *k, *v;
    bool half;
    size_t ld;
    int n, D, first, heads, share;
    const tg_score_shape *shape;
} tg_decode_task;

typedef struct tg_cpu_kernels {
    const char *isa;

    /* gemm.c */
    const int *gemm_rows, *gemm_cols; /* of a whole block */
    /* Up to gemm_rows rows of a (rows, K), or of its transpose; up to gemm_cols columns of b (K, cols), or of its transpose. */
    void (*pack_rows)(float *to, const float *a, size_t lda, bool ta, int rows, int K);
    void (*pack_cols)(float *to, const float *b, size_t ldb, bool tb, int cols, int K);
    /* A packed panel of K steps as bf16: steps k and k + 1 of a column lie beside each other; K is rounded up to even. */
    void (*halve_cols)(uint16_t *to, const float *from, int K);
    void (*widen_cols)(float *to, const uint16_t *from, int K); /* and back */
    void (*gemm_block)(const tg_gemm_block *g);
    /* gemm_pairs.c, of machines that multiply bf16 (else NULL): as pack_rows and pack_cols, rounded; the product of such rows and a bf16
     * panel. */
    void (*pack_pairs)(uint32_t *to, const float *a, size_t lda, bool ta, int rows, int K);
    void (*pair_cols)(uint32_t *to, const float *b, size_t ldb, bool tb, int cols, int K);
    void (*gemm_pairs)(const tg_gemm_block *g);

    /* bf16.c */
    void (*narrow)(uint16_t *to, const float *from, size_t n); /* to nearest even */
    void (*round_bf16)(float *x, size_t n);                    /* the same, in place */

    /* activation.c; kind: tg_act */
    void (*act)(float *y, const float *x, size_t n, int kind);
    void (*act_grad)(float *dx, const float *dy, const float *x, size_t n, int kind);
    /* x (rows, 2F): act(left half) times right half; dx as x. */
    void (*gated)(float *y, const float *x, size_t rows, size_t F, int kind);
    void (*gated_grad)(float *dx, const float *dy, const float *x, size_t rows, size_t F, int kind);
    void (*softcap)(float *y, float cap, size_t n);

    /* norm_rope.c: `rows` rows of C floats, ld apart in x, y and dx, dense in rstd. */
    void (*rmsnorm)(float *y, float *rstd, const float *x, const float *gamma, size_t rows,
                    size_t ld, int C, float eps, float offset);
    /* dx = or += ; dgamma += over these rows, NULL when frozen. */
    void (*rmsnorm_grad)(float *dx, float *dgamma, const float *dy, const float *x,
                         const float *rstd, const float *gamma, size_t rows, size_t ld, int C,
                         float offset, bool accumulate);
    /* One head: pairs j of R / 2 turned by the angle whose cosine and sine are given. */
    void (*rope_half)(float *x, const float *cos, const float *sin, int R, float sign);
    void (*rope_pairs)(float *x, const float *cos, const float *sin, int R, float sign);

    /* elementwise.c */
    void (*add)(float *y, const float *x, size_t n);
    void (*scale)(float *y, float a, size_t n);
    void (*fill)(float *y, float a, size_t n);
    double (*sumsq)(const float *x, size_t n);
    void (*adamw)(float *param, float *grad, float *m, float *v, size_t n,
                  const tg_adamw_consts *c);
    /* Starts at a block. */
    void (*adam8)(float *param, float *grad, const tg_quant8_state *m, const tg_quant8_state *v,
                  size_t n, const tg_adamw_consts *c);
    void (*sgd)(float *param, float *grad, float *buf, size_t n, const tg_descent_consts *c);
    void (*rmsprop)(float *param, float *grad, float *square, float *mean, float *buf, size_t n,
                    const tg_descent_consts *c);

    /* Sums of `cols` columns of x (rows, ld) are added to sum. */
    void (*column_sums)(float *sum, const float *x, int rows, size_t ld, int cols);
    void (*layernorm)(float *y, float *mean, float *rstd, const float *x, const float *gamma,
                      const float *beta, int rows, int C, float eps);
    /* dgamma, dbeta: += over these rows; NULL when frozen. */
    void (*layernorm_grad)(float *dx, float *dgamma, float *dbeta, const float *dy, const float *x,
                           const float *mean, const float *rstd, const float *gamma, int rows,
                           int C);

    /* part[r * ld_part] of each row; token[r] is set where the row's token lies in the tile. */
    void (*head_stats)(const tg_logit_tile *t, tg_softmax_part *part, size_t ld_part, float *token);
    /* Logits become their gradients. lse, entropy, dlogp, dentropy: (rows). */
    void (*head_grad)(const tg_logit_tile *t, const float *lse, const float *entropy,
                      const float *dlogp, const float *dentropy);
    /* logits.c: bias (cols) or NULL is added, then softcap > 0 applied. */
    void (*logit_shape)(const tg_logit_tile *t, const float *bias, float softcap);
    /* As head_grad, of logits that were capped. */
    void (*head_grad_capped)(const tg_logit_tile *t, const float *lse, const float *entropy,
                             const float *dlogp, const float *dentropy, float softcap);

    /* s becomes exp(scale s - top), 0 where hidden. top and sum are the running maximum and sum of each query (rows rounded up to 16);
     * fix is what earlier results of the query must be multiplied by. */
    void (*softmax_tile)(const tg_score_tile *t, float *top, float *sum, float *fix);
    /* s becomes p = exp(scale s - lse), dp becomes scale p (dp - delta); 0 where hidden. */
    void (*softmax_grad_tile)(const tg_score_tile *t, float *dp, const float *lse,
                              const float *delta);
    /* scores.c: s becomes the score before softmax (op/attention.h), scale included; factor (as s, or NULL) its derivative. */
    void (*score_shape)(const tg_score_tile *t, float softcap, float slope, float *factor);
    /* d, as s, times factor. */
    void (*score_factor)(const tg_score_tile *t, float *d, const float *factor);
    /* s becomes scale s + line[cols - 1 - j + r]: by distance, `line` begins with the farthest key before the first query. */
    void (*score_bias)(const tg_score_tile *t, const float *line);
    /* line (as above) += the sums of d, as s, at each distance. */
    void (*score_bias_grad)(const tg_score_tile *t, const float *d, float *line);
    float (*dot)(const float *a, const float *b, int n);
    void (*decode)(const tg_decode_task *t);

    /* out[m * ldm + j * ldn] = (or +=) a[m] . b[j], rows of K floats; m < M, j < N. */
    void (*dots)(float *out, size_t ldm, size_t ldn, const float *a, size_t lda, const float *b,
                 size_t ldb, int M, int N, int K, bool accumulate);
    /* As dots, transposed: out[j * TG_SCORE_LD + m], for M <= 32. a is given as blocks of 16 rows, each transposed to (K, 16) and padded
     * with zeros; all lanes of a block are written. */
    void (*wide_scores)(float *out, const float *at, const float *b, size_t ldb, int M, int N,
                        int K);
    /* Rows of a into the blocks that wide_scores wants: at has M rounded up to 16, times K floats. */
    void (*transpose16)(float *at, const float *a, size_t lda, int M, int K);
    /* out (M,N) = (or +=) op(a) (M,K) b (K,N), M small: b is not packed. K > 0. */
    void (*skinny)(float *out, size_t ldo, const float *a, size_t lda, bool ta, const float *b,
                   size_t ldb, int M, int N, int K, bool accumulate);
} tg_cpu_kernels;

/* The best table for this machine, or the one named by $TEXTGEN_CPU_ISA (plain, avx2, avx512, avx512_bf16) if the machine has it. */
const tg_cpu_kernels *tg_cpu_kernels_choose(void);

#endif
