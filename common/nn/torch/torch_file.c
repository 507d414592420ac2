/* From the bytes of a file to a table of tensors: run the pickle, find the storages, check that every tensor lies inside its own. */
#include "common/nn/torch/torch_file.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/crc32.h"
#include "common/nn/torch/pickle.h"
#include "common/nn/torch/state.h"
#include "common/nn/torch/zip.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    const unsigned char *bytes;
    size_t len;
    tg_error *err;
    tg_torch_state state;
    tg_pickle pickle;
    tg_pickle_value root;
    size_t root_len; /* of its pickle */
    size_t names;    /* bytes of the names so far */
    bool damaged;    /* it is not the one that was saved */
};

static int shown(size_t len) {
    return (int)TG_MIN(len, (size_t)100);
}

static tg_status storage_fail(struct reader *r, const tg_torch_storage *s, const char *what) {
    return tg_fail(r->err, TG_DATA, "storage \"%.*s\" %s", shown(s->key_len), s->key, what);
}

/* Bytes of a storage; false when there cannot be so many. */
static bool storage_bytes(const tg_torch_storage *s, size_t *bytes) {
    return !__builtin_mul_overflow((size_t)s->count, tg_dtype_bytes(s->dtype), bytes);
}

/* The pickle of the table; *used: its length. */
static tg_status run_root(struct reader *r, const unsigned char *bytes, size_t len, size_t *used) {
    tg_status st = tg_pickle_run(&r->pickle, bytes, len, used, &r->root, r->err);
    const tg_pickle_value *key = st == TG_DATA ? tg_pickle_open_key(&r->pickle) : NULL;
    if (key) tg_error_prefix(r->err, "\"%.*s\": ", shown(key->n), (const char *)key->text);
    return st;
}

/* ---- zip ---- */

/* The only entry called <anything>/data.pkl; *prefix: the length of "<anything>/". Of several, readers would take one or another. */
static tg_status find_pickle(struct reader *r, const tg_zip *z, const tg_zip_entry **out,
                             size_t *prefix) {
    static const char last[] = "/data.pkl";
    const tg_zip_entry *found = NULL;
    for (size_t i = 0; i < z->n; i++) {
        const tg_zip_entry *e = &z->entries[i];
        if (e->name_len < sizeof last - 1) continue;
        size_t head = e->name_len - (sizeof last - 1);
        if (memcmp(e->name + head, last, sizeof last - 1) != 0) continue;
        if (found)
            return tg_fail(
                r->err, TG_DATA,
                "two tables in the archive, \"%.*s\" and \"%.*s\": torch.save writes one",
                shown(found->name_len), found->name, shown(e->name_len), e->name);
        *prefix = head + 1;
        found = e;
    }
    *out = found;
    return found ? TG_OK
                 : tg_fail(r->err, TG_DATA,
                           "no data.pkl in the archive: torch.save did not write it");
}

static tg_status check_byteorder(struct reader *r, const tg_zip *z, const char *prefix,
                                 size_t prefix_len) {
    const tg_zip_entry *e = tg_zip_find(z, prefix, prefix_len, "byteorder", strlen("byteorder"));
    if (!e || (e->size == 6 && !memcmp(e->data, "little", 6))) return TG_OK;
    return tg_fail(r->err, TG_UNSUPPORTED, "byteorder: expected little, found %.*s", shown(e->size),
                   (const char *)e->data);
}

static bool is_intact(const tg_zip_entry *e) {
    return !e->crc || tg_crc32(0, e->data, e->size) == e->crc;
}

/* One for each entry, in their order. */
static tg_status make_seals(struct reader *r, const tg_zip *z, tg_tensor_file *f) {
    f->seals = tg_alloc_array(z->n, sizeof *f->seals);
    if (!f->seals) return tg_fail_nomem(r->err, z->n * sizeof *f->seals);
    for (size_t i = 0; i < z->n; i++)
        f->seals[i] = (tg_st_seal){
            .data = z->entries[i].data, .bytes = z->entries[i].size, .crc = z->entries[i].crc};
    return TG_OK;
}

