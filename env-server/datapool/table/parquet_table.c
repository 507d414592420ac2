/* Parquet files as tables: a row's entries in the leaf columns are put together to an object by the
 * schema (Melnik et al. 2010). Lists of Parquet's two- and three-level forms become lists. */
#include "common/base/alloc.h"
#include "env-server/datapool/parquet/file.h"
#include "env-server/datapool/table/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where reading stands in each leaf's record. */
typedef struct reader {
    const tg_pq_meta *meta;
    tg_pq_record *records; /* by leaf */
    size_t *at;
    tg_error *err;
} reader;

static tg_status broken(reader *r) {
    return tg_fail(r->err, TG_DATA, "a broken Parquet file: its levels do not fit the schema");
}

static const tg_pq_entry *peek(const reader *r, size_t leaf) {
    return r->at[leaf] < r->records[leaf].n ? &r->records[leaf].entries[r->at[leaf]] : NULL;
}

static void pass(reader *r, const tg_pq_node *node) {
    for (size_t i = 0; i < node->n_leaves; i++) r->at[node->first_leaf + i]++;
}

static tg_status leaf_value(reader *r, const tg_pq_node *leaf, const tg_pq_entry *e, json_t **out) {
    const tg_pq_value *v = &e->value;
    switch (leaf->type) {
    case TG_PQ_BOOLEAN: *out = json_boolean(v->i); break;
    case TG_PQ_INT32: *out = json_integer(v->i); break;
    case TG_PQ_INT64:
        *out = leaf->meaning == TG_PQ_UNSIGNED && v->i < 0 ? json_real((double)(uint64_t)v->i)
                                                           : json_integer(v->i);
        break;
    default:
        if (tg_pq_is_text(leaf)) {
            tg_status st =
                tg_table_text((const char *)e->bytes + v->text.at, v->text.len, out, r->err);
            if (st != TG_OK) tg_error_prefix(r->err, "column %s: ", leaf->name);
            return st;
        }
        *out = isfinite(v->d) ? json_real(v->d) : json_null();
    }
    return *out ? TG_OK : tg_fail_nomem(r->err, 1);
}

static tg_status read_node(reader *r, const tg_pq_node *node, json_t **out);

/* The node itself, known to be there. */
static tg_status read_present(reader *r, const tg_pq_node *node, json_t **out) {
    if (node->type != TG_PQ_GROUP) {
        const tg_pq_entry *e = peek(r, node->first_leaf);
        if (!e || e->def != node->max_def) return broken(r);
        tg_status st = leaf_value(r, node, e, out);
        r->at[node->first_leaf]++;
        return st;
    }
    if (node->meaning == TG_PQ_LIST && node->n_children == 1 &&
        node->children[0]->repetition == TG_PQ_REPEATED)
        return read_node(r, node->children[0], out);
    json_t *object = json_object();
    tg_status st = object ? TG_OK : tg_fail_nomem(r->err, 1);
    for (size_t i = 0; i < node->n_children && st == TG_OK; i++) {
        json_t *value = NULL;
        st = read_node(r, node->children[i], &value);
        if (st == TG_OK && json_object_set_new(object, node->children[i]->name, value))
            st = tg_fail(r->err, TG_DATA, "a column's name is not UTF-8");
    }
    if (st == TG_OK)
        *out = object;
    else
        json_decref(object);
    return st;
}

/* In "repeated group list { element }" the element is meant, unless the name is one of an old
 * writer's. */
static const tg_pq_node *element_of(const tg_pq_node *repeated) {
    bool wrapped = repeated->type == TG_PQ_GROUP && repeated->n_children == 1 &&
                   repeated->meaning != TG_PQ_LIST && strcmp(repeated->name, "array") != 0 &&
                   !strstr(repeated->name, "_tuple");
    return wrapped ? repeated->children[0] : NULL;
}

