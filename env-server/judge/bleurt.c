/* BLEURT (Sellam, Das and Parikh 2020): a BERT with one number as its label reads a reference and a text as a pair. */
#include "env-server/judge/judgement.h"

#include "common/base/alloc.h"
#include "env-server/judge/judge.h"
#include "env-server/metric/pyrepr.h"

#include <string.h>

static const char owner[] = "bleurt";

tg_status tg_bleurt_start(void *bleurt, const void *options, const tg_open_context *ctx,
                          tg_error *err) {
    tg_bleurt *b = bleurt;
    const char *name = ((const tg_bleurt_options *)options)->model;
    *b = (tg_bleurt){.as_list = ctx->compat};
    tg_status st = tg_judge_open(&b->judge, ctx,
                                 (tg_judge_spec){.owner = owner,
                                                 .name = name ? name : TG_BLEURT_MODEL,
                                                 .kind = TG_JUDGE_LABELS},
                                 err);
    if (st != TG_OK || tg_judge_arch(b->judge)->n_labels == 1) return st;
    st = tg_fail(err, TG_DATA, "%s: %s has %d labels; BLEURT's model has 1", owner,
                 tg_judge_folder(b->judge), tg_judge_arch(b->judge)->n_labels);
    tg_bleurt_close(b);
    return st;
}

void tg_bleurt_close(void *bleurt) {
    tg_judge_close(&((tg_bleurt *)bleurt)->judge);
}

/* (reference, text) for every reference of the item, or one for the list of them. */
static tg_status values_of(const tg_bleurt *b, const tg_metric_item *item, tg_encodings *rows,
                           tg_buf *list, double *value, tg_error *err) {
    const size_t refs = item->sample ? item->sample->n_references : 0, n = b->as_list ? 1 : refs;
    if (!n)
        return tg_fail(err, TG_DATA, "sample \"%s\" has no reference",
                       item->sample ? item->sample->id : "");
    tg_text *pairs = tg_alloc_array(n, sizeof *pairs);
    float *scores = tg_alloc_array(n, sizeof *scores);
    tg_status st = pairs && scores ? TG_OK : tg_fail_nomem(err, n * sizeof *pairs);
    tg_buf_reset(list);
    if (b->as_list) tg_py_repr_list(list, refs ? item->sample->references : NULL, refs);
    if (st == TG_OK && list->failed) st = tg_fail_nomem(err, list->len);
    for (size_t k = 0; k < n && st == TG_OK; k++) {
        const char *reference = b->as_list ? list->data : item->sample->references[k];
        pairs[k] = (tg_text){reference, strlen(reference), item->text, item->text_len};
    }
    if (st == TG_OK) st = tg_judge_encode(b->judge, pairs, n, false, rows, err);
    if (st == TG_OK) st = tg_judge_labels(b->judge, rows, scores, err);
    for (size_t k = 0; k < n && st == TG_OK; k++)
        if (!k || (double)scores[k] > *value) *value = (double)scores[k];
    tg_free(scores);
    tg_free(pairs);
    return st;
}

tg_status tg_bleurt_values(const void *bleurt, const tg_metric_item *items, size_t n,
                           double *values, tg_error *err) {
    const tg_bleurt *b = bleurt;
    tg_encodings rows = {0};
    tg_buf list = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++)
        st = values_of(b, &items[i], &rows, &list, &values[i], err);
    tg_encodings_fini(&rows);
    tg_buf_fini(&list);
    return st;
}
