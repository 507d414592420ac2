/* When a sequence ends by what it says. */
#ifndef TG_POLICY_STOP_H
#define TG_POLICY_STOP_H

#include "learner/policy/gen_settings.h"

typedef enum tg_gen_end { TG_END_NONE, TG_END_EOS, TG_END_STOP, TG_END_LENGTH } tg_gen_end;

/* tokens (n): prompt and new tokens, of which the last was just chosen; max_new of them may be new. */
tg_gen_end tg_gen_ends(const tg_gen_settings *s, const int32_t *tokens, int n, int n_prompt,
                       int max_new);

#endif
