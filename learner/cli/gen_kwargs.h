/* The settings of generation on a command line: --num-beams 5, num_beams=5, --kwargs '{num_beams: 5}' or --kwargs @file.yml; behind them what
 * the model's folder says. Later ones win in that order: file or text, flags, key=value. */
#ifndef TG_LEARNER_CLI_GEN_KWARGS_H
#define TG_LEARNER_CLI_GEN_KWARGS_H

#include "common/config/args.h"
#include "learner/policy/gen_settings.h"

enum { TG_GEN_KWARGS_MAX = 64 };

typedef struct tg_gen_kwargs {
    const char *text; /* of --kwargs */
    const char *values
        [TG_GEN_KWARGS_MAX]; /* of the flags, in the order of tg_gen_options; NULL: not given */
} tg_gen_kwargs;

/* Appends a flag for --kwargs and one for each key; `flags` has room for TG_GEN_KWARGS_MAX + 2 more. */
void tg_gen_kwargs_flags(tg_gen_kwargs *k, tg_flag *flags, size_t n);

/* folder: the model's. */
tg_status tg_gen_kwargs_read(const tg_gen_kwargs *k, const tg_args *args, const char *folder,
                             tg_arena *arena, tg_gen_settings *out, tg_error *err) TG_MUST_CHECK;

#endif
