/* Every n-gram of the texts at hand is a node of one trie. A text is the list of its nodes, first all
 * words, then all pairs and so on, which is also the order in which the original sums. */
#include "env-server/metric/cider.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "env-server/metric/words.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum { ORDERS = 4, NONE = 0xFFFFFFFFu };

typedef struct node {
    uint32_t parent, word;
    uint32_t df;     /* samples whose references hold it */
    uint32_t sample; /* the last one that was counted, + 1 */
    uint32_t text;   /* the last text that had it, + 1 … */
    uint32_t count;  /* … and how often */
    uint32_t order;  /* 0 … 3 */
    uint32_t shared; /* the same n-gram in the table of a file, or NONE */
} node;

typedef struct slot {
    uint32_t id;  /* of a node; 0: free */
    uint32_t tag; /* of its hash: nodes of others need not be looked at */
} slot;

typedef struct trie {
    tg_words words;
    node *nodes; /* nodes[0] is the empty n-gram */
    size_t count, cap;
    slot *table;
    size_t mask;
    uint32_t texts;
    bool failed;
} trie;

struct tg_cider_df {
    trie grams;
    size_t samples;
    double *idf; /* by document frequency */
};

/* ---- the trie ---------------------------------------------------------------------------------- */

static void trie_fini(trie *t) {
    tg_words_fini(&t->words);
    tg_free(t->nodes);
    tg_free(t->table);
}

static inline uint64_t hash(uint32_t parent, uint32_t word) {
    return ((uint64_t)parent << 32 | word) * 0x9E3779B97F4A7C15u;
}

static inline slot *first_slot(const trie *t, uint64_t h) {
    return &t->table[(size_t)(h >> 29) & t->mask];
}

/* Where the n-gram is, or would be. */
static inline slot *slot_of(const trie *t, uint32_t parent, uint32_t word) {
    uint64_t h = hash(parent, word);
    slot *s = first_slot(t, h);
    for (; s->id; s = s == t->table + t->mask ? t->table : s + 1) {
        const node *n = &t->nodes[s->id];
        if (s->tag == (uint32_t)h && n->parent == parent && n->word == word) break;
    }
    return s;
}

/* Large pages for what is touched at random all over: fewer faults, fewer misses. Without them it only takes longer. */
static void use_large_pages(void *p, size_t bytes) {
    const size_t large = (size_t)2 << 20;
    size_t skip = (size_t)(-(uintptr_t)p) & (large - 1);
    if (bytes >= skip + large) (void)madvise((char *)p + skip, bytes - skip, MADV_HUGEPAGE);
}

/* Room for cap nodes, a power of two. */
static bool grow(trie *t, size_t cap) {
    node *nodes = tg_realloc_array(t->nodes, cap, sizeof *nodes);
    if (nodes) t->nodes = nodes;
    slot *table = nodes ? tg_alloc_array(2 * cap, sizeof *table) : NULL;
    if (!table) {
        t->failed = true;
        return false;
    }
    use_large_pages(nodes, cap * sizeof *nodes);
    use_large_pages(table, 2 * cap * sizeof *table);
    tg_free(t->table);
    t->table = table, t->mask = 2 * cap - 1, t->cap = cap;
    if (!t->count) t->nodes[t->count++] = (node){0};
    for (size_t i = 1; i < t->count; i++) {
        uint64_t h = hash(t->nodes[i].parent, t->nodes[i].word);
        slot *s = first_slot(t, h);
        while (s->id) s = s == t->table + t->mask ? t->table : s + 1;
        *s = (slot){(uint32_t)i, (uint32_t)h};
    }
    return true;
}

static uint32_t find(const trie *t, uint32_t parent, uint32_t word) {
    uint32_t id = t->table ? slot_of(t, parent, word)->id : 0;
    return id ? id : NONE;
}

static uint32_t find_shared(const trie *t, const trie *other, uint32_t parent, uint32_t word) {
    uint32_t id, above = parent ? t->nodes[parent].shared : 0;
    if (above == NONE) return NONE;
    size_t len;
    const char *text = tg_words_text(&t->words, word, &len);
    return tg_words_find(&other->words, text, len, &id) ? find(other, above, id) : NONE;
}

static uint32_t add(trie *t, uint32_t parent, uint32_t word, uint32_t order, const trie *other) {
    if ((t->count == t->cap || !t->count) && !grow(t, t->cap ? 2 * t->cap : 1024)) return 0;
    slot *s = slot_of(t, parent, word);
    if (s->id) return s->id;
    t->nodes[t->count] = (node){.parent = parent, .word = word, .order = order, .shared = NONE};
    if (other) t->nodes[t->count].shared = find_shared(t, other, parent, word);
    *s = (slot){(uint32_t)t->count, (uint32_t)hash(parent, word)};
    return (uint32_t)t->count++;
}

