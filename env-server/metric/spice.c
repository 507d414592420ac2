/* Scene graphs by the original's rules: a concept is a set of words and their synsets; objects that share a word or the
 * most synsets are one, attributes and relations that are similar are merged; a proposition matches the first similar
 * one of the other graph. */
#include "env-server/metric/spice.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"

#include <string.h>

/* Words and synsets as numbers: two kinds in one list, words with the top bit. */
typedef struct concept {
    uint32_t *v; /* sorted, each once */
    size_t n, cap;
}
concept;

typedef struct relation {
    size_t source, target; /* objects */
    concept what;
} relation;

typedef struct object {
    concept what;
    concept *attributes;
    size_t n, cap;
} object;

typedef struct graph {
    object *objects;
    size_t n, cap;
    relation *relations;
    size_t n_relations, cap_relations;
} graph;

typedef struct builder {
    const tg_wordnet *wordnet;
    tg_words *words; /* of both graphs */
    tg_arena *arena; /* owns everything below */
    bool failed;
} builder;

enum { IS_WORD = 1u << 31 };

static void *grow(builder *b, void *old, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return old;
    size_t more = *cap ? 2 * *cap : 4;
    void *now = tg_arena_array(b->arena, more, size);
    if (!now) {
        b->failed = true;
        return NULL;
    }
    if (n) memcpy(now, old, n * size);
    *cap = more;
    return now;
}

/* ---- concepts ---------------------------------------------------------------------------------- */

typedef struct filling {
    builder *b;
    concept *c;
} filling;

static void put(builder *b, concept *c, uint32_t value) {
    size_t at = c->n;
    while (at && c->v[at - 1] > value) at--;
    if (at && c->v[at - 1] == value) return;
    uint32_t *v = grow(b, c->v, c->n, &c->cap, sizeof *v);
    if (!v) return;
    c->v = v;
    memmove(v + at + 1, v + at, (c->n - at) * sizeof *v);
    v[at] = value;
    c->n++;
}

static void put_synset(void *arg, uint32_t synset) {
    const filling *f = arg;
    put(f->b, f->c, synset & ~(uint32_t)IS_WORD);
}

static concept concept_of(builder *b, const char *text) {
    concept c = {0};
    char key[TG_WORDNET_WORD];
    size_t n = strlen(text);
    put(b, &c, tg_words_id(b->words, text, n) | IS_WORD);
    if (n >= sizeof key) return c;
    for (size_t i = 0; i <= n; i++) key[i] = text[i] == ' ' ? '_' : text[i];
    tg_wordnet_synsets(b->wordnet, key, n, put_synset, &(filling){b, &c});
    return c;
}

static void merge(builder *b, concept *into, const concept *more) {
    for (size_t i = 0; i < more->n; i++) put(b, into, more->v[i]);
}

static bool equal(const concept *a, const concept *b) {
    return a->n == b->n && !memcmp(a->v, b->v, a->n * sizeof *a->v);
}

static void shared(const concept *a, const concept *b, size_t *words, size_t *synsets) {
    *words = *synsets = 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        if (a->v[i] == b->v[k]) {
            if (a->v[i] & IS_WORD)
                ++*words;
            else
                ++*synsets;
            i++, k++;
        } else if (a->v[i] < b->v[k])
            i++;
        else
            k++;
    }
}

static bool similar(const concept *a, const concept *b) {
    size_t words, synsets;
    shared(a, b, &words, &synsets);
    return words || synsets;
}

static size_t synsets_in(const concept *c) {
    size_t n = 0;
    while (n < c->n && !(c->v[n] & IS_WORD)) n++;
    return n;
}

/* 1 with a common word, else the share of common synsets. */
static double similarity(const concept *a, const concept *b) {
    size_t words, synsets;
    shared(a, b, &words, &synsets);
    size_t all = synsets_in(a) + synsets_in(b) - synsets;
    return words ? 1 : synsets ? (double)synsets / (double)all : 0;
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static size_t object_of(builder *b, graph *g, const char *text) {
    concept c = concept_of(b, text);
    size_t best = g->n;
    double most = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (equal(&c, &g->objects[i].what)) return i;
        double s = similarity(&c, &g->objects[i].what);
        if (s > most) most = s, best = i;
    }
    if (best < g->n) {
        merge(b, &g->objects[best].what, &c);
        return best;
    }
    object *o = grow(b, g->objects, g->n, &g->cap, sizeof *o);
    if (!o) return 0;
    g->objects = o;
    o[g->n] = (object){.what = c};
    return g->n++;
}

