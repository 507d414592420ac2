/* Checks of a corpus, loops over its items, samples by their prompt. */
#include "env-server/metric/items.h"

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/threads.h"

#include <string.h>

tg_status tg_items_need_references(const tg_metric_input *in, tg_error *err) {
    for (size_t i = 0; i < in->n; i++)
        if (!tg_item_references(&in->items[i])) {
            const char *id = in->items[i].sample ? in->items[i].sample->id : "";
            return tg_fail(err, TG_DATA, "sample %zu%s%s%s has no reference", i,
                           *id ? " (id \"" : "", id, *id ? "\")" : "");
        }
    return TG_OK;
}

tg_status tg_items_need_equal(const tg_metric_input *in, tg_error *err) {
    for (size_t i = 1; i < in->n; i++)
        if (tg_item_references(&in->items[i]) != tg_item_references(&in->items[0]))
            return tg_fail(err, TG_DATA,
                           "sample %zu has %zu references, the first one %zu; under compat: rl4lms "
                           "all need the same number",
                           i, tg_item_references(&in->items[i]), tg_item_references(&in->items[0]));
    return TG_OK;
}

/* ---- loops over the items ---------------------------------------------------------------------- */

typedef struct tile {
    tg_status st;
    tg_error err;
} tile;

typedef struct run {
    const tg_metric_input *in;
    const tg_item_loop *loop;
    const void *state;
    char *outs;
    size_t per_tile;
    tile *tiles;
} run;

static tg_status run_range(const run *r, size_t begin, size_t end, tg_error *err) {
    const tg_item_loop *loop = r->loop;
    void *work = tg_alloc(loop->work_size ? loop->work_size : 1);
    if (!work) return tg_fail_nomem(err, loop->work_size);
    tg_status st = loop->start ? loop->start(work, r->state, err) : TG_OK;
    for (size_t i = begin; i < end && st == TG_OK; i++)
        st = loop->one(work, r->state, &r->in->items[i], r->outs + i * loop->out_size, err);
    if (loop->end) loop->end(work);
    tg_free(work);
    return st;
}

static void run_tile(void *arg, int k) {
    const run *r = arg;
    size_t begin = (size_t)k * r->per_tile, end = begin + r->per_tile;
    if (end > r->in->n) end = r->in->n;
    r->tiles[k].st = run_range(r, begin, end, &r->tiles[k].err);
}

/* A tile is long enough for its own scratch memory to cost nothing beside it. */
static tg_status run_threads(run *r, tg_error *err) {
    tg_team *team;
    tg_status st = tg_team_create(&team, r->in->threads > 0 ? r->in->threads : 0, err);
    if (st != TG_OK) return st;
    size_t tiles = 4 * (size_t)tg_team_size(team);
    r->per_tile = (r->in->n + tiles - 1) / tiles;
    tiles = (r->in->n + r->per_tile - 1) / r->per_tile;
    r->tiles = tg_alloc_array(tiles, sizeof *r->tiles);
    if (!r->tiles) st = tg_fail_nomem(err, tiles * sizeof *r->tiles);
    if (st == TG_OK) tg_team_run(team, (int)tiles, run_tile, r);
    for (size_t k = 0; k < tiles && st == TG_OK; k++)
        if (r->tiles[k].st != TG_OK) st = tg_fail(err, r->tiles[k].st, "%s", r->tiles[k].err.msg);
    tg_free(r->tiles);
    tg_team_destroy(&team);
    return st;
}

tg_status tg_items_run(const tg_metric_input *in, const tg_item_loop *loop, const void *state,
                       void *outs, tg_error *err) {
    run r = {.in = in, .loop = loop, .state = state, .outs = outs};
    if ((in->threads > 1 || in->threads == TG_METRIC_ALL_THREADS) && in->n > 1)
        return run_threads(&r, err);
    return run_range(&r, 0, in->n, err);
}

tg_status tg_items_mean(const tg_metric_input *in, const tg_item_loop *loop, const void *state,
                        const char *key, bool samples, tg_metric_out *out, tg_error *err) {
    double *values = tg_alloc_array(in->n, sizeof *values), sum = 0;
    tg_status st = values ? tg_items_run(in, loop, state, values, err)
                          : tg_fail_nomem(err, in->n * sizeof *values);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) sum += values[i];
    if (st == TG_OK)
        st = tg_metric_emit(out, key, sum / (double)in->n, samples ? values : NULL, in->n, err);
    tg_free(values);
    return st;
}

/* ---- samples by their prompt ------------------------------------------------------------------- */

tg_status tg_by_prompt_init(tg_by_prompt *b, const tg_metric_item *items, size_t n, bool together,
                            tg_error *err) {
    memset(b, 0, sizeof *b);
    b->items = tg_alloc_array(n, sizeof *b->items);
    b->values = tg_alloc_array(n, sizeof *b->values);
    b->place = tg_alloc_array(n, sizeof *b->place);
    bool ok = b->items && b->values && b->place;
    tg_map places = {0};
    b->n_all = n;
    for (size_t i = 0; i < n && ok; i++) {
        const char *prompt = items[i].sample->prompt_text;
        uint64_t place = b->n;
        if (!together || !tg_map_get(&places, prompt, strlen(prompt), &place)) {
            ok = !together || tg_map_set(&places, prompt, strlen(prompt), place);
            b->n++;
        }
        b->items[place] = items[i];
        b->place[i] = place;
    }
    tg_map_fini(&places);
    return ok ? TG_OK : tg_fail_nomem(err, n * sizeof *b->items);
}

void tg_by_prompt_spread(const tg_by_prompt *b, double *out, double *mean) {
    double sum = 0;
    for (size_t i = 0; i < b->n; i++) sum += b->values[i];
    *mean = sum / (double)b->n;
    for (size_t i = 0; i < b->n_all; i++) out[i] = b->values[b->place[i]];
}

void tg_by_prompt_fini(tg_by_prompt *b) {
    tg_free(b->items);
    tg_free(b->values);
    tg_free(b->place);
}
