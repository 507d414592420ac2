/* spaCy's character classes, affix rules, infix rules and URLs as functions of code points. Pure. */
#include "env-server/metric/spacy_chars.h"

#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- classes ----------------------------------------------------------------------------------- */

static const uint32_t uncased[] = {
    0x591,   0x5F4,   0x620,   0x64A,   0x66E,   0x6D5,   0x6E5,   0x6FF,   0x750,   0x77F,
    0x8A0,   0x8BD,   0x900,   0x9FF,   0xB80,   0xCFF,   0xD80,   0xDFF,   0x1100,  0x137F,
    0x2E80,  0x2FDF,  0x2FF0,  0x303F,  0x31C0,  0x31EF,  0x3200,  0x4DBF,  0x4E00,  0x9FFF,
    0xAC00,  0xD7AF,  0xF900,  0xFAFF,  0xFB1D,  0xFBB1,  0xFBD3,  0xFD3D,  0xFD50,  0xFDC7,
    0xFDF0,  0xFDFB,  0xFE30,  0xFE4F,  0xFE70,  0xFEFC,  0x1EE00, 0x1EEBB, 0x1F200, 0x1F2FF,
    0x20000, 0x2A6DF, 0x2A700, 0x2EBEF, 0x2F800, 0x2FA1F,
};
static const uint32_t cased[] = {
    0x41,   0x5A,   0x61,   0x7A,   0xC0,   0xD6,   0xD8,   0xF6,   0xF8,   0x1BF,  0x1C4,  0x2AF,
    0x386,  0x386,  0x388,  0x38A,  0x38C,  0x38C,  0x38E,  0x38F,  0x391,  0x3A9,  0x3AC,  0x3AF,
    0x3B1,  0x3C9,  0x3CC,  0x3CE,  0x400,  0x401,  0x403,  0x40A,  0x40C,  0x40D,  0x410,  0x451,
    0x453,  0x45A,  0x45C,  0x45D,  0x490,  0x491,  0x496,  0x497,  0x4A2,  0x4A3,  0x4AE,  0x4AF,
    0x4BA,  0x4BB,  0x4D8,  0x4D9,  0x4E8,  0x4E9,  0x1D00, 0x1D25, 0x1D6B, 0x1D77, 0x1D79, 0x1D9A,
    0x1E00, 0x1EFF, 0x2C60, 0x2C7B, 0x2C7E, 0x2C7F, 0xA722, 0xA76F, 0xA771, 0xA787, 0xA78B, 0xA78E,
    0xA790, 0xA7B9, 0xA7FA, 0xA7FA, 0xAB30, 0xAB5A, 0xAB60, 0xAB64, 0xFF21, 0xFF3A, 0xFF41, 0xFF5A,
};

static bool is_uncased(uint32_t c, tg_spacy_rules rules) {
    if (rules == TG_SPACY_CURRENT && c >= 0x3040 && c <= 0x30FF) return true;
    return c >= 0x591 && tg_unicode_in_ranges(uncased, COUNT(uncased) / 2, c);
}

static bool is_cased(uint32_t c) {
    return tg_unicode_in_ranges(cased, COUNT(cased) / 2, c);
}

bool tg_spacy_alpha(uint32_t c, tg_spacy_rules rules) {
    if (c < 0x80) return (c | 32) >= 'a' && (c | 32) <= 'z';
    return is_cased(c) || is_uncased(c, rules);
}

bool tg_spacy_lower(uint32_t c, tg_spacy_rules rules) {
    if (c < 0x80) return c >= 'a' && c <= 'z';
    return (is_cased(c) && c != 0x3A2 && (tg_py_islower(c) || c == 0x294)) || is_uncased(c, rules);
}

bool tg_spacy_upper(uint32_t c, tg_spacy_rules rules) {
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    return (is_cased(c) && (tg_py_isupper(c) || c == 0x3A2)) || is_uncased(c, rules);
}

static bool one_of(const uint32_t *list, size_t n, uint32_t c) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == c) return true;
    return false;
}

bool tg_spacy_quote(uint32_t c, tg_spacy_rules rules) {
    static const uint32_t list[] = {'\'',   '"',    0x201D, 0x201C, '`',    0x2018, 0xB4,   0x2019,
                                    0x201A, ',',    0x201E, 0xBB,   0xAB,   0x300C, 0x300D, 0x300E,
                                    0x300F, 0xFF08, 0xFF09, 0x3014, 0x3015, 0x3010, 0x3011, 0x300A,
                                    0x300B, 0x3008, 0x3009, 0x2329, 0x232A, 0x27E6, 0x27E7};
    return one_of(list, COUNT(list) - (rules == TG_SPACY_3_0 ? 4 : 0), c);
}

