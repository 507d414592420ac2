/* The rollout half of a replay: episodes and buffer as recorded, then every number that follows
 * from the initial weights. */
#include "tests/support/replay.h"

#include <math.h>
#include <string.h>

static double worst_f(const float *ours, const double *theirs, int n) {
    double worst = 0;
    for (int i = 0; i < n; i++) {
        double d = fabs((double)ours[i] - theirs[i]);
        if (!(d <= worst)) worst = d; /* a NaN stays */
    }
    return worst;
}

/* ---- what the environment did: exact ---- */

static const json_t *episode_at(const tg_recording *rec, int number) {
    const json_t *batches = json_object_get(json_object_get(rec->root, "rollout"), "batches"),
                 *batch;
    size_t b;
    json_array_foreach(batches, b, batch) {
        const json_t *episodes = json_object_get(batch, "episodes");
        if ((size_t)number < json_array_size(episodes))
            return json_array_get(episodes, (size_t)number);
        number -= (int)json_array_size(episodes);
    }
    return NULL;
}

/* Prompts whose tokens are not those of their sample, cut to max_prompt_length on the configured
 * side. */
static int wrong_prompts(const tg_recording *rec) {
    const json_t *config = json_object_get(json_object_get(rec->root, "config"), "env");
    const json_t *args = json_object_get(config, "args"),
                 *samples = json_object_get(rec->root, "samples"), *sample;
    const char *side = json_string_value(json_object_get(args, "prompt_truncation_side"));
    size_t limit = (size_t)json_integer_value(json_object_get(args, "max_prompt_length")), s;
    int wrong = 0;
    for (int i = 0; i < rec->rollout->n_episodes; i++) {
        const tg_episode *ep = &rec->rollout->episodes[i];
        const char *id = json_string_value(json_object_get(episode_at(rec, i), "sample_id"));
        const json_t *ids = NULL;
        json_array_foreach(samples, s, sample) {
            const char *name = json_string_value(json_object_get(sample, "id"));
            if (id && name && !strcmp(id, name)) ids = json_object_get(sample, "token_ids");
        }
        size_t n = json_array_size(ids), from = 0;
        if (n > limit) {
            if (!side || strcmp(side, "right") != 0) from = n - limit;
            n = limit;
        }
        bool same = n == (size_t)ep->n_prompt;
        for (size_t k = 0; same && k < n; k++)
            same = json_integer_value(json_array_get(ids, from + k)) == ep->tokens[k];
        wrong += !same;
    }
    return wrong;
}

/* Token k of what an observation shows: the prompt, a seq2seq model's start token, the actions so far. */
static int32_t shown(const tg_rollout *r, const tg_episode *ep, size_t k) {
    if (r->start_id < 0 || k < (size_t)ep->n_prompt) return ep->tokens[k];
    return k == (size_t)ep->n_prompt ? r->start_id : ep->tokens[k - 1];
}

/* Rows whose action, start flag or observation is not what the episodes give. */
static int wrong_rows(const tg_recording *rec) {
    const tg_rollout *r = rec->rollout;
    const json_t *buffer = json_object_get(rec->root, "buffer"),
                 *obs = json_object_get(buffer, "observations");
    int wrong = 0;
    for (int i = 0; i < r->n_rows; i++) {
        const tg_episode *ep = &r->episodes[r->row_episode[i]];
        size_t at = (size_t)i, step = (size_t)(i - ep->first_row);
        size_t seen = (size_t)ep->n_prompt + step + (r->start_id >= 0);
        const json_t *ids = json_array_get(json_object_get(obs, "input_encoded_pt"), at);
        const json_t *mask = json_array_get(json_object_get(obs, "input_attention_mask_pt"), at);
        size_t width = json_array_size(ids);
        bool ok = width >= seen && json_array_size(mask) == width;
        ok = ok && json_integer_value(json_array_get(json_object_get(buffer, "actions"), at)) ==
                       ep->tokens[(size_t)ep->n_prompt + step];
        ok = ok && tg_json_f64(json_array_get(json_object_get(buffer, "episode_starts"), at), -1) ==
                       r->row_start[i];
        for (size_t k = 0; ok && k < width; k++) {
            bool real = k >= width - seen;
            ok = (json_integer_value(json_array_get(mask, k)) != 0) == real;
            if (ok && real)
                ok = json_integer_value(json_array_get(ids, k)) == shown(r, ep, k - (width - seen));
        }
        wrong += !ok;
    }
    return wrong;
}

/* ---- the task reward, when its rule is the one known ---- */

static const char known_rule[] = "task reward of a step = 0.5*(number of letters 'e' in the "
                                 "decoded generated text after the step, minus the same "
                                 "before the step) + 0.05*((action_id mod 7) - 3); and on the step "
                                 "that ends the episode additionally 0.2*(number of "
                                 "distinct token ids generated in the episode";

static int letters_e(const json_t *step) {
    const char *text = json_string_value(json_object_get(step, "text"));
    int n = 0;
    for (; text && *text; text++) n += *text == 'e';
    return n;
}

static int distinct(const int32_t *tokens, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < i && tokens[k] != tokens[i]) k++;
        count += k == i;
    }
    return count;
}

