/* A line's value is checked before any id of it is used. */
#include "learner/cli/line_ids.h"

static tg_status ids_from_list(const json_t *list, const char *key, int vocab, tg_ids *out,
                               tg_error *err) {
    if (!json_is_array(list))
        return tg_fail(err, TG_DATA, "\"%s\" is not a list of token ids", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id >= vocab)
            return tg_fail(err, TG_DATA, "\"%s\"[%zu] is not a token id (0 to %d)", key, i,
                           vocab - 1);
        if (!tg_ids_push(out, (int32_t)id)) return tg_fail_nomem(err, out->n * sizeof(int32_t));
    }
    return TG_OK;
}

tg_status tg_line_text(const char *text, size_t len, const tg_tokenizer *tokenizer, int vocab,
                       tg_ids *out, tg_error *err) {
    const size_t first = out->n;
    tg_status st = tg_tokenizer_encode(tokenizer, text, len, TG_ENCODE_SPECIAL, out, err);
    for (size_t i = first; st == TG_OK && i < out->n; i++)
        if (out->data[i] >= vocab)
            st = tg_fail(err, TG_DATA,
                         "token id %d of the text is outside the model's vocabulary of %d: the "
                         "folder has the tokenizer of another model",
                         out->data[i], vocab);
    return st;
}

tg_status tg_line_ids(const json_t *object, const char *ids_key, const char *text_key,
                      const tg_tokenizer *tokenizer, int vocab, tg_ids *out, tg_error *err) {
    if (!json_is_object(object)) return tg_fail(err, TG_DATA, "expected a JSON object");
    const json_t *ids = json_object_get(object, ids_key), *text = json_object_get(object, text_key);
    if (!ids == !text)
        return tg_fail(err, TG_DATA, "expected either \"%s\" or \"%s\"", ids_key, text_key);
    if (ids) return ids_from_list(ids, ids_key, vocab, out, err);
    if (!json_is_string(text)) return tg_fail(err, TG_DATA, "\"%s\" is not a string", text_key);
    if (!tokenizer)
        return tg_fail(err, TG_DATA,
                       "\"%s\" needs a tokenizer, and the model folder has none; give \"%s\"",
                       text_key, ids_key);
    return tg_line_text(json_string_value(text), json_string_length(text), tokenizer, vocab, out,
                        err);
}
