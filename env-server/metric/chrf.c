/* Counting of character n-grams by sorting: the n-grams of the largest order of both texts, as packed numbers, are sorted in
 * one list; then the n-grams of every order stand in runs of equal beginnings, and one walk counts the matches of
 * all orders. Texts with so many different characters that an n-gram does not fit into 60 bits, and orders above 8, go through the n-gram
 * trie. One thread at a time. */
#include "env-server/metric/chrf.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGIT = 10, MAX_BITS = 60, MAX_DIGITS = MAX_BITS / MAX_DIGIT + 1, LANES = 8 };

void tg_chrf_fini(tg_chrf *c) {
    for (int i = 0; i < 2; i++) {
        struct tg_chrf_side *s = i ? &c->hyp : &c->ref;
        tg_buf_fini(&s->lower);
        tg_wids_fini(&s->chars);
        tg_wids_fini(&s->words);
    }
    tg_free(c->keys);
    tg_free(c->spare);
    tg_wids_fini(&c->dense);
    tg_words_fini(&c->letters);
    tg_words_fini(&c->vocabulary);
    tg_matcher_fini(&c->matcher);
    tg_ngrams_fini(&c->char_grams);
    memset(c, 0, sizeof *c);
}

/* ---- texts to numbers ---------------------------------------------------------------------------- */

/* Numbers are given in order of appearance, one count for ASCII and the others.
 */
static uint32_t letter(tg_chrf *c, const char *at, size_t n, uint32_t code) {
    if (code < 128) {
        if (!c->ascii[code]) c->ascii[code] = (uint16_t)++c->n_letters;
        return c->ascii[code];
    }
    size_t known = c->letters.count;
    uint32_t id = tg_words_id(&c->letters, at, n);
    if (c->letters.count > known) tg_wids_push(&c->dense, ++c->n_letters);
    return c->letters.failed || c->dense.failed ? 1 : c->dense.v[id];
}

/* The characters of an ASCII text; false: it is none. */
static bool read_ascii(tg_chrf *c, const char *text, size_t len, bool whitespace, tg_wids *out) {
    uint8_t seen[256] = {0};
    const unsigned char *from = (const unsigned char *)text;
    for (size_t i = 0; i < len; i++) seen[from[i]] = 1;
    for (size_t k = 128; k < 256; k++)
        if (seen[k]) return false;
    for (uint32_t k = 0; k < 128; k++)
        if (seen[k] && !c->ascii[k] && (whitespace || !tg_py_isspace(k)))
            c->ascii[k] = (uint16_t)++c->n_letters;
    uint32_t *to = out->v; /* a space has no number, and is written over */
    for (size_t i = 0; i < len; i++) {
        uint16_t id = c->ascii[from[i]];
        *to = id;
        to += id > 0;
    }
    out->n = (size_t)(to - out->v);
    return true;
}

static void read_chars(tg_chrf *c, const char *text, size_t len, bool whitespace, tg_wids *out) {
    size_t n;
    tg_wids_reset(out);
    if (!tg_wids_reserve(out, len + 1) || read_ascii(c, text, len, whitespace, out)) return;
    uint32_t *to = out->v;
    for (size_t i = 0; i < len; i += n) {
        uint32_t code = tg_py_char(text + i, len - i, &n);
        if (whitespace || !tg_py_isspace(code)) *to++ = letter(c, text + i, n, code);
    }
    out->n = (size_t)(to - out->v);
}

