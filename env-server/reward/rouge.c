/* The rewards rouge and rouge_combined: ROUGE F of the finished text, with an optional shaping function. */
#include "env-server/metric/rouge.h"

#include "env-server/reward/rows.h"
#include "env-server/reward/shaping.h"

struct options {
    const char *rouge_type, *shaping_fn;
    bool use_single_ref;
};
static const tg_opt one_options[] = {
    TG_OPT_ROW(struct options, rouge_type, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0,
               "rouge1|rouge2|rougeL|rougeLsum", "Which ROUGE."),
    TG_OPT_SHAPING(struct options),
    TG_OPT_BOOL(struct options, use_single_ref, "true",
                "Only the first reference counts; else the best one by F."),
    TG_OPT_END};
static const tg_opt combined_options[] = {TG_OPT_SHAPING(struct options), TG_OPT_END};

struct state {
    unsigned types; /* bit t: the mean has type t in it */
    bool use_single_ref, compat;
    tg_reward shaping;
};

static tg_status open_types(struct state *s, unsigned types, bool use_single_ref,
                            const char *shaping_fn, const tg_open_context *ctx, tg_error *err) {
    s->types = types;
    s->use_single_ref = use_single_ref;
    s->compat = ctx->compat;
    return tg_shaping_open(&s->shaping, shaping_fn, ctx, err);
}

static tg_status open_one(void *state, const void *opts, const tg_open_context *ctx,
                          tg_error *err) {
    const struct options *o = opts;
    return open_types(state, 1u << tg_rouge_find(o->rouge_type), o->use_single_ref, o->shaping_fn,
                      ctx, err);
}

static tg_status open_combined(void *state, const void *opts, const tg_open_context *ctx,
                               tg_error *err) {
    return open_types(state, 1u << TG_ROUGE_1 | 1u << TG_ROUGE_2 | 1u << TG_ROUGE_L, true,
                      ((const struct options *)opts)->shaping_fn, ctx, err);
}

static void close_reward(void *state) {
    tg_reward_close(&((struct state *)state)->shaping);
}

static double mean_f(unsigned types, const tg_prf *scores) {
    double sum = 0;
    int n = 0;
    for (int t = 0; t < TG_ROUGE_TYPES; t++)
        if (types >> t & 1) sum += scores[t].f, n++;
    return sum / n;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    tg_rouge *r;
    tg_status st = tg_rouge_create(&r, true, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        tg_prf scores[TG_ROUGE_TYPES] = {{0}};
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        if (!in[i].sample->n_references && (s->use_single_ref || !s->compat)) {
            out[i].status = TG_REWARD_INVALID;
            continue;
        }
        st = tg_rouge_sample(r, in[i].text, in[i].text_len, in[i].sample, s->use_single_ref,
                             s->compat, scores, err);
        out[i].value = mean_f(s->types, scores);
    }
    tg_rouge_destroy(&r);
    return st == TG_OK ? tg_shaping_add(&s->shaping, in, n, out, err) : st;
}

const tg_reward_ops tg_reward_rouge = {
    .entry = {.name = "rouge",
              .summary = "ROUGE F against the first or the best reference.",
              .options = one_options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .terminal = true,
    .deterministic = true,
    .open = open_one,
    .close = close_reward,
    .score = score,
};

const tg_reward_ops tg_reward_rouge_combined = {
    .entry = {.name = "rouge_combined",
              .summary = "Mean of ROUGE-1, ROUGE-2 and ROUGE-L F.",
              .options = combined_options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .terminal = true,
    .deterministic = true,
    .open = open_combined,
    .close = close_reward,
    .score = score,
};
