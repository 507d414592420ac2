/* Supervised training: the next token of prompt and reference, or of the reference to a prompt, with transformers' Trainer as the model for batches,
 * schedules and logging. Batches are packed, without padding, and cut into passes that fit.
 *
 * The loss of a step is the mean over all predicted tokens of its batch. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "learner/train/corpus.h"
#include "learner/train/evaluate.h"
#include "learner/train/memory_plan.h"
#include "learner/train/run.h"
#include "learner/train/text_order.h"
#include "learner/optim/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct supervised {
    tg_run *run;
    const tg_training_args *args;
    tg_model *model;
    tg_optim *optim;
    tg_pass *pass;     /* NULL until a step needs it, and in evaluations */
    tg_pass_caps caps; /* of the pass: what the steps need of the packer's */
    tg_packer packer;
    tg_corpus corpus;
    tg_schedule schedule;
    tg_text_order order;
    int32_t ignored; /* label left out; -1: none */
    float *logp, *dlogp;
    tg_run_state state; /* iteration: optimizer steps */
    double seconds;     /* of this process's steps */
    int64_t done, tokens, tokens_logged;
    double seconds_logged;
} supervised;

static tg_checkpoint_nets nets_of(const supervised *s) {
    return (tg_checkpoint_nets){
        .model = {s->model}, .name = {"policy"}, .slot = {0}, .n = 1, .optim = s->optim};
}

/* ---- opening ------------------------------------------------------------------------------ */

static tg_status open_model(supervised *s, tg_error *err) {
    tg_run *run = s->run;
    tg_status st = run->model_folder ? tg_model_open(&s->model, run->be, run->model_folder,
                                                     run->settings->train, run->seed, err)
                                     : tg_model_create(&s->model, run->be, &run->arch,
                                                       run->settings->train, run->seed, err);
    if (st == TG_OK) st = tg_optim_create(&s->optim, &s->model, 1, &run->settings->optim, err);
    const int tokens = s->packer.caps.tokens;
    s->logp = tg_alloc_array((size_t)tokens, sizeof *s->logp);
    s->dlogp = tg_alloc_array((size_t)tokens, sizeof *s->dlogp);
    if (st == TG_OK && !(s->logp && s->dlogp)) st = tg_fail_nomem(err, (size_t)tokens * 8);
    return st;
}

static bool truncates_left(const tg_run_config *c) {
    const tg_node *side = tg_node_get(c->tokenizer, "truncation_side");
    return !side || !side->text || strcmp(side->text, "right") != 0;
}

static tg_status open_corpus(supervised *s, tg_error *err) {
    tg_run *run = s->run;
    const bool seq2seq = run->arch.kind == TG_KIND_SEQ2SEQ;
    int64_t longest =
        TG_MIN(tg_tokenizer_max_length(run->tokenizer), tg_supervised_longest(&run->arch));
    if (seq2seq && run->arch.start_id < 0)
        return tg_fail(err, TG_CONFIG,
                       "%s: config.json: decoder_start_token_id is missing: what does an answer "
                       "begin with?",
                       run->model_folder);
    tg_split_samples samples;
    tg_status st = tg_split_samples_load(&samples, run->pool, TG_SPLIT_TRAIN, err);
    if (st != TG_OK) return st;
    tg_corpus_opts opts = {.start_id = seq2seq ? run->arch.start_id : -1,
                           .max_length = (int)longest,
                           .truncate_left = truncates_left(run->opts.config),
                           .add_eos = !run->compat};
    st = tg_corpus_build(&s->corpus, &samples, run->tokenizer, &opts, err);
    tg_split_samples_fini(&samples);
    /* RL4LMs's collator of causal texts ignores padding, and padding is eos: eos is never learnt. */
    s->ignored = run->compat && !seq2seq ? tg_tokenizer_pad(run->tokenizer) : -1;
    if (st == TG_OK)
        tg_log_info("train",
                    "%" PRId64 " texts, %" PRId64 " tokens; %" PRId64 " cut, %" PRId64 " too short",
                    s->corpus.n, s->corpus.start[s->corpus.n], s->corpus.n_truncated,
                    s->corpus.n_dropped);
    return st;
}

