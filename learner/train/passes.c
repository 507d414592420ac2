#include "learner/train/passes.h"

#include "common/base/check.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/pack.h"
#include "learner/train/memory_networks.h"

bool tg_passes_known(const tg_train_settings *s) {
    return tg_critic_knows(s->critic, s->policy && s->policy->maskable, s->train, &s->rollout_gen);
}

typedef uint64_t bytes_fn(const tg_passes *p, tg_pass_caps caps);

static uint64_t update_bytes(const tg_passes *p, tg_pass_caps caps) {
    const tg_train_settings *s = p->settings;
    return tg_policy_pass_bytes(s, p->arch, caps) + tg_critic_pass_bytes(s, p->arch, caps) +
           tg_network_bytes_of(s, p->arch, s->critic != TG_CRITIC_SEPARATE, &caps).workspace;
}

static uint64_t score_bytes(const tg_passes *p, tg_pass_caps caps) {
    return tg_reference_pass_bytes(p->arch, caps);
}

/* ---- before there is a rollout ---- */

/* Of answers that are all whole. */
static tg_need need_of(const tg_passes *p, const tg_memory_facts *f) {
    tg_need need;
    int64_t rows = TG_MIN((int64_t)p->plan.n_steps * f->n_envs, (int64_t)1 << 30);
    tg_need_even(&need, &p->plan,
                 &(tg_need_lengths){.n_rows = (int)rows,
                                    .prompt = f->prompt ? f->prompt : f->max_prompt,
                                    .answer = f->max_new,
                                    .known = tg_passes_known(p->settings)});
    return need;
}

/* Bytes beyond those of whole answers: little beside what is there anyway. */
static uint64_t room_of(const tg_passes *p, uint64_t whole) {
    enum { PERCENT = 2, PROGRAM_BYTES = 32 << 20 };
    const tg_network_bytes n =
        tg_network_bytes_of(p->settings, p->arch, p->settings->critic != TG_CRITIC_SEPARATE, NULL);
    return (PROGRAM_BYTES + n.params + n.grads + n.state + whole) * PERCENT / 100;
}

static int between(int least, int most, int part, int parts) {
    return least + (int)((int64_t)(TG_MAX(most, least) - least) * part / parts);
}

/* Between passes of whole answers and those of any, as far towards these as there is room. */
static tg_pass_caps with_room(const tg_passes *p, tg_pass_caps whole, bytes_fn *bytes) {
    enum { PARTS = 32 };
    const uint64_t planned = bytes(p, whole);
    const uint64_t most = planned + room_of(p, planned);
    for (int part = PARTS; part > 0; part--) {
        tg_pass_caps caps = whole;
        caps.tokens = between(whole.tokens, p->plan.caps.tokens, part, PARTS);
        caps.src = between(whole.src, p->plan.caps.src, part, PARTS);
        caps.seqs = between(whole.seqs, p->plan.caps.seqs, part, PARTS);
        if (bytes(p, caps) <= most) return caps;
    }
    return whole;
}

void tg_passes_plan(tg_passes *out, const tg_train_settings *s, const tg_arch *arch,
                    const tg_memory_facts *f) {
    const bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    *out = (tg_passes){.settings = s,
                       .arch = arch,
                       .longest = seq2seq ? f->max_new : f->max_prompt + f->max_new,
                       .longest_src = seq2seq ? f->max_prompt : 0,
                       .bounded = f->uneven};
    tg_pass_caps *caps = &out->plan.caps;
    s->algo->plan(s->algo_opts, f->n_envs, f->max_prompt + f->max_new, &out->plan);
    if (seq2seq) *caps = tg_pack_seq2seq_caps(*caps, f->max_prompt, f->max_new);
    caps->masked = s->mask.kind != TG_MASK_NONE;
    caps->actions_only = !s->algo->critic_only; /* a trust region goes through all rows */
    out->most = need_of(out, f);
    if (!f->uneven) return;
    out->most.update = with_room(out, out->most.update, update_bytes);
    out->most.score =
        tg_passes_known(s) ? with_room(out, out->most.score, score_bytes) : out->most.update;
}

/* ---- one iteration ---- */

/* What a rollout needs with passes of so many of PARTS parts of the sizes between one episode and the config's caps. */
enum { PARTS = 256 };
typedef struct search {
    const tg_passes *p;
    const tg_rollout *r;
    const tg_order *order;
    bool scoring; /* alone */
} search;

static tg_status need_at(const search *q, int part, tg_need *need, tg_error *err) {
    tg_algo_plan plan = q->p->plan;
    tg_pass_caps *caps = &plan.caps;
    const int least = TG_MIN(q->p->longest, caps->tokens);
    const int least_src = TG_MIN(q->p->longest_src, caps->src);
    caps->tokens = between(least, caps->tokens, part, PARTS);
    caps->src = between(least_src, caps->src, part, PARTS);
    if (q->scoring) return tg_need_scoring(&need->score, &plan, q->r, err);
    if (q->r->known) return tg_need_update(&need->update, &plan, q->r, q->order, err);
    return tg_need_rollout(need, &plan, q->r, q->order, err);
}

/* Passes that score as they update have to be small enough for both. */
static bool fits(const search *q, const tg_need *need) {
    const tg_passes *p = q->p;
    if (!q->scoring && update_bytes(p, need->update) > update_bytes(p, p->most.update))
        return false;
    return (!q->scoring && q->r->known) ||
           score_bytes(p, need->score) <= score_bytes(p, p->most.score);
}

static tg_status largest(const search *q, tg_need *need, tg_error *err) {
    int below = 0, above = PARTS; /* the first is taken anyway, the last is not */
    tg_status st = need_at(q, PARTS, need, err);
    if (st != TG_OK || fits(q, need)) return st;
    st = need_at(q, 0, need, err);
    while (st == TG_OK && above - below > 1) {
        const int part = (below + above) / 2;
        tg_need tried = *need;
        st = need_at(q, part, &tried, err);
        if (st == TG_OK && fits(q, &tried))
            below = part, *need = tried;
        else
            above = part;
    }
    return st;
}

tg_status tg_passes_fit(tg_need *out, const tg_passes *p, const tg_rollout *r,
                        const tg_order *order, tg_error *err) {
    if (!p->bounded) return tg_need_rollout(out, &p->plan, r, order, err);
    *out = (tg_need){0};
    const search update = {p, r, order, false}, scoring = {p, r, order, true};
    tg_status st = largest(&update, out, err);
    return st == TG_OK && r->known ? largest(&scoring, out, err) : st;
}
