/* Rows of tokens through a judge's model. Passes hold whole texts, as many as fit. Weights are loaded by the first who asks, so that a worker that is
 * never asked for a metric never holds its model. */
#include "env-server/judge/judge_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"

enum { PASS_TOKENS = 2048, PASS_SEQS = 64, CHUNK = 256 };

static tg_status load_answer(tg_judge *j, tg_error *err) {
    tg_status st = tg_model_open(&j->model, j->home->be, j->folder, 0, 0, err);
    if (st != TG_OK) return st;
    const tg_pass_caps caps = {.tokens = PASS_SEQS,
                               .seqs = PASS_SEQS,
                               .src = (int)TG_MAX(j->max_length, (int64_t)PASS_TOKENS)};
    return tg_pass_create(&j->pass, j->model, caps, TG_PASS_SCORE, err);
}

tg_status tg_judge_load(tg_judge *j, tg_error *err) {
    if (j->classifier || j->model) return TG_OK;
    tg_log_info("judge", "loading %s", j->folder);
    tg_backend *be = j->home->be;
    if (j->kind == TG_JUDGE_TEXT) return tg_model_open(&j->model, be, j->folder, 0, 0, err);
    if (j->kind == TG_JUDGE_ANSWER) {
        tg_status st = load_answer(j, err);
        if (st != TG_OK) tg_model_destroy(&j->model);
        return st;
    }
    return j->n_layers
               ? tg_classifier_open_first(&j->classifier, be, j->folder,
                                          TG_MIN(j->n_layers, j->arch.n_layers), PASS_TOKENS, err)
               : tg_classifier_open(&j->classifier, be, j->folder, PASS_TOKENS, err);
}

/* Rows first .. first + n - 1 of the encodings in the engine's terms; types has room for their tokens. */
static tg_texts texts_of(const tg_judge *j, const tg_encodings *rows, size_t first, size_t n,
                         int32_t *offsets, int32_t *types) {
    const size_t begin = rows->start[first];
    for (size_t i = 0; i <= n; i++) offsets[i] = (int32_t)(rows->start[first + i] - begin);
    const bool typed = j->arch.types && j->arch.n_types > 1;
    for (int32_t i = 0; typed && i < offsets[n]; i++) types[i] = rows->types[begin + (size_t)i];
    return (tg_texts){.n = (int)n,
                      .tokens = rows->ids + begin,
                      .offsets = offsets,
                      .types = typed ? types : NULL};
}

/* logits or states of all rows, CHUNK at a time. */
static tg_status classify(tg_judge *j, const tg_encodings *rows, float *out, bool states,
                          tg_error *err) {
    int32_t offsets[CHUNK + 1];
    int32_t *types = tg_alloc_array(rows->start[rows->n], sizeof *types);
    if (!types) return tg_fail_nomem(err, rows->start[rows->n] * sizeof *types);
    const size_t width = (size_t)(states ? j->arch.width : j->arch.n_labels);
    tg_status st = TG_OK;
    for (size_t i = 0; i < rows->n && st == TG_OK; i += CHUNK) {
        size_t n = TG_MIN(rows->n - i, (size_t)CHUNK);
        tg_texts texts = texts_of(j, rows, i, n, offsets, types);
        st = states ? tg_classifier_states(j->classifier, &texts, out + rows->start[i] * width, err)
                    : tg_classifier_score(j->classifier, &texts, out + i * width, err);
    }
    tg_free(types);
    return st;
}

/* One pass over the sources first .. first + n - 1. whole: (n, vocabulary) scratch. */
static tg_status answer(tg_judge *j, const tg_encodings *rows, size_t first, size_t n,
                        const int32_t *ids, size_t n_ids, float *whole, float *logits,
                        tg_error *err) {
    int32_t start[PASS_SEQS], places[PASS_SEQS + 1], sources[PASS_SEQS + 1];
    const size_t begin = rows->start[first], vocab = (size_t)j->arch.vocab_size;
    for (size_t i = 0; i <= n; i++) {
        places[i] = (int32_t)i;
        sources[i] = (int32_t)(rows->start[first + i] - begin);
        if (i < n) start[i] = j->arch.start_id;
    }
    const tg_batch b = {.n_tokens = (int)n,
                        .n_seqs = (int)n,
                        .tokens = start,
                        .offsets = places,
                        .n_src = sources[n],
                        .src_tokens = rows->ids + begin,
                        .src_offsets = sources};
    tg_status st = tg_pass_forward(j->pass, &b, (tg_pass_out){0}, err);
    if (st == TG_OK) st = tg_pass_logits(j->pass, places, (int)n, whole, err);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        for (size_t k = 0; k < n_ids; k++)
            logits[(first + i) * n_ids + k] = whole[i * vocab + (size_t)ids[k]];
    return st;
}

/* As many sources from `first` on as fit a pass, at least one. */
static size_t fitting(const tg_judge *j, const tg_encodings *rows, size_t first) {
    const size_t room = (size_t)TG_MAX(j->max_length, (int64_t)PASS_TOKENS);
    size_t n = 1;
    while (first + n < rows->n && n < PASS_SEQS &&
           rows->start[first + n + 1] - rows->start[first] <= room)
        n++;
    return n;
}

static tg_status answer_all(tg_judge *j, const tg_encodings *rows, const int32_t *ids, size_t n_ids,
                            float *logits, tg_error *err) {
    float *whole = tg_alloc_array(PASS_SEQS * (size_t)j->arch.vocab_size, sizeof *whole);
    if (!whole) return tg_fail_nomem(err, PASS_SEQS * (size_t)j->arch.vocab_size * sizeof *whole);
    tg_status st = TG_OK;
    for (size_t i = 0; i < rows->n && st == TG_OK;) {
        size_t n = fitting(j, rows, i);
        st = answer(j, rows, i, n, ids, n_ids, whole, logits, err);
        i += n;
    }
    tg_free(whole);
    return st;
}

tg_status tg_judge_run(tg_judge *j, const tg_encodings *rows, const tg_question *q, float *out,
                       tg_error *err) {
    if (j->kind == TG_JUDGE_ANSWER) return answer_all(j, rows, q->ids, q->n_ids, out, err);
    return classify(j, rows, out, j->kind == TG_JUDGE_STATES, err);
}
