/* The second round of CIDEr-D: each shard counts, in all texts, the n-grams that begin with its words. */
#include "common/base/alloc.h"
#include "env-server/metric/cider_texts.h"
#include "env-server/metric/pages.h"

#include <string.h>

enum { ORDERS = TG_CIDER_ORDERS, LINE = TG_CIDER_LINE };

/* Where a text stands in the corpus. */
typedef struct place {
    bool reference;
    size_t item, references, text; /* where their entries start */
} place;

typedef struct scratch {
    tg_wids at, nodes, words; /* places in the text where n-grams of the shard begin, … */
} scratch;

/* What elsewhere is known about the nodes that are new. */
static tg_status look_up(const tg_cider_texts *c, tg_cider_shard *s, tg_error *err) {
    const tg_grams *there = &c->df->grams;
    if (s->cap_shared < s->grams.cap) {
        uint32_t *shared = tg_realloc_array(s->shared, s->grams.cap, sizeof *shared);
        if (!shared) return tg_fail_nomem(err, s->grams.cap * sizeof *shared);
        s->shared = shared, s->cap_shared = s->grams.cap;
    }
    for (; s->n_shared < s->grams.count; s->n_shared++) {
        tg_gram *g = &s->grams.nodes[s->n_shared];
        uint32_t found = 0;
        if (s->n_shared) {
            uint32_t above = s->shared[g->parent], word = c->elsewhere[g->word];
            found = above == TG_GRAMS_NONE || word == TG_GRAMS_NONE
                        ? TG_GRAMS_NONE
                        : tg_grams_find(there, above, word);
        }
        s->shared[s->n_shared] = found;
        g->df = found == TG_GRAMS_NONE ? 0 : there->nodes[found].df;
    }
    return TG_OK;
}

/* Appends the entries of n n-grams of an order, whose first one is the text's slot-th. */
static void enter(tg_cider_shard *s, const place *p, const uint32_t *nodes, const uint32_t *at,
                  size_t n, size_t slot, bool count) {
    tg_cider_entry *e = s->entries + s->n;
    for (size_t i = 0; i < n; i++, e++) {
        tg_gram *g = &s->grams.nodes[nodes[i]];
        *e = (tg_cider_entry){nodes[i], 0, 0};
        if (g->last > p->text) {
            s->entries[g->last - 1].count++;
            continue;
        }
        e->count = 1;
        if (!p->reference) {
            e->match = (uint32_t)(slot + at[i] + 1);
        } else { /* in the prediction, or in a reference before this one: that knows the place */
            if (g->last > p->item) e->match = s->entries[g->last - 1].match;
            g->df += count && g->last <= p->references;
        }
        g->last = (uint32_t)(s->n + i + 1);
    }
    s->n += n;
}

/* The n-grams to come are expected to have as many new ones among them as those that were read. */
static void expect(tg_cider_shard *s, size_t n) {
    if (s->grams.count + n <= s->grams.mask / 2) return;
    double all = (double)ORDERS * (double)s->places;
    tg_grams_expect(&s->grams, (size_t)((double)(s->grams.count + n) * all / (double)(s->n + n)));
}

size_t tg_cider_places(const tg_cider_texts *c, size_t k, const uint32_t *words, size_t n,
                       uint32_t *at) {
    size_t m = 0;
    for (uint32_t i = 0; i < n; i++) { /* without a branch, which nobody could foresee */
        at[m] = i;
        m += !c->shard_of || c->shard_of[words[i]] == k;
    }
    return m;
}

