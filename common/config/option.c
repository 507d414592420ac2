/* Option tables: one row is the only place that knows a key's type, default, bounds and help;
 * reading, checking, dumping and describing all walk the same rows. A table's own default is parsed
 * like the user's text, so both obey the bounds. */
#include "common/config/option.h"

#include "common/base/check.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_TEXT = 256, KEYS_MAX = 128 };

tg_status tg_node_fail(const tg_node *n, const char *path, tg_error *err, const char *fmt, ...) {
    char msg[TG_ERROR_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    const char *sep = path && *path ? ": " : "";
    if (!path) path = "";
    if (!n || !n->file) return tg_fail(err, TG_CONFIG, "%s%s%s", path, sep, msg);
    if (!n->line) return tg_fail(err, TG_CONFIG, "%s: %s%s%s", n->file, path, sep, msg);
    return tg_fail(err, TG_CONFIG, "%s:%d: %s%s%s", n->file, n->line, path, sep, msg);
}

tg_status tg_node_blame(const tg_node *n, const char *path, tg_status status, tg_error *err) {
    if (status == TG_OK || !err) return status;
    const bool placed = n && n->file;
    char line[16] = "";
    if (placed && n->line) snprintf(line, sizeof line, ":%d", n->line);
    tg_error_prefix(err, "%s%s%s%s%s", placed ? n->file : "", line, placed ? ": " : "",
                    path ? path : "", path ? ": " : "");
    return status;
}

/* ---- words for messages -------------------------------------------------------------------- */

static void join_path(char out[PATH_MAX_TEXT], const char *path, const char *key) {
    snprintf(out, PATH_MAX_TEXT, "%s%s%s", path ? path : "", path && *path ? "." : "", key);
}

/* What stands there, as the user wrote it. */
static void found_text(const tg_node *n, char *out, size_t size) {
    if (tg_node_is_null(n))
        snprintf(out, size, "null");
    else if (n->kind == TG_NODE_LIST)
        snprintf(out, size, n->n_items ? "a list" : "an empty list");
    else if (n->kind == TG_NODE_MAP)
        snprintf(out, size, "a section");
    else if (n->quoted)
        snprintf(out, size, "the text \"%.80s\"", n->text);
    else
        snprintf(out, size, "%.80s", n->text);
}

static const char *type_name(tg_opt_type type) {
    switch (type) {
    case TG_T_BOOL: return "bool";
    case TG_T_INT: return "int";
    case TG_T_FLOAT: return "float";
    case TG_T_STR: return "str";
    default: return "any";
    }
}

static bool nullable(const tg_opt *row) {
    return row->flags & (TG_OPT_NULLABLE | TG_OPT_NULL_ABSENT) ||
           (!row->def && !(row->flags & TG_OPT_REQUIRED));
}

static bool bounded(const tg_opt *row) {
    return row->min != 0 || row->max != 0;
}

/* "a number from 0 to 1", "one of a, b, c": what the row would accept. */
static void expected_text(const tg_opt *row, char *out, size_t size) {
    const char *what = row->type == TG_T_BOOL    ? "true or false"
                       : row->type == TG_T_INT   ? "a whole number"
                       : row->type == TG_T_FLOAT ? "a number"
                                                 : "a text";
    size_t n = 0;
    if (row->choices) {
        n = (size_t)snprintf(out, size, "one of ");
        for (const char *c = row->choices; *c && n + 3 < size; c++) {
            out[n++] = *c == '|' ? ',' : *c;
            if (*c == '|') out[n++] = ' ';
        }
        out[n] = '\0';
    } else {
        n = (size_t)snprintf(out, size, "%s", what);
    }
    if (bounded(row) && n < size) {
        if (isinf(row->max) || row->max >= 9e18)
            n += (size_t)snprintf(out + n, size - n, " of at least %g", row->min);
        else
            n += (size_t)snprintf(out + n, size - n, " from %.15g to %.15g", row->min, row->max);
    }
    if (nullable(row) && n < size) snprintf(out + n, size - n, " or null");
}

tg_status tg_node_wrong(const tg_node *n, const char *path, const char *expected, tg_error *err) {
    char found[128];
    found_text(n, found, sizeof found);
    return tg_node_fail(n, path, err, "expected %s, found %s", expected, found);
}

static tg_status wrong_value(const tg_opt *row, const tg_node *n, const char *path, tg_error *err) {
    char expected[320];
    expected_text(row, expected, sizeof expected);
    return tg_node_wrong(n, path, expected, err);
}

/* ---- one value ----------------------------------------------------------------------------- */

static bool in_bounds(const tg_opt *row, double v) {
    return !bounded(row) || (v >= row->min && v <= row->max);
}

/* Splits "a|b|c" in place of `text` into names; returns how many. */
static size_t split_choices(const char *choices, char *text, size_t size,
                            const char *names[KEYS_MAX]) {
    snprintf(text, size, "%s", choices);
    size_t n = 0;
    for (char *p = text; p && n < KEYS_MAX;) {
        names[n++] = p;
        p = strchr(p, '|');
        if (p) *p++ = '\0';
    }
    return n;
}

static tg_status check_choice(const tg_opt *row, const tg_node *n, const char *path,
                              tg_error *err) {
    if (!row->choices) return TG_OK;
    char text[1024];
    const char *names[KEYS_MAX];
    size_t count = split_choices(row->choices, text, sizeof text, names);
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(names[i], n->text)) return TG_OK;
    }
    tg_status st = wrong_value(row, n, path, err);
    const char *near = tg_nearest(n->text, names, count);
    if (near && err) {
        size_t used = strlen(err->msg);
        snprintf(err->msg + used, sizeof err->msg - used, ", did you mean \"%s\"?", near);
    }
    return st;
}

