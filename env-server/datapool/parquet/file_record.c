/* Records: a row's entries in a leaf column, gathered from the pages they lie in. */
#include "env-server/datapool/parquet/file_impl.h"

#include "common/base/alloc.h"

#include <string.h>

static tg_status take(tg_pq_file *f, tg_pq_record *r, size_t leaf, tg_pq_page *page, size_t from,
                      size_t to, tg_error *err) {
    const tg_pq_node *node = f->meta.leaves[leaf];
    if (r->n_pages == r->pages_cap) {
        size_t cap = r->pages_cap ? 2 * r->pages_cap : 4;
        tg_pq_page **grown = tg_realloc_array(r->pages, cap, sizeof *grown);
        if (!grown) {
            tg_pq_file_release(f, page);
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
static size_t page_of(const tg_pq_column *c, uint64_t row) {
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
    const tg_pq_column *c = &f->columns[leaf];
    size_t k = page_of(c, row);
    if (k >= c->n || row - c->pages[k].first_row >= c->pages[k].n_rows)
        return tg_fail(err, TG_DATA, "a broken Parquet file: no page has the row");
    size_t local = (size_t)(row - c->pages[k].first_row);
    tg_pq_page *page;
    tg_status st = tg_pq_file_page(f, leaf, c->pages[k].group, c->pages[k].offset, &page, err);
    if (st != TG_OK) return st;
    size_t from = page->starts ? (local < page->n_starts ? page->starts[local] : page->n) : local;
    size_t to = !page->starts                ? from + 1
                : local + 1 < page->n_starts ? page->starts[local + 1]
                                             : page->n;
    bool open = page->starts && to == page->n; /* its list may go on in the next page */
    if (from >= page->n || to > page->n) {
        tg_pq_file_release(f, page);
        return tg_fail(err, TG_DATA, "a broken Parquet file: a page has too few rows");
    }
    st = take(f, r, leaf, page, from, to, err);
    for (k++; st == TG_OK && open && k < c->n && c->pages[k].group == c->pages[k - 1].group; k++) {
        st = tg_pq_file_page(f, leaf, c->pages[k].group, c->pages[k].offset, &page, err);
        if (st != TG_OK) break;
        to = page->n_starts ? page->starts[0] : page->n;
        open = page->n_starts == 0;
        st = take(f, r, leaf, page, 0, to, err);
    }
    return st;
}

void tg_pq_record_release(tg_pq_file *f, tg_pq_record *r) {
    for (size_t i = 0; i < r->n_pages; i++) tg_pq_file_release(f, r->pages[i]);
    tg_free(r->pages);
    tg_free(r->entries);
    memset(r, 0, sizeof *r);
}
