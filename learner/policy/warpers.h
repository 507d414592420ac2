/* Warpers: they shape the distribution that is sampled from (temperature, top_k, top_p, min_p, typical_p, epsilon and eta cut-off), in the
 * order of transformers 5.22. */
#ifndef TG_POLICY_WARPERS_H
#define TG_POLICY_WARPERS_H

#include "learner/policy/gen_settings.h"

/* What may be drawn. A score of -inf is out. */
typedef struct tg_candidates {
    float *score;      /* (n) */
    const int32_t *id; /* (n), ascending; NULL: token i is candidate i */
    int n;
} tg_candidates;

/* Places to work in, for one thread. */
typedef struct tg_gen_space {
    float *row, *score, *e, *work; /* (V) */
    float *blocks;                 /* (tg_row_blocks(V)) */
    int32_t *id;                   /* (V) */
} tg_gen_space;

tg_status tg_gen_space_init(tg_gen_space *w, int V, tg_error *err) TG_MUST_CHECK;
void tg_gen_space_fini(tg_gen_space *w);

/* False: the distribution stays as it is. */
bool tg_warpers_any(const tg_gen_settings *s, int V);

/* scores (V) are not changed and may be w->row; out is in w->score and w->id. At least `keep` tokens stay (beams need
 * more than the end tokens). w->e and w->work are used. */
void tg_warp(const tg_gen_settings *s, const float *scores, int V, int keep, tg_gen_space *w,
             tg_candidates *out);

#endif
