/* Which tokens play a role (end of text, padding …) and how long a text may be:
 * tokenizer_config.json, special_tokens_map.json, and config.json where both are missing. What a
 * file declares counts before what the model family is known to use. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"

#include <string.h>

enum { BOS, EOS, PAD, UNK, N_ROLES };
static const char *const role_key[N_ROLES] = {"bos_token", "eos_token", "pad_token", "unk_token"};
static const char *const role_id_key[N_ROLES] = {"bos_token_id", "eos_token_id", "pad_token_id",
                                                 "unk_token_id"};

#define EOT "<|endoftext|>"
/* What transformers' classes use when no file says otherwise. */
typedef struct family {
    const char *class, *model_type; /* start of tokenizer_class; config.json's model_type */
    const char *role[N_ROLES];
    bool
        prefix_space; /* the class applies add_prefix_space of tokenizer_config.json to the pre-tokenizer */
    bool pad_left;
} family;
static const family families[] = {
    {"Roberta", "roberta", {"<s>", "</s>", "<pad>", "<unk>"}, true, false},
    {"GPT2", "gpt2", {EOT, EOT, NULL, EOT}, true, false},
    {"GPTNeoX", "gpt_neox", {EOT, EOT, "<|padding|>", EOT}, true, false},
    {"GPTJ", "gptj", {EOT, EOT, NULL, EOT}, true, false},
    {"CodeGen", "codegen", {EOT, EOT, NULL, EOT}, true, false},
    {"Qwen2", "qwen2", {NULL, EOT, EOT, EOT}, false, false},
    {"Qwen2", "qwen3", {NULL, EOT, EOT, EOT}, false, false},
    {"T5", "t5", {NULL, "</s>", "<pad>", "<unk>"}, false, false},
    {"MT5", "mt5", {NULL, "</s>", "<pad>", "<unk>"}, false, false},
    {"Bert", "bert", {NULL, NULL, "[PAD]", "[UNK]"}, false, false},
    {"DistilBert", "distilbert", {NULL, NULL, "[PAD]", "[UNK]"}, false, false},
    {"Electra", "electra", {NULL, NULL, "[PAD]", "[UNK]"}, false, false},
    {"Bart", "bart", {"<s>", "</s>", "<pad>", "<unk>"}, true, false},
    {"Blenderbot", "blenderbot", {"<s>", "</s>", "<pad>", "<unk>"}, true, false},
    {"Albert", "albert", {"[CLS]", "[SEP]", "<pad>", "<unk>"}, false, false},
    {"XLNet", "xlnet", {"<s>", "</s>", "<pad>", "<unk>"}, false, true},
    {"Llama", "llama", {"<s>", "</s>", NULL, "<unk>"}, false, true},
    {"CodeLlama", "mistral", {"<s>", "</s>", NULL, "<unk>"}, false, true},
    {"Gemma", "gemma", {"<bos>", "<eos>", "<pad>", "<unk>"}, false, true},
    {"MBart", "mbart", {"<s>", "</s>", "<pad>", "<unk>"}, false, false},
    {"XLMRoberta", "xlm-roberta", {"<s>", "</s>", "<pad>", "<unk>"}, false, false},
    {"Pegasus", "pegasus", {NULL, "</s>", "<pad>", "<unk>"}, false, false},
    {"Marian", "marian", {NULL, "</s>", "<pad>", "<unk>"}, false, false},
    {"Bloom", "bloom", {"<s>", "</s>", "<pad>", "<unk>"}, false, true},
};

/* Loads a file of the folder when it is there; text (if wanted) gets an owned copy. */
static tg_status load(const char *folder, const char *name, json_t **out, char **text,
                      tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_status st = TG_OK;
    if (tg_path_exists(path)) {
        st = tg_part_load(path, true, out, err);
        tg_buf raw = {0};
        if (st == TG_OK && text) st = tg_file_read(path, (size_t)1 << 30, &raw, err);
        if (st == TG_OK && text && !(*text = tg_buf_take(&raw))) st = tg_fail_nomem(err, raw.len);
        tg_buf_fini(&raw);
    }
    tg_free(path);
    return st;
}

