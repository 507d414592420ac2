/* py-rouge's ROUGE-L on word ids. Invariant between calls: all counts by id are 0. One thread at a time.
 *
 * Its words are what NLTK's word tokeniser makes of lower-case letters, digits and spaces: words
 * between spaces, with gimme, gonna, gotta, lemme and wanna in two parts; "cannot" is kept whole by
 * writing it "_cannot_" meanwhile. */
#include "env-server/metric/pyrouge.h"

#include "common/base/alloc.h"
#include "env-server/metric/lcs.h"
#include "env-server/metric/porter.h"
#include "env-server/metric/words.h"
#include "env-server/reward/pytext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    tg_wids words, ends; /* ends: where each sentence ends */
} text;

struct tg_pyrouge {
    tg_pyrouge_options o;
    tg_words words;
    text hyp, ref;
    tg_lcs lcs;
    char *word; /* room for one word with its marks */
    size_t cap_word;
    uint32_t *left; /* by id: occurrences in the hypothesis not yet hit */
    size_t cap_left;
    uint8_t *mask;
    size_t cap_mask;
};

struct exception {
    const char *word, *base;
};
static const struct exception exceptions[] = {
#include "env-server/metric/exceptions.inc"
};

tg_status tg_pyrouge_check(const tg_pyrouge_options *o, tg_error *err) {
    if (o->ensure_compatibility) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "rouge_l_max: ensure_compatibility: false is known but not built into this "
                   "version; leave it out, or set it to true");
}

tg_status tg_pyrouge_create(tg_pyrouge **out, const tg_pyrouge_options *o, tg_error *err) {
    *out = tg_alloc(sizeof **out);
    if (!*out) return tg_fail_nomem(err, sizeof **out);
    (*out)->o = *o;
    return TG_OK;
}

void tg_pyrouge_destroy(tg_pyrouge **out) {
    tg_pyrouge *p = *out;
    if (!p) return;
    tg_words_fini(&p->words);
    for (int i = 0; i < 2; i++) {
        tg_wids_fini(i ? &p->hyp.words : &p->ref.words);
        tg_wids_fini(i ? &p->hyp.ends : &p->ref.ends);
    }
    tg_lcs_fini(&p->lcs);
    tg_free(p->word);
    tg_free(p->left);
    tg_free(p->mask);
    tg_free(p);
    *out = NULL;
}

/* ---- words -------------------------------------------------------------------------------------- */

static int by_word(const void *key, const void *row) {
    return strcmp(key, ((const struct exception *)row)->word);
}

/* Replaces every `from` in the NUL-terminated word; there is room. */
static size_t substitute(char *word, size_t n, const char *from, const char *to) {
    size_t n_from = strlen(from), n_to = strlen(to);
    for (char *at = word; (at = strstr(at, from)); at += n_to) {
        memmove(at + n_to, at + n_from, n - (size_t)(at - word) - n_from + 1);
        memcpy(at, to, n_to);
        n += n_to - n_from;
    }
    return n;
}

/* One token: its base form becomes a word of the text. */
static void add_token(tg_pyrouge *p, text *out, size_t n) {
    char *w = p->word;
    w[n] = 0;
    if (p->o.stemming && n > 3) {
        const struct exception *e = bsearch(w, exceptions, sizeof exceptions / sizeof *exceptions,
                                            sizeof *exceptions, by_word);
        if (e) {
            tg_wids_push(&out->words, tg_words_id(&p->words, e->base, strlen(e->base)));
            return;
        }
        n = tg_porter_stem(w, n, TG_PORTER_ORIGINAL);
        w[n] = 0;
    }
    n = substitute(w, n, "_cannot_", "cannot");
    if (n) tg_wids_push(&out->words, tg_words_id(&p->words, w, n));
}

static void add_word(tg_pyrouge *p, text *out, size_t n) {
    static const char *const contracted[] = {"gimme", "gonna", "gotta", "lemme", "wanna"};
    if (!n) return;
    p->word[n] = 0;
    for (size_t i = 0; n == 5 && i < 5; i++)
        if (!memcmp(p->word, contracted[i], 5)) {
            add_token(p, out, 3);
            memcpy(p->word, contracted[i] + 3, 2);
            add_token(p, out, 2);
            return;
        }
    add_token(p, out, substitute(p->word, n, "cannot", "_cannot_"));
}

/* A sentence: characters other than letters and digits part words. Beside ASCII, str.lower() makes such
 * letters of the Kelvin sign and of the dotted capital I. */
static void add_sentence(tg_pyrouge *p, text *out, const char *s, size_t len) {
    size_t n = 0, bytes;
    for (size_t i = 0; i < len; i += bytes) {
        uint32_t c = tg_py_char(s + i, len - i, &bytes);
        if (c >= 'A' && c <= 'Z') c += 32;
        bool dotted = c == 0x130;
        c = c == 0x212A ? 'k' : dotted ? 'i' : c;
        bool part = !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'));
        if (!part) p->word[n++] = (char)c;
        if (part || dotted) add_word(p, out, n), n = 0;
    }
    add_word(p, out, n);
    tg_wids_push(&out->ends, (uint32_t)out->words.n);
}

/* ---- the length limit ----------------------------------------------------------------------------- */

static void strip(const char **s, size_t *len) {
    size_t n;
    while (*len && tg_py_isspace(tg_py_char(*s, *len, &n))) *s += n, *len -= n;
    for (size_t at = *len; at > 0; *len = at) {
        do at--;
        while (at > 0 && ((unsigned char)(*s)[at] & 0xC0) == 0x80);
        if (!tg_py_isspace(tg_py_char(*s + at, *len - at, &n))) break;
    }
}

