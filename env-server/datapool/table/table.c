/* What all tables share: reading a row with its place in the message, choosing a reader by name, and
 * several files as one table. */
#include "env-server/datapool/table/table.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "common/base/str.h"
#include "common/text/utf8.h"

#include <stdio.h>
#include <string.h>

tg_status tg_table_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    *out = NULL;
    tg_status st = t->ops->row(t, i, out, err);
    if (st == TG_OK || !err) return st;
    char where[400];
    tg_table_where(t, i, where, sizeof where);
    tg_error_prefix(err, "%s: ", where);
    return st;
}

void tg_table_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    t->ops->where(t, i, out, size);
}

void tg_table_close(tg_table *t) {
    if (t->ops) t->ops->close(t->state);
    memset(t, 0, sizeof *t);
}

tg_status tg_table_text(const char *bytes, size_t len, json_t **out, tg_error *err) {
    if (memchr(bytes, 0, len)) return tg_fail(err, TG_DATA, "the text has a NUL character");
    size_t good = tg_utf8_valid_prefix(bytes, len);
    if (good < len)
        return tg_fail(err, TG_DATA, "not UTF-8 (byte 0x%02x)", (unsigned char)bytes[good]);
    *out = json_stringn_nocheck(bytes, len);
    return *out ? TG_OK : tg_fail_nomem(err, len);
}

bool tg_offsets_push(tg_offsets *o, uint64_t at) {
    if (o->n == o->cap) {
        size_t cap = o->cap ? 2 * o->cap : 1024;
        uint64_t *grown = tg_realloc_array(o->at, cap, sizeof *grown);
        if (!grown) return false;
        o->at = grown, o->cap = cap;
    }
    o->at[o->n++] = at;
    return true;
}

/* ---- by name ------------------------------------------------------------------------------- */

static const char *const kinds[] = {".parquet",  ".jsonl",   ".json",   ".csv",   ".tsv",
                                    ".jsonl.gz", ".json.gz", ".csv.gz", ".tsv.gz"};

int tg_table_kind(const char *path) {
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++)
        if (tg_str_ends(path, kinds[i])) return i;
    return -1;
}

tg_status tg_table_open(tg_table *t, const char *path, const char *const *columns, tg_error *err) {
    int kind = tg_table_kind(path);
    memset(t, 0, sizeof *t);
    if (kind < 0)
        return tg_fail(err, TG_DATA,
                       "%s: unknown kind of file; expected .jsonl, .json, .csv, .tsv (also with "
                       ".gz) or .parquet",
                       path);
    if (kind == 0) return tg_table_open_parquet(t, path, columns, err);
    if (strstr(kinds[kind], ".json")) return tg_table_open_jsonl(t, path, err);
    const tg_csv_format format = {.separator = strstr(kinds[kind], ".tsv") ? '\t' : ','};
    return tg_table_open_csv(t, path, &format, err);
}

/* ---- several tables as one ----------------------------------------------------------------- */

struct parts {
    tg_table *tables;
    size_t n;
};

/* The table that row i is in; i becomes the number there. */
static const tg_table *part_of(const tg_table *t, uint64_t *i) {
    const struct parts *p = t->state;
    size_t k = 0;
    while (k + 1 < p->n && *i >= p->tables[k].count) *i -= p->tables[k++].count;
    return &p->tables[k];
}

static tg_status parts_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const tg_table *part = part_of(t, &i);
    return part->ops->row(part, i, out, err);
}

static void parts_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const tg_table *part = part_of(t, &i);
    part->ops->where(part, i, out, size);
}

static void parts_close(void *state) {
    struct parts *p = state;
    for (size_t i = 0; i < p->n; i++) tg_table_close(&p->tables[i]);
    tg_free(p->tables);
    tg_free(p);
}

tg_status tg_table_concat(tg_table *t, tg_table *parts, size_t n, tg_error *err) {
    static const tg_table_ops ops = {parts_row, parts_where, parts_close};
    memset(t, 0, sizeof *t);
    if (n == 1) {
        *t = parts[0];
        return TG_OK;
    }
    struct parts *p = tg_alloc(sizeof *p);
    tg_table *tables = tg_alloc_array(n, sizeof *tables);
    if (!p || !tables) {
        for (size_t i = 0; i < n; i++) tg_table_close(&parts[i]);
        tg_free(p);
        tg_free(tables);
        return tg_fail_nomem(err, n * sizeof *tables);
    }
    memcpy(tables, parts, n * sizeof *tables);
    *p = (struct parts){tables, n};
    *t = (tg_table){.ops = &ops, .state = p, .name = tables[0].name};
    for (size_t i = 0; i < n; i++) {
        uint64_t both[] = {t->digest, tables[i].digest};
        t->digest = tg_hash64(both, sizeof both);
        t->count += tables[i].count;
    }
    return TG_OK;
}
