/* The on-policy loop of RL4LMs: evaluate val and test, then iterations of rollout and update with evaluations on val and checkpoints in
 * between, at the end val and test again and the model.
 *
 * Invariant: `state` always describes the networks as they are, with the artifacts' sizes of that moment; whatever interrupts the loop, a
 * checkpoint of it resumes to the same files. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/need.h"
#include "learner/rl/kl.h"
#include "learner/train/collect.h"
#include "learner/train/evaluate.h"
#include "learner/train/passes.h"
#include "learner/train/run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct trainer {
    tg_run *run;
    tg_actor_critic *ac;
    tg_collector *collector;
    tg_kl_controller kl;
    tg_passes passes;
    tg_run_state state;
    double reward_sum; /* since the last checkpoint */
    int64_t reward_n;
    double seconds; /* of this process's iterations */
    int64_t done;
} trainer;

static void add_net(tg_checkpoint_nets *nets, tg_model *m, const char *name, int slot) {
    nets->model[nets->n] = m;
    nets->name[nets->n] = name;
    nets->slot[nets->n++] = slot;
}

static tg_checkpoint_nets nets_of(const trainer *t) {
    const tg_actor_critic *ac = t->ac;
    tg_checkpoint_nets nets = {.optim = ac->optim};
    bool only = t->run->settings->algo->critic_only;
    add_net(&nets, ac->policy, "policy", only ? -1 : 0);
    if (ac->critic == TG_CRITIC_SEPARATE) add_net(&nets, ac->value, "value", only ? 0 : 1);
    if (ac->mask_model) add_net(&nets, ac->mask_model, "mask", -1);
    return nets;
}

/* ---- opening ------------------------------------------------------------------------------ */

static tg_status open_networks(trainer *t, tg_error *err) {
    tg_run *run = t->run;
    const tg_train_settings *s = run->settings;
    tg_passes_plan(&t->passes, s, &run->arch, &run->facts);
    tg_actor_critic_opts opts = {.model_folder = run->model_folder,
                                 .critic = s->critic,
                                 .reference = true,
                                 .keep_reference = s->keep_reference,
                                 .half_reference = s->half_reference,
                                 .train = s->train,
                                 .recompute = s->recompute,
                                 .critic_only = s->algo->critic_only,
                                 .mask = s->mask,
                                 .seed = run->seed,
                                 .optim = s->optim,
                                 .train_caps = t->passes.plan.caps};
    opts.mask.compat = run->compat;
    return tg_actor_critic_open(&t->ac, run->be, &opts, err);
}

static tg_status open_collector(trainer *t, tg_error *err) {
    tg_run *run = t->run;
    tg_collect_opts opts = {.n_envs = run->n_envs,
                            .max_prompt = run->max_prompt,
                            .max_new = run->max_new,
                            .seed = run->seed,
                            .first_episode = t->state.next_episode,
                            .max_failed = run->settings->eval.max_failed_rewards,
                            .abort_on_failure =
                                !strcmp(run->settings->eval.on_reward_failure, "abort"),
                            .group = (int)run->settings->eval.compare_sample,
                            .min_valid = (int)run->settings->eval.min_valid,
                            .gen = &run->rollout_gen,
                            .known = tg_actor_critic_knows(t->ac, &run->rollout_gen),
                            .mask_model = t->ac->mask_model,
                            .mask = t->ac->mask,
                            .special = run->special,
                            .stop = run->opts.halt};
    return tg_collector_create(&t->collector, run->pool, t->ac->policy, &opts, err);
}

static tg_status start_or_resume(trainer *t, tg_error *err) {
    tg_run *run = t->run;
    t->state = (tg_run_state){.kl_coeff = run->settings->kl.coeff,
                              .seed = run->seed,
                              .digest = run->digest,
                              .score = (double)NAN};
    bool found = false;
    tg_status st = TG_OK;
    if (run->opts.resume) {
        tg_checkpoint_nets nets = nets_of(t);
        st = tg_checkpoint_resume(run->run_dir, &t->state, &nets, &found, err);
        /* stopped before its first checkpoint: what there is belongs to the same beginning */
        if (st == TG_OK && !found) st = tg_artifacts_truncate(run->run_dir, t->state.sizes, err);
    }
    t->kl = (tg_kl_controller){t->state.kl_coeff, run->settings->kl.target_kl};
    return st;
}

/* ---- one iteration ------------------------------------------------------------------------ */

typedef struct iteration {
    tg_collect_info info;
    tg_rollout_summary summary;
    tg_update_stats stats;
    double rollout_s, score_s, update_s;
} iteration;

