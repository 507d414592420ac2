/* Rewards of groups: samples of one prompt that the environment's reward function must see together. Each group is asked
 * for as soon as its last sample has ended, on threads of its own, so that generation goes on meanwhile.
 *
 *     tg_ranking_create(&r, pool, err);
 *     tg_ranking_ask(r, &group, err);                  // texts are borrowed until the answer is taken
 *     while (tg_ranking_take(r, &answer, wait_ms)) ... // in any order
 *     tg_ranking_destroy(&r);
 *
 * ask, take and pending belong to one thread. */
#ifndef TG_TRAIN_RANKING_H
#define TG_TRAIN_RANKING_H

#include "common/net/pool.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_ranking tg_ranking;

typedef struct tg_ranking_group {
    uint64_t tag;       /* the caller's, returned with the answer */
    uint64_t sample;    /* of the training split: prompt, references, meta */
    const char **texts; /* (n) completions, with ids 0 .. n - 1 */
    size_t n;
} tg_ranking_group;

typedef struct tg_ranking_answer {
    uint64_t tag;
    tg_status status; /* TG_OK: each text has a result of its own; else none has */
    tg_error error;
    tg_score_reply *reply; /* owned: tg_msg_free; NULL unless TG_OK */
} tg_ranking_answer;

/* pool is borrowed; its questions are asked from several threads. */
tg_status tg_ranking_create(tg_ranking **out, tg_pool *pool, tg_error *err) TG_MUST_CHECK;
void tg_ranking_destroy(tg_ranking **r); /* waits for the questions under way */

tg_status tg_ranking_ask(tg_ranking *r, const tg_ranking_group *group, tg_error *err) TG_MUST_CHECK;
int tg_ranking_pending(const tg_ranking *r); /* asked, answers not taken */
/* False: none is there within wait_ms (0: only look). */
bool tg_ranking_take(tg_ranking *r, tg_ranking_answer *out, int wait_ms);

#endif
