/* Tokenisers as chains of rewriting passes from one buffer to the other, as the
 * regular expressions of the original do it, so that overlapping rules agree.
 * Bytes of characters above ASCII count as characters that are no digits and no
 * punctuation, which those rules cannot tell from the whole. One thread at a
 * time. */
#include "env-server/metric/bleu_text.h"

#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <limits.h>
#include <string.h>

#include <utf8proc.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const char *const names[TG_TOK_COUNT] = {"none", "13a", "intl", "char", "zh"};

tg_bleu_tok tg_bleu_tok_find(const char *name) {
    int i = 0;
    while (i < TG_TOK_COUNT && strcmp(names[i], name) != 0) i++;
    return (tg_bleu_tok)i;
}

void tg_bleu_text_fini(tg_bleu_text *t) {
    tg_buf_fini(&t->now);
    tg_buf_fini(&t->next);
    tg_buf_fini(&t->lower);
}

size_t tg_bleu_text_rstrip(const char *text, size_t len) {
    while (len > 0) {
        size_t at = len, n;
        do at--;
        while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
        if (!tg_py_isspace(tg_py_char(text + at, len - at, &n)) || at + n != len) break;
        len = at;
    }
    return len;
}

/* Room for the next pass to write at most max bytes; NULL: out of memory. */
static char *begin(tg_bleu_text *t, size_t max) {
    tg_buf_reset(&t->next);
    char *to = tg_buf_reserve(&t->next, max + 1);
    if (!to) t->now.failed = true;
    return to;
}

static void end(tg_bleu_text *t, const char *written) {
    t->next.len = (size_t)(written - t->next.data);
    tg_buf swap = t->now;
    t->now = t->next, t->next = swap;
}

void tg_bleu_text_replace(tg_bleu_text *t, const char *from, const char *to) {
    size_t n_from = strlen(from), n_to = strlen(to);
    const char *at = t->now.data, *stop = at + t->now.len, *hit;
    if (!t->now.len || !(hit = memmem(at, t->now.len, from, n_from))) return;
    size_t grown = n_to > n_from ? t->now.len / n_from * (n_to - n_from) : 0;
    char *w = begin(t, t->now.len + grown);
    if (!w) return;
    for (; hit; hit = memmem(at, (size_t)(stop - at), from, n_from)) {
        memcpy(w, at, (size_t)(hit - at));
        w += hit - at;
        memcpy(w, to, n_to);
        w += n_to;
        at = hit + n_from;
    }
    memcpy(w, at, (size_t)(stop - at));
    end(t, w + (stop - at));
}

/* Of ASCII: is it in {-~ [-` !-& (-+ :-@ / ? */
static const char symbol[129] = "................................"
                                ".xxxxxx.xxxx...x..........xxxxxx"
                                "x..........................xxxxx"
                                "x..........................xxxx.";

void tg_bleu_text_symbols(tg_bleu_text *t) {
    const unsigned char *in = (const unsigned char *)t->now.data;
    size_t n = t->now.len;
    char *w = begin(t, 3 * n);
    if (!w) return;
    /* The original also puts spaces around a space, which changes nothing. */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = in[i];
        if (c < 0x80 && symbol[c] == 'x') {
            *w++ = ' ', *w++ = (char)c, *w++ = ' ';
        } else
            *w++ = (char)c;
    }
    end(t, w);
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
    char *w = begin(t, 2 * t->now.len);
    if (!w) return;
    for (const char *p = next_point(from, stop); p < stop; p = next_point(p + 1, stop)) {
        if (p == from || is_digit(p[-1])) continue;
        w = copy(w, from, p);
        *w++ = ' ', *w++ = *p, *w++ = ' ';
        from = p + 1;
    }
    end(t, copy(w, from, stop));
}

/* ([.,])([^0-9]) -> space \1 space \2 */
static void point_before_other(tg_bleu_text *t) {
    const char *from = t->now.data, *stop = from + t->now.len;
    char *w = begin(t, 2 * t->now.len);
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
    end(t, copy(w, from, stop));
}

