/* The rules that 13a, zh and tercom's normalisation share, each a pass over the text. */
#include "env-server/metric/bleu_text_impl.h"
#include "env-server/reward/pytext.h"

#include <string.h>

char *tg_bleu_text_begin(tg_bleu_text *t, size_t max) {
    tg_buf_reset(&t->next);
    char *to = tg_buf_reserve(&t->next, max + 1);
    if (!to) t->now.failed = true;
    return to;
}

void tg_bleu_text_end(tg_bleu_text *t, const char *written) {
    t->next.len = (size_t)(written - t->next.data);
    tg_buf swap = t->now;
    t->now = t->next, t->next = swap;
}

void tg_bleu_text_replace(tg_bleu_text *t, const char *from, const char *to) {
    size_t n_from = strlen(from), n_to = strlen(to);
    const char *at = t->now.data, *stop = at + t->now.len, *hit;
    if (!t->now.len || !(hit = memmem(at, t->now.len, from, n_from))) return;
    size_t grown = n_to > n_from ? t->now.len / n_from * (n_to - n_from) : 0;
    char *w = tg_bleu_text_begin(t, t->now.len + grown);
    if (!w) return;
    for (; hit; hit = memmem(at, (size_t)(stop - at), from, n_from)) {
        memcpy(w, at, (size_t)(hit - at));
        w += hit - at;
        memcpy(w, to, n_to);
        w += n_to;
        at = hit + n_from;
    }
    memcpy(w, at, (size_t)(stop - at));
    tg_bleu_text_end(t, w + (stop - at));
}

/* Of ASCII: is it in {-~ [-` !-& (-+ :-@ / ? */
static const char symbol[129] = "................................"
                                ".xxxxxx.xxxx...x..........xxxxxx"
                                "x..........................xxxxx"
                                "x..........................xxxx.";

void tg_bleu_text_symbols(tg_bleu_text *t) {
    const unsigned char *in = (const unsigned char *)t->now.data;
    size_t n = t->now.len;
    char *w = tg_bleu_text_begin(t, 3 * n);
    if (!w) return;
    /* The original also puts spaces around a space, which changes nothing. */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = in[i];
        if (c < 0x80 && symbol[c] == 'x') {
            *w++ = ' ', *w++ = (char)c, *w++ = ' ';
        } else
            *w++ = (char)c;
    }
    tg_bleu_text_end(t, w);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_point(char c) {
    return c == '.' || c == ',';
}

static const char *next_point(const char *at, const char *stop) {
    while (at < stop && !is_point(*at)) at++;
    return at;
}

static char *copy(char *to, const char *from, const char *stop) {
    size_t n = (size_t)(stop - from);
    memcpy(to, from, n);
    return to + n;
}

/* ([^0-9])([.,]) -> \1 space \2 space. What was matched is not matched again.
 */
static void point_after_other(tg_bleu_text *t) {
    const char *from = t->now.data, *stop = from + t->now.len;
    char *w = tg_bleu_text_begin(t, 2 * t->now.len);
    if (!w) return;
    for (const char *p = next_point(from, stop); p < stop; p = next_point(p + 1, stop)) {
        if (p == from || is_digit(p[-1])) continue;
        w = copy(w, from, p);
        *w++ = ' ', *w++ = *p, *w++ = ' ';
        from = p + 1;
    }
    tg_bleu_text_end(t, copy(w, from, stop));
}

/* ([.,])([^0-9]) -> space \1 space \2 */
static void point_before_other(tg_bleu_text *t) {
    const char *from = t->now.data, *stop = from + t->now.len;
    char *w = tg_bleu_text_begin(t, 2 * t->now.len);
    if (!w) return;
    for (const char *p = next_point(from, stop); p < stop; p = next_point(p, stop)) {
        if (p + 1 == stop || is_digit(p[1])) {
            p++;
            continue;
        }
        w = copy(w, from, p);
        *w++ = ' ', *w++ = *p, *w++ = ' ', *w++ = p[1];
        from = p += 2;
    }
    tg_bleu_text_end(t, copy(w, from, stop));
}

/* ([0-9])(-) -> \1 space \2 space */
static void dash_after_digit(tg_bleu_text *t) {
    const char *from = t->now.data, *stop = from + t->now.len, *p = from;
    char *w = tg_bleu_text_begin(t, 2 * t->now.len);
    if (!w) return;
    for (; (p = memchr(p, '-', (size_t)(stop - p))); p++) {
        if (p == from || !is_digit(p[-1])) continue;
        w = copy(w, from, p);
        *w++ = ' ', *w++ = '-', *w++ = ' ';
        from = p + 1;
    }
    tg_bleu_text_end(t, copy(w, from, stop));
}

void tg_bleu_text_points(tg_bleu_text *t) {
    size_t n = t->now.len;
    if (!n) return;
    if (memchr(t->now.data, '.', n) || memchr(t->now.data, ',', n)) {
        point_after_other(t);
        point_before_other(t);
    }
    if (memchr(t->now.data, '-', t->now.len)) dash_after_digit(t);
}

void tg_bleu_text_western(tg_bleu_text *t) {
    tg_bleu_text_symbols(t);
    tg_bleu_text_points(t);
}

void tg_bleu_text_isolate(tg_bleu_text *t, bool (*is)(uint32_t c)) {
    const char *in = t->now.data;
    size_t n = t->now.len, bytes;
    char *w = tg_bleu_text_begin(t, 3 * n);
    if (!w) return;
    for (size_t i = 0; i < n; i += bytes) {
        bool alone = is(tg_py_char(in + i, n - i, &bytes));
        if (alone) *w++ = ' ';
        memcpy(w, in + i, bytes);
        w += bytes;
        if (alone) *w++ = ' ';
    }
    tg_bleu_text_end(t, w);
}
