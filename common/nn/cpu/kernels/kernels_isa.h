/* Declarations of the kernels for the instruction set being compiled. Private to kernels/. */
#ifndef TG_NN_CPU_KERNELS_ISA_H
#define TG_NN_CPU_KERNELS_ISA_H

#include "common/nn/cpu/kernels/simd.h"

extern const int TG_KERNEL(gemm_rows), TG_KERNEL(gemm_cols);
void TG_KERNEL(pack_rows)(float *to, const float *a, size_t lda, bool ta, int rows, int K);
void TG_KERNEL(pack_cols)(float *to, const float *b, size_t ldb, bool tb, int cols, int K);
void TG_KERNEL(halve_cols)(uint16_t *to, const float *from, int K);
void TG_KERNEL(widen_cols)(float *to, const uint16_t *from, int K);
void TG_KERNEL(gemm_block)(const tg_gemm_block *g);
#if defined(TG_ISA_AVX512)
void TG_KERNEL(pack_pairs)(uint32_t *to, const float *a, size_t lda, bool ta, int rows, int K);
void TG_KERNEL(pair_cols)(uint32_t *to, const float *b, size_t ldb, bool tb, int cols, int K);
void TG_KERNEL(gemm_pairs)(const tg_gemm_block *g);
#endif
void TG_KERNEL(narrow)(uint16_t *to, const float *from, size_t n);
void TG_KERNEL(round_bf16)(float *x, size_t n);
void TG_KERNEL(act)(float *y, const float *x, size_t n, int kind);
void TG_KERNEL(act_grad)(float *dx, const float *dy, const float *x, size_t n, int kind);
void TG_KERNEL(gated)(float *y, const float *x, size_t rows, size_t F, int kind);
void TG_KERNEL(gated_grad)(float *dx, const float *dy, const float *x, size_t rows, size_t F,
                           int kind);
void TG_KERNEL(softcap)(float *y, float cap, size_t n);
void TG_KERNEL(rmsnorm)(float *y, float *rstd, const float *x, const float *gamma, size_t rows,
                        size_t ld, int C, float eps, float offset);
void TG_KERNEL(rmsnorm_grad)(float *dx, float *dgamma, const float *dy, const float *x,
                             const float *rstd, const float *gamma, size_t rows, size_t ld, int C,
                             float offset, bool accumulate);
void TG_KERNEL(rope_half)(float *x, const float *cos, const float *sin, int R, float sign);
void TG_KERNEL(rope_pairs)(float *x, const float *cos, const float *sin, int R, float sign);
void TG_KERNEL(add)(float *y, const float *x, size_t n);
void TG_KERNEL(scale)(float *y, float a, size_t n);
void TG_KERNEL(fill)(float *y, float a, size_t n);
double TG_KERNEL(sumsq)(const float *x, size_t n);
void TG_KERNEL(adamw)(float *param, float *grad, float *m, float *v, size_t n,
                      const tg_adamw_consts *c);
void TG_KERNEL(adam8)(float *param, float *grad, const tg_quant8_state *m, const tg_quant8_state *v,
                      size_t n, const tg_adamw_consts *c);
void TG_KERNEL(sgd)(float *param, float *grad, float *buf, size_t n, const tg_descent_consts *c);
void TG_KERNEL(rmsprop)(float *param, float *grad, float *square, float *mean, float *buf, size_t n,
                        const tg_descent_consts *c);
void TG_KERNEL(column_sums)(float *sum, const float *x, int rows, size_t ld, int cols);
void TG_KERNEL(layernorm)(float *y, float *mean, float *rstd, const float *x, const float *gamma,
                          const float *beta, int rows, int C, float eps);
void TG_KERNEL(layernorm_grad)(float *dx, float *dgamma, float *dbeta, const float *dy,
                               const float *x, const float *mean, const float *rstd,
                               const float *gamma, int rows, int C);
void TG_KERNEL(head_stats)(const tg_logit_tile *t, tg_softmax_part *part, size_t ld_part,
                           float *token);
void TG_KERNEL(head_grad)(const tg_logit_tile *t, const float *lse, const float *entropy,
                          const float *dlogp, const float *dentropy);
void TG_KERNEL(logit_shape)(const tg_logit_tile *t, const float *bias, float softcap);
void TG_KERNEL(head_grad_capped)(const tg_logit_tile *t, const float *lse, const float *entropy,
                                 const float *dlogp, const float *dentropy, float softcap);
void TG_KERNEL(softmax_tile)(const tg_score_tile *t, float *top, float *sum, float *fix);
void TG_KERNEL(softmax_grad_tile)(const tg_score_tile *t, float *dp, const float *lse,
                                  const float *delta);
void TG_KERNEL(score_shape)(const tg_score_tile *t, float softcap, float slope, float *factor);
void TG_KERNEL(score_factor)(const tg_score_tile *t, float *d, const float *factor);
void TG_KERNEL(score_bias)(const tg_score_tile *t, const float *line);
void TG_KERNEL(score_bias_grad)(const tg_score_tile *t, const float *d, float *line);
float TG_KERNEL(dot)(const float *a, const float *b, int n);
void TG_KERNEL(decode)(const tg_decode_task *t);
void TG_KERNEL(dots)(float *out, size_t ldm, size_t ldn, const float *a, size_t lda, const float *b,
                     size_t ldb, int M, int N, int K, bool accumulate);
void TG_KERNEL(wide_scores)(float *out, const float *at, const float *b, size_t ldb, int M, int N,
                            int K);
void TG_KERNEL(transpose16)(float *at, const float *a, size_t lda, int M, int K);
void TG_KERNEL(skinny)(float *out, size_t ldo, const float *a, size_t lda, bool ta, const float *b,
                       size_t ldb, int M, int N, int K, bool accumulate);

extern const tg_cpu_kernels TG_KERNEL(kernels);
#if defined(TG_ISA_AVX512)
extern const tg_cpu_kernels tg_avx512_bf16_kernels; /* the same, and products of bf16 */
#endif

#endif