static tg_status find_zip_storage(struct reader *r, const tg_zip *z, const char *prefix,
                                  size_t prefix_len, tg_torch_storage *s) {
    char name[5 + TG_TORCH_KEY_MAX] = "data/";
    memcpy(name + 5, s->key, s->key_len);
    const tg_zip_entry *e = tg_zip_find(z, prefix, prefix_len, name, 5 + s->key_len);
    size_t bytes;
    if (!e) return storage_fail(r, s, "is not in the archive");
    if (!storage_bytes(s, &bytes) || bytes > e->size)
        return storage_fail(r, s, "is larger than its entry in the archive");
    s->data = e->data;
    s->seal = e->crc ? (size_t)(e - z->entries) + 1 : 0;
    return TG_OK;
}

static tg_status read_zip(struct reader *r, tg_tensor_file *f) {
    tg_zip z;
    tg_status st = tg_zip_open(&z, r->bytes, r->len, r->err);
    if (st != TG_OK) return st;
    size_t prefix_len = 0, used;
    const tg_zip_entry *e = NULL;
    st = find_pickle(r, &z, &e, &prefix_len);
    if (st == TG_OK) {
        r->root_len = e->size;
        r->damaged = !is_intact(e);
        st = check_byteorder(r, &z, e->name, prefix_len);
        if (st == TG_OK) st = run_root(r, e->data, e->size, &used);
        for (size_t i = 0; i < r->state.n_storages && st == TG_OK; i++)
            st = find_zip_storage(r, &z, e->name, prefix_len, &r->state.storages[i]);
        if (st == TG_OK) st = make_seals(r, &z, f);
    }
    tg_zip_close(&z);
    return st;
}

/* ---- pickles, then storages ---- */

static const unsigned char magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

static tg_status next_pickle(struct reader *r, size_t *at, tg_pickle_value *out, size_t *used) {
    tg_status st = tg_pickle_run(&r->pickle, r->bytes + *at, r->len - *at, used, out, r->err);
    if (st == TG_OK) *at += *used;
    return st;
}

static const tg_pickle_value *dict_get(const tg_pickle_value *dict, const char *key) {
    if (dict->kind != TG_PICKLE_DICT) return NULL;
    for (size_t i = 0; i + 1 < dict->list->n; i += 2) {
        const tg_pickle_value *k = &dict->list->items[i];
        if (k->kind == TG_PICKLE_TEXT && k->n == strlen(key) && !memcmp(k->text, key, k->n))
            return k + 1;
    }
    return NULL;
}

/* Magic number, version and machine. */
static tg_status read_intro(struct reader *r, size_t *at) {
    tg_pickle_value v;
    size_t used;
    tg_status st = next_pickle(r, at, &v, &used);
    if (st != TG_OK) return st;
    if (v.kind != TG_PICKLE_LONG || v.n != sizeof magic || memcmp(v.text, magic, sizeof magic) != 0)
        return tg_fail(r->err, TG_DATA, "not a file that torch.save wrote (magic number)");
    st = next_pickle(r, at, &v, &used);
    if (st != TG_OK) return st;
    if (v.kind != TG_PICKLE_INT || v.i != 1001)
        return tg_fail(r->err, TG_DATA, "a version of torch.save's format other than 1001");
    st = next_pickle(r, at, &v, &used);
    if (st != TG_OK) return st;
    const tg_pickle_value *little = dict_get(&v, "little_endian");
    if (!little || little->kind != TG_PICKLE_BOOL || !little->i)
        return tg_fail(r->err, TG_UNSUPPORTED, "written on a big-endian machine");
    return TG_OK;
}

static int compare_keys(const char *a, size_t a_len, const char *b, size_t b_len) {
    int c = memcmp(a, b, TG_MIN(a_len, b_len));
    return c ? c : a_len < b_len ? -1 : a_len > b_len;
}

static int by_key(const void *a, const void *b) {
    const tg_torch_storage *const *x = a, *const *y = b;
    return compare_keys((*x)->key, (*x)->key_len, (*y)->key, (*y)->key_len);
}

/* First of the sorted storages that has the key; n: none. */
static size_t find_key(tg_torch_storage *const *sorted, size_t n, const tg_pickle_value *key) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_keys(sorted[mid]->key, sorted[mid]->key_len, (const char *)key->text, key->n) <
            0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < n &&
        compare_keys(sorted[low]->key, sorted[low]->key_len, (const char *)key->text, key->n) != 0)
        return n;
    return low;
}

