/* The growable arrays of the pipeline: ids, spans and rewritten text. Each is used by one thread at
 * a time. */
#include "common/text/view.h"

#include "common/base/alloc.h"

#include <string.h>

static bool grow(void **data, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return true;
    size_t cap_new = *cap ? *cap : 16;
    while (cap_new < need) cap_new *= 2;
    void *p = tg_realloc_array(*data, cap_new, size);
    if (!p) return false;
    *data = p, *cap = cap_new;
    return true;
}

bool tg_ids_push(tg_ids *ids, int32_t id) {
    if (ids->n == ids->cap && !tg_ids_reserve(ids, 1)) return false;
    ids->data[ids->n++] = id;
    return true;
}

bool tg_ids_reserve(tg_ids *ids, size_t more) {
    void *p = ids->data;
    bool ok = grow(&p, &ids->cap, ids->n + more, sizeof(int32_t));
    ids->data = p;
    return ok;
}

void tg_ids_fini(tg_ids *ids) {
    tg_free(ids->data);
    *ids = (tg_ids){0};
}

bool tg_spans_reserve(tg_spans *spans, size_t more) {
    void *p = spans->data;
    bool ok = grow(&p, &spans->cap, spans->n + more, sizeof(tg_span));
    spans->data = p;
    return ok;
}

bool tg_spans_push(tg_spans *spans, tg_span span) {
    if (spans->n == spans->cap && !tg_spans_reserve(spans, 1)) return false;
    spans->data[spans->n++] = span;
    return true;
}

void tg_spans_fini(tg_spans *spans) {
    tg_free(spans->data);
    *spans = (tg_spans){0};
}

void tg_aligned_reset(tg_aligned *a, bool track) {
    tg_buf_reset(&a->text);
    a->at.n = 0;
    a->track = track;
}

bool tg_aligned_append(tg_aligned *a, const char *s, size_t len, tg_span from) {
    tg_buf_append(&a->text, s, len);
    if (a->text.failed) return false;
    if (!a->track) return true;
    if (!tg_spans_reserve(&a->at, len)) return false;
    for (size_t i = 0; i < len; i++) a->at.data[a->at.n++] = from;
    return true;
}

bool tg_aligned_append_view(tg_aligned *a, tg_view v) {
    tg_buf_append(&a->text, v.s, v.len);
    if (a->text.failed) return false;
    if (!a->track || !v.len) return true;
    if (!tg_spans_reserve(&a->at, v.len)) return false;
    memcpy(a->at.data + a->at.n, v.at, v.len * sizeof(tg_span));
    a->at.n += v.len;
    return true;
}

tg_view tg_aligned_view(const tg_aligned *a) {
    return (tg_view){a->text.data ? a->text.data : "", a->text.len, a->track ? a->at.data : NULL};
}

void tg_aligned_fini(tg_aligned *a) {
    tg_buf_fini(&a->text);
    tg_spans_fini(&a->at);
}

bool tg_sink_put(tg_sink *out, int32_t id, tg_span span) {
    if (!tg_ids_push(out->ids, id)) return false;
    return !out->spans || tg_spans_push(out->spans, span);
}

bool tg_sink_strip(tg_sink *out, uint32_t leading, uint32_t trailing) {
    tg_strips *s = out->strips;
    void *p = s->data;
    bool ok = grow(&p, &s->cap, s->n + 1, sizeof(tg_strip));
    s->data = p;
    if (ok) s->data[s->n++] = (tg_strip){out->ids->n - 1, leading, trailing};
    return ok;
}
