/* The arithmetic of ROUGE on word ids. Invariant between calls: all counts by id are 0. One thread at
 * a time; the word table lives as long as the scratch, so a corpus stems each of its words once. */
#include "env-server/metric/rouge.h"

#include "common/base/alloc.h"
#include "env-server/metric/lcs.h"
#include "env-server/metric/matcher.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/porter.h"
#include "env-server/metric/words.h"

#include <stdint.h>
#include <string.h>

enum { MAX_KNOWN = 1 << 20 }; /* words kept from text to text */

/* One text: its words, and where its lines end. */
typedef struct text {
    tg_wids words, ends;
} text;

struct tg_rouge {
    bool stem;
    tg_words spelled, stems; /* spelled word -> stem_of -> stem */
    tg_wids stem_of;
    text hyp, ref;
    tg_matcher matcher;
    tg_lcs lcs;
    char *word;
    size_t cap_word;
    uint32_t *left_hyp, *left_ref; /* by stem: occurrences not yet hit */
    size_t cap_left;
    uint8_t *mask;
    size_t cap_mask;
};

static const char *const names[TG_ROUGE_TYPES] = {"rouge1", "rouge2", "rougeL", "rougeLsum"};

const char *tg_rouge_name(tg_rouge_type type) {
    return names[type];
}