/* ---- texts ------------------------------------------------------------------------------------- */

typedef struct reader {
    trie *grams;
    const trie *other; /* of a file, or NULL */
    const tg_splitter *splitter;
    tg_splitter_work work;
    tg_wids words, starts;
    tg_wids nodes; /* of all texts, end to end */
} reader;

static void reader_fini(reader *r) {
    tg_splitter_work_fini(&r->work);
    tg_wids_fini(&r->words);
    tg_wids_fini(&r->starts);
    tg_wids_fini(&r->nodes);
}

/* Appends the nodes of a text. */
static tg_status read_text(reader *r, const char *text, size_t len, tg_error *err) {
    trie *t = r->grams;
    tg_wids_reset(&r->words);
    tg_wids_reset(&r->starts);
    tg_status st = tg_splitter_words(r->splitter, &r->work, text, len, &t->words, &r->words, err);
    if (st != TG_OK) return st;
    size_t n = r->words.n;
    for (size_t i = 0; i < n; i++) tg_wids_push(&r->starts, 0);
    if (r->starts.failed) return tg_fail_nomem(err, n);
    if (!tg_wids_reserve(&r->nodes, r->nodes.n + ORDERS * n)) return tg_fail_nomem(err, n);
    for (uint32_t k = 0; k < ORDERS && k < n; k++) {
        /* The table is larger than the cache: all places of an order are asked for before the first is used. */
        for (size_t i = 0; i + k < n && t->table; i++)
            __builtin_prefetch(first_slot(t, hash(r->starts.v[i], r->words.v[i + k])));
        for (size_t i = 0; i + k < n && t->table; i++)
            __builtin_prefetch(
                &t->nodes[first_slot(t, hash(r->starts.v[i], r->words.v[i + k]))->id]);
        for (size_t i = 0; i + k < n; i++) {
            r->starts.v[i] = add(t, r->starts.v[i], r->words.v[i + k], k, r->other);
            r->nodes.v[r->nodes.n++] = r->starts.v[i];
        }
    }
    return t->failed || r->nodes.failed ? tg_fail_nomem(err, r->nodes.n) : TG_OK;
}

static void count_sample(trie *t, const uint32_t *nodes, size_t n, uint32_t sample) {
    for (size_t i = 0; i < n; i++) {
        node *g = &t->nodes[nodes[i]];
        g->df += g->sample != sample + 1;
        g->sample = sample + 1;
    }
}

/* What an n-gram weighs that k of the samples have. The logarithm of each frequency is taken once. */
static tg_status weigh(double **idf, size_t samples, tg_error *err) {
    *idf = tg_alloc_array(samples + 1, sizeof **idf);
    if (!*idf) return tg_fail_nomem(err, samples * sizeof **idf);
    for (size_t k = 0; k <= samples; k++)
        (*idf)[k] = log((double)samples) - log(fmax(1.0, (double)k));
    return TG_OK;
}

/* ---- frequencies from a file ------------------------------------------------------------------- */

static tg_status read_line(reader *r, const char *line, size_t len, tg_error *err) {
    tg_wids_reset(&r->nodes);
    if (len == 0 || line[0] != '[') return read_text(r, line, len, err);
    json_error_t e;
    json_t *list = json_loadb(line, len, 0, &e);
    if (!list) return tg_fail(err, TG_DATA, "not a JSON list of texts: %s", e.text);
    tg_status st = TG_OK;
    for (size_t i = 0; i < json_array_size(list) && st == TG_OK; i++) {
        const json_t *text = json_array_get(list, i);
        st = json_is_string(text)
                 ? read_text(r, json_string_value(text), json_string_length(text), err)
                 : tg_fail(err, TG_DATA, "item %zu is not a text", i);
    }
    json_decref(list);
    return st;
}

