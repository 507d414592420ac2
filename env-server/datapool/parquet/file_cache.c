/* The cache of decoded pages: those in use are held, of the others the oldest go first. */
#include "env-server/datapool/parquet/file_impl.h"

#include "common/base/alloc.h"

static const size_t CACHE_BYTES = (size_t)48 << 20;

/* With the lock held: frees what is unused, the oldest first, until the rest fits. */
static void evict(tg_pq_file *f, size_t most) {
    while (f->cached_bytes > most) {
        size_t oldest = f->n_cached;
        for (size_t i = 0; i < f->n_cached; i++)
            if (!f->cache[i]->refs &&
                (oldest == f->n_cached || f->cache[i]->stamp < f->cache[oldest]->stamp))
                oldest = i;
        if (oldest == f->n_cached) return;
        tg_pq_page *page = f->cache[oldest];
        f->cache[oldest] = f->cache[--f->n_cached];
        f->cached_bytes -= page->memory;
        if (page->dictionary) page->dictionary->refs--;
        tg_pq_page_free(page);
    }
}

static tg_pq_page *find_cached(tg_pq_file *f, uint64_t key) {
    for (size_t i = 0; i < f->n_cached; i++)
        if (f->cache[i]->key == key) {
            f->cache[i]->stamp = ++f->clock;
            f->cache[i]->refs++;
            return f->cache[i];
        }
    return NULL;
}

/* Keeps a fresh page, or takes the one that another thread has put there meanwhile. */
static tg_status keep(tg_pq_file *f, tg_pq_page *page, tg_pq_page **out, tg_error *err) {
    tg_status st = TG_OK;
    pthread_mutex_lock(&f->lock);
    tg_pq_page *other = find_cached(f, page->key);
    if (!other && f->n_cached == f->cache_cap) {
        size_t cap = f->cache_cap ? 2 * f->cache_cap : 64;
        tg_pq_page **grown = tg_realloc_array(f->cache, cap, sizeof *grown);
        if (grown)
            f->cache = grown, f->cache_cap = cap;
        else
            st = tg_fail_nomem(err, cap * sizeof *grown);
    }
    if (other || st != TG_OK) {
        if (page->dictionary) page->dictionary->refs--;
        tg_pq_page_free(page);
        *out = other;
    } else {
        page->refs = 1;
        page->stamp = ++f->clock;
        page->memory += sizeof *page;
        f->cache[f->n_cached++] = page;
        f->cached_bytes += page->memory;
        evict(f, CACHE_BYTES);
        *out = page;
    }
    pthread_mutex_unlock(&f->lock);
    return st;
}

void tg_pq_file_release(tg_pq_file *f, tg_pq_page *page) {
    if (!page) return;
    pthread_mutex_lock(&f->lock);
    page->refs--;
    pthread_mutex_unlock(&f->lock);
}

tg_status tg_pq_file_page(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t offset,
                          tg_pq_page **out, tg_error *err) {
    pthread_mutex_lock(&f->lock);
    *out = find_cached(f, offset);
    pthread_mutex_unlock(&f->lock);
    if (*out) return TG_OK;
    const tg_pq_chunk *chunk = &f->meta.groups[group].chunks[leaf];
    tg_pq_header h;
    tg_pq_page *dictionary = NULL, *page;
    uint64_t end = chunk->offset + chunk->bytes, words = f->columns[leaf].dictionary[group];
    tg_status st = tg_pq_header_read(f->bytes + offset, (size_t)(end - offset), &h, err);
    if (st == TG_OK && words && h.kind != TG_PQ_DICTIONARY)
        st = tg_pq_file_page(f, leaf, group, words, &dictionary, err);
    if (st == TG_OK)
        st = tg_pq_page_read(f->meta.leaves[leaf], chunk->codec, &h,
                             f->bytes + offset + h.header_bytes, dictionary, &page, err);
    if (st != TG_OK) {
        tg_pq_file_release(f, dictionary);
        return st;
    }
    tg_datafile_used(f->data, f->bytes + offset, h.packed);
    if (!page->dictionary) tg_pq_file_release(f, dictionary); /* this page does not use it */
    page->key = offset;
    return keep(f, page, out, err);
}
