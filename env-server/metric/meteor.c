/* Matching works on word ids: the references' positions of an id form a stack with the last on top,
 * so that each word takes the last free one in constant time, as NLTK's backward search would. */
#include "env-server/metric/meteor.h"

#include "common/base/alloc.h"
#include "env-server/metric/porter.h"
#include "env-server/metric/pyrepr.h"
#include "env-server/metric/pystr.h"
#include "env-server/metric/wordnet.h"

#include <math.h>
#include <string.h>

struct tg_meteor {
    tg_nltk *nltk;
    tg_wordnet *wordnet;
    bool compat;
};

typedef struct tg_meteor_word {
    uint32_t id;
    int64_t match; /* position in the other text, -1: none */
    int64_t below; /* of a reference word: the one below it in its stack */
} word;

tg_status tg_meteor_create(tg_meteor **out, bool compat, tg_error *err) {
    *out = NULL;
    tg_meteor *m = tg_alloc(sizeof *m);
    if (!m) return tg_fail_nomem(err, sizeof *m);
    tg_nltk_rules rules = compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT;
    m->compat = compat;
    tg_status st = tg_nltk_create(&m->nltk, rules, err);
    if (st == TG_OK) st = tg_wordnet_open(&m->wordnet, NULL, rules, err);
    if (st == TG_OK)
        *out = m;
    else
        tg_meteor_destroy(&m);
    return st;
}

void tg_meteor_destroy(tg_meteor **m) {
    if (!*m) return;
    tg_nltk_destroy(&(*m)->nltk);
    tg_wordnet_close(&(*m)->wordnet);
    tg_free(*m);
    *m = NULL;
}

void tg_meteor_work_fini(tg_meteor_work *w) {
    tg_nltk_list_fini(&w->hyp);
    tg_nltk_list_fini(&w->ref);
    tg_words_fini(&w->ids);
    tg_buf_fini(&w->text);
    tg_buf_fini(&w->stems);
    tg_free(w->words);
    tg_free(w->head);
    memset(w, 0, sizeof *w);
}

/* ---- stems ------------------------------------------------------------------------------------- */

/* The stemmer counts bytes, NLTK's characters: beyond ASCII each distinct character of the word is
 * shown to it as one byte. Rules change endings only, so the rest is put back from the word. */
static void stem_wide(tg_buf *out, const char *text, size_t len) {
    size_t at = 0, n = 0, bytes;
    uint32_t seen[64];
    size_t n_seen = 0, begin = out->len;
    char *short_word = tg_buf_reserve(out, 2 * len + 2);
    if (!short_word) return;
    for (; at < len; at += bytes) {
        uint32_t c = tg_py_point(text + at, len - at, &bytes);
        if (c < 0x80) {
            short_word[n++] = (char)c;
            continue;
        }
        size_t k = 0;
        while (k < n_seen && seen[k] != c) k++;
        if (k == n_seen && n_seen < 63) seen[n_seen++] = c;
        short_word[n++] = (char)(0x80 + k);
    }
    size_t stem = tg_porter_stem(short_word, n, TG_PORTER_NLTK), same = 0;
    at = 0;
    for (; same < stem && at < len; same++, at += bytes) {
        uint32_t c = tg_py_point(text + at, len - at, &bytes);
        if (c < 0x80 && (unsigned char)short_word[same] != c) break;
    }
    memmove(short_word + len + 1, short_word + same, stem - same); /* an ASCII ending */
    memcpy(short_word, text, at);
    memmove(short_word + at, short_word + len + 1, stem - same);
    out->len = begin + at + stem - same;
}

static uint32_t stem_id(tg_meteor_work *w, const char *text, size_t len) {
    bool ascii = true;
    for (size_t i = 0; i < len && ascii; i++) ascii = (unsigned char)text[i] < 0x80;
    tg_buf_reset(&w->stems);
    if (!ascii) {
        stem_wide(&w->stems, text, len);
    } else {
        char *to = tg_buf_reserve(&w->stems, len + 2);
        if (to) {
            memcpy(to, text, len);
            w->stems.len = tg_porter_stem(to, len, TG_PORTER_NLTK);
        }
    }
    if (w->stems.failed) {
        w->ids.failed = true;
        return 0;
    }
    return tg_words_id(&w->ids, w->stems.data, w->stems.len);
}

/* ---- matching ---------------------------------------------------------------------------------- */

static bool reserve_words(tg_meteor_work *w, size_t n) {
    if (n <= w->words_cap) return true;
    word *words = tg_realloc_array(w->words, 2 * n, sizeof *words);
    if (!words) return false;
    w->words = words, w->words_cap = 2 * n;
    return true;
}

/* Stacks the free words of the reference, one stack for each id. */
static bool stack_up(tg_meteor_work *w, word *ref, size_t n) {
    if (w->ids.count > w->head_cap) {
        size_t cap = 2 * w->ids.count;
        int64_t *head = tg_realloc_array(w->head, cap, sizeof *head);
        if (!head) return false;
        w->head = head, w->head_cap = cap;
    }
    for (size_t i = 0; i < w->ids.count; i++) w->head[i] = -1;
    for (size_t j = 0; j < n; j++) {
        if (ref[j].match >= 0) continue;
        ref[j].below = w->head[ref[j].id];
        w->head[ref[j].id] = (int64_t)j;
    }
    return true;
}

static size_t take(tg_meteor_work *w, word *hyp, size_t i, word *ref, int64_t j) {
    w->head[ref[j].id] = ref[j].below;
    ref[j].match = (int64_t)i;
    hyp[i].match = j;
    return 1;
}

