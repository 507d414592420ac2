/* What every long-running process offers those who run it, on its own libuv loop: the HTTP port (--http) with
 * /metrics, /livez, /readyz, /startupz and /status, SIGHUP, and words to systemd.
 *
 *     const tg_ops_hooks hooks = {.ready = ready, .collect = collect, .status = status, .arg = me};
 *     tg_ops_open(&ops, loop, &opts, &hooks, err);
 *     tg_stat *steps = tg_stats_counter(tg_ops_stats(ops), …);
 *     tg_ops_stopping(ops, "draining");
 *     tg_ops_close(&ops);
 *
 * Alive means: the loop turns. Ready means: it can do work now; READY=1 is told to systemd when it is so for
 * the first time. WATCHDOG=1 is sent from the loop, and only while `alive` says so. */
#ifndef TG_NET_OPS_H
#define TG_NET_OPS_H

#include "common/base/status.h"
#include "common/net/ops_opts.h"
#include "common/net/security.h"
#include "common/net/stats.h"

#include <stdbool.h>
#include <uv.h>

enum { TG_OPS_WHY = 160 };

typedef struct tg_ops_hooks {
    const char *program; /* "textgen-env" */
    /* Makes the series, before any other hook is called. May be NULL. */
    void (*make)(void *arg, tg_stats *stats);
    /* Whether it can do work now; why is filled when not. NULL: always. */
    bool (*ready)(void *arg, char why[TG_OPS_WHY]);
    /* Whether work goes on; false keeps WATCHDOG=1 back. NULL: always. */
    bool (*alive)(void *arg);
    /* Sets the gauges that are kept elsewhere, before they are shown. May be NULL. */
    void (*collect)(void *arg);
    /* Members of the object at /status, each beginning with ", ". May be NULL. */
    void (*status)(void *arg, tg_buf *json);
    /* SIGHUP, after the allow-list and the log level were read again. May be NULL. */
    void (*reload)(void *arg);
    tg_security *security; /* whose list is read again on SIGHUP; NULL: none */
    void *arg;
} tg_ops_hooks;

typedef struct tg_ops tg_ops;

/* hooks are copied. Also raises the number of files the process may open as far as it may. */
tg_status tg_ops_open(tg_ops **out, uv_loop_t *loop, const tg_ops_opts *opts,
                      const tg_ops_hooks *hooks, tg_error *err) TG_MUST_CHECK;
/* The handles close with the loop's next turns; the stats go with them. */
void tg_ops_close(tg_ops **ops);

tg_stats *tg_ops_stats(tg_ops *ops);
const char *tg_ops_address(const tg_ops *ops); /* of the HTTP port; NULL: none */
/* Not ready any more, and told so to systemd; extend_ms more are needed to end in order. */
void tg_ops_stopping(tg_ops *ops, const char *why, int extend_ms);
/* Looks at once whether it is ready, in place of with the next tick. */
void tg_ops_check(tg_ops *ops);
double tg_ops_uptime(const tg_ops *ops);   /* seconds */
uint64_t tg_ops_lag_us(const tg_ops *ops); /* how late the loop's timer last was */

#endif
