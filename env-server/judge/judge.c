/* The judges of a process: found, checked, shared, counted. One lock guards their list and the questions that wait (judge_ask.c); the backend, and
 * all that runs on it, belongs to whoever made the home busy. */
#include "env-server/judge/judge_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/locate.h"

#include <string.h>

enum { LONGEST = 8192 }; /* tokens of a text, where neither tokenizer nor model has a limit */

tg_status tg_judges_create(tg_judges **out, int n_threads, tg_error *err) {
    *out = NULL;
    tg_judges *js = tg_alloc(sizeof *js);
    if (!js) return tg_fail_nomem(err, sizeof *js);
    tg_status st = tg_backend_open(&js->be, "cpu", n_threads, err);
    if (st != TG_OK) {
        tg_free(js);
        return st;
    }
    pthread_mutex_init(&js->lock, NULL);
    pthread_cond_init(&js->freed, NULL);
    *out = js;
    return TG_OK;
}

void tg_judges_destroy(tg_judges **judges) {
    tg_judges *js = *judges;
    if (!js) return;
    TG_ASSERT(!js->first);
    tg_backend_close(&js->be);
    pthread_cond_destroy(&js->freed);
    pthread_mutex_destroy(&js->lock);
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
    pthread_mutex_lock(&home->lock);
    bool last = --j->users == 0;
    if (last) {
        tg_judge **at = &home->first;
        while (*at != j) at = &(*at)->next;
        *at = j->next;
    }
    pthread_mutex_unlock(&home->lock);
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
        if (spec->n_layers > a->n_layers && !spec->or_fewer)
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
    pthread_mutex_lock(&home->lock);
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
    pthread_mutex_unlock(&home->lock);
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
