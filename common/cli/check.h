/* Checking a whole config: the top level here, every section by the program that owns it. */
#ifndef TG_CLI_CHECK_H
#define TG_CLI_CHECK_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stddef.h>

typedef struct tg_checked {
    tg_buf
        resolved; /* the config with every default explicit, as JSON that loads to the same run */
    tg_buf notes; /* what the programs said on stderr: the memory plan, warnings */
} tg_checked;

/* What the config is for. */
typedef enum tg_check_for {
    TG_CHECK_TRAIN,
    TG_CHECK_EVALUATE, /* the memory plan is that of evaluations alone */
    TG_CHECK_SCHEMA    /* models and data need not exist */
} tg_check_for;

/* Starts `textgen-env check` and `textgen-learner check`. The error is the one line that the failing part gave. */
tg_status tg_check_config(tg_checked *out, const char *path, const char *const *overrides,
                          size_t n_overrides, tg_check_for what, tg_error *err) TG_MUST_CHECK;
void tg_checked_fini(tg_checked *c);

#endif
