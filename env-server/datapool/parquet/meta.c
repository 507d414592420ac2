/* The footer. Every size and offset is checked against the file once, here. */
#include "env-server/datapool/parquet/meta.h"

#include "env-server/datapool/parquet/thrift.h"

#include <string.h>

enum { MAX_NODES = 1 << 16, MAX_LEVEL = 60 };

static tg_status broken(tg_error *err, const char *what) {
    return tg_fail(err, TG_DATA, "a broken Parquet file: %s", what);
}

/* ---- schema -------------------------------------------------------------------------------- */

/* A LogicalType: a struct with one field, whose id says which. */
static void read_logical(tg_thrift *t, tg_thrift_type type, tg_pq_node *n) {
    int id = 0;
    tg_thrift_type inner;
    if (type != TG_THRIFT_STRUCT) {
        tg_thrift_skip(t, type);
        return;
    }
    while (tg_thrift_field(t, &id, &inner)) {
        if (id == 2 || id == 3)
            n->meaning = TG_PQ_LIST;
        else if (id == 5 || id == 13)
            n->meaning = TG_PQ_OTHER;
        else if (id == 15)
            n->meaning = TG_PQ_FLOAT16;
        if (id != 10 || inner != TG_THRIFT_STRUCT) {
            tg_thrift_skip(t, inner);
            continue;
        }
        int part = 0; /* INTEGER {1: bits, 2: signed} */
        bool is_signed = true;
        while (tg_thrift_field(t, &part, &inner)) {
            if (part == 2)
                is_signed = tg_thrift_bool(t, inner);
            else
                tg_thrift_skip(t, inner);
        }
        if (!is_signed) n->meaning = TG_PQ_UNSIGNED;
    }
}

static void set_converted(tg_pq_node *n, int64_t converted) {
    if (converted == 1 || converted == 3)
        n->meaning = TG_PQ_LIST;
    else if (converted >= 11 && converted <= 14)
        n->meaning = TG_PQ_UNSIGNED;
    else if (converted == 5 || converted == 20 || converted == 21)
        n->meaning = TG_PQ_OTHER;
}

static tg_status read_element(tg_thrift *t, tg_arena *arena, tg_pq_node *n, int64_t *children,
                              tg_error *err) {
    int id = 0;
    tg_thrift_type type;
    const char *name = "";
    size_t len = 0;
    int64_t physical = TG_PQ_GROUP, repetition = TG_PQ_REQUIRED;
    *children = 0;
    while (tg_thrift_field(t, &id, &type)) {
        switch (id) {
        case 1: physical = tg_thrift_int(t, type); break;
        case 2: n->fixed_len = (int32_t)tg_thrift_int(t, type); break;
        case 3: repetition = tg_thrift_int(t, type); break;
        case 4: name = tg_thrift_binary(t, type, &len); break;
        case 5: *children = tg_thrift_int(t, type); break;
        case 6: set_converted(n, tg_thrift_int(t, type)); break;
        case 10: read_logical(t, type, n); break;
        default: tg_thrift_skip(t, type);
        }
    }
    if (t->failed || physical < 0 || physical > TG_PQ_GROUP || repetition < 0 ||
        repetition > TG_PQ_REPEATED || *children < 0 || *children > MAX_NODES)
        return broken(err, "its schema");
    n->type = *children > 0 ? TG_PQ_GROUP : (tg_pq_type)physical;
    n->repetition = (tg_pq_repetition)repetition;
    if (n->type == TG_PQ_FIXED && (n->fixed_len <= 0 || n->fixed_len > 1 << 20))
        return broken(err, "a column of fixed length has none");
    n->name = tg_arena_strndup(arena, name, len);
    return n->name ? TG_OK : tg_fail_nomem(err, len);
}

typedef struct schema {
    tg_thrift *t;
    tg_arena *arena;
    tg_pq_meta *meta;
    size_t left; /* elements not read yet */
} schema;