static bool is_punctuation(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

/* A word that ends, or else begins, with ASCII punctuation is cut there, once.
 */
static void read_words(tg_chrf *c, const char *text, size_t len, tg_wids *out) {
    size_t n, first;
    const char *w;
    tg_wids_reset(out);
    for (tg_py_walk walk = tg_py_words(text, len); tg_py_next(&walk, &w, &n);) {
        tg_py_char(w, n, &first);
        size_t cut = first == n                 ? 0
                     : is_punctuation(w[n - 1]) ? n - 1
                     : is_punctuation(w[0])     ? 1
                                                : 0;
        size_t readable = (size_t)(text + len - w);
        if (cut) tg_wids_push(out, tg_words_id_in(&c->vocabulary, w, cut, readable));
        tg_wids_push(out, tg_words_id_in(&c->vocabulary, w + cut, n - cut, readable - cut));
    }
}

static void read_side(tg_chrf *c, const tg_chrf_options *o, const char *text, size_t len,
                      struct tg_chrf_side *side) {
    if (o->lowercase) {
        tg_buf_reset(&side->lower);
        tg_py_lower(&side->lower, text, len);
        text = side->lower.data, len = side->lower.len;
        c->failed |= side->lower.failed;
    }
    read_chars(c, text, len, o->whitespace, &side->chars);
    if (o->word_order) read_words(c, text, len, &side->words);
    c->failed |= side->chars.failed || side->words.failed || c->letters.failed || c->dense.failed ||
                 c->vocabulary.failed;
}

/* ---- character n-grams by sorting --------------------------------------------------------------- */

static unsigned bits_for(uint32_t largest) {
    unsigned bits = 1;
    while (largest >> bits) bits++;
    return bits;
}

static bool reserve_keys(tg_chrf *c, size_t n) {
    if (n <= c->cap) return true;
    size_t cap = n + n / 2 + 64;
    uint64_t *keys = tg_realloc_array(c->keys, cap, sizeof *keys);
    if (keys) c->keys = keys;
    uint64_t *spare = tg_realloc_array(c->spare, cap, sizeof *spare);
    if (spare) c->spare = spare;
    if (!keys || !spare) return false;
    c->cap = cap;
    return true;
}

/* By the bits above the lowest, least significant digit first; all histograms come from one reading. The digits are as
 * wide as it takes for few passes, and no wider. */
static void sort_keys(tg_chrf *c, size_t n, unsigned bits) {
    uint32_t count[MAX_DIGITS][1 << MAX_DIGIT];
    unsigned digits = (bits + MAX_DIGIT - 1) / MAX_DIGIT, width = (bits + digits - 1) / digits;
    size_t radix = (size_t)1 << width, mask = radix - 1;
    for (unsigned d = 0; d < digits; d++) memset(count[d], 0, radix * sizeof count[d][0]);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < digits; d++) count[d][c->keys[i] >> (1 + d * width) & mask]++;
    for (unsigned d = 0; d < digits; d++) {
        uint32_t sum = 0, *at = count[d];
        for (size_t k = 0; k < radix; k++) {
            uint32_t here = at[k];
            at[k] = sum;
            sum += here;
        }
        const uint64_t *from = c->keys;
        uint64_t *to = c->spare;
        for (size_t i = 0; i < n; i++) to[at[from[i] >> (1 + d * width) & mask]++] = from[i];
        c->spare = c->keys, c->keys = to;
    }
}

/* Every place of the text starts an n-gram of the largest order; behind the end stand zeros. The side is the lowest bit. */
static void write_keys(const tg_wids *chars, unsigned order, unsigned bits, uint64_t side,
                       uint64_t *keys) {
    uint64_t window =
        0; /* it moves to the left: the new character becomes the most significant one */
    for (size_t i = chars->n; i-- > 0;) {
        window = window >> bits | (uint64_t)chars->v[i] << (order - 1) * bits;
        keys[i] = window << 1 | side;
    }
}

/* Numbers of four orders beside each other; LANES in two of them. */
typedef int32_t four __attribute__((vector_size(16)));

/* Neighbours in the sorted list share their first characters, which ends the runs of the orders beyond. The smaller of the
 * counts h and r of a run is a match: (h + r - |h - r|) / 2, where all h + r together are n. */
static void count_runs(const uint64_t *keys, size_t n, unsigned order, unsigned bits,
                       uint64_t *match) {
    static const four index[2] = {{0, 1, 2, 3}, {4, 5, 6, 7}}; /* order - 1 */
    four more[2] = {{0}}, apart[2] = {{0}}; /* h - r of the run, sum of |h - r| of those before */
    int32_t common[64]; /* equal leading characters of two keys, by the highest bit that differs */
    common[0] = LANES;  /* that bit is the side */
    for (unsigned b = 1; b < 64; b++)
        common[b] = b <= order * bits ? (int32_t)(order - 1 - (b - 1) / bits) : 0;
    uint64_t last = n ? keys[0] : 0;
    for (size_t i = 0; i < n; i++) {
        int32_t same = common[63 - __builtin_clzll((keys[i] ^ last) | 1)],
                side = 1 - 2 * (int32_t)(keys[i] & 1);
        last = keys[i];
        for (int v = 0; v < 2; v++) {
            four goes_on = index[v] < same, ended = more[v] & ~goes_on, sign = ended >> 31;
            apart[v] += (ended ^ sign) - sign;
            more[v] = (more[v] & goes_on) + side;
        }
    }
    for (unsigned k = 0; k < order; k++)
        match[k] =
            (n - (uint64_t)apart[k / 4][k % 4] - (uint64_t)labs((long)more[k / 4][k % 4])) / 2;
}

/* Equal endings shorter than an order were counted as if they were n-grams of it. */
static void drop_endings(const tg_wids *h, const tg_wids *r, unsigned order, uint64_t *match) {
    for (unsigned k = 1; k < order && k <= h->n && k <= r->n; k++) {
        if (h->v[h->n - k] != r->v[r->n - k]) return;
        for (unsigned n = k; n < order; n++) match[n]--;
    }
}

