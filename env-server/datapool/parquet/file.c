/* Page index and cache. The index never changes after opening; the cache is behind a lock. */
#include "env-server/datapool/parquet/file.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <string.h>

static const size_t CACHE_BYTES = (size_t)48 << 20;

typedef struct place {
    uint64_t offset;    /* of the header */
    uint64_t first_row; /* of the records that begin in the page */
    uint32_t n_rows;
    uint32_t group;
} place;

typedef struct column {
    place *pages;
    size_t n, cap;
    uint64_t *dictionary; /* offset of each group's, 0: none */
} column;

struct tg_pq_file {
    tg_datafile *data;
    const unsigned char *bytes;
    size_t len;
    tg_arena arena;
    tg_pq_meta meta;
    bool *used;      /* top-level columns */
    column *columns; /* by leaf; empty for those not in use */
    pthread_mutex_t lock;
    tg_pq_page **cache;
    size_t n_cached, cache_cap, cached_bytes;
    uint64_t clock;
};

const tg_pq_meta *tg_pq_file_meta(const tg_pq_file *f) {
    return &f->meta;
}
tg_datafile *tg_pq_file_data(const tg_pq_file *f) {
    return f->data;
}
bool tg_pq_file_uses(const tg_pq_file *f, size_t top_level) {
    return f->used[top_level];
}

/* ---- cache --------------------------------------------------------------------------------- */

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

static void release(tg_pq_file *f, tg_pq_page *page) {
    if (!page) return;
    pthread_mutex_lock(&f->lock);
    page->refs--;
    pthread_mutex_unlock(&f->lock);
}

/* The page whose header is at offset, held. A data page keeps its dictionary held as well. */
static tg_status get_page(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t offset,
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
        st = get_page(f, leaf, group, words, &dictionary, err);
    if (st == TG_OK)
        st = tg_pq_page_read(f->meta.leaves[leaf], chunk->codec, &h,
                             f->bytes + offset + h.header_bytes, dictionary, &page, err);
    if (st != TG_OK) {
        release(f, dictionary);
        return st;
    }
    tg_datafile_used(f->data, f->bytes + offset, h.packed);
    if (!page->dictionary) release(f, dictionary); /* this page does not use it */
    page->key = offset;
    return keep(f, page, out, err);
}

/* ---- index --------------------------------------------------------------------------------- */

static tg_status add_page(column *c, place p, tg_error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        place *grown = tg_realloc_array(c->pages, cap, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, cap * sizeof *grown);
        c->pages = grown, c->cap = cap;
    }
    c->pages[c->n++] = p;
    return TG_OK;
}

/* How many records begin in a data page. Only version 1 pages of lists must be looked into. */
static tg_status count_rows(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t offset,
                            const tg_pq_header *h, uint32_t *rows, tg_error *err) {
    *rows = h->n_values;
    if (f->meta.leaves[leaf]->max_rep == 0) return TG_OK;
    if (h->kind == TG_PQ_DATA_V2) {
        *rows = h->n_rows;
        return TG_OK;
    }
    tg_pq_page *page;
    tg_status st = get_page(f, leaf, group, offset, &page, err);
    if (st != TG_OK) return st;
    *rows = (uint32_t)page->n_starts;
    release(f, page);
    return TG_OK;
}

static tg_status index_chunk(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t first_row,
                             tg_error *err) {
    const tg_pq_chunk *chunk = &f->meta.groups[group].chunks[leaf];
    column *c = &f->columns[leaf];
    uint64_t at = chunk->offset, end = at + chunk->bytes, values = 0, rows = 0;
    while (values < chunk->n_values && at < end) {
        tg_pq_header h;
        tg_status st = tg_pq_header_read(f->bytes + at, (size_t)(end - at), &h, err);
        if (st != TG_OK) return st;
        if (h.kind == TG_PQ_DICTIONARY && !c->dictionary[group]) c->dictionary[group] = at;
        if (h.kind == TG_PQ_DATA || h.kind == TG_PQ_DATA_V2) {
            uint32_t n;
            st = count_rows(f, leaf, group, at, &h, &n, err);
            if (st == TG_OK) st = add_page(c, (place){at, first_row + rows, n, group}, err);
            if (st != TG_OK) return st;
            values += h.n_values;
            rows += n;
        }
        at += h.header_bytes + h.packed;
        tg_datafile_used(f->data, f->bytes + at, 0);
    }
    if (rows != f->meta.groups[group].n_rows || values != chunk->n_values)
        return tg_fail(err, TG_DATA,
                       "a broken Parquet file: column %s of row group %u has %llu rows, not %llu",
                       f->meta.leaves[leaf]->name, group, (unsigned long long)rows,
                       (unsigned long long)f->meta.groups[group].n_rows);
    return TG_OK;
}

