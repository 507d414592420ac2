/* config.json and generation_config.json. Keys of those it came from that we do not know are kept. */
#include "common/base/check.h"
#include "common/base/str.h"
#include "common/nn/family/config_json.h"
#include "common/nn/family/family.h"
#include "common/nn/json_file.h"
#include "common/nn/model_files.h"

#include <stdio.h>
#include <string.h>

/* An object from kept text; a fresh one when there is none. */
static json_t *object_of(const char *text) {
    json_error_t where;
    json_t *o = text ? tg_config_json_parse(text, strlen(text), 0, &where) : NULL;
    if (json_is_object(o)) return o;
    json_decref(o);
    return json_object();
}

static const char *torch_name(tg_dtype dtype) {
    return dtype == TG_BF16 ? "bfloat16" : dtype == TG_F16 ? "float16" : "float32";
}

/* The class of a language model becomes that of one with labels. */
static bool name_judge(const tg_arch *arch, json_t *o) {
    static const char *const endings[] = {"LMHeadModel", "ForCausalLM"};
    const char *name = json_string_value(json_array_get(json_object_get(o, "architectures"), 0));
    size_t len = name ? strlen(name) : 0;
    for (size_t i = 0; i < TG_COUNT_OF(endings); i++)
        if (name && tg_str_ends(name, endings[i])) len = strlen(name) - strlen(endings[i]);
    char text[100];
    snprintf(text, sizeof text, "%.*sForSequenceClassification", (int)len, name ? name : "");
    if (!json_object_size(json_object_get(o, "id2label")) &&
        json_object_set_new(o, "num_labels", json_integer(arch->n_labels)))
        return false;
    return !json_object_set_new(o, "architectures", json_pack("[s]", text));
}

/* A judge has no output matrix, tied or not: what its config.json says of that is for the language model it was, and stays. */
static bool keep_tie(json_t *o, json_t *said) {
    static const char key[] = "tie_word_embeddings";
    if (said) return !json_object_set(o, key, said);
    json_object_del(o, key);
    return true;
}

tg_status tg_model_write_config(const char *folder, const tg_arch *arch, const char *text,
                                tg_dtype dtype, tg_error *err) {
    json_t *o = object_of(text), *tied = json_incref(json_object_get(o, "tie_word_embeddings"));
    tg_status st = TG_OK;
    if (!o || !tg_family_find(arch->family)->write(arch, o)) st = tg_fail_nomem(err, 4096);
    if (st == TG_OK && arch->labels && arch->kind == TG_KIND_CAUSAL &&
        (!name_judge(arch, o) || !keep_tie(o, tied)))
        st = tg_fail_nomem(err, 4096);
    json_decref(tied);
    if (st == TG_OK) { /* newer name of torch_dtype: one of them is enough */
        const char *key = json_object_get(o, "dtype") ? "dtype" : "torch_dtype";
        json_object_del(o, "torch_dtype");
        json_object_del(o, "transformers_weights"); /* the file it came from */
        json_object_set_new(o, key, json_string(torch_name(dtype)));
        st = tg_json_file_write(folder, "config.json", o, err);
    }
    json_decref(o);
    return st;
}

/* Folders from before generation_config.json have its keys in config.json, where nobody looks once there is such a file. */
static bool take_legacy(json_t *o, json_t *config) {
    static const char *const keys[] = {"bad_words_ids",
                                       "begin_suppress_tokens",
                                       "bos_token_id",
                                       "cache_implementation",
                                       "decoder_start_token_id",
                                       "diversity_penalty",
                                       "do_sample",
                                       "early_stopping",
                                       "encoder_no_repeat_ngram_size",
                                       "encoder_repetition_penalty",
                                       "eos_token_id",
                                       "epsilon_cutoff",
                                       "eta_cutoff",
                                       "exponential_decay_length_penalty",
                                       "force_words_ids",
                                       "forced_bos_token_id",
                                       "forced_eos_token_id",
                                       "guidance_scale",
                                       "length_penalty",
                                       "max_length",
                                       "max_new_tokens",
                                       "max_time",
                                       "min_length",
                                       "min_new_tokens",
                                       "min_p",
                                       "no_repeat_ngram_size",
                                       "num_beam_groups",
                                       "num_beams",
                                       "num_return_sequences",
                                       "pad_token_id",
                                       "penalty_alpha",
                                       "remove_invalid_values",
                                       "renormalize_logits",
                                       "repetition_penalty",
                                       "sequence_bias",
                                       "stop_ids",
                                       "stop_strings",
                                       "suppress_tokens",
                                       "temperature",
                                       "token_healing",
                                       "top_h",
                                       "top_k",
                                       "top_p",
                                       "typical_p",
                                       "use_cache"};
    int failed = tg_config_json_renew(config, NULL) != TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(keys); i++) {
        json_t *value = json_object_get(config, keys[i]);
        if (value && !json_is_null(value)) failed |= json_object_set(o, keys[i], value);
    }
    return !failed;
}

tg_status tg_model_write_generation(const char *folder, const tg_arch *arch, const char *text,
                                    const char *config_text, tg_error *err) {
    if (arch->kind == TG_KIND_ENCODER && !text) return TG_OK; /* nothing is generated */
    json_t *o = object_of(text), *config = object_of(config_text);
    if (!o || !config || (!text && !take_legacy(o, config))) {
        json_decref(o);
        json_decref(config);
        return tg_fail_nomem(err, 4096);
    }
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {{"bos_token_id", arch->bos_id},
               {"eos_token_id", arch->eos_id},
               {"pad_token_id", arch->pad_id},
               {"decoder_start_token_id", arch->kind == TG_KIND_SEQ2SEQ ? arch->start_id : -1}};
    for (size_t i = 0; !text && i < TG_COUNT_OF(ids); i++) /* a null says that there is none */
        if (ids[i].id >= 0 && !json_object_get(o, ids[i].key) &&
            !json_object_get(config, ids[i].key))
            json_object_set_new(o, ids[i].key, json_integer(ids[i].id));
    tg_status st = tg_json_file_write(folder, "generation_config.json", o, err);
    json_decref(o);
    json_decref(config);
    return st;
}
