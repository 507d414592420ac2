/* Row filters. Read once, then pure. */
#include "env-server/datapool/filter.h"

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/config/option.h"
#include "env-server/datapool/template.h"

#include <stdio.h>
#include <string.h>

typedef enum operation {
    EQUAL,
    NOT_EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    CONTAINS
} operation;
/* The longer of two that begin alike comes first. */
static const struct {
    const char *text;
    operation op;
} operations[] = {{"==", EQUAL}, {"!=", NOT_EQUAL}, {"<=", LESS_EQUAL}, {">=", GREATER_EQUAL},
                  {"<", LESS},   {">", GREATER},    {"=", EQUAL},       {" contains ", CONTAINS}};

typedef struct tg_condition {
    char *field, *root; /* root: the field's part before a dot */
    char *value;
    operation op;
} tg_condition;

static char *trimmed(const char *text, size_t len) {
    while (len && (*text == ' ' || *text == '\t')) text++, len--;
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t')) len--;
    if (len >= 2 && (*text == '"' || *text == '\'') && text[len - 1] == *text) text++, len -= 2;
    return tg_strndup(text, len);
}

static tg_status read_condition(tg_condition *c, const tg_node *node, tg_error *err) {
    static const char path[] = "datapool.args.filter";
    if (node->kind != TG_NODE_SCALAR)
        return tg_node_fail(node, path, err, "expected a condition such as \"label == 1\"");
    const char *text = node->text, *at = NULL;
    size_t which = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const char *found = strstr(text, operations[i].text);
        if (found && (!at || found < at)) at = found, which = i;
    }
    if (!at || at == text)
        return tg_node_fail(node, path, err,
                            "\"%s\": expected FIELD OPERATOR VALUE with one of == != < <= > >= "
                            "contains",
                            text);
    c->op = operations[which].op;
    c->field = trimmed(text, (size_t)(at - text));
    at += strlen(operations[which].text);
    c->value = trimmed(at, strlen(at));
    c->root = c->field ? tg_strndup(c->field, strcspn(c->field, ".")) : NULL;
    return c->root && c->value ? TG_OK : tg_fail_nomem(err, strlen(text));
}

tg_status tg_filter_read(tg_filter *f, const tg_node *node, tg_error *err) {
    memset(f, 0, sizeof *f);
    if (tg_node_is_null(node)) return TG_OK;
    bool list = node->kind == TG_NODE_LIST;
    size_t n = list ? node->n_items : 1;
    f->conditions = tg_alloc_array(n ? n : 1, sizeof *f->conditions);
    if (!f->conditions) return tg_fail_nomem(err, n * sizeof *f->conditions);
    for (; f->n < n; f->n++) {
        tg_status st = read_condition(&f->conditions[f->n], list ? node->items[f->n] : node, err);
        if (st == TG_OK) continue;
        f->n++; /* the half-read one is freed too */
        tg_filter_fini(f);
        return st;
    }
    return TG_OK;
}

void tg_filter_fini(tg_filter *f) {
    for (size_t i = 0; i < f->n; i++) {
        tg_free(f->conditions[i].field);
        tg_free(f->conditions[i].root);
        tg_free(f->conditions[i].value);
    }
    tg_free(f->conditions);
    memset(f, 0, sizeof *f);
}

static bool compare(operation op, int order) {
    switch (op) {
    case EQUAL: return order == 0;
    case NOT_EQUAL: return order != 0;
    case LESS: return order < 0;
    case LESS_EQUAL: return order <= 0;
    case GREATER: return order > 0;
    case GREATER_EQUAL: return order >= 0;
    default: return false;
    }
}

static tg_status meets(const tg_condition *c, const json_t *row, bool *ok, tg_error *err) {
    const json_t *v = tg_json_at(row, c->field, strlen(c->field));
    char number[64];
    const char *text = number;
    if (!v || json_is_null(v)) {
        *ok = c->op == NOT_EQUAL;
        return TG_OK;
    }
    if (json_is_string(v))
        text = json_string_value(v);
    else if (json_is_integer(v))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        snprintf(number, sizeof number, "%.17g", json_real_value(v));
    else if (json_is_boolean(v))
        text = json_is_true(v) ? "true" : "false";
    else
        return tg_fail(err, TG_DATA, "field \"%s\" of datapool.args.filter is a list or an object",
                       c->field);
    double a, b;
    if (c->op == CONTAINS)
        *ok = strstr(text, c->value) != NULL;
    else if (tg_parse_f64(text, &a) && tg_parse_f64(c->value, &b))
        *ok = a == a && b == b ? compare(c->op, (a > b) - (a < b)) : c->op == NOT_EQUAL;
    else
        *ok = compare(c->op, strcmp(text, c->value));
    return TG_OK;
}

tg_status tg_filter_match(const tg_filter *f, const json_t *row, bool *keep, tg_error *err) {
    *keep = true;
    for (size_t i = 0; i < f->n && *keep; i++) {
        tg_status st = meets(&f->conditions[i], row, keep, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static bool is_listed(const char *const *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

tg_status tg_filter_columns(const tg_node *node, tg_arena *arena, const char **columns, size_t *n,
                            size_t room, tg_error *err) {
    tg_filter f;
    tg_status st = tg_filter_read(&f, node, err);
    for (size_t i = 0; i < f.n && st == TG_OK; i++) {
        const char *root = f.conditions[i].root;
        if (is_listed(columns, *n, root)) continue;
        if (*n == room)
            st = tg_fail(err, TG_CONFIG, "datapool.args.filter: too many fields, \"%s\" and more",
                         root);
        else if (!(columns[*n] = tg_arena_strdup(arena, root)))
            st = tg_fail_nomem(err, strlen(root));
        else
            (*n)++;
    }
    tg_filter_fini(&f);
    return st;
}
