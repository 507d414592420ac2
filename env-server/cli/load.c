/* Loading of configs, for all commands. */
#include "env-server/cli/load.h"

#include <string.h>

tg_status tg_loaded_open(tg_loaded *l, const char *config, const tg_args *args, tg_error *err) {
    memset(l, 0, sizeof *l);
    if (!config && args->n_positional)
        config = args->positional[0];
    else if (args->n_positional)
        return tg_fail(err, TG_USAGE, "unexpected argument \"%s\"", args->positional[0]);
    if (!config) return tg_fail(err, TG_USAGE, "a config file is needed: --config FILE");
    tg_status st =
        tg_run_config_load_env(&l->config, config, args->overrides, args->n_overrides, err);
    if (st != TG_OK) return st;
    st = tg_env_settings_read(&l->settings, &l->config, err);
    if (st != TG_OK) tg_run_config_fini(&l->config);
    return st;
}

void tg_loaded_close(tg_loaded *l) {
    tg_run_config_fini(&l->config);
}
