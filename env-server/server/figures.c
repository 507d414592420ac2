/* Counts come from the replies themselves, so that they say what clients were told. */
#include "env-server/server/figures.h"

static tg_stat *episodes(tg_stats *s, const char *outcome) {
    return tg_stats_counter(s, "textgen_env_episodes_total", "Episodes that ended.", "outcome",
                            outcome);
}

void tg_figures_init(tg_figures *f, tg_stats *s, const char *env_id) {
    static const char *const statuses[] = {"none", "ok", "pending", "failed", "timeout", "invalid"};
    f->stats = s;
    tg_net_figures_init(&f->net, s);
    f->steps = tg_stats_counter(s, "textgen_env_steps_total", "Tokens applied.", "env", env_id);
    f->terminated = episodes(s, "terminated");
    f->truncated = episodes(s, "truncated");
    f->replayed =
        tg_stats_counter(s, "textgen_replayed_requests_total",
                         "Steps answered from memory because they were asked again.", NULL, NULL);
    f->slots = tg_stats_gauge(s, "textgen_env_slots", "Slots of clients.", "state", "open");
    f->capacity = tg_stats_gauge(s, "textgen_env_slots", "Slots of clients.", "state", "capacity");
    f->sessions = tg_stats_gauge(s, "textgen_env_sessions", "Clients or learners.", NULL, NULL);
    f->queue = tg_stats_gauge(s, "textgen_reward_queue_depth", "Calls on the pool of threads.",
                              NULL, NULL);
    f->oldest =
        tg_stats_gauge(s, "textgen_oldest_call_seconds", "Age of the oldest of them.", NULL, NULL);
    for (size_t i = TG_REWARD_OK; i <= TG_REWARD_INVALID; i++)
        f->rewards[i] = tg_stats_counter(s, "textgen_reward_results_total", "Rewards of steps.",
                                         "status", statuses[i]);
}

void tg_figures_request(tg_figures *f, tg_msg_type type, double seconds) {
    if (!f->stats || (unsigned)type >= TG_FIGURES_TYPES) return;
    if (!f->durations[type])
        f->durations[type] =
            tg_stats_histogram(f->stats, "textgen_request_duration_seconds",
                               "Time on the loop for one request.", "method", tg_msg_name(type));
    tg_stat_observe(f->durations[type], seconds);
}

static void count_step(tg_figures *f, const tg_step_result *r) {
    if (r->code != TG_CODE_OK) return;
    if (r->replayed) {
        tg_stat_add(f->replayed, 1);
        return;
    }
    tg_stat_add(f->steps, r->n_applied);
    f->n_steps += r->n_applied;
    if (r->terminated || r->truncated) {
        f->n_episodes++;
        tg_stat_add(r->terminated ? f->terminated : f->truncated, 1);
    }
    if (r->reward_status >= TG_REWARD_OK && r->reward_status <= TG_REWARD_INVALID)
        tg_stat_add(f->rewards[r->reward_status], 1);
}

void tg_figures_reply(tg_figures *f, tg_msg_type type, const void *msg) {
    if (!f->stats || type != TG_MSG_STEP_REPLY) return;
    const tg_step_reply *reply = msg;
    for (size_t i = 0; i < reply->n; i++) count_step(f, &reply->items[i]);
}
