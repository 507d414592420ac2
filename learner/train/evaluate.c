/* One evaluation. Generation runs in batches of any size: a sample's text depends only on its own stream of random numbers. */
#include "learner/train/evaluate.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "learner/policy/generate.h"
#include "learner/train/memory_plan.h"
#include "learner/train/perplexity.h"
#include "proto/codec.h"
#include "proto/split.h"

#include <math.h>
#include <string.h>

enum { METRIC_TIMEOUT_MS = 3600 * 1000, SHOWN_IN_LOG = 10 };

typedef struct evaluation {
    tg_run *run;
    tg_split split;
    tg_split_samples samples;
    tg_generation *generated; /* (n); tokens owned */
    size_t done;
    double told_s; /* when the last progress was */
    tg_generator *generator;
} evaluation;

/* Of a run that does nothing else. */
static tg_status tell_progress(evaluation *e, tg_error *err) {
    const double now = tg_clock_seconds(), unknown = (double)NAN;
    const bool last = ++e->done == e->samples.n;
    if (!e->run->opts.evaluation || (!last && now - e->told_s < 0.2)) return TG_OK;
    e->told_s = now;
    const tg_track_progress p = {.done = (int64_t)e->done,
                                 .total = (int64_t)e->samples.n,
                                 .reward = unknown,
                                 .kl = unknown,
                                 .kl_coeff = unknown,
                                 .loss = unknown,
                                 .tokens_per_s = unknown,
                                 .seconds_left = unknown};
    return tg_track_send(e->run->track,
                         &(tg_track_event){.kind = TG_TRACK_PROGRESS, .progress = &p}, err);
}

static tg_status on_generated(void *arg, const tg_gen_result *g, tg_error *err) {
    evaluation *e = arg;
    int32_t *copy = tg_alloc_array((size_t)g->n, sizeof *copy);
    if (!copy) return tg_fail_nomem(err, (size_t)g->n * sizeof *copy);
    memcpy(copy, g->tokens, (size_t)g->n * sizeof *copy);
    e->generated[g->id] = (tg_generation){
        .sample = e->samples.all[g->id]->index, .tokens = copy, .n_tokens = (size_t)g->n};
    return tell_progress(e, err);
}

/* The last tokens of a prompt that is too long, or the first: as alg.policy.args.prompt_truncation_side says. */
static const int32_t *fit_prompt(const tg_run *run, const tg_sample *s, int *n) {
    size_t cut = s->n_prompt > (size_t)run->max_prompt ? s->n_prompt - (size_t)run->max_prompt : 0;
    bool right = !run->settings->supervised &&
                 !strcmp(run->settings->policy_args.prompt_truncation_side, "right");
    *n = (int)(s->n_prompt - cut);
    return right ? s->prompt : s->prompt + cut;
}

/* A stream of its own for each (epoch, split, sample). */
static uint64_t stream_number(double epoch, tg_split split, size_t i) {
    uint64_t round = (uint64_t)(epoch * 64) & 0xffff; /* supervised runs evaluate at fractions */
    return (round << 24) | ((uint64_t)split << 22) | (i & 0x3fffff);
}

static tg_status add_all(evaluation *e, double epoch, tg_error *err) {
    for (size_t i = 0; i < e->samples.n; i++) {
        int n;
        const int32_t *prompt = fit_prompt(e->run, e->samples.all[i], &n);
        if (n == 0)
            return tg_fail(
                err, TG_DATA,
                "sample %s of %s has an empty prompt: the model needs at least one token",
                e->samples.all[i]->id, tg_split_name(e->split));
        tg_status st = tg_generator_add(e->generator, i, prompt, n, e->run->seed, TG_RNG_EVAL,
                                        stream_number(epoch, e->split, i), err);
        if (st != TG_OK) {
            tg_error_prefix(err, "sample %s of %s: ", e->samples.all[i]->id,
                            tg_split_name(e->split));
            return st;
        }
    }
    return TG_OK;
}

static tg_status generate(evaluation *e, tg_model *m, tg_model *mask_model, double epoch,
                          tg_error *err) {
    tg_run *run = e->run;
    tg_gen_settings gen = run->eval_gen;
    const int room = tg_run_room(&run->arch, run->positions, run->max_prompt);
    int max_new = (int)TG_MIN(tg_gen_max_new(&gen, 0), room);
    gen.max_new_tokens = max_new;
    gen.num_return_sequences = 1;
    int slots =
        (int)TG_MIN((size_t)tg_eval_slots(run->settings, &run->arch, run->max_prompt, max_new),
                    e->samples.n * (size_t)gen.num_beams);
    tg_decoder_caps caps = tg_generator_caps(&run->arch, slots, run->max_prompt, max_new);
    tg_status st = tg_generator_create(&e->generator, m, &gen, caps, err);
    if (st == TG_OK && mask_model)
        st = tg_generator_mask(e->generator, mask_model, &run->settings->mask, run->special, err);
    if (st == TG_OK) st = add_all(e, epoch, err);
    while (st == TG_OK && tg_generator_active(e->generator)) {
        if (tg_halt_requested(run->opts.halt)) return tg_fail(err, TG_INTERRUPTED, "stopped");
        st = tg_generator_advance(e->generator, on_generated, e, err);
    }
    return st;
}

