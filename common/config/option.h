/* Typed option tables: one row drives parsing, bounds, default, help, `textgen list` and the
 * resolved config.
 *
 *     struct rouge_opts { const char *rouge_type; bool use_single_ref; };
 *     static const tg_opt rouge_options[] = {
 *         TG_OPT_STR_ONE_OF(struct rouge_opts, rouge_type, "rouge1", "rouge1|rouge2", "Which ROUGE."),
 *         TG_OPT_BOOL(struct rouge_opts, use_single_ref, "true", "Only the first reference counts."),
 *         TG_OPT_END};
 *     st = tg_opts_read(rouge_options, &opts, node, "reward_fn.args", &arena, err);
 *
 * A key that is not in the table, a wrong type or a value out of range is TG_CONFIG with file,
 * line, key path, what was expected, and the nearest valid key. A row whose key the field lacks in
 * C terms (another name) uses the _KEY forms. */
#ifndef TG_CONFIG_OPTION_H
#define TG_CONFIG_OPTION_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/json.h"
#include "common/config/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_opt_type {
    TG_T_END,
    TG_T_BOOL,  /* bool */
    TG_T_INT,   /* int64_t */
    TG_T_FLOAT, /* double */
    TG_T_STR,   /* const char *, NULL when null */
    TG_T_NODE, /* const tg_node *: any value, kept as written (nested sections, lists, schedules) */
} tg_opt_type;

enum {
    TG_OPT_REQUIRED = 1,
    TG_OPT_NULLABLE = 2,    /* null is allowed: INT/FLOAT fields then hold INT64_MIN / NaN */
    TG_OPT_IGNORED = 4,     /* accepted for compatibility; help says why it has no effect */
    TG_OPT_NULL_ABSENT = 8, /* null is allowed, as if the key were not there: the default */
};

typedef struct tg_opt {
    const char *key;
    tg_opt_type type;
    unsigned flags;
    size_t offset;       /* of the field in the options struct */
    const char *def;     /* default as YAML text; NULL: null (or REQUIRED) */
    double min, max;     /* numbers: inclusive bounds; both 0: none */
    const char *choices; /* strings: "a|b|c", or NULL */
    const char *help;    /* one sentence */
} tg_opt;

#define TG_OPT_ROW_KEY(k, S, f, T, fl, d, lo, hi, ch, h)                                           \
    { k, T, fl, offsetof(S, f), d, lo, hi, ch, h }
#define TG_OPT_ROW(S, f, T, fl, d, lo, hi, ch, h) TG_OPT_ROW_KEY(#f, S, f, T, fl, d, lo, hi, ch, h)
#define TG_OPT_BOOL(S, f, d, h) TG_OPT_ROW(S, f, TG_T_BOOL, 0, d, 0, 0, NULL, h)
#define TG_OPT_INT(S, f, d, lo, hi, h) TG_OPT_ROW(S, f, TG_T_INT, 0, d, lo, hi, NULL, h)
#define TG_OPT_FLOAT(S, f, d, lo, hi, h) TG_OPT_ROW(S, f, TG_T_FLOAT, 0, d, lo, hi, NULL, h)
#define TG_OPT_STR(S, f, d, h) TG_OPT_ROW(S, f, TG_T_STR, TG_OPT_NULLABLE, d, 0, 0, NULL, h)
#define TG_OPT_STR_ONE_OF(S, f, d, ch, h) TG_OPT_ROW(S, f, TG_T_STR, 0, d, 0, 0, ch, h)
#define TG_OPT_NODE(S, f, h) TG_OPT_ROW(S, f, TG_T_NODE, TG_OPT_NULLABLE, NULL, 0, 0, NULL, h)
/* Without a default: the key must be there (_REQUIRED), or null stands for "not set" (_OR_NULL). */
#define TG_OPT_INT_REQUIRED(S, f, lo, hi, h)                                                       \
    TG_OPT_ROW(S, f, TG_T_INT, TG_OPT_REQUIRED, NULL, lo, hi, NULL, h)
#define TG_OPT_FLOAT_REQUIRED(S, f, lo, hi, h)                                                     \
    TG_OPT_ROW(S, f, TG_T_FLOAT, TG_OPT_REQUIRED, NULL, lo, hi, NULL, h)
#define TG_OPT_STR_REQUIRED(S, f, h)                                                               \
    TG_OPT_ROW(S, f, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0, NULL, h)
#define TG_OPT_INT_OR_NULL(S, f, lo, hi, h)                                                        \
    TG_OPT_ROW(S, f, TG_T_INT, TG_OPT_NULLABLE, NULL, lo, hi, NULL, h)
#define TG_OPT_FLOAT_OR_NULL(S, f, lo, hi, h)                                                      \
    TG_OPT_ROW(S, f, TG_T_FLOAT, TG_OPT_NULLABLE, NULL, lo, hi, NULL, h)
/* Known to RL4LMs, without effect here: any value is accepted and kept. */
#define TG_OPT_UNUSED(S, f, h)                                                                     \
    TG_OPT_ROW(S, f, TG_T_NODE, TG_OPT_NULLABLE | TG_OPT_IGNORED, NULL, 0, 0, NULL, h)
#define TG_OPT_END                                                                                 \
    { 0 }

/* Fills *out (the options struct) from a map node; node NULL or null: all defaults. Strings live in
 * the arena. */
tg_status tg_opts_read(const tg_opt *table, void *out, const tg_node *node, const char *path,
                       tg_arena *arena, tg_error *err) TG_MUST_CHECK;

/* Only checks a map node against the table. */
tg_status tg_opts_check(const tg_opt *table, const tg_node *node, const char *path,
                        tg_error *err) TG_MUST_CHECK;

/* Writes the struct as a JSON object, every key explicit, in table order. */
void tg_opts_json(const tg_opt *table, const void *opts, tg_buf *out);

/* "  key  type  default  help" lines, for --help and `textgen list`; as a JSON array with
 * tg_opts_describe_json. */
void tg_opts_describe(const tg_opt *table, tg_buf *out);
void tg_opts_describe_json(const tg_opt *table, tg_buf *out);

/* TG_CONFIG with "file:line: path: " before the message. */
tg_status tg_node_fail(const tg_node *n, const char *path, tg_error *err, const char *fmt, ...)
    TG_PRINTF(4, 5);
/* The same with "expected …, found " and what stands there. */
tg_status tg_node_wrong(const tg_node *n, const char *path, const char *expected, tg_error *err);
/* The same place before a message that is there already, whose status it keeps and returns; path NULL: the message begins
 * with the key. */
tg_status tg_node_blame(const tg_node *n, const char *path, tg_status status, tg_error *err);

#endif