static tg_status index_leaf(tg_pq_file *f, size_t leaf, tg_error *err) {
    const tg_pq_node *node = f->meta.leaves[leaf];
    if (node->type == TG_PQ_INT96 || node->meaning == TG_PQ_OTHER)
        return tg_fail(
            err, TG_UNSUPPORTED,
            "column %s: decimals, INT96 and intervals are not read; write it as a text or "
            "a number",
            node->name);
    f->columns[leaf].dictionary =
        tg_alloc_array(f->meta.n_groups ? f->meta.n_groups : 1, sizeof(uint64_t));
    if (!f->columns[leaf].dictionary) return tg_fail_nomem(err, f->meta.n_groups);
    uint64_t first_row = 0;
    for (size_t g = 0; g < f->meta.n_groups; g++) {
        tg_status st = index_chunk(f, leaf, (uint32_t)g, first_row, err);
        if (st != TG_OK) return st;
        first_row += f->meta.groups[g].n_rows;
    }
    return TG_OK;
}

static bool is_wanted(const char *const *columns, const char *name) {
    if (!columns) return true;
    for (; *columns; columns++)
        if (!strcmp(*columns, name)) return true;
    return false;
}

static tg_status index_columns(tg_pq_file *f, const char *const *columns, tg_error *err) {
    const tg_pq_node *root = f->meta.root;
    f->used = tg_arena_array(&f->arena, root->n_children + 1, sizeof *f->used);
    f->columns = tg_alloc_array(f->meta.n_leaves ? f->meta.n_leaves : 1, sizeof *f->columns);
    if (!f->used || !f->columns) return tg_fail_nomem(err, root->n_children);
    bool any = false;
    for (size_t i = 0; i < root->n_children; i++)
        any |= is_wanted(columns, root->children[i]->name);
    if (!any) columns = NULL; /* so that a message can say what there is */
    for (size_t i = 0; i < root->n_children; i++) {
        const tg_pq_node *top = root->children[i];
        f->used[i] = is_wanted(columns, top->name);
        for (size_t k = 0; f->used[i] && k < top->n_leaves; k++) {
            tg_status st = index_leaf(f, top->first_leaf + k, err);
            if (st != TG_OK) return st;
        }
    }
    return TG_OK;
}

