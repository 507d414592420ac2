/* RL4LMs's synthetic task "generate sentences with dates". */
#include "env-server/reward/dates.h"

#include "env-server/reward/pytext.h"
#include "env-server/reward/rows.h"

/* The pattern has one width, ten characters, so a match ends where the last ten characters fit it:
 * bit i of `open` says that the last i + 1 characters fit the first i + 1 places. */
bool tg_date_in_text(const char *text, size_t len) {
    static const unsigned dash_places = 1u << 4 | 1u << 7, last_place = 1u << 9;
    static const unsigned digit_places = 0x3FFu & ~(1u << 4 | 1u << 7);
    unsigned open = 0;
    size_t n;
    for (size_t at = 0; at < len; at += n) {
        uint32_t c = tg_py_char(text + at, len - at, &n);
        unsigned places = c == '-' ? dash_places : tg_py_decimal(c) >= 0 ? digit_places : 0;
        open = (open << 1 | 1u) & places;
        if (open & last_place) return true;
    }
    return false;
}

static const tg_opt options[] = {TG_OPT_END};

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    (void)state;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        double v = in[i].done && tg_date_in_text(in[i].text, in[i].text_len);
        out[i] = (tg_reward_value){TG_REWARD_OK, v};
    }
    return TG_OK;
}

const tg_reward_ops tg_reward_sentences_with_dates = {
    .entry = {.name = "sentences_with_dates",
              .summary = "1 when the text holds a date such as 2026-11-16, else 0.",
              .options = options,
              .built = true},
    .terminal = true,
    .deterministic = true,
    .score = score,
};