/* Steps and rates as transformers' Trainer counts them. */
static tg_status plan_steps(supervised *s, tg_error *err) {
    const tg_training_args *a = s->args;
    int64_t batch = a->per_device_train_batch_size, accumulate = a->gradient_accumulation_steps;
    int64_t batches =
        a->dataloader_drop_last ? s->corpus.n / batch : (s->corpus.n + batch - 1) / batch;
    if (batches == 0)
        return tg_fail(err, TG_CONFIG,
                       "alg.training_args: %" PRId64 " texts are less than one batch of %" PRId64,
                       s->corpus.n, batch);
    s->order = (tg_text_order){.seed = s->run->seed,
                               .n = s->corpus.n,
                               .steps_per_epoch = TG_MAX(1, batches / accumulate),
                               .texts_per_step = batch * accumulate,
                               .takes_rest = !a->dataloader_drop_last && accumulate == 1};
    int64_t total = a->max_steps > 0
                        ? a->max_steps
                        : (int64_t)ceil(a->num_train_epochs * (double)s->order.steps_per_epoch);
    int64_t warmup =
        a->warmup_steps > 0 ? a->warmup_steps : (int64_t)ceil(a->warmup_ratio * (double)total);
    s->schedule =
        (tg_schedule){tg_schedule_find(a->lr_scheduler_type), a->learning_rate, warmup, total};
    return TG_OK;
}

/* The memory is planned here, where the texts are known. */
static tg_status plan_passes(supervised *s, tg_error *err) {
    const tg_run *run = s->run;
    tg_pass_caps caps =
        tg_supervised_caps(&run->arch, tg_supervised_tokens(run->settings, &run->arch));
    s->caps = tg_text_order_caps(&s->order, &s->corpus, caps, 0, s->schedule.total);
    tg_status st = tg_packer_init(&s->packer, caps, err);
    return st == TG_OK ? tg_run_plan_memory(s->run, &s->caps, err) : st;
}

static tg_status start_or_resume(supervised *s, tg_error *err) {
    s->state = (tg_run_state){.seed = s->run->seed, .digest = s->run->digest, .score = (double)NAN};
    if (!s->run->opts.resume) return TG_OK;
    bool found = false;
    tg_checkpoint_nets nets = nets_of(s);
    tg_status st = tg_checkpoint_resume(s->run->run_dir, &s->state, &nets, &found, err);
    if (st == TG_OK && !found) st = tg_artifacts_truncate(s->run->run_dir, s->state.sizes, err);
    return st;
}

/* ---- one step ----------------------------------------------------------------------------- */

static int64_t count_labels(const supervised *s, const tg_text_range *r) {
    int64_t n = 0;
    for (int64_t i = r->first; i < r->end; i++) {
        int64_t text = tg_text_order_at(&s->order, r, i);
        for (int64_t t = s->corpus.start[text] + 1; t < s->corpus.start[text + 1]; t++)
            n += s->corpus.tokens[t] != s->ignored;
    }
    return n;
}

/* Makes the pass, or a larger one: steps that were not looked at may need it. */
static tg_status open_pass(supervised *s, const tg_batch *b, tg_error *err) {
    tg_pass_caps *c = &s->caps;
    if (b->n_tokens > c->tokens || b->n_seqs > c->seqs || b->n_src > c->src) {
        tg_pass_destroy(&s->pass);
        c->tokens = c->actions = TG_MAX(c->tokens, b->n_tokens);
        c->seqs = TG_MAX(c->seqs, b->n_seqs);
        c->src = TG_MAX(c->src, b->n_src);
    }
    unsigned mode = s->run->settings->recompute ? TG_PASS_RECOMPUTE : TG_PASS_TRAIN;
    return s->pass ? TG_OK : tg_pass_create(&s->pass, s->model, *c, mode, err);
}

/* Forward and backward of what is packed; adds the negative log-probabilities to *loss. */
static tg_status flush(supervised *s, int64_t labels, double *loss, tg_error *err) {
    const tg_batch *b = &s->packer.batch;
    if (b->n_seqs == 0) return TG_OK;
    tg_status st = open_pass(s, b, err);
    if (st == TG_OK && b->n_actions) {
        tg_batch batch = *b;
        batch.actions_only = true;
        st = tg_pass_forward(s->pass, &batch, (tg_pass_out){.logp = s->logp}, err);
        for (int i = 0; st == TG_OK && i < b->n_actions; i++) {
            *loss -= (double)s->logp[i];
            s->dlogp[i] = (float)(-1.0 / (double)labels);
        }
        if (st == TG_OK) st = tg_pass_backward(s->pass, s->dlogp, NULL, NULL, err);
    }
    s->tokens += b->n_tokens;
    tg_packer_reset(&s->packer);
    return st;
}

