/* The plan asks the modules that will allocate; the figures are theirs. */
#include "learner/train/memory_plan.h"

#include "common/base/check.h"
#include "common/base/stock.h"
#include "common/base/threads.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"
#include "common/nn/perplexity.h"
#include "learner/policy/actor_critic.h"
#include "learner/policy/generate.h"
#include "learner/train/memory_networks.h"
#include "learner/train/passes.h"
#include "learner/train/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVAL_CACHE_BYTES = 512 << 20, FILE_BYTES = 4 << 20, GROWTH_BYTES = 1 << 20 };

static void add(tg_memory_plan *p, const char *what, unsigned phases, const char *fix,
                uint64_t bytes) {
    TG_ASSERT(p->n < (int)TG_COUNT_OF(p->items));
    if (bytes) p->items[p->n++] = (tg_memory_item){what, fix, bytes, phases};
}

/* What rests between the phases that need it: the memory of small blocks stays (TG_STOCK_LARGE). */
static void add_resting(tg_memory_plan *p, const char *what, unsigned phases, const char *fix,
                        uint64_t bytes) {
    add(p, what, bytes < TG_STOCK_LARGE ? TG_PHASE_ALWAYS : phases, fix, bytes);
}

/* The phase that needs most. */
static void add_up(tg_memory_plan *p) {
    for (unsigned phase = 1; phase <= TG_PHASE_EVALUATE; phase <<= 1) {
        uint64_t sum = 0;
        for (int i = 0; i < p->n; i++) sum += p->items[i].phases & phase ? p->items[i].bytes : 0;
        if (sum <= p->total) continue;
        p->total = sum;
        p->peak = phase;
    }
}

/* A line of /proc/self/status that counts in kB. */
static uint64_t status_bytes(const char *key) {
    uint64_t kib = 0;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) kib = strtoull(line + strlen(key), NULL, 10);
    if (f) fclose(f);
    return kib << 10;
}

