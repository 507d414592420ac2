#include "learner/policy/stop.h"

#include "common/text/stop_strings.h"

#include <string.h>

static bool ends_with(const int32_t *tokens, int n, const tg_id_list *stop) {
    return stop->n <= n &&
           !memcmp(tokens + n - stop->n, stop->ids, (size_t)stop->n * sizeof *tokens);
}

tg_gen_end tg_gen_ends(const tg_gen_settings *s, const int32_t *tokens, int n, int n_prompt,
                       int max_new) {
    if (tg_gen_is_eos(s, tokens[n - 1])) return TG_END_EOS;
    for (int i = 0; i < s->n_stops; i++)
        if (ends_with(tokens, n, &s->stops[i])) return TG_END_STOP;
    int from = s->stops_in_result ? n_prompt : 0;
    if (s->stop_text && tg_stop_strings_hit(s->stop_text, tokens + from, n - from))
        return TG_END_STOP;
    return n - n_prompt >= max_new ? TG_END_LENGTH : TG_END_NONE;
}