static bool is_punct(uint32_t c) {
    static const uint32_t list[] = {
        0x2026, ',',    ':',    ';',    '!',    '?',  0xBF,  0x61F, 0xA1,  '(',    ')',    '[',
        ']',    '{',    '}',    '<',    '>',    '_',  '#',   '*',   '&',   0x3002, 0xFF1F, 0xFF01,
        0xFF0C, 0x3001, 0xFF1B, 0xFF1A, 0xFF5E, 0xB7, 0x964, 0x60C, 0x6D4, 0x61B,  0x66A};
    return one_of(list, COUNT(list), c);
}

static bool is_currency(uint32_t c, tg_spacy_rules rules) {
    if (rules == TG_SPACY_CURRENT && c >= 0x20A0 && c <= 0x20BF) return true;
    return c == '$' || c == 0xA3 || c == 0x20AC || c == 0xA5 || c == 0xE3F || c == 0x20BD ||
           c == 0xFDFC || c == 0x20B4;
}

bool tg_spacy_icon(uint32_t c) {
    return c >= 0xA6 && tg_unicode_in_ranges(tg_spacy_icons, tg_spacy_n_icons, c);
}

static bool digit(uint32_t c) {
    return c >= '0' && c <= '9';
}

/* ---- prefixes and suffixes --------------------------------------------------------------------- */

static size_t dots(const uint32_t *c, size_t n) {
    size_t k = 0;
    while (k < n && c[k] == '.') k++;
    return k >= 2 ? k : 0;
}

static bool loose(uint32_t c, tg_spacy_rules rules) { /* stands alone at either end of a word */
    return is_punct(c) || tg_spacy_quote(c, rules) || tg_spacy_icon(c) || c == 0x2014 ||
           c == 0x2013;
}

size_t tg_spacy_prefix(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    if (!n) return 0;
    if (loose(c[0], rules) || c[0] == 0xA7 || c[0] == '%' || c[0] == '=') return 1;
    if (c[0] == '+') return n == 1 || !digit(c[1]);
    if (is_currency(c[0], rules)) return 1;
    if (n > 2 && c[0] == 'U' && c[1] == 'S' && c[2] == '$') return 3;
    if (n > 1 && (c[0] == 'C' || c[0] == 'A') && c[1] == '$') return 2;
    return dots(c, n);
}

/* The longest unit at the end that a digit stands before. */
static size_t unit(const uint32_t *c, size_t n) {
    size_t best = 0;
    for (const char *u = tg_spacy_units; *u;) {
        size_t bytes = strcspn(u, " "), len = 0, k = 0, step;
        for (size_t i = 0; i < bytes; i += step, len++) tg_py_point(u + i, bytes - i, &step);
        if (len > best && len < n && digit(c[n - len - 1])) {
            size_t i = 0;
            while (i < bytes && tg_py_point(u + i, bytes - i, &step) == c[n - len + k])
                i += step, k++;
            if (i == bytes) best = len;
        }
        u += bytes + (u[bytes] == ' ');
    }
    return best;
}

static bool ends_sentence(uint32_t before, tg_spacy_rules rules) {
    return digit(before) || tg_spacy_lower(before, rules) || is_punct(before) ||
           tg_spacy_quote(before, rules) || before == '%' || before == 0xB2 || before == '-' ||
           before == '+' || before == '|';
}

static size_t full_stop(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    size_t k = 0;
    while (k < n && c[n - 1 - k] == '.') k++;
    if (k != 1) return k;
    if (n >= 2 && ends_sentence(c[n - 2], rules)) return 1;
    if (n < 3) return 0;
    if (c[n - 3] == 0xB0 && memchr("FfCcKk", (int)(c[n - 2] & 0x7F), 6) && c[n - 2] < 0x80)
        return 1;
    return tg_spacy_upper(c[n - 3], rules) && tg_spacy_upper(c[n - 2], rules);
}

size_t tg_spacy_suffix(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    if (!n) return 0;
    uint32_t last = c[n - 1], before = n > 1 ? c[n - 2] : 0;
    if (last == '.') return full_stop(c, n, rules);
    if ((last == 's' || last == 'S') && (before == '\'' || before == 0x2019)) return 2;
    if (last == 0x2026) return before == 0x2026 ? 2 : 1;
    if (n > 1 && is_currency(last, rules)) {
        if (last == '$' && n > 3 && c[n - 3] == 'U' && before == 'S' && digit(c[n - 4])) return 3;
        if (last == '$' && n > 2 && (before == 'C' || before == 'A') && digit(c[n - 3])) return 2;
        if (digit(before)) return 1;
    }
    size_t len = unit(c, n);
    if (len) return len;
    return loose(last, rules) || (last == '+' && digit(before));
}

/* ---- infixes ----------------------------------------------------------------------------------- */

static size_t hyphens(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    size_t most = c[0] == '-' ? 3 : c[0] == 0x2014 ? 2 : c[0] == 0x2013 || c[0] == '~' ? 1 : 0;
    for (size_t k = 1; k <= most && k < n && c[k - 1] == c[0]; k++)
        if (tg_spacy_alpha(c[k], rules)) return k;
    return 0;
}

