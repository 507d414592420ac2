/* All reward functions, and how one is opened and called. A new one is one file and one line here.
 */
#include "env-server/reward/reward.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "env-server/reward/meter.h"
#include "env-server/reward/rows.h"

#include <math.h>
#include <string.h>

static const tg_entry *const built[] = {
    &tg_reward_increasing_numbers.entry,
    &tg_reward_sentences_with_dates.entry,
    &tg_reward_meteor.entry,
    &tg_reward_parent.entry,
    &tg_reward_spider.entry,
    &tg_reward_intent_accuracy.entry,
    &tg_reward_learned.entry,
    &tg_reward_bert_score.entry,
    &tg_reward_bleurt.entry,
    &tg_reward_preference.entry,
    &tg_reward_repeat_penalty.entry,
    &tg_reward_repeat_penalty_batched.entry,
    &tg_reward_concept_cover.entry,
    &tg_reward_rouge.entry,
    &tg_reward_rouge_combined.entry,
    &tg_reward_bleu.entry,
    &tg_reward_sacre_bleu.entry,
    &tg_reward_ter.entry,
    &tg_reward_chrf.entry,
    &tg_reward_rouge_l_max.entry,
    &tg_reward_weighted.entry,
    &tg_reward_dense.entry,
    &tg_reward_per_reference.entry,
    &tg_reward_ranked.entry,
    &tg_reward_plugin.entry,
    &tg_reward_process.entry,
    &tg_reward_http.entry,
    &tg_reward_remote.entry,
    NULL,
};

const tg_registry *tg_reward_registry(void) {
    static const tg_entry planned[] = {{0}}; /* all of RL4LMs's are built */
    static const tg_registry registry = {"reward", built, planned};
    return &registry;
}

tg_status tg_reward_open(tg_reward *r, const tg_reward_ops *ops, const void *options,
                         const tg_open_context *ctx, tg_error *err) {
    void *state;
    memset(r, 0, sizeof *r);
    tg_status st = tg_state_open(&state, ops->state_size, ops->open, options, ctx, err);
    if (st != TG_OK) return st;
    *r = (tg_reward){.ops = ops, .name = ops->entry.name, .weight = 1.0, .state = state};
    r->traits = (tg_reward_traits){.terminal = ops->terminal,
                                   .wants_before = ops->wants_before,
                                   .slow = ops->slow,
                                   .waits = ops->waits,
                                   .deterministic = ops->deterministic};
    if (ops->traits) ops->traits(state, &r->traits);
    return TG_OK;
}

void tg_reward_close(tg_reward *r) {
    if (!r->ops) return;
    if (r->ops->close) r->ops->close(r->state);
    tg_free(r->state);
    memset(r, 0, sizeof *r);
}

static void count(tg_reward_meter *m, uint64_t start_ns, const tg_reward_value *out, size_t n) {
    tg_stat_observe(m->seconds, (double)(tg_clock_ns() - start_ns) * 1e-9);
    for (size_t i = 0; i < n; i++) tg_reward_meter_count(m, out[i].status, 1);
}

tg_status tg_reward_score(const tg_reward *r, const tg_reward_input *in, size_t n,
                          tg_reward_value *out, tg_error *err) {
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_FAILED, (double)NAN};
    if (err) err->msg[0] = 0;
    uint64_t start = r->meter ? tg_clock_ns() : 0;
    tg_status st = r->ops->score(r->state, in, n, out, err);
    for (size_t i = 0; i < n; i++) {
        if (st != TG_OK)
            out[i].status = TG_REWARD_FAILED;
        else if (out[i].status == TG_REWARD_OK && !isfinite(out[i].value))
            out[i].status = TG_REWARD_INVALID;
        if (out[i].status != TG_REWARD_OK) out[i].value = (double)NAN;
    }
    if (r->meter && st != TG_BUSY) count(r->meter, start, out, n);
    return st;
}