static tg_status read_string(const tg_opt *row, const char **field, const tg_node *n,
                             const char *path, tg_arena *arena, tg_error *err) {
    bool truth;
    double number;
    if (n->kind != TG_NODE_SCALAR) return wrong_value(row, n, path, err);
    /* A choice such as "on" is a word whatever YAML thinks of it. */
    bool typed = !n->quoted && (tg_node_bool(n, &truth) || tg_node_float(n, &number));
    if (typed && !row->choices)
        return tg_node_fail(n, path, err,
                            "expected a text, found %.80s; write \"%.80s\" with quotes", n->text,
                            n->text);
    tg_status st = check_choice(row, n, path, err);
    if (st != TG_OK || !field) return st;
    *field = tg_arena_strdup(arena, n->text);
    return *field ? TG_OK : tg_fail_nomem(err, strlen(n->text));
}

static void set_null(const tg_opt *row, void *field) {
    if (!field) return;
    switch (row->type) {
    case TG_T_BOOL: *(bool *)field = false; break;
    case TG_T_INT: *(int64_t *)field = INT64_MIN; break;
    case TG_T_FLOAT: *(double *)field = (double)NAN; break;
    case TG_T_STR: *(const char **)field = NULL; break;
    default: *(const tg_node **)field = NULL; break;
    }
}

/* Checks n against the row and, when field is not NULL, stores it. */
static tg_status read_value(const tg_opt *row, void *field, const tg_node *n, const char *path,
                            tg_arena *arena, tg_error *err) {
    if (row->type == TG_T_NODE) {
        if (field) *(const tg_node **)field = n;
        return TG_OK;
    }
    if (tg_node_is_null(n)) {
        if (!nullable(row)) return wrong_value(row, n, path, err);
        set_null(row, field);
        return TG_OK;
    }
    bool truth;
    int64_t whole;
    double real;
    switch (row->type) {
    case TG_T_BOOL:
        if (!tg_node_bool(n, &truth)) return wrong_value(row, n, path, err);
        if (field) *(bool *)field = truth;
        return TG_OK;
    case TG_T_INT:
        if (!tg_node_int(n, &whole) || !in_bounds(row, (double)whole))
            return wrong_value(row, n, path, err);
        if (field) *(int64_t *)field = whole;
        return TG_OK;
    case TG_T_FLOAT:
        if (!tg_node_float(n, &real) || !in_bounds(row, real))
            return wrong_value(row, n, path, err);
        if (field) *(double *)field = real;
        return TG_OK;
    default: return read_string(row, field, n, path, arena, err);
    }
}

