/* Arithmetic on one row of logits or log-probs: what sampling and beam search do V times for each token.
 * Everything is O(n), and the same bits on every machine. */
#ifndef TG_POLICY_ROW_MATH_H
#define TG_POLICY_ROW_MATH_H

#include <stdbool.h>
#include <stdint.h>

enum { TG_ROW_BLOCK = 64, TG_ROW_FEW = 256 };

/* Floats that tg_row_exp needs for the sums of blocks. */
static inline int tg_row_blocks(int n) {
    return (n + TG_ROW_BLOCK - 1) / TG_ROW_BLOCK;
}

float tg_row_max(const float *x, int n); /* -inf when n is 0; NaN if one is there */
/* e[i] = exp of the float x[i] - top, blocks[b] = the sum of 64 of them; returns the sum of all. e and x may be the same;
 * e and blocks may be NULL. Relative error below 3e-7; -inf gives 0. */
double tg_row_exp(const float *x, int n, float top, float *e, float *blocks);
/* The same by one of the loops that there are, for tests: 0 the best, tg_row_kinds() - 1 for any machine. */
int tg_row_kinds(void);
bool tg_row_can(int kind); /* whether this machine can run it */
float tg_row_max_by(int kind, const float *x, int n);
double tg_row_exp_by(int kind, const float *x, int n, float top, float *e, float *blocks);
/* The first index of that value, or the last index of all. */
int tg_row_first(const float *x, int n, float value);
/* The first index whose sum of e[0..i] exceeds target, or the last with e > 0. */
int tg_row_find(const float *e, const float *blocks, int n, double target);

int tg_row_count(const float *x, int n, float least); /* how many are at least that */
/* x[i] becomes -inf where by[i] is less than least; they may be the same. */
void tg_row_drop(float *x, const float *by, int n, float least);

/* The k-th largest, 1 <= k <= n; no NaN. work (n), or (k) if k is at most TG_ROW_FEW, is overwritten. */
float tg_row_kth_largest(const float *x, int n, int k, float *work);

/* Adds weights in ascending order of key (ties: of index) and finds the first element at which the sum reaches `target`
 * (inclusive) or passes it, or the last element: *at is its key, *skipped how many with the same key lie before it. Keys
 * are not negative, not -0 and not NaN; n > 0. */
void tg_row_mass(const float *key, const float *weight, int n, double target, bool inclusive,
                 float *at, int *skipped);

#endif