tg_status tg_pq_file_open(tg_pq_file **out, const char *path, const char *const *columns,
                          tg_error *err) {
    *out = NULL;
    tg_pq_file *f = tg_alloc(sizeof *f);
    if (!f) return tg_fail_nomem(err, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    tg_status st = tg_datafile_open(&f->data, path, err);
    if (st == TG_OK) {
        f->bytes = (const unsigned char *)tg_datafile_bytes(f->data, &f->len);
        st = tg_pq_meta_read(f->bytes, f->len, &f->arena, &f->meta, err);
        if (st == TG_OK) st = index_columns(f, columns, err);
        if (st != TG_OK) tg_error_prefix(err, "%s: ", path);
    }
    if (st != TG_OK)
        tg_pq_file_close(&f);
    else
        *out = f;
    return st;
}

void tg_pq_file_close(tg_pq_file **out) {
    tg_pq_file *f = *out;
    if (!f) return;
    for (size_t i = 0; i < f->n_cached; i++) tg_pq_page_free(f->cache[i]);
    for (size_t i = 0; f->columns && i < f->meta.n_leaves; i++) {
        tg_free(f->columns[i].pages);
        tg_free(f->columns[i].dictionary);
    }
    tg_free(f->cache);
    tg_free(f->columns);
    tg_arena_fini(&f->arena);
    tg_datafile_close(&f->data);
    pthread_mutex_destroy(&f->lock);
    tg_free(f);
    *out = NULL;
}

/* ---- records ------------------------------------------------------------------------------- */

static tg_status take(tg_pq_file *f, tg_pq_record *r, size_t leaf, tg_pq_page *page, size_t from,
                      size_t to, tg_error *err) {
    const tg_pq_node *node = f->meta.leaves[leaf];
    if (r->n_pages == r->pages_cap) {
        size_t cap = r->pages_cap ? 2 * r->pages_cap : 4;
        tg_pq_page **grown = tg_realloc_array(r->pages, cap, sizeof *grown);
        if (!grown) {
            release(f, page);
            return tg_fail_nomem(err, cap * sizeof *grown);
        }
        r->pages = grown, r->pages_cap = cap;
    }
    r->pages[r->n_pages++] = page;
    if (r->n + (to - from) > r->cap) {
        size_t cap = 2 * r->cap + (to - from);
        tg_pq_entry *grown = tg_realloc_array(r->entries, cap, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, cap * sizeof *grown);
        r->entries = grown, r->cap = cap;
    }
    const tg_pq_page *texts = page->dictionary ? page->dictionary : page;
    const unsigned char *bytes = texts->values.bytes ? texts->values.bytes : texts->data;
    for (size_t i = from; i < to; i++) {
        tg_pq_entry *e = &r->entries[r->n++];
        *e = (tg_pq_entry){.rep = page->rep ? page->rep[i] : 0,
                           .def = page->def ? page->def[i] : 0,
                           .bytes = bytes};
        if (e->def == node->max_def)
            e->value = page->values.v[page->value_at ? page->value_at[i] : i];
    }
    return TG_OK;
}

/* The page in which the row begins. */
static size_t page_of(const column *c, uint64_t row) {
    size_t low = 0, high = c->n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (c->pages[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    while (low > 0 && c->pages[low].n_rows == 0) low--; /* the rest of an earlier row */
    return low;
}

tg_status tg_pq_file_record(tg_pq_file *f, size_t leaf, uint64_t row, tg_pq_record *r,
                            tg_error *err) {
    const column *c = &f->columns[leaf];
    size_t k = page_of(c, row);
    if (k >= c->n || row - c->pages[k].first_row >= c->pages[k].n_rows)
        return tg_fail(err, TG_DATA, "a broken Parquet file: no page has the row");
    size_t local = (size_t)(row - c->pages[k].first_row);
    tg_pq_page *page;
    tg_status st = get_page(f, leaf, c->pages[k].group, c->pages[k].offset, &page, err);
    if (st != TG_OK) return st;
    size_t from = page->starts ? (local < page->n_starts ? page->starts[local] : page->n) : local;
    size_t to = !page->starts                ? from + 1
                : local + 1 < page->n_starts ? page->starts[local + 1]
                                             : page->n;
    bool open = page->starts && to == page->n; /* its list may go on in the next page */
    if (from >= page->n || to > page->n) {
        release(f, page);
        return tg_fail(err, TG_DATA, "a broken Parquet file: a page has too few rows");
    }
    st = take(f, r, leaf, page, from, to, err);
    for (k++; st == TG_OK && open && k < c->n && c->pages[k].group == c->pages[k - 1].group; k++) {
        st = get_page(f, leaf, c->pages[k].group, c->pages[k].offset, &page, err);
        if (st != TG_OK) break;
        to = page->n_starts ? page->starts[0] : page->n;
        open = page->n_starts == 0;
        st = take(f, r, leaf, page, 0, to, err);
    }
    return st;
}

void tg_pq_record_release(tg_pq_file *f, tg_pq_record *r) {
    for (size_t i = 0; i < r->n_pages; i++) release(f, r->pages[i]);
    tg_free(r->pages);
    tg_free(r->entries);
    memset(r, 0, sizeof *r);
}
