/* What plain and group beam search share. Private to beam*.c. */
#ifndef TG_POLICY_BEAM_IMPL_H
#define TG_POLICY_BEAM_IMPL_H

#include "learner/policy/beam.h"

#define TG_BEAM_NONE (-1.0e9f) /* the score of a beam that is not there yet */

/* One way to go on. */
typedef struct tg_candidate {
    double key; /* they are ranked by: the sum, or what sampling makes of it */
    float sum;  /* of the beam's and the token's scores */
    float step; /* the token's */
    float logp;
    int beam;
    int32_t token;
} tg_candidate;

/* A group of beams: plain search has one. */
typedef struct tg_beam_group {
    int first, n; /* its beams, and its places in `finished` */
    int n_finished;
    double worst; /* group search: score of the worst finished one */
    bool done;
} tg_beam_group;

struct tg_beams {
    const tg_gen_settings *s;
    tg_beam_prompt p;
    int V, max_len, n_beams, n_groups;
    int step; /* new tokens so far */
    bool done, improvable;
    tg_hypothesis *pool; /* (3 n_beams + 1) */
    void *storage;
    tg_hypothesis **beam, **next, **finished; /* (n_beams) in the pool */
    tg_hypothesis *spare;
    bool *live;
    int *parent;
    float *sum; /* (n_beams) of the running ones */
    tg_beam_group *groups;
    tg_candidate *candidates; /* (keep) best first */
    bool *ended;              /* (keep) */
    int32_t *chosen;          /* (n_beams) group search: each beam's token of this step */
    int n_candidates, keep;
    int dead; /* tokens of the first beams that nothing may continue; 0: there were none */
    const uint32_t *const *allowed; /* NULL: all tokens */
    tg_hypothesis **ranked;         /* (n_beams) results, best first */
    int n_ranked;
};

/* The best continuations of the group's live beams, into b->candidates; none where every token is forbidden. penalised (n): tokens that
 * cost diversity_penalty each time they occur. */
tg_status tg_beams_gather(tg_beams *b, const tg_beam_group *g, const float *const *rows,
                          const int32_t *penalised, int n, tg_gen_space *w,
                          tg_error *err) TG_MUST_CHECK;
/* At the end, with the results ranked: TG_DATA where beams died of forbidden tokens and too few had finished before. */
tg_status tg_beams_enough(const tg_beams *b, tg_error *err) TG_MUST_CHECK;
/* h becomes the candidate's beam with its token. */
void tg_beams_extend(const tg_beams *b, tg_hypothesis *h, const tg_candidate *c);
/* How the candidate's sequence would end. */
tg_gen_end tg_beams_ends(const tg_beams *b, const tg_candidate *c);

tg_status tg_group_beams_step(tg_beams *b, const float *const *rows, tg_gen_space *w,
                              tg_error *err) TG_MUST_CHECK;

#endif
