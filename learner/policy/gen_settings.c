#include "learner/policy/gen_settings.h"

#include "common/base/check.h"
#include "learner/policy/gen_lists.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define S tg_gen_settings
#define ID_OR_LIST(f, h) TG_OPT_NODE(S, f, h)
/* null is the model's value or the default in transformers 4, off in 5: the same where the default is off. */
#define ABSENT(f, T, d, lo, hi, h) TG_OPT_ROW(S, f, T, TG_OPT_NULL_ABSENT, d, lo, hi, NULL, h)
#define BOOL(f, d, h) ABSENT(f, TG_T_BOOL, d, 0, 0, h)
#define INT(f, d, lo, hi, h) ABSENT(f, TG_T_INT, d, lo, hi, h)
#define FLOAT(f, d, lo, hi, h) ABSENT(f, TG_T_FLOAT, d, lo, hi, h)
#define WITHOUT_EFFECT(key)                                                                        \
    {                                                                                              \
        key, TG_T_NODE, TG_OPT_NULLABLE | TG_OPT_IGNORED, offsetof(S, ignored), NULL, 0, 0, NULL,  \
            "No effect: the tokens are the same."                                                  \
    }
const tg_opt tg_gen_options[] = {
    BOOL(do_sample, "false", "Sample from the distribution; false takes the most probable token."),
    FLOAT(temperature, "1.0", 0, 1e6,
          "Logits are divided by this before sampling, which needs more than 0."),
    TG_OPT_INT(S, top_k, "50", 0, 1e9, "Sample only from the k most probable tokens; 0 is off."),
    FLOAT(top_p, "1.0", 0, 1, "Sample only from the smallest set with this probability; 1 is off."),
    FLOAT(typical_p, "1.0", 0, 1, "Locally typical sampling; 1 is off."),
    FLOAT(min_p, "0.0", 0, 1, "Smallest probability relative to the largest; 0 is off."),
    FLOAT(epsilon_cutoff, "0.0", 0, 1, "Smallest probability sampled; 0 is off."),
    FLOAT(eta_cutoff, "0.0", 0, 1, "Smallest probability, lower where entropy is high; 0 is off."),
    INT(min_length, "0", 0, 1e9, "No eos before this many tokens."),
    TG_OPT_INT_OR_NULL(S, min_new_tokens, 0, 1e9,
                       "No eos before this many new tokens; given, min_length does not count."),
    INT(max_length, "20", 1, 1e9, "Longest result when max_new_tokens is not given."),
    TG_OPT_INT_OR_NULL(S, max_new_tokens, 1, 1e9, "Most new tokens."),
    FLOAT(repetition_penalty, "1.0", 1e-6, 1e6,
          "Divides (or multiplies, if negative) logits of tokens seen before."),
    FLOAT(encoder_repetition_penalty, "1.0", 1e-6, 1e6,
          "Favours tokens of the encoder's input (causal: of the prompt) by this factor."),
    INT(no_repeat_ngram_size, "0", 0, 1e6, "No n-gram of this size occurs twice; 0 is off."),
    INT(encoder_no_repeat_ngram_size, "0", 0, 1e6,
        "No n-gram of the encoder's input (causal: of the prompt) is repeated."),
    TG_OPT_NODE(S, bad_words_ids, "Token sequences that must not occur."),
    TG_OPT_NODE(S, sequence_bias, "[[ids, bias], …]: added to what would complete the ids."),
    TG_OPT_NODE(S, suppress_tokens, "Tokens that are never chosen."),
    TG_OPT_NODE(S, begin_suppress_tokens, "Tokens that are not chosen first."),
    TG_OPT_INT_OR_NULL(S, forced_bos_token_id, 0, 1e9,
                       "The token after a prompt, or decoder start, of one token."),
    TG_OPT_NODE(S, forced_eos_token_id, "Last token at the length limit; or a list."),
    TG_OPT_NODE(S, exponential_decay_length_penalty, "[start, factor] of a growing eos bonus."),
    TG_OPT_NODE(S, stop_strings, "Texts that end the result, and stay in it."),
    TG_OPT_NODE(S, stop_ids, "Token sequences that end the result, and stay in it."),
    INT(num_return_sequences, "1", 1, 1e6, "Results for each prompt."),
    INT(num_beams, "1", 1, 1e4, "Beams of beam search; 1 is none."),
    INT(num_beam_groups, "1", 1, 1e4, "Groups of diverse beam search."),
    FLOAT(diversity_penalty, "0.0", 0, 1e6,
          "Taken off a token for each beam of earlier groups that chose it in this step."),
    FLOAT(length_penalty, "1.0", -1e6, 1e6, "Exponent on the length in beam scores."),
    TG_OPT_ROW(
        S, early_stopping, TG_T_NODE, 0, "false", 0, 0, NULL,
        "true: beam search ends at num_beams finished results; \"never\": only when none can "
        "become better."),
    BOOL(remove_invalid_values, "false", "Replace NaN and infinite logits."),
    BOOL(renormalize_logits, "false", "Beam scores are log-probs again after penalties."),
    ID_OR_LIST(eos_token_id, "Token, or list of tokens, that ends the result; the model's."),
    ID_OR_LIST(pad_token_id, "Padding token; the model's."),
    ID_OR_LIST(bos_token_id, "First token of an empty prompt; the model's."),
    ID_OR_LIST(decoder_start_token_id, "First token of an encoder-decoder's result; the model's."),
    TG_OPT_NODE(S, prefix_allowed_tokens_fn,
                "Not in this version: a Python function in transformers."),
    TG_OPT_NODE(S, constraints, "Not in this version: constrained beam search."),
    TG_OPT_NODE(S, force_words_ids,
                "Not in this version: words that must occur (constrained beam search)."),
    TG_OPT_NODE(S, post_processing_fn,
                "Not in this version: what is done to generated text before metrics."),
    TG_OPT_NODE(S, guidance_scale, "Not in this version: classifier-free guidance."),
    TG_OPT_NODE(S, penalty_alpha, "Not in this version: contrastive search."),
    TG_OPT_NODE(S, dola_layers, "Not in this version: decoding by contrasting layers."),
    TG_OPT_NODE(S, watermarking_config, "Not in this version: watermarks."),
    TG_OPT_NODE(S, top_h, "Not in this version: top-H sampling."),
    TG_OPT_NODE(S, token_healing, "Not in this version: rewriting the end of the prompt."),
    TG_OPT_NODE(S, max_time,
                "Not in this version: seconds, by which results would depend on the machine."),
    WITHOUT_EFFECT("use_cache"),
    WITHOUT_EFFECT("cache_implementation"),
    WITHOUT_EFFECT("return_dict_in_generate"),
    WITHOUT_EFFECT("output_scores"),
    WITHOUT_EFFECT("output_logits"),
    WITHOUT_EFFECT("output_attentions"),
    WITHOUT_EFFECT("output_hidden_states"),
    WITHOUT_EFFECT("low_memory"),
    WITHOUT_EFFECT("synced_gpus"),
    TG_OPT_END};
