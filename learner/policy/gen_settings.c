#include "learner/policy/gen_settings.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

#define S tg_gen_settings
const tg_opt tg_gen_options[] = {
    TG_OPT_BOOL(S, do_sample, "false",
                "Sample from the distribution; false takes the most probable token."),
    TG_OPT_FLOAT(S, temperature, "1.0", 1e-6, 1e6, "Logits are divided by this before sampling."),
    TG_OPT_INT(S, top_k, "50", 0, 1e9, "Sample only from the k most probable tokens; 0 is off."),
    TG_OPT_FLOAT(S, top_p, "1.0", 0, 1,
                 "Sample only from the smallest set with this probability; 1 is off."),
    TG_OPT_INT(S, min_length, "0", 0, 1e9, "No eos before this many tokens."),
    TG_OPT_INT(S, min_new_tokens, "0", 0, 1e9, "No eos before this many new tokens."),
    TG_OPT_INT(S, max_length, "20", 1, 1e9, "Longest result when max_new_tokens is not given."),
    TG_OPT_ROW(S, max_new_tokens, TG_T_INT, TG_OPT_NULLABLE, NULL, 1, 1e9, NULL,
               "Most new tokens."),
    TG_OPT_FLOAT(S, repetition_penalty, "1.0", 1e-6, 1e6,
                 "Divides (or multiplies, if negative) logits of tokens seen before."),
    TG_OPT_INT(S, no_repeat_ngram_size, "0", 0, 1e6,
               "No n-gram of this size occurs twice; 0 is off."),
    TG_OPT_INT(S, num_return_sequences, "1", 1, 1e6, "Samples for each prompt."),
    TG_OPT_INT(S, num_beams, "1", 1, 1e4, "Beams of beam search; 1 is none."),
    TG_OPT_INT(S, num_beam_groups, "1", 1, 1e4, "Groups of diverse beam search."),
    TG_OPT_INT(S, encoder_no_repeat_ngram_size, "0", 0, 1e6,
               "No n-gram of the encoder's input is repeated."),
    TG_OPT_ROW(S, forced_bos_token_id, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 1e9, NULL,
               "First token is this one."),
    TG_OPT_ROW(S, forced_eos_token_id, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 1e9, NULL,
               "Last token at the length limit."),
    TG_OPT_FLOAT(S, typical_p, "1.0", 0, 1, "Locally typical sampling; 1 is off."),
    TG_OPT_FLOAT(S, min_p, "0.0", 0, 1, "Smallest probability relative to the largest; 0 is off."),
    TG_OPT_FLOAT(S, length_penalty, "1.0", -1e6, 1e6, "Exponent on the length in beam scores."),
    TG_OPT_FLOAT(S, diversity_penalty, "0.0", 0, 1e6, "Penalty between beam groups."),
    TG_OPT_BOOL(S, early_stopping, "false", "End beam search at num_beams finished hypotheses."),
    TG_OPT_BOOL(S, remove_invalid_values, "false", "Replace NaN and infinite logits."),
    TG_OPT_NODE(S, bad_words_ids, "Token sequences that must not occur."),
    TG_OPT_NODE(S, exponential_decay_length_penalty, "[start, factor] of a growing eos bonus."),
    TG_OPT_NODE(S, prefix_allowed_tokens_fn,
                "A Python function in transformers; has no meaning in a file."),
    TG_OPT_NODE(S, constraints, "Constrained beam search."),
    TG_OPT_NODE(S, force_words_ids, "Words that must occur (constrained beam search)."),
    TG_OPT_NODE(S, post_processing_fn,
                "What is done to generated text before metrics (supervised evaluation)."),
    TG_OPT_END};
#undef S

tg_status tg_gen_settings_read(tg_gen_settings *s, const tg_node *node, const char *path,
                               tg_arena *arena, tg_error *err) {
    memset(s, 0, sizeof *s);
    tg_status st = tg_opts_read(tg_gen_options, s, node, path, arena, err);
    s->eos_id = s->pad_id = -1;
    return st;
}

tg_status tg_gen_settings_supported(const tg_gen_settings *s, const char *path, tg_error *err) {
    const struct {
        bool given;
        const char *key, *what;
    } missing[] = {
        {s->num_beams > 1, "num_beams", "beam search"},
        {s->num_beam_groups > 1, "num_beam_groups", "group beam search"},
        {s->encoder_no_repeat_ngram_size > 0, "encoder_no_repeat_ngram_size", "this penalty"},
        {s->forced_bos_token_id != INT64_MIN, "forced_bos_token_id", "a forced first token"},
        {s->forced_eos_token_id != INT64_MIN, "forced_eos_token_id", "a forced last token"},
        {s->typical_p < 1, "typical_p", "typical sampling"},
        {s->min_p > 0, "min_p", "min_p sampling"},
        {!tg_node_is_null(s->bad_words_ids), "bad_words_ids", "a list of bad words"},
        {!tg_node_is_null(s->exponential_decay_length_penalty), "exponential_decay_length_penalty",
         "this penalty"},
        {!tg_node_is_null(s->prefix_allowed_tokens_fn), "prefix_allowed_tokens_fn",
         "a Python function"},
        {!tg_node_is_null(s->constraints), "constraints", "constrained beam search"},
        {!tg_node_is_null(s->force_words_ids), "force_words_ids", "constrained beam search"},
        {!tg_node_is_null(s->post_processing_fn), "post_processing_fn",
         "post-processing of generated text"},
    };
    for (size_t i = 0; i < TG_COUNT_OF(missing); i++) {
        if (missing[i].given)
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s.%s: %s is known but not built into this version", path,
                           missing[i].key, missing[i].what);
    }
    return TG_OK;
}

int64_t tg_gen_max_new(const tg_gen_settings *s, int n_prompt) {
    if (s->max_new_tokens != INT64_MIN) return s->max_new_tokens;
    int64_t left = s->lengths_count_prompt ? s->max_length - n_prompt : s->max_length;
    return TG_MAX(left, 1);
}

int64_t tg_gen_min_new(const tg_gen_settings *s, int n_prompt) {
    int64_t by_length = s->lengths_count_prompt ? s->min_length - n_prompt : s->min_length;
    return TG_MAX(s->min_new_tokens, TG_MAX(by_length, 0));
}
