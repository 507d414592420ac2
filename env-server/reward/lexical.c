/* The rewards that are one metric of one finished text: bleu, sacre_bleu, ter, chrf, rouge_l_max. A text
 * without references has no reward. After open a state is read-only; scratch memory lives for one call. */
#include "env-server/metric/bleu.h"
#include "env-server/metric/chrf.h"
#include "env-server/metric/pyrouge.h"
#include "env-server/metric/sacre_bleu.h"
#include "env-server/metric/ter.h"
#include "env-server/reward/rows.h"

static const tg_opt no_options[] = {TG_OPT_END};

/* Sets 0 for a text that is not finished, and says whether there is anything to score. */
static bool to_score(const tg_reward_input *in, tg_reward_value *out) {
    *out = (tg_reward_value){TG_REWARD_OK, 0};
    if (!in->done) return false;
    if (in->sample && in->sample->n_references) return true;
    out->status = TG_REWARD_INVALID;
    return false;
}

/* ---- bleu --------------------------------------------------------------------------------------- */

struct bleu {
    bool compat;
};

static tg_status open_bleu(void *state, const void *opts, const tg_open_context *ctx,
                           tg_error *err) {
    (void)opts;
    (void)err;
    ((struct bleu *)state)->compat = ctx->compat;
    return TG_OK;
}

static tg_status score_bleu(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err) {
    const struct bleu *s = state;
    tg_bleu_counter c = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (!to_score(&in[i], &out[i])) continue;
        st = tg_bleu_words(&c, in[i].text, in[i].text_len, in[i].sample, err);
        if (st != TG_OK || tg_bleu_nmt(&c.stats, &out[i].value)) continue;
        /* An empty text misses everything: 0, the limit of the brevity penalty. RL4LMs's value is the text
         * "n/a", which is no number; so is a reference without words. */
        if (s->compat || !c.stats.shortest) out[i].status = TG_REWARD_INVALID;
    }
    tg_bleu_fini(&c);
    return st;
}

/* ---- sacre_bleu ---------------------------------------------------------------------------------- */

static tg_status open_sacre_bleu(void *state, const void *opts, const tg_open_context *ctx,
                                 tg_error *err) {
    (void)ctx;
    return tg_sacre_bleu_open(state, opts, err);
}

static tg_status score_sacre_bleu(const void *state, const tg_reward_input *in, size_t n,
                                  tg_reward_value *out, tg_error *err) {
    tg_sacre_bleu_scratch scratch = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (!to_score(&in[i], &out[i])) continue;
        st = tg_sacre_bleu_count(state, &scratch, in[i].text, in[i].text_len, in[i].sample, err);
        out[i].value = tg_sacre_bleu_score(state, &scratch.counter.stats);
    }
    tg_sacre_bleu_scratch_fini(&scratch);
    return st;
}

/* ---- ter ----------------------------------------------------------------------------------------- */

struct ter {
    tg_ter_options options;
    bool compat;
};

static tg_status open_ter(void *state, const void *opts, const tg_open_context *ctx,
                          tg_error *err) {
    (void)err;
    *(struct ter *)state = (struct ter){*(const tg_ter_options *)opts, ctx->compat};
    return TG_OK;
}

static tg_status score_ter(const void *state, const tg_reward_input *in, size_t n,
                           tg_reward_value *out, tg_error *err) {
    const struct ter *s = state;
    tg_ter t = {0};
    tg_ter_stats stats = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (!to_score(&in[i], &out[i])) continue;
        st = tg_ter_count(&t, &s->options, in[i].text, in[i].text_len, in[i].sample, &stats, err);
        out[i].value = 1 - tg_ter_score(&stats, s->compat);
    }
    tg_ter_fini(&t);
    return st;
}

/* ---- chrf ---------------------------------------------------------------------------------------- */

static tg_status open_chrf(void *state, const void *opts, const tg_open_context *ctx,
                           tg_error *err) {
    (void)ctx;
    (void)err;
    *(tg_chrf_options *)state = *(const tg_chrf_options *)opts;
    return TG_OK;
}

static tg_status score_chrf(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err) {
    tg_chrf c = {0};
    tg_chrf_stats stats = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (!to_score(&in[i], &out[i])) continue;
        st = tg_chrf_count(&c, state, in[i].text, in[i].text_len, in[i].sample, &stats, err);
        out[i].value = tg_chrf_score(state, &stats) / 100;
    }
    tg_chrf_fini(&c);
    return st;
}

/* ---- rouge_l_max ---------------------------------------------------------------------------------- */

static tg_status open_rouge_l_max(void *state, const void *opts, const tg_open_context *ctx,
                                  tg_error *err) {
    (void)ctx;
    *(tg_pyrouge_options *)state = *(const tg_pyrouge_options *)opts;
    return tg_pyrouge_check(opts, err);
}

static tg_status score_rouge_l_max(const void *state, const tg_reward_input *in, size_t n,
                                   tg_reward_value *out, tg_error *err) {
    tg_pyrouge *p;
    tg_status st = tg_pyrouge_create(&p, state, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (!to_score(&in[i], &out[i])) continue;
        st = tg_pyrouge_best(p, in[i].text, in[i].text_len, in[i].sample, &out[i].value, err);
    }
    tg_pyrouge_destroy(&p);
    return st;
}

/* ---- the rows ------------------------------------------------------------------------------------ */

const tg_reward_ops tg_reward_bleu = {
    .entry = {.name = "bleu",
              .summary = "BLEU-4 of the text against its references.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct bleu),
    .terminal = true,
    .deterministic = true,
    .open = open_bleu,
    .score = score_bleu,
};

const tg_reward_ops tg_reward_sacre_bleu = {
    .entry = {.name = "sacre_bleu",
              .summary = "SacreBLEU of the text, between 0 and 1.",
              .options = tg_sacre_bleu_table,
              .options_size = sizeof(tg_sacre_bleu_options),
              .built = true},
    .state_size = sizeof(tg_sacre_bleu),
    .terminal = true,
    .deterministic = true,
    .open = open_sacre_bleu,
    .score = score_sacre_bleu,
};

const tg_reward_ops tg_reward_ter = {
    .entry = {.name = "ter",
              .summary = "1 - translation edit rate.",
              .options = tg_ter_table,
              .options_size = sizeof(tg_ter_options),
              .built = true},
    .state_size = sizeof(struct ter),
    .terminal = true,
    .deterministic = true,
    .open = open_ter,
    .score = score_ter,
};

const tg_reward_ops tg_reward_chrf = {
    .entry = {.name = "chrf",
              .summary = "chrF, between 0 and 1.",
              .options = tg_chrf_table,
              .options_size = sizeof(tg_chrf_options),
              .built = true},
    .state_size = sizeof(tg_chrf_options),
    .terminal = true,
    .deterministic = true,
    .open = open_chrf,
    .score = score_chrf,
};

const tg_reward_ops tg_reward_rouge_l_max = {
    .entry = {.name = "rouge_l_max",
              .summary = "Best ROUGE-L F over the references, as py-rouge computes it.",
              .options = tg_pyrouge_table,
              .options_size = sizeof(tg_pyrouge_options),
              .built = true},
    .state_size = sizeof(tg_pyrouge_options),
    .terminal = true,
    .deterministic = true,
    .open = open_rouge_l_max,
    .score = score_rouge_l_max,
};
