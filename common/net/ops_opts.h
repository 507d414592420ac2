/* Options of the operations port and of the log, the same for every program; without the loop that ops.h needs. */
#ifndef TG_NET_OPS_OPTS_H
#define TG_NET_OPS_OPTS_H

#include "common/base/status.h"

typedef struct tg_ops_opts {
    const char *http;       /* "HOST:PORT"; NULL: no port */
    const char *log_format; /* "text" or "json"; NULL: text */
    const char *log_level;  /* "error" … "debug"; NULL: as TEXTGEN_LOG says */
} tg_ops_opts;

/* Rows for a table of flags (common/config/args.h); o is a tg_ops_opts. */
#define TG_OPS_FLAGS(o)                                                                            \
    {"http", TG_FLAG_STR, &(o).http, "HOST:PORT",                                                  \
     "Health and figures: /metrics, /livez, /readyz, /startupz, /status (textgen top)."},          \
        {"log-format", TG_FLAG_STR, &(o).log_format, "FORMAT",                                     \
         "text, or json: one object a line."},                                                     \
    {                                                                                              \
        "log-level", TG_FLAG_STR, &(o).log_level, "LEVEL", "error, warn, info or debug."           \
    }

/* Sets the form and level of the log; TG_USAGE: not one of the words. Before anything else is done. */
tg_status tg_ops_logging(const tg_ops_opts *opts, tg_error *err) TG_MUST_CHECK;

#endif