/* How many units the sentence has; *cut gets the bytes of its first `most` units. */
static int64_t measure(const char *s, size_t len, bool words, int64_t most, size_t *cut) {
    int64_t units = 0;
    size_t pos = 0, n;
    const char *word;
    *cut = most > 0 ? len : 0;
    if (words) {
        for (tg_py_walk walk = tg_py_words(s, len); tg_py_next(&walk, &word, &n);)
            if (++units == most) *cut = (size_t)(word + n - s);
        return units;
    }
    for (; pos < len; pos += n) {
        tg_py_char(s + pos, len - pos, &n);
        if (++units == most) *cut = pos + n;
    }
    return units;
}

static tg_status read_text(tg_pyrouge *p, const char *from, size_t len, text *out, tg_error *err) {
    bool limited = p->o.limit_length && p->o.length_limit > 0,
         words = !strcmp(p->o.length_limit_type, "words");
    int64_t used = 0;
    tg_wids_reset(&out->words);
    tg_wids_reset(&out->ends);
    if (2 * len + 16 > p->cap_word) {
        char *word = tg_realloc_array(p->word, 2 * len + 16, 1);
        if (!word) return tg_fail_nomem(err, len);
        p->word = word, p->cap_word = 2 * len + 16;
    }
    for (const char *at = from, *stop = from + len, *line_end; at;
         at = line_end ? line_end + 1 : NULL) {
        line_end = memchr(at, '\n', (size_t)(stop - at));
        const char *s = at;
        size_t n = (size_t)((line_end ? line_end : stop) - at), cut;
        if (limited) {
            strip(&s, &n);
            int64_t units = measure(s, n, words, p->o.length_limit - used, &cut);
            if (used + units >= p->o.length_limit) {
                add_sentence(p, out, s, cut);
                break;
            }
            used += units;
        }
        add_sentence(p, out, s, n);
    }
    return p->words.failed || out->words.failed || out->ends.failed ? tg_fail_nomem(err, len)
                                                                    : TG_OK;
}

/* ---- scores ------------------------------------------------------------------------------------- */

static bool reserve(tg_pyrouge *p) {
    if (p->ref.words.n > p->cap_mask) {
        uint8_t *mask = tg_realloc_array(p->mask, p->ref.words.n, 1);
        if (!mask) return false;
        p->mask = mask, p->cap_mask = p->ref.words.n;
    }
    if (p->words.count <= p->cap_left) return true;
    size_t cap = 2 * p->words.count + 256;
    uint32_t *left = tg_alloc_array(cap, sizeof *left);
    if (!left) return false;
    tg_free(p->left);
    p->left = left, p->cap_left = cap;
    return true;
}

/* Words of the union LCS. The original means to count down the reference's words too, but counts down
 * by position, so only the hypothesis limits the hits. */
static bool union_hits(tg_pyrouge *p, uint64_t *hits) {
    const text *hyp = &p->hyp, *ref = &p->ref;
    *hits = 0;
    if (!reserve(p)) return false;
    for (size_t i = 0; i < hyp->words.n; i++) p->left[hyp->words.v[i]]++;
    bool ok = true;
    for (size_t k = 0, start = 0; k < ref->ends.n && ok; start = ref->ends.v[k++]) {
        size_t n = ref->ends.v[k] - start;
        const uint32_t *line = ref->words.v + start;
        if (n) memset(p->mask, 0, n);
        for (size_t j = 0, from = 0; j < hyp->ends.n && ok; from = hyp->ends.v[j++])
            ok = tg_lcs_mark(&p->lcs, line, n, hyp->words.v + from, hyp->ends.v[j] - from,
                             p->words.count, p->mask);
        for (size_t i = 0; i < n && ok; i++)
            if (p->mask[i] && p->left[line[i]]) {
                ++*hits;
                p->left[line[i]]--;
            }
    }
    for (size_t i = 0; i < hyp->words.n; i++) p->left[hyp->words.v[i]] = 0;
    return ok;
}

static double f_score(const tg_pyrouge_options *o, uint64_t hits, size_t n_hyp, size_t n_ref) {
    double p = n_hyp ? (double)hits / (double)n_hyp : 0,
           r = n_ref ? (double)hits / (double)n_ref : 0;
    if (o->weight_factor != 1.0) {
        p = pow(p, 1.0 / o->weight_factor);
        r = pow(r, 1.0 / o->weight_factor);
    }
    return r == 0 || p == 0 ? 0 : p * r / ((1 - o->alpha) * p + o->alpha * r);
}

tg_status tg_pyrouge_best(tg_pyrouge *p, const char *from, size_t len, const tg_sample *sample,
                          double *f, tg_error *err) {
    tg_words_reset(&p->words);
    tg_status st = read_text(p, from, len, &p->hyp, err);
    for (size_t i = 0; i < sample->n_references && st == TG_OK; i++) {
        uint64_t hits;
        const char *ref = sample->references[i];
        st = read_text(p, ref, strlen(ref), &p->ref, err);
        if (st == TG_OK && !union_hits(p, &hits)) st = tg_fail_nomem(err, len);
        if (st != TG_OK) break;
        double score = f_score(&p->o, hits, p->hyp.words.n, p->ref.words.n);
        if (i == 0 || score > *f) *f = score;
    }
    return st;
}