static void add_attribute(builder *b, object *o, const char *text) {
    concept c = concept_of(b, text);
    for (size_t i = 0; i < o->n; i++)
        if (similar(&c, &o->attributes[i])) {
            merge(b, &o->attributes[i], &c);
            return;
        }
    concept *v = grow(b, o->attributes, o->n, &o->cap, sizeof *v);
    if (!v) return;
    o->attributes = v;
    v[o->n++] = c;
}

static void add_relation(builder *b, graph *g, size_t source, size_t target, const char *text) {
    concept c = concept_of(b, !strncmp(text, "be ", 3) ? text + 3 : text);
    for (size_t i = 0; i < g->n_relations; i++) {
        relation *r = &g->relations[i];
        if (r->source == source && r->target == target && similar(&r->what, &c)) {
            merge(b, &r->what, &c);
            return;
        }
    }
    relation *r = grow(b, g->relations, g->n_relations, &g->cap_relations, sizeof *r);
    if (!r) return;
    g->relations = r;
    r[g->n_relations++] = (relation){source, target, c};
}

static void build(builder *b, graph *g, const tg_spice_tuples *t) {
    for (size_t i = 0; i < t->n && !b->failed; i++) {
        const char *const *p = t->v[i].part;
        size_t first = object_of(b, g, p[0]);
        if (b->failed || !p[1]) continue;
        if (!p[2])
            add_attribute(b, &g->objects[first], p[1]);
        else
            add_relation(b, g, first, object_of(b, g, p[1]), p[2]);
    }
}

static size_t size_of(const graph *g) {
    size_t n = g->n + g->n_relations;
    for (size_t i = 0; i < g->n; i++) n += g->objects[i].n;
    return n;
}

/* ---- matches ----------------------------------------------------------------------------------- */

static bool has_object(const graph *g, const concept *c) {
    for (size_t i = 0; i < g->n; i++)
        if (similar(&g->objects[i].what, c)) return true;
    return false;
}

static bool has_attribute(const graph *g, const concept *c, const concept *attribute) {
    for (size_t i = 0; i < g->n; i++) {
        if (!similar(&g->objects[i].what, c)) continue;
        for (size_t k = 0; k < g->objects[i].n; k++)
            if (similar(&g->objects[i].attributes[k], attribute)) return true;
    }
    return false;
}

static bool has_relation(const graph *g, const concept *source, const concept *what,
                         const concept *target) {
    for (size_t i = 0; i < g->n_relations; i++) {
        const relation *r = &g->relations[i];
        if (similar(&g->objects[r->source].what, source) && similar(&r->what, what) &&
            similar(&g->objects[r->target].what, target))
            return true;
    }
    return false;
}

static size_t count_matches(const graph *test, const graph *ref) {
    size_t n = 0;
    for (size_t i = 0; i < test->n; i++) {
        const object *o = &test->objects[i];
        n += has_object(ref, &o->what);
        for (size_t k = 0; k < o->n; k++) n += has_attribute(ref, &o->what, &o->attributes[k]);
    }
    for (size_t i = 0; i < test->n_relations; i++) {
        const relation *r = &test->relations[i];
        n += has_relation(ref, &test->objects[r->source].what, &r->what,
                          &test->objects[r->target].what);
    }
    return n;
}

/* As the original counts: false negatives are the references' propositions less the matches, which may be more. */
static void rate(tg_spice_score *s) {
    s->precision = s->recall = s->f = 0;
    if (!s->ref) return;
    s->recall = (double)s->matched / (double)s->ref;
    if (s->test) s->precision = (double)s->matched / (double)s->test;
    if (s->precision > 0 && s->recall > 0)
        s->f = 2 * (s->precision * s->recall) / (s->precision + s->recall);
}

