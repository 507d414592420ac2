/* The judges of a process. Their list is guarded by one lock, the backend and all that runs on it by another; weights are loaded under the
 * second by the first who needs them, so that a worker that is never asked for a metric never holds its model. */
#include "env-server/judge/judge.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/config/locate.h"
#include "common/nn/classifier.h"
#include "common/nn/perplexity.h"

#include <pthread.h>
#include <string.h>

enum { PASS_TOKENS = 2048, PASS_SEQS = 64, CHUNK = 256, LONGEST = 8192 };

struct tg_judges {
    pthread_mutex_t list_lock, run_lock;
    tg_backend *be;
    tg_judge *first;
};

struct tg_judge {
    tg_judges *home;
    bool own_home;
    tg_judge *next;
    int users;
    tg_judge_kind kind;
    int n_layers;
    char *folder;
    tg_arch arch;
    tg_tokenizer *tokenizer;
    int64_t max_length;
    /* of run_lock; NULL: not loaded yet */
    tg_classifier *classifier;
    tg_model *model;
    tg_pass *pass;
};

/* ---- the list ---------------------------------------------------------------------------------- */

tg_status tg_judges_create(tg_judges **out, int n_threads, tg_error *err) {
    *out = NULL;
    tg_judges *js = tg_alloc(sizeof *js);
    if (!js) return tg_fail_nomem(err, sizeof *js);
    tg_status st = tg_backend_open(&js->be, "cpu", n_threads, err);
    if (st != TG_OK) {
        tg_free(js);
        return st;
    }
    pthread_mutex_init(&js->list_lock, NULL);
    pthread_mutex_init(&js->run_lock, NULL);
    *out = js;
    return TG_OK;
}

void tg_judges_destroy(tg_judges **judges) {
    tg_judges *js = *judges;
    if (!js) return;
    TG_ASSERT(!js->first);
    tg_backend_close(&js->be);
    pthread_mutex_destroy(&js->list_lock);
    pthread_mutex_destroy(&js->run_lock);
    tg_free(js);
    *judges = NULL;
}

static void free_judge(tg_judge *j) {
    tg_pass_destroy(&j->pass);
    tg_model_destroy(&j->model);
    tg_classifier_destroy(&j->classifier);
    tg_tokenizer_destroy(&j->tokenizer);
    tg_free(j->folder);
    tg_free(j);
}

void tg_judge_close(tg_judge **judge) {
    tg_judge *j = *judge;
    if (!j) return;
    *judge = NULL;
    tg_judges *home = j->home;
    bool own_home = j->own_home;
    pthread_mutex_lock(&home->list_lock);
    bool last = --j->users == 0;
    if (last) {
        tg_judge **at = &home->first;
        while (*at != j) at = &(*at)->next;
        *at = j->next;
    }
    pthread_mutex_unlock(&home->list_lock);
    if (last) free_judge(j);
    if (last && own_home) tg_judges_destroy(&home);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static tg_status check_kind(const tg_judge *j, const tg_judge_spec *spec, tg_error *err) {
    const tg_arch *a = &j->arch;
    switch (spec->kind) {
    case TG_JUDGE_LABELS:
        if (a->labels) return TG_OK;
        return tg_fail(err, TG_DATA,
                       "%s: %s has no labels: architectures in its config.json names no "
                       "…ForSequenceClassification",
                       spec->owner, j->folder);
    case TG_JUDGE_STATES:
        if (a->kind != TG_KIND_ENCODER)
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: %s is a %s model; BERT, RoBERTa, XLM-RoBERTa, DistilBERT and "
                           "ALBERT will do",
                           spec->owner, j->folder, a->family);
        if (spec->n_layers > a->n_layers)
            return tg_fail(err, TG_CONFIG, "%s: num_layers: %s has %d layers, not %d", spec->owner,
                           j->folder, a->n_layers, spec->n_layers);
        return TG_OK;
    case TG_JUDGE_ANSWER:
        if (a->kind == TG_KIND_SEQ2SEQ) return TG_OK;
        return tg_fail(err, TG_DATA, "%s: %s is a %s model, expected a seq2seq one (T5, BART …)",
                       spec->owner, j->folder, a->family);
    case TG_JUDGE_TEXT:
        if (a->kind == TG_KIND_CAUSAL && !a->labels) return TG_OK;
        return tg_fail(err, TG_DATA, "%s: %s is no causal language model", spec->owner, j->folder);
    }
    return tg_fail(err, TG_BUG, "judge: no such kind");
}

/* Takes the folder. */
static tg_status make_judge(tg_judge **out, tg_judges *home, const tg_judge_spec *spec,
                            char *folder, tg_error *err) {
    tg_judge *j = tg_alloc(sizeof *j);
    if (!j) {
        tg_free(folder);
        return tg_fail_nomem(err, sizeof *j);
    }
    *j = (tg_judge){.home = home, .users = 1, .kind = spec->kind, .n_layers = spec->n_layers};
    j->folder = folder;
    tg_status st = tg_arch_load(&j->arch, folder, err);
    if (st == TG_OK) st = check_kind(j, spec, err);
    if (st == TG_OK) st = tg_model_check(folder, &j->arch, err);
    if (st == TG_OK) st = tg_tokenizer_open(&j->tokenizer, folder, err);
    if (st != TG_OK) {
        free_judge(j);
        return st;
    }
    j->max_length = TG_MIN(tg_tokenizer_max_length(j->tokenizer), (int64_t)j->arch.max_positions);
    j->max_length = TG_MIN(j->max_length, (int64_t)LONGEST);
    j->next = home->first;
    home->first = j;
    *out = j;
    return TG_OK;
}

