/* The first round of CIDEr-D: every part's words, under numbers that all parts share; which shard counts what begins with
 * which word. */
#include "common/base/alloc.h"
#include "env-server/metric/cider_texts.h"

#include <string.h>

static tg_status read_text(const tg_cider_texts *c, tg_cider_part *p, tg_splitter_work *work,
                           size_t at, const char *text, size_t len, tg_error *err) {
    tg_status st = tg_splitter_words(c->splitter, work, text, len, &p->words, &p->ids, err);
    p->ends[at + 1] = p->ids.n;
    return st;
}

static tg_status read_part(tg_cider_texts *c, size_t k, tg_error *err) {
    tg_cider_part *p = &c->parts[k];
    size_t texts = 0;
    for (size_t i = p->begin; i < p->end; i++) texts += 1 + c->items[i].sample->n_references;
    p->ends = tg_alloc_array(texts + 1, sizeof *p->ends);
    if (!p->ends) return tg_fail_nomem(err, texts * sizeof *p->ends);
    tg_status st = TG_OK;
    tg_splitter_work work = {0};
    for (size_t i = p->begin, at = 0; i < p->end && st == TG_OK; i++) {
        const tg_sample *s = c->items[i].sample;
        st = read_text(c, p, &work, at++, c->items[i].text, c->items[i].text_len, err);
        for (size_t j = 0; j < s->n_references && st == TG_OK; j++)
            st = read_text(c, p, &work, at++, s->references[j], strlen(s->references[j]), err);
    }
    tg_splitter_work_fini(&work);
    p->n_words = p->words.count;
    if (st != TG_OK || !c->team) return st;
    p->counts = tg_alloc_array(p->n_words, sizeof *p->counts);
    p->number = tg_alloc_array(p->n_words, sizeof *p->number);
    if (!p->counts || !p->number) return tg_fail_nomem(err, p->n_words * sizeof *p->counts);
    for (size_t i = 0; i < p->ids.n; i++) p->counts[p->ids.v[i]]++;
    return TG_OK;
}

/* Gives the words of all parts common numbers. */
static tg_status number_words(tg_cider_texts *c, tg_error *err) {
    tg_words *all = &c->parts[0].words;
    for (size_t k = 0; k < c->k; k++) {
        tg_cider_part *p = &c->parts[k];
        for (uint32_t w = 0; w < p->n_words; w++) {
            size_t len;
            const char *text = tg_words_text(&p->words, w, &len);
            p->number[w] = k ? tg_words_id(all, text, len) : w;
        }
    }
    return all->failed ? tg_fail_nomem(err, all->n_bytes) : TG_OK;
}

static tg_status use_numbers(tg_cider_texts *c, size_t k, tg_error *err) {
    (void)err;
    tg_cider_part *p = &c->parts[k];
    for (size_t i = 0; k && i < p->ids.n; i++) p->ids.v[i] = p->number[p->ids.v[i]];
    return TG_OK;
}

/* Each word goes to the shard where the fewest n-grams begin so far. */
static tg_status share_words(tg_cider_texts *c, tg_error *err) {
    size_t n = c->parts[0].words.count, *counts = tg_alloc_array(n, sizeof *counts);
    c->shard_of = tg_alloc_array(n, sizeof *c->shard_of);
    if (!counts || !c->shard_of) {
        tg_free(counts);
        return tg_fail_nomem(err, n * sizeof *counts);
    }
    for (const tg_cider_part *p = c->parts; p < c->parts + c->k; p++)
        for (size_t w = 0; w < p->n_words; w++) counts[p->number[w]] += p->counts[w];
    for (size_t w = 0; w < n; w++) {
        size_t least = 0;
        for (size_t s = 1; s < c->k; s++)
            if (c->shards[s].places < c->shards[least].places) least = s;
        c->shards[least].places += counts[w];
        c->shard_of[w] = (uint8_t)least;
    }
    tg_free(counts);
    return TG_OK;
}

/* Looks the words up among those of the document frequencies. */
static tg_status find_elsewhere(tg_cider_texts *c, tg_error *err) {
    const tg_words *words = &c->parts[0].words;
    c->elsewhere = tg_alloc_array(words->count, sizeof *c->elsewhere);
    if (!c->elsewhere) return tg_fail_nomem(err, words->count * sizeof *c->elsewhere);
    for (uint32_t w = 0; w < words->count; w++) {
        size_t len;
        const char *text = tg_words_text(words, w, &len);
        if (!tg_words_find(&c->df->words, text, len, &c->elsewhere[w]))
            c->elsewhere[w] = TG_GRAMS_NONE;
    }
    return TG_OK;
}

tg_status tg_cider_words(tg_cider_texts *c, tg_error *err) {
    tg_status st = tg_cider_run(c, read_part, err);
    for (size_t k = 0, texts = 0; k < c->k; k++) {
        c->parts[k].first_text = texts;
        for (size_t i = c->parts[k].begin; i < c->parts[k].end; i++)
            texts += 1 + c->items[i].sample->n_references;
        c->texts = texts;
    }
    if (!c->team) {
        c->shards[0].places = c->parts[0].ids.n;
    } else {
        if (st == TG_OK) st = number_words(c, err);
        if (st == TG_OK) st = tg_cider_run(c, use_numbers, err);
        if (st == TG_OK) st = share_words(c, err);
    }
    return st == TG_OK && c->df ? find_elsewhere(c, err) : st;
}