static void log_evaluation(const tg_track_evaluation *r) {
    for (size_t m = 0; m < r->n_metrics; m++)
        tg_log_info("evaluate", "%s metrics at epoch %g: %s %.6g", r->split, r->epoch,
                    r->metrics[m].key,
                    r->metrics[m].has_corpus ? r->metrics[m].corpus : (double)NAN);
    for (size_t i = 0; i < r->n_predictions && i < SHOWN_IN_LOG; i++)
        tg_log_info("evaluate", "%s: %s -> %s", r->predictions[i].sample_id,
                    r->predictions[i].prompt, r->predictions[i].text);
}

/* The one metric that no worker can compute, where it is asked for; RL4LMs leaves it out on train. */
static tg_status add_perplexity(evaluation *e, tg_model *m, tg_track_metric *metrics, size_t *n,
                                tg_error *err) {
    double value = (double)NAN;
    if (!e->run->settings->perplexity.wanted || e->split == TG_SPLIT_TRAIN) return TG_OK;
    tg_status st = tg_perplexity_of_split(e->run, m, &e->samples, &value, err);
    if (st == TG_NOMEM || st == TG_INTERRUPTED) return st;
    if (st != TG_OK) tg_log_warn("evaluate", "%s has no value: %s", TG_PERPLEXITY_KEY, err->msg);
    metrics[(*n)++] = (tg_track_metric){TG_PERPLEXITY_KEY, st == TG_OK, value, NULL,
                                        st == TG_OK ? NULL : err->msg};
    return TG_OK;
}

/* Puts what the worker answered into the trackers' terms. */
static tg_status report(evaluation *e, tg_model *m, const tg_metric_reply *reply, double epoch,
                        const char *heading, tg_error *err) {
    size_t n = e->samples.n, n_metrics = reply->n_values;
    tg_track_prediction *predictions = tg_alloc_array(n, sizeof *predictions);
    tg_track_metric *metrics = tg_alloc_array(n_metrics + 1, sizeof *metrics);
    tg_status st = predictions && metrics ? TG_OK : tg_fail_nomem(err, n * sizeof *predictions);
    if (st == TG_OK && reply->n_texts != n)
        st = tg_fail(err, TG_PROTOCOL, "a worker decoded %zu of %zu texts", reply->n_texts, n);
    for (size_t i = 0; st == TG_OK && i < n; i++) {
        const tg_sample *s = e->samples.all[i];
        predictions[i] = (tg_track_prediction){s->id, s->prompt_text, reply->texts[i],
                                               s->references, s->n_references};
    }
    for (size_t k = 0; st == TG_OK && k < reply->n_values; k++) {
        const tg_metric_value *v = &reply->values[k];
        if (v->error[0]) tg_log_warn("evaluate", "%s has no value: %s", v->key, v->error);
        metrics[k] =
            (tg_track_metric){v->key, v->has_corpus, v->corpus,
                              v->n_samples == n ? v->samples : NULL, v->error[0] ? v->error : NULL};
    }
    if (st == TG_OK) st = add_perplexity(e, m, metrics, &n_metrics, err);
    if (st == TG_OK) {
        tg_track_evaluation r = {
            epoch, tg_split_name(e->split), predictions, n, metrics, n_metrics, heading};
        log_evaluation(&r);
        st = tg_track_send(e->run->track,
                           &(tg_track_event){.kind = TG_TRACK_EVALUATION, .evaluation = &r}, err);
    }
    tg_free(predictions);
    tg_free(metrics);
    return st;
}

tg_status tg_evaluate(tg_run *run, tg_model *m, tg_model *mask_model, tg_split split, double epoch,
                      const char *heading, tg_error *err) {
    evaluation e = {.run = run, .split = split};
    tg_metric_reply *reply = NULL;
    tg_status st = tg_split_samples_load(&e.samples, run->pool, split, err);
    if (st != TG_OK) return st;
    if (e.samples.n == 0) { /* a pool without this split */
        tg_log_info("evaluate", "%s has no samples", tg_split_name(split));
        tg_split_samples_fini(&e.samples);
        return TG_OK;
    }
    e.generated = tg_alloc_array(e.samples.n, sizeof *e.generated);
    st = e.generated ? generate(&e, m, mask_model, epoch, err)
                     : tg_fail_nomem(err, e.samples.n * sizeof *e.generated);
    if (st == TG_OK) {
        tg_metric_request request = {.split = split,
                                     .items = e.generated,
                                     .n = e.samples.n,
                                     .deadline_ms = METRIC_TIMEOUT_MS,
                                     .want_text = true};
        st = tg_pool_metric(run->pool, &request, &reply, METRIC_TIMEOUT_MS, err);
    }
    tg_generator_destroy(&e.generator); /* makes room */
    if (st == TG_OK) st = report(&e, m, reply, epoch, heading, err);
    tg_msg_free(reply);
    for (size_t i = 0; e.generated && i < e.samples.n; i++)
        tg_free((void *)(uintptr_t)e.generated[i].tokens);
    tg_free(e.generated);
    tg_split_samples_fini(&e.samples);
    if (st == TG_INTERRUPTED && !run->opts.evaluation)
        tg_log_info(
            "evaluate",
            "%s metrics at epoch %g: stopped before they were there; --resume begins with them",
            tg_split_name(split), epoch);
    return st;
}
