/* RL4LMs's synthetic task "generate increasing numbers". */
#include "env-server/reward/increasing_numbers.h"

#include "env-server/reward/pytext.h"
#include "env-server/reward/rows.h"

#include <stdbool.h>

tg_status tg_increasing_numbers(const char *text, size_t len, int64_t min_tokens, double *out,
                                tg_error *err) {
    size_t words = 0, word_len, run = 0;
    const char *word;
    double previous = 0, value = 0;
    bool broken = false, is_number;
    for (tg_py_walk walk = tg_py_words(text, len); tg_py_next(&walk, &word, &word_len);) {
        words++;
        if (broken) continue;
        tg_status st = tg_py_float(word, word_len, &is_number, &value, err);
        if (st != TG_OK) return st;
        if (!is_number) continue;
        /* A NaN is not larger than anything, nor anything larger than it. */
        if (run == 0 || value > previous)
            run++, previous = value;
        else
            broken = true;
    }
    double half = (double)min_tokens / 2, n = (double)words;
    *out = run ? (double)run / (half > n ? half : n) : 0;
    return TG_OK;
}

struct options {
    int64_t min_tokens;
};
static const tg_opt options[] = {
    TG_OPT_ROW(struct options, min_tokens, TG_T_INT, TG_OPT_REQUIRED, NULL, 0, 1e9, NULL,
               "Texts of fewer than half as many words are scored as if they had that many."),
    TG_OPT_END};

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)ctx;
    (void)err;
    *(struct options *)state = *(const struct options *)opts;
    return TG_OK;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct options *o = state;
    for (size_t i = 0; i < n; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        tg_status st =
            tg_increasing_numbers(in[i].text, in[i].text_len, o->min_tokens, &out[i].value, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

const tg_reward_ops tg_reward_increasing_numbers = {
    .entry = {.name = "increasing_numbers",
              .summary = "Share of the text that is a run of increasing numbers.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct options),
    .terminal = true,
    .deterministic = true,
    .open = open_reward,
    .score = score,
};
