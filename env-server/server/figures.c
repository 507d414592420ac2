/* Counts come from the replies themselves, so that they say what clients were told. */
#include "env-server/server/figures.h"

#include "common/base/clock.h"

#include <stdio.h>

/* Labels are parted by commas, and the last one takes the rest: the outcome stands first. */
static tg_stat *episodes(tg_stats *s, const char *outcome, const char *env_id) {
    char values[160];
    snprintf(values, sizeof values, "%s,%s", outcome, env_id);
    return tg_stats_counter(s, "textgen_env_episodes_total",
                            "Episodes that ended, or were put back from a log.", "outcome,env",
                            values);
}

void tg_figures_init(tg_figures *f, tg_stats *s, const char *env_id) {
    static const char *const phases[TG_SLOT_PHASES] = {"idle", "running", "done", "recovering"};
    f->stats = s;
    tg_net_figures_init(&f->net, s);
    f->steps = tg_stats_counter(s, "textgen_env_steps_total", "Tokens applied.", "env", env_id);
    f->terminated = episodes(s, "terminated", env_id);
    f->truncated = episodes(s, "truncated", env_id);
    f->recovered = episodes(s, "recovered", env_id);
    f->aborted = episodes(s, "aborted", env_id);
    f->replayed =
        tg_stats_counter(s, "textgen_replayed_requests_total",
                         "Steps answered from memory because they were asked again.", NULL, NULL);
    for (int i = 0; i < TG_SLOT_PHASES; i++)
        f->slots[i] = tg_stats_gauge(s, "textgen_env_slots", "Slots, by what their episode does.",
                                     "state", phases[i]);
    f->capacity =
        tg_stats_gauge(s, "textgen_env_slots_limit", "Slots that clients may open.", NULL, NULL);
    f->sessions = tg_stats_gauge(s, "textgen_env_sessions", "Clients or learners.", NULL, NULL);
    f->queue = tg_stats_gauge(s, "textgen_reward_queue_depth", "Calls on the pool of threads.",
                              NULL, NULL);
    f->oldest =
        tg_stats_gauge(s, "textgen_oldest_call_seconds", "Age of the oldest of them.", NULL, NULL);
}

void tg_figures_request(tg_figures *f, tg_msg_type type, uint64_t start_ns) {
    tg_answer_figures_took(&f->net.answers, type, (double)(tg_clock_ns() - start_ns) * 1e-9);
}

void tg_figures_aborted(tg_figures *f) {
    if (f->stats) tg_stat_add(f->aborted, 1);
}

static void count_step(tg_figures *f, const tg_step_result *r) {
    if (r->replayed) {
        tg_stat_add(f->replayed, 1);
        return;
    }
    if (r->n_applied == 0) return;
    tg_stat_add(f->steps, r->n_applied);
    f->n_steps += r->n_applied;
    if (r->terminated || r->truncated) {
        f->n_episodes++;
        tg_stat_add(r->terminated ? f->terminated : f->truncated, 1);
    }
}

static void count_restore(tg_figures *f, const tg_restore_result *r) {
    if (r->code == TG_CODE_OK) tg_stat_add(f->recovered, 1);
    if (r->code == TG_CODE_EPISODE_ABORTED) tg_stat_add(f->aborted, 1);
}

void tg_figures_reply(tg_figures *f, tg_msg_type type, const void *msg) {
    if (!f->stats) return;
    if (type == TG_MSG_STEP_REPLY) {
        const tg_step_reply *reply = msg;
        for (size_t i = 0; i < reply->n; i++) count_step(f, &reply->items[i]);
    } else if (type == TG_MSG_RESTORE_REPLY) {
        const tg_restore_reply *reply = msg;
        for (size_t i = 0; i < reply->n; i++) count_restore(f, &reply->items[i]);
    }
}
