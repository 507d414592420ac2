/* Running a plan: one pass over its items, each copied to the end of the row. Read-only on the post-processor. */
#include "common/text/postproc.h"

#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <string.h>

void tg_tokens_fini(tg_tokens *t) {
    tg_ids_fini(&t->ids);
    tg_spans_fini(&t->spans);
    tg_free(t->strips.data);
    *t = (tg_tokens){0};
}

void tg_postproc_blanks(const char *text, size_t len, uint32_t *leading, uint32_t *trailing) {
    bool inside = false;
    *leading = *trailing = 0;
    for (size_t i = 0; i < len;) {
        unsigned n;
        uint32_t cp = tg_utf8_at(text + i, &n);
        bool blank = cp == 0x120 || tg_unicode_class(cp) == TG_CP_SPACE;
        if (blank && !inside) ++*leading;
        inside |= !blank;
        *trailing = blank ? *trailing + 1 : 0;
        i += n;
    }
}

static tg_status check_ids(const tg_post_plan *plan, int32_t size, tg_error *err) {
    for (size_t i = 0; i < plan->n; i++)
        if (plan->item[i].sequence < 0 && plan->item[i].id >= size)
            return tg_fail(err, TG_DATA,
                           "post_processor: id %d is not below the vocabulary's size %d",
                           (int)plan->item[i].id, (int)size);
    return TG_OK;
}

tg_status tg_postproc_build(tg_postproc *p, int32_t n,
                            const char *(*text)(const void *arg, int32_t id), const void *arg,
                            tg_error *err) {
    tg_status st = TG_OK;
    for (int i = 0; i < 4 && st == TG_OK; i++) st = check_ids(&p->plan[i / 2][i % 2], n, err);
    if (st != TG_OK || !p->trims) return st;
    p->blanks = tg_alloc_array((size_t)n + 1, sizeof *p->blanks);
    if (!p->blanks) return tg_fail_nomem(err, (size_t)n * sizeof *p->blanks);
    for (int32_t id = 0; id < n; id++) {
        uint32_t leading = 0, trailing = 0;
        const char *token = text(arg, id);
        if (token) tg_postproc_blanks(token, strlen(token), &leading, &trailing);
        p->blanks[id][0] = (uint16_t)(leading < UINT16_MAX ? leading : UINT16_MAX);
        p->blanks[id][1] = (uint16_t)(trailing < UINT16_MAX ? trailing : UINT16_MAX);
    }
    return TG_OK;
}

static void trim(const tg_post_trim *how, tg_span *span, bool first, uint32_t leading,
                 uint32_t trailing) {
    /* One space at the start may be the one that we added ourselves, which is not part of the text. */
    if (leading == 1 && (first || span->start == 0) && how->prefix_space) leading = 0;
    if (leading)
        span->start = span->start + leading < span->end ? span->start + leading : span->end;
    if (trailing && span->end >= trailing)
        span->end = span->end - trailing > span->start ? span->end - trailing : span->start;
}

/* Trims the spans of a range that were just copied to `span`. */
static void trim_range(const tg_postproc *p, const tg_post_trim *how, const tg_token_range *r,
                       tg_span *span) {
    const tg_strips *strips = &r->tokens->strips;
    size_t next = 0;
    while (next < strips->n && strips->data[next].at < r->start) next++;
    for (size_t i = r->start; i < r->end; i++, span++) {
        int32_t id = r->tokens->ids.data[i];
        uint32_t leading = p->blanks[id][0], trailing = p->blanks[id][1];
        if (next < strips->n && strips->data[next].at == i) {
            leading = strips->data[next].leading, trailing = strips->data[next].trailing;
            next++;
        }
        if (leading | trailing) trim(how, span, how->first && i == r->start, leading, trailing);
    }
}

static bool fill(tg_buf *out, uint8_t value, size_t n) {
    char *to = out ? tg_buf_reserve(out, n) : NULL;
    if (!out) return true;
    if (!to) return false;
    if (n) memset(to, value, n);
    out->len += n;
    return true;
}

static bool put_range(const tg_postproc *p, const tg_post_item *item, const tg_token_range *r,
                      tg_row *out) {
    size_t n = r->end - r->start;
    uint8_t type = r->rest && !item->rest_type ? (uint8_t)item->sequence : item->type;
    if (!fill(out->types, type, n) || !fill(out->special, item->special, n)) return false;
    if (!n) return true;
    if (!tg_ids_reserve(out->ids, n)) return false;
    memcpy(out->ids->data + out->ids->n, r->tokens->ids.data + r->start, n * sizeof(int32_t));
    out->ids->n += n;
    if (!out->spans) return true;
    if (!tg_spans_reserve(out->spans, n)) return false;
    tg_span *to = out->spans->data + out->spans->n;
    memcpy(to, r->tokens->spans.data + r->start, n * sizeof *to);
    for (size_t i = 0; i < item->n_trims; i++) trim_range(p, &item->trim[i], r, to);
    out->spans->n += n;
    return true;
}

bool tg_postproc_row(const tg_postproc *p, const tg_post_plan *plan,
                     const tg_token_range sequence[2], tg_row *out) {
    for (size_t i = 0; i < plan->n; i++) {
        const tg_post_item *item = &plan->item[i];
        bool ok = item->sequence >= 0
                      ? put_range(p, item, &sequence[item->sequence], out)
                      : tg_ids_push(out->ids, item->id) &&
                            (!out->spans || tg_spans_push(out->spans, (tg_span){0})) &&
                            fill(out->types, item->type, 1) && fill(out->special, item->special, 1);
        if (!ok) return false;
    }
    return true;
}
