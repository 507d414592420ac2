/* The memory plan of a run, from what its workers say of the data. */
#include "learner/train/run.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "learner/train/memory_plan.h"
#include "proto/codec.h"

/* How long prompts are, by some of those that episodes will begin with. */
static tg_status look_at_prompts(tg_run *run, tg_memory_facts *f, tg_error *err) {
    enum { LOOKED_AT = 64 };
    tg_samples *got = NULL;
    uint32_t n = (uint32_t)TG_MIN(run->spec->n_samples[TG_SPLIT_TRAIN], (uint64_t)LOOKED_AT);
    tg_status st = n ? tg_pool_samples(run->pool, TG_SPLIT_TRAIN, 0, n, &got, err) : TG_OK;
    int64_t sum = 0, first = 0;
    for (size_t i = 0; got && i < got->n; i++) {
        int64_t tokens = TG_MIN((int64_t)got->items[i].n_prompt, (int64_t)run->max_prompt);
        if (i == 0) first = tokens;
        f->uneven |= tokens != first;
        sum += tokens;
    }
    if (got && got->n) f->prompt = (int)TG_MAX(1, sum / (int64_t)got->n);
    tg_msg_free(got);
    return st;
}

/* Samples of the largest split. */
static uint64_t most_evaluated(const tg_run *run) {
    const tg_split_list *splits = &run->opts.evaluation->splits;
    uint64_t most = 0;
    for (int i = 0; i < splits->n; i++) most = TG_MAX(most, run->spec->n_samples[splits->v[i]]);
    return most;
}

tg_status tg_run_plan_memory(tg_run *run, const tg_pass_caps *supervised, tg_error *err) {
    const tg_env_spec *spec = run->spec;
    const tg_gen_settings *gen = &run->rollout_gen;
    run->facts = (tg_memory_facts){
        .n_envs = run->n_envs,
        .max_prompt = run->max_prompt,
        .max_new = run->max_new,
        .positions = run->positions,
        .uneven = gen->stop_text || (gen->n_eos && tg_gen_min_new(gen, 0) < run->max_new),
        .n_evaluated = TG_MAX(spec->n_samples[TG_SPLIT_VAL], spec->n_samples[TG_SPLIT_TEST]),
        .supervised = supervised,
        .evaluation = run->opts.evaluation != NULL};
    if (run->opts.evaluation) run->facts.n_evaluated = most_evaluated(run);
    tg_memory_plan plan = {0};
    tg_status st =
        supervised || run->facts.evaluation ? TG_OK : look_at_prompts(run, &run->facts, err);
    if (st == TG_OK) st = tg_memory_plan_make(&plan, run->settings, &run->arch, &run->facts, err);
    if (st == TG_OK)
        st = tg_memory_plan_check(&plan, run->opts.config->learner.memory_limit_bytes, err);
    tg_buf text = {0};
    run->planned = plan.total;
    if (st == TG_OK) tg_memory_plan_print(&plan, &text);
    if (text.data) tg_log_info("train", "%s", text.data);
    tg_buf_fini(&text);
    if (run->settings->train & TG_MODEL_ROUNDED)
        tg_log_info("train", "matrix products: %s",
                    tg_run_products(run->settings, run->opts.config->learner.backend));
    return st;
}
