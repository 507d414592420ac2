/* Recordings of RL4LMs's own data pools against ours under `compat: rl4lms`.
 *
 * The recorded rows are written in the layout a user would have (JSON lines as `datasets` exports
 * them, UnifiedQA's .tsv, CRD3's folders), opened through the registry with the recorded arguments,
 * and every sample is compared: id and its type, prompt, references, meta data. Where RL4LMs raised,
 * we must refuse. */
#ifndef TG_TEST_POOL_REPLAY_H
#define TG_TEST_POOL_REPLAY_H

#include <stddef.h>

/* dir holds pools.json; files are written below scratch. Prints a line for each pool and each
 * difference. 0: all agree; 66: no recordings there. */
int pool_replay(const char *dir, const char *scratch, size_t *passed, size_t *failed);

#endif