static double task_reward_difference(const tg_recording *rec) {
    const tg_rollout *r = rec->rollout;
    double worst = 0;
    for (int e = 0; e < r->n_episodes; e++) {
        const tg_episode *ep = &r->episodes[e];
        const json_t *steps = json_object_get(episode_at(rec, e), "steps");
        int before = 0;
        for (int k = 0; k < ep->n_actions; k++) {
            const int32_t *actions = ep->tokens + ep->n_prompt;
            int after = letters_e(json_array_get(steps, (size_t)k));
            double want = 0.5 * (after - before) + 0.05 * (actions[k] % 7 - 3);
            if (k == ep->n_actions - 1) want += 0.2 * distinct(actions, ep->n_actions);
            double d = fabs(want - r->task_reward[ep->first_action + k]);
            if (!(d <= worst)) worst = d;
            before = after;
        }
    }
    return worst;
}

/* ---- what the learner computed ---- */

static void compare_summary(const tg_recording *rec, tg_replay_table *t) {
    const json_t *info = json_object_get(json_object_get(rec->root, "rollout"), "info"), *v;
    tg_rollout_summary s;
    tg_rollout_summarise(rec->rollout, rec->kl.coeff, &s);
    double worst = 0;
    for (int i = 0; i < TG_ROLLOUT_SUMMARY_N; i++) {
        if (!(v = json_object_get(info, s.name[i]))) continue;
        double d = fabs(s.value[i] - tg_json_f64(v, (double)NAN)) / fmax(1, fabs(s.value[i]));
        if (!(d <= worst)) worst = d;
    }
    tg_replay_row(t, "rollout info", worst, 1e-5);
}

static double reward_difference(const tg_recording *rec, const double *theirs, bool with_task) {
    double worst = 0;
    for (int i = 0; i < rec->rollout->n_actions; i++) {
        double ours = rec->rollout->kl_reward[i] + (with_task ? rec->rollout->task_reward[i] : 0);
        double d = fabs(ours - theirs[i]);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}

static double kl_difference(const tg_recording *rec) {
    double worst = 0;
    for (int i = 0; i < rec->rollout->n_actions; i++) {
        double d = fabs((double)rec->rollout->logp[i] - (double)rec->rollout->ref_logp[i] -
                        rec->kl_div[i]);
        if (!(d <= worst)) worst = d;
    }
    return worst;
}

static tg_status compare_returns(tg_recording *rec, tg_replay_table *t, tg_error *err) {
    tg_rollout *r = rec->rollout;
    double mean_kl = tg_rollout_kl(r, rec->kl.coeff);
    tg_replay_row(t, "kl_div", kl_difference(rec), 1e-5);
    tg_replay_row(t, "kl reward", reward_difference(rec, rec->kl_reward, false), 1e-5);
    tg_replay_row(t, "total reward", reward_difference(rec, rec->total_reward, true), 1e-5);
    compare_summary(rec, t);
    const json_t *after = tg_recording_at(rec, "rollout.kl_coeff_after", err);
    const json_t *last = tg_recording_at(rec, "rollout.last_values", err);
    const json_t *done = tg_recording_at(rec, "rollout.last_dones", err);
    if (!after || !last || !done) return err->status;
    tg_kl_controller kl = rec->kl;
    tg_kl_controller_step(&kl, mean_kl);
    tg_replay_row(t, "KL coefficient after", fabs(kl.coeff - json_number_value(after)), 1e-6);
    tg_rollout_finish(r, &(tg_returns_opts){rec->gamma, rec->gae_lambda, rec->norm_reward});
    if (json_is_array(last)) last = json_array_get(last, 0);
    if (json_is_array(last)) last = json_array_get(last, 0);
    if (json_is_array(done)) done = json_array_get(done, 0);
    tg_replay_row(t, "last value", fabs((double)r->last_value - tg_json_f64(last, (double)NAN)),
                  1e-5);
    tg_replay_row(t, "last done", r->last_done != (tg_json_f64(done, 0) != 0), 0);
    tg_replay_row(t, "buffer rewards", worst_f(r->row_reward, rec->row_reward, r->n_rows), 1e-5);
    tg_replay_row(t, "buffer log-probs", worst_f(r->row_logp, rec->row_logp, r->n_rows), 1e-5);
    tg_replay_row(t, "buffer values", worst_f(r->row_value, rec->row_value, r->n_rows), 1e-5);
    tg_replay_row(t, "advantages", worst_f(r->adv, rec->row_adv, r->n_rows), 1e-5);
    tg_replay_row(t, "returns", worst_f(r->ret, rec->row_ret, r->n_rows), 1e-5);
    return TG_OK;
}

tg_status tg_replay_rollout(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                            tg_error *err) {
    tg_rollout *r = rec->rollout;
    tg_replay_row(t, "prompts (wrong)", wrong_prompts(rec), 0);
    tg_replay_row(t, "buffer rows (wrong)", wrong_rows(rec), 0);
    const char *rule = json_string_value(json_object_get(rec->root, "reward_rule"));
    if (rule && !strncmp(rule, known_rule, sizeof known_rule - 1))
        tg_replay_row(t, "task reward", task_reward_difference(rec), 1e-9);
    else
        tg_replay_note(t, "task reward", "taken as recorded: another rule");
    tg_status st = tg_actor_critic_score(ac, r, err);
    if (st != TG_OK) return st;
    tg_replay_row(t, "log-probs", worst_f(r->logp, rec->logp, r->n_actions), 1e-5);
    tg_replay_row(t, "reference log-probs", worst_f(r->ref_logp, rec->ref_logp, r->n_actions),
                  1e-5);
    /* masks are recorded for the rows of the buffer only */
    tg_replay_row(t, "entropies",
                  worst_f(r->entropy, rec->entropy, r->masks ? r->n_rows : r->n_actions), 1e-5);
    tg_replay_row(t, "values", worst_f(r->value, rec->value, r->n_actions), 1e-5);
    return compare_returns(rec, t, err);
}
