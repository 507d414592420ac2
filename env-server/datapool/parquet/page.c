/* One page: unpack, levels, values. */
#include "env-server/datapool/parquet/page.h"

#include "common/base/alloc.h"
#include "env-server/datapool/parquet/codec.h"
#include "env-server/datapool/parquet/levels.h"
#include "env-server/datapool/parquet/thrift.h"

#include <string.h>
#include <zlib.h>

enum { MAX_PAGE = 1 << 30, MAX_VALUES = 1 << 24 };

static tg_status broken(tg_error *err, const char *what) {
    return tg_fail(err, TG_DATA, "a broken Parquet page: %s", what);
}

/* ---- headers ------------------------------------------------------------------------------- */

static void read_details(tg_thrift *t, tg_thrift_type type, int kind, tg_pq_header *h) {
    int id = 0;
    tg_thrift_type inner;
    if (type != TG_THRIFT_STRUCT) {
        tg_thrift_skip(t, type);
        return;
    }
    while (tg_thrift_field(t, &id, &inner)) {
        if (kind == TG_PQ_DATA_V2 && id == 7) {
            h->is_packed = tg_thrift_bool(t, inner);
            continue;
        }
        if (id > 7 || inner == TG_THRIFT_STRUCT || inner == TG_THRIFT_TRUE ||
            inner == TG_THRIFT_FALSE) {
            tg_thrift_skip(t, inner);
            continue;
        }
        int64_t v = tg_thrift_int(t, inner);
        if (v < 0 || v > INT32_MAX) t->failed = true;
        if (id == 1)
            h->n_values = (uint32_t)v;
        else if (id == (kind == TG_PQ_DATA_V2 ? 4 : 2))
            h->encoding = (int)v;
        else if (kind == TG_PQ_DATA && id == 3)
            h->def_encoding = (int)v;
        else if (kind == TG_PQ_DATA && id == 4)
            h->rep_encoding = (int)v;
        else if (kind == TG_PQ_DATA_V2 && id == 3)
            h->n_rows = (uint32_t)v;
        else if (kind == TG_PQ_DATA_V2 && id == 5)
            h->def_bytes = (uint32_t)v;
        else if (kind == TG_PQ_DATA_V2 && id == 6)
            h->rep_bytes = (uint32_t)v;
    }
}

tg_status tg_pq_header_read(const unsigned char *in, size_t len, tg_pq_header *h, tg_error *err) {
    tg_thrift t = {in, in + len, false};
    int id = 0;
    tg_thrift_type type;
    int64_t size = -1, packed = -1;
    *h = (tg_pq_header){.kind = -1,
                        .is_packed = true,
                        .rep_encoding = TG_PQ_ENC_RLE,
                        .def_encoding = TG_PQ_ENC_RLE};
    while (tg_thrift_field(&t, &id, &type)) {
        switch (id) {
        case 1: h->kind = (int)tg_thrift_int(&t, type); break;
        case 2: size = tg_thrift_int(&t, type); break;
        case 3: packed = tg_thrift_int(&t, type); break;
        case 4:
            h->crc = (uint32_t)tg_thrift_int(&t, type);
            h->has_crc = true;
            break;
        case 5: read_details(&t, type, TG_PQ_DATA, h); break;
        case 7: read_details(&t, type, TG_PQ_DICTIONARY, h); break;
        case 8: read_details(&t, type, TG_PQ_DATA_V2, h); break;
        default: tg_thrift_skip(&t, type);
        }
    }
    h->header_bytes = (size_t)(t.at - in);
    if (t.failed || h->kind < 0 || size < 0 || packed < 0 || size > MAX_PAGE ||
        (uint64_t)packed > len - h->header_bytes)
        return broken(err, "its header");
    if (h->n_values > MAX_VALUES)
        return tg_fail(err, TG_UNSUPPORTED, "a Parquet page of more than %d values is not read",
                       MAX_VALUES);
    h->size = (uint32_t)size, h->packed = (uint32_t)packed;
    if ((uint64_t)h->rep_bytes + h->def_bytes > h->packed ||
        (uint64_t)h->rep_bytes + h->def_bytes > h->size)
        return broken(err, "its levels are longer than itself");
    return TG_OK;
}