static tg_status find_or_make(tg_judge **out, tg_judges *home, const tg_judge_spec *spec,
                              char *folder, tg_error *err) {
    pthread_mutex_lock(&home->list_lock);
    tg_judge *j = home->first;
    while (j && (j->kind != spec->kind || j->n_layers != spec->n_layers ||
                 strcmp(j->folder, folder) != 0))
        j = j->next;
    tg_status st = TG_OK;
    if (j) {
        j->users++;
        tg_free(folder);
        *out = j;
    } else {
        st = make_judge(out, home, spec, folder, err);
    }
    pthread_mutex_unlock(&home->list_lock);
    return st;
}

tg_status tg_judge_open(tg_judge **out, const tg_open_context *ctx, tg_judge_spec spec,
                        tg_error *err) {
    *out = NULL;
    char *folder;
    tg_status st = tg_model_locate(spec.name, &folder, err);
    if (st != TG_OK) {
        return tg_error_prefix(
            err, "%s (env-server/metric/README.md says how to get models): ", spec.owner);
    }
    tg_judges *home = ctx->judges;
    if (!home) st = tg_judges_create(&home, 1, err);
    if (st != TG_OK) {
        tg_free(folder);
        return st;
    }
    st = find_or_make(out, home, &spec, folder, err);
    if (st == TG_OK && !ctx->judges) (*out)->own_home = true;
    if (st != TG_OK && !ctx->judges) tg_judges_destroy(&home);
    return st;
}

const tg_arch *tg_judge_arch(const tg_judge *j) {
    return &j->arch;
}

const tg_tokenizer *tg_judge_tokenizer(const tg_judge *j) {
    return j->tokenizer;
}

const char *tg_judge_folder(const tg_judge *j) {
    return j->folder;
}

tg_status tg_judge_encode(const tg_judge *j, const tg_text *texts, size_t n, bool cut_left,
                          tg_encodings *rows, tg_error *err) {
    tg_encode_options o = tg_encode_defaults(j->tokenizer);
    o.truncate = true;
    o.truncate_left = cut_left || o.truncate_left;
    o.max_length = j->max_length;
    return tg_tokenizer_encode_batch(j->tokenizer, texts, n, &o, NULL, rows, err);
}

/* ---- running ----------------------------------------------------------------------------------- */

static tg_status load_answer(tg_judge *j, tg_error *err) {
    tg_status st = tg_model_open(&j->model, j->home->be, j->folder, 0, 0, err);
    if (st != TG_OK) return st;
    const tg_pass_caps caps = {.tokens = PASS_SEQS,
                               .seqs = PASS_SEQS,
                               .src = (int)TG_MAX(j->max_length, (int64_t)PASS_TOKENS)};
    return tg_pass_create(&j->pass, j->model, caps, TG_PASS_SCORE, err);
}

static tg_status load(tg_judge *j, tg_error *err) {
    if (j->classifier || j->model) return TG_OK;
    tg_log_info("judge", "loading %s", j->folder);
    tg_backend *be = j->home->be;
    if (j->kind == TG_JUDGE_TEXT) return tg_model_open(&j->model, be, j->folder, 0, 0, err);
    if (j->kind == TG_JUDGE_ANSWER) {
        tg_status st = load_answer(j, err);
        if (st != TG_OK) tg_model_destroy(&j->model);
        return st;
    }
    return j->n_layers ? tg_classifier_open_first(&j->classifier, be, j->folder, j->n_layers,
                                                  PASS_TOKENS, err)
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

static tg_status run_classifier(tg_judge *j, const tg_encodings *rows, float *out, bool states,
                                tg_error *err) {
    if (!rows->n) return TG_OK;
    pthread_mutex_lock(&j->home->run_lock);
    tg_status st = load(j, err);
    if (st == TG_OK) st = classify(j, rows, out, states, err);
    pthread_mutex_unlock(&j->home->run_lock);
    return st;
}

tg_status tg_judge_labels(tg_judge *j, const tg_encodings *rows, float *logits, tg_error *err) {
    return run_classifier(j, rows, logits, false, err);
}

tg_status tg_judge_states(tg_judge *j, const tg_encodings *rows, float *states, tg_error *err) {
    return run_classifier(j, rows, states, true, err);
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

tg_status tg_judge_answers(tg_judge *j, const tg_encodings *rows, const int32_t *ids, size_t n_ids,
                           float *logits, tg_error *err) {
    if (!rows->n) return TG_OK;
    float *whole = tg_alloc_array(PASS_SEQS * (size_t)j->arch.vocab_size, sizeof *whole);
    if (!whole) return tg_fail_nomem(err, PASS_SEQS * (size_t)j->arch.vocab_size * sizeof *whole);
    pthread_mutex_lock(&j->home->run_lock);
    tg_status st = load(j, err);
    for (size_t i = 0; i < rows->n && st == TG_OK;) {
        size_t n = fitting(j, rows, i);
        st = answer(j, rows, i, n, ids, n_ids, whole, logits, err);
        i += n;
    }
    pthread_mutex_unlock(&j->home->run_lock);
    tg_free(whole);
    return st;
}

tg_status tg_judge_perplexity(tg_judge *j, const int32_t *tokens, size_t n, int stride, double *out,
                              tg_error *err) {
    pthread_mutex_lock(&j->home->run_lock);
    tg_status st = load(j, err);
    if (st == TG_OK)
        st = tg_perplexity(j->model, tokens, n, (tg_perplexity_opts){.stride = stride}, out, err);
    pthread_mutex_unlock(&j->home->run_lock);
    return st;
}
