/* Which normaliser a tokenizer.json asks for, and running it. */
#include "common/text/normalizer.h"

#include "common/base/alloc.h"
#include "common/text/nfc.h"

#include <string.h>

static tg_status read_part(tg_normalizer *n, const json_t *part, const char *where, int depth,
                           tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    if (!strcmp(type, "NFC")) {
        n->nfc = true;
        return tg_part_check(part, where, "type", err);
    }
    if (strcmp(type, "Sequence") || depth > 4)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: type \"%.40s\" is not built into this version (NFC and Sequence are)",
                       where, type);
    tg_status st = tg_part_check(part, where, "type normalizers", err);
    const json_t *list = json_object_get(part, "normalizers");
    if (st == TG_OK && !json_is_array(list))
        st = tg_fail(err, TG_DATA, "%s.normalizers: expected a list", where);
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++)
        st = read_part(n, json_array_get(list, i), "normalizer.normalizers", depth + 1, err);
    return st;
}

tg_status tg_normalizer_read(tg_normalizer *n, const json_t *part, tg_error *err) {
    *n = (tg_normalizer){0};
    bool none = !part || json_is_null(part);
    n->json = none ? tg_strdup("null") : tg_part_dump(part);
    if (!n->json) return tg_fail_nomem(err, 0);
    return none ? TG_OK : read_part(n, part, "normalizer", 0, err);
}

void tg_normalizer_fini(tg_normalizer *n) {
    tg_free(n->json);
    *n = (tg_normalizer){0};
}

tg_status tg_normalizer_run(const tg_normalizer *n, tg_scratch *s, tg_view in, tg_view *out,
                            tg_error *err) {
    *out = in;
    if (!n->nfc || tg_nfc_is_clean(in.s, in.len)) return TG_OK;
    tg_aligned_reset(&s->normal, in.at != NULL);
    if (!tg_nfc_run(&s->points, &s->points_cap, in, &s->normal)) return tg_fail_nomem(err, in.len);
    *out = tg_aligned_view(&s->normal);
    return TG_OK;
}

tg_status tg_normalizer_text(const tg_normalizer *n, const char *text, size_t len, tg_buf *out,
                             tg_error *err) {
    tg_point *points = NULL;
    size_t cap = 0;
    tg_aligned done = {0};
    bool ok = true;
    if (n->nfc) {
        ok = tg_nfc_run(&points, &cap, (tg_view){text, len, NULL}, &done);
        tg_buf_append(out, done.text.data, done.text.len);
    } else {
        tg_buf_append(out, text, len);
    }
    tg_free(points);
    tg_aligned_fini(&done);
    return ok && !out->failed ? TG_OK : tg_fail_nomem(err, len);
}