/* ([0-9])(-) -> \1 space \2 space */
static void dash_after_digit(tg_bleu_text *t) {
    const char *from = t->now.data, *stop = from + t->now.len, *p = from;
    char *w = begin(t, 2 * t->now.len);
    if (!w) return;
    for (; (p = memchr(p, '-', (size_t)(stop - p))); p++) {
        if (p == from || !is_digit(p[-1])) continue;
        w = copy(w, from, p);
        *w++ = ' ', *w++ = '-', *w++ = ' ';
        from = p + 1;
    }
    end(t, copy(w, from, stop));
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
    char *w = begin(t, 3 * n);
    if (!w) return;
    for (size_t i = 0; i < n; i += bytes) {
        bool alone = is(tg_py_char(in + i, n - i, &bytes));
        if (alone) *w++ = ' ';
        memcpy(w, in + i, bytes);
        w += bytes;
        if (alone) *w++ = ' ';
    }
    end(t, w);
}

/* ---- intl
 * -----------------------------------------------------------------------------------
 */

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
    char *w = begin(t, 3 * n);
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
    end(t, w);
}

/* ---- zh
 * -------------------------------------------------------------------------------------
 */

/* sacrebleu's ranges. Two of them are given there as five-digit escapes of
 * four-digit syntax and thus mean U+2001..U+2A6D and U+2F81..U+2FA1. */
static bool is_chinese(uint32_t c) {
    static const uint32_t ranges[] = {
        0x2001, 0x2A6D, 0x2E80, 0x2EFF, 0x2F00, 0x2FDF, 0x2FF0, 0x303F, 0x3100, 0x312F, 0x31A0,
        0x31BF, 0x31C0, 0x31EF, 0x3200, 0x33FF, 0x3400, 0x4DB5, 0x4E00, 0x9FBB, 0xF900, 0xFA2D,
        0xFA30, 0xFA6A, 0xFA70, 0xFAD9, 0xFE10, 0xFE1F, 0xFE30, 0xFE4F, 0xFF00, 0xFFEF};
    return IN(ranges, c);
}

static bool is_any(uint32_t c) {
    (void)c;
    return true;
}

/* What a tokeniser does to the text in t->now. */
static void apply(tg_bleu_text *t, tg_bleu_tok tok) {
    if (tok == TG_TOK_13A)
        tg_bleu_text_western(t);
    else if (tok == TG_TOK_INTL) {
        punctuation(t, false);
        punctuation(t, true);
        if (has_symbols(t)) tg_bleu_text_isolate(t, is_unicode_symbol);
    } else if (tok == TG_TOK_CHAR)
        tg_bleu_text_isolate(t, is_any);
    else if (tok == TG_TOK_ZH) {
        tg_bleu_text_isolate(t, is_chinese);
        tg_bleu_text_western(t);
    }
}

/* 13a's first rules, the only ones that see more than a word: what mteval wrote around texts is taken back. */
static bool needs_unescaping(const char *text, size_t len) {
    if (!len) return false;
    const char *line = memchr(text, '\n', len);
    return memchr(text, '&', len) || memmem(text, len, "<skipped>", 9) ||
           (line && memmem(text, len, "-\n", 2));
}

static void unescape(tg_bleu_text *t) {
    tg_bleu_text_replace(t, "<skipped>", "");
    tg_bleu_text_replace(t, "-\n", "");
    tg_bleu_text_replace(t, "\n", " ");
    tg_bleu_text_replace(t, "&quot;", "\"");
    tg_bleu_text_replace(t, "&amp;", "&");
    tg_bleu_text_replace(t, "&lt;", "<");
    tg_bleu_text_replace(t, "&gt;", ">");
}

static bool to_lower(tg_bleu_text *t, const char **text, size_t *len) {
    tg_buf_reset(&t->lower);
    tg_py_lower(&t->lower, *text, *len);
    *text = t->lower.data, *len = t->lower.len;
    return !t->lower.failed;
}

static bool cut(tg_bleu_text *t, tg_bleu_tok tok, const char *text, size_t len) {
    tg_buf_reset(&t->now);
    if (!len) return true;
    len = tg_bleu_text_rstrip(text, len);
    for (size_t n; tok == TG_TOK_ZH && len && tg_py_isspace(tg_py_char(text, len, &n)); len -= n)
        text += n;
    if (tok == TG_TOK_13A) tg_buf_putc(&t->now, ' ');
    tg_buf_append(&t->now, text, len);
    if (tok == TG_TOK_13A) {
        tg_buf_putc(&t->now, ' ');
        if (needs_unescaping(text, len)) unescape(t);
    }
    apply(t, tok);
    return !t->now.failed && !t->next.failed;
}