#undef WITHOUT_EFFECT
#undef FLOAT
#undef INT
#undef BOOL
#undef ABSENT
#undef ID_OR_LIST
#undef S

/* What the nodes say, as numbers. */
static tg_status read_nodes(tg_gen_settings *s, const char *path, tg_arena *arena, tg_error *err) {
    tg_gen_nodes n = {path, arena, err};
    tg_status st = tg_gen_read_early(&n, s);
    if (st == TG_OK)
        st = tg_gen_read_lists(&n, "bad_words_ids", s->bad_words_ids, &s->bad_words,
                               &s->n_bad_words);
    if (st == TG_OK) st = tg_gen_read_lists(&n, "stop_ids", s->stop_ids, &s->stops, &s->n_stops);
    if (st == TG_OK) st = tg_gen_read_biases(&n, s);
    const struct {
        const char *key;
        const tg_node *node;
        tg_id_list *to;
    } lists[] = {{"suppress_tokens", s->suppress_tokens, &s->suppress},
                 {"begin_suppress_tokens", s->begin_suppress_tokens, &s->begin_suppress},
                 {"forced_eos_token_id", s->forced_eos_token_id, &s->forced_eos}};
    for (size_t i = 0; st == TG_OK && i < TG_COUNT_OF(lists); i++)
        st = tg_gen_read_ids(&n, lists[i].key, lists[i].node, lists[i].to);
    if (st == TG_OK) st = tg_gen_read_decay(&n, s);
    const struct {
        const char *key;
        const tg_node *node;
        int32_t *to;
    } tokens[] = {{"pad_token_id", s->pad_token_id, &s->pad_id},
                  {"bos_token_id", s->bos_token_id, &s->bos_id},
                  {"decoder_start_token_id", s->decoder_start_token_id, &s->decoder_start_id}};
    for (size_t i = 0; st == TG_OK && i < TG_COUNT_OF(tokens); i++) {
        tg_id_list list;
        st = tg_gen_read_ids(&n, tokens[i].key, tokens[i].node, &list);
        if (st == TG_OK) *tokens[i].to = list.n ? list.ids[0] : -1;
    }
    return st == TG_OK ? tg_gen_read_eos(&n, s) : st;
}

