/* Plays episodes over a worker pool and notes what happened. */
#ifndef TG_TEST_POOL_PLAY_H
#define TG_TEST_POOL_PLAY_H

#include "common/net/pool.h"
#include "tests/support/fake_worker.h"

#include <stdbool.h>
#include <stdint.h>

enum { TG_PLAY_EPISODES = 60, TG_PLAY_SEED = 11 };

/* What happened, by episode. */
typedef struct tg_transcript {
    uint64_t episode[TG_PLAY_EPISODES]; /* hash of prompt, rewards and end */
    int aborted, deadline, other;
    int finished;
} tg_transcript;

const char *tg_play_address(void); /* a new one; the next pool binds it */
const char *tg_play_at(void);      /* the last one */
/* At the last address; a failed check when it does not open. */
tg_pool *tg_play_open(int min_workers);
/* Plays all episodes over n slots; `meanwhile` is called after each event. */
void tg_play(tg_pool *pool, uint32_t n, tg_transcript *t, void (*meanwhile)(void *arg, int event),
             void *arg);
bool tg_play_same(const tg_transcript *a, const tg_transcript *b);
const tg_transcript *tg_play_reference(void); /* of the undisturbed run with one worker */
void tg_play_replace(tg_fake_worker **w);     /* another worker in the place of this one */

#endif
