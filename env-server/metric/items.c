/* Checks of the references of a corpus, and samples by their prompt. */
#include "env-server/metric/items.h"

#include "common/base/alloc.h"
#include "common/base/map.h"

#include <string.h>

tg_status tg_items_need_references(const tg_metric_input *in, tg_error *err) {
    for (size_t i = 0; i < in->n; i++)
        if (!tg_item_references(&in->items[i]))
            return tg_fail(err, TG_DATA, "sample %zu (id \"%s\") has no reference", i,
                           in->items[i].sample ? in->items[i].sample->id : "");
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

tg_status tg_items_mean(const tg_metric_input *in, tg_item_score *f, void *work, const void *state,
                        const char *key, tg_metric_out *out, tg_error *err) {
    double *values = tg_alloc_array(in->n, sizeof *values), sum = 0;
    tg_status st = values ? TG_OK : tg_fail_nomem(err, in->n * sizeof *values);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        st = f(work, state, &in->items[i], &values[i], err);
        sum += values[i];
    }
    if (st == TG_OK) st = tg_metric_emit(out, key, sum / (double)in->n, values, in->n, err);
    tg_free(values);
    return st;
}

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
