/* generation_kwargs: how tokens are chosen. Names and meanings are those of transformers, defaults those of 4.18
 * (top_k 50, max_length 20).
 *
 *     tg_gen_settings s;
 *     tg_gen_model_defaults(&node, folder, &arena, err);  // what the model's folder says, where the caller does not
 *     tg_gen_settings_read(&s, node, "alg.policy.args.generation_kwargs", &arena, err);
 *     tg_gen_settings_supported(&s, path, err);           // before generating: refuses by name what is not built
 *     tg_gen_set_eos(&s, eos);                            // where the environment decides
 *
 * Where versions of transformers differ, 5.22 counts: lengths in beam scores are of new tokens only, and with beams
 * early_stopping false ends at the first time no running beam can win at its present length. Group beam search, which 5
 * no longer has, is that of 4.46. Of 4.18 are the defaults and that max_length counts the prompt even when it is not given.
 * A number or truth value that is null is as if not given where 4 and 5 agree about it; elsewhere it is refused. */
#ifndef TG_POLICY_GEN_SETTINGS_H
#define TG_POLICY_GEN_SETTINGS_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "common/nn/op/linear.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_id_list {
    const int32_t *ids;
    int n;
} tg_id_list;

/* Added to the score of a token that would complete the sequence. */
typedef struct tg_id_bias {
    tg_id_list sequence;
    float bias; /* -inf: a bad word */
} tg_id_bias;

typedef enum tg_early_stopping {
    TG_STOP_HEURISTIC,
    TG_STOP_EARLY,
    TG_STOP_NEVER
} tg_early_stopping;

enum { TG_GEN_MAX_EOS = 16 };

struct tg_stop_strings;

typedef struct tg_gen_settings {
    bool do_sample;
    double temperature, top_p, typical_p, min_p, epsilon_cutoff, eta_cutoff;
    int64_t top_k; /* 0: off */
    double repetition_penalty, encoder_repetition_penalty;
    int64_t no_repeat_ngram_size, encoder_no_repeat_ngram_size; /* 0: off */
    int64_t min_length, max_length;
    /* INT64_MIN: not given, min_length and max_length decide */
    int64_t min_new_tokens, max_new_tokens;
    int64_t num_return_sequences, num_beams, num_beam_groups;
    double length_penalty, diversity_penalty;
    int64_t forced_bos_token_id; /* INT64_MIN: none */
    bool remove_invalid_values, renormalize_logits;
    /* as written; the fields below are made of them */
    const tg_node *early_stopping, *bad_words_ids, *sequence_bias;
    const tg_node *exponential_decay_length_penalty, *forced_eos_token_id;
    const tg_node *suppress_tokens, *begin_suppress_tokens, *stop_strings, *stop_ids;
    const tg_node *eos_token_id, *pad_token_id, *bos_token_id, *decoder_start_token_id;
    /* known, refused by tg_gen_settings_supported when given */
    const tg_node *prefix_allowed_tokens_fn, *constraints, *force_words_ids, *post_processing_fn;
    const tg_node *guidance_scale, *penalty_alpha, *dola_layers, *watermarking_config, *top_h;
    const tg_node *max_time, *token_healing;
    const tg_node *ignored; /* keys that change no token */
    /* made of the nodes; lists live in the arena */
    tg_early_stopping early;
    tg_id_bias *biases; /* sequence_bias */
    int n_biases;
    tg_id_list *bad_words, *stops; /* stops: stop_ids */
    int n_bad_words, n_stops;
    tg_id_list suppress, begin_suppress, forced_eos;
    int64_t decay_start; /* INT64_MIN: none */
    double decay_factor;
    /* token ids; -1: none. Read from the nodes, and the caller may set them. */
    int32_t eos_ids[TG_GEN_MAX_EOS];
    int n_eos;
    int32_t pad_id, bos_id, decoder_start_id;
    /* set by the caller */
    /* of stop_strings, which needs a tokenizer; NULL: none */
    const struct tg_stop_strings *stop_text;
    bool stops_in_result; /* such a text does not begin in the prompt */
    bool own_eos;         /* the caller's config gives eos_token_id, not the folder */
    /* true: min_length and max_length count the prompt (transformers, causal models). false: new
     * tokens only, which is what RL4LMs's policies make of min_length. */
    bool lengths_count_prompt;
    tg_weight_form weights; /* the copy of the model's matrices to decode with; PLAIN: none */
    bool half_cache;        /* keys and values are kept as bf16 */
} tg_gen_settings;

extern const tg_opt tg_gen_options[];

/* node: a map, or NULL for all defaults. Strings, lists and nodes live in the arena. TG_CONFIG: a value that
 * transformers would refuse as well. */
tg_status tg_gen_settings_read(tg_gen_settings *s, const tg_node *node, const char *path,
                               tg_arena *arena, tg_error *err) TG_MUST_CHECK;

/* *node (NULL: none given) becomes a map with the keys of generation_config.json, or where the folder has none the
 * generation keys of config.json, behind those that it has. Keys that do not concern the choice of tokens are left out. */
tg_status tg_gen_model_defaults(const tg_node **node, const char *folder, tg_arena *arena,
                                tg_error *err) TG_MUST_CHECK;

/* TG_UNSUPPORTED naming the key whose value cannot be honoured; TG_CONFIG: values that exclude each other. */
tg_status tg_gen_settings_supported(const tg_gen_settings *s, const char *path,
                                    tg_error *err) TG_MUST_CHECK;

/* TG_CONFIG naming the key: tokens to forbid, favour, force or stop at that a model of V tokens does not have. Others may be
 * there for a larger vocabulary: end tokens, padding, suppressed ones. */
tg_status tg_gen_settings_fit(const tg_gen_settings *s, int V, const char *path,
                              tg_error *err) TG_MUST_CHECK;

void tg_gen_set_eos(tg_gen_settings *s, int32_t id); /* one end token, or none (-1) */
bool tg_gen_is_eos(const tg_gen_settings *s, int32_t token);

/* Most new tokens a sequence with this prompt may get. */
int64_t tg_gen_max_new(const tg_gen_settings *s, int n_prompt);
/* New tokens before eos is allowed. */
int64_t tg_gen_min_new(const tg_gen_settings *s, int n_prompt);
/* Decoder slots for about that many: whole searches, at least one. */
int tg_gen_slots(const tg_gen_settings *s, int wanted);

#endif
