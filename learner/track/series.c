/* Reading and scaling series. A picture is a function of the artifacts alone, so a resumed run
 * draws the whole curve. */
#include "learner/track/series.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool push(tg_series *s, double x, double y) {
    if ((s->n & (s->n - 1)) == 0) { /* 0, 1, 2, 4, 8 …: full */
        size_t cap = s->n ? 2 * (size_t)s->n : 1;
        double *nx = tg_realloc_array(s->x, cap, sizeof *nx);
        if (nx) s->x = nx;
        double *ny = tg_realloc_array(s->y, cap, sizeof *ny);
        if (ny) s->y = ny;
        if (!nx || !ny) return false;
    }
    s->x[s->n] = x;
    s->y[s->n++] = y;
    return true;
}

static bool add_line(tg_series *s, const char *line, size_t len, int number, const char *in,
                     const char *key, const char *x_key) {
    json_t *root = json_loadb(line, len, 0, NULL);
    const json_t *holder = in ? json_object_get(root, in) : root;
    const json_t *value = json_object_get(holder, key);
    const json_t *x = x_key ? json_object_get(root, x_key) : NULL;
    bool ok = true;
    if (json_is_number(value) && isfinite(json_number_value(value)))
        ok = push(s, json_is_number(x) ? json_number_value(x) : number, json_number_value(value));
    json_decref(root);
    return ok;
}

tg_status tg_series_read(tg_series *s, const char *path, const char *in, const char *key,
                         const char *x_key, tg_error *err) {
    if (!tg_path_exists(path)) return TG_OK;
    tg_buf text = {0};
    tg_status st = tg_file_read(path, (size_t)1 << 30, &text, err);
    int number = 0;
    for (size_t at = 0; st == TG_OK && at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - (text.data + at)) : text.len - at;
        if (!add_line(s, text.data + at, len, ++number, in, key, x_key))
            st = tg_fail_nomem(err, (size_t)s->n * 16);
        at += len + 1;
    }
    tg_buf_fini(&text);
    return st;
}

void tg_series_fini(tg_series *s) {
    tg_free(s->x);
    tg_free(s->y);
    *s = (tg_series){0};
}

void tg_series_smooth(const tg_series *s, int window, double *out) {
    int half = window / 2;
    for (int i = 0; i < s->n; i++) {
        int lo = TG_MAX(0, i - half), hi = TG_MIN(s->n - 1, i + half);
        double sum = 0;
        for (int k = lo; k <= hi; k++) sum += s->y[k];
        out[i] = sum / (hi - lo + 1);
    }
}

tg_ticks tg_ticks_for(double lo, double hi, int most) {
    if (!(hi > lo)) {
        double pad = lo != 0 ? fabs(lo) * 0.5 : 0.5;
        lo -= pad;
        hi += pad;
    }
    most = TG_MAX(most, 2);
    double raw = (hi - lo) / (most - 1);
    double power = pow(10, floor(log10(raw)));
    static const double nice[] = {1, 2, 2.5, 5, 10, 20, 25, 50, 100};
    tg_ticks t = {lo, hi - lo, 2};
    for (size_t i = 0; i < TG_COUNT_OF(nice); i++) {
        double step = nice[i] * power;
        double first = floor(lo / step + 1e-9) * step;
        int n = (int)ceil((hi - first) / step - 1e-9) + 1;
        if (step < raw * 0.999 || n > most) continue;
        t = (tg_ticks){first, step, TG_MAX(n, 2)};
        break;
    }
    return t;
}

void tg_tick_text(char *out, size_t size, double value, double step) {
    if (fabs(value) < step * 1e-9) value = 0;
    double magnitude = TG_MAX(fabs(value), step);
    if (magnitude >= 1e6 || step < 1e-5) {
        snprintf(out, size, "%.3g", value);
        return;
    }
    int digits = 0;
    for (double s = step; digits < 7 && fabs(s - round(s)) > 1e-6 * s; digits++) s *= 10;
    snprintf(out, size, "%.*f", digits, value);
}
