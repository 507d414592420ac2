/* The samples of a split, fetched from the workers in pieces that fit a message. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/train/evaluate.h"
#include "proto/codec.h"
#include "proto/split.h"

enum { CHUNK = 512 };

static tg_status take_chunk(tg_split_samples *s, tg_pool *pool, tg_split split, size_t total,
                            tg_error *err) {
    uint32_t want = (uint32_t)TG_MIN((size_t)CHUNK, total - s->n);
    tg_samples *got = NULL;
    tg_status st = tg_pool_samples(pool, split, s->n, want, &got, err);
    if (st != TG_OK) return st;
    s->chunks[s->n_chunks++] = got;
    if (got->n != want)
        return tg_fail(err, TG_PROTOCOL, "a worker sent %zu samples of %s instead of %u", got->n,
                       tg_split_name(split), want);
    for (size_t i = 0; i < got->n; i++) s->all[s->n++] = &got->items[i];
    return TG_OK;
}

tg_status tg_split_samples_load(tg_split_samples *s, tg_pool *pool, tg_split split, tg_error *err) {
    size_t total = tg_pool_spec(pool)->n_samples[split];
    *s = (tg_split_samples){0};
    s->chunks = tg_alloc_array(total / CHUNK + 1, sizeof *s->chunks);
    s->all = tg_alloc_array(total, sizeof *s->all);
    tg_status st = s->chunks && s->all ? TG_OK : tg_fail_nomem(err, total * sizeof *s->all);
    while (st == TG_OK && s->n < total) st = take_chunk(s, pool, split, total, err);
    if (st != TG_OK) tg_split_samples_fini(s);
    return st;
}

void tg_split_samples_fini(tg_split_samples *s) {
    /* NOLINTNEXTLINE: n_chunks is 0 where chunks is NULL */
    for (size_t i = 0; i < s->n_chunks; i++) tg_msg_free(s->chunks[i]);
    tg_free(s->chunks);
    tg_free(s->all);
    *s = (tg_split_samples){0};
}