static void apply(supervised *s, double *norm, bool *applied) {
    *norm = tg_optim_grad_norm(s->optim);
    *applied = isfinite(*norm);
    if (!*applied) {
        tg_optim_clear(s->optim);
        return;
    }
    double most = s->args->max_grad_norm, scale = most > 0 ? most / (*norm + 1e-6) : 1;
    tg_optim_step(s->optim, tg_schedule_rate(&s->schedule, s->state.iteration),
                  (float)fmin(1, scale));
}

static tg_status train_step(supervised *s, tg_error *err) {
    double start = tg_clock_seconds(), loss = 0, norm;
    tg_text_range r = tg_text_order_step(&s->order, s->state.iteration);
    int64_t labels = count_labels(s, &r);
    tg_status st = TG_OK;
    for (int64_t i = r.first; st == TG_OK && i < r.end; i++) {
        int64_t text = tg_text_order_at(&s->order, &r, i);
        if (tg_packer_add(&s->packer, &s->corpus, text, s->ignored)) continue;
        st = flush(s, labels, &loss, err);
        bool fits = tg_packer_add(&s->packer, &s->corpus, text, s->ignored);
        TG_ASSERT(fits); /* one text is never longer than a pass */
    }
    if (st == TG_OK) st = flush(s, labels, &loss, err);
    if (st != TG_OK) return st;
    bool applied;
    apply(s, &norm, &applied);
    if (!applied)
        tg_log_warn("train", "step %" PRId64 ": the gradient is not finite; the step is left out",
                    s->state.iteration + 1);
    if (labels) s->state.loss_sum += loss / (double)labels;
    s->state.loss_n++;
    s->state.iteration++;
    s->state.evaluated = false;
    s->done++;
    s->seconds += tg_clock_seconds() - start;
    return TG_OK;
}

/* ---- logging, evaluation, checkpoints ------------------------------------------------------ */

/* Rounded: it names files. */
static double epoch_of(const supervised *s) {
    return round((double)s->state.iteration / (double)s->order.steps_per_epoch * 1e4) / 1e4;
}

static bool log_due(const supervised *s) {
    int64_t k = s->state.iteration;
    return k > 0 && (k % s->args->logging_steps == 0 || (k == 1 && s->args->logging_first_step));
}

static tg_status send(supervised *s, int kind, int n, const char *const *names,
                      const double *values, tg_error *err) {
    tg_track_event e = {.numbers = {n, names, values}};
    e.kind = kind;
    return tg_track_send(s->run->track, &e, err);
}

static tg_status send_progress(supervised *s, double loss, tg_error *err) {
    tg_track_progress p = {.done = s->state.iteration,
                           .total = s->schedule.total,
                           .reward = (double)NAN,
                           .kl = (double)NAN,
                           .kl_coeff = (double)NAN,
                           .loss = loss,
                           .tokens_per_s =
                               s->seconds > 0 ? (double)s->tokens / s->seconds : (double)NAN,
                           .seconds_left = s->seconds / (double)s->done *
                                           (double)(s->schedule.total - s->state.iteration)};
    tg_operations_progress(s->run->operations, &p);
    return tg_track_send(s->run->track,
                         &(tg_track_event){.kind = TG_TRACK_PROGRESS, .progress = &p}, err);
}

static tg_status log_line(supervised *s, double loss, tg_error *err) {
    double rate = tg_schedule_rate(&s->schedule, s->state.iteration);
    static const char *const names[] = {"supervised/step", "supervised/epoch", "supervised/loss",
                                        "supervised/learning_rate"};
    const double values[] = {(double)s->state.iteration, epoch_of(s), loss, rate};
    static const char *const timing[] = {"step", "seconds", "tokens", "tokens_per_s"};
    double seconds = s->seconds - s->seconds_logged,
           tokens = (double)(s->tokens - s->tokens_logged);
    const double times[] = {(double)s->state.iteration, seconds, tokens,
                            seconds > 0 ? tokens / seconds : (double)NAN};
    s->seconds_logged = s->seconds;
    s->tokens_logged = s->tokens;
    tg_log_info("train", "step %" PRId64 ": loss %.5f, learning rate %.3g", s->state.iteration,
                loss, rate);
    tg_status st = send(s, TG_TRACK_TRAINING, 4, names, values, err);
    return st == TG_OK ? send(s, TG_TRACK_TIMING, 4, timing, times, err) : st;
}

