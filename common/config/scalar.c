/* What one scalar means. The words and number forms are those of YAML 1.1 as PyYAML resolves them,
 * since the configs that exist were written against it; in addition 1e-6 and 1E5, which PyYAML
 * leaves as text, are numbers. */
#include "common/config/tree.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 128 }; /* longer text is no number */

static bool plain(const tg_node *n) {
    return n && n->kind == TG_NODE_SCALAR && !n->quoted && n->text && n->text[0];
}

static bool one_of(const char *text, const char *const *words) {
    for (; *words; words++) {
        if (!strcmp(text, *words)) return true;
    }
    return false;
}

bool tg_node_is_null(const tg_node *n) {
    return !n || n->kind == TG_NODE_NULL;
}

bool tg_node_bool(const tg_node *n, bool *out) {
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes",
                                      "YES",  "on",   "On",   "ON",  NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no",  "No",
                                     "NO",    "off",   "Off",   "OFF", NULL};
    if (!plain(n)) return false;
    bool is_yes = one_of(n->text, yes);
    if (!is_yes && !one_of(n->text, no)) return false;
    *out = is_yes;
    return true;
}

/* Copies the text without its underscores; false when it does not start like a number or is too
 * long for one. */
static bool digits_of(const char *text, char out[NUMBER_MAX]) {
    const char *first = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*first) && *first != '.') return false;
    size_t n = 0;
    for (; *text; text++) {
        if (*text == '_') continue;
        if (n == NUMBER_MAX - 1) return false;
        out[n++] = *text;
    }
    out[n] = '\0';
    return n > 0;
}

/* Unsigned digits in `base` up to the end of the text or a ':'; *end is left there. */
static bool read_digits(const char *text, int base, uint64_t *out, const char **end) {
    uint64_t v = 0;
    const char *p = text;
    for (; *p && *p != ':'; p++) {
        int c = tolower((unsigned char)*p);
        int d = isdigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    *out = v;
    *end = p;
    return p > text;
}

static bool read_magnitude(const char *p, uint64_t *out) {
    const char *end;
    if (p[0] == '0' && p[1]) {
        int base = p[1] == 'x' ? 16 : p[1] == 'b' ? 2 : 8;
        return read_digits(p + (base == 8 ? 1 : 2), base, out, &end) && !*end;
    }
    if (!read_digits(p, 10, out, &end)) return false;
    while (*end == ':') { /* base 60: 1:30 is 90 */
        uint64_t part;
        const char *digits = end + 1;
        if (!read_digits(digits, 10, &part, &end) || part > 59 || end - digits > 2) return false;
        if (__builtin_mul_overflow(*out, 60u, out) || __builtin_add_overflow(*out, part, out))
            return false;
    }
    return true;
}

bool tg_node_int(const tg_node *n, int64_t *out) {
    char text[NUMBER_MAX];
    if (!plain(n) || !digits_of(n->text, text)) return false;
    bool negative = text[0] == '-';
    uint64_t magnitude;
    if (!read_magnitude(text + (negative || text[0] == '+'), &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX) return false;
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool read_special(const char *text, double *out) {
    static const char *const inf[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};
    bool negative = *text == '-';
    if (one_of(text, nan_words))
        *out = (double)NAN;
    else if (one_of(text + (negative || *text == '+'), inf))
        *out = negative ? -HUGE_VAL : HUGE_VAL;
    else
        return false;
    return true;
}

bool tg_node_float(const tg_node *n, double *out) {
    /* JSON has no infinity: tg_node_json writes it as the string ".inf", so that one is read quoted
     * or not. */
    if (n && n->kind == TG_NODE_SCALAR && read_special(n->text, out)) return true;
    int64_t whole;
    if (tg_node_int(n, &whole)) {
        *out = (double)whole;
        return true;
    }
    char text[NUMBER_MAX];
    if (!plain(n) || !digits_of(n->text, text)) return false;
    if (text[strspn(text, "+-0123456789.eE")]) return false; /* no hexadecimal, "inf", locale */
    const char *first = text + (text[0] == '-' || text[0] == '+');
    if (!strpbrk(text, ".eE") && *first == '0') return false; /* "08" is text */
    char *end;
    double v = strtod(text, &end);
    if (*end || end == text || !isfinite(v)) return false;
    *out = v;
    return true;
}
