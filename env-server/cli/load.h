/* A config file as a command sees it: the run's config and the environment's settings read from it. */
#ifndef TG_ENV_LOAD_H
#define TG_ENV_LOAD_H

#include "common/config/args.h"
#include "common/config/run_config.h"
#include "env-server/env/settings.h"

typedef struct tg_loaded {
    tg_run_config config;
    tg_env_settings settings; /* lives in the config's arena */
} tg_loaded;

/* The file is --config's value, else the first positional argument. TG_USAGE when there is none. */
tg_status tg_loaded_open(tg_loaded *l, const char *config, const tg_args *args,
                         tg_error *err) TG_MUST_CHECK;
void tg_loaded_close(tg_loaded *l);

#endif
