/* Splitting of separated text into records and fields. Pure functions. */
#include "env-server/datapool/table/csv.h"

#include "common/base/alloc.h"

#include <stdint.h>
#include <string.h>

/* Length of the line end at text[i]; 0: there is none. */
static size_t line_end(const char *text, size_t len, size_t i) {
    if (text[i] == '\n') return 1;
    if (text[i] != '\r') return 0;
    return i + 1 < len && text[i + 1] == '\n' ? 2 : 1;
}

/* A line of spaces alone has no fields. */
static bool is_blank(const char *text, size_t len, char separator, size_t *used) {
    size_t i = 0;
    while (i < len && (text[i] == ' ' || text[i] == '\t') && text[i] != separator) i++;
    size_t end = i < len ? line_end(text, len, i) : 0;
    if (i < len && !end) return false;
    *used = i + end;
    return true;
}

/* One field from text[i]; appends to out unless NULL. Returns where it ends: at a separator, a line
 * end, or len. */
static size_t read_field(const char *text, size_t len, size_t i, char separator, tg_buf *out,
                         bool *open) {
    bool quoted = i < len && text[i] == '"';
    *open = quoted;
    if (quoted) i++;
    size_t from = i;
    for (; i < len; i++) {
        if (quoted && text[i] == '"') {
            if (out) tg_buf_append(out, text + from, i - from);
            from = i + 1;
            if (i + 1 < len && text[i + 1] == '"') {
                i++; /* of two, the second stands */
            } else {
                quoted = *open = false; /* what follows up to the separator belongs to the field */
            }
        } else if (!quoted && (text[i] == separator || line_end(text, len, i))) {
            break;
        }
    }
    if (out) tg_buf_append(out, text + from, i - from);
    return i;
}

static tg_status begin_field(tg_csv_record *r, tg_error *err) {
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        size_t *at = tg_realloc_array(r->at, cap, sizeof *at);
        if (!at) return tg_fail_nomem(err, cap * sizeof *at);
        r->at = at;
        size_t *len = tg_realloc_array(r->len, cap, sizeof *len);
        if (!len) return tg_fail_nomem(err, cap * sizeof *len);
        r->len = len;
        r->cap = cap;
    }
    r->at[r->n] = r->bytes.len;
    return TG_OK;
}

tg_status tg_csv_read(const char *text, size_t len, char separator, tg_csv_record *r, size_t *used,
                      tg_error *err) {
    tg_buf_reset(&r->bytes);
    r->n = 0;
    if (is_blank(text, len, separator, used)) return TG_OK;
    size_t i = 0;
    for (;;) {
        bool open;
        tg_status st = begin_field(r, err);
        if (st != TG_OK) return st;
        i = read_field(text, len, i, separator, &r->bytes, &open);
        r->len[r->n] = r->bytes.len - r->at[r->n];
        r->n++;
        tg_buf_putc(&r->bytes, '\0');
        if (r->bytes.failed) return tg_fail_nomem(err, i);
        if (open) {
            *used = len;
            return tg_fail(err, TG_DATA, "a double quote is not closed before the file ends");
        }
        if (i == len || text[i] != separator) break;
        i++;
    }
    *used = i < len ? i + line_end(text, len, i) : len;
    return TG_OK;
}

size_t tg_csv_skip(const char *text, size_t len, char separator, bool *blank) {
    size_t used;
    *blank = is_blank(text, len, separator, &used);
    if (*blank) return used;
    size_t i = 0;
    for (;;) {
        bool open;
        i = read_field(text, len, i, separator, NULL, &open);
        if (i == len || text[i] != separator) break;
        i++;
    }
    return i < len ? i + line_end(text, len, i) : len;
}

void tg_csv_record_fini(tg_csv_record *r) {
    tg_buf_fini(&r->bytes);
    tg_free(r->at);
    tg_free(r->len);
    memset(r, 0, sizeof *r);
}
