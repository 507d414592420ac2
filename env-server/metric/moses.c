/* Both work on the words between spaces: the detokeniser decides for each whether it moves to its left
 * or right neighbour, 13a parts the line at marks first. */
#include "env-server/metric/moses.h"

#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"

#include <string.h>
#include <utf8proc.h>

typedef struct piece {
    const char *text;
    size_t len;
} piece;

static void replace(tg_buf *out, const char *text, size_t len, const char *const (*table)[2]) {
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        for (size_t k = 0; table[k][0] && !n; k++) {
            size_t m = strlen(table[k][0]);
            if (m > len - i || memcmp(text + i, table[k][0], m) != 0) continue;
            tg_buf_puts(out, table[k][1]);
            n = m;
        }
        if (!n) {
            tg_buf_putc(out, text[i]);
            n = 1;
        }
        i += n;
    }
}

/* ---- detokeniser ------------------------------------------------------------------------------- */

static uint32_t first_of(piece w) {
    size_t n;
    return w.len ? tg_py_point(w.text, w.len, &n) : 0;
}

static uint32_t last_of(piece w) {
    size_t i = w.len, n;
    if (!i) return 0;
    do i--;
    while (i > 0 && ((unsigned char)w.text[i] & 0xC0) == 0x80);
    return tg_py_point(w.text + i, w.len - i, &n);
}

static bool is_cjk(uint32_t c) {
    return (c >= 0x1100 && c <= 0x11FF) || (c >= 0x2E80 && c <= 0xA4CF) ||
           (c >= 0xA840 && c <= 0xA87F) || (c >= 0xAC00 && c <= 0xD7AF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE4F) ||
           (c >= 0xFF65 && c <= 0xFFDC) || (c >= 0x20000 && c <= 0x2FFFF);
}

static bool opens(uint32_t c) {
    return c == '(' || c == '[' || c == '{' || c == 0xBF || c == 0xA1 ||
           utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_SC;
}

static bool closes(uint32_t c) {
    return c && c < 0x80 && strchr(",.?!:;\\%}])", (int)c);
}

static bool quotes(uint32_t c) {
    return c == '\'' || c == '"' || c == '`' || c == 0x201E || c == 0x201C;
}

static bool all_are(piece w, bool (*kind)(uint32_t)) {
    size_t n;
    for (size_t i = 0; i < w.len; i += n)
        if (!kind(tg_py_point(w.text + i, w.len - i, &n))) return false;
    return w.len > 0;
}

static bool is_letter(uint32_t c) {
    return tg_unicode_class(c) == TG_CP_LETTER;
}

static bool is_contraction(piece before, piece w) {
    if (w.len < 2 || w.text[0] != '\'' || !before.len) return false;
    size_t n;
    uint32_t last = last_of(before);
    return is_letter(tg_py_point(w.text + 1, w.len - 1, &n)) &&
           (is_letter(last) || tg_unicode_class(last) == TG_CP_NUMBER);
}

typedef struct quote_counts {
    piece kinds[16];
    unsigned counts[16];
    size_t n;
} quote_counts;

/* Each spelling of a quote is counted for itself; curly double ones count as the straight one. */
static unsigned *count_of(quote_counts *q, piece w) {
    if (first_of(w) == 0x201E || first_of(w) == 0x201C) w = (piece){"\"", 1};
    for (size_t i = 0; i < q->n; i++)
        if (q->kinds[i].len == w.len && !memcmp(q->kinds[i].text, w.text, w.len))
            return &q->counts[i];
    if (q->n == 16) return &q->counts[15];
    q->kinds[q->n] = w;
    q->counts[q->n] = 0;
    return &q->counts[q->n++];
}

typedef enum side { PLAIN, LEFT, RIGHT } side; /* which neighbour the word moves to */

static side side_of(piece before, piece w, quote_counts *q) {
    if (is_cjk(first_of(w))) return before.len && is_cjk(last_of(before)) ? LEFT : PLAIN;
    if (all_are(w, opens)) return RIGHT;
    if (all_are(w, closes) || is_contraction(before, w)) return LEFT;
    if (!all_are(w, quotes)) return PLAIN;
    unsigned *count = count_of(q, w);
    if (*count % 2 == 0 && w.len == 1 && *w.text == '\'' && before.len &&
        before.text[before.len - 1] == 's')
        return LEFT; /* the Jones' house */
    return (*count)++ % 2 == 0 ? RIGHT : LEFT;
}