/* NULL: it is not there. */
static tg_status load_text(const char *folder, const char *name, char **text, tg_error *err) {
    enum { LONGEST = 4 << 20 };
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_buf raw = {0};
    tg_status st = tg_path_exists(path) ? tg_file_read(path, LONGEST, &raw, err) : TG_OK;
    if (st == TG_OK && raw.data && !(*text = tg_buf_take(&raw))) st = tg_fail_nomem(err, raw.len);
    tg_buf_fini(&raw);
    tg_free(path);
    return st;
}

static const family *by_type(const char *model_type) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (!strcmp(families[i].model_type, model_type)) return &families[i];
    return NULL;
}

static const family *find_family(const tg_tokenizer *t, const tg_side_files *f) {
    const char *class = json_string_value(json_object_get(f->tokenizer, "tokenizer_class"));
    const char *type = json_string_value(json_object_get(f->model, "model_type"));
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const family *fam = &families[i];
        if (class ? !strncmp(class, fam->class, strlen(fam->class))
                  : type && !strcmp(type, fam->model_type))
            return fam;
    }
    if (class || type) return NULL;
    /* No file names a family: the vocabulary gives it away. RoBERTa's also holds GPT-2's token, so it comes first. */
    if (tg_tokenizer_id(t, "[CLS]") >= 0 && tg_tokenizer_id(t, "[SEP]") >= 0)
        return by_type("bert");
    if (tg_tokenizer_id(t, "<extra_id_0>") >= 0) return by_type("t5");
    if (!t->pretok.byte_level) return NULL;
    if (tg_tokenizer_id(t, "<s>") >= 0 && tg_tokenizer_id(t, "</s>") >= 0) return &families[0];
    return tg_tokenizer_id(t, EOT) >= 0 ? &families[1] : NULL;
}

/* "text" or {"content": "text", …}; NULL for null. */
static const char *content_of(const json_t *value) {
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_string_value(value);
}

/* Makes the token special, adding it when the tokenizer does not have it. */
static tg_status make_special(tg_tokenizer *t, const json_t *value, tg_error *err) {
    const char *text = content_of(value);
    if (!text || !*text) return TG_OK;
    const tg_added_token *have = tg_added_find(&t->added, text, strlen(text));
    tg_added_token token = {.content = (char *)text, .len = strlen(text), .special = true};
    if (have) {
        token = *have;
        token.special = true;
    } else if (json_is_object(value)) {
        tg_status st = tg_added_read_token(&token, value, "special token", err);
        if (st != TG_OK) return st;
        token.special = true;
    }
    return tg_added_add(&t->added, &t->model->vocab, &token, err);
}

static tg_status make_all_special(tg_tokenizer *t, const json_t *file, tg_error *err) {
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
    tg_status st = TG_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && st == TG_OK; i++)
        st = make_special(t, json_object_get(file, keys[i]), err);
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    for (size_t k = 0; k < 2; k++) {
        const json_t *more = json_object_get(file, lists[k]);
        for (size_t i = 0; i < json_array_size(more) && st == TG_OK; i++)
            st = make_special(t, json_array_get(more, i), err);
    }
    return st;
}

/* "added_tokens_decoder": {"50257": {"content": …}}: rules that replace those of the
 * tokenizer.json. */
