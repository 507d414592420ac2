/* Log lines on stderr and, when set, in a file: "2026-11-16 07:12:03 [INFO] area: text", or on stderr
 * {"ts": "2026-11-16T07:12:03.123Z", "level": "info", "area": "env", "msg": "text"}.
 *
 *     tg_log_info("env", "slot %d: episode %llu ends", slot, episode);
 *
 * The sink is process-wide (with the allocator hooks, the only mutable global state) and thread safe.
 * Level from TEXTGEN_LOG (error, warn, info, debug) or tg_log_set_level. Never log a key or a secret. */
#ifndef TG_BASE_LOG_H
#define TG_BASE_LOG_H

#include "common/base/status.h"

#include <stdbool.h>

typedef enum tg_log_level {
    TG_LOG_NONE = -1,
    TG_LOG_ERROR,
    TG_LOG_WARN,
    TG_LOG_INFO,
    TG_LOG_DEBUG
} tg_log_level;

void tg_log_set_level(tg_log_level level);
void tg_log_set_stderr(tg_log_level level); /* stderr alone shows only up to this level */
void tg_log_set_json(bool json); /* one JSON object a line on stderr; the file stays text */
/* Also append to this file (log.txt of a run). NULL closes it. */
tg_status tg_log_set_file(const char *path, tg_error *err);
bool tg_log_enabled(tg_log_level level);
void tg_log(tg_log_level level, const char *area, const char *fmt, ...) TG_PRINTF(3, 4);

#define tg_log_error(...) tg_log(TG_LOG_ERROR, __VA_ARGS__)
#define tg_log_warn(...) tg_log(TG_LOG_WARN, __VA_ARGS__)
#define tg_log_info(...) tg_log(TG_LOG_INFO, __VA_ARGS__)
#define tg_log_debug(...) tg_log(TG_LOG_DEBUG, __VA_ARGS__)

#endif
