/* The rows of the registry, each in its own file or with those of its kind. */
#ifndef TG_ENV_REWARD_ROWS_H
#define TG_ENV_REWARD_ROWS_H

#include "env-server/reward/reward.h"

extern const tg_reward_ops tg_reward_increasing_numbers, tg_reward_sentences_with_dates;

extern const tg_reward_ops tg_reward_parent, tg_reward_meteor, tg_reward_repeat_penalty,
    tg_reward_repeat_penalty_batched, tg_reward_concept_cover, tg_reward_spider,
    tg_reward_intent_accuracy;

extern const tg_reward_ops tg_reward_weighted, tg_reward_dense, tg_reward_per_reference,
    tg_reward_ranked;

extern const tg_reward_ops tg_reward_rouge, tg_reward_rouge_combined, tg_reward_bleu,
    tg_reward_sacre_bleu, tg_reward_ter, tg_reward_chrf, tg_reward_rouge_l_max;

/* Functions outside this program. */
extern const tg_reward_ops tg_reward_plugin, tg_reward_process, tg_reward_http, tg_reward_remote;

extern const tg_reward_ops tg_reward_learned, tg_reward_bert_score, tg_reward_bleurt,
    tg_reward_preference;

#endif
