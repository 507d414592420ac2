/* See pool_case.h. */
#include "tests/support/pool_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tg_status pool_case_open(const char *id, const json_t *args, const tg_datapool_context *context,
                         tg_split split, tg_arena *arena, tg_datapool *p, tg_error *err) {
    json_t *section = json_pack("{s:s, s:O}", "id", id, "args", args);
    char *text = json_dumps(section, JSON_ENSURE_ASCII);
    json_decref(section);
    tg_node *root;
    tg_choice choice;
    memset(p, 0, sizeof *p);
    tg_status st = tg_tree_parse(arena, "case", text, strlen(text), &root, err);
    free(text);
    if (st == TG_OK)
        st = tg_choice_read(tg_datapool_registry(), root, "datapool", arena, &choice, err);
    if (st == TG_OK) st = tg_choice_require_built(&choice, err);
    return st == TG_OK ? tg_datapool_open(p, (const tg_datapool_ops *)choice.entry, choice.options,
                                          context, split, err)
                       : st;
}

bool pool_case_same(const tg_datapool *p, const tg_sample *s, const json_t *want,
                    const char *prompt, const char *meta, char *why, size_t size) {
    char number[32] = "";
    const json_t *id = json_object_get(want, "id"), *refs = json_object_get(want, "references"),
                 *want_meta = json_object_get(want, meta);
    const char *want_prompt = json_string_value(json_object_get(want, prompt));
    if (json_is_integer(id))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    const char *want_id = json_is_integer(id) ? number : json_string_value(id);
    *why = '\0';
    if (json_is_integer(id) != p->ops->integer_ids || strcmp(s->id, want_id) != 0)
        snprintf(why, size, "id %s, recorded %s", s->id, want_id);
    else if (strcmp(s->prompt_text, want_prompt) != 0)
        snprintf(why, size, "prompt \"%.300s\", recorded \"%.300s\"", s->prompt_text, want_prompt);
    else if (s->n_references != json_array_size(refs))
        snprintf(why, size, "%zu references, recorded %zu", s->n_references, json_array_size(refs));
    for (size_t i = 0; !*why && i < s->n_references; i++)
        if (strcmp(s->references[i], json_string_value(json_array_get(refs, i))) != 0)
            snprintf(why, size, "reference %zu \"%.300s\", recorded \"%.300s\"", i,
                     s->references[i], json_string_value(json_array_get(refs, i)));
    if (*why || !want_meta) return !*why;
    json_t *ours = *s->meta_json ? json_loads(s->meta_json, JSON_DECODE_ANY, NULL) : json_null();
    if (!json_equal(ours, want_meta)) {
        char *text = json_dumps(want_meta, JSON_ENCODE_ANY);
        snprintf(why, size, "meta %.400s, recorded %.400s", s->meta_json, text);
        free(text);
    }
    json_decref(ours);
    return !*why;
}