/* The one default that is not off: its null has two meanings. */
static tg_status check_top_k(const tg_node *node, const char *path, tg_error *err) {
    const tg_node *given = tg_node_get(node, "top_k");
    if (!given || !tg_node_is_null(given)) return TG_OK;
    char at[128];
    snprintf(at, sizeof at, "%s.top_k", path);
    return tg_node_fail(given, at, err,
                        "null is off in transformers 5, and the model's value or 50 in 4; write 0 "
                        "for off, or the number");
}

tg_status tg_gen_settings_read(tg_gen_settings *s, const tg_node *node, const char *path,
                               tg_arena *arena, tg_error *err) {
    memset(s, 0, sizeof *s);
    tg_status st = check_top_k(node, path, err);
    if (st == TG_OK) st = tg_opts_read(tg_gen_options, s, node, path, arena, err);
    return st == TG_OK ? read_nodes(s, path, arena, err) : st;
}

/* Smaller ones could make logits infinite. */
#define COLDEST 1e-30

/* What only matters to samples: without them a folder may say temperature 0. */
static tg_status check_sampling(const tg_gen_settings *s, const char *path, tg_error *err) {
    if (s->temperature < COLDEST)
        return tg_fail(err, TG_CONFIG,
                       "%s.temperature: expected a number from %g to 1000000 when sampling, found "
                       "%g; do_sample: false takes the most probable token",
                       path, COLDEST, s->temperature);
    if (s->typical_p <= 0)
        return tg_fail(err, TG_CONFIG, "%s.typical_p: expected more than 0", path);
    return TG_OK;
}

/* Values that transformers refuses together. */
static tg_status check_beams(const tg_gen_settings *s, const char *path, tg_error *err) {
    if (s->num_beam_groups > 1) {
        if (s->num_beams % s->num_beam_groups)
            return tg_fail(err, TG_CONFIG,
                           "%s.num_beam_groups: %lld groups cannot share %lld beams evenly; make "
                           "num_beams a multiple",
                           path, (long long)s->num_beam_groups, (long long)s->num_beams);
        if (s->do_sample)
            return tg_fail(err, TG_CONFIG,
                           "%s.num_beam_groups: group beam search does not sample; leave out "
                           "do_sample or the groups",
                           path);
    } else if (s->diversity_penalty > 0) {
        return tg_fail(err, TG_CONFIG,
                       "%s.diversity_penalty: is between groups of beams; give num_beam_groups",
                       path);
    }
    if (s->num_beams > 1 && s->num_return_sequences > s->num_beams)
        return tg_fail(err, TG_CONFIG,
                       "%s.num_return_sequences: %lld results of %lld beams; give at least as many "
                       "num_beams",
                       path, (long long)s->num_return_sequences, (long long)s->num_beams);
    if (s->num_beams == 1 && !s->do_sample && s->num_return_sequences > 1)
        return tg_fail(err, TG_CONFIG,
                       "%s.num_return_sequences: greedy search has one result; give do_sample or "
                       "num_beams",
                       path);
    return s->do_sample ? check_sampling(s, path, err) : TG_OK;
}

/* Whether a value asks for nothing: null, or what turns it off (NAN: nothing does). */
static bool is_off(const tg_node *given, double off) {
    bool on = true;
    double x = (double)NAN;
    if (tg_node_is_null(given)) return true;
    return (off == 0 && tg_node_bool(given, &on) && !on) || (tg_node_float(given, &x) && x == off);
}

