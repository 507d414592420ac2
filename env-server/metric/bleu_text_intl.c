/* The rules of intl: spaces around punctuation and symbols, by Unicode's categories. */
#include "common/text/unicode.h"
#include "env-server/metric/bleu_text_impl.h"
#include "env-server/reward/pytext.h"

#include <string.h>

#include <utf8proc.h>

/* What Unicode 15.1 to 17.0 added to utf8proc's 15.0. */
static const uint32_t new_punctuation[] = {
    0x1B4E,  0x1B4F,  0x1B7F,  0x1B7F,  0x2E60,  0x2E63,  0x10D6E, 0x10D6E, 0x10ED0, 0x10ED0,
    0x113D4, 0x113D5, 0x113D7, 0x113D8, 0x11BE1, 0x11BE1, 0x16D6D, 0x16D6F, 0x1E5FF, 0x1E5FF};
static const uint32_t new_symbols[] = {
    0x20C1,  0x20C4,  0x2427,  0x2429,  0x2B96,  0x2B96,  0x2FFC,  0x2FFF,  0x31E4,  0x31E5,
    0x31EF,  0x31EF,  0xFBC3,  0xFBD2,  0xFD90,  0xFD91,  0xFDC8,  0xFDCE,  0x10D8E, 0x10D8F,
    0x10EC9, 0x10ECA, 0x10ED1, 0x10ED8, 0x1CC00, 0x1CCEF, 0x1CCFA, 0x1CCFC, 0x1CD00, 0x1CEB3,
    0x1CEBA, 0x1CED0, 0x1CED2, 0x1CED4, 0x1CEDD, 0x1CEFD, 0x1D1EB, 0x1D1FF, 0x1D253, 0x1D25A,
    0x1D25D, 0x1D25E, 0x1D260, 0x1D27F, 0x1DB00, 0x1DB1C, 0x1F1AE, 0x1F1AE, 0x1F6D8, 0x1F6D9,
    0x1F777, 0x1F77A, 0x1F7DA, 0x1F7DB, 0x1F7F1, 0x1F7FF, 0x1F8B2, 0x1F8BB, 0x1F8C0, 0x1F8C1,
    0x1F8D0, 0x1F8D8, 0x1FA54, 0x1FA57, 0x1FA89, 0x1FA8F, 0x1FABE, 0x1FABE, 0x1FAC6, 0x1FAC6,
    0x1FAC8, 0x1FAC8, 0x1FACC, 0x1FACD, 0x1FADC, 0x1FADD, 0x1FADF, 0x1FADF, 0x1FAE9, 0x1FAEB,
    0x1FAEF, 0x1FAEF, 0x1FAF9, 0x1FAFA, 0x1FBCB, 0x1FBEF, 0x1FBFA, 0x1FBFA};
static const uint32_t new_numbers[] = {0x10D40, 0x10D49, 0x116D0, 0x116E3, 0x11BF0, 0x11BF9,
                                       0x11DE0, 0x11DE9, 0x1246F, 0x1246F, 0x12475, 0x1247F,
                                       0x12550, 0x12686, 0x16130, 0x16139, 0x16D70, 0x16D79,
                                       0x16FF4, 0x16FF6, 0x1CCF0, 0x1CCF9, 0x1E5F1, 0x1E5FA};
#define IN(table, c) tg_unicode_in_ranges(table, sizeof table / sizeof *table / 2, c)

static const char ascii_category[129] = "................................"
                                        ".PPPSPPPPPPSPPPPNNNNNNNNNNPPSSSP"
                                        "P..........................PPPSP"
                                        "S..........................PSPS.";

/* First letter of the category: 'P', 'S', 'N', or '.' for all others. */
static char category(uint32_t c) {
    if (c < 0x80) return ascii_category[c];
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return 'P';
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return 'S';
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return 'N';
    case UTF8PROC_CATEGORY_CN:
        return IN(new_punctuation, c) ? 'P'
               : IN(new_symbols, c)   ? 'S'
               : IN(new_numbers, c)   ? 'N'
                                      : '.';
    default: return '.';
    }
}

/* Of the character at text[0]; ASCII is decided here. */
static inline char category_at(const char *text, size_t len, size_t *bytes) {
    unsigned char c = (unsigned char)text[0];
    *bytes = 1;
    return c < 0x80 ? ascii_category[c] : category(tg_py_char(text, len, bytes));
}

static bool is_unicode_symbol(uint32_t c) {
    return category(c) == 'S';
}

/* How many ASCII characters from in[0] on are of another category: most of a text, which is copied as it is. */
static inline size_t others(const char *in, size_t n, char category) {
    size_t i = 0;
    while (i < n && (unsigned char)in[i] < 0x80 && ascii_category[(unsigned char)in[i]] != category)
        i++;
    return i;
}

static bool has_symbols(const tg_bleu_text *t) {
    return others(t->now.data, t->now.len, 'S') < t->now.len;
}

/* A character that is no number and punctuation behind it: a space before and
 * behind the latter. With `before`, punctuation and a character behind it that
 * is no number: around the former. */
static void punctuation(tg_bleu_text *t, bool before) {
    const char *in = t->now.data;
    size_t n = t->now.len, i = 0, a, b;
    char *w = tg_bleu_text_begin(t, 3 * n);
    if (!w) return;
    while (i < n) {
        /* Nothing happens before the next mark; without `before`, the character in front of it counts too. */
        size_t run = others(in + i, n - i, 'P');
        if (!before && run) run--;
        if (run) {
            memcpy(w, in + i, run);
            w += run, i += run;
            if (i == n) break;
        }
        char first = category_at(in + i, n - i, &a), second = '.';
        bool two = i + a < n;
        if (two) second = category_at(in + i + a, n - i - a, &b);
        bool hit = two && (before ? first == 'P' && second != 'N' : first != 'N' && second == 'P');
        if (hit && before) *w++ = ' ';
        memcpy(w, in + i, a);
        w += a, i += a;
        if (!hit) continue;
        *w++ = ' ';
        memcpy(w, in + i, b);
        w += b, i += b;
        if (!before) *w++ = ' ';
    }
    tg_bleu_text_end(t, w);
}

void tg_bleu_text_intl(tg_bleu_text *t) {
    punctuation(t, false);
    punctuation(t, true);
    if (has_symbols(t)) tg_bleu_text_isolate(t, is_unicode_symbol);
}
