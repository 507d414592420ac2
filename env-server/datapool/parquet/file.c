/* An open Parquet file and its page index. */
#include "env-server/datapool/parquet/file_impl.h"

#include "common/base/alloc.h"

#include <string.h>

const tg_pq_meta *tg_pq_file_meta(const tg_pq_file *f) {
    return &f->meta;
}
tg_datafile *tg_pq_file_data(const tg_pq_file *f) {
    return f->data;
}
bool tg_pq_file_uses(const tg_pq_file *f, size_t top_level) {
    return f->used[top_level];
}

/* ---- index --------------------------------------------------------------------------------- */

static tg_status add_page(tg_pq_column *c, tg_pq_place p, tg_error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        tg_pq_place *grown = tg_realloc_array(c->pages, cap, sizeof *grown);
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
    tg_status st = tg_pq_file_page(f, leaf, group, offset, &page, err);
    if (st != TG_OK) return st;
    *rows = (uint32_t)page->n_starts;
    tg_pq_file_release(f, page);
    return TG_OK;
}

static tg_status index_chunk(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t first_row,
                             tg_error *err) {
    const tg_pq_chunk *chunk = &f->meta.groups[group].chunks[leaf];
    tg_pq_column *c = &f->columns[leaf];
    uint64_t at = chunk->offset, end = at + chunk->bytes, values = 0, rows = 0;
    while (values < chunk->n_values && at < end) {
        tg_pq_header h;
        tg_status st = tg_pq_header_read(f->bytes + at, (size_t)(end - at), &h, err);
        if (st != TG_OK) return st;
        if (h.kind == TG_PQ_DICTIONARY && !c->dictionary[group]) c->dictionary[group] = at;
        if (h.kind == TG_PQ_DATA || h.kind == TG_PQ_DATA_V2) {
            uint32_t n;
            st = count_rows(f, leaf, group, at, &h, &n, err);
            if (st == TG_OK) st = add_page(c, (tg_pq_place){at, first_row + rows, n, group}, err);
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
