/* generation_kwargs: how tokens are chosen. Names, meanings and defaults are those of
 * transformers 4.18 (top_k 50).
 *
 *     tg_gen_settings s;
 *     tg_gen_settings_read(&s, node, "alg.policy.args.generation_kwargs", &arena, err);
 *     tg_gen_settings_supported(&s, path, err);          // before generating: refuses by name what
 * is not built s.eos_id = ...; s.pad_id = ...; */
#ifndef TG_POLICY_GEN_SETTINGS_H
#define TG_POLICY_GEN_SETTINGS_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "common/nn/op/linear.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_gen_settings {
    bool do_sample;
    double temperature, top_p;
    int64_t top_k; /* 0: off */
    double repetition_penalty;
    int64_t no_repeat_ngram_size; /* 0: off */
    int64_t min_length, min_new_tokens;
    int64_t max_length;
    int64_t max_new_tokens; /* INT64_MIN: not given, max_length decides */
    int64_t num_return_sequences;
    /* known, refused by tg_gen_settings_supported unless at their default */
    int64_t num_beams, num_beam_groups, encoder_no_repeat_ngram_size;
    int64_t forced_bos_token_id, forced_eos_token_id;
    double typical_p, min_p, length_penalty, diversity_penalty;
    bool early_stopping, remove_invalid_values;
    const tg_node *bad_words_ids, *exponential_decay_length_penalty, *prefix_allowed_tokens_fn;
    const tg_node *constraints, *force_words_ids, *post_processing_fn;
    /* set by the caller */
    int32_t eos_id, pad_id; /* -1: none */
    /* true: min_length and max_length count the prompt (transformers, causal models). false: new
     * tokens only, which is what RL4LMs's policies make of min_length. */
    bool lengths_count_prompt;
    tg_weight_form weights; /* the copy of the model's matrices to decode with; PLAIN: none */
} tg_gen_settings;

extern const tg_opt tg_gen_options[];

/* node: a map, or NULL for all defaults. eos_id and pad_id become -1. Strings and nodes live in the
 * arena. */
tg_status tg_gen_settings_read(tg_gen_settings *s, const tg_node *node, const char *path,
                               tg_arena *arena, tg_error *err) TG_MUST_CHECK;

/* TG_UNSUPPORTED naming the key whose value this version cannot honour. */
tg_status tg_gen_settings_supported(const tg_gen_settings *s, const char *path,
                                    tg_error *err) TG_MUST_CHECK;

/* Most new tokens a sequence with this prompt may get. */
int64_t tg_gen_max_new(const tg_gen_settings *s, int n_prompt);
/* New tokens before eos is allowed. */
int64_t tg_gen_min_new(const tg_gen_settings *s, int n_prompt);

#endif
