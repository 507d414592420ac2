/* A timer that looks after readiness, lag and the watchdog; the pages of the HTTP port; SIGHUP. */
#include "common/net/ops.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/commit.h"
#include "common/net/http_server.h"
#include "common/net/sd_notify.h"
#include "proto/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { TICK_MS = 100, N_HANDLES = 2 };

struct tg_ops {
    uv_loop_t *loop;
    tg_ops_hooks hooks;
    tg_http_server *http;
    uv_timer_t tick;
    uv_signal_t hup;
    int handles;
    tg_stats *stats;
    tg_stat *lag, *scrapes, *ready_gauge;
    uint64_t start_ns, due_ns, lag_us;
    uint64_t watchdog_ms, last_ping_ms;
    bool ready, started, stopping;
    char why[TG_OPS_WHY];
};

/* ---- logging -------------------------------------------------------------------------------- */

static bool level_of(const char *name, tg_log_level *out) {
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(name, names[i]) != 0) continue;
        *out = (tg_log_level)i;
        return true;
    }
    return false;
}

tg_status tg_ops_logging(const tg_ops_opts *o, tg_error *err) {
    tg_log_level level;
    if (o->log_format) {
        bool json = !strcmp(o->log_format, "json");
        if (!json && strcmp(o->log_format, "text") != 0)
            return tg_fail(err, TG_USAGE, "--log-format %s: expected text or json", o->log_format);
        tg_log_set_json(json);
    }
    if (!o->log_level) return TG_OK;
    if (!level_of(o->log_level, &level))
        return tg_fail(err, TG_USAGE, "--log-level %s: expected error, warn, info or debug",
                       o->log_level);
    tg_log_set_level(level);
    return TG_OK;
}

/* The environment of a running process cannot be changed from outside; a file can: its one word is the level. */
static void reload_level(void) {
    const char *path = getenv("TEXTGEN_LOG_LEVEL_FILE");
    char word[16] = "";
    tg_log_level level;
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f) return;
    bool ok = fscanf(f, "%15s", word) == 1 && level_of(word, &level);
    fclose(f);
    if (!ok) {
        tg_log_warn("ops", "%s: expected error, warn, info or debug; the level stays", path);
        return;
    }
    tg_log_set_level(level);
    tg_log_info("ops", "log level %s", word);
}

/* ---- readiness ------------------------------------------------------------------------------ */

static bool look(tg_ops *o) {
    if (o->stopping) return false; /* why says what for */
    o->why[0] = '\0';
    return !o->hooks.ready || o->hooks.ready(o->hooks.arg, o->why);
}

void tg_ops_check(tg_ops *o) {
    bool ready = look(o);
    tg_stat_set(o->ready_gauge, ready);
    if (ready && !o->started) {
        o->started = true;
        tg_sd_notify("READY=1\nSTATUS=ready");
    } else if (ready != o->ready) {
        tg_sd_notify("STATUS=%s", ready ? "ready" : o->why);
    }
    o->ready = ready;
}

void tg_ops_stopping(tg_ops *o, const char *why, int extend_ms) {
    o->stopping = true;
    snprintf(o->why, sizeof o->why, "%s", why);
    tg_sd_notify("STOPPING=1\nSTATUS=%s\nEXTEND_TIMEOUT_USEC=%lld", why,
                 (long long)extend_ms * 1000);
    tg_ops_check(o);
}

static void ping_watchdog(tg_ops *o, uint64_t now) {
    if (!o->watchdog_ms || now - o->last_ping_ms < o->watchdog_ms / 3) return;
    if (o->hooks.alive && !o->hooks.alive(o->hooks.arg)) return;
    o->last_ping_ms = now;
    tg_sd_notify("WATCHDOG=1");
}

static void on_tick(uv_timer_t *timer) {
    tg_ops *o = timer->data;
    uint64_t now = tg_clock_ns();
    o->lag_us = now > o->due_ns ? (now - o->due_ns) / 1000 : 0;
    o->due_ns = now + (uint64_t)TICK_MS * 1000000;
    tg_stat_observe(o->lag, (double)o->lag_us * 1e-6);
    tg_ops_check(o);
    ping_watchdog(o, now / 1000000);
}

