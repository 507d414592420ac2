/* Rewards around another one: dense gives every token what it changes of the inner value, so that the rewards of an
 * episode sum to the value of the finished text; per_reference scores against one reference at a time. */
#include "common/base/alloc.h"
#include "env-server/reward/inner.h"
#include "env-server/reward/rows.h"

#include <math.h>
#include <string.h>

enum { FEW = 4 };

struct options {
    const tg_node *reward;
    const char *mode;
};
#define INNER TG_OPT_NODE(struct options, reward, "The reward function: {id, args}.")
static const tg_opt dense_options[] = {INNER, TG_OPT_END};
static const tg_opt per_reference_options[] = {
    INNER,
    TG_OPT_STR_ONE_OF(struct options, mode, "max", "max|mean|min|first",
                      "How the values of the references become one."),
    TG_OPT_END};

struct state {
    tg_reward inner;
    char mode; /* of per_reference: its first two letters tell them apart */
};

static tg_status open_inner(struct state *s, const struct options *o, const char *name,
                            const tg_open_context *ctx, tg_error *err) {
    if (tg_node_is_null(o->reward))
        return tg_fail(err, TG_CONFIG, "%s: reward: missing; expected {id, args}", name);
    tg_status st = tg_reward_open_section(&s->inner, o->reward, "reward", ctx, err);
    size_t parts;
    if (st == TG_OK && !s->inner.traits.terminal && !tg_reward_parts(&s->inner, &parts))
        st = tg_fail(err, TG_CONFIG, "%s: reward: '%s' is given for every token already", name,
                     s->inner.name);
    if (st == TG_OK && s->inner.traits.ranked)
        st = tg_fail(err, TG_CONFIG, "%s: reward: '%s' ranks the samples of a prompt together",
                     name, s->inner.name);
    if (st != TG_OK) tg_reward_close(&s->inner);
    return st;
}

static const tg_reward *inner(const void *state, size_t *n) {
    *n = 1;
    return &((const struct state *)state)->inner;
}

static void traits(const void *state, tg_reward_traits *t) {
    const struct state *s = state;
    t->slow = s->inner.traits.slow;
    t->waits = s->inner.traits.waits;
    t->remote = s->inner.traits.remote;
    t->deterministic = s->inner.traits.deterministic;
}

static tg_status open_dense(void *state, const void *opts, const tg_open_context *ctx,
                            tg_error *err) {
    return open_inner(state, opts, "dense", ctx, err);
}

static tg_status open_per_reference(void *state, const void *opts, const tg_open_context *ctx,
                                    tg_error *err) {
    const struct options *o = opts;
    ((struct state *)state)->mode = !strcmp(o->mode, "max")    ? '>'
                                    : !strcmp(o->mode, "mean") ? '+'
                                    : !strcmp(o->mode, "min")  ? '<'
                                                               : '1';
    return open_inner(state, opts, "per_reference", ctx, err);
}

static void close_reward(void *state) {
    tg_reward_close(&((struct state *)state)->inner);
}

/* ---- dense ------------------------------------------------------------------------------------- */

/* A text on its way may have no value yet (BLEU without words): it counts as 0 until it is finished. A judge that failed
 * is another matter. */
static bool no_value_yet(const struct state *s, const tg_reward_value *v) {
    return v->status == TG_REWARD_INVALID && !s->inner.traits.slow;
}

/* The values of each text and of the text before it, in one call. */
static tg_status score_both(const struct state *s, const tg_reward_input *in, size_t n,
                            tg_reward_input *both, tg_reward_value *values, tg_error *err) {
    size_t m = n;
    for (size_t i = 0; i < n; i++) {
        both[i] = in[i];
        both[i].done = true;
        if (!in[i].before) continue;
        both[m] = both[i];
        both[m].details = NULL; /* those of the whole text are told */
        both[m].text = in[i].before, both[m].text_len = in[i].before_len;
        both[m++].n_tokens = in[i].n_tokens - 1;
    }
    if (s->inner.traits.slow) return tg_reward_score(&s->inner, both, m, values, err);
    for (size_t i = 0; i < m; i++) {
        tg_status st = tg_reward_score(&s->inner, &both[i], 1, &values[i], err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static tg_status score_dense(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *err) {
    const struct state *s = state;
    tg_reward_input few_inputs[2 * FEW];
    tg_reward_value few_values[2 * FEW];
    bool few = n <= FEW; /* one token at a time allocates nothing */
    tg_reward_input *both = few ? few_inputs : tg_alloc_array(2 * n, sizeof *both);
    tg_reward_value *values = few ? few_values : tg_alloc_array(2 * n, sizeof *values);
    tg_status st = both && values ? score_both(s, in, n, both, values, err)
                                  : tg_fail_nomem(err, 2 * n * sizeof *both);
    for (size_t i = 0, m = n; i < n && st == TG_OK; i++) {
        tg_reward_value last = {TG_REWARD_OK, 0};
        out[i] = values[i];
        if (in[i].before) last = values[m++];
        if (no_value_yet(s, &last)) last = (tg_reward_value){TG_REWARD_OK, 0};
        if (no_value_yet(s, &out[i]) && !in[i].done) out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (out[i].status == TG_REWARD_OK) out[i].status = last.status;
        if (out[i].status == TG_REWARD_OK) out[i].value -= last.value;
    }
    if (!few) {
        tg_free(both);
        tg_free(values);
    }
    return st;
}

/* ---- per_reference ----------------------------------------------------------------------------- */

static void join(char mode, size_t k, const tg_reward_value *one, tg_reward_value *all) {
    if (all->status != TG_REWARD_OK) return;
    if (k == 0 || one->status != TG_REWARD_OK)
        *all = *one;
    else if (mode == '+')
        all->value += one->value;
    else if (mode == '>' ? one->value > all->value : one->value < all->value)
        all->value = one->value;
}

static tg_status score_per_reference(const void *state, const tg_reward_input *in, size_t n,
                                     tg_reward_value *out, tg_error *err) {
    const struct state *s = state;
    for (size_t i = 0; i < n; i++) {
        size_t refs = in[i].sample->n_references;
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        if (!refs) out[i].status = TG_REWARD_INVALID;
        if (s->mode == '1' && refs > 1) refs = 1;
        for (size_t k = 0; k < refs; k++) {
            tg_sample sample = *in[i].sample;
            tg_reward_input one = in[i];
            tg_reward_value value;
            sample.references += k, sample.n_references = 1;
            one.sample = &sample;
            tg_status st = tg_reward_score(&s->inner, &one, 1, &value, err);
            if (st != TG_OK) return st;
            join(s->mode, k, &value, &out[i]);
        }
        if (s->mode == '+' && refs && out[i].status == TG_REWARD_OK) out[i].value /= (double)refs;
    }
    return TG_OK;
}

const tg_reward_ops tg_reward_dense = {
    .entry = {.name = "dense",
              .summary = "Another reward spread over the tokens: what each one changes of it.",
              .options = dense_options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .wants_before = true,
    .deterministic = true,
    .open = open_dense,
    .close = close_reward,
    .traits = traits,
    .inner = inner,
    .score = score_dense,
};

const tg_reward_ops tg_reward_per_reference = {
    .entry = {.name = "per_reference",
              .summary =
                  "Another reward against one reference at a time: best, mean, least, first.",
              .options = per_reference_options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .terminal = true,
    .deterministic = true,
    .open = open_per_reference,
    .close = close_reward,
    .traits = traits,
    .inner = inner,
    .score = score_per_reference,
};
