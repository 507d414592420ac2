/* The plan asks the modules that will allocate; the figures are theirs. */
#include "learner/train/memory_plan.h"

#include "common/base/check.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVAL_CACHE_BYTES = 512 << 20 };

static void add(tg_memory_plan *p, const char *what, const char *fix, uint64_t bytes) {
    TG_ASSERT(p->n < (int)TG_COUNT_OF(p->items));
    if (!bytes) return;
    p->items[p->n++] = (tg_memory_item){what, fix, bytes};
    p->total += bytes;
}

/* MemAvailable, or what the container has left if that is less. */
static uint64_t memory_available(void) {
    uint64_t bytes = 0, limit = 0, used = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        uint64_t kib;
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) bytes = kib << 10;
    }
    if (f) fclose(f);
    bool capped =
        (f = fopen("/sys/fs/cgroup/memory.max", "r")) && fscanf(f, "%" SCNu64, &limit) == 1;
    if (f) fclose(f);
    f = capped ? fopen("/sys/fs/cgroup/memory.current", "r") : NULL;
    if (f && fscanf(f, "%" SCNu64, &used) == 1 && limit > used && limit - used < bytes)
        bytes = limit - used;
    if (f) fclose(f);
    return bytes;
}

int tg_eval_slots(const tg_train_settings *s, const tg_arch *arch, int max_len) {
    int n = (int)TG_MIN(s->eval.eval_batch_size, 1024);
    while (n > 1 &&
           tg_decoder_bytes(arch, (tg_decoder_caps){.slots = n, .len = max_len}) > EVAL_CACHE_BYTES)
        n = (n + 1) / 2;
    return n;
}

int tg_supervised_tokens(const tg_arch *arch) {
    return TG_MAX(2048, arch->max_positions);
}

static uint64_t moments(const tg_optim_opts *opts, const tg_arch *arch) {
    tg_params params;
    unsigned head = arch->value_head ? TG_MODEL_VALUE_HEAD : 0;
    if (tg_model_params(&params, arch, TG_MODEL_TRAINABLE | head, NULL) != TG_OK) return 0;
    uint64_t bytes = tg_optim_bytes(opts, &params);
    tg_params_fini(&params);
    return bytes;
}

static void plan_on_policy(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                           int n_envs, int max_len) {
    bool separate = s->critic == TG_CRITIC_SEPARATE;
    tg_arch with_head = *arch;
    with_head.value_head = true;
    const tg_arch *policy = separate ? arch : &with_head;
    tg_algo_plan algo;
    s->algo->plan(s->algo_opts, n_envs, max_len, &algo);
    const char *smaller = "a smaller model";
    uint64_t policy_params = tg_model_bytes(policy, 0),
             value_params = tg_model_bytes(&with_head, 0);
    add(p, "policy: parameters", smaller, policy_params);
    add(p, "policy: gradients", smaller,
        tg_model_bytes(policy, TG_MODEL_TRAINABLE) - policy_params);
    add(p, "policy: optimizer", smaller, moments(&s->optim, policy));
    if (separate) {
        const char *share = "alg.policy.args.critic: shared";
        add(p, "critic: parameters", share, value_params);
        add(p, "critic: gradients", share,
            tg_model_bytes(&with_head, TG_MODEL_TRAINABLE) - value_params);
        add(p, "critic: optimizer", share, moments(&s->optim, &with_head));
    }
    add(p, "reference: parameters", smaller, tg_model_bytes(arch, 0));
    const char *batch = "a smaller alg.args.batch_size or microbatch_tokens";
    add(p, "policy: activations", batch,
        tg_pass_bytes(policy, TG_MODEL_TRAINABLE, algo.caps, TG_PASS_TRAIN));
    if (separate)
        add(p, "critic: activations", batch,
            tg_pass_bytes(&with_head, TG_MODEL_TRAINABLE, algo.caps, TG_PASS_TRAIN));
    add(p, "reference: activations", batch, tg_pass_bytes(arch, 0, algo.caps, TG_PASS_SCORE));
    add(p, "rollout: key/value cache", "fewer env.n_envs",
        tg_decoder_bytes(arch, (tg_decoder_caps){.slots = n_envs, .len = max_len}));
    uint64_t rows = (uint64_t)algo.n_steps * (uint64_t)n_envs;
    add(p, "rollout: buffers", "fewer alg.args.n_steps",
        rows * 80 + (uint64_t)n_envs * (uint64_t)max_len * 24);
}

