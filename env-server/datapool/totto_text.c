/* Linearised tables. After tg_totto_table_read every index is in range, so writing cannot fail but for
 * memory. */
#include "env-server/datapool/totto_text.h"

#include "env-server/datapool/rowtext.h"

#include <string.h>

static const char *value_of(const json_t *cell) {
    return json_string_value(json_object_get(cell, "value"));
}

static bool is_header(const json_t *cell) {
    return json_is_true(json_object_get(cell, "is_header"));
}

static json_int_t span_of(const json_t *cell) {
    return json_integer_value(json_object_get(cell, "column_span"));
}

static bool check_table(const json_t *table, tg_error *err) {
    size_t i, j;
    json_t *row, *cell;
    json_array_foreach((json_t *)table, i, row) {
        if (!json_is_array(row)) {
            tg_fail(err, TG_DATA, "\"table\": row %zu is not a list of cells", i);
            return false;
        }
        json_int_t width = 0;
        json_array_foreach(row, j, cell) {
            if (!tg_value_text(json_object_get(cell, "value"), "table: value", err)) return false;
            if (!json_is_boolean(json_object_get(cell, "is_header")) ||
                !json_is_integer(json_object_get(cell, "column_span"))) {
                tg_fail(err, TG_DATA,
                        "\"table\": cell %zu of row %zu has no is_header (a truth value) or "
                        "column_span (a number)",
                        j, i);
                return false;
            }
            json_int_t span = span_of(cell);
            if (span < 0 || span > 1 << 20 || (width += span) > 1 << 30) {
                tg_fail(err, TG_DATA, "\"table\": cell %zu of row %zu has a column_span of %lld", j,
                        i, (long long)span);
                return false;
            }
        }
    }
    return true;
}

static bool check_cells(const json_t *table, const json_t *cells, tg_error *err) {
    size_t i;
    json_t *at;
    json_array_foreach((json_t *)cells, i, at) {
        const json_t *r = json_array_get(at, 0), *c = json_array_get(at, 1);
        json_int_t row = json_integer_value(r), column = json_integer_value(c);
        if (json_array_size(at) != 2 || !json_is_integer(r) || !json_is_integer(c) || row < 0 ||
            column < 0 || (size_t)row >= json_array_size(table) ||
            (size_t)column >= json_array_size(json_array_get(table, (size_t)row))) {
            tg_fail(err, TG_DATA, "\"highlighted_cells\": entry %zu is not a cell of the table", i);
            return false;
        }
    }
    return true;
}

tg_status tg_totto_table_read(const json_t *row, tg_totto_table *out, tg_error *err) {
    *out = (tg_totto_table){.table = tg_row_field(row, "table", err)};
    if (!out->table || !(out->cells = tg_row_field(row, "highlighted_cells", err)) ||
        !(out->page_title = tg_row_text(row, "table_page_title", err)) ||
        !(out->section_title = tg_row_text(row, "table_section_title", err)))
        return TG_DATA;
    if (!json_is_array(out->table) || !json_is_array(out->cells))
        return tg_fail(err, TG_DATA, "\"table\" or \"highlighted_cells\" is not a list");
    return check_table(out->table, err) && check_cells(out->table, out->cells, err) ? TG_OK
                                                                                    : TG_DATA;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put_header(tg_buf *out, const char *mark, const json_t *cell) {
    tg_buf_printf(out, "<%s> %s </%s> ", mark, value_of(cell), mark);
}

/* Header cells of earlier rows whose columns overlap the cell's, spans counted. */
static void put_column_headers(const tg_totto_table *t, size_t r, size_t c, tg_buf *out) {
    const json_t *row = json_array_get(t->table, r);
    json_int_t begin = 0;
    for (size_t i = 0; i < c; i++) begin += span_of(json_array_get(row, i));
    json_int_t end = begin + span_of(json_array_get(row, c));
    for (size_t above = 0; above < r; above++) {
        const json_t *cells = json_array_get(t->table, above);
        json_int_t at = 0;
        for (size_t i = 0; i < json_array_size(cells); i++) {
            const json_t *cell = json_array_get(cells, i);
            json_int_t next = at + span_of(cell);
            if (at < end && next > begin && is_header(cell)) put_header(out, "col_header", cell);
            at = next;
        }
    }
}

static void put_cell(const tg_totto_table *t, size_t r, size_t c, const char *mark, tg_buf *out) {
    const json_t *row = json_array_get(t->table, r);
    tg_buf_printf(out, "<%s> %s ", mark, value_of(json_array_get(row, c)));
    put_column_headers(t, r, c, out);
    for (size_t i = 0; i < c; i++)
        if (is_header(json_array_get(row, i)))
            put_header(out, "row_header", json_array_get(row, i));
    tg_buf_printf(out, "</%s> ", mark);
}

static void put_titles(const tg_totto_table *t, bool titles, tg_buf *out) {
    if (titles && *t->page_title)
        tg_buf_printf(out, "<page_title> %s </page_title> ", t->page_title);
    if (titles && *t->section_title)
        tg_buf_printf(out, "<section_title> %s </section_title> ", t->section_title);
    tg_buf_puts(out, "<table> ");
}

void tg_totto_subtable(const tg_totto_table *t, bool titles, tg_buf *out) {
    put_titles(t, titles, out);
    for (size_t i = 0; i < json_array_size(t->cells); i++) {
        const json_t *at = json_array_get(t->cells, i);
        put_cell(t, (size_t)json_integer_value(json_array_get(at, 0)),
                 (size_t)json_integer_value(json_array_get(at, 1)), "cell", out);
    }
    tg_buf_puts(out, "</table>");
}

static bool is_highlighted(const tg_totto_table *t, size_t r, size_t c) {
    for (size_t i = 0; i < json_array_size(t->cells); i++) {
        const json_t *at = json_array_get(t->cells, i);
        if ((size_t)json_integer_value(json_array_get(at, 0)) == r &&
            (size_t)json_integer_value(json_array_get(at, 1)) == c)
            return true;
    }
    return false;
}

void tg_totto_fulltable(const tg_totto_table *t, bool titles, tg_buf *out) {
    put_titles(t, titles, out);
    for (size_t r = 0; r < json_array_size(t->table); r++) {
        tg_buf_puts(out, "<row> ");
        for (size_t c = 0; c < json_array_size(json_array_get(t->table, r)); c++)
            put_cell(t, r, c, is_highlighted(t, r, c) ? "highlighted_cell" : "cell", out);
        tg_buf_puts(out, "</row> ");
    }
    tg_buf_puts(out, "</table>");
}