/* The storages follow in the order of the keys, each behind its number of elements. */
static tg_status read_storage(struct reader *r, tg_torch_storage *const *sorted,
                              const tg_pickle_value *key, size_t *at) {
    size_t n = r->state.n_storages, i = key->kind == TG_PICKLE_TEXT ? find_key(sorted, n, key) : n;
    if (i == n) return tg_fail(r->err, TG_DATA, "a storage that no tensor uses");
    tg_torch_storage *s = sorted[i];
    if (s->data) return storage_fail(r, s, "is there twice");
    if (r->len - *at < 8) return storage_fail(r, s, "is cut off");
    uint64_t count = 0;
    for (int k = 7; k >= 0; k--) count = count << 8 | r->bytes[*at + (size_t)k];
    size_t bytes;
    if (count != (uint64_t)s->count)
        return storage_fail(r, s, "has another length than its tensors say");
    if (!storage_bytes(s, &bytes) || bytes > r->len - *at - 8)
        return storage_fail(r, s, "is larger than the file");
    for (; i < n && !compare_keys(sorted[i]->key, sorted[i]->key_len, s->key, s->key_len); i++) {
        if (sorted[i]->count != s->count || sorted[i]->dtype != s->dtype)
            return storage_fail(r, s, "is used with different types or lengths");
        sorted[i]->data = r->bytes + *at + 8;
    }
    *at += 8 + bytes;
    return TG_OK;
}

static tg_status read_storages(struct reader *r, const tg_pickle_value *keys, size_t at) {
    size_t n = r->state.n_storages;
    if (keys->kind != TG_PICKLE_LIST)
        return tg_fail(r->err, TG_DATA, "expected a list of storages, found %s",
                       tg_pickle_kind_name(keys->kind));
    tg_torch_storage **sorted = tg_alloc_array(n, sizeof(void *));
    if (!sorted) return tg_fail_nomem(r->err, n * sizeof(void *));
    for (size_t i = 0; i < n; i++) sorted[i] = &r->state.storages[i];
    if (n) qsort(sorted, n, sizeof(void *), by_key);
    tg_status st = TG_OK;
    for (size_t i = 0; i < keys->list->n && st == TG_OK; i++)
        st = read_storage(r, sorted, &keys->list->items[i], &at);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        if (!sorted[i]->data) st = storage_fail(r, sorted[i], "is not in the file");
    tg_free(sorted);
    return st;
}

static tg_status read_old(struct reader *r) {
    size_t at = 0, used;
    tg_pickle_value keys;
    if (!r->len || r->bytes[0] != 0x80)
        return tg_fail(r->err, TG_DATA,
                       "neither a zip archive nor a pickle: torch.save did not write it");
    tg_status st = read_intro(r, &at);
    if (st == TG_OK) st = run_root(r, r->bytes + at, r->len - at, &r->root_len);
    if (st == TG_OK) at += r->root_len;
    if (st == TG_OK) st = next_pickle(r, &at, &keys, &used);
    return st == TG_OK ? read_storages(r, &keys, at) : st;
}

/* ---- tensors ---- */

/* The last element lies inside the storage, and the whole is not a small storage repeated without end. */
static tg_status place(struct reader *r, const tg_torch_tensor *t, tg_st_tensor *out) {
    const tg_torch_storage *s = &r->state.storages[t->storage];
    size_t size = tg_dtype_bytes(s->dtype), count = 1;
    int64_t last;
    bool fits = !__builtin_add_overflow(t->offset, s->begin, &last), empty = false;
    for (int d = 0; d < t->ndim; d++) {
        int64_t reach = 0;
        empty = empty || !t->shape[d];
        fits = fits && !__builtin_mul_overflow(count, (size_t)t->shape[d], &count);
        fits = fits &&
               (t->shape[d] < 2 || !__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &reach));
        fits = fits && !__builtin_add_overflow(last, reach, &last);
    }
    if (empty) {
        count = 0;
        fits = true;
    }
    fits = fits && (empty || last < s->count) && count <= r->len / size + (1 << 20);
    if (!fits)
        return tg_fail(r->err, TG_DATA,
                       "its shape and strides reach beyond its storage of %lld elements",
                       (long long)s->count);
    out->dtype = s->dtype;
    out->ndim = t->ndim;
    out->count = count;
    out->bytes = count * size;
    out->seal = s->seal;
    out->data = s->data + (empty ? 0 : (size_t)(t->offset + s->begin) * size);
    memcpy(out->shape, t->shape, sizeof out->shape);
    memcpy(out->stride, t->stride, sizeof out->stride);
    int64_t expected = 1;
    for (int d = t->ndim - 1; d >= 0 && !empty; d--) {
        if (t->shape[d] != 1 && t->stride[d] != expected) out->strided = true;
        expected *= t->shape[d];
    }
    return TG_OK;
}