static tg_status read_added_decoder(tg_tokenizer *t, const json_t *map, tg_error *err) {
    const char *id;
    json_t *item;
    json_object_foreach((json_t *)map, id, item) {
        tg_added_token token;
        tg_status st =
            tg_added_read_token(&token, item, "tokenizer_config.json: added_tokens_decoder", err);
        if (st == TG_OK) st = tg_added_add(&t->added, &t->model->vocab, &token, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static int32_t role_id(const tg_tokenizer *t, const tg_side_files *f, const family *fam, int role) {
    const json_t *said = json_object_get(f->tokenizer, role_key[role]);
    if (!said) said = json_object_get(f->special, role_key[role]);
    if (said) return content_of(said) ? tg_tokenizer_id(t, content_of(said)) : -1;
    if (fam && fam->role[role]) return tg_tokenizer_id(t, fam->role[role]);
    static const char *const sentencepiece[N_ROLES] = {"<s>", "</s>", "<pad>", "<unk>"};
    if (t->spm.len && !t->marian) return tg_tokenizer_id(t, sentencepiece[role]);
    const json_t *id = json_object_get(f->model, role_id_key[role]);
    if (f->tokenizer || f->special || !json_is_number(id)) return -1;
    double value = json_number_value(id);
    return value >= 0 && value < t->model->vocab.size ? (int32_t)value : -1;
}

static bool is_left(const tg_side_files *f, const char *key, bool standard) {
    const char *side = json_string_value(json_object_get(f->tokenizer, key));
    return side ? !strcmp(side, "left") : standard;
}

tg_status tg_settings_apply(tg_tokenizer *t, const tg_side_files *f, tg_error *err) {
    tg_status st =
        read_added_decoder(t, json_object_get(f->tokenizer, "added_tokens_decoder"), err);
    if (st == TG_OK) st = make_all_special(t, f->tokenizer, err);
    if (st == TG_OK) st = make_all_special(t, f->special, err);
    const family *fam = find_family(t, f);
    static const int order[N_ROLES] = {BOS, EOS, UNK, PAD}; /* in which files name them, too */
    for (int i = 0; fam && i < N_ROLES && st == TG_OK; i++) {
        const int role = order[i];
        if (!fam->role[role] || tg_tokenizer_id(t, fam->role[role]) < 0) continue;
        json_t *text = json_string(fam->role[role]);
        st = text ? make_special(t, text, err) : tg_fail_nomem(err, 0);
        json_decref(text);
    }
    if (st != TG_OK) return st;
    t->bos = role_id(t, f, fam, BOS);
    t->eos = role_id(t, f, fam, EOS);
    t->pad = role_id(t, f, fam, PAD);
    t->unk = role_id(t, f, fam, UNK);
    t->pad_left = is_left(f, "padding_side", fam && fam->pad_left);
    t->truncate_left = is_left(f, "truncation_side", false);
    double type = json_number_value(json_object_get(f->tokenizer, "pad_token_type_id"));
    t->pad_type = type > 0 && type < 256 ? (uint8_t)type : 0;
    const json_t *prefix = json_object_get(f->tokenizer, "add_prefix_space");
    if (fam && fam->prefix_space && json_is_boolean(prefix) && t->pretok.byte_level)
        t->pretok.part[t->pretok.n - 1].prefix_space = json_is_true(prefix);
    /* transformers writes 1e30 for "no limit". */
    double max = json_number_value(json_object_get(f->tokenizer, "model_max_length"));
    if (max >= 1 && max < 9e18) t->max_length = (int64_t)max;
    return TG_OK;
}

tg_status tg_side_files_load(tg_tokenizer *t, const char *folder, tg_side_files *f, tg_error *err) {
    tg_status st = load(folder, "tokenizer_config.json", &f->tokenizer, &t->config_json, err);
    if (st == TG_OK)
        st = load(folder, "special_tokens_map.json", &f->special, &t->special_json, err);
    if (st == TG_OK) st = load_text(folder, "chat_template.jinja", &t->chat_template, err);
    return st == TG_OK ? load(folder, "config.json", &f->model, NULL, err) : st;
}

void tg_side_files_fini(tg_side_files *f) {
    json_decref(f->tokenizer);
    json_decref(f->special);
    json_decref(f->model);
    *f = (tg_side_files){0};
}

tg_status tg_settings_parse(tg_tokenizer *t, const char *config, tg_error *err) {
    tg_side_files f = {0};
    tg_status st = TG_OK;
    if (config) {
        st =
            tg_part_parse("tokenizer_config.json", config, strlen(config), true, &f.tokenizer, err);
        t->config_json = tg_strdup(config);
        if (st == TG_OK && !t->config_json) st = tg_fail_nomem(err, strlen(config));
    }
    if (st == TG_OK) st = tg_settings_apply(t, &f, err);
    tg_side_files_fini(&f);
    return st;
}
