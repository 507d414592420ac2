/* Questions joined with the summaries of their documents. */
#include "env-server/datapool/narrative_csv.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/map.h"
#include "env-server/datapool/rowtext.h"

#include <string.h>

typedef struct join {
    tg_table questions, summaries;
    tg_offsets rows;    /* of the questions, those of the split */
    tg_map by_document; /* document_id to row of summaries */
} join;

static tg_status join_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const join *j = t->state;
    json_t *q, *s = NULL;
    tg_status st = j->questions.ops->row(&j->questions, j->rows.at[i], &q, err);
    if (st != TG_OK) return st;
    const char *id = tg_row_text(q, "document_id", err);
    uint64_t row;
    if (!id)
        st = TG_DATA;
    else if (!tg_map_get(&j->by_document, id, strlen(id), &row))
        st = tg_fail(err, TG_DATA, "document %s has no summary", id);
    else
        st = tg_table_row(&j->summaries, row, &s, err);
    if (st == TG_OK && (!tg_row_text(q, "question", err) || !tg_row_text(q, "answer1", err) ||
                        !tg_row_text(q, "answer2", err) || !tg_row_text(s, "summary", err)))
        st = TG_DATA;
    if (st == TG_OK &&
        !(*out = json_pack("{s:O, s:O, s:[O, O]}", "question", json_object_get(q, "question"),
                           "summary", json_object_get(s, "summary"), "answers",
                           json_object_get(q, "answer1"), json_object_get(q, "answer2"))))
        st = tg_fail_nomem(err, 1);
    json_decref(q);
    json_decref(s);
    return st;
}

static void join_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const join *j = t->state;
    tg_table_where(&j->questions, j->rows.at[i], out, size);
}

static void join_close(void *state) {
    join *j = state;
    tg_table_close(&j->questions);
    tg_table_close(&j->summaries);
    tg_free(j->rows.at);
    tg_map_fini(&j->by_document);
    tg_free(j);
}

/* ---- opening ------------------------------------------------------------------------------- */

static tg_status open_first(const char *root, const char *const *names, tg_table *out,
                            tg_error *err) {
    static const tg_csv_format format = {.separator = ','};
    tg_status st = TG_OK;
    for (; *names && st == TG_OK && !out->ops; names++) {
        char *path = tg_path_join(root, *names);
        if (!path) return tg_fail_nomem(err, strlen(root));
        if (tg_path_exists(path)) st = tg_table_open_csv(out, path, &format, err);
        tg_free(path);
    }
    return st;
}

static tg_status index_summaries(join *j, tg_error *err) {
    for (uint64_t i = 0; i < j->summaries.count; i++) {
        json_t *row;
        tg_status st = tg_table_row(&j->summaries, i, &row, err);
        if (st != TG_OK) return st;
        const char *id = tg_row_text(row, "document_id", err);
        if (!id)
            st = TG_DATA;
        else if (!tg_map_set(&j->by_document, id, strlen(id), i))
            st = tg_fail_nomem(err, strlen(id));
        json_decref(row);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

/* A row that cannot be read is kept: reading it says what is wrong. */
static tg_status index_questions(join *j, tg_split split, tg_error *err) {
    static const char *const sets[] = {"", "train", "valid", "test"};
    for (uint64_t i = 0; i < j->questions.count; i++) {
        json_t *row = NULL;
        tg_status st = tg_table_row(&j->questions, i, &row, NULL);
        const char *set = json_string_value(json_object_get(row, "set"));
        bool take = st == TG_DATA || !set || !strcmp(set, sets[split]);
        json_decref(row);
        if (st != TG_OK && st != TG_DATA) return tg_fail(err, st, "cannot read the questions");
        if (take && !tg_offsets_push(&j->rows, i)) return tg_fail_nomem(err, j->rows.cap);
    }
    return TG_OK;
}

tg_status tg_narrative_csv_open(const char *root, tg_split split, tg_table *out, tg_error *err) {
    static const tg_table_ops ops = {join_row, join_where, join_close};
    static const char *const questions[] = {"qaps.csv", "narrativeqa-master/qaps.csv", NULL};
    static const char *const summaries[] = {
        "third_party/wikipedia/summaries.csv", "summaries.csv",
        "narrativeqa-master/third_party/wikipedia/summaries.csv", NULL};
    join *j = tg_alloc(sizeof *j);
    if (!j) return tg_fail_nomem(err, sizeof *j);
    tg_status st = open_first(root, questions, &j->questions, err);
    if (st == TG_OK && !j->questions.ops) {
        join_close(j);
        return TG_OK;
    }
    if (st == TG_OK) st = open_first(root, summaries, &j->summaries, err);
    if (st == TG_OK && !j->summaries.ops)
        st =
            tg_fail(err, TG_NOINPUT,
                    "%s: has qaps.csv, but no third_party/wikipedia/summaries.csv beside it", root);
    if (st == TG_OK) st = index_summaries(j, err);
    if (st == TG_OK) st = index_questions(j, split, err);
    if (st != TG_OK) {
        join_close(j);
        return st;
    }
    uint64_t both[] = {j->questions.digest, j->summaries.digest};
    *out = (tg_table){&ops, j, j->rows.n, tg_hash64(both, sizeof both), j->questions.name};
    return TG_OK;
}