static tg_status read_list(reader *r, const tg_pq_node *node, json_t **out) {
    json_t *list = json_array();
    tg_status st = list ? TG_OK : tg_fail_nomem(r->err, 1);
    const tg_pq_entry *e = peek(r, node->first_leaf);
    const tg_pq_node *element = element_of(node);
    if (st == TG_OK && !e) st = broken(r);
    if (st == TG_OK && e->def < node->max_def) {
        pass(r, node); /* an empty list */
        e = NULL;
    }
    while (st == TG_OK && e) {
        json_t *item = NULL;
        size_t before = r->at[node->first_leaf];
        st = element ? read_node(r, element, &item) : read_present(r, node, &item);
        if (st == TG_OK && json_array_append_new(list, item)) st = tg_fail_nomem(r->err, 1);
        e = peek(r, node->first_leaf);
        if (e && e->rep < node->max_rep) e = NULL; /* belongs to a list further out */
        if (st == TG_OK && e && (e->rep != node->max_rep || r->at[node->first_leaf] == before))
            st = broken(r);
    }
    if (st == TG_OK)
        *out = list;
    else
        json_decref(list);
    return st;
}

static tg_status read_node(reader *r, const tg_pq_node *node, json_t **out) {
    if (node->n_leaves == 0) { /* a struct without fields */
        *out = json_object();
        return *out ? TG_OK : tg_fail_nomem(r->err, 1);
    }
    if (node->repetition == TG_PQ_REPEATED) return read_list(r, node, out);
    const tg_pq_entry *e = peek(r, node->first_leaf);
    if (!e) return broken(r);
    if (node->repetition == TG_PQ_OPTIONAL && e->def < node->max_def) {
        pass(r, node);
        *out = json_null();
        return TG_OK;
    }
    return read_present(r, node, out);
}

/* ---- the table ----------------------------------------------------------------------------- */

static tg_status read_object(reader *r, const tg_pq_file *f, json_t *object) {
    const tg_pq_node *root = r->meta->root;
    for (size_t i = 0; i < root->n_children; i++) {
        if (!tg_pq_file_uses(f, i)) continue;
        json_t *value = NULL;
        tg_status st = read_node(r, root->children[i], &value);
        if (st != TG_OK) return st;
        if (json_object_set_new(object, root->children[i]->name, value))
            return tg_fail(r->err, TG_DATA, "a column's name is not UTF-8");
    }
    for (size_t i = 0; i < r->meta->n_leaves; i++)
        if (r->at[i] != r->records[i].n) return broken(r);
    return TG_OK;
}

static tg_status parquet_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    tg_pq_file *f = t->state;
    const tg_pq_meta *meta = tg_pq_file_meta(f);
    size_t n = meta->n_leaves ? meta->n_leaves : 1;
    reader r = {meta, tg_alloc_array(n, sizeof *r.records), tg_alloc_array(n, sizeof *r.at), err};
    json_t *object = json_object();
    tg_status st = r.records && r.at && object ? TG_OK : tg_fail_nomem(err, n * sizeof *r.records);
    for (size_t k = 0; k < meta->root->n_children && st == TG_OK; k++) {
        const tg_pq_node *top = meta->root->children[k];
        for (size_t leaf = 0; tg_pq_file_uses(f, k) && leaf < top->n_leaves && st == TG_OK; leaf++)
            st = tg_pq_file_record(f, top->first_leaf + leaf, i, &r.records[top->first_leaf + leaf],
                                   err);
    }
    if (st == TG_OK) st = read_object(&r, f, object);
    for (size_t k = 0; r.records && k < meta->n_leaves; k++) tg_pq_record_release(f, &r.records[k]);
    tg_free(r.records);
    tg_free(r.at);
    if (st == TG_OK)
        *out = object;
    else
        json_decref(object);
    return st;
}

static void parquet_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    snprintf(out, size, "%s: row %llu", t->name, (unsigned long long)i + 1);
}

static void parquet_close(void *state) {
    tg_pq_file *f = state;
    tg_pq_file_close(&f);
}

tg_status tg_table_open_parquet(tg_table *t, const char *path, const char *const *columns,
                                tg_error *err) {
    static const tg_table_ops ops = {parquet_row, parquet_where, parquet_close};
    memset(t, 0, sizeof *t);
    tg_pq_file *f;
    tg_status st = tg_pq_file_open(&f, path, columns, err);
    if (st != TG_OK) return st;
    tg_datafile *data = tg_pq_file_data(f);
    *t = (tg_table){&ops, f, tg_pq_file_meta(f)->n_rows, tg_datafile_digest(data),
                    tg_datafile_path(data)};
    return TG_OK;
}