tg_status tg_gen_settings_supported(const tg_gen_settings *s, const char *path, tg_error *err) {
    const double none = (double)NAN;
    const struct {
        const tg_node *given;
        const char *key, *what;
        double off;
    } missing[] = {
        {s->prefix_allowed_tokens_fn, "prefix_allowed_tokens_fn", "a Python function", none},
        {s->constraints, "constraints", "constrained beam search", none},
        {s->force_words_ids, "force_words_ids", "constrained beam search", none},
        {s->post_processing_fn, "post_processing_fn", "post-processing of generated text", none},
        {s->guidance_scale, "guidance_scale", "classifier-free guidance", 1},
        {s->penalty_alpha, "penalty_alpha", "contrastive search", 0},
        {s->dola_layers, "dola_layers", "decoding by contrasting layers", none},
        {s->watermarking_config, "watermarking_config", "a watermark", none},
        {s->top_h, "top_h", "top-H sampling", none},
        {s->token_healing, "token_healing", "rewriting the end of prompts", 0},
        {s->max_time, "max_time", "a limit in seconds", none},
    };
    for (size_t i = 0; i < TG_COUNT_OF(missing); i++) {
        if (is_off(missing[i].given, missing[i].off)) continue;
        char at[128];
        snprintf(at, sizeof at, "%s.%s", path, missing[i].key);
        tg_fail(err, TG_UNSUPPORTED,
                "%s is known but not built into this version; null goes without it",
                missing[i].what);
        return tg_node_blame(missing[i].given, at, TG_UNSUPPORTED, err);
    }
    return check_beams(s, path, err);
}

static tg_status check_ids(const tg_id_list *list, const char *key, int V, const char *path,
                           tg_error *err) {
    for (int i = 0; i < list->n; i++)
        if (list->ids[i] >= V)
            return tg_fail(err, TG_CONFIG,
                           "%s.%s: expected token ids of the model, 0 to %d, found %d", path, key,
                           V - 1, list->ids[i]);
    return TG_OK;
}

tg_status tg_gen_settings_fit(const tg_gen_settings *s, int V, const char *path, tg_error *err) {
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < s->n_bad_words; i++)
        st = check_ids(&s->bad_words[i], "bad_words_ids", V, path, err);
    for (int i = 0; st == TG_OK && i < s->n_biases; i++)
        st = check_ids(&s->biases[i].sequence, "sequence_bias", V, path, err);
    for (int i = 0; st == TG_OK && i < s->n_stops; i++)
        st = check_ids(&s->stops[i], "stop_ids", V, path, err);
    if (st == TG_OK) st = check_ids(&s->forced_eos, "forced_eos_token_id", V, path, err);
    if (st != TG_OK || s->forced_bos_token_id == INT64_MIN) return st;
    const int32_t bos = (int32_t)s->forced_bos_token_id;
    return check_ids(&(tg_id_list){&bos, 1}, "forced_bos_token_id", V, path, err);
}

void tg_gen_set_eos(tg_gen_settings *s, int32_t id) {
    s->n_eos = id >= 0;
    s->eos_ids[0] = id;
}

bool tg_gen_is_eos(const tg_gen_settings *s, int32_t token) {
    for (int i = 0; i < s->n_eos; i++)
        if (s->eos_ids[i] == token) return true;
    return false;
}

int64_t tg_gen_max_new(const tg_gen_settings *s, int n_prompt) {
    if (s->max_new_tokens != INT64_MIN) return s->max_new_tokens;
    int64_t left = s->lengths_count_prompt ? s->max_length - n_prompt : s->max_length;
    return TG_MAX(left, 1);
}

int64_t tg_gen_min_new(const tg_gen_settings *s, int n_prompt) {
    if (s->min_new_tokens != INT64_MIN) return s->min_new_tokens;
    int64_t by_length = s->lengths_count_prompt ? s->min_length - n_prompt : s->min_length;
    return TG_MAX(by_length, 0);
}

int tg_gen_slots(const tg_gen_settings *s, int wanted) {
    int beams = (int)s->num_beams;
    return TG_MAX(wanted / beams, 1) * beams;
}