bool tg_bleu_text_cut(tg_bleu_text *t, tg_bleu_tok tok, bool lowercase, const char *text,
                      size_t len) {
    return (!lowercase || to_lower(t, &text, &len)) && cut(t, tok, text, len);
}

/* ---- word by word ------------------------------------------------------------------------------- */

/* No rule of 13a and intl looks beyond the white space around a word, so that a text can be cut word by word. Most words
 * need no rule at all, or lose the mark at their end. For each ASCII character: 'a' no rule is about it, '0' a
 * digit, 'p' is cut off at the end of a word; all others '.'. */
static const char kinds_13a[129] = "................................"
                                   ".......a....p.p.0000000000......"
                                   ".aaaaaaaaaaaaaaaaaaaaaaaaaa....."
                                   ".aaaaaaaaaaaaaaaaaaaaaaaaaa.....";
static const char kinds_intl[129] = "................................"
                                    ".ppp.pppppp.pppp0000000000pp...p"
                                    "paaaaaaaaaaaaaaaaaaaaaaaaaappp.p"
                                    ".aaaaaaaaaaaaaaaaaaaaaaaaaap.p..";

/* Of the first 16 bytes, the lowest is bit 0: which are no letters or digits of ASCII? */
static inline unsigned not_alnum(const char *word) {
#ifdef __SSE2__
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)word);
    __m128i letter = _mm_sub_epi8(_mm_or_si128(x, _mm_set1_epi8(0x20)), _mm_set1_epi8('a')),
            digit = _mm_sub_epi8(x, _mm_set1_epi8('0'));
    __m128i is = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter),
                              _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit));
    return ~(unsigned)_mm_movemask_epi8(is);
#else
    (void)word;
    return UINT_MAX;
#endif
}

/* How many bytes of the word stand as they are; 0: the rules are needed. `readable`: bytes from the word on. */
static inline size_t plain_bytes(const char *kinds, const char *word, size_t n, size_t readable,
                                 bool last) {
    if (n <= 16 && readable >= 16 && !(not_alnum(word) & ((1u << n) - 1))) return n;
    size_t i = 0;
    char kind = 'a', before = 'a';
    for (; i < n && kind != 'p' && kind != '.'; i++) {
        unsigned char c = (unsigned char)word[i];
        before = kind, kind = c < 0x80 ? kinds[c] : '.';
    }
    if (kind == '.' || i < n) return 0;
    if (kind != 'p') return n;
    if (n == 1) return 1;
    /* intl: at the end of the text a mark behind a digit stays */
    return before == '0' && last ? n : n - 1;
}

static bool words_of(tg_bleu_text *t, tg_bleu_tok tok, const char *text, size_t len,
                     tg_words *words, tg_wids *out) {
    bool intl = tok == TG_TOK_INTL;
    const char *kinds = intl ? kinds_intl : kinds_13a, *stop = text + len, *word;
    size_t n;
    for (tg_py_walk walk = tg_py_words(text, len); tg_py_next(&walk, &word, &n);) {
        bool last = intl && word + n == stop;
        size_t readable = (size_t)(stop - word),
               plain = plain_bytes(kinds, word, n, readable, last);
        if (!plain) {
            tg_buf_reset(&t->now);
            if (!intl || word > text) tg_buf_putc(&t->now, ' ');
            tg_buf_append(&t->now, word, n);
            if (!last) tg_buf_putc(&t->now, ' ');
            apply(t, tok);
            tg_words_split(words, t->now.data, t->now.len, out);
            continue;
        }
        tg_wids_push(out, tg_words_id_in(words, word, plain, readable));
        if (plain < n) tg_wids_push(out, tg_words_id_in(words, word + plain, 1, readable - plain));
    }
    return !t->now.failed && !t->next.failed && !words->failed && !out->failed;
}

bool tg_bleu_text_words(tg_bleu_text *t, tg_bleu_tok tok, bool lowercase, const char *text,
                        size_t len, tg_words *words, tg_wids *out) {
    if (lowercase && !to_lower(t, &text, &len)) return false;
    if (tok == TG_TOK_INTL || (tok == TG_TOK_13A && !needs_unescaping(text, len)))
        return words_of(t, tok, text, tg_bleu_text_rstrip(text, len), words, out);
    if (!cut(t, tok, text, len)) return false;
    tg_words_split(words, t->now.data, t->now.len, out);
    return !words->failed && !out->failed;
}
