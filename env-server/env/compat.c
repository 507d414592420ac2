/* RL4LMs knows the padded vocabularies of T5 and mT5 by the tokenizer's name, and its batched rewards by their class. */
#include "env-server/env/compat.h"

#include <string.h>

int64_t tg_compat_actions(const char *model_name) {
    if (strstr(model_name, "mt5")) return 250112;
    return strstr(model_name, "t5") ? 32128 : 0;
}

bool tg_compat_batched(const char *reward_name) {
    static const char *const names[] = {"learned_reward", "spider", "intent_accuracy",
                                        "common_gen_repeat_penalty_batched",
                                        "common_gen_preference_model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(reward_name, names[i])) return true;
    return false;
}