static void match_chars(tg_chrf *c, unsigned order, unsigned bits, uint64_t *match) {
    const tg_wids *hyp = &c->hyp.chars, *ref = &c->ref.chars;
    size_t n = hyp->n + ref->n;
    if (order <= LANES && order * bits <= MAX_BITS && n < INT32_MAX) {
        if (!reserve_keys(c, n)) {
            c->failed = true;
            return;
        }
        write_keys(hyp, order, bits, 0, c->keys);
        write_keys(ref, order, bits, 1, c->keys + hyp->n);
        sort_keys(c, n, order * bits);
        count_runs(c->keys, n, order, bits, match);
        drop_endings(hyp, ref, order, match);
        return;
    }
    tg_ngrams *g = &c->char_grams;
    tg_ngrams_reset(g);
    tg_ngrams_add(g, hyp->v, hyp->n, order, TG_NGRAM_HYP);
    tg_ngrams_add(g, ref->v, ref->n, order, TG_NGRAM_REF);
    tg_ngrams_match(g, order, match);
    c->failed |= g->failed;
}

/* ---- scores -------------------------------------------------------------------------------------- */

static void fill(tg_chrf_stats *s, size_t at, unsigned order, size_t n_hyp, size_t n_ref) {
    s->ref[at] = tg_ngrams_of(n_ref, order);
    s->hyp[at] = s->ref[at] ? tg_ngrams_of(n_hyp, order) : 0; /* none counts without a reference */
}

static void count_reference(tg_chrf *c, const tg_chrf_options *o, tg_chrf_stats *s) {
    unsigned chars = (unsigned)o->char_order, words = (unsigned)o->word_order;
    memset(s, 0, sizeof *s);
    match_chars(c, chars, bits_for(c->n_letters), s->match);
    for (unsigned n = 1; n <= chars; n++) fill(s, n - 1, n, c->hyp.chars.n, c->ref.chars.n);
    if (!words) return;
    tg_matcher_reference(&c->matcher, c->ref.words.v, c->ref.words.n, s->match + chars);
    for (unsigned n = 1; n <= words; n++) fill(s, chars + n - 1, n, c->hyp.words.n, c->ref.words.n);
    c->failed |= c->matcher.failed;
}

double tg_chrf_score(const tg_chrf_options *o, const tg_chrf_stats *s) {
    const double eps = 1e-16, factor = (double)(o->beta * o->beta);
    double score = 0, precision = 0, recall = 0;
    int64_t effective = 0, order = o->char_order + o->word_order;
    for (int64_t i = 0; i < order; i++) {
        double p = s->hyp[i] ? (double)s->match[i] / (double)s->hyp[i] : eps;
        double r = s->ref[i] ? (double)s->match[i] / (double)s->ref[i] : eps;
        double below = factor * p + r;
        score += below > 0 ? (1 + factor) * p * r / below : eps;
        if (!s->hyp[i] || !s->ref[i]) continue;
        precision += p, recall += r;
        effective++;
    }
    if (o->eps_smoothing) return 100 * score / (double)order;
    if (!effective) return 0;
    precision /= (double)effective, recall /= (double)effective;
    if (precision + recall == 0) return 0;
    score = (1 + factor) * precision * recall;
    score /= factor * precision + recall;
    return 100 * score;
}

void tg_chrf_add(tg_chrf_stats *sum, const tg_chrf_stats *one) {
    for (int i = 0; i < TG_CHRF_ORDERS; i++) {
        sum->hyp[i] += one->hyp[i];
        sum->ref[i] += one->ref[i];
        sum->match[i] += one->match[i];
    }
}

tg_status tg_chrf_count(tg_chrf *c, const tg_chrf_options *o, const char *text, size_t len,
                        const tg_sample *sample, tg_chrf_stats *out, tg_error *err) {
    double best = -1;
    tg_wids_reset(&c->dense);
    tg_words_reset(&c->letters);
    tg_words_reset(&c->vocabulary);
    memset(c->ascii, 0, sizeof c->ascii);
    c->n_letters = 0;
    read_side(c, o, text, len, &c->hyp);
    if (o->word_order)
        tg_matcher_hypothesis(&c->matcher, c->hyp.words.v, c->hyp.words.n, (unsigned)o->word_order);
    for (size_t i = 0; i < sample->n_references && !c->failed; i++) {
        tg_chrf_stats s;
        read_side(c, o, sample->references[i], strlen(sample->references[i]), &c->ref);
        if (c->failed) break;
        count_reference(c, o, &s);
        double f = tg_chrf_score(o, &s);
        if (f > best) best = f, *out = s;
    }
    return c->failed ? tg_fail_nomem(err, len) : TG_OK;
}