static size_t infix_at(const uint32_t *c, size_t n, size_t i, tg_spacy_rules rules) {
    uint32_t now = c[i];
    if (now == '.' && dots(c + i, n - i)) return dots(c + i, n - i);
    if (now == 0x2026 || tg_spacy_icon(now)) return 1;
    if (!i || i + 1 >= n) return 0;
    uint32_t prev = c[i - 1], next = c[i + 1];
    if (now == '+' || now == '-' || now == '*' || now == '^')
        if (digit(prev) && (digit(next) || next == '-')) return 1;
    if (now == '.')
        return (tg_spacy_lower(prev, rules) || tg_spacy_quote(prev, rules)) &&
               (tg_spacy_upper(next, rules) || tg_spacy_quote(next, rules));
    if (now == ',') return tg_spacy_alpha(prev, rules) && tg_spacy_alpha(next, rules);
    if (!digit(prev) && !tg_spacy_alpha(prev, rules)) return 0;
    if (now == ':' || now == '<' || now == '>' || now == '=' || now == '/')
        return tg_spacy_alpha(next, rules);
    return hyphens(c + i, n - i, rules);
}

bool tg_spacy_infix(const uint32_t *c, size_t n, size_t from, tg_spacy_rules rules, size_t *begin,
                    size_t *end) {
    for (size_t i = from; i < n; i++) {
        size_t len = infix_at(c, n, i, rules);
        if (!len) continue;
        *begin = i, *end = i + len;
        return true;
    }
    return false;
}

/* ---- URLs -------------------------------------------------------------------------------------- */

static bool label_char(uint32_t c) {
    return digit(c) || (c < 0x80 && tg_spacy_alpha(c, TG_SPACY_3_0)) || (c >= 0xA1 && c <= 0xFFFF);
}

/* What may follow a host: a port and a path, to the end. */
static bool rest(const uint32_t *c, size_t n) {
    size_t i = 0;
    if (n && c[0] == ':') {
        for (i = 1; i < n && digit(c[i]);) i++;
        if (i < 3 || i > 6) return false;
    }
    return i == n || c[i] == '/' || c[i] == '?' || c[i] == '#';
}

/* Four numbers of an address that is neither private nor reserved. */
static bool address(const uint32_t *c, size_t n) {
    unsigned v[4];
    size_t i = 0;
    for (int k = 0; k < 4; k++) {
        if (k && (i == n || c[i++] != '.')) return false;
        size_t start = i;
        for (v[k] = 0; i < n && digit(c[i]) && i - start < 4; i++) v[k] = v[k] * 10 + (c[i] - '0');
        size_t digits = i - start;
        bool zero = digits && c[start] == '0';
        if (!digits || digits > 3 || v[k] > 255) return false;
        if ((k == 0 || k == 3) && zero) return false;
        if (digits == 3 && zero) return false;
    }
    if (v[0] > 223 || v[3] > 254 || v[0] == 10 || v[0] == 127) return false;
    if ((v[0] == 169 && v[1] == 254) || (v[0] == 192 && v[1] == 168)) return false;
    if (v[0] == 172 && v[1] >= 16 && v[1] <= 31) return false;
    return rest(c + i, n - i);
}

static bool host(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    size_t at = 0, labels = 0;
    for (;;) {
        size_t end = at;
        while (end < n && (label_char(c[end]) || c[end] == '_' || c[end] == '-')) end++;
        if (end == n || c[end] != '.') break;
        if (end == at || end - at > 64 || !label_char(c[at]) || !label_char(c[end - 1]))
            return false;
        labels++, at = end + 1;
    }
    size_t end = at;
    while (end < n && tg_spacy_lower(c[end], rules)) end++;
    return labels && end - at >= 2 && end - at <= 63 && rest(c + end, n - end);
}

static bool from_host(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    if (address(c, n) || host(c, n, rules)) return true;
    for (size_t i = 1; i < n; i++) /* behind a user's name */
        if (c[i] == '@' && (address(c + i + 1, n - i - 1) || host(c + i + 1, n - i - 1, rules)))
            return true;
    return false;
}

bool tg_spacy_url(const uint32_t *c, size_t n, tg_spacy_rules rules) {
    bool dot = false;
    for (size_t i = 0; i < n && !dot; i++) dot = c[i] == '.';
    if (!dot) return false;
    if (from_host(c, n, rules)) return true;
    size_t i = 0;
    while (i < n && (tg_py_isword(c[i]) || c[i] == '+' || c[i] == '-' || c[i] == '.')) i++;
    if (i < 2 || i + 3 > n || c[i] != ':' || c[i + 1] != '/' || c[i + 2] != '/') return false;
    return from_host(c + i + 3, n - i - 3, rules);
}
