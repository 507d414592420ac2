/* Reading a zip's central directory. Every offset is checked against the file before it is followed;
 * after open no entry needs another check. */
#include "common/nn/torch/zip.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, CENTRAL_SIZE = 46, LOCAL_SIZE = 30 };

struct archive {
    const unsigned char *bytes;
    size_t len;
    tg_error *err;
};

static uint64_t get(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static bool is_mark(const unsigned char *p, unsigned a, unsigned b) {
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

static tg_status bad(const struct archive *a, const char *what) {
    return tg_fail(a->err, TG_DATA, "bad zip archive: %s", what);
}

bool tg_zip_is(const unsigned char *bytes, size_t len) {
    return len >= 4 && (is_mark(bytes, 3, 4) || is_mark(bytes, 5, 6));
}

/* The record at the end, behind which a comment may stand. */
static const unsigned char *find_end(const struct archive *a) {
    size_t farthest = END_SIZE + 0xFFFF;
    for (size_t back = END_SIZE; back <= a->len && back <= farthest; back++) {
        const unsigned char *p = a->bytes + a->len - back;
        if (is_mark(p, 5, 6) && get(p + 20, 2) == back - END_SIZE) return p;
    }
    return NULL;
}

struct directory {
    uint64_t n, size, offset;
};

/* The long form, which its locator in front of the short form points to. */
static tg_status read_end64(const struct archive *a, const unsigned char *end,
                            struct directory *d) {
    size_t before = (size_t)(end - a->bytes);
    if (before < LOCATOR_SIZE || !is_mark(end - LOCATOR_SIZE, 6, 7)) return TG_OK;
    uint64_t at = get(end - LOCATOR_SIZE + 8, 8);
    if (before < LOCATOR_SIZE + END64_SIZE || at > before - LOCATOR_SIZE - END64_SIZE ||
        !is_mark(a->bytes + at, 6, 6))
        return bad(a, "no directory where its locator points");
    const unsigned char *p = a->bytes + at;
    *d = (struct directory){get(p + 32, 8), get(p + 40, 8), get(p + 48, 8)};
    return TG_OK;
}

static tg_status read_directory(const struct archive *a, struct directory *d) {
    const unsigned char *end = find_end(a);
    if (!end) return bad(a, "no directory at its end (cut off?)");
    *d = (struct directory){get(end + 10, 2), get(end + 12, 4), get(end + 16, 4)};
    tg_status st = read_end64(a, end, d);
    if (st != TG_OK) return st;
    size_t before = (size_t)(end - a->bytes);
    if (d->offset > before || d->size > before - d->offset)
        return bad(a, "its directory lies outside the file");
    if (d->n > d->size / CENTRAL_SIZE)
        return bad(a, "more entries than its directory has room for");
    return TG_OK;
}

/* Values that did not fit their 32 bits, from the extra field with tag 1, in this order. */
static bool read_extra64(const unsigned char *extra, size_t len, uint64_t *const values[3]) {
    while (len >= 4) {
        size_t size = get(extra + 2, 2);
        if (size > len - 4) return false;
        if (get(extra, 2) == 1) {
            const unsigned char *p = extra + 4, *end = p + size;
            for (int i = 0; i < 3; i++) {
                if (*values[i] != 0xFFFFFFFF) continue;
                if (end - p < 8) return false;
                *values[i] = get(p, 8);
                p += 8;
            }
            return true;
        }
        extra += 4 + size;
        len -= 4 + size;
    }
    return *values[0] != 0xFFFFFFFF && *values[1] != 0xFFFFFFFF && *values[2] != 0xFFFFFFFF;
}

static tg_status bad_entry(const struct archive *a, const tg_zip_entry *e, const char *what) {
    return tg_fail(a->err, TG_DATA, "bad zip archive: entry \"%.*s\" %s",
                   (int)(e->name_len < 100 ? e->name_len : 100), e->name, what);
}

/* One record of the directory at p, of which `left` bytes are there; *used: its length. */
static tg_status read_entry(const struct archive *a, const unsigned char *p, size_t left,
                            size_t limit, tg_zip_entry *e, size_t *used) {
    if (left < CENTRAL_SIZE || !is_mark(p, 1, 2)) return bad(a, "a broken directory record");
    size_t name_len = get(p + 28, 2), extra = get(p + 30, 2), comment = get(p + 32, 2);
    *used = CENTRAL_SIZE + name_len + extra + comment;
    if (*used > left) return bad(a, "a broken directory record");
    *e = (tg_zip_entry){.name = (const char *)p + CENTRAL_SIZE, .name_len = name_len};
    uint64_t size = get(p + 24, 4), packed = get(p + 20, 4), offset = get(p + 42, 4);
    uint64_t *const values[3] = {&size, &packed, &offset};
    if (!read_extra64(p + CENTRAL_SIZE + name_len, extra, values))
        return bad_entry(a, e, "has a broken size");
    if (get(p + 8, 2) & 1) return bad_entry(a, e, "is encrypted");
    if (get(p + 10, 2) != 0 || packed != size)
        return bad_entry(a, e, "is compressed; torch.save writes entries as they are");
    if (offset > limit || limit - offset < LOCAL_SIZE || !is_mark(a->bytes + offset, 3, 4))
        return bad_entry(a, e, "has no header where the directory points");
    const unsigned char *local = a->bytes + offset;
    uint64_t data = offset + LOCAL_SIZE + get(local + 26, 2) + get(local + 28, 2);
    if (data > limit || size > limit - data) return bad_entry(a, e, "lies outside the file");
    if (get(local + 26, 2) != name_len || memcmp(local + LOCAL_SIZE, e->name, name_len) != 0)
        return bad_entry(a, e, "has another name in its own header");
    e->data = a->bytes + data;
    e->size = (size_t)size;
    e->begin = (size_t)offset;
    e->crc = (uint32_t)get(p + 16, 4);
    return TG_OK;
}

static int by_place(const void *a, const void *b) {
    const tg_zip_entry *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len) {
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : a_len < b_len ? -1 : a_len > b_len;
}

static int by_name(const void *a, const void *b) {
    const tg_zip_entry *x = a, *y = b;
    return compare_names(x->name, x->name_len, y->name, y->name_len);
}

static tg_status check_apart(const struct archive *a, tg_zip *z) {
    if (z->n) qsort(z->entries, z->n, sizeof *z->entries, by_place);
    for (size_t i = 1; i < z->n; i++) {
        const tg_zip_entry *e = &z->entries[i - 1];
        if ((size_t)(e->data - a->bytes) + e->size > z->entries[i].begin)
            return bad_entry(a, e, "overlaps another");
    }
    if (z->n) qsort(z->entries, z->n, sizeof *z->entries, by_name);
    for (size_t i = 1; i < z->n; i++)
        if (!by_name(&z->entries[i - 1], &z->entries[i]))
            return bad_entry(a, &z->entries[i], "occurs twice");
    return TG_OK;
}

tg_status tg_zip_open(tg_zip *z, const unsigned char *bytes, size_t len, tg_error *err) {
    *z = (tg_zip){0};
    struct archive a = {bytes, len, err};
    struct directory d = {0};
    tg_status st = read_directory(&a, &d);
    if (st != TG_OK) return st;
    z->entries = tg_alloc_array((size_t)d.n, sizeof *z->entries);
    if (!z->entries) return tg_fail_nomem(err, (size_t)d.n * sizeof *z->entries);
    size_t at = (size_t)d.offset, end = at + (size_t)d.size;
    for (; z->n < d.n && st == TG_OK; z->n++) {
        size_t used = 0;
        st = read_entry(&a, bytes + at, end - at, (size_t)d.offset, &z->entries[z->n], &used);
        at += used;
    }
    if (st == TG_OK && at != end) st = bad(&a, "its directory has more entries than it says");
    if (st == TG_OK) st = check_apart(&a, z);
    if (st != TG_OK) tg_zip_close(z);
    return st;
}

void tg_zip_close(tg_zip *z) {
    tg_free(z->entries);
    *z = (tg_zip){0};
}

const tg_zip_entry *tg_zip_find(const tg_zip *z, const char *prefix, size_t prefix_len,
                                const char *name, size_t name_len) {
    size_t low = 0, high = z->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const tg_zip_entry *e = &z->entries[mid];
        size_t head = e->name_len < prefix_len ? e->name_len : prefix_len;
        int c = compare_names(e->name, head, prefix, prefix_len);
        if (!c) c = compare_names(e->name + head, e->name_len - head, name, name_len);
        if (!c) return e;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
