/* What a run will hold in memory, computed before anything is allocated. A run goes through phases that never overlap: generating,
 * scoring, updating, evaluating; each leaves what only it needs to the next (common/base/stock.h). The plan is the memory of the phase that
 * needs most.
 *
 *     tg_memory_plan p = {0};
 *     tg_memory_plan_make(&p, &settings, &arch, &(tg_memory_facts){.n_envs = 8, .max_prompt = 64, .max_new = 48}, err);
 *     tg_memory_plan_print(&p, &buf);
 *     tg_memory_plan_check(&p, limit, err);      // TG_CONFIG saying what to change when it cannot fit */
#ifndef TG_TRAIN_MEMORY_PLAN_H
#define TG_TRAIN_MEMORY_PLAN_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/nn/arch.h"
#include "common/nn/pass.h"
#include "learner/train/settings.h"

#include <stdint.h>

enum {
    TG_PHASE_GENERATE = 1,
    TG_PHASE_SCORE = 2,
    TG_PHASE_UPDATE = 4,
    TG_PHASE_EVALUATE = 8,
    TG_PHASE_ALWAYS = 15
};

typedef struct tg_memory_item {
    const char *what, *fix; /* what it is; what makes it smaller */
    uint64_t bytes;
    unsigned phases; /* in which it is there */
} tg_memory_item;

typedef struct tg_memory_plan {
    tg_memory_item items[24];
    int n;
    /* of the phase `peak`; available: of the machine or its container now */
    uint64_t total, available;
    unsigned peak;
    uint64_t n_params; /* of one model */
} tg_memory_plan;

/* What is known of a run's texts; 0 or NULL: not known, and the plan is for the most that can be. */
typedef struct tg_memory_facts {
    int n_envs, max_prompt, max_new;
    int positions;        /* tokens of the longest text; 0: the model's */
    int prompt;           /* tokens of a prompt, on average */
    bool uneven;          /* prompts are not all as long, or episodes may end before max_new */
    uint64_t n_evaluated; /* samples of the largest split that is evaluated */
    const tg_pass_caps *supervised; /* passes of its steps */
    bool evaluation;                /* nothing is trained */
} tg_memory_facts;

/* A whole config's plan: on-policy, supervised or of evaluations alone. arch: of the model that is trained. */
tg_status tg_memory_plan_make(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                              const tg_memory_facts *f, tg_error *err) TG_MUST_CHECK;
void tg_memory_plan_print(const tg_memory_plan *p, tg_buf *out);
/* limit 0: what is available. */
tg_status tg_memory_plan_check(const tg_memory_plan *p, uint64_t limit,
                               tg_error *err) TG_MUST_CHECK;

/* Places in the evaluation's generator: eval_batch_size, but no more than a cache of 512 MB (results do not depend on it). */
int tg_eval_slots(const tg_train_settings *s, const tg_arch *arch, int max_prompt, int max_new);
/* Most tokens of a supervised pass: batches are cut to this. 2048, or as many as 256 MB of activations hold; but a whole text, and 512. */
int tg_supervised_tokens(const tg_train_settings *s, const tg_arch *arch);
tg_pass_caps tg_supervised_caps(const tg_arch *arch, int tokens);
/* Longest text that such a pass takes; a seq2seq model's, whose positions may be without end, 1024. */
int tg_supervised_longest(const tg_arch *arch);
/* The most that this process has held so far. */
uint64_t tg_memory_peak(void);

#endif
