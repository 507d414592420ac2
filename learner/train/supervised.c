/* Supervised training: the next token of prompt and reference, or of the reference to a prompt, with transformers' Trainer as the model for batches,
 * schedules and logging. */
#include "learner/train/supervised_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "learner/train/memory_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static tg_checkpoint_nets nets_of(const tg_supervised_run *s) {
    return (tg_checkpoint_nets){
        .model = {s->model}, .name = {"policy"}, .slot = {0}, .n = 1, .optim = s->optim};
}

/* ---- opening ------------------------------------------------------------------------------ */

static tg_status open_model(tg_supervised_run *s, tg_error *err) {
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

static tg_status open_corpus(tg_supervised_run *s, tg_error *err) {
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
                           .wraps = !strcmp(run->arch.family, "mbart"),
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
static tg_status plan_steps(tg_supervised_run *s, tg_error *err) {
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
static tg_status plan_passes(tg_supervised_run *s, tg_error *err) {
    const tg_run *run = s->run;
    tg_pass_caps caps =
        tg_supervised_caps(&run->arch, tg_supervised_tokens(run->settings, &run->arch));
    s->caps = tg_text_order_caps(&s->order, &s->corpus, caps, 0, s->schedule.total);
    tg_status st = tg_packer_init(&s->packer, caps, err);
    return st == TG_OK ? tg_run_plan_memory(s->run, &s->caps, err) : st;
}

static tg_status start_or_resume(tg_supervised_run *s, tg_error *err) {
    s->state = (tg_run_state){.seed = s->run->seed, .digest = s->run->digest, .score = (double)NAN};
    if (!s->run->opts.resume) return TG_OK;
    bool found = false;
    tg_checkpoint_nets nets = nets_of(s);
    tg_status st = tg_checkpoint_resume(s->run->run_dir, &s->state, &nets, &found, err);
    if (st == TG_OK && !found) st = tg_artifacts_truncate(s->run->run_dir, s->state.sizes, err);
    return st;
}

/* ---- steps and checkpoints ---------------------------------------------------------------- */

static tg_status save(tg_supervised_run *s, tg_error *err) {
    const tg_learner_config *l = &s->run->opts.config->learner;
    tg_checkpoint_nets nets = nets_of(s);
    int64_t keep =
        s->args->save_total_limit == INT64_MIN ? l->keep_checkpoints : s->args->save_total_limit;
    tg_status st = tg_checkpoint_save(s->run->run_dir, &s->state, &nets, err);
    return st == TG_OK ? tg_checkpoint_prune(s->run->run_dir, s->state.iteration, keep, false, err)
                       : st;
}

static tg_status loop(tg_supervised_run *s, tg_error *err) {
    double shown = 0;
    for (;;) {
        bool last = s->state.iteration >= s->schedule.total;
        tg_status st = TG_OK;
        if (!s->state.evaluated && (s->state.iteration == 0 || last || tg_supervised_log_due(s)))
            st = tg_supervised_evaluate(s, err);
        if (st != TG_OK || last) return st;
        st = tg_supervised_step(s, err);
        last = s->state.iteration >= s->schedule.total;
        if (st == TG_OK && (last || s->state.iteration % s->args->save_steps == 0))
            st = save(s, err);
        double now = tg_clock_seconds();
        if (st == TG_OK && (last || now - shown > 0.2)) {
            st = tg_supervised_progress(
                s, s->state.loss_n ? s->state.loss_sum / (double)s->state.loss_n : (double)NAN,
                err);
            shown = now;
        }
        if (st == TG_OK && tg_halt_requested(s->run->opts.halt))
            st = tg_fail(err, TG_INTERRUPTED, "stopped");
        if (st != TG_OK) return st;
    }
}

static void close_all(tg_supervised_run *s) {
    tg_free(s->logp);
    tg_free(s->dlogp);
    tg_packer_fini(&s->packer);
    tg_corpus_fini(&s->corpus);
    tg_pass_destroy(&s->pass);
    tg_optim_destroy(&s->optim);
    tg_model_destroy(&s->model);
}

tg_status tg_train_supervised(tg_run *run, tg_error *err) {
    tg_supervised_run s = {.run = run, .args = &run->settings->sup.args};
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
    if (st == TG_OK) tg_run_tell_skipped(&s.state, "steps");
    if (st == TG_OK) st = tg_run_save_model(run, s.model, err);
    if (st == TG_OK)
        st = tg_track_send(run->track, &(tg_track_event){.kind = TG_TRACK_FINISH}, err);
    close_all(&s);
    return st;
}