static tg_status learn(trainer *t, tg_rollout *r, iteration *it, tg_error *err) {
    const tg_train_settings *s = t->run->settings;
    tg_order order = {.seed = t->run->seed,
                      .iteration = (uint64_t)t->state.iteration,
                      .n_iterations = (uint64_t)s->eval.n_iters};
    double start = tg_clock_seconds();
    tg_need need;
    tg_status st = tg_passes_fit(&need, &t->passes, r, &order, err);
    if (st != TG_OK) return st;
    t->ac->caps = need.score;
    st = tg_actor_critic_score(t->ac, r, err);
    if (st != TG_OK) return st;
    t->ac->caps = need.update;
    double mean_kl = tg_rollout_kl(r, t->kl.coeff);
    tg_rollout_summarise(r, t->kl.coeff, &it->summary);
    tg_kl_controller_step(&t->kl, mean_kl);
    tg_rollout_finish(
        r, &(tg_returns_opts){t->passes.plan.gamma, t->passes.plan.gae_lambda, s->kl.norm_reward});
    double scored = tg_clock_seconds();
    st = s->algo->update(t->ac, s->algo_opts, r, &order, NULL, &it->stats, err);
    tg_actor_critic_rest(t->ac); /* the next rollout and evaluations need the memory for caches */
    it->score_s = scored - start;
    it->update_s = tg_clock_seconds() - scored;
    return st;
}

static double summary_value(const tg_rollout_summary *s, const char *name) {
    for (int i = 0; i < TG_ROLLOUT_SUMMARY_N; i++)
        if (!strcmp(s->name[i], name)) return s->value[i];
    return (double)NAN;
}

static tg_status send_numbers(trainer *t, int kind, int n, const char *const *names,
                              const double *values, tg_error *err) {
    tg_track_event e = {.numbers = {n, names, values}};
    e.kind = kind;
    return tg_track_send(t->run->track, &e, err);
}

static tg_status send_timing(trainer *t, const iteration *it, tg_error *err) {
    tg_pool_stats pool;
    tg_pool_get_stats(t->run->pool, &pool);
    double total = it->rollout_s + it->score_s + it->update_s;
    const struct {
        const char *name;
        double value;
    } all[] = {
        {"iteration", (double)t->state.iteration},
        {"seconds", total},
        {"rollout_s", it->rollout_s},
        {"rollout_wait_s", it->info.wait_s},
        {"score_s", it->score_s},
        {"update_s", it->update_s},
        {"episodes", it->info.episodes},
        {"failed_rewards", it->info.failed},
        {"dropped_groups", it->info.dropped_groups},
        {"tokens", (double)it->info.tokens},
        {"tokens_per_s", (double)it->info.tokens / total},
        {"minibatches", it->stats.minibatches},
        {"skipped_minibatches", it->stats.skipped},
        {"first_ratio_error", it->stats.first_ratio_error},
        {"first_clip_fraction", it->stats.first_clip_fraction},
        {"workers", pool.workers},
        {"workers_lost", (double)pool.workers_lost},
        {"episodes_rebuilt", (double)pool.episodes_rebuilt},
    };
    const char *names[TG_COUNT_OF(all)];
    double values[TG_COUNT_OF(all)];
    for (size_t i = 0; i < TG_COUNT_OF(all); i++) names[i] = all[i].name, values[i] = all[i].value;
    return send_numbers(t, TG_TRACK_TIMING, (int)TG_COUNT_OF(all), names, values, err);
}

static tg_status send_progress(trainer *t, const iteration *it, tg_error *err) {
    int64_t total = t->run->settings->eval.n_iters;
    double seconds = it->rollout_s + it->score_s + it->update_s;
    t->seconds += seconds;
    t->done++;
    tg_track_progress p = {.done = t->state.iteration,
                           .total = total,
                           .reward = summary_value(&it->summary, "rollout_info/ep_rew"),
                           .kl = summary_value(&it->summary, "rollout_info/kl_div_mean"),
                           .kl_coeff = summary_value(&it->summary, "rollout_info/kl_coeff"),
                           .loss = (double)NAN,
                           .tokens_per_s = (double)it->info.tokens / seconds,
                           .seconds_left =
                               t->seconds / (double)t->done * (double)(total - t->state.iteration)};
    tg_operations_progress(t->run->operations, &p);
    return tg_track_send(t->run->track,
                         &(tg_track_event){.kind = TG_TRACK_PROGRESS, .progress = &p}, err);
}

static tg_status report(trainer *t, const iteration *it, tg_error *err) {
    tg_status st = send_numbers(t, TG_TRACK_ROLLOUT, TG_ROLLOUT_SUMMARY_N, it->summary.name,
                                it->summary.value, err);
    if (st == TG_OK)
        st = send_numbers(t, TG_TRACK_TRAINING, it->stats.n, it->stats.name, it->stats.value, err);
    if (st == TG_OK) st = send_timing(t, it, err);
    if (st == TG_OK) st = send_progress(t, it, err);
    double reward = summary_value(&it->summary, "rollout_info/ep_rew");
    t->reward_sum += reward;
    t->reward_n++;
    tg_log_info("train",
                "iteration %" PRId64
                ": reward %.4f, KL %.5f, coefficient %.5g, %d episodes, %.2f s",
                t->state.iteration, reward, summary_value(&it->summary, "rollout_info/kl_div_mean"),
                summary_value(&it->summary, "rollout_info/kl_coeff"), it->info.episodes,
                it->rollout_s + it->score_s + it->update_s);
    t->state.skipped += it->stats.skipped;
    if (it->stats.skipped)
        tg_log_warn("train", "iteration %" PRId64 ": %d updates were not finite and left out",
                    t->state.iteration, it->stats.skipped);
    return st;
}

