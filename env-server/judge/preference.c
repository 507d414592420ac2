/* RL4LMs's preference model of CommonGen: a T5 that was trained to answer a sentence with "good" or "bad". Only the first token of the answer
 * counts, and only these two. */
#include "env-server/judge/judgement.h"

#include "common/base/alloc.h"
#include "env-server/judge/judge.h"

#include <math.h>
#include <string.h>

static tg_status first_token(const tg_judge *j, const char *word, int32_t *out, tg_error *err) {
    tg_ids ids = {0};
    tg_status st = tg_tokenizer_encode(tg_judge_tokenizer(j), word, strlen(word), TG_ENCODE_SPECIAL,
                                       &ids, err);
    if (st == TG_OK && (!ids.n || ids.data[0] >= tg_judge_arch(j)->vocab_size))
        st = tg_fail(err, TG_DATA, "%s: the model has no token for \"%s\"", tg_judge_folder(j),
                     word);
    if (st == TG_OK) *out = ids.data[0];
    tg_ids_fini(&ids);
    return st;
}

tg_status tg_preference_open(tg_preference *p, const tg_open_context *ctx, const char *owner,
                             const char *model_name, tg_error *err) {
    *p = (tg_preference){0};
    tg_status st = tg_judge_open(
        &p->judge, ctx,
        (tg_judge_spec){.owner = owner, .name = model_name, .kind = TG_JUDGE_ANSWER}, err);
    if (st != TG_OK) return st;
    st = first_token(p->judge, "good", &p->good_bad[0], err);
    if (st == TG_OK) st = first_token(p->judge, "bad", &p->good_bad[1], err);
    if (st != TG_OK) tg_preference_close(p);
    return st;
}

void tg_preference_close(tg_preference *p) {
    tg_judge_close(&p->judge);
}

tg_status tg_preference_values(const tg_preference *p, const tg_metric_item *items, size_t n,
                               double *values, tg_error *err) {
    tg_text *texts = tg_alloc_array(n, sizeof *texts);
    float *logits = tg_alloc_array(2 * n, sizeof *logits);
    tg_encodings rows = {0};
    tg_status st = texts && logits ? TG_OK : tg_fail_nomem(err, n * sizeof *texts);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        texts[i] = (tg_text){.s = items[i].text, .len = items[i].text_len};
    if (st == TG_OK) st = tg_judge_encode(p->judge, texts, n, false, &rows, err);
    if (st == TG_OK) st = tg_judge_answers(p->judge, &rows, p->good_bad, 2, logits, err);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        values[i] = 1 / (1 + exp((double)logits[2 * i + 1] - (double)logits[2 * i]));
    tg_encodings_fini(&rows);
    tg_free(logits);
    tg_free(texts);
    return st;
}
