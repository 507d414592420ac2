/* Who judges: reward workers and brokers that are connected, which of them has the function, what they send. Loop thread. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "env-server/reward/workers_impl.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

static tg_reward_judge *judge_of(tg_reward_workers *j, const tg_session *session) {
    for (tg_reward_judge *k = j->judges; k; k = k->next)
        if (k->session == session) return k;
    return NULL;
}

/* Who says it has the function before who may have it; then fewest calls of ours, then fewest by its own account. One
 * that drains gets nothing. */
tg_reward_judge *tg_reward_workers_choose(tg_reward_workers *j) {
    tg_reward_judge *best = NULL;
    uint64_t best_load = UINT64_MAX;
    for (tg_reward_judge *k = j->judges; k; k = k->next) {
        const tg_heartbeat *beat = tg_session_last_beat(k->session);
        if (!k->has_fn || beat->draining) continue;
        uint64_t load =
            ((uint64_t)!k->sure << 63) + ((uint64_t)k->in_flight << 32) + beat->in_flight;
        if (load < best_load) best = k, best_load = load;
    }
    return best;
}

/* Whom we dialled may be a broker, whose reward workers come and go behind it. */
static void look_for_fn(const tg_reward_workers *j, tg_reward_judge *k, bool dialled) {
    size_t n;
    const tg_reward_fn *f = tg_session_functions(k->session, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(f[i].name, j->fn)) continue;
        k->has_fn = k->sure = true;
        k->deterministic = f[i].deterministic;
        if (j->deterministic && !f[i].deterministic)
            tg_log_warn("reward",
                        "remote: %s does not call itself deterministic, the config does: what it "
                        "said once is taken to be true for ever",
                        j->fn);
    }
    /* An environment worker's rewards can be asked for by name as well; since minor version 1 they are among its functions. What a
     * broker tells of its workers' environment may be this very reward, of ourselves. */
    const tg_env_spec *spec =
        tg_session_minor(k->session) == 0 ? tg_session_spec(k->session) : NULL;
    for (size_t i = 0; spec && i < spec->n_rewards; i++)
        k->sure |= !strcmp(spec->reward_names[i], j->fn);
    k->has_fn = k->sure || dialled;
    if (!k->sure)
        tg_log_warn("reward", "remote: %s has no function '%s'%s",
                    tg_session_peer_software(k->session), j->fn, dialled ? " as yet" : "");
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_reward_workers *j = arg;
    tg_reward_judge *k = tg_alloc(sizeof *k);
    if (!k) {
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    k->session = session;
    look_for_fn(j, k, tg_session_peer_role(session) != TG_ROLE_REWARD);
    k->next = j->judges;
    j->judges = k;
    return TG_CODE_OK;
}

static void on_ready(void *arg, tg_session *session) {
    tg_log_info("reward", "remote: a reward worker joined: %s", tg_session_peer_software(session));
    tg_reward_workers_dispatch(arg);
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_reward_workers *j = arg;
    for (tg_reward_judge **at = &j->judges; *at; at = &(*at)->next) {
        tg_reward_judge *k = *at;
        if (k->session != session) continue;
        *at = k->next;
        tg_free(k);
        break;
    }
    tg_reward_workers_lose(j, tg_session_id(session), reason);
    pthread_mutex_lock(&j->lock);
    bool closing = j->closing;
    pthread_mutex_unlock(&j->lock);
    if (!closing) tg_reward_workers_dispatch(j);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_reward_workers *j = arg;
    tg_reward_judge *k = judge_of(j, session);
    bool answer = head->type == TG_MSG_SCORE_REPLY || head->type == TG_MSG_ERROR;
    if (answer) tg_reward_workers_take_answer(j, k, tg_session_id(session), head, msg);
    if (answer && k && k->in_flight) k->in_flight--; /* also of one that was given up */
    if (!answer)
        tg_session_send_error(session, head, TG_CODE_PROTOCOL,
                              "a caller of rewards does not take %s", tg_msg_name(head->type));
    tg_msg_free(msg);
    tg_reward_workers_dispatch(j);
}

static void on_refused(void *arg, tg_code code, const char *message) {
    (void)arg;
    tg_log_warn("reward", "remote: refused: %s: %s", tg_code_name(code), message);
}

const tg_link_ops tg_reward_workers_link_ops = {.on_open = on_open,
                                                .on_ready = on_ready,
                                                .on_message = on_message,
                                                .on_close = on_close,
                                                .on_refused = on_refused};