int tg_rouge_find(const char *name) {
    for (int i = 0; i < TG_ROUGE_TYPES; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

tg_status tg_rouge_create(tg_rouge **out, bool stem, tg_error *err) {
    *out = tg_alloc(sizeof **out);
    if (!*out) return tg_fail_nomem(err, sizeof **out);
    (*out)->stem = stem;
    return TG_OK;
}

void tg_rouge_destroy(tg_rouge **out) {
    tg_rouge *r = *out;
    if (!r) return;
    tg_words_fini(&r->spelled);
    tg_words_fini(&r->stems);
    tg_wids_fini(&r->stem_of);
    for (int i = 0; i < 2; i++) {
        tg_wids_fini(i ? &r->hyp.words : &r->ref.words);
        tg_wids_fini(i ? &r->hyp.ends : &r->ref.ends);
    }
    tg_matcher_fini(&r->matcher);
    tg_lcs_fini(&r->lcs);
    tg_free(r->word);
    tg_free(r->left_hyp);
    tg_free(r->left_ref);
    tg_free(r->mask);
    tg_free(r);
    *out = NULL;
}

/* The id of the stem of word[0 .. n); UINT32_MAX when it has none. */
static uint32_t stem_id(tg_rouge *r, size_t n) {
    size_t known = r->spelled.count;
    uint32_t spelled = tg_words_id(&r->spelled, r->word, n);
    if (spelled < known) return r->stem_of.v[spelled];
    if (r->stem && n > 3) n = tg_porter_stem(r->word, n, TG_PORTER_NLTK);
    uint32_t id = n ? tg_words_id(&r->stems, r->word, n) : UINT32_MAX;
    tg_wids_push(&r->stem_of, id);
    return id;
}

/* The character of [a-z0-9] that text[0] is in lower case, else 0; *bytes gets its length. Beside
 * ASCII, str.lower() makes such letters only of the Kelvin sign and of the dotted capital I (whose
 * dot becomes a character of its own: *dotted). */
static char lower_alnum(const unsigned char *t, size_t len, size_t *bytes, bool *dotted) {
    *bytes = 1;
    unsigned char c = t[0];
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return (char)c;
    if (c >= 'A' && c <= 'Z') return (char)(c + 32);
    if (c < 0xC4) return 0;
    if (c == 0xC4 && len > 1 && t[1] == 0xB0) {
        *bytes = 2, *dotted = true;
        return 'i';
    }
    if (c == 0xE2 && len > 2 && t[1] == 0x84 && t[2] == 0xAA) {
        *bytes = 3;
        return 'k';
    }
    return 0;
}

static void end_word(tg_rouge *r, text *out, size_t *n) {
    if (!*n) return;
    uint32_t id = stem_id(r, *n);
    if (id != UINT32_MAX) tg_wids_push(&out->words, id);
    *n = 0;
}

static tg_status read_text(tg_rouge *r, const char *from, size_t len, text *out, tg_error *err) {
    tg_wids_reset(&out->words);
    tg_wids_reset(&out->ends);
    if (len + 2 > r->cap_word) {
        char *word = tg_realloc_array(r->word, len + 2, 1);
        if (!word) return tg_fail_nomem(err, len);
        r->word = word, r->cap_word = len + 2;
    }
    size_t n = 0, bytes;
    for (size_t i = 0; i < len; i += bytes) {
        bool dotted = false;
        char c = lower_alnum((const unsigned char *)from + i, len - i, &bytes, &dotted);
        if (c) r->word[n++] = c;
        if (!c || dotted) end_word(r, out, &n);
        if (from[i] == '\n') tg_wids_push(&out->ends, (uint32_t)out->words.n);
    }
    end_word(r, out, &n);
    tg_wids_push(&out->ends, (uint32_t)out->words.n);
    if (r->spelled.failed || r->stems.failed || r->stem_of.failed || out->words.failed ||
        out->ends.failed)
        return tg_fail_nomem(err, len);
    return TG_OK;
}

tg_status tg_rouge_prediction(tg_rouge *r, const char *from, size_t len, tg_error *err) {
    if (r->spelled.count > MAX_KNOWN) {
        tg_words_reset(&r->spelled);
        tg_words_reset(&r->stems);
        tg_wids_reset(&r->stem_of);
    }
    tg_status st = read_text(r, from, len, &r->hyp, err);
    if (st == TG_OK) tg_matcher_hypothesis(&r->matcher, r->hyp.words.v, r->hyp.words.n, 2);
    return st;
}

static tg_prf prf(uint64_t hits, uint64_t n_hyp, uint64_t n_ref) {
    tg_prf s = {(double)hits / (double)(n_hyp ? n_hyp : 1),
                (double)hits / (double)(n_ref ? n_ref : 1), 0};
    if (s.precision + s.recall > 0) s.f = 2 * s.precision * s.recall / (s.precision + s.recall);
    return s;
}

/* Marks the words of a reference line that belong to an LCS with any line of the prediction. */
static bool mark_line(tg_rouge *r, const uint32_t *line, size_t n, uint8_t *mask) {
    size_t start = 0;
    memset(mask, 0, n);
    for (size_t k = 0; k < r->hyp.ends.n; k++) {
        size_t end = r->hyp.ends.v[k];
        if (!tg_lcs_mark(&r->lcs, line, n, r->hyp.words.v + start, end - start, r->stems.count,
                         mask))
            return false;
        start = end;
    }
    return true;
}

static bool reserve(tg_rouge *r) {
    size_t ids = r->stems.count, n = r->ref.words.n;
    if (n > r->cap_mask) {
        uint8_t *mask = tg_realloc_array(r->mask, n, 1);
        if (!mask) return false;
        r->mask = mask, r->cap_mask = n;
    }
    if (ids <= r->cap_left) return true;
    size_t cap = ids + ids / 2 + 256;
    uint32_t *hyp = tg_alloc_array(cap, sizeof *hyp), *ref = tg_alloc_array(cap, sizeof *ref);
    if (!hyp || !ref) {
        tg_free(hyp);
        tg_free(ref);
        return false;
    }
    tg_free(r->left_hyp);
    tg_free(r->left_ref);
    r->left_hyp = hyp, r->left_ref = ref, r->cap_left = cap;
    return true;
}

/* Hits of the union LCS, where a word counts at most as often as both texts have it. */
static bool union_hits(tg_rouge *r, uint64_t *hits) {
    const text *hyp = &r->hyp, *ref = &r->ref;
    *hits = 0;
    if (!reserve(r)) return false;
    for (size_t i = 0; i < hyp->words.n; i++) r->left_hyp[hyp->words.v[i]]++;
    for (size_t i = 0; i < ref->words.n; i++) r->left_ref[ref->words.v[i]]++;
    size_t start = 0;
    bool ok = true;
    for (size_t k = 0; k < ref->ends.n && ok; k++) {
        size_t n = ref->ends.v[k] - start;
        ok = mark_line(r, ref->words.v + start, n, r->mask);
        for (size_t i = 0; i < n && ok; i++) {
            uint32_t id = ref->words.v[start + i];
            if (!r->mask[i] || !r->left_hyp[id] || !r->left_ref[id]) continue;
            ++*hits;
            r->left_hyp[id]--, r->left_ref[id]--;
        }
        start += n;
    }
    for (size_t i = 0; i < hyp->words.n; i++) r->left_hyp[hyp->words.v[i]] = 0;
    for (size_t i = 0; i < ref->words.n; i++) r->left_ref[ref->words.v[i]] = 0;
    return ok;
}

tg_status tg_rouge_score(tg_rouge *r, const char *reference, size_t len, tg_prf out[TG_ROUGE_TYPES],
                         tg_error *err) {
    tg_status st = read_text(r, reference, len, &r->ref, err);
    if (st != TG_OK) return st;
    const tg_wids *hyp = &r->hyp.words, *ref = &r->ref.words;
    uint64_t match[2], hits = 0;
    size_t lcs = 0;
    tg_matcher_reference(&r->matcher, ref->v, ref->n, match);
    if (r->matcher.failed ||
        !tg_lcs_length(&r->lcs, ref->v, ref->n, hyp->v, hyp->n, r->stems.count, &lcs))
        return tg_fail_nomem(err, len);
    /* With one line each, the union LCS is the LCS. */
    if (r->hyp.ends.n == 1 && r->ref.ends.n == 1)
        hits = lcs;
    else if (!union_hits(r, &hits))
        return tg_fail_nomem(err, len);
    out[TG_ROUGE_1] = prf(match[0], hyp->n, ref->n);
    out[TG_ROUGE_2] = prf(match[1], tg_ngrams_of(hyp->n, 2), tg_ngrams_of(ref->n, 2));
    out[TG_ROUGE_L] = prf(lcs, hyp->n, ref->n);
    out[TG_ROUGE_LSUM] = prf(hits, hyp->n, ref->n);
    return TG_OK;
}

tg_status tg_rouge_best(tg_rouge *r, const char *const *references, size_t n,
                        tg_prf out[TG_ROUGE_TYPES], tg_error *err) {
    for (size_t i = 0; i < n; i++) {
        tg_prf s[TG_ROUGE_TYPES];
        tg_status st = tg_rouge_score(r, references[i], strlen(references[i]), s, err);
        if (st != TG_OK) return st;
        for (int t = 0; t < TG_ROUGE_TYPES; t++)
            if (i == 0 || s[t].f > out[t].f) out[t] = s[t];
    }
    return TG_OK;
}