/* ---- content ------------------------------------------------------------------------------- */

static tg_status unpack(int codec, const tg_pq_header *h, const unsigned char *content,
                        tg_pq_page *page, tg_error *err) {
    if (h->has_crc && (uint32_t)crc32(0, content, h->packed) != h->crc)
        return broken(err, "its checksum is wrong");
    page->data = tg_alloc_aligned(h->size ? h->size : 1, 16);
    if (!page->data) return tg_fail_nomem(err, h->size);
    page->memory += h->size;
    size_t plain = h->kind == TG_PQ_DATA_V2 ? h->rep_bytes + h->def_bytes : 0;
    if (plain) memcpy(page->data, content, plain);
    if (!h->is_packed) codec = TG_PQ_UNCOMPRESSED;
    if (h->size == plain) return TG_OK; /* nothing but levels */
    return tg_pq_unpack(codec, content + plain, h->packed - plain, page->data + plain,
                        h->size - plain, err);
}

/* Levels of a version 1 page: runs behind their length, or the old packing. *at goes on. */
static bool read_levels_v1(const unsigned char *data, size_t len, size_t *at, unsigned largest,
                           int encoding, size_t n, uint8_t *out) {
    uint32_t size;
    size_t used;
    if (encoding == TG_PQ_ENC_BIT_PACKED) {
        if (!tg_pq_levels_packed(data + *at, len - *at, largest, n, out, &used)) return false;
        *at += used;
        return true;
    }
    if (encoding != TG_PQ_ENC_RLE || len - *at < 4) return false;
    memcpy(&size, data + *at, 4);
    *at += 4;
    if (size > len - *at || !tg_pq_levels(data + *at, size, largest, n, out)) return false;
    *at += size;
    return true;
}

static tg_status read_levels(const tg_pq_node *leaf, const tg_pq_header *h, tg_pq_page *page,
                             size_t *at, tg_error *err) {
    size_t n = page->n;
    if (leaf->max_rep && !(page->rep = tg_alloc_array(n ? n : 1, 1))) return tg_fail_nomem(err, n);
    if (leaf->max_def && !(page->def = tg_alloc_array(n ? n : 1, 1))) return tg_fail_nomem(err, n);
    page->memory += 2 * n;
    bool ok = true;
    if (h->kind == TG_PQ_DATA_V2) {
        *at = h->rep_bytes + h->def_bytes;
        if (page->rep) ok = tg_pq_levels(page->data, h->rep_bytes, leaf->max_rep, n, page->rep);
        if (ok && page->def)
            ok = tg_pq_levels(page->data + h->rep_bytes, h->def_bytes, leaf->max_def, n, page->def);
    } else {
        if (page->rep)
            ok = read_levels_v1(page->data, h->size, at, leaf->max_rep, h->rep_encoding, n,
                                page->rep);
        if (ok && page->def)
            ok = read_levels_v1(page->data, h->size, at, leaf->max_def, h->def_encoding, n,
                                page->def);
    }
    return ok ? TG_OK : broken(err, "its levels");
}

/* Where the values and the records are; *n_values: how many are there. */
static tg_status index_levels(const tg_pq_node *leaf, tg_pq_page *page, size_t *n_values,
                              tg_error *err) {
    *n_values = page->n;
    if (page->def) {
        page->value_at = tg_alloc_array(page->n ? page->n : 1, sizeof *page->value_at);
        if (!page->value_at) return tg_fail_nomem(err, page->n * sizeof *page->value_at);
        page->memory += page->n * sizeof *page->value_at;
        uint32_t k = 0;
        for (size_t i = 0; i < page->n; i++) {
            page->value_at[i] = k;
            k += page->def[i] == leaf->max_def;
        }
        *n_values = k;
    }
    if (!page->rep) return TG_OK;
    for (size_t i = 0; i < page->n; i++) page->n_starts += page->rep[i] == 0;
    page->starts = tg_alloc_array(page->n_starts + 1, sizeof *page->starts);
    if (!page->starts) return tg_fail_nomem(err, page->n_starts * sizeof *page->starts);
    page->memory += page->n_starts * sizeof *page->starts;
    for (size_t i = 0, k = 0; i < page->n; i++)
        if (page->rep[i] == 0) page->starts[k++] = (uint32_t)i;
    return TG_OK;
}

