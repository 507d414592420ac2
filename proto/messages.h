/* The messages of textgen.proto as plain C. Codec (codec.h) is the only code that sees the
 * generated types.
 *
 * Ownership: a decoded message is one allocation with everything it points to; tg_msg_free releases
 * it. Messages to be encoded only borrow. Strings are NUL-terminated valid UTF-8 or "" (never NULL
 * after decoding); arrays are NULL when empty. */
#ifndef TG_PROTO_MESSAGES_H
#define TG_PROTO_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_PROTO_MAJOR = 1, TG_PROTO_MINOR = 0 };

/* Values equal the enums of textgen.proto (checked at compile time in codec.c). */
typedef enum tg_role { TG_ROLE_CLIENT = 1, TG_ROLE_WORKER, TG_ROLE_BROKER, TG_ROLE_REWARD } tg_role;
typedef enum tg_split { TG_SPLIT_TRAIN = 1, TG_SPLIT_VAL, TG_SPLIT_TEST } tg_split;
typedef enum tg_reward_status {
    TG_REWARD_OK = 1,
    TG_REWARD_PENDING,
    TG_REWARD_FAILED,
    TG_REWARD_TIMEOUT,
    TG_REWARD_INVALID
} tg_reward_status;
typedef enum tg_stop {
    TG_STOP_NONE = 0,
    TG_STOP_EOS,
    TG_STOP_LENGTH,
    TG_STOP_SEQUENCE,
    TG_STOP_ABORTED
} tg_stop;

#define TG_CODE_MAP(XX)                                                                            \
    XX(OK, 0)                                                                                      \
    XX(INVALID_ARGUMENT, 1)                                                                        \
    XX(UNSUPPORTED_VERSION, 2)                                                                     \
    XX(UNAUTHENTICATED, 3)                                                                         \
    XX(PERMISSION_DENIED, 4)                                                                       \
    XX(NOT_FOUND, 5)                                                                               \
    XX(FAILED_STATE, 6)                                                                            \
    XX(CONFLICT, 7)                                                                                \
    XX(STALE, 8)                                                                                   \
    XX(GAP, 9)                                                                                     \
    XX(FENCED, 10)                                                                                 \
    XX(OVERLOADED, 11)                                                                             \
    XX(DEADLINE_EXCEEDED, 12)                                                                      \
    XX(WORKER_LOST, 13)                                                                            \
    XX(EPISODE_ABORTED, 14)                                                                        \
    XX(REWARD_FAILED, 15)                                                                          \
    XX(REWARD_TIMEOUT, 16)                                                                         \
    XX(REWARD_INVALID, 17)                                                                         \
    XX(TOO_LARGE, 18)                                                                              \
    XX(DRAINING, 19)                                                                               \
    XX(CONFIG_MISMATCH, 20)                                                                        \
    XX(INTERNAL, 21)                                                                               \
    XX(PROTOCOL, 22)
typedef enum tg_code {
#define XX(name, value) TG_CODE_##name = value,
    TG_CODE_MAP(XX)
#undef XX
} tg_code;
const char *tg_code_name(tg_code code);

/* Message types in the frame header. */
#define TG_MSG_MAP(XX)                                                                             \
    XX(HELLO, 1)                                                                                   \
    XX(WELCOME, 2)                                                                                 \
    XX(OPEN_SLOTS, 3)                                                                              \
    XX(SLOTS_OPENED, 4)                                                                            \
    XX(CLOSE_SLOTS, 5)                                                                             \
    XX(RESET, 6)                                                                                   \
    XX(RESET_REPLY, 7)                                                                             \
    XX(STEP, 8)                                                                                    \
    XX(STEP_REPLY, 9)                                                                              \
    XX(SAMPLE_RANGE, 10)                                                                           \
    XX(SAMPLES, 11)                                                                                \
    XX(METRIC, 12)                                                                                 \
    XX(METRIC_REPLY, 13)                                                                           \
    XX(SCORE, 14)                                                                                  \
    XX(SCORE_REPLY, 15)                                                                            \
    XX(HEARTBEAT, 16)                                                                              \
    XX(ERROR, 17)                                                                                  \
    XX(BYE, 18)
typedef enum tg_msg_type {
#define XX(name, value) TG_MSG_##name = value,
    TG_MSG_MAP(XX)
#undef XX
} tg_msg_type;
const char *tg_msg_name(tg_msg_type type);

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
} tg_env_spec;

typedef struct tg_limits {
    uint32_t max_message, max_slots, max_batch, max_tokens;
} tg_limits;

typedef struct tg_hello {
    uint32_t proto_major, proto_minor, heartbeat_ms;
    tg_role role;
    const char *software;
    uint8_t peer_uuid[16];
    bool has_spec;
    tg_env_spec spec;
    const char **capabilities;
    size_t n_capabilities;
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
} tg_welcome;

typedef struct tg_slot_list { /* OPEN_SLOTS, SLOTS_OPENED, CLOSE_SLOTS */
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