static tg_status read_default(const tg_opt *row, void *field, const char *path, tg_arena *arena,
                              tg_error *err) {
    if (!row->def) {
        set_null(row, field);
        return TG_OK;
    }
    /* A string's default is its text: "5", " " or "a: b" need no quotes in a table. */
    if (row->type == TG_T_STR && strcmp(row->def, "null") != 0) {
        tg_node text = {
            .kind = TG_NODE_SCALAR, .quoted = true, .text = row->def, .file = "default"};
        return read_value(row, field, &text, path, arena, err);
    }
    tg_node *n;
    tg_status st = tg_tree_parse(arena, "default", row->def, strlen(row->def), &n, err);
    return st == TG_OK ? read_value(row, field, n, path, arena, err) : st;
}

/* ---- whole tables -------------------------------------------------------------------------- */

static size_t key_names(const tg_opt *table, const char *names[KEYS_MAX]) {
    size_t n = 0;
    for (const tg_opt *row = table; row->type != TG_T_END && n < KEYS_MAX; row++)
        names[n++] = row->key;
    return n;
}

static tg_status unknown_key(const tg_opt *table, const tg_node *n, const char *path,
                             tg_error *err) {
    const char *names[KEYS_MAX];
    size_t count = key_names(table, names);
    char full[PATH_MAX_TEXT], known[512];
    join_path(full, path, n->key);
    const char *near = tg_nearest(n->key, names, count);
    if (near) return tg_node_fail(n, full, err, "unknown key, did you mean \"%s\"?", near);
    size_t used = 0;
    known[0] = '\0';
    for (size_t i = 0; i < count && used < sizeof known; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    if (!count) return tg_node_fail(n, full, err, "unknown key: no options are expected here");
    return tg_node_fail(n, full, err, "unknown key, expected one of %s", known);
}

static tg_status check_keys(const tg_opt *table, const tg_node *node, const char *path,
                            tg_error *err) {
    if (tg_node_is_null(node)) return TG_OK;
    if (node->kind != TG_NODE_MAP)
        return tg_node_wrong(node, path, "a section (key: value lines)", err);
    for (size_t i = 0; i < node->n_items; i++) {
        const tg_opt *row = table;
        while (row->type != TG_T_END && strcmp(row->key, node->items[i]->key) != 0) row++;
        if (row->type == TG_T_END) return unknown_key(table, node->items[i], path, err);
    }
    return TG_OK;
}

static tg_status walk(const tg_opt *table, void *out, const tg_node *node, const char *path,
                      tg_arena *arena, tg_error *err) {
    tg_status st = check_keys(table, node, path, err);
    for (const tg_opt *row = table; st == TG_OK && row->type != TG_T_END; row++) {
        char full[PATH_MAX_TEXT];
        join_path(full, path, row->key);
        const tg_node *n = tg_node_get(node, row->key);
        if (row->flags & TG_OPT_NULL_ABSENT && tg_node_is_null(n)) n = NULL;
        void *field = out ? (char *)out + row->offset : NULL;
        if (n && !(tg_node_is_null(n) && row->flags & TG_OPT_REQUIRED && !nullable(row)))
            st = read_value(row, field, n, full, arena, err);
        else if (row->flags & TG_OPT_REQUIRED) {
            char expected[320];
            expected_text(row, expected, sizeof expected);
            st = tg_node_fail(n ? n : node, full, err, "is required: expected %s. %s", expected,
                              row->help ? row->help : "");
        } else if (out) {
            st = read_default(row, field, full, arena, err);
        }
    }
    return st;
}

tg_status tg_opts_read(const tg_opt *table, void *out, const tg_node *node, const char *path,
                       tg_arena *arena, tg_error *err) {
    TG_ASSERT(out && arena);
    return walk(table, out, node, path, arena, err);
}

tg_status tg_opts_check(const tg_opt *table, const tg_node *node, const char *path, tg_error *err) {
    return walk(table, NULL, node, path, NULL, err);
}

static void value_json(const tg_opt *row, const void *field, tg_buf *out) {
    switch (row->type) {
    case TG_T_BOOL: tg_buf_puts(out, *(const bool *)field ? "true" : "false"); break;
    case TG_T_INT: {
        int64_t v = *(const int64_t *)field;
        if (v == INT64_MIN)
            tg_buf_puts(out, "null");
        else
            tg_buf_printf(out, "%" PRId64, v);
        break;
    }
    case TG_T_FLOAT: {
        double v = *(const double *)field;
        if (isinf(v))
            tg_buf_puts(out, v > 0 ? "\".inf\"" : "\"-.inf\"");
        else
            tg_json_number(out, v);
        break;
    }
    case TG_T_STR: {
        const char *text = *(const char *const *)field;
        if (text)
            tg_json_string(out, text, strlen(text));
        else
            tg_buf_puts(out, "null");
        break;
    }
    default: tg_node_json(*(const tg_node *const *)field, out); break;
    }
}

void tg_opts_json(const tg_opt *table, const void *opts, tg_buf *out) {
    tg_buf_putc(out, '{');
    for (const tg_opt *row = table; row->type != TG_T_END; row++) {
        if (row != table) tg_buf_puts(out, ", ");
        tg_json_string(out, row->key, strlen(row->key));
        tg_buf_puts(out, ": ");
        value_json(row, (const char *)opts + row->offset, out);
    }
    tg_buf_putc(out, '}');
}

static const char *default_text(const tg_opt *row) {
    return row->def ? row->def : row->flags & TG_OPT_REQUIRED ? "required" : "null";
}

void tg_opts_describe(const tg_opt *table, tg_buf *out) {
    for (const tg_opt *row = table; row->type != TG_T_END; row++) {
        tg_buf_printf(out, "  %-24s %-6s %-12s %s", row->key, type_name(row->type),
                      default_text(row), row->help ? row->help : "");
        if (row->choices) tg_buf_printf(out, " (%s)", row->choices);
        tg_buf_putc(out, '\n');
    }
}

static void default_json(const tg_opt *row, tg_buf *out) {
    if (!row->def) {
        tg_buf_puts(out, "null");
    } else if (row->type == TG_T_STR) {
        tg_json_string(out, row->def, strlen(row->def));
    } else {
        tg_arena arena = {0};
        tg_node *n = NULL;
        if (tg_tree_parse(&arena, "default", row->def, strlen(row->def), &n, NULL) != TG_OK)
            out->failed = true;
        tg_node_json(n, out);
        tg_arena_fini(&arena);
    }
}

static void string_field(tg_buf *out, const char *name, const char *text) {
    tg_buf_printf(out, ", \"%s\": ", name);
    tg_json_string(out, text, strlen(text));
}

void tg_opts_describe_json(const tg_opt *table, tg_buf *out) {
    tg_buf_putc(out, '[');
    for (const tg_opt *row = table; row->type != TG_T_END; row++) {
        tg_buf_puts(out, row == table ? "{\"key\": " : ", {\"key\": ");
        tg_json_string(out, row->key, strlen(row->key));
        string_field(out, "type", type_name(row->type));
        tg_buf_puts(out, ", \"default\": ");
        default_json(row, out);
        tg_buf_printf(out, ", \"required\": %s", row->flags & TG_OPT_REQUIRED ? "true" : "false");
        if (row->choices) string_field(out, "choices", row->choices);
        string_field(out, "help", row->help ? row->help : "");
        tg_buf_putc(out, '}');
    }
    tg_buf_putc(out, ']');
}