tg_status tg_cider_df_read(tg_cider_df **out, const char *path, const tg_splitter *splitter,
                           tg_error *err) {
    *out = NULL;
    tg_filemap file;
    tg_status st = tg_filemap_open(&file, path, err);
    if (st != TG_OK) return st;
    tg_cider_df *df = tg_alloc(sizeof *df);
    if (!df) st = tg_fail_nomem(err, sizeof *df);
    reader r = {.grams = df ? &df->grams : NULL, .splitter = splitter};
    for (size_t at = 0; st == TG_OK && at < file.len;) {
        const char *line = (const char *)file.data + at, *end = memchr(line, '\n', file.len - at);
        size_t len = end ? (size_t)(end - line) : file.len - at;
        st = read_line(&r, line, len, err);
        if (st != TG_OK) tg_error_prefix(err, "%s:%zu: ", path, df->samples + 1);
        if (st == TG_OK) count_sample(&df->grams, r.nodes.v, r.nodes.n, (uint32_t)df->samples++);
        at += len + 1;
    }
    if (st == TG_OK && !df->samples)
        st = tg_fail(err, TG_DATA, "%s: empty; expected the references of one sample a line", path);
    if (st == TG_OK) st = weigh(&df->idf, df->samples, err);
    reader_fini(&r);
    tg_filemap_close(&file);
    if (st == TG_OK)
        *out = df;
    else
        tg_cider_df_destroy(&df);
    return st;
}

tg_status tg_cider_df_pool(tg_cider_df **out, const tg_datapool *pool, const tg_splitter *splitter,
                           tg_error *err) {
    tg_cider_df *df = *out = tg_alloc(sizeof *df);
    if (!df) return tg_fail_nomem(err, sizeof *df);
    reader r = {.grams = &df->grams, .splitter = splitter};
    tg_arena arena = {0};
    tg_status st = TG_OK;
    for (uint64_t i = 0; i < pool->count && st == TG_OK; i++) {
        tg_sample s;
        tg_arena_reset(&arena);
        tg_wids_reset(&r.nodes);
        st = tg_datapool_get(pool, i, &arena, &s, err);
        for (size_t k = 0; st == TG_OK && k < s.n_references; k++)
            st = read_text(&r, s.references[k], strlen(s.references[k]), err);
        if (st == TG_OK) count_sample(&df->grams, r.nodes.v, r.nodes.n, (uint32_t)df->samples++);
    }
    if (st == TG_OK && !df->samples) st = tg_fail(err, TG_DATA, "the data pool has no samples");
    if (st == TG_OK) st = weigh(&df->idf, df->samples, err);
    tg_arena_fini(&arena);
    reader_fini(&r);
    if (st != TG_OK) tg_cider_df_destroy(out);
    return st;
}

void tg_cider_df_destroy(tg_cider_df **df) {
    if (!*df) return;
    trie_fini(&(*df)->grams);
    tg_free((*df)->idf);
    tg_free(*df);
    *df = NULL;
}

/* ---- scores ------------------------------------------------------------------------------------ */

typedef struct vector {
    const uint32_t *nodes; /* a text's, with repetitions */
    size_t n;
    double norm[ORDERS];
    double length; /* how many pairs */
} vector;

/* What one occurrence weighs. */
static double weight(const trie *t, const double *idf, const tg_cider_df *df, uint32_t id) {
    const node *g = &t->nodes[id];
    if (!df) return idf[g->df];
    return idf[g->shared == NONE ? 0 : df->grams.nodes[g->shared].df];
}

/* Counts the n-grams of a text: nodes keep the counts until the next text is counted. */
static void count_text(trie *t, const double *idf, const tg_cider_df *df, vector *v) {
    uint32_t stamp = ++t->texts;
    size_t pairs = 0;
    for (size_t i = 0; i < v->n; i++) {
        node *g = &t->nodes[v->nodes[i]];
        if (g->text != stamp) g->text = stamp, g->count = 0;
        g->count++;
        pairs += g->order == 1;
    }
    v->length = (double)pairs;
    double sum[ORDERS] = {0};
    for (size_t i = 0; i < v->n; i++) {
        node *g = &t->nodes[v->nodes[i]];
        if (g->sample == stamp) continue; /* counted already; the field is free by now */
        g->sample = stamp;
        double w = (double)g->count * weight(t, idf, df, v->nodes[i]);
        sum[g->order] += w * w;
    }
    for (int k = 0; k < ORDERS; k++) v->norm[k] = sqrt(sum[k]);
}

typedef struct entry { /* of the hypothesis: each n-gram once */
    uint32_t id;
    double weight;
} entry;

static double similarity(const trie *t, const double *idf, const tg_cider_df *df, const vector *hyp,
                         const entry *entries, size_t n, const vector *ref) {
    double val[ORDERS] = {0}, sum = 0, delta = hyp->length - ref->length;
    double gauss = pow(M_E, -(delta * delta) / (2 * 6.0 * 6.0));
    for (size_t i = 0; i < n; i++) {
        const node *g = &t->nodes[entries[i].id];
        if (g->text != t->texts) continue; /* not in the reference, which was counted last */
        double w = (double)g->count * weight(t, idf, df, entries[i].id);
        val[g->order] += fmin(entries[i].weight, w) * w;
    }
    for (int k = 0; k < ORDERS; k++) {
        if (hyp->norm[k] != 0 && ref->norm[k] != 0) val[k] /= hyp->norm[k] * ref->norm[k];
        sum += val[k] * gauss;
    }
    return sum;
}

