#include "tests/support/scoring.h"

#include <stdlib.h>
#include <string.h>

tg_metric_item scoring_item(const json_t *object, tg_arena *arena) {
    const json_t *prediction = json_object_get(object, "prediction"),
                 *references = json_object_get(object, "references"),
                 *prompt = json_object_get(object, "prompt"),
                 *meta = json_object_get(object, "meta");
    tg_sample *s = tg_arena_alloc(arena, sizeof *s);
    const char **texts = tg_arena_array(arena, json_array_size(references) + 1, sizeof *texts);
    for (size_t i = 0; i < json_array_size(references); i++)
        texts[i] = json_string_value(json_array_get(references, i));
    *s = (tg_sample){.id = "",
                     .prompt_text = prompt ? json_string_value(prompt) : "",
                     .references = texts,
                     .n_references = json_array_size(references),
                     .meta_json = ""};
    if (meta) {
        char *text = json_dumps(meta, 0);
        s->meta_json = tg_arena_strdup(arena, text ? text : "");
        free(text);
    }
    return (tg_metric_item){s, json_string_value(prediction), json_string_length(prediction)};
}

static tg_status choose(const tg_registry *r, const char *id, const json_t *args, tg_arena *arena,
                        tg_choice *out, tg_error *err) {
    char *args_text = args ? json_dumps(args, 0) : strdup("{}");
    tg_buf text = {0};
    tg_node *section;
    tg_buf_printf(&text, "{\"id\": \"%s\", \"args\": %s}", id, args_text);
    free(args_text);
    tg_status st = tg_tree_parse(arena, "test", text.data, text.len, &section, err);
    if (st == TG_OK) st = tg_choice_read(r, section, r->kind, arena, out, err);
    if (st == TG_OK) st = tg_choice_require_built(out, err);
    tg_buf_fini(&text);
    return st;
}

tg_status scoring_metric(const char *id, const json_t *args, bool compat,
                         const tg_metric_item *items, size_t n, tg_metric_out *out, tg_error *err) {
    tg_arena arena = {0};
    tg_choice c;
    tg_metric m = {0};
    tg_metric_input in = {.items = items, .n = n, .split = TG_SPLIT_TEST};
    tg_status st = choose(tg_metric_registry(), id, args, &arena, &c, err);
    if (st == TG_OK)
        st = tg_metric_open(&m, (const tg_metric_ops *)c.entry, c.options,
                            &(tg_open_context){.compat = compat}, err);
    if (st == TG_OK) st = tg_metric_compute(&m, &in, out, err);
    tg_metric_close(&m);
    tg_arena_fini(&arena);
    return st;
}

tg_status scoring_reward(const char *id, const json_t *args, bool compat,
                         const tg_metric_item *items, size_t n, const bool *done,
                         tg_reward_value *out, tg_error *err) {
    tg_arena arena = {0};
    tg_choice c;
    tg_reward r = {0};
    tg_reward_input *in = tg_arena_array(&arena, n + 1, sizeof *in);
    for (size_t i = 0; i < n; i++)
        in[i] = (tg_reward_input){.sample = items[i].sample,
                                  .text = items[i].text,
                                  .text_len = items[i].text_len,
                                  .done = done[i]};
    tg_status st = choose(tg_reward_registry(), id, args, &arena, &c, err);
    if (st == TG_OK)
        st = tg_reward_open(&r, (const tg_reward_ops *)c.entry, c.options,
                            &(tg_open_context){.compat = compat}, err);
    if (st == TG_OK) st = tg_reward_score(&r, in, n, out, err);
    tg_reward_close(&r);
    tg_arena_fini(&arena);
    return st;
}

const tg_metric_value *scoring_value(const tg_metric_out *out, const char *key) {
    for (size_t i = 0; i < out->n; i++)
        if (!strcmp(out->values[i].key, key)) return &out->values[i];
    return NULL;
}
