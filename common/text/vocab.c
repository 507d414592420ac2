/* A map from text to id and its inverse; the inverse borrows the map's keys, so it is built when
 * the map is final. */
#include "common/text/vocab.h"

#include "common/base/alloc.h"
#include "common/text/part.h"

#include <string.h>

tg_status tg_vocab_add(tg_vocab *v, const char *token, size_t len, int64_t id, tg_error *err) {
    if (id < 0 || id > TG_VOCAB_MAX_ID)
        return tg_fail(err, TG_DATA, "vocabulary: id %lld of token '%.40s' is outside 0..%d",
                       (long long)id, token, TG_VOCAB_MAX_ID);
    if (!tg_map_set(&v->ids, token, len, (uint64_t)id)) return tg_fail_nomem(err, len);
    if (id >= v->size) v->size = (int32_t)id + 1;
    return TG_OK;
}

tg_status tg_vocab_index(tg_vocab *v, tg_error *err) {
    tg_free(v->token);
    v->token = tg_alloc_array((size_t)v->size + 1, sizeof *v->token);
    if (!v->token) return tg_fail_nomem(err, (size_t)v->size * sizeof *v->token);
    for (size_t i = 0; i < v->ids.count; i++) {
        const tg_map_entry *e = &v->ids.entries[i];
        if (v->token[e->value])
            return tg_fail(err, TG_DATA, "vocabulary: tokens '%.40s' and '%.40s' both have id %llu",
                           v->token[e->value], e->key, (unsigned long long)e->value);
        v->token[e->value] = e->key;
    }
    return TG_OK;
}

tg_status tg_vocab_read(tg_vocab *v, const json_t *object, const char *where, tg_error *err) {
    if (!json_is_object(object))
        return tg_fail(err, TG_DATA, "%s: expected an object of token to id", where);
    const char *token;
    json_t *id;
    json_object_foreach((json_t *)object, token, id) {
        if (!json_is_integer(id))
            return tg_fail(err, TG_DATA, "%s: the id of token '%.40s' is not an integer", where,
                           token);
        tg_status st = tg_vocab_add(v, token, strlen(token), json_integer_value(id), err);
        if (st != TG_OK) return st;
    }
    return tg_vocab_index(v, err);
}

int32_t tg_vocab_id(const tg_vocab *v, const char *token, size_t len) {
    uint64_t id;
    return tg_map_get(&v->ids, token, len, &id) ? (int32_t)id : -1;
}

const char *tg_vocab_token(const tg_vocab *v, int32_t id) {
    return id >= 0 && id < v->size ? v->token[id] : NULL;
}

void tg_vocab_write_json(const tg_vocab *v, tg_buf *out) {
    const char *comma = "";
    tg_buf_putc(out, '{');
    for (int32_t id = 0; id < v->size; id++) {
        if (!v->token[id]) continue;
        tg_buf_puts(out, comma);
        tg_part_write_str(out, v->token[id], strlen(v->token[id]));
        tg_buf_printf(out, ":%d", (int)id);
        comma = ",\n";
    }
    tg_buf_putc(out, '}');
}

void tg_vocab_fini(tg_vocab *v) {
    tg_map_fini(&v->ids);
    tg_free(v->token);
    *v = (tg_vocab){0};
}
