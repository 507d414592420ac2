/* Rows from /status pages, and the table they make. Unknown members are ignored and missing ones shown as '-',
 * so that programs of other versions can be looked at too. */
#include "common/cli/top_rows.h"

#include "common/base/alloc.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static tg_top_row *push(tg_top_rows *t, const char *source) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        tg_top_row *rows = tg_realloc_array(t->rows, cap, sizeof *rows);
        if (!rows) return NULL;
        t->rows = rows, t->cap = cap;
    }
    tg_top_row *r = &t->rows[t->n++];
    memset(r, 0, sizeof *r);
    snprintf(r->source, sizeof r->source, "%s", source);
    return r;
}

static double number(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : -1;
}

/* Only what a terminal shows harmlessly. */
static void copy_text(char *out, size_t size, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, size, "%s", text ? text : "");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

static void read_numbers(tg_top_row *r, const json_t *o) {
    r->sessions = number(o, "sessions");
    r->slots = number(o, "slots");
    r->capacity = number(o, "capacity");
    r->steps = number(o, "steps");
    r->episodes = number(o, "episodes");
    r->in_flight = number(o, "in_flight");
    r->oldest_ms = number(o, "oldest_ms");
    r->lag_us = number(o, "loop_lag_us");
    r->rss_bytes = number(o, "rss_bytes");
}

static bool read_page(tg_top_rows *t, const char *source, const json_t *page) {
    tg_top_row *r = push(t, source);
    if (!r) return false;
    copy_text(r->name, sizeof r->name, page, "program");
    copy_text(r->state, sizeof r->state, page, "state");
    if (!json_is_true(json_object_get(page, "ready")))
        copy_text(r->state, sizeof r->state, page, "why");
    read_numbers(r, page);
    const json_t *workers = json_object_get(page, "workers"), *w;
    size_t i;
    json_array_foreach((json_t *)workers, i, w) {
        if (!json_is_object(w)) continue;
        if (!(r = push(t, source))) return false;
        r->child = true;
        copy_text(r->name, sizeof r->name, w, "id");
        copy_text(r->state, sizeof r->state, w, "state");
        read_numbers(r, w);
    }
    return true;
}

tg_status tg_top_rows_add(tg_top_rows *t, const char *source, const char *json, size_t len,
                          tg_error *err) {
    json_error_t why;
    json_t *page = json_loadb(json, len, 0, &why);
    if (!json_is_object(page)) {
        json_decref(page);
        return tg_fail(err, TG_DATA, "%s: /status is not what textgen writes: %s", source,
                       why.text);
    }
    bool ok = read_page(t, source, page);
    json_decref(page);
    return ok ? TG_OK : tg_fail_nomem(err, sizeof *t->rows);
}

tg_status tg_top_rows_add_down(tg_top_rows *t, const char *source, const char *why, tg_error *err) {
    tg_top_row *r = push(t, source);
    if (!r) return tg_fail_nomem(err, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", source);
    snprintf(r->state, sizeof r->state, "%s", why);
    r->down = true;
    r->sessions = r->slots = r->capacity = r->steps = r->episodes = -1;
    r->in_flight = r->oldest_ms = r->lag_us = r->rss_bytes = -1;
    return TG_OK;
}

void tg_top_rows_fini(tg_top_rows *t) {
    tg_free(t->rows);
    memset(t, 0, sizeof *t);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const tg_top_row *same(const tg_top_rows *before, const tg_top_row *r) {
    for (size_t i = 0; before && i < before->n; i++) {
        const tg_top_row *b = &before->rows[i];
        if (b->child == r->child && !strcmp(b->name, r->name) && !strcmp(b->source, r->source))
            return b;
    }
    return NULL;
}

/* A count that got smaller was begun anew. */
static double rate(double now, double before, double seconds) {
    return now < 0 || before < 0 || now < before || seconds <= 0 ? -1 : (now - before) / seconds;
}

static void put_count(tg_buf *out, int width, double v) {
    char text[32];
    if (v < 0)
        snprintf(text, sizeof text, "-");
    else if (v < 1e5)
        snprintf(text, sizeof text, "%.0f", v);
    else if (v < 1e8)
        snprintf(text, sizeof text, "%.1fk", v / 1e3);
    else
        snprintf(text, sizeof text, "%.1fM", v / 1e6);
    tg_buf_printf(out, " %*s", width, text);
}

static void put_ms(tg_buf *out, int width, double ms) {
    char text[32];
    if (ms < 0)
        snprintf(text, sizeof text, "-");
    else if (ms < 1000)
        snprintf(text, sizeof text, ms < 10 ? "%.1fms" : "%.0fms", ms);
    else
        snprintf(text, sizeof text, "%.1fs", ms / 1e3);
    tg_buf_printf(out, " %*s", width, text);
}

static void put_row(const tg_top_row *r, const tg_top_row *b, double seconds, bool color,
                    tg_buf *out) {
    char name[80];
    snprintf(name, sizeof name, "%s%s", r->child ? "  " : "", r->name);
    tg_buf_printf(out, "%s%-24.24s %-21.21s", color && r->down ? "\033[31m" : "", name,
                  r->child ? "" : r->source);
    put_count(out, 8, r->sessions);
    put_count(out, 7, r->slots);
    put_count(out, 7, r->capacity);
    put_count(out, 9, b ? rate(r->steps, b->steps, seconds) : -1);
    put_count(out, 8, b ? rate(r->episodes, b->episodes, seconds) : -1);
    put_count(out, 9, r->in_flight);
    put_ms(out, 7, r->oldest_ms);
    put_ms(out, 7, r->lag_us < 0 ? -1 : r->lag_us / 1e3);
    if (r->rss_bytes < 0)
        tg_buf_puts(out, "        -");
    else
        tg_buf_printf(out, " %6.0fMB", r->rss_bytes / 1e6);
    tg_buf_printf(out, "  %s%s\n", r->state, color && r->down ? "\033[0m" : "");
}

void tg_top_rows_write(const tg_top_rows *t, const tg_top_rows *before, bool color, tg_buf *out) {
    double seconds = before ? (double)(t->at_ns - before->at_ns) * 1e-9 : 0;
    tg_buf_printf(out, "%s%-24s %-21s %8s %7s %7s %9s %8s %9s %7s %7s %8s  %s%s\n",
                  color ? "\033[1m" : "", "PROGRAM", "HTTP", "SESSIONS", "SLOTS", "ROOM", "STEPS/s",
                  "EPIS/s", "IN-FLIGHT", "OLDEST", "LAG", "MEMORY", "STATE",
                  color ? "\033[0m" : "");
    for (size_t i = 0; i < t->n; i++)
        put_row(&t->rows[i], same(before, &t->rows[i]), seconds, color, out);
}