static void plan_supervised(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch) {
    const char *smaller = "a smaller model";
    uint64_t params = tg_model_bytes(arch, 0);
    int tokens = tg_supervised_tokens(arch);
    add(p, "parameters", smaller, params);
    add(p, "gradients", smaller, tg_model_bytes(arch, TG_MODEL_TRAINABLE) - params);
    add(p, "optimizer", smaller, moments(&s->optim, arch));
    add(p, "activations", smaller,
        tg_pass_bytes(arch, TG_MODEL_TRAINABLE,
                      (tg_pass_caps){.tokens = tokens, .seqs = tokens, .actions = tokens},
                      TG_PASS_TRAIN));
}

tg_status tg_memory_plan_make(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                              int n_envs, int max_prompt, int max_new, tg_error *err) {
    memset(p, 0, sizeof *p);
    int max_len = max_prompt + max_new;
    if (max_len > arch->max_positions)
        return tg_fail(
            err, TG_CONFIG,
            "prompts of %d and %d new tokens are longer than the model's %d positions: lower "
            "env.args.max_prompt_length or max_episode_length",
            max_prompt, max_new, arch->max_positions);
    p->n_params = tg_model_bytes(arch, 0) / sizeof(float);
    if (s->supervised)
        plan_supervised(p, s, arch);
    else
        plan_on_policy(p, s, arch, n_envs, max_len);
    tg_arch widest = *arch;
    widest.value_head = !s->supervised;
    add(p, "checkpoint: copy of a network", "a smaller model", tg_model_bytes(&widest, 0));
    add(p, "evaluation: key/value cache", "a smaller train_evaluation.eval_batch_size",
        tg_decoder_bytes(
            arch, (tg_decoder_caps){.slots = tg_eval_slots(s, arch, max_len), .len = max_len}));
    p->available = memory_available();
    return TG_OK;
}

static void put_size(tg_buf *out, uint64_t bytes) {
    if (bytes >= 10ull << 30)
        tg_buf_printf(out, "%9.1f GiB", (double)bytes / (1 << 30));
    else
        tg_buf_printf(out, "%9.1f MiB", (double)bytes / (1 << 20));
}

void tg_memory_plan_print(const tg_memory_plan *p, tg_buf *out) {
    tg_buf_printf(out, "memory plan (a model of %.1f M parameters):\n", (double)p->n_params / 1e6);
    for (int i = 0; i < p->n; i++) {
        tg_buf_printf(out, "  %-30s", p->items[i].what);
        put_size(out, p->items[i].bytes);
        tg_buf_puts(out, "\n");
    }
    tg_buf_printf(out, "  %-30s", "total");
    put_size(out, p->total);
    tg_buf_printf(out, "\n  %-30s", "available now");
    put_size(out, p->available);
    tg_buf_puts(out, "\n");
}

static const tg_memory_item *largest(const tg_memory_plan *p) {
    const tg_memory_item *best = &p->items[0];
    for (int i = 1; i < p->n; i++)
        if (p->items[i].bytes > best->bytes) best = &p->items[i];
    return best;
}

static void size_text(char *out, size_t size, uint64_t bytes) {
    if (bytes >= 1ull << 30)
        snprintf(out, size, "%.1f GiB", (double)bytes / (1 << 30));
    else
        snprintf(out, size, "%.1f MiB", (double)bytes / (1 << 20));
}

tg_status tg_memory_plan_check(const tg_memory_plan *p, uint64_t limit, tg_error *err) {
    uint64_t room = limit ? limit : p->available;
    if (!room || p->total <= room) return TG_OK;
    const tg_memory_item *most = largest(p);
    char need[32], have[32], part[32];
    size_text(need, sizeof need, p->total);
    size_text(have, sizeof have, room);
    size_text(part, sizeof part, most->bytes);
    return tg_fail(
        err, TG_CONFIG,
        "this run needs %s of memory and %s are %s; the largest part is '%s' (%s): try %s", need,
        have, limit ? "allowed by learner.memory_limit" : "available", most->what, part, most->fix);
}
