#include "learner/cli/jsonl.h"

#include "common/base/alloc.h"
#include "common/config/option.h"

#include <stdlib.h>
#include <string.h>

void tg_jsonl_open(tg_jsonl *j, FILE *in) {
    memset(j, 0, sizeof *j);
    j->in = in;
}

void tg_jsonl_close(tg_jsonl *j) {
    json_decref(j->object);
    free(j->line); /* getline's memory */
    memset(j, 0, sizeof *j);
}

bool tg_jsonl_next(tg_jsonl *j) {
    json_decref(j->object);
    j->object = NULL;
    ssize_t len = getline(&j->line, &j->cap, j->in);
    if (len < 0) return false;
    j->number++;
    json_error_t e;
    json_t *value = json_loadb(j->line, (size_t)len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!value) {
        snprintf(j->why, sizeof j->why, "not JSON: %s (column %d)", e.text, e.column);
    } else if (!json_is_object(value)) {
        snprintf(j->why, sizeof j->why, "expected a JSON object");
        json_decref(value);
    } else {
        j->object = value;
        return true;
    }
    j->n_bad++;
    return true;
}

void tg_jsonl_print_error(tg_buf *out, long number, const char *why) {
    char text[TG_ERROR_MAX + 32];
    snprintf(text, sizeof text, "line %ld: %s", number, why);
    tg_buf_puts(out, "{\"error\": ");
    tg_json_string(out, text, strlen(text));
    tg_buf_puts(out, "}\n");
}

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

tg_status tg_jsonl_ids(const json_t *object, const char *ids_key, const char *text_key,
                       const tg_tokenizer *tokenizer, int vocab, tg_ids *out, tg_error *err) {
    const json_t *ids = json_object_get(object, ids_key), *text = json_object_get(object, text_key);
    if (!ids == !text)
        return tg_fail(err, TG_DATA, "expected either \"%s\" or \"%s\"", ids_key, text_key);
    if (ids) return ids_from_list(ids, ids_key, vocab, out, err);
    if (!json_is_string(text)) return tg_fail(err, TG_DATA, "\"%s\" is not a string", text_key);
    if (!tokenizer)
        return tg_fail(err, TG_DATA,
                       "\"%s\" needs a tokenizer, and the model folder has none; give \"%s\"",
                       text_key, ids_key);
    tg_status st = tg_tokenizer_encode(tokenizer, json_string_value(text), json_string_length(text),
                                       TG_ENCODE_SPECIAL, out, err);
    for (size_t i = 0; st == TG_OK && i < out->n; i++)
        if (out->data[i] >= vocab)
            st = tg_fail(err, TG_DATA,
                         "token id %d of the text is outside the model's vocabulary of %d",
                         out->data[i], vocab);
    return st;
}
