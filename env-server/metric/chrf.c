/* Counting of character n-grams by sorting: the n-grams of the largest order,
 * as packed numbers, are sorted once per text; then the n-grams of every order
 * stand in runs of equal prefixes, and one walk over both sorted lists counts
 * the matches of all orders. Texts with so many different characters that an
 * n-gram does not fit into 64 bits go through the n-gram trie. One thread at a
 * time. */
#include "env-server/metric/chrf.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <math.h>
#include <string.h>

enum { DIGIT = 9, RADIX = 1 << DIGIT, MAX_DIGITS = 8 };
enum { MAX_WORDS = 20000 }; /* that keep their numbers over the samples */

void tg_chrf_fini(tg_chrf *c) {
    for (int i = 0; i < 2; i++) {
        struct tg_chrf_side *s = i ? &c->hyp : &c->ref;
        tg_buf_fini(&s->lower);
        tg_wids_fini(&s->chars);
        tg_wids_fini(&s->words);
        tg_free(s->keys);
        tg_free(s->spare);
    }
    tg_wids_fini(&c->dense);
    tg_words_fini(&c->letters);
    tg_words_fini(&c->vocabulary);
    tg_ngrams_fini(&c->grams);
    tg_ngrams_fini(&c->char_grams);
    memset(c, 0, sizeof *c);
}

/* ---- texts to numbers
 * ------------------------------------------------------------------------- */

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

