/* The messages of textgen.proto as plain C. Codec (codec.h) is the only code that sees the
 * generated types.
 *
 * Ownership: a decoded message is one allocation with everything it points to; tg_msg_free releases
 * it. Messages to be encoded only borrow. Strings are NUL-terminated valid UTF-8 or "" (never NULL
 * after decoding); arrays are NULL when empty. */
#ifndef TG_PROTO_MESSAGES_H
#define TG_PROTO_MESSAGES_H

#include "proto/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_env_spec {
    const char *env_id;
    uint64_t config_digest, tokenizer_digest;
    uint32_t vocab_size, eos_id, pad_id;
    bool has_eos;
    uint32_t max_prompt_length, max_episode_length;
    bool terminate_on_eos;
    uint64_t n_samples[4]; /* by tg_split; [0] unused */
    const char **reward_names, **metric_names;
    size_t n_rewards, n_metrics;
    bool deterministic;
    uint32_t capacity;
    const int32_t *context_start; /* what the context holds before the first action */
    size_t n_context_start;
    bool has_context_start; /* it is the configured token, not the encoding of the empty text */
    uint32_t n_tokens;      /* ids the tokenizer knows */
    bool compat, pad_right, has_reward;
    bool batched_reward; /* one that RL4LMs computes after the rollout */
} tg_env_spec;

typedef struct tg_limits {
    uint32_t max_message, max_slots, max_batch, max_tokens;
} tg_limits;

typedef struct tg_reward_fn {
    const char *name, *version;
    bool deterministic;
    uint32_t max_batch, concurrency; /* 0: not said */
} tg_reward_fn;

typedef struct tg_hello {
    uint32_t proto_major, proto_minor, heartbeat_ms;
    tg_role role;
    const char *software;
    uint8_t peer_uuid[16];
    bool has_spec;
    tg_env_spec spec;
    const char **capabilities;
    size_t n_capabilities;
    uint64_t resume_session; /* 0: a new session */
    bool has_resume_token;
    uint8_t resume_token[16];
    const tg_reward_fn *functions;
    size_t n_functions;
} tg_hello;

typedef struct tg_welcome {
    uint32_t proto_minor, heartbeat_ms, lease_ms;
    uint64_t session, epoch;
    tg_limits limits;
    const char *software;
    bool has_spec;
    tg_env_spec spec;
    const char **capabilities;
    size_t n_capabilities;
    bool has_resume_token, resumed;
    uint8_t resume_token[16];
    uint32_t credits;
    const tg_reward_fn *functions;
    size_t n_functions;
} tg_welcome;

typedef struct tg_slot_list { /* OPEN_SLOTS, SLOTS_OPENED, CLOSE_SLOTS, SNAPSHOT, CANCEL */
    const uint32_t *slots;
    size_t n;
} tg_slot_list;

typedef struct tg_reset_item {
    uint32_t slot;
    uint64_t episode, seed;
    tg_split split;
    bool has_sample;
    uint64_t sample;
} tg_reset_item;
typedef struct tg_reset_batch {
    const tg_reset_item *items;
    size_t n;
    bool want_text;
} tg_reset_batch;

typedef struct tg_reset_result {
    uint32_t slot;
    uint64_t episode, sample, state_digest;
    tg_code code;
    const char *message, *prompt_text, *sample_id;
    const int32_t *prompt; /* token ids, truncated, unpadded */
    size_t n_prompt;
} tg_reset_result;
typedef struct tg_reset_reply {
    const tg_reset_result *items;
    size_t n;
} tg_reset_reply;

typedef struct tg_step_item {
    uint32_t slot;
    uint64_t episode;
    uint32_t step; /* index of tokens[0] within the episode */
    const int32_t *tokens;
    size_t n_tokens;
} tg_step_item;
typedef struct tg_step_batch {
    const tg_step_item *items;
    size_t n;
    uint32_t deadline_ms;
    bool want_text;
} tg_step_batch;

typedef struct tg_component {
    const char *name;
    double value;
    tg_reward_status status;
} tg_component;