uint64_t tg_memory_peak(void) {
    return status_bytes("VmHWM:");
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

int tg_eval_slots(const tg_train_settings *s, const tg_arch *arch, int max_prompt, int max_new) {
    int n = (int)TG_MIN(s->eval.eval_batch_size, 1024);
    while (n > 1 && tg_decoder_bytes(arch, tg_generator_caps(arch, n, max_prompt, max_new)) >
                        EVAL_CACHE_BYTES)
        n = (n + 1) / 2;
    return n;
}

static uint64_t generator_bytes(const tg_train_settings *s, const tg_arch *arch,
                                const tg_gen_settings *gen, int slots, int max_prompt,
                                int max_new) {
    tg_decoder_caps caps = tg_generator_caps(arch, slots, max_prompt, max_new);
    bool masked = s->policy && s->policy->maskable;
    return tg_generator_bytes(arch, gen, caps, tg_team_cpus(), masked);
}

static const char *const SMALLER = "a smaller model";

static bool has_perplexity(const tg_train_settings *s, const tg_arch *arch) {
    return s->perplexity.wanted && arch->kind == TG_KIND_CAUSAL;
}

static int perplexity_stride(const tg_train_settings *s, const tg_arch *arch) {
    return (int)TG_MIN(s->perplexity.stride, arch->max_positions);
}

/* Rows of prompts that are decoded from at once, in rollouts; evaluations, of which less is known, count as far as a pass has rows too. */
static void add_workspace(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                          const tg_memory_facts *f, tg_pass_caps caps, unsigned mode) {
    const int64_t prompt = f->prompt ? f->prompt : f->max_prompt, most = TG_DECODER_ROWS;
    const int64_t rows = f->evaluation ? most : TG_MAX(caps.tokens, caps.src);
    const int rollout = s->supervised || f->evaluation ? 0 : (int)TG_MIN(f->n_envs * prompt, most);
    const int evaluation = (int)TG_MIN(TG_MIN(s->eval.eval_batch_size * prompt, most), rows);
    const bool half = s->rollout_gen.weights == TG_WEIGHT_PACKED_BF16;
    /* what the ops work in stays theirs once it was touched */
    size_t bytes =
        tg_pass_workspace(arch, s->train, caps, mode,
                          half ? evaluation : TG_MAX(evaluation, rollout), half ? rollout : 0);
    if (has_perplexity(s, arch))
        bytes = TG_MAX(bytes, tg_perplexity_workspace(arch, s->train, perplexity_stride(s, arch)));
    add(p, "workspace of matrix products and heads", TG_PHASE_ALWAYS, SMALLER, bytes);
}

static void plan_on_policy(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                           const tg_memory_facts *f) {
    int n_envs = f->n_envs, max_len = f->max_prompt + f->max_new;
    bool separate = s->critic == TG_CRITIC_SEPARATE;
    unsigned passes = TG_PHASE_SCORE | TG_PHASE_UPDATE;
    tg_passes algo;
    tg_passes_plan(&algo, s, arch, f);
    const tg_need need = algo.most;
    tg_network_bytes policy = tg_network_bytes_of(s, arch, !separate, &need.update);
    const char *eight = "alg.policy.args.optimizer: {id: adamw_8bit}";
    add(p, "policy: parameters", TG_PHASE_ALWAYS, SMALLER, policy.params);
    if (!s->algo->critic_only) add(p, "policy: optimizer", TG_PHASE_ALWAYS, eight, policy.state);
    add_resting(p, "policy: gradients", TG_PHASE_UPDATE, "alg.policy.args.num_layers_unfrozen",
                policy.grads);
    add(p, "policy: vectors and tangents", TG_PHASE_UPDATE, "alg.policy.args.num_layers_unfrozen",
        policy.workspace);
    if (separate) {
        const char *share = "alg.policy.args.critic: shared";
        tg_network_bytes critic = tg_network_bytes_of(s, arch, true, NULL);
        add(p, "critic: parameters", TG_PHASE_ALWAYS, share, critic.params);
        add(p, "critic: optimizer", TG_PHASE_ALWAYS, share, critic.state);
        /* a critic trained by itself comes after the policy's step, in less than that gave back */
        if (!s->algo->critic_only)
            add_resting(p, "critic: gradients", TG_PHASE_UPDATE, share, critic.grads);
    }
    add_resting(
        p, "reference: parameters",
        s->keep_reference || s->half_reference ? TG_PHASE_ALWAYS : TG_PHASE_SCORE,
        "alg.policy.args.reference: folder",
        tg_stock_bytes(s->half_reference ? tg_model_half_bytes(arch) : tg_model_bytes(arch, 0)));
    if (s->policy && s->policy->maskable)
        add(p, "mask model: parameters", TG_PHASE_ALWAYS, SMALLER,
            tg_stock_bytes(tg_model_bytes(arch, 0)));
    const char *less = "a smaller alg.args.microbatch_tokens, or alg.policy.args.recompute: true";
    add(p, "policy: activations", tg_passes_known(s) ? TG_PHASE_UPDATE : passes, less,
        tg_policy_pass_bytes(s, arch, need.update));
    add(p, "critic: activations", passes, less, tg_critic_pass_bytes(s, arch, need.update));
    add(p, "reference: activations", TG_PHASE_SCORE, less,
        tg_reference_pass_bytes(arch, need.score));
    add(p, "rollout: cache and packed weights", TG_PHASE_GENERATE, "fewer env.n_envs",
        generator_bytes(s, arch, &s->rollout_gen, n_envs, f->max_prompt, f->max_new));
    uint64_t rows = (uint64_t)algo.plan.n_steps * (uint64_t)n_envs;
    add(p, "rollout: buffers", TG_PHASE_ALWAYS, "fewer alg.args.n_steps",
        rows * 80 + (uint64_t)n_envs * (uint64_t)max_len * 24);
    if (s->policy && s->policy->maskable) {
        const uint64_t masks = rows * (uint64_t)tg_mask_words(arch->vocab_size) * sizeof(uint32_t);
        add(p, "rollout: masks", TG_PHASE_ALWAYS, "fewer alg.args.n_steps", masks);
        /* those of single episodes become those of the rollout beside the generator */
        add(p, "rollout: masks of episodes", TG_PHASE_GENERATE, "fewer alg.args.n_steps", masks);
    }
    add_workspace(p, s, arch, f, need.score, TG_PASS_SCORE);
}

int tg_supervised_longest(const tg_arch *arch) {
    enum { LONG_TEXT = 1024 };
    return arch->kind == TG_KIND_SEQ2SEQ ? TG_MIN(arch->max_positions, LONG_TEXT)
                                         : arch->max_positions;
}

tg_pass_caps tg_supervised_caps(const tg_arch *arch, int tokens) {
    return (tg_pass_caps){.tokens = tokens,
                          .seqs = tokens,
                          .actions = tokens,
                          .src = arch->kind == TG_KIND_SEQ2SEQ ? tokens : 0};
}

int tg_supervised_tokens(const tg_train_settings *s, const tg_arch *arch) {
    enum { MOST = 2048, FEW = 512, ACTIVATION_BYTES = 256 << 20 };
    int least = TG_MAX(FEW, tg_supervised_longest(arch)), n = TG_MAX(MOST, least);
    for (; n > least; n = TG_MAX(least, n / 2))
        if (tg_pass_bytes_of(s, arch, tg_supervised_caps(arch, n)) <= ACTIVATION_BYTES) break;
    return n;
}

static void plan_supervised(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                            const tg_memory_facts *f) {
    tg_network_bytes n = tg_network_bytes_of(s, arch, false, NULL);
    tg_pass_caps caps =
        f->supervised ? *f->supervised : tg_supervised_caps(arch, tg_supervised_tokens(s, arch));
    add(p, "parameters", TG_PHASE_ALWAYS, SMALLER, n.params);
    add(p, "optimizer", TG_PHASE_ALWAYS, "alg.training_args.optim: adamw_8bit", n.state);
    add_resting(p, "gradients", TG_PHASE_UPDATE, "alg.num_layers_unfrozen", n.grads);
    add(p, "activations", TG_PHASE_UPDATE, "alg.training_args.gradient_checkpointing: true",
        tg_pass_bytes_of(s, arch, caps));
    add_workspace(p, s, arch, f, caps, tg_pass_mode_of(s));
}

/* The model as it is read. */
static void plan_weights(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                         const tg_memory_facts *f) {
    add(p, "parameters", TG_PHASE_ALWAYS, SMALLER, tg_stock_bytes(tg_model_bytes(arch, 0)));
    add_workspace(p, s, arch, f, (tg_pass_caps){0}, TG_PASS_SCORE);
}

static int positions_of(const tg_arch *arch, const tg_memory_facts *f) {
    return f->positions ? f->positions : arch->max_positions;
}

/* Evaluations may write more than an episode has. What perplexity needs comes behind the generator, in its place. */
static void plan_evaluation(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                            const tg_memory_facts *f) {
    const int room = tg_run_room(arch, positions_of(arch, f), f->max_prompt);
    const int max_new = TG_MAX((int)TG_MIN(tg_gen_max_new(&s->eval_gen, 0), (int64_t)room), 1);
    uint64_t slots = (uint64_t)tg_eval_slots(s, arch, f->max_prompt, max_new);
    if (f->n_evaluated)
        slots = TG_MIN(slots, f->n_evaluated * (uint64_t)TG_MAX(s->eval_gen.num_beams, 1));
    size_t generator = generator_bytes(s, arch, &s->eval_gen, (int)slots, f->max_prompt, max_new);
    size_t windows =
        has_perplexity(s, arch) ? tg_perplexity_bytes(arch, perplexity_stride(s, arch)) : 0;
    add(p, "evaluation: cache and packed weights", TG_PHASE_EVALUATE,
        "a smaller train_evaluation.eval_batch_size", TG_MAX(generator, windows));
}

tg_status tg_memory_plan_make(tg_memory_plan *p, const tg_train_settings *s, const tg_arch *arch,
                              const tg_memory_facts *f, tg_error *err) {
    memset(p, 0, sizeof *p);
    const int max_prompt = f->max_prompt, max_new = f->max_new;
    int longest =
        arch->kind == TG_KIND_SEQ2SEQ ? TG_MAX(max_prompt, max_new) : max_prompt + max_new;
    const int positions = positions_of(arch, f);
    if (longest > positions)
        return tg_fail(
            err, TG_CONFIG,
            "prompts of %d and %d new tokens are longer than the model's %d positions: lower "
            "env.args.max_prompt_length or max_episode_length",
            max_prompt, max_new, positions);
    p->n_params = tg_model_bytes(arch, 0) / sizeof(float);
    if (f->evaluation)
        plan_weights(p, s, arch, f);
    else if (s->supervised)
        plan_supervised(p, s, arch, f);
    else
        plan_on_policy(p, s, arch, f);
    plan_evaluation(p, s, arch, f);
    /* as it is, and what it touches later: code, stacks, small things on the heap */
    add(p, "program", TG_PHASE_ALWAYS, SMALLER, status_bytes("VmRSS:") + GROWTH_BYTES);
    /* a piece of a checkpoint on its way, and one that is read again */
    if (!f->evaluation)
        add(p, "files", TG_PHASE_ALWAYS, SMALLER,
            TG_MIN(p->n_params * sizeof(float), (uint64_t)FILE_BYTES));
    add_up(p);
    p->available = memory_available();
    return TG_OK;
}

static void put_size(tg_buf *out, uint64_t bytes) {
    if (bytes >= 10ull << 30)
        tg_buf_printf(out, "%9.1f GiB", (double)bytes / (1 << 30));
    else
        tg_buf_printf(out, "%9.1f MiB", (double)bytes / (1 << 20));
}

static const char *phase_name(unsigned phases) {
    switch (phases) {
    case TG_PHASE_GENERATE: return "while generating";
    case TG_PHASE_SCORE: return "while scoring";
    case TG_PHASE_UPDATE: return "in the update";
    case TG_PHASE_EVALUATE: return "in evaluations";
    case TG_PHASE_SCORE | TG_PHASE_UPDATE: return "while scoring, in the update";
    default: return "";
    }
}

void tg_memory_plan_print(const tg_memory_plan *p, tg_buf *out) {
    tg_buf_printf(out, "memory plan (a model of %.1f M parameters):\n", (double)p->n_params / 1e6);
    for (int i = 0; i < p->n; i++) {
        const char *when = phase_name(p->items[i].phases);
        tg_buf_printf(out, "  %-38s", p->items[i].what);
        put_size(out, p->items[i].bytes);
        tg_buf_printf(out, "%s%s\n", *when ? "  " : "", when);
    }
    tg_buf_printf(out, "  %-38s", "total at the peak");
    put_size(out, p->total);
    tg_buf_printf(out, "  %s\n  %-38s", phase_name(p->peak), "available now");
    put_size(out, p->available);
    tg_buf_puts(out, "\n");
}

/* Of what is there at the peak. */
static const tg_memory_item *largest(const tg_memory_plan *p) {
    const tg_memory_item *best = NULL;
    for (int i = 0; i < p->n; i++) {
        const tg_memory_item *item = &p->items[i];
        if (item->phases & p->peak && (!best || item->bytes > best->bytes)) best = item;
    }
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
    const tg_memory_item *most = largest(p);
    if (!room || !most || p->total <= room) return TG_OK;
    char need[32], have[32], part[32];
    size_text(need, sizeof need, p->total);
    size_text(have, sizeof have, room);
    size_text(part, sizeof part, most->bytes);
    return tg_fail(
        err, TG_CONFIG,
        "this run needs %s of memory and %s are %s; the largest part is '%s' (%s): try %s", need,
        have, limit ? "allowed by learner.memory_limit" : "available", most->what, part, most->fix);
}
