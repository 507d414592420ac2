/* The index over a table's rows, and reading samples through it. */
#include "env-server/datapool/rowpool.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/rng.h"
#include "env-server/datapool/pyliteral.h"
#include "proto/split.h"

#include <inttypes.h>
#include <string.h>

tg_rowpool *tg_rowpool_init(void *state, const tg_recipe *recipe, const void *options,
                            const tg_pool_common *common, const tg_datapool_context *context,
                            tg_split split) {
    tg_rowpool *p = state;
    *p = (tg_rowpool){.recipe = recipe,
                      .options = options,
                      .common = common,
                      .context = *context,
                      .split = split,
                      .shuffle = common->shuffle,
                      .skip_bad = !strcmp(common->on_bad_row, "skip")};
    return p;
}

void tg_rowpool_close(void *state) {
    tg_rowpool *p = state;
    tg_table_close(&p->table);
    tg_filter_fini(&p->filter);
    if (p->extra && p->free_extra) p->free_extra(p->extra);
    tg_free(p->order);
    tg_free(p->entries);
    tg_free(p->groups);
    memset(p, 0, sizeof *p);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Position to row: the pool's order, then the shuffle that the config asks for. */
static uint64_t row_at(const tg_rowpool *p, uint64_t position) {
    uint64_t n = p->end - p->begin, i = position;
    if (p->shuffle != INT64_MIN) i = tg_permute((uint64_t)p->shuffle, TG_RNG_DATA, 0, i, n);
    i += p->begin;
    return p->order ? p->order[i] : i;
}

/* Lists and structs that came as text (from separated files) become what they stand for. */
static tg_status restore(const tg_rowpool *p, json_t *row, tg_error *err) {
    const char *const *names = p->recipe->structured;
    for (; names && *names; names++) {
        const json_t *text = json_object_get(row, *names);
        if (!json_is_string(text)) continue;
        json_t *value;
        tg_status st =
            tg_py_literal(json_string_value(text), json_string_length(text), &value, err);
        if (st != TG_OK) {
            tg_error_prefix(err, "field \"%s\": ", *names);
            return st;
        }
        if (json_object_set_new_nocheck(row, *names, value)) return tg_fail_nomem(err, 1);
    }
    return TG_OK;
}

/* Says where a row is; the status is the error's. */
static tg_status at_row(const tg_rowpool *p, uint64_t row, tg_status st, tg_error *err) {
    char where[400];
    if (!err) return st;
    tg_table_where(&p->table, row, where, sizeof where);
    tg_error_prefix(err, "%s: ", where);
    return st;
}

static tg_status read_row(const tg_rowpool *p, uint64_t row, json_t **out, tg_error *err) {
    tg_status st = tg_table_row(&p->table, row, out, err);
    if (st != TG_OK) return st;
    st = restore(p, *out, err);
    if (st == TG_OK) return TG_OK;
    json_decref(*out);
    *out = NULL;
    return at_row(p, row, st, err);
}

/* ---- the index ----------------------------------------------------------------------------- */

typedef struct builder {
    tg_rowpool *p;
    uint64_t cap;
    uint64_t number, skipped;
    tg_error first;  /* of the skipped rows */
    tg_map keys;     /* groups by the hash of their key */
    uint64_t *group; /* of each entry */
    uint64_t n_groups;
} builder;

static bool push(builder *b, tg_index_entry e, uint64_t group) {
    tg_rowpool *p = b->p;
    if (p->n_entries == b->cap) {
        uint64_t cap = b->cap ? 2 * b->cap : 1024;
        tg_index_entry *entries = tg_realloc_array(p->entries, cap, sizeof *entries);
        if (!entries) return false;
        p->entries = entries;
        if (p->recipe->group_key) {
            uint64_t *groups = tg_realloc_array(b->group, cap, sizeof *groups);
            if (!groups) return false;
            b->group = groups;
        }
        b->cap = cap;
    }
    if (b->group) b->group[p->n_entries] = group;
    p->entries[p->n_entries++] = e;
    return true;
}

/* Keys may be long texts: 128 bits of hash stand for one. */
static tg_status group_of(builder *b, const json_t *row, uint64_t *group, tg_error *err) {
    tg_buf key = {0};
    tg_status st = b->p->recipe->group_key(b->p, row, &key, err);
    if (st == TG_OK && key.failed) st = tg_fail_nomem(err, key.len);
    if (st == TG_OK) {
        const char *text = key.data ? key.data : "";
        uint64_t hash[] = {tg_siphash(1, 2, text, key.len), tg_siphash(3, 4, text, key.len)};
        if (!tg_map_get(&b->keys, (const char *)hash, sizeof hash, group)) {
            *group = b->n_groups++;
            if (!tg_map_set(&b->keys, (const char *)hash, sizeof hash, *group))
                st = tg_fail_nomem(err, sizeof hash);
        }
    }
    tg_buf_fini(&key);
    return st;
}

static tg_status add_samples(builder *b, uint64_t row, const json_t *object, tg_error *err) {
    tg_rowpool *p = b->p;
    tg_row_info info = {1, 1};
    bool keep = true;
    tg_status st = tg_filter_match(&p->filter, object, &keep, err);
    if (st == TG_OK && !keep) return TG_OK;
    if (st == TG_OK && p->recipe->inspect) st = p->recipe->inspect(p, object, &info, err);
    if (st != TG_OK) return at_row(p, row, st, err);
    uint64_t group = 0;
    if (p->recipe->group_key && (st = group_of(b, object, &group, err)) != TG_OK) return st;
    for (uint64_t sub = 0; sub < info.samples; sub++)
        if (!push(b, (tg_index_entry){row, b->number, sub}, group))
            return tg_fail_nomem(err, 2 * b->cap * sizeof *p->entries);
    b->number += info.advance;
    return TG_OK;
}

static tg_status add_row(builder *b, uint64_t row, tg_error *err) {
    json_t *object;
    tg_error local = {0};
    if (!err) err = &local;
    tg_status st = read_row(b->p, row, &object, err);
    if (st == TG_OK) st = add_samples(b, row, object, err);
    json_decref(object);
    if (st != TG_DATA || !b->p->skip_bad) return st;
    if (!b->skipped++) b->first = *err;
    tg_log_debug("datapool", "skipped: %s", err->msg);
    return TG_OK;
}

static uint64_t limit(const tg_rowpool *p) {
    return p->common->max_size > 0 ? (uint64_t)p->common->max_size : UINT64_MAX;
}

/* Entries of one group together, groups in the order of their first rows. */
static tg_status sort_groups(builder *b, tg_error *err) {
    tg_rowpool *p = b->p;
    uint64_t n = b->n_groups;
    tg_index_entry *sorted = tg_alloc_array(p->n_entries + 1, sizeof *sorted);
    p->groups = tg_alloc_array(n + 2, sizeof *p->groups);
    if (!sorted || !p->groups) {
        tg_free(sorted);
        return tg_fail_nomem(err, p->n_entries * sizeof *sorted);
    }
    TG_ASSERT(b->group || p->n_entries == 0); /* they grow together */
    for (uint64_t i = 0; i < p->n_entries; i++) p->groups[b->group[i] + 2]++;
    for (uint64_t g = 2; g < n + 2; g++) p->groups[g] += p->groups[g - 1];
    for (uint64_t i = 0; i < p->n_entries; i++)
        sorted[p->groups[b->group[i] + 1]++] = p->entries[i];
    tg_free(p->entries);
    p->entries = sorted;
    p->count = n < limit(p) ? n : limit(p);
    return TG_OK;
}

static tg_status build(tg_rowpool *p, tg_error *err) {
    builder b = {.p = p};
    tg_status st = TG_OK;
    bool grouped = p->recipe->group_key != NULL;
    uint64_t n = p->end - p->begin, most = grouped ? UINT64_MAX : limit(p);
    for (uint64_t i = 0; i < n && st == TG_OK && p->n_entries < most; i++)
        st = add_row(&b, row_at(p, i), err);
    p->count = p->n_entries < most ? p->n_entries : most;
    if (st == TG_OK && grouped) st = sort_groups(&b, err);
    if (st == TG_OK && !p->entries && !(p->entries = tg_alloc(sizeof *p->entries)))
        st = tg_fail_nomem(err, sizeof *p->entries); /* not NULL: an index without entries */
    if (st == TG_OK && b.skipped)
        tg_log_warn("datapool",
                    "%s: %" PRIu64 " of %" PRIu64 " rows were bad and skipped; the first: %s",
                    tg_split_name(p->split), b.skipped, n, b.first.msg);
    if (st == TG_OK && !p->count && b.skipped)
        st = tg_fail(err, TG_DATA, "no samples: all rows were bad; the first: %s", b.first.msg);
    tg_map_fini(&b.keys);
    tg_free(b.group);
    return st;
}

static tg_status make_index(tg_rowpool *p, tg_error *err) {
    tg_status st = tg_filter_read(&p->filter, p->common->filter, err);
    if (st != TG_OK) return st;
    if (p->end == 0 && !p->sliced) p->end = p->table.count;
    TG_ASSERT(p->begin <= p->end && p->end <= p->table.count);
    bool look = p->recipe->must_inspect || p->recipe->group_key || p->filter.n ||
                !strcmp(p->common->check, "all") || p->skip_bad;
    if (look) return build(p, err);
    uint64_t n = p->end - p->begin;
    p->count = n < limit(p) ? n : limit(p);
    return TG_OK;
}

tg_status tg_rowpool_finish(tg_rowpool *p, tg_status st, uint64_t *count, tg_error *err) {
    if (st == TG_OK && !p->table.ops) { /* the config leaves the split out */
        tg_rowpool_close(p);
        return TG_OK;
    }
    if (st == TG_OK) st = make_index(p, err);
    if (st == TG_OK && !p->count)
        st = tg_fail(err, TG_DATA, "%s: no samples for the %s split",
                     p->table.name ? p->table.name : "datapool", tg_split_name(p->split));
    if (st != TG_OK)
        tg_rowpool_close(p);
    else
        *count = p->count;
    return st;
}

/* ---- samples ------------------------------------------------------------------------------- */

static tg_index_entry entry_of(const tg_rowpool *p, uint64_t i) {
    if (!p->entries) return (tg_index_entry){row_at(p, i), i, 0};
    return p->entries[p->groups ? p->groups[i] : i];
}

tg_status tg_rowpool_row(const tg_rowpool *p, uint64_t i, json_t **out, tg_error *err) {
    return read_row(p, entry_of(p, i).row, out, err);
}

tg_status tg_rowpool_get(const void *state, uint64_t i, tg_arena *arena, tg_sample *out,
                         tg_error *err) {
    const tg_rowpool *p = state;
    tg_index_entry e = entry_of(p, i);
    size_t n = p->groups ? p->groups[i + 1] - p->groups[i] : 1, got = 0;
    json_t **rows = tg_alloc_array(n, sizeof *rows);
    tg_status st = rows ? TG_OK : tg_fail_nomem(err, n * sizeof *rows);
    for (; st == TG_OK && got < n; got++) {
        uint64_t row = p->groups ? p->entries[p->groups[i] + got].row : e.row;
        st = read_row(p, row, &rows[got], err);
        if (st != TG_OK) break;
    }
    if (st == TG_OK) {
        const tg_picked picked = {rows, n, i, e.number, e.sub};
        st = p->recipe->make(p, &picked, arena, out, err);
        if (st != TG_OK) at_row(p, e.row, st, err);
    }
    for (size_t k = 0; k < got; k++) json_decref(rows[k]);
    tg_free(rows);
    return st;
}

uint64_t tg_rowpool_digest(const void *state) {
    const tg_rowpool *p = state;
    uint64_t hash = p->table.digest;
    for (uint64_t i = 0; p->order && i < p->end; i += 1 + p->end / 64) {
        uint64_t parts[] = {hash, p->order[i]};
        hash = tg_hash64(parts, sizeof parts);
    }
    uint64_t parts[] = {hash, p->begin, p->end, p->count};
    return tg_hash64(parts, sizeof parts);
}
