/* Separated text as a table. Opening walks over the records once to find where each begins. */
#include "common/base/alloc.h"
#include "env-server/datapool/table/csv.h"
#include "env-server/datapool/table/datafile.h"
#include "env-server/datapool/table/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct csv {
    tg_datafile *file;
    char separator;
    tg_offsets rows;
    tg_csv_record names; /* of the header */
} csv;

static void where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const csv *c = t->state;
    snprintf(out, size, "%s:%" PRIu64, tg_datafile_path(c->file),
             tg_datafile_line(c->file, c->rows.at[i]));
}

static void close_csv(void *state) {
    csv *c = state;
    tg_datafile_close(&c->file);
    tg_free(c->rows.at);
    tg_csv_record_fini(&c->names);
    tg_free(c);
}

static tg_status fill(const csv *c, const tg_csv_record *r, json_t *object, tg_error *err) {
    if (r->n != c->names.n)
        return tg_fail(err, TG_DATA, "%zu fields; expected %zu (the first is \"%.40s\")", r->n,
                       c->names.n, tg_csv_field(&c->names, 0));
    for (size_t k = 0; k < r->n; k++) {
        json_t *text;
        tg_status st = tg_table_text(tg_csv_field(r, k), r->len[k], &text, err);
        if (st != TG_OK) {
            tg_error_prefix(err, "field \"%.40s\": ", tg_csv_field(&c->names, k));
            return st;
        }
        if (json_object_set_new_nocheck(object, tg_csv_field(&c->names, k), text))
            return tg_fail_nomem(err, r->len[k]);
    }
    return TG_OK;
}

static tg_status csv_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const csv *c = t->state;
    size_t size, used;
    const char *bytes = tg_datafile_bytes(c->file, &size);
    uint64_t at = c->rows.at[i];
    tg_csv_record r = {0};
    tg_status st = tg_csv_read(bytes + at, size - at, c->separator, &r, &used, err);
    tg_datafile_used(c->file, bytes + at, st == TG_OK ? used : 0);
    json_t *object = json_object();
    if (st == TG_OK && !object) st = tg_fail_nomem(err, 1);
    if (st == TG_OK) st = fill(c, &r, object, err);
    tg_csv_record_fini(&r);
    if (st == TG_OK)
        *out = object;
    else
        json_decref(object);
    return st;
}

/* Columns without a name, as of a comma at the end, are never asked for. */
static bool is_repeated(const tg_csv_record *names, size_t i) {
    for (size_t k = 0; k < i && names->len[i]; k++)
        if (names->len[k] == names->len[i] &&
            !memcmp(tg_csv_field(names, k), tg_csv_field(names, i), names->len[i]))
            return true;
    return false;
}

/* The header, given or read from the file at *at. */
static tg_status read_names(csv *c, const tg_csv_format *format, size_t *at, tg_error *err) {
    size_t size, used = 0;
    const char *bytes = tg_datafile_bytes(c->file, &size);
    if (format->names) {
        tg_buf line = {0};
        for (size_t i = 0; format->names[i]; i++)
            tg_buf_printf(&line, "%s%s", i ? "\t" : "", format->names[i]);
        tg_status st = line.failed ? tg_fail_nomem(err, line.len)
                                   : tg_csv_read(line.data, line.len, '\t', &c->names, &used, err);
        tg_buf_fini(&line);
        return st;
    }
    while (*at < size && c->names.n == 0) {
        tg_status st = tg_csv_read(bytes + *at, size - *at, c->separator, &c->names, &used, err);
        if (st != TG_OK) {
            tg_error_prefix(err, "%s: the header: ", tg_datafile_path(c->file));
            return st;
        }
        *at += used;
    }
    if (c->names.n == 0)
        return tg_fail(err, TG_DATA, "%s: no header; expected the names of the columns first",
                       tg_datafile_path(c->file));
    for (size_t i = 0; i < c->names.n; i++) {
        json_t *text;
        tg_status st = tg_table_text(tg_csv_field(&c->names, i), c->names.len[i], &text, err);
        if (st != TG_OK) {
            tg_error_prefix(err, "%s: the header: ", tg_datafile_path(c->file));
            return st;
        }
        json_decref(text);
        if (is_repeated(&c->names, i))
            return tg_fail(err, TG_DATA, "%s:1: two columns are named \"%.40s\"; rename one",
                           tg_datafile_path(c->file), tg_csv_field(&c->names, i));
    }
    return TG_OK;
}

static tg_status index_records(csv *c, const tg_csv_format *format, tg_error *err) {
    size_t size, at = 0;
    const char *bytes = tg_datafile_bytes(c->file, &size);
    if (size >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3)) at = 3;
    tg_status st = read_names(c, format, &at, err);
    while (st == TG_OK && at < size) {
        bool blank;
        size_t used = tg_csv_skip(bytes + at, size - at, c->separator, &blank);
        if (!blank && !tg_offsets_push(&c->rows, at))
            st = tg_fail_nomem(err, 2 * c->rows.cap * sizeof *c->rows.at);
        tg_datafile_used(c->file, bytes + at, used);
        at += used;
    }
    return st;
}

tg_status tg_table_open_csv(tg_table *t, const char *path, const tg_csv_format *format,
                            tg_error *err) {
    static const tg_table_ops ops = {csv_row, where, close_csv};
    memset(t, 0, sizeof *t);
    csv *c = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    c->separator = format->separator;
    tg_status st = tg_datafile_open(&c->file, path, err);
    if (st == TG_OK) st = index_records(c, format, err);
    if (st != TG_OK) {
        close_csv(c);
        return st;
    }
    *t = (tg_table){&ops, c, c->rows.n, tg_datafile_digest(c->file), tg_datafile_path(c->file)};
    return TG_OK;
}
