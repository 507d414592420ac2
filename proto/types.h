/* The enumerations of textgen.proto, the message types of the frame header and the version spoken. */
#ifndef TG_PROTO_TYPES_H
#define TG_PROTO_TYPES_H

enum { TG_PROTO_MAJOR = 1, TG_PROTO_MINOR = 1 };

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
enum { TG_CODE_COUNT = TG_CODE_PROTOCOL + 1 };
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
    XX(BYE, 18)                                                                                    \
    XX(RESTORE, 19)                                                                                \
    XX(RESTORE_REPLY, 20)                                                                          \
    XX(SNAPSHOT, 21)                                                                               \
    XX(SNAPSHOT_REPLY, 22)                                                                         \
    XX(CANCEL, 23)
typedef enum tg_msg_type {
#define XX(name, value) TG_MSG_##name = value,
    TG_MSG_MAP(XX)
#undef XX
} tg_msg_type;
const char *tg_msg_name(tg_msg_type type);

#endif
