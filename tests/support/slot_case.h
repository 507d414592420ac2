/* An environment with one slot, for tests: increasing numbers, ten prompts "Hello the", the tokenizer of golden/env. */
#ifndef TG_TEST_SLOT_CASE_H
#define TG_TEST_SLOT_CASE_H

#include "env-server/env/slot.h"

enum { SLOT_CASE_EOS = 264 };              /* of golden/env/tokenizer */
extern const int32_t slot_case_numbers[3]; /* " 1", " 2", " 3": one token each */

typedef struct slot_case {
    tg_run_config config;
    tg_env_settings settings;
    tg_env *env;
    tg_slot slot; /* number 3 */
} slot_case;

/* With these sections env.args, datapool and tokenizer; NULL: the default. */
bool slot_case_open(slot_case *f, const char *env_args, const char *datapool,
                    const char *tokenizer);
/* With a whole config; to be closed also when it fails. */
tg_status slot_case_open_yaml(slot_case *f, const char *yaml, tg_error *err);
void slot_case_close(slot_case *f);
tg_reset_result slot_case_reset(slot_case *f, uint64_t episode, uint64_t seed);
tg_step_result slot_case_step(slot_case *f, uint64_t episode, uint32_t at, const int32_t *tokens,
                              size_t n);

#endif