static size_t match_ids(tg_meteor_work *w, word *hyp, size_t n, word *ref) {
    size_t matches = 0;
    for (size_t i = n; i-- > 0;)
        if (hyp[i].match < 0 && w->head[hyp[i].id] >= 0)
            matches += take(w, hyp, i, ref, w->head[hyp[i].id]);
    return matches;
}

typedef struct synonym {
    const tg_meteor_work *w;
    int64_t best;
} synonym;

static bool visit(void *arg, const char *name, size_t len) {
    synonym *s = arg;
    uint32_t id;
    if (tg_words_find(&s->w->ids, name, len, &id) && s->w->head[id] > s->best)
        s->best = s->w->head[id];
    return true;
}

/* The stems that are left over are looked up, not the words: a synonym is found only where the stem
 * is itself a word, as in NLTK. */
static size_t match_synonyms(const tg_meteor *m, tg_meteor_work *w, word *hyp, size_t n, word *ref,
                             size_t free_refs) {
    size_t matches = 0;
    for (size_t i = n; i-- > 0 && matches < free_refs;) {
        if (hyp[i].match >= 0) continue;
        synonym s = {w, w->head[hyp[i].id]};
        size_t len;
        const char *text = tg_words_text(&w->ids, hyp[i].id, &len);
        tg_wordnet_synonyms(m->wordnet, text, len, visit, &s);
        if (s.best >= 0) matches += take(w, hyp, i, ref, s.best);
    }
    return matches;
}

static void to_ids(tg_meteor_work *w, const tg_nltk_list *l, word *out) {
    for (size_t i = 0; i < l->n; i++)
        out[i] = (word){.id = tg_words_id(&w->ids, tg_nltk_at(l, i), l->words[i].len), .match = -1};
}

static void to_stems(tg_meteor_work *w, const tg_nltk_list *l, word *out) {
    for (size_t i = 0; i < l->n; i++)
        if (out[i].match < 0) out[i].id = stem_id(w, tg_nltk_at(l, i), l->words[i].len);
}

static double score(const word *hyp, size_t n_hyp, size_t n_ref, size_t matches) {
    static const double alpha = 0.9, beta = 3.0, gamma = 0.5;
    if (!matches) return 0;
    size_t chunks = 0;
    int64_t last_hyp = -2, last_ref = -2;
    for (size_t i = 0; i < n_hyp; i++) {
        if (hyp[i].match < 0) continue;
        chunks += (int64_t)i != last_hyp + 1 || hyp[i].match != last_ref + 1;
        last_hyp = (int64_t)i, last_ref = hyp[i].match;
    }
    double precision = (double)matches / (double)n_hyp, recall = (double)matches / (double)n_ref;
    double fmean = (precision * recall) / (alpha * precision + (1 - alpha) * recall);
    double penalty = gamma * pow((double)chunks / (double)matches, beta);
    return (1 - penalty) * fmean;
}

static tg_status align(const tg_meteor *m, tg_meteor_work *w, double *out, tg_error *err) {
    size_t n = w->hyp.n, k = w->ref.n, matches;
    *out = 0;
    if (!n || !k) return TG_OK;
    tg_words_reset(&w->ids);
    if (!reserve_words(w, n + k)) return tg_fail_nomem(err, (n + k) * sizeof(word));
    word *hyp = w->words, *ref = w->words + n;
    to_ids(w, &w->hyp, hyp);
    to_ids(w, &w->ref, ref);
    if (w->ids.failed || !stack_up(w, ref, k)) return tg_fail_nomem(err, k * sizeof(word));
    matches = match_ids(w, hyp, n, ref);
    if (matches < n && matches < k) {
        tg_words_reset(&w->ids); /* stems get ids of their own */
        to_stems(w, &w->hyp, hyp);
        to_stems(w, &w->ref, ref);
        if (w->ids.failed || !stack_up(w, ref, k)) return tg_fail_nomem(err, k * sizeof(word));
        matches += match_ids(w, hyp, n, ref);
        if (matches < n && matches < k) matches += match_synonyms(m, w, hyp, n, ref, k - matches);
    }
    *out = score(hyp, n, k, matches);
    return TG_OK;
}

static tg_status split(const tg_meteor *m, const char *text, size_t len, tg_nltk_list *out,
                       tg_error *err) {
    tg_status st = tg_nltk_words(m->nltk, text, len, out, err);
    return st == TG_OK ? tg_nltk_list_lower(out, err) : st;
}

tg_status tg_meteor_pair(const tg_meteor *m, tg_meteor_work *w, const char *text, size_t len,
                         const char *reference, size_t reference_len, double *out, tg_error *err) {
    tg_status st = split(m, text, len, &w->hyp, err);
    if (st == TG_OK) st = split(m, reference, reference_len, &w->ref, err);
    return st == TG_OK ? align(m, w, out, err) : st;
}

tg_status tg_meteor_sample(const tg_meteor *m, tg_meteor_work *w, const char *text, size_t len,
                           const tg_sample *s, double *out, tg_error *err) {
    size_t n = s ? s->n_references : 0;
    *out = 0;
    if (m->compat) {
        tg_buf_reset(&w->text);
        tg_py_repr_list(&w->text, n ? s->references : NULL, n);
        if (w->text.failed) return tg_fail_nomem(err, w->text.len);
        return tg_meteor_pair(m, w, text, len, w->text.data, w->text.len, out, err);
    }
    tg_status st = split(m, text, len, &w->hyp, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        double value = 0;
        st = split(m, s->references[i], strlen(s->references[i]), &w->ref, err);
        if (st == TG_OK) st = align(m, w, &value, err);
        if (value > *out) *out = value;
    }
    return st;
}