static void read_chars(tg_chrf *c, const char *text, size_t len, bool whitespace, tg_wids *out) {
    size_t n;
    tg_wids_reset(out);
    if (!tg_wids_reserve(out, len)) return;
    uint32_t *to = out->v;
    for (size_t i = 0; i < len; i += n) {
        unsigned char first = (unsigned char)text[i];
        if (first > ' ' && first < 0x80) { /* no space, and nearly all there is */
            if (!c->ascii[first]) c->ascii[first] = (uint16_t)++c->n_letters;
            *to++ = c->ascii[first];
            n = 1;
            continue;
        }
        uint32_t code = tg_py_char(text + i, len - i, &n);
        if (!whitespace && tg_py_isspace(code)) continue;
        *to++ = letter(c, text + i, n, code);
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
    size_t pos = 0, n, first;
    const char *w;
    tg_wids_reset(out);
    while (tg_words_next(text, len, &pos, &w, &n)) {
        tg_py_char(w, n, &first);
        size_t cut = first == n                 ? 0
                     : is_punctuation(w[n - 1]) ? n - 1
                     : is_punctuation(w[0])     ? 1
                                                : 0;
        if (cut) tg_wids_push(out, tg_words_id(&c->vocabulary, w, cut));
        tg_wids_push(out, tg_words_id(&c->vocabulary, w + cut, n - cut));
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

/* ---- character n-grams by sorting
 * --------------------------------------------------------------- */

static unsigned bits_for(uint32_t largest) {
    unsigned bits = 1;
    while (largest >> bits) bits++;
    return bits;
}

static bool reserve_keys(struct tg_chrf_side *s, size_t n) {
    if (n <= s->cap) return true;
    size_t cap = n + n / 2 + 64;
    uint64_t *keys = tg_realloc_array(s->keys, cap, sizeof *keys);
    if (keys) s->keys = keys;
    uint64_t *spare = tg_realloc_array(s->spare, cap, sizeof *spare);
    if (spare) s->spare = spare;
    if (!keys || !spare) return false;
    s->cap = cap;
    return true;
}

/* Least significant digit first; all histograms come from one reading. */
static void sort_keys(struct tg_chrf_side *s, size_t n, unsigned bits) {
    uint32_t count[MAX_DIGITS][RADIX];
    unsigned digits = (bits + DIGIT - 1) / DIGIT;
    memset(count, 0, digits * sizeof count[0]);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < digits; d++) count[d][s->keys[i] >> (d * DIGIT) & (RADIX - 1)]++;
    for (unsigned d = 0; d < digits; d++) {
        uint32_t sum = 0;
        for (unsigned k = 0; k < RADIX; k++) {
            uint32_t here = count[d][k];
            count[d][k] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            s->spare[count[d][s->keys[i] >> (d * DIGIT) & (RADIX - 1)]++] = s->keys[i];
        uint64_t *swap = s->keys;
        s->keys = s->spare, s->spare = swap;
    }
}

/* Every place of the text starts an n-gram of the largest order; behind the end
 * stand zeros. */
static void write_keys(const tg_wids *chars, unsigned order, unsigned bits, uint64_t *keys) {
    size_t n = chars->n;
    uint64_t window = 0, mask = order * bits == 64 ? UINT64_MAX : ((uint64_t)1 << order * bits) - 1;
    for (size_t i = n; i-- > 0;) {
        /* the window moves to the left: the new character becomes the most
     * significant one */
        window = window >> bits | (uint64_t)chars->v[i] << (order - 1) * bits;
        keys[i] = window & mask;
    }
}

static bool make_keys(struct tg_chrf_side *s, unsigned order, unsigned bits) {
    if (!reserve_keys(s, s->chars.n)) return false;
    write_keys(&s->chars, order, bits, s->keys);
    sort_keys(s, s->chars.n, order * bits);
    return true;
}

/* Equal leading characters of two keys, by the highest bit that differs. */
static void common_characters(unsigned order, unsigned bits, uint8_t *common) {
    for (unsigned b = 0; b < 64; b++)
        common[b] = (uint8_t)(b < order * bits ? order - 1 - b / bits : 0);
}

/* The n-grams of both texts in one sorted list, the side as lowest bit: what a single reference needs. */
static bool match_sorted(tg_chrf *c, unsigned order, unsigned bits, uint64_t *match) {
    struct tg_chrf_side *s = &c->hyp;
    size_t n_h = c->hyp.chars.n, n = n_h + c->ref.chars.n, count[2] = {0};
    size_t run[TG_CHRF_CHARS][2] = {{0}};
    uint8_t common[64];
    if (!reserve_keys(s, n)) return false;
    write_keys(&c->hyp.chars, order, bits, s->keys);
    write_keys(&c->ref.chars, order, bits, s->keys + n_h);
    for (size_t i = 0; i < n; i++) s->keys[i] = s->keys[i] << 1 | (i >= n_h);
    sort_keys(s, n, order * bits + 1);
    common_characters(order, bits, common);
    uint64_t last = n ? ~(s->keys[0] >> 1) : 0;
    for (size_t i = 0; i <= n; i++) {
        uint64_t key = i < n ? s->keys[i] >> 1 : ~last, differs = key ^ last;
        if (differs) {
            unsigned high = 63 - (unsigned)__builtin_clzll(differs);
            for (unsigned k = i == n || high >= 64 ? 0 : common[high]; k < order; k++) {
                size_t in_h = count[0] - run[k][0], in_r = count[1] - run[k][1];
                match[k] += in_h < in_r ? in_h : in_r;
                run[k][0] = count[0], run[k][1] = count[1];
            }
        }
        last = key;
        if (i < n) count[s->keys[i] & 1]++;
    }
    return true;
}

/* Matches of all orders; runs end where neighbours in the merged order differ.
 */
static void merge(const struct tg_chrf_side *h, const struct tg_chrf_side *r, unsigned order,
                  unsigned bits, uint64_t *match) {
    size_t i = 0, j = 0, n_h = h->chars.n, n_r = r->chars.n;
    size_t run_h[TG_CHRF_CHARS] = {0}, run_r[TG_CHRF_CHARS] = {0};
    uint8_t common[64];
    common_characters(order, bits, common);
    uint64_t last = 0;
    for (;;) {
        bool from_h = i < n_h && (j == n_r || h->keys[i] <= r->keys[j]), any = from_h || j < n_r;
        uint64_t key = !any ? 0 : from_h ? h->keys[i] : r->keys[j];
        unsigned same = !any || i + j == 0 ? 0
                        : key == last      ? order
                                           : common[63 - __builtin_clzll(key ^ last)];
        for (unsigned k = same; k < order; k++) {
            size_t in_h = i - run_h[k], in_r = j - run_r[k];
            match[k] += in_h < in_r ? in_h : in_r;
            run_h[k] = i, run_r[k] = j;
        }
        if (!any) return;
        last = key;
        if (from_h)
            i++;
        else
            j++;
    }
}

/* Equal endings shorter than an order were counted as if they were n-grams of
 * it. */
static void drop_endings(const tg_wids *h, const tg_wids *r, unsigned order, uint64_t *match) {
    for (unsigned k = 1; k < order && k <= h->n && k <= r->n; k++) {
        if (h->v[h->n - k] != r->v[r->n - k]) return;
        for (unsigned n = k; n < order; n++) match[n]--;
    }
}

static void match_chars(tg_chrf *c, unsigned order, unsigned bits, bool single, bool *hyp_ready,
                        uint64_t *match) {
    memset(match, 0, order * sizeof *match);
    if (single && order * bits < 63 && order * bits < DIGIT * MAX_DIGITS) {
        c->failed |= !match_sorted(c, order, bits, match);
        drop_endings(&c->hyp.chars, &c->ref.chars, order, match);
        return;
    }
    if (order * bits <= 64 && order * bits <= DIGIT * MAX_DIGITS) {
        if ((!*hyp_ready && !make_keys(&c->hyp, order, bits)) || !make_keys(&c->ref, order, bits)) {
            c->failed = true;
            return;
        }
        *hyp_ready = true;
        merge(&c->hyp, &c->ref, order, bits, match);
        drop_endings(&c->hyp.chars, &c->ref.chars, order, match);
        return;
    }
    tg_ngrams *g = &c->char_grams;
    tg_ngrams_reset(g);
    tg_ngrams_add(g, c->hyp.chars.v, c->hyp.chars.n, order, TG_NGRAM_HYP);
    tg_ngrams_meet(g, c->ref.chars.v, c->ref.chars.n, order);
    tg_ngrams_fold(g);
    tg_ngrams_match(g, order, match);
    c->failed |= g->failed;
}

/* ---- scores
 * -----------------------------------------------------------------------------------
 */

static void fill(tg_chrf_stats *s, size_t at, unsigned order, size_t n_hyp, size_t n_ref) {
    s->ref[at] = tg_ngrams_of(n_ref, order);
    s->hyp[at] = s->ref[at] ? tg_ngrams_of(n_hyp, order) : 0; /* none counts without a reference */
}

static void count_reference(tg_chrf *c, const tg_chrf_options *o, unsigned bits, bool single,
                            bool *hyp_ready, tg_chrf_stats *s) {
    unsigned chars = (unsigned)o->char_order, words = (unsigned)o->word_order;
    memset(s, 0, sizeof *s);
    if (chars) match_chars(c, chars, bits, single, hyp_ready, s->match);
    for (unsigned n = 1; n <= chars; n++) fill(s, n - 1, n, c->hyp.chars.n, c->ref.chars.n);
    if (!words) return;
    tg_ngrams_meet(&c->grams, c->ref.words.v, c->ref.words.n, words);
    tg_ngrams_fold(&c->grams);
    tg_ngrams_match(&c->grams, words, s->match + chars);
    tg_ngrams_forget(&c->grams);
    for (unsigned n = 1; n <= words; n++) fill(s, chars + n - 1, n, c->hyp.words.n, c->ref.words.n);
    c->failed |= c->grams.failed;
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
    bool hyp_ready = false;
    unsigned had = 0;
    tg_wids_reset(&c->dense);
    tg_words_reset(&c->letters);
    if (c->vocabulary.count > MAX_WORDS) tg_words_reset(&c->vocabulary);
    tg_ngrams_reset(&c->grams);
    memset(c->ascii, 0, sizeof c->ascii);
    c->n_letters = 0;
    read_side(c, o, text, len, &c->hyp);
    if (o->word_order)
        tg_ngrams_add(&c->grams, c->hyp.words.v, c->hyp.words.n, (unsigned)o->word_order,
                      TG_NGRAM_HYP);
    for (size_t i = 0; i < sample->n_references && !c->failed; i++) {
        tg_chrf_stats s;
        read_side(c, o, sample->references[i], strlen(sample->references[i]), &c->ref);
        unsigned bits = bits_for(c->n_letters);
        if (bits != had) hyp_ready = false; /* keys of another width do not compare */
        had = bits;
        count_reference(c, o, bits, sample->n_references == 1, &hyp_ready, &s);
        double f = tg_chrf_score(o, &s);
        if (f > best) best = f, *out = s;
    }
    return c->failed ? tg_fail_nomem(err, len) : TG_OK;
}