typedef struct corpus {
    trie grams;
    reader r;
    size_t *ends;      /* in r.nodes: of each text; per item the prediction, then its references */
    const double *idf; /* by document frequency */
    entry *entries;    /* as many as the longest prediction has nodes */
} corpus;

static tg_status read_corpus(corpus *c, const tg_metric_item *items, size_t n, tg_error *err) {
    size_t texts = 0, longest = 1, bytes = 0, cap = 1024;
    for (size_t i = 0; i < n; i++) {
        texts += 1 + items[i].sample->n_references;
        bytes += items[i].text_len;
        for (size_t k = 0; k < items[i].sample->n_references; k++)
            bytes += strlen(items[i].sample->references[k]);
    }
    while (cap < bytes / 2) cap *= 2; /* a word has five letters and four n-grams, many are new */
    if (!grow(&c->grams, cap)) return tg_fail_nomem(err, cap * sizeof(node));
    c->ends = tg_alloc_array(texts + 1, sizeof *c->ends);
    if (!c->ends) return tg_fail_nomem(err, texts * sizeof *c->ends);
    tg_status st = TG_OK;
    size_t k = 1;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        const tg_sample *s = items[i].sample;
        st = read_text(&c->r, items[i].text, items[i].text_len, err);
        c->ends[k] = c->r.nodes.n;
        size_t own = c->ends[k] - c->ends[k - 1], first = c->ends[k++];
        if (own > longest) longest = own;
        for (size_t j = 0; j < s->n_references && st == TG_OK; j++) {
            st = read_text(&c->r, s->references[j], strlen(s->references[j]), err);
            c->ends[k++] = c->r.nodes.n;
        }
        if (st == TG_OK)
            count_sample(&c->grams, c->r.nodes.v + first, c->r.nodes.n - first, (uint32_t)i);
    }
    if (st != TG_OK) return st;
    c->entries = tg_alloc_array(longest, sizeof *c->entries);
    return c->entries ? TG_OK : tg_fail_nomem(err, longest * sizeof *c->entries);
}

static double score_item(corpus *c, const tg_cider_df *df, size_t first, size_t n_refs) {
    trie *t = &c->grams;
    const uint32_t *nodes = c->r.nodes.v;
    vector hyp = {.nodes = nodes + c->ends[first - 1], .n = c->ends[first] - c->ends[first - 1]};
    for (size_t i = c->ends[first - 1]; i < c->ends[first + n_refs]; i++)
        __builtin_prefetch(&t->nodes[nodes[i]]);
    count_text(t, c->idf, df, &hyp);
    size_t n = 0;
    uint32_t stamp = ++t->texts; /* of this list */
    for (size_t i = 0; i < hyp.n; i++) {
        node *g = &t->nodes[hyp.nodes[i]];
        if (g->sample == stamp) continue;
        g->sample = stamp;
        double w = (double)g->count * weight(t, c->idf, df, hyp.nodes[i]);
        c->entries[n++] = (entry){hyp.nodes[i], w};
    }
    double sum = 0;
    for (size_t j = 1; j <= n_refs; j++) {
        vector ref = {.nodes = nodes + c->ends[first + j - 1],
                      .n = c->ends[first + j] - c->ends[first + j - 1]};
        count_text(t, c->idf, df, &ref);
        sum += similarity(t, c->idf, df, &hyp, c->entries, n, &ref);
    }
    return n_refs ? sum / ORDERS / (double)n_refs * 10.0 : 0;
}

tg_status tg_cider_score(const tg_metric_item *items, size_t n, const tg_splitter *splitter,
                         const tg_cider_df *df, double *out, tg_error *err) {
    corpus c = {0};
    c.r = (reader){.grams = &c.grams, .other = df ? &df->grams : NULL, .splitter = splitter};
    tg_status st = read_corpus(&c, items, n, err);
    double *own = NULL;
    if (st == TG_OK && !df) st = weigh(&own, n, err);
    c.idf = df ? df->idf : own;
    if (st == TG_OK) {
        c.grams.texts = (uint32_t)n + 1; /* samples were stamped with numbers up to here */
        for (size_t i = 0, first = 1; i < n; i++) {
            out[i] = score_item(&c, df, first, items[i].sample->n_references);
            first += 1 + items[i].sample->n_references;
        }
    }
    trie_fini(&c.grams);
    reader_fini(&c.r);
    tg_free(c.ends);
    tg_free(own);
    tg_free(c.entries);
    return st;
}
