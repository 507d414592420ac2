/* The reward ranked: all samples of a prompt are judged by another reward and then compared with each other. What they get
 * depends on their order or their distance from each other, not on how generous the judge is (TextRL's compare_sample).
 * Samples without a value of the inner reward have none here, and the others are compared without them. */
#include "common/base/alloc.h"
#include "env-server/reward/inner.h"
#include "env-server/reward/rows.h"

#include <math.h>
#include <string.h>

struct options {
    const tg_node *reward;
    const char *mode;
};
static const tg_opt options[] = {
    TG_OPT_NODE(struct options, reward, "The reward function that is compared: {id, args}."),
    TG_OPT_STR_ONE_OF(struct options, mode, "rank", "rank|best|centred|normalised",
                      "rank: places, evenly from -1 (worst) to 1 (best), ties share; best: 1 for "
                      "the best, shared by ties, "
                      "else 0; centred: value less the mean; normalised: that divided by the "
                      "standard deviation."),
    TG_OPT_END};

typedef double place_fn(const double *values, size_t n, size_t i);

struct state {
    tg_reward inner;
    place_fn *place;
};

/* ---- places -------------------------------------------------------------------------------- */

static double by_rank(const double *v, size_t n, size_t i) {
    double below = 0, equal = 0;
    for (size_t k = 0; k < n; k++) below += v[k] < v[i], equal += v[k] == v[i];
    return n > 1 ? (2 * below + equal - 1) / (double)(n - 1) - 1 : 0;
}

static double by_best(const double *v, size_t n, size_t i) {
    double equal = 0;
    for (size_t k = 0; k < n; k++) {
        if (v[k] > v[i]) return 0;
        equal += v[k] == v[i];
    }
    return 1 / equal;
}

static double mean_of(const double *v, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += v[k];
    return sum / (double)n;
}

static double by_distance(const double *v, size_t n, size_t i) {
    return v[i] - mean_of(v, n);
}

/* The same offset as in advantages: groups without any difference get 0. */
static double by_deviation(const double *v, size_t n, size_t i) {
    double mean = mean_of(v, n), sum = 0;
    for (size_t k = 0; k < n; k++) sum += (v[k] - mean) * (v[k] - mean);
    return (v[i] - mean) / (sqrt(sum / (double)n) + 1e-8);
}

/* ---- the reward ---------------------------------------------------------------------------- */

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    double *values = tg_alloc_array(n, sizeof *values);
    if (!values) return tg_fail_nomem(err, n * sizeof *values);
    tg_status st = tg_reward_score(&s->inner, in, n, out, err);
    size_t valid = 0;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (out[i].status != TG_REWARD_OK) continue;
        values[valid++] = out[i].value;
        if (in[i].details)
            tg_reward_details_add(in[i].details, s->inner.name, out[i].value, TG_REWARD_OK);
    }
    for (size_t i = 0, k = 0; i < n && st == TG_OK; i++)
        if (out[i].status == TG_REWARD_OK) out[i].value = s->place(values, valid, k++);
    tg_free(values);
    return st;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    s->place = !strcmp(o->mode, "rank")      ? by_rank
               : !strcmp(o->mode, "best")    ? by_best
               : !strcmp(o->mode, "centred") ? by_distance
                                             : by_deviation;
    if (tg_node_is_null(o->reward))
        return tg_fail(err, TG_CONFIG, "ranked: reward: missing; expected {id, args}");
    tg_status st = tg_reward_open_section(&s->inner, o->reward, "reward", ctx, err);
    if (st == TG_OK && s->inner.traits.ranked)
        st = tg_fail(err, TG_CONFIG, "ranked: reward: '%s' ranks already", s->inner.name);
    if (st == TG_OK && !s->inner.traits.terminal)
        st = tg_fail(err, TG_CONFIG,
                     "ranked: reward: '%s' is given for every token; only finished texts can be "
                     "compared",
                     s->inner.name);
    if (st != TG_OK) tg_reward_close(&s->inner);
    return st;
}

static void close_reward(void *state) {
    tg_reward_close(&((struct state *)state)->inner);
}

static const tg_reward *inner(const void *state, size_t *n) {
    *n = 1;
    return &((const struct state *)state)->inner;
}

static void traits(const void *state, tg_reward_traits *t) {
    *t = ((const struct state *)state)->inner.traits;
    t->ranked = true;
}

const tg_reward_ops tg_reward_ranked = {
    .entry = {.name = "ranked",
              .summary = "The samples of a prompt compared with each other by another reward.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .terminal = true,
    .deterministic = true,
    .open = open_reward,
    .close = close_reward,
    .inner = inner,
    .traits = traits,
    .score = score,
};
