/* Which layers attend to a window only. */
#include "common/nn/family/decoders.h"

#include <string.h>

tg_status tg_window_read(tg_arch *a, const tg_config_json *c, const char *key, int def,
                         tg_error *err) {
    bool none = json_is_null(json_object_get(c->root, key));
    return tg_config_json_int(c, key, NULL, 1, 1 << 30, none ? 0 : def, &a->window, err);
}

tg_status tg_layer_types_read(tg_arch *a, const tg_config_json *c, bool *found, tg_error *err) {
    json_t *list = json_object_get(c->root, "layer_types");
    *found = list && !json_is_null(list);
    if (!*found) return TG_OK;
    if (!json_is_array(list) || json_array_size(list) != (size_t)a->n_layers)
        return tg_fail(err, TG_DATA, "%s: layer_types: expected a list of %d names", c->path,
                       a->n_layers);
    for (int i = 0; i < a->n_layers; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));
        if (name && !strcmp(name, "full_attention")) continue;
        if (!name || strcmp(name, "sliding_attention"))
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: layer_types: \"%.60s\" is not built into this version (there are: "
                           "full_attention, sliding_attention)",
                           c->path, name ? name : "?");
        if (!a->window)
            return tg_fail(err, TG_DATA,
                           "%s: layer_types: sliding_attention without a "
                           "sliding_window",
                           c->path);
        tg_layer_set_local(a, i);
    }
    return TG_OK;
}

static int count_local(const tg_arch *a) {
    int local = 0;
    for (int i = 0; i < a->n_layers; i++) local += tg_arch_is_local(a, i);
    return local;
}

void tg_window_settle(tg_arch *a) {
    if (!count_local(a)) a->window = 0;
}

bool tg_window_write(const tg_arch *a, json_t *o, bool types) {
    int failed = 0, local = count_local(a);
    if (!json_object_get(o, "sliding_window"))
        failed |=
            json_object_set_new(o, "sliding_window", local ? json_integer(a->window) : json_null());
    if ((types || (local && local < a->n_layers)) && !json_object_get(o, "layer_types")) {
        json_t *list = json_array();
        for (int i = 0; list && i < a->n_layers; i++)
            failed |= json_array_append_new(
                list, json_string(tg_arch_is_local(a, i) ? "sliding_attention" : "full_attention"));
        failed |= json_object_set_new(o, "layer_types", list);
    }
    return !failed;
}