static tg_status add_tensor(struct reader *r, tg_tensor_file *f, const tg_pickle_value *key,
                            const tg_pickle_value *value) {
    if (key->kind != TG_PICKLE_TEXT || memchr(key->text, '\0', key->n))
        return tg_fail(r->err, TG_DATA, "a key of the table is not a name but %s",
                       tg_pickle_kind_name(key->kind));
    if (key->n > TG_ST_MAX_NAME)
        return tg_fail(r->err, TG_DATA, "tensor \"%.*s…\" has too long a name", shown(key->n),
                       (const char *)key->text);
    if (value->kind != TG_PICKLE_OBJECT || value->n != TG_TORCH_TENSOR)
        return tg_fail(r->err, TG_DATA,
                       "\"%.*s\": expected a tensor, found %s (only state dicts are read)",
                       shown(key->n), (const char *)key->text, tg_pickle_kind_name(value->kind));
    r->names += key->n;
    if (r->names > r->root_len) return tg_fail(r->err, TG_DATA, "names of tensors occur twice");
    tg_st_tensor *t = &f->tensors[f->n];
    t->name = tg_strndup((const char *)key->text, key->n);
    if (!t->name) return tg_fail_nomem(r->err, key->n);
    f->n++;
    tg_status st = place(r, &r->state.tensors[value->i], t);
    if (st == TG_DATA) tg_error_prefix(r->err, "tensor \"%.200s\": ", t->name);
    return st;
}

static tg_status make_table(struct reader *r, tg_tensor_file *f) {
    if (r->root.kind != TG_PICKLE_DICT)
        return tg_fail(r->err, TG_DATA, "expected a table of tensors (a state dict), found %s",
                       tg_pickle_kind_name(r->root.kind));
    const tg_pickle_list *list = r->root.list;
    /* distinct names and how their tensors are made take more room than this */
    if (list->n / 2 > TG_MIN(8 + r->root_len / 32, (size_t)TG_ST_MAX_TENSORS))
        return tg_fail(r->err, TG_DATA, "more tensors than a pickle of its length can name");
    f->tensors = tg_alloc_array(list->n / 2, sizeof *f->tensors);
    if (!f->tensors) return tg_fail_nomem(r->err, list->n / 2 * sizeof *f->tensors);
    tg_status st = TG_OK;
    for (size_t i = 0; i + 1 < list->n && st == TG_OK; i += 2)
        st = add_tensor(r, f, &list->items[i], &list->items[i + 1]);
    return st;
}

bool tg_torch_file_is(const unsigned char *bytes, size_t len) {
    return tg_zip_is(bytes, len) ||
           (len > 2 && bytes[0] == 0x80 && bytes[1] <= 5 && (bytes[2] == 0x8a || bytes[2] == 0x95));
}

tg_status tg_torch_file_open_memory(tg_tensor_file *f, const char *name, const unsigned char *bytes,
                                    size_t len, tg_error *err) {
    *f = (tg_tensor_file){0};
    tg_error local = {0}; /* tg_error_prefix needs one */
    struct reader r = {.bytes = bytes, .len = len, .err = err ? err : &local};
    tg_pickle_init(&r.pickle, tg_torch_state_host(&r.state));
    tg_status st = tg_zip_is(bytes, len) ? read_zip(&r, f) : read_old(&r);
    if (st == TG_OK) st = make_table(&r, f);
    if (r.damaged && st != TG_NOMEM) /* what it says, or was refused for, was never saved */
        st = tg_fail(r.err, TG_DATA,
                     "data.pkl is not as it was saved (its checksum is another): the file is "
                     "damaged, take another copy");
    if (st == TG_DATA || st == TG_UNSUPPORTED) tg_error_prefix(r.err, "%s: ", name);
    if (st == TG_OK) st = tg_tensor_file_check_names(f, name, "torch.save", r.err);
    tg_pickle_fini(&r.pickle);
    tg_torch_state_fini(&r.state);
    if (st != TG_OK) tg_tensor_file_close(f);
    return st;
}