static tg_status iterate(trainer *t, tg_error *err) {
    iteration it = {0};
    tg_rollout *r = NULL;
    double start = tg_clock_seconds();
    const int64_t wanted = (int64_t)t->passes.plan.n_steps * t->run->n_envs;
    const int rows = (int)TG_MIN(wanted, (int64_t)1 << 30); /* as algorithms plan */
    tg_status st = tg_collect(t->collector, rows, &r, &it.info, err);
    it.rollout_s = tg_clock_seconds() - start;
    if (st == TG_OK) st = learn(t, r, &it, err);
    tg_rollout_destroy(&r);
    if (st != TG_OK) return st;
    t->state.iteration++;
    t->state.evaluated = false;
    t->state.kl_coeff = t->kl.coeff;
    t->state.next_episode = tg_collector_next_episode(t->collector);
    st = report(t, &it, err);
    return st == TG_OK ? tg_artifacts_measure(t->run->run_dir, t->state.sizes, err) : st;
}

/* ---- checkpoints and evaluations ---------------------------------------------------------- */

static tg_status save(trainer *t, tg_error *err) {
    const tg_learner_config *l = &t->run->opts.config->learner;
    /* A stop saves again what was just saved: nothing was learnt since, and its score stays. */
    if (t->reward_n) t->state.score = t->reward_sum / (double)t->reward_n;
    tg_checkpoint_nets nets = nets_of(t);
    tg_status st = tg_checkpoint_save(t->run->run_dir, &t->state, &nets, err);
    t->reward_sum = 0;
    t->reward_n = 0;
    return st == TG_OK ? tg_checkpoint_prune(t->run->run_dir, t->state.iteration,
                                             l->keep_checkpoints, l->keep_best, err)
                       : st;
}

static tg_status evaluate(trainer *t, tg_split split, int64_t epoch, const char *heading,
                          tg_error *err) {
    return tg_evaluate(t->run, t->ac->policy, t->ac->mask_model, split, (double)epoch, heading,
                       err);
}

/* What is due after `iteration` iterations. Epochs count from 0 as in RL4LMs: the evaluation after the first iteration is epoch 0. */
static tg_status evaluate_due(trainer *t, tg_error *err) {
    const tg_train_evaluation *e = &t->run->settings->eval;
    int64_t k = t->state.iteration, epoch = TG_MAX(k - 1, 0);
    bool last = k == e->n_iters, by_interval = k > 0 && k % e->eval_every == 0;
    tg_status st = TG_OK;
    /* RL4LMs evaluates val twice when the last iteration is also one of the interval's. */
    if (by_interval && (!last || t->run->compat)) st = evaluate(t, TG_SPLIT_VAL, epoch, NULL, err);
    if (st == TG_OK && (k == 0 || last)) {
        st = evaluate(t, TG_SPLIT_VAL, epoch, last ? "after training" : "before training", err);
        if (st == TG_OK) st = evaluate(t, TG_SPLIT_TEST, epoch, NULL, err);
    }
    if (st != TG_OK) return st;
    t->state.evaluated = true;
    return tg_artifacts_measure(t->run->run_dir, t->state.sizes, err);
}

static tg_status loop(trainer *t, tg_error *err) {
    const tg_train_evaluation *e = &t->run->settings->eval;
    tg_status st = TG_OK;
    while (st == TG_OK) {
        if (!t->state.evaluated) st = evaluate_due(t, err);
        if (st != TG_OK || t->state.iteration >= e->n_iters) break;
        st = iterate(t, err);
        bool due = t->state.iteration % e->save_every == 0 || t->state.iteration == e->n_iters;
        if (st == TG_OK && due) st = save(t, err);
        if (st == TG_OK && tg_halt_requested(t->run->opts.halt))
            st = tg_fail(err, TG_INTERRUPTED, "stopped");
    }
    return st;
}

tg_status tg_train_on_policy(tg_run *run, tg_error *err) {
    trainer t = {.run = run};
    tg_status st = open_networks(&t, err);
    if (st == TG_OK) st = start_or_resume(&t, err);
    if (st == TG_OK) st = open_collector(&t, err);
    if (st == TG_OK) {
        st = loop(&t, err);
        if (st == TG_INTERRUPTED) {
            tg_status saved = save(&t, err);
            st = saved == TG_OK
                     ? tg_fail(err, TG_INTERRUPTED, "stopped by %s", tg_halt_reason(run->opts.halt))
                     : saved;
        }
    }
    if (st == TG_OK) tg_run_tell_skipped(&t.state, "updates");
    if (st == TG_OK) st = tg_run_save_model(run, t.ac->policy, err);
    if (st == TG_OK)
        st = tg_track_send(run->track, &(tg_track_event){.kind = TG_TRACK_FINISH}, err);
    tg_collector_destroy(&t.collector);
    tg_actor_critic_destroy(&t.ac);
    return st;
}