static tg_status evaluate(supervised *s, tg_split split, double epoch, const char *heading,
                          tg_error *err) {
    tg_pass_destroy(&s->pass); /* the generator needs the memory */
    tg_optim_rest(s->optim);
    return tg_evaluate(s->run, s->model, NULL, split, epoch, heading, err);
}

/* What is due at this step: the line of the log first, then the texts. */
static tg_status evaluate_due(supervised *s, tg_error *err) {
    bool first = s->state.iteration == 0, last = s->state.iteration >= s->schedule.total;
    tg_status st = TG_OK;
    if (log_due(s)) {
        st = log_line(
            s, s->state.loss_n ? s->state.loss_sum / (double)s->state.loss_n : (double)NAN, err);
        if (st == TG_OK && (!last || s->run->compat))
            st = evaluate(s, TG_SPLIT_VAL, epoch_of(s), NULL, err);
    }
    /* transformers logs a summary at the end, and RL4LMs evaluates val at every log */
    if (st == TG_OK && last && s->run->compat)
        st = evaluate(s, TG_SPLIT_VAL, epoch_of(s), NULL, err);
    if (st == TG_OK && (first || last)) {
        double epoch = first ? 0 : s->args->max_steps > 0 ? epoch_of(s) : s->args->num_train_epochs;
        st = evaluate(s, TG_SPLIT_VAL, epoch, last ? "after training" : "before training", err);
        if (st == TG_OK) st = evaluate(s, TG_SPLIT_TEST, epoch, NULL, err);
    }
    if (st != TG_OK) return st;
    if (log_due(s)) s->state.loss_sum = 0, s->state.loss_n = 0;
    s->state.evaluated = true;
    return tg_artifacts_measure(s->run->run_dir, s->state.sizes, err);
}

static tg_status save(supervised *s, tg_error *err) {
    const tg_learner_config *l = &s->run->opts.config->learner;
    tg_checkpoint_nets nets = nets_of(s);
    int64_t keep =
        s->args->save_total_limit == INT64_MIN ? l->keep_checkpoints : s->args->save_total_limit;
    tg_status st = tg_checkpoint_save(s->run->run_dir, &s->state, &nets, err);
    return st == TG_OK ? tg_checkpoint_prune(s->run->run_dir, keep, false, err) : st;
}

static tg_status loop(supervised *s, tg_error *err) {
    double shown = 0;
    for (;;) {
        bool last = s->state.iteration >= s->schedule.total;
        tg_status st = TG_OK;
        if (!s->state.evaluated && (s->state.iteration == 0 || last || log_due(s)))
            st = evaluate_due(s, err);
        if (st != TG_OK || last) return st;
        st = train_step(s, err);
        last = s->state.iteration >= s->schedule.total;
        if (st == TG_OK && (last || s->state.iteration % s->args->save_steps == 0))
            st = save(s, err);
        double now = tg_clock_seconds();
        if (st == TG_OK && (last || now - shown > 0.2)) {
            st = send_progress(s, s->state.loss_sum / (double)s->state.loss_n, err);
            shown = now;
        }
        if (st == TG_OK && tg_halt_requested(s->run->opts.halt))
            st = tg_fail(err, TG_INTERRUPTED, "stopped");
        if (st != TG_OK) return st;
    }
}

static void close_all(supervised *s) {
    tg_free(s->logp);
    tg_free(s->dlogp);
    tg_packer_fini(&s->packer);
    tg_corpus_fini(&s->corpus);
    tg_pass_destroy(&s->pass);
    tg_optim_destroy(&s->optim);
    tg_model_destroy(&s->model);
}

tg_status tg_train_supervised(tg_run *run, tg_error *err) {
    supervised s = {.run = run, .args = &run->settings->sup.args};
    tg_status st = open_corpus(&s, err);
    if (st == TG_OK) st = plan_steps(&s, err);
    if (st == TG_OK) st = plan_passes(&s, err);
    if (st == TG_OK) st = open_model(&s, err);
    if (st == TG_OK) st = start_or_resume(&s, err);
    if (st == TG_OK) {
        st = loop(&s, err);
        if (st == TG_INTERRUPTED) {
            tg_status saved = save(&s, err);
            st = saved == TG_OK
                     ? tg_fail(err, TG_INTERRUPTED, "stopped by %s", tg_halt_reason(run->opts.halt))
                     : saved;
        }
    }
    if (st == TG_OK) st = tg_run_save_model(run, s.model, err);
    if (st == TG_OK)
        st = tg_track_send(run->track, &(tg_track_event){.kind = TG_TRACK_FINISH}, err);
    close_all(&s);
    return st;
}
