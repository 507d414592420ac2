/* Checks of the references of a corpus. Pure functions. */
#include "env-server/metric/items.h"

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
