/* Encoding and cutting of prompts. Hugging Face cuts the text, never the special tokens around it
 * (T5 keeps its </s> on either side), so those are found once and put back after the cut. */
#include "env-server/env/prompt.h"

#include "common/base/check.h"

#include <string.h>

/* The special tokens are what a probe's encoding has around the probe's own tokens. */
static tg_status find_specials(tg_prompt_encoder *e, const tg_ids *plain, const tg_ids *full,
                               tg_error *err) {
    size_t extra = full->n - plain->n, at = 0;
    while (at <= extra && memcmp(full->data + at, plain->data, plain->n * sizeof *plain->data) != 0)
        at++;
    if (full->n < plain->n || at > extra || extra > TG_PROMPT_SPECIALS)
        return tg_fail(err, TG_UNSUPPORTED,
                       "tokenizer: its special tokens do not stand before and behind the text");
    e->n_before = at, e->n_after = extra - at;
    memcpy(e->before, full->data, e->n_before * sizeof *e->before);
    if (e->n_after) memcpy(e->after, full->data + at + plain->n, e->n_after * sizeof *e->after);
    return TG_OK;
}

tg_status tg_prompt_init(tg_prompt_encoder *e, const tg_tokenizer *tokenizer, size_t max_length,
                         bool keep_end, tg_error *err) {
    *e =
        (tg_prompt_encoder){.tokenizer = tokenizer, .max_length = max_length, .keep_end = keep_end};
    tg_ids plain = {0}, full = {0};
    tg_status st = tg_tokenizer_encode(tokenizer, "0", 1, 0, &plain, err);
    if (st == TG_OK) st = tg_tokenizer_encode(tokenizer, "0", 1, TG_ENCODE_SPECIAL, &full, err);
    if (st == TG_OK && full.n != plain.n) st = find_specials(e, &plain, &full, err);
    tg_ids_fini(&plain);
    tg_ids_fini(&full);
    if (st == TG_OK && e->n_before + e->n_after >= max_length)
        st = tg_fail(err, TG_CONFIG,
                     "env.args.max_prompt_length: %zu leaves no room beside the tokenizer's %zu "
                     "special tokens",
                     max_length, e->n_before + e->n_after);
    return st;
}

static bool push_all(tg_ids *ids, const int32_t *more, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!tg_ids_push(ids, more[i])) return false;
    return true;
}

tg_status tg_prompt_encode(const tg_prompt_encoder *e, const char *text, tg_ids *ids,
                           tg_error *err) {
    ids->n = 0;
    if (!push_all(ids, e->before, e->n_before)) return tg_fail_nomem(err, sizeof e->before);
    tg_status st = tg_tokenizer_encode(e->tokenizer, text, strlen(text), 0, ids, err);
    if (st != TG_OK) return st;
    size_t n = ids->n - e->n_before, room = e->max_length - e->n_before - e->n_after;
    if (n > room) {
        int32_t *first = ids->data + e->n_before;
        if (e->keep_end) memmove(first, first + n - room, room * sizeof *first);
        ids->n = e->n_before + room;
    }
    if (!push_all(ids, e->after, e->n_after)) return tg_fail_nomem(err, sizeof e->after);
    return TG_OK;
}
