/* CRD3: the next turn of a role-playing session. Once two earlier turns exist, the last
 * max_context_size turns and the speaker's name are the prompt. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/episodes.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "proto/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_TURN = 2 };

struct options {
    tg_pool_common common;
    int64_t max_context_size;
};
static const tg_opt options[] = {TG_OPT_ROW(struct options, max_context_size, TG_T_INT,
                                            TG_OPT_REQUIRED, NULL, -1e9, 1e9, NULL,
                                            "Earlier turns shown; 0: all."),
                                 TG_POOL_OPTIONS(struct options), TG_OPT_END};

static tg_status native(const tg_place *place, tg_table *out, tg_error *err) {
    return place->is_file ? TG_OK : tg_episodes_open(place->root, place->split, out, err);
}

static const tg_dataset dataset = {
    .title = "CRD3",
    .names = {"CRD3-master", "crd3"},
    .home = "crd3/CRD3-master",
    .hub = {NULL},
    .layout =
        "the unpacked archive of github.com/RevanthRameshkumar/CRD3: CRD3-master/data/aligned "
        "data/{train,val,test}_files and data/cleaned data/*.json, or .jsonl files with an "
        "episode {\"TURNS\": [{\"NAMES\", \"UTTERANCES\"}]} a line",
    .native = native,
};

/* ---- turns --------------------------------------------------------------------------------- */

static const json_t *turns_of(const json_t *row, tg_error *err) {
    const json_t *turns = tg_row_field(row, "TURNS|turns", err);
    if (turns && !json_is_array(turns)) {
        tg_fail(err, TG_DATA, "\"TURNS\" is not a list");
        return NULL;
    }
    return turns;
}

static const char *name_of(const json_t *turn, tg_error *err) {
    const json_t *names = tg_row_texts(turn, "NAMES|names", err);
    if (names && json_array_size(names) == 0) {
        tg_fail(err, TG_DATA, "a turn has no name");
        return NULL;
    }
    return names ? json_string_value(json_array_get(names, 0)) : NULL;
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    (void)p;
    const json_t *turns = turns_of(row, err);
    if (!turns) return TG_DATA;
    size_t i, n = json_array_size(turns);
    json_t *turn;
    json_array_foreach((json_t *)turns, i, turn) {
        if (name_of(turn, err) && tg_row_texts(turn, "UTTERANCES|utterances", err)) continue;
        tg_error_prefix(err, "turn %zu: ", i);
        return TG_DATA;
    }
    info->samples = n > FIRST_TURN ? n - FIRST_TURN : 0;
    return TG_OK;
}

static void put_utterances(const json_t *turn, tg_buf *out) {
    const json_t *list = tg_row_field(turn, "UTTERANCES|utterances", NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i) tg_buf_putc(out, ' ');
        tg_buf_puts(out, json_string_value(json_array_get(list, i)));
    }
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    const struct options *o = p->options;
    const json_t *turns = turns_of(picked->rows[0], err);
    size_t t = (size_t)picked->sub + FIRST_TURN;
    if (!turns || t >= json_array_size(turns)) return TG_DATA;
    int64_t size = o->max_context_size, n = (int64_t)t; /* contexts[-size:] */
    int64_t from = size > 0 ? (n > size ? n - size : 0) : (-size < n ? -size : n);
    tg_buf prompt = {0}, reference = {0};
    for (int64_t i = from; i < n; i++) {
        const json_t *turn = json_array_get(turns, (size_t)i);
        tg_buf_printf(&prompt, "%s%s: ", i > from ? "\n" : "", name_of(turn, err));
        put_utterances(turn, &prompt);
    }
    tg_buf_printf(&prompt, "\n%s: ", name_of(json_array_get(turns, t), err));
    put_utterances(json_array_get(turns, t), &reference);
    tg_status st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK && reference.failed) st = tg_fail_nomem(err, reference.len);
    if (st == TG_OK) st = tg_sample_only(out, reference.data ? reference.data : "", arena, err);
    tg_buf_fini(&reference);
    char id[96];
    snprintf(id, sizeof id, "%s_ep_%" PRIu64 "_turn_%zu", tg_split_name(p->split), picked->number,
             t);
    if (st == TG_OK && !(out->id = tg_arena_strdup(arena, id))) st = tg_fail_nomem(err, sizeof id);
    return st;
}

static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const structured[] = {"TURNS", "turns", NULL};
    static const char *const columns[] = {"TURNS", "turns", NULL};
    static const tg_recipe recipe = {
        .structured = structured, .inspect = inspect, .must_inspect = true, .make = make};
    const struct options *o = opts;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &dataset, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_crd3 = {
    .entry = {.name = "crd3",
              .summary = "CRD3: the next turn of a role-playing session.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_pool,
    TG_ROWPOOL_OPS,
};
