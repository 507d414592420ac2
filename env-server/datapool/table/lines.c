/* Tables of lines: JSON lines and plain text. The index keeps where each line starts. */
#include "common/base/alloc.h"
#include "env-server/datapool/table/datafile.h"
#include "env-server/datapool/table/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 64 << 20 };

typedef struct lines {
    tg_datafile *file;
    tg_offsets rows;
} lines;

static const char *line_at(const lines *l, uint64_t at, size_t *len) {
    size_t size;
    const char *bytes = tg_datafile_bytes(l->file, &size), *begin = bytes + at;
    const char *end = memchr(begin, '\n', size - at);
    *len = (size_t)((end ? end : bytes + size) - begin);
    tg_datafile_used(l->file, begin, *len);
    return begin;
}

static void where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const lines *l = t->state;
    snprintf(out, size, "%s:%" PRIu64, tg_datafile_path(l->file),
             tg_datafile_line(l->file, l->rows.at[i]));
}

static void close_lines(void *state) {
    lines *l = state;
    tg_datafile_close(&l->file);
    tg_free(l->rows.at);
    tg_free(l);
}

static bool is_blank(const char *begin, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (begin[i] != ' ' && begin[i] != '\t' && begin[i] != '\r') return false;
    return true;
}

static tg_status index_lines(lines *l, bool blank_too, tg_error *err) {
    size_t size, at = 0;
    const char *bytes = tg_datafile_bytes(l->file, &size);
    if (size >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3)) at = 3;
    while (at < size) {
        size_t len;
        const char *line = line_at(l, at, &len);
        if ((blank_too || !is_blank(line, len)) && !tg_offsets_push(&l->rows, at))
            return tg_fail_nomem(err, 2 * l->rows.cap * sizeof *l->rows.at);
        at += len + 1;
    }
    return TG_OK;
}

static tg_status open_lines(tg_table *t, const char *path, const tg_table_ops *ops, bool blank_too,
                            tg_error *err) {
    memset(t, 0, sizeof *t);
    lines *l = tg_alloc(sizeof *l);
    if (!l) return tg_fail_nomem(err, sizeof *l);
    tg_status st = tg_datafile_open(&l->file, path, err);
    if (st == TG_OK) st = index_lines(l, blank_too, err);
    if (st != TG_OK) {
        close_lines(l);
        return st;
    }
    *t = (tg_table){ops, l, l->rows.n, tg_datafile_digest(l->file), tg_datafile_path(l->file)};
    return TG_OK;
}

/* ---- JSON lines ---------------------------------------------------------------------------- */

static tg_status jsonl_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const lines *l = t->state;
    size_t len;
    const char *line = line_at(l, l->rows.at[i], &len);
    if (len > MAX_LINE)
        return tg_fail(err, TG_DATA, "the line is longer than %d MiB", MAX_LINE >> 20);
    json_error_t e;
    json_t *value = json_loadb(line, len, JSON_DECODE_ANY, &e);
    if (!value && json_error_code(&e) == json_error_null_character)
        return tg_fail(err, TG_DATA, "a text has a NUL character (\\u0000, column %d)", e.column);
    if (!value) return tg_fail(err, TG_DATA, "not JSON: %s (column %d)", e.text, e.column);
    if (!json_is_object(value)) {
        json_decref(value);
        return tg_fail(err, TG_DATA, "expected a JSON object {…} on the line");
    }
    *out = value;
    return TG_OK;
}

tg_status tg_table_open_jsonl(tg_table *t, const char *path, tg_error *err) {
    static const tg_table_ops ops = {jsonl_row, where, close_lines};
    return open_lines(t, path, &ops, false, err);
}

/* ---- text ---------------------------------------------------------------------------------- */

static tg_status text_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const lines *l = t->state;
    size_t len;
    const char *line = line_at(l, l->rows.at[i], &len);
    if (len && line[len - 1] == '\r') len--;
    json_t *text;
    tg_status st = tg_table_text(line, len, &text, err);
    if (st != TG_OK) return st;
    *out = json_pack("{s:o}", "text", text);
    return *out ? TG_OK : tg_fail_nomem(err, len);
}

tg_status tg_table_open_lines(tg_table *t, const char *path, tg_error *err) {
    static const tg_table_ops ops = {text_row, where, close_lines};
    return open_lines(t, path, &ops, true, err);
}