static tg_status read_node(schema *s, const tg_pq_node *parent, unsigned depth, tg_pq_node **out,
                           tg_error *err) {
    tg_pq_node *n = tg_arena_alloc(s->arena, sizeof *n);
    int64_t children;
    *out = n;
    if (!n) return tg_fail_nomem(err, sizeof *n);
    if (s->left-- == 0 || depth > MAX_LEVEL) return broken(err, "its schema");
    tg_status st = read_element(s->t, s->arena, n, &children, err);
    if (st != TG_OK) return st;
    if (parent) {
        n->max_def = (uint8_t)(parent->max_def + (n->repetition != TG_PQ_REQUIRED));
        n->max_rep = (uint8_t)(parent->max_rep + (n->repetition == TG_PQ_REPEATED));
    }
    n->first_leaf = s->meta->n_leaves;
    if (children == 0 && parent) {
        if (n->type != TG_PQ_GROUP) s->meta->leaves[s->meta->n_leaves++] = n;
        n->n_leaves = s->meta->n_leaves - n->first_leaf;
        return TG_OK; /* a group without children has no values */
    }
    if ((uint64_t)children > s->left) return broken(err, "its schema");
    n->children = tg_arena_array(s->arena, (size_t)children + 1, sizeof *n->children);
    if (!n->children) return tg_fail_nomem(err, (size_t)children * sizeof *n->children);
    n->n_children = (size_t)children;
    for (size_t i = 0; i < n->n_children && st == TG_OK; i++)
        st = read_node(s, n, depth + 1, &n->children[i], err);
    n->n_leaves = s->meta->n_leaves - n->first_leaf;
    return st;
}

static tg_status read_schema(tg_thrift *t, tg_thrift_type type, tg_arena *arena, tg_pq_meta *out,
                             tg_error *err) {
    tg_thrift_type element;
    size_t n = tg_thrift_list(t, type, &element);
    if (n == 0 || n > MAX_NODES || element != TG_THRIFT_STRUCT || out->root)
        return broken(err, "its schema");
    out->leaves = tg_arena_array(arena, n, sizeof *out->leaves);
    if (!out->leaves) return tg_fail_nomem(err, n * sizeof *out->leaves);
    schema s = {t, arena, out, n};
    tg_status st = read_node(&s, NULL, 0, &out->root, err);
    return st == TG_OK && s.left ? broken(err, "its schema") : st;
}

/* ---- row groups ---------------------------------------------------------------------------- */

static void read_column_meta(tg_thrift *t, tg_thrift_type type, tg_pq_chunk *c, bool *there) {
    int id = 0;
    tg_thrift_type inner;
    int64_t data = 0, dictionary = 0;
    if (type != TG_THRIFT_STRUCT) {
        tg_thrift_skip(t, type);
        return;
    }
    *there = true;
    while (tg_thrift_field(t, &id, &inner)) {
        switch (id) {
        case 4: c->codec = (int)tg_thrift_int(t, inner); break;
        case 5: c->n_values = (uint64_t)tg_thrift_int(t, inner); break;
        case 7: c->bytes = (uint64_t)tg_thrift_int(t, inner); break;
        case 9: data = tg_thrift_int(t, inner); break;
        case 11: dictionary = tg_thrift_int(t, inner); break;
        default: tg_thrift_skip(t, inner);
        }
    }
    c->offset = (uint64_t)(dictionary > 0 && dictionary < data ? dictionary : data);
}

static tg_status read_chunk(tg_thrift *t, size_t file_len, tg_pq_chunk *c, tg_error *err) {
    int id = 0;
    tg_thrift_type type;
    size_t path_len = 0;
    bool there = false;
    while (tg_thrift_field(t, &id, &type)) {
        if (id == 1)
            (void)tg_thrift_binary(t, type, &path_len);
        else if (id == 3)
            read_column_meta(t, type, c, &there);
        else
            tg_thrift_skip(t, type);
    }
    if (path_len)
        return tg_fail(err, TG_UNSUPPORTED, "its columns are in other files, which is not read");
    if (!there && !t->failed)
        return tg_fail(err, TG_UNSUPPORTED, "an encrypted Parquet file, which is not read");
    if (t->failed || c->offset > file_len || c->bytes > file_len - c->offset || c->n_values >> 40)
        return broken(err, "a column lies outside of it");
    return TG_OK;
}