static void on_hup(uv_signal_t *signal, int number) {
    tg_ops *o = signal->data;
    (void)number;
    tg_sd_notify("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(tg_clock_ns() / 1000));
    tg_log_info("ops", "SIGHUP: reading again");
    tg_security_reload(o->hooks.security);
    reload_level();
    if (o->hooks.reload) o->hooks.reload(o->hooks.arg);
    tg_sd_notify("READY=1\nSTATUS=%s", o->ready ? "ready" : o->why);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void page_metrics(tg_ops *o, tg_http_reply *r) {
    tg_stat_add(o->scrapes, 1);
    if (o->hooks.collect) o->hooks.collect(o->hooks.arg);
    r->type = "text/plain; version=0.0.4; charset=utf-8";
    tg_stats_write(o->stats, &r->body);
    tg_stats_write_process(&r->body);
}

static void page_health(tg_ops *o, bool ok, tg_http_reply *r) {
    r->status = ok ? 200 : 503;
    tg_buf_printf(&r->body, "%s\n", ok ? "ok" : o->why[0] ? o->why : "starting");
}

static void put_json_text(tg_buf *out, const char *text) {
    tg_buf_putc(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            tg_buf_printf(out, "\\%c", c);
        else if (c < ' ')
            tg_buf_printf(out, "\\u%04x", c);
        else
            tg_buf_putc(out, (char)c);
    }
    tg_buf_putc(out, '"');
}

static void page_status(tg_ops *o, tg_http_reply *r) {
    tg_buf *b = &r->body;
    r->type = "application/json";
    tg_buf_printf(b, "{\"program\": \"%s\", \"version\": \"%s\", \"pid\": %ld, \"uptime_s\": %.3f",
                  o->hooks.program, TG_VERSION, (long)getpid(), tg_ops_uptime(o));
    tg_buf_printf(b, ", \"ready\": %s, \"why\": ", o->ready ? "true" : "false");
    put_json_text(b, o->ready ? "" : o->why);
    tg_buf_printf(b, ", \"loop_lag_us\": %llu, \"rss_bytes\": %llu", (unsigned long long)o->lag_us,
                  (unsigned long long)tg_process_rss());
    if (o->hooks.status) o->hooks.status(o->hooks.arg, b);
    tg_buf_puts(b, "}\n");
}

static void on_request(void *arg, const char *path, tg_http_reply *r) {
    tg_ops *o = arg;
    tg_ops_check(o); /* as of now, not of the last tick */
    if (!strcmp(path, "/metrics")) {
        page_metrics(o, r);
    } else if (!strcmp(path, "/livez")) {
        tg_buf_puts(&r->body, "ok\n"); /* the loop turned, or there would be no answer */
    } else if (!strcmp(path, "/readyz")) {
        page_health(o, o->ready, r);
    } else if (!strcmp(path, "/startupz")) {
        page_health(o, o->started, r);
    } else if (!strcmp(path, "/status")) {
        page_status(o, r);
    } else if (!strcmp(path, "/")) {
        tg_buf_printf(&r->body, "%s %s\n/metrics\n/livez\n/readyz\n/startupz\n/status\n",
                      o->hooks.program, TG_VERSION);
    } else {
        r->status = 404;
        tg_buf_puts(&r->body, "not here; / lists the pages\n");
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle) {
    tg_ops *o = handle->data;
    if (--o->handles > 0) return;
    tg_stats_destroy(&o->stats);
    tg_free(o);
}

static void start_handles(tg_ops *o) {
    uv_timer_init(o->loop, &o->tick);
    uv_signal_init(o->loop, &o->hup);
    o->tick.data = o->hup.data = o;
    o->handles = N_HANDLES;
    o->due_ns = tg_clock_ns() + (uint64_t)TICK_MS * 1000000;
    uv_timer_start(&o->tick, on_tick, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)&o->tick);
    if (uv_signal_start(&o->hup, on_hup, SIGHUP) != 0)
        tg_log_warn("ops", "SIGHUP cannot be caught");
    uv_unref((uv_handle_t *)&o->hup);
}

static void make_stats(tg_ops *o) {
    char value[96];
    snprintf(value, sizeof value, "%s,%s,%s,%d.%d", o->hooks.program, TG_VERSION, TG_COMMIT,
             TG_PROTO_MAJOR, TG_PROTO_MINOR);
    tg_stat_set(tg_stats_gauge(o->stats, "textgen_build_info", "Always 1; labels say what runs.",
                               "program,version,commit,protocol", value),
                1);
    o->ready_gauge =
        tg_stats_gauge(o->stats, "textgen_ready", "1 while it can do work.", NULL, NULL);
    o->lag = tg_stats_histogram(o->stats, "textgen_loop_lag_seconds",
                                "How late the event loop's timer was.", NULL, NULL);
    o->scrapes =
        tg_stats_counter(o->stats, "textgen_scrapes_total", "Times /metrics was read.", NULL, NULL);
}

tg_status tg_ops_open(tg_ops **out, uv_loop_t *loop, const tg_ops_opts *opts,
                      const tg_ops_hooks *hooks, tg_error *err) {
    *out = NULL;
    tg_ops *o = tg_alloc(sizeof *o);
    tg_stats *stats = tg_stats_create();
    if (!o || !stats) {
        tg_free(o);
        tg_stats_destroy(&stats);
        return tg_fail_nomem(err, sizeof *o);
    }
    o->loop = loop;
    o->hooks = *hooks;
    o->stats = stats;
    o->start_ns = tg_clock_ns();
    o->watchdog_ms = tg_sd_watchdog_ms();
    make_stats(o);
    if (hooks->make) hooks->make(hooks->arg, stats);
    start_handles(o);
    if (opts->http) {
        tg_http_opts http = {.address = opts->http, .handle = on_request, .arg = o};
        tg_status st = tg_http_server_open(&o->http, loop, &http, err);
        if (st != TG_OK) {
            tg_ops_close(&o);
            return st;
        }
        tg_log_info("ops", "http://%s/ has metrics and health", tg_http_server_address(o->http));
    }
    *out = o;
    return TG_OK;
}

void tg_ops_close(tg_ops **ops) {
    tg_ops *o = *ops;
    if (!o) return;
    *ops = NULL;
    tg_http_server_close(&o->http);
    uv_close((uv_handle_t *)&o->tick, on_closed);
    uv_close((uv_handle_t *)&o->hup, on_closed);
}

tg_stats *tg_ops_stats(tg_ops *o) {
    return o->stats;
}

const char *tg_ops_address(const tg_ops *o) {
    return o->http ? tg_http_server_address(o->http) : NULL;
}

double tg_ops_uptime(const tg_ops *o) {
    return (double)(tg_clock_ns() - o->start_ns) * 1e-9;
}

uint64_t tg_ops_lag_us(const tg_ops *o) {
    return o->lag_us;
}
