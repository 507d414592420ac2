/* What the files of the collector share. */
#ifndef TG_TRAIN_COLLECT_IMPL_H
#define TG_TRAIN_COLLECT_IMPL_H

#include "learner/train/collect.h"
#include "learner/train/ranking.h"

typedef enum tg_collect_state { FREE, RESETTING, READY, DECODING, SCORING } tg_collect_state;

typedef struct tg_collect_slot {
    tg_collect_state state;
    uint64_t episode;
    int32_t *prompt; /* (max_prompt) */
    int n_prompt;
    uint64_t sample;
} tg_collect_slot;

/* An episode of the rollout under way. */
typedef struct tg_record {
    int32_t *tokens; /* prompt, then actions */
    double *rewards; /* (n_actions) */
    float *logp;     /* (2, max_new): log-probs, then values; NULL: not known */
    uint32_t *masks; /* (n_actions, words), or NULL */
    int n_prompt, n_actions;
    bool ok, terminated, truncated;
    bool arrived; /* the environment has answered */
    char *text;   /* of one whose reward is pending; owned */
    uint64_t sample;
    const char **group_texts; /* of the first of a group that is being ranked; owned */
} tg_record;

struct tg_collector {
    tg_pool *pool;
    tg_model *policy;
    tg_collect_opts opts;
    tg_gen_settings gen;
    tg_generator *generator; /* only while collecting: its caches are large */
    tg_collect_slot *slots;
    int n_slots;
    uint64_t next_request, next_episode; /* to be reset; to be generated */
    int group;
    bool shared;         /* the samples of a prompt are one request of the generator */
    bool leader_known;   /* the first of the group that next_request belongs to has its prompt */
    uint64_t leader;     /* its sample */
    tg_ranking *ranking; /* NULL until a reward is pending */
    tg_step_item *steps; /* finished during one advance, sent together */
    int n_steps;
    /* the rollout under way */
    tg_record *records; /* episode first_episode + i */
    int n_records, cap_records;
    uint64_t first_episode;
    int generated, finished, failed, dropped_groups;
    int64_t finished_tokens;
    double wait_s;
    int32_t start_id;  /* of the generator */
    char failure[256]; /* of the last failed reward */
};

/* collect_answers.c: a slot's prompt, or its rewards, are here. TG_PROTOCOL: nobody asked. */
tg_status tg_collect_on_reset(tg_collector *c, const tg_reset_result *r,
                              tg_error *err) TG_MUST_CHECK;
tg_status tg_collect_on_step(tg_collector *c, const tg_step_result *r, tg_error *err) TG_MUST_CHECK;
/* The episode is left out: it counts nowhere. Fails when that ends the run. */
tg_status tg_collect_note_failure(tg_collector *c, uint64_t episode, tg_reward_status status,
                                  const char *message, tg_error *err) TG_MUST_CHECK;

/* collect_groups.c: this record has arrived; the last of its group sets the ranking off. */
tg_status tg_collect_check_group(tg_collector *c, int member, tg_error *err) TG_MUST_CHECK;
/* Takes the rankings that are there, waiting for the first; *any is set if there was one. */
tg_status tg_collect_take_rankings(tg_collector *c, int wait_ms, bool *any,
                                   tg_error *err) TG_MUST_CHECK;

/* collect_rollout.c: the records whose rewards are known; *out is owned, on failure too (it may be half-built). */
tg_status tg_collect_build(const tg_collector *c, int rows, tg_rollout **out,
                           tg_error *err) TG_MUST_CHECK;

#endif