void tg_moses_detokenize(tg_buf *out, const char *line, size_t len) {
    static const char *const entities[][2] = {
        {" @-@ ", "-"}, {"&bar;", "|"}, {"&#124;", "|"},  {"&lt;", "<"},   {"&gt;", ">"},
        {"&bra;", "["}, {"&ket;", "]"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&#91;", "["},
        {"&#93;", "]"}, {"&amp;", "&"}, {NULL, NULL}};
    tg_buf plain = {0};
    replace(&plain, line, len, entities);
    quote_counts q = {0};
    piece before = {0};
    bool space = false; /* none at the head of the line */
    size_t begin = out->len;
    for (size_t at = 0; at <= plain.len && !plain.failed;) {
        const char *end = plain.len > at ? memchr(plain.data + at, ' ', plain.len - at) : NULL;
        size_t n = end ? (size_t)(end - plain.data) - at : plain.len - at;
        piece w = {plain.data ? plain.data + at : "", n};
        at += n + 1;
        if (!n) { /* of two spaces, one */
            space = true;
            before = (piece){0};
            continue;
        }
        side s = side_of(before, w, &q);
        if (s != LEFT && space && out->len > begin) tg_buf_putc(out, ' ');
        tg_buf_append(out, w.text, w.len);
        space = s != RIGHT;
        before = w;
    }
    out->failed |= plain.failed;
    tg_buf_fini(&plain);
}

/* ---- 13a --------------------------------------------------------------------------------------- */

static bool is_mark(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_point(char c) {
    return c == '.' || c == ',';
}

static void pad_marks(tg_buf *out, const tg_buf *in) {
    for (size_t i = 0; i < in->len; i++) {
        bool mark = is_mark(in->data[i]);
        if (mark) tg_buf_putc(out, ' ');
        tg_buf_putc(out, in->data[i]);
        if (mark) tg_buf_putc(out, ' ');
    }
}

/* ([^0-9])([.,]) and then ([.,])([^0-9]), neither overlapping itself. */
static void part_points(tg_buf *out, const tg_buf *in, bool behind) {
    for (size_t i = 0; i < in->len; i++) {
        char c = in->data[i], next = i + 1 < in->len ? in->data[i + 1] : '0';
        bool match = i + 1 < in->len &&
                     (behind ? is_point(c) && !is_digit(next) : !is_digit(c) && is_point(next));
        if (!match) {
            tg_buf_putc(out, c);
            continue;
        }
        if (behind) tg_buf_putc(out, ' ');
        tg_buf_putc(out, c);
        tg_buf_putc(out, ' ');
        tg_buf_putc(out, next);
        if (!behind) tg_buf_putc(out, ' ');
        i++;
    }
}

static void part_dashes(tg_buf *out, const tg_buf *in) {
    for (size_t i = 0; i < in->len; i++) {
        tg_buf_putc(out, in->data[i]);
        if (!is_digit(in->data[i]) || i + 1 >= in->len || in->data[i + 1] != '-') continue;
        tg_buf_puts(out, " - ");
        i++;
    }
}

void tg_moses_13a(tg_buf *out, const char *line, size_t len) {
    static const char *const lines[][2] = {
        {"<skipped>", ""}, {"-\n", ""}, {"\n", " "}, {NULL, NULL}};
    static const char *const entities[][2] = {
        {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {NULL, NULL}};
    tg_buf a = {0}, b = {0};
    replace(&b, line, len, lines);
    tg_buf_putc(&a, ' ');
    replace(&a, b.data, b.len, entities);
    tg_buf_putc(&a, ' ');
    tg_buf_reset(&b), pad_marks(&b, &a);
    tg_buf_reset(&a), part_points(&a, &b, false);
    tg_buf_reset(&b), part_points(&b, &a, true);
    tg_buf_reset(&a), part_dashes(&a, &b);
    size_t begin = out->len, n;
    bool space = false;
    for (size_t i = 0; i < a.len; i += n) {
        if (tg_py_space(tg_py_point(a.data + i, a.len - i, &n))) {
            space = true;
            continue;
        }
        if (space && out->len > begin) tg_buf_putc(out, ' ');
        space = false;
        tg_buf_append(out, a.data + i, n);
    }
    out->failed |= a.failed || b.failed;
    tg_buf_fini(&a);
    tg_buf_fini(&b);
}