tg_status tg_spice_compare(const tg_spice *s, const tg_spice_tuples *test,
                           const tg_spice_tuples *ref, tg_spice_score *out, tg_error *err) {
    tg_arena arena = {0};
    tg_words words = {0};
    builder b = {.wordnet = s->wordnet, .words = &words, .arena = &arena};
    graph a = {0}, r = {0};
    build(&b, &a, test);
    build(&b, &r, ref);
    bool failed = b.failed || words.failed;
    if (!failed) {
        *out = (tg_spice_score){
            .matched = count_matches(&a, &r), .test = size_of(&a), .ref = size_of(&r)};
        rate(out);
    }
    tg_words_fini(&words);
    tg_arena_fini(&arena);
    return failed ? tg_fail_nomem(err, test->n * sizeof *test->v) : TG_OK;
}

/* ---- texts ------------------------------------------------------------------------------------- */

tg_status tg_spice_open(tg_spice *s, bool compat, tg_error *err) {
    memset(s, 0, sizeof *s);
    tg_status st = tg_splitter_open(&s->splitter, "spacy", compat, err);
    if (st == TG_OK) st = tg_wordnet_open(&s->wordnet, NULL, TG_NLTK_CURRENT, err);
    if (st != TG_OK) tg_spice_close(s);
    return st;
}

void tg_spice_close(tg_spice *s) {
    tg_splitter_close(&s->splitter);
    tg_wordnet_close(&s->wordnet);
}

static tg_status read_words(const tg_spice *s, const char *text, size_t len, tg_arena *arena,
                            tg_splitter_work *work, tg_spice_word **out, size_t *n, tg_error *err) {
    tg_buf lower = {0};
    tg_words words = {0};
    tg_wids ids = {0};
    tg_py_lower(&lower, text, len);
    tg_status st = lower.failed
                       ? tg_fail_nomem(err, len)
                       : tg_splitter_words(&s->splitter, work, lower.data ? lower.data : "",
                                           lower.len, &words, &ids, err);
    *n = ids.n;
    *out = st == TG_OK ? tg_arena_array(arena, ids.n + 1, sizeof **out) : NULL;
    if (st == TG_OK && !*out) st = tg_fail_nomem(err, ids.n * sizeof **out);
    for (size_t i = 0; i < ids.n && st == TG_OK; i++) {
        size_t k;
        const char *word = tg_words_text(&words, ids.v[i], &k);
        (*out)[i].text = tg_arena_strndup(arena, word, k);
        if (!(*out)[i].text) st = tg_fail_nomem(err, k);
    }
    tg_buf_fini(&lower);
    tg_words_fini(&words);
    tg_wids_fini(&ids);
    return st;
}

tg_status tg_spice_read(const tg_spice *s, const char *text, size_t len, tg_spice_tuples *out,
                        tg_error *err) {
    tg_splitter_work work = {0};
    tg_spice_word *words;
    size_t n;
    tg_status st = read_words(s, text, len, out->arena, &work, &words, &n, err);
    if (st == TG_OK) st = tg_spice_tag_words(s->wordnet, words, n, out->arena, err);
    if (st == TG_OK) tg_spice_parse(s->wordnet, words, n, out);
    if (st == TG_OK && out->failed) st = tg_fail_nomem(err, len);
    tg_splitter_work_fini(&work);
    return st;
}

tg_status tg_spice_sample(const tg_spice *s, const char *text, size_t len, const tg_sample *sample,
                          tg_spice_score *out, tg_error *err) {
    tg_arena arena = {0};
    tg_spice_tuples test = {.arena = &arena}, ref = {.arena = &arena};
    tg_status st = tg_spice_read(s, text, len, &test, err);
    for (size_t i = 0; i < sample->n_references && st == TG_OK; i++)
        st = tg_spice_read(s, sample->references[i], strlen(sample->references[i]), &ref, err);
    if (st == TG_OK) st = tg_spice_compare(s, &test, &ref, out, err);
    tg_arena_fini(&arena);
    return st;
}