/* Values that are places in the dictionary become its values. */
static tg_status look_up(tg_pq_page *page, tg_pq_page *dictionary, const unsigned char *in,
                         size_t len, size_t n, tg_error *err) {
    const tg_pq_values *words = &dictionary->values;
    uint32_t *index = tg_alloc_array(n ? n : 1, sizeof *index);
    page->values.v = tg_alloc_array(n ? n : 1, sizeof *page->values.v);
    page->values.n = n;
    if (!index || !page->values.v) {
        tg_free(index);
        return tg_fail_nomem(err, n * sizeof *page->values.v);
    }
    bool ok = n == 0 || (len >= 1 && words->n && in[0] <= 32 &&
                         tg_pq_hybrid(in + 1, len - 1, in[0], n, (uint32_t)(words->n - 1), index));
    for (size_t i = 0; ok && i < n; i++) page->values.v[i] = words->v[index[i]];
    tg_free(index);
    page->dictionary = dictionary;
    return ok ? TG_OK : broken(err, "its places in the dictionary");
}

static tg_status read_content(const tg_pq_node *leaf, int codec, const tg_pq_header *h,
                              const unsigned char *content, tg_pq_page *dictionary,
                              tg_pq_page *page, tg_error *err) {
    size_t at = 0, n_values = h->n_values;
    page->n = h->n_values;
    tg_status st = unpack(codec, h, content, page, err);
    if (st == TG_OK && h->kind != TG_PQ_DICTIONARY) st = read_levels(leaf, h, page, &at, err);
    if (st == TG_OK && h->kind != TG_PQ_DICTIONARY) st = index_levels(leaf, page, &n_values, err);
    if (st != TG_OK) return st;
    const unsigned char *in = page->data + at;
    size_t len = h->size - at;
    page->memory += n_values * sizeof(tg_pq_value);
    bool indices = h->encoding == TG_PQ_ENC_DICTIONARY || h->encoding == TG_PQ_ENC_PLAIN_DICTIONARY;
    if (indices && h->kind != TG_PQ_DICTIONARY) {
        if (!dictionary) return broken(err, "its column has no dictionary");
        return look_up(page, dictionary, in, len, n_values, err);
    }
    st = tg_pq_values_read(leaf, indices ? TG_PQ_ENC_PLAIN : h->encoding, in, len, n_values,
                           &page->values, err);
    if (st == TG_OK && !page->values.bytes && tg_pq_is_text(leaf))
        for (size_t i = 0; at && i < n_values; i++) page->values.v[i].text.at += (uint32_t)at;
    return st;
}

tg_status tg_pq_page_read(const tg_pq_node *leaf, int codec, const tg_pq_header *h,
                          const unsigned char *content, tg_pq_page *dictionary, tg_pq_page **out,
                          tg_error *err) {
    tg_pq_page *page = tg_alloc(sizeof *page);
    *out = NULL;
    if (!page) return tg_fail_nomem(err, sizeof *page);
    tg_status st = read_content(leaf, codec, h, content, dictionary, page, err);
    if (st == TG_OK)
        *out = page;
    else
        tg_pq_page_free(page);
    return st;
}

void tg_pq_page_free(tg_pq_page *page) {
    if (!page) return;
    tg_free(page->rep);
    tg_free(page->def);
    tg_free(page->value_at);
    tg_free(page->starts);
    tg_free(page->data);
    tg_pq_values_fini(&page->values);
    tg_free(page);
}
