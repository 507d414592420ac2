/* A text cut word by word, without a pass over the whole where none is needed. */
#include "env-server/metric/bleu_text_impl.h"
#include "env-server/reward/pytext.h"

#include <limits.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
            tg_bleu_text_apply(t, tok);
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
    if (lowercase && !tg_bleu_text_lower(t, &text, &len)) return false;
    if (tok == TG_TOK_INTL || (tok == TG_TOK_13A && !tg_bleu_text_is_escaped(text, len)))
        return words_of(t, tok, text, tg_bleu_text_rstrip(text, len), words, out);
    if (!tg_bleu_text_cut(t, tok, false, text, len)) return false;
    tg_words_split(words, t->now.data, t->now.len, out);
    return !words->failed && !out->failed;
}