static tg_status read_group(tg_thrift *t, size_t file_len, tg_arena *arena, const tg_pq_meta *meta,
                            tg_pq_group *g, tg_error *err) {
    int id = 0;
    tg_thrift_type type, element;
    while (tg_thrift_field(t, &id, &type)) {
        if (id == 3) g->n_rows = (uint64_t)tg_thrift_int(t, type);
        if (id != 1) {
            if (id != 3) tg_thrift_skip(t, type);
            continue;
        }
        size_t n = tg_thrift_list(t, type, &element);
        if (n != meta->n_leaves || (n && element != TG_THRIFT_STRUCT) || g->chunks)
            return broken(err, "a row group has other columns than the schema");
        g->chunks = tg_arena_array(arena, n + 1, sizeof *g->chunks);
        if (!g->chunks) return tg_fail_nomem(err, n * sizeof *g->chunks);
        for (size_t i = 0; i < n; i++) {
            tg_status st = read_chunk(t, file_len, &g->chunks[i], err);
            if (st != TG_OK) return st;
        }
    }
    return t->failed || !g->chunks || g->n_rows >> 40 ? broken(err, "a row group") : TG_OK;
}

static tg_status read_groups(tg_thrift *t, tg_thrift_type type, size_t file_len, tg_arena *arena,
                             tg_pq_meta *out, tg_error *err) {
    tg_thrift_type element;
    size_t n = tg_thrift_list(t, type, &element);
    if (!out->root || out->groups || (n && element != TG_THRIFT_STRUCT))
        return broken(err, "its row groups");
    out->groups = tg_arena_array(arena, n + 1, sizeof *out->groups);
    if (!out->groups) return tg_fail_nomem(err, n * sizeof *out->groups);
    for (; out->n_groups < n; out->n_groups++) {
        tg_pq_group *g = &out->groups[out->n_groups];
        tg_status st = read_group(t, file_len, arena, out, g, err);
        if (st != TG_OK) return st;
        out->n_rows += g->n_rows;
    }
    return TG_OK;
}

tg_status tg_pq_meta_read(const unsigned char *bytes, size_t len, tg_arena *arena, tg_pq_meta *out,
                          tg_error *err) {
    memset(out, 0, sizeof *out);
    if (len >= 4 && !memcmp(bytes + len - 4, "PARE", 4))
        return tg_fail(err, TG_UNSUPPORTED, "an encrypted Parquet file, which is not read");
    if (len < 12 || memcmp(bytes, "PAR1", 4) != 0 || memcmp(bytes + len - 4, "PAR1", 4) != 0)
        return tg_fail(err, TG_DATA,
                       "not a (whole) Parquet file: PAR1 at its begin and end expected");
    uint32_t size;
    memcpy(&size, bytes + len - 8, 4);
    if (size > len - 12) return broken(err, "the footer is longer than the file");
    tg_thrift t = {bytes + len - 8 - size, bytes + len - 8, false};
    int id = 0;
    tg_thrift_type type;
    tg_status st = TG_OK;
    while (st == TG_OK && tg_thrift_field(&t, &id, &type)) {
        if (id == 2)
            st = read_schema(&t, type, arena, out, err);
        else if (id == 4)
            st = read_groups(&t, type, len - 8 - size, arena, out, err);
        else
            tg_thrift_skip(&t, type);
    }
    if (st == TG_OK && (t.failed || !out->root || !out->groups)) st = broken(err, "its footer");
    return st;
}