static tg_status count_text(const tg_cider_texts *c, size_t k, scratch *x, const place *p,
                            const uint32_t *words, size_t n, tg_error *err) {
    tg_cider_shard *s = &c->shards[k];
    if (!tg_wids_reserve(&x->at, n) || !tg_wids_reserve(&x->nodes, n) ||
        !tg_wids_reserve(&x->words, n))
        return tg_fail_nomem(err, n * sizeof *words);
    const uint32_t *at = x->at.v;
    size_t m = tg_cider_places(c, k, words, n, x->at.v), slot = 0;
    if (m) memset(x->nodes.v, 0, m * sizeof *x->nodes.v);
    tg_status st = TG_OK;
    expect(s, ORDERS * m);
    for (size_t order = 0; order < ORDERS && order < n && st == TG_OK; order++) {
        while (m && at[m - 1] + order >= n) m--;
        for (size_t i = 0; i < m; i++) x->words.v[i] = words[at[i] + order];
        st = tg_grams_extend(&s->grams, x->nodes.v, x->words.v, m, err);
        if (st == TG_OK && c->df) st = look_up(c, s, err);
        if (st == TG_OK) enter(s, p, x->nodes.v, at, m, slot, !c->df);
        slot += n - order;
    }
    return st;
}

static tg_status count_part(const tg_cider_texts *c, size_t k, scratch *x, const tg_cider_part *p,
                            tg_error *err) {
    tg_cider_shard *s = &c->shards[k];
    tg_status st = TG_OK;
    for (size_t i = p->begin, t = 0; i < p->end && st == TG_OK; i++) {
        size_t texts = 1 + c->items[i].sample->n_references;
        place here = {.item = s->n};
        for (size_t j = 0; j < texts && st == TG_OK; j++, t++) {
            here.reference = j > 0;
            here.text = s->starts[p->first_text + t] = s->n;
            if (j <= 1) here.references = s->n;
            st =
                count_text(c, k, x, &here, p->ids.v + p->ends[t], p->ends[t + 1] - p->ends[t], err);
        }
    }
    return st;
}

static size_t whole_lines(size_t bytes) {
    return bytes + (LINE - bytes % LINE) % LINE;
}

static size_t shard_bytes(const tg_cider_texts *c, const tg_cider_shard *s) {
    size_t most = ORDERS * s->places;
    return whole_lines(tg_grams_bytes(most)) + whole_lines(most) * sizeof(tg_cider_entry) +
           whole_lines((c->texts + 1) * sizeof *s->starts);
}

/* One block for all shards: the C library gives back to the system what is free beyond twice the largest block, and getting
 * it again takes as long as counting. */
static tg_status open_shards(tg_cider_texts *c, tg_error *err) {
    size_t bytes = 0;
    for (const tg_cider_shard *s = c->shards; s < c->shards + c->k; s++) {
        if (s->places > UINT32_MAX / 2 / ORDERS)
            return tg_fail(err, TG_UNSUPPORTED,
                           "%zu words for each thread; CIDEr-D takes %u, or more threads",
                           s->places, UINT32_MAX / 2 / ORDERS);
        bytes += shard_bytes(c, s);
    }
    char *at = tg_pages_alloc(bytes, 1, &c->memory);
    if (!at) return tg_fail_nomem(err, bytes);
    for (tg_cider_shard *s = c->shards; s < c->shards + c->k; s++) {
        size_t most = ORDERS * s->places;
        tg_grams_init(&s->grams, at, most);
        s->entries = (tg_cider_entry *)(void *)(at + whole_lines(tg_grams_bytes(most)));
        s->starts = (size_t *)(void *)(s->entries + whole_lines(most));
        at += shard_bytes(c, s);
    }
    return TG_OK;
}

static tg_status count_shard(tg_cider_texts *c, size_t k, tg_error *err) {
    tg_cider_shard *s = &c->shards[k];
    tg_grams_expect(&s->grams, ORDERS * s->places / 8); /* more where few are repeated */
    scratch x = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < c->k && st == TG_OK; i++) st = count_part(c, k, &x, &c->parts[i], err);
    s->starts[c->texts] = s->n;
    tg_wids_fini(&x.at);
    tg_wids_fini(&x.nodes);
    tg_wids_fini(&x.words);
    return st;
}

tg_status tg_cider_count(tg_cider_texts *c, tg_error *err) {
    tg_status st = open_shards(c, err);
    return st == TG_OK ? tg_cider_run(c, count_shard, err) : st;
}