typedef struct tg_step_result {
    uint32_t slot;
    uint64_t episode;
    uint32_t step, expected_step, n_applied;
    tg_code code;
    const char *message, *text;
    const double *rewards; /* (n_applied) */
    tg_reward_status reward_status;
    bool terminated, truncated, replayed;
    tg_stop stop;
    uint64_t state_digest;
    const tg_component *components;
    size_t n_components;
} tg_step_result;
typedef struct tg_step_reply {
    const tg_step_result *items;
    size_t n;
} tg_step_reply;

typedef struct tg_restore_item {
    uint32_t slot;
    uint64_t episode, seed, sample;
    tg_split split;
    const int32_t *tokens;
    const double *rewards; /* (n_tokens) */
    size_t n_tokens;
    uint64_t reset_digest, state_digest;
} tg_restore_item;
typedef struct tg_restore_batch {
    const tg_restore_item *items;
    size_t n;
} tg_restore_batch;

typedef struct tg_restore_result {
    uint32_t slot;
    uint64_t episode, state_digest;
    tg_code code;
    const char *message;
    /* with OK: of a tg_snapshot what the log does not have */
    const char *sample_id;
    const int32_t *prompt;
    size_t n_prompt;
    tg_stop stop;
    tg_reward_status reward_status;
} tg_restore_result;
typedef struct tg_restore_reply {
    const tg_restore_result *items;
    size_t n;
} tg_restore_reply;

typedef struct tg_snapshot {
    uint32_t slot;
    bool live; /* an episode is there, under way or ended; else the rest is empty */
    uint64_t episode, seed, sample, state_digest;
    tg_split split;
    const char *sample_id;
    const int32_t *prompt, *tokens;
    const double *rewards; /* (n_tokens) */
    size_t n_prompt, n_tokens;
    bool terminated, truncated;
    tg_stop stop;
    tg_reward_status reward_status; /* of the last step */
} tg_snapshot;
typedef struct tg_snapshot_reply {
    const tg_snapshot *items;
    size_t n;
} tg_snapshot_reply;

typedef struct tg_sample_range {
    tg_split split;
    uint64_t first;
    uint32_t n;
} tg_sample_range;
typedef struct tg_sample {
    uint64_t index;
    const char *id, *prompt_text, *meta_json;
    const char **references;
    size_t n_references;
    const int32_t *prompt;
    size_t n_prompt;
} tg_sample;
typedef struct tg_samples {
    const tg_sample *items;
    size_t n;
} tg_samples;

typedef struct tg_generation {
    uint64_t sample;
    const int32_t *tokens;
    size_t n_tokens;
    const char *text; /* NULL: decode the tokens */
} tg_generation;
typedef struct tg_metric_request {
    tg_split split;
    const tg_generation *items;
    size_t n;
    uint32_t deadline_ms;
    bool want_text;
} tg_metric_request;
typedef struct tg_metric_value {
    const char *key, *error;
    bool has_corpus;
    double corpus;
    const double *samples;
    size_t n_samples;
} tg_metric_value;
typedef struct tg_metric_reply {
    const tg_metric_value *values;
    size_t n_values;
    const char **texts; /* when wanted, one per item */
    size_t n_texts;
} tg_metric_reply;

typedef struct tg_score_item {
    uint64_t id;
    const char *prompt, *completion, *meta_json;
    const char **references;
    size_t n_references;
} tg_score_item;
typedef struct tg_score_request {
    const char *fn;
    const tg_score_item *items;
    size_t n;
    uint32_t deadline_ms;
    bool ranked; /* samples of one prompt, seen together */
} tg_score_request;
typedef struct tg_score_result {
    uint64_t id;
    tg_reward_status status;
    double value;
    const char *message;
    const tg_component *components;
    size_t n_components;
} tg_score_result;
typedef struct tg_score_reply {
    const tg_score_result *items;
    size_t n;
} tg_score_reply;

typedef struct tg_heartbeat {
    uint64_t epoch, oldest_ms, completed, loop_lag_us;
    uint32_t in_flight;
    bool draining;
    uint32_t slots;
    uint64_t steps;
} tg_heartbeat;

typedef struct tg_wire_error {
    tg_code code;
    const char *message;
    bool retryable;
    uint32_t retry_after_ms;
} tg_wire_error;
typedef struct tg_bye {
    const char *reason;
} tg_bye;

#endif
