/* Reading a tokenizer from a folder: tokenizer.json, or GPT-2's older pairs of files. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/bpe.h"
#include "common/text/spm.h"
#include "common/text/wordpiece.h"

#include <string.h>

static tg_status create(tg_tokenizer **out, tg_error *err) {
    tg_tokenizer *t = tg_alloc(sizeof *t);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    t->pool = tg_alloc(sizeof *t->pool);
    if (!t->pool) {
        tg_free(t);
        return tg_fail_nomem(err, sizeof *t->pool);
    }
    tg_scratch_pool_init(t->pool);
    t->bos = t->eos = t->pad = t->unk = -1;
    t->max_length = INT64_MAX;
    *out = t;
    return TG_OK;
}

/* All parts but the model, from an object with the keys of a tokenizer.json. */
static tg_status read_parts(tg_tokenizer *t, const json_t *root, tg_error *err) {
    tg_status st = tg_normalizer_read(&t->normalizer, json_object_get(root, "normalizer"), err);
    if (st == TG_OK) st = tg_pretok_read(&t->pretok, json_object_get(root, "pre_tokenizer"), err);
    if (st == TG_OK)
        st = tg_postproc_read(&t->postproc, json_object_get(root, "post_processor"), err);
    if (st == TG_OK) st = tg_text_decoder_read(&t->decoder, json_object_get(root, "decoder"), err);
    return st;
}

/* truncation and padding are presets that transformers replaces at each call: they are read past, not applied. */
static tg_status read_root(tg_tokenizer *t, const json_t *root, const char *path, tg_error *err) {
    tg_status st = tg_part_check(root, "tokenizer.json",
                                 "version truncation padding added_tokens normalizer pre_tokenizer "
                                 "post_processor decoder model",
                                 err);
    const char *version = json_string_value(json_object_get(root, "version"));
    if (st == TG_OK && (!version || strcmp(version, "1.0")))
        st = tg_fail(err, TG_UNSUPPORTED, "version: expected \"1.0\", found \"%.20s\"",
                     version ? version : "none");
    if (st == TG_OK) st = read_parts(t, root, err);
    if (st == TG_OK)
        st = tg_text_model_read(&t->model, json_object_get(root, "model"), t->pretok.byte_level,
                                err);
    if (st == TG_OK)
        st = tg_added_read(&t->added, json_object_get(root, "added_tokens"), &t->model->vocab, err);
    if (st != TG_OK && err) tg_error_prefix(err, "%s: ", path);
    return st;
}

static bool is_spm(const char *path) {
    size_t len = strlen(path);
    return len > 6 && !strcmp(path + len - 6, ".model");
}

/* A tokenizer.json, or a SentencePiece model. */
static tg_status read_json(tg_tokenizer *t, const char *path, tg_error *err) {
    json_t *root = NULL;
    tg_status st =
        is_spm(path) ? tg_spm_load(path, &root, err) : tg_part_load(path, false, &root, err);
    if (st == TG_OK) st = read_root(t, root, path, err);
    json_decref(root);
    return st;
}

/* What GPT-2's and RoBERTa's own code does around such a pair, written as a tokenizer.json would
 * say it. */
static const char gpt2_parts[] = "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                                 "false,\"trim_offsets\":true,\"use_regex\":true},"
                                 "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                                 "true,\"trim_offsets\":false,\"use_regex\":true},"
                                 "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                                 "\"trim_offsets\":true,\"use_regex\":true}}";

/* RoBERTa's family puts <s> … </s> around the text; its vocabulary is known by these two tokens. */
static tg_status set_roberta(tg_tokenizer *t, json_t *root, tg_error *err) {
    const tg_vocab *v = &t->model->vocab;
    int32_t bos = tg_vocab_id(v, "<s>", 3), eos = tg_vocab_id(v, "</s>", 4);
    if (bos < 0 || eos < 0) return TG_OK;
    json_t *post =
        json_pack("{s:s,s:[si],s:[si],s:b,s:b}", "type", "RobertaProcessing", "sep", "</s>",
                  (int)eos, "cls", "<s>", (int)bos, "trim_offsets", 1, "add_prefix_space", 0);
    if (!post || json_object_set_new(root, "post_processor", post)) return tg_fail_nomem(err, 0);
    tg_added_token mask = {
        .content = (char *)(uintptr_t) "<mask>", .len = 6, .special = true, .lstrip = true};
    return tg_vocab_id(v, "<mask>", 6) >= 0 ? tg_added_add(&t->added, v, &mask, err) : TG_OK;
}

/* Adds the tokens of {"token": id}; their ids go on from the end of the vocabulary without a gap. */
static tg_status add_map(tg_tokenizer *t, json_t *map, const char *path, tg_error *err) {
    size_t n = json_object_size(map);
    const char **by_id = tg_alloc_array(n + 1, sizeof *by_id);
    if (!by_id) return tg_fail_nomem(err, n * sizeof *by_id);
    const char *text;
    json_t *value;
    json_object_foreach(map, text, value) {
        json_int_t place = json_integer_value(value) - t->model->vocab.size;
        if (json_is_integer(value) && place >= 0 && (size_t)place < n) by_id[place] = text;
    }
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        tg_added_token token = {.content = (char *)(uintptr_t)by_id[i], .normalized = true};
        token.len = by_id[i] ? strlen(by_id[i]) : 0;
        st = by_id[i] ? tg_added_add(&t->added, &t->model->vocab, &token, err)
                      : tg_fail(err, TG_DATA, "%s: no token has id %d", path,
                                (int)(t->model->vocab.size + (int)i));
    }
    tg_free(by_id);
    return st;
}

static tg_status read_added(tg_tokenizer *t, const char *folder, tg_error *err) {
    char *path = tg_path_join(folder, "added_tokens.json");
    if (!path) return tg_fail_nomem(err, strlen(folder));
    json_t *map = NULL;
    tg_status st = TG_OK;
    if (tg_path_exists(path)) {
        st = tg_part_load(path, false, &map, err);
        if (st == TG_OK) st = add_map(t, map, path, err);
    }
    json_decref(map);
    tg_free(path);
    return st;
}

static tg_status read_pair(tg_tokenizer *t, const char *vocab, const char *merges, tg_error *err) {
    tg_status st = tg_bpe_open(&t->model, vocab, merges, err);
    if (st != TG_OK) return st;
    json_t *root = json_loads(gpt2_parts, 0, NULL);
    if (!root) return tg_fail_nomem(err, sizeof gpt2_parts);
    st = set_roberta(t, root, err);
    if (st == TG_OK) st = read_parts(t, root, err);
    json_decref(root);
    return st;
}

/* What BERT's own code does around a vocab.txt. */
static const char bert_parts[] =
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
    "true,"
    "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}";

/* do_lower_case of tokenizer_config.json; a vocabulary with upper case was made without lowering. */
static tg_status set_case(json_t *root, const char *folder, tg_error *err) {
    char *path = tg_path_join(folder, "tokenizer_config.json");
    json_t *config = NULL;
    tg_status st = path ? TG_OK : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK && tg_path_exists(path)) st = tg_part_load(path, true, &config, err);
    json_t *norm = json_object_get(root, "normalizer");
    static const char *const keys[][2] = {{"do_lower_case", "lowercase"},
                                          {"strip_accents", "strip_accents"},
                                          {"tokenize_chinese_chars", "handle_chinese_chars"}};
    for (size_t i = 0; st == TG_OK && i < 3; i++) {
        json_t *value = json_object_get(config, keys[i][0]);
        if (json_is_boolean(value) && json_object_set(norm, keys[i][1], value))
            st = tg_fail_nomem(err, 0);
    }
    json_decref(config);
    tg_free(path);
    return st;
}

#define SPECIAL(name, type) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define SEQUENCE(name, type) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define TOKEN(name) "\"" name "\":{\"id\":\"" name "\",\"ids\":[%d],\"tokens\":[\"" name "\"]}"
static const char bert_template[] =
    "{\"type\":\"TemplateProcessing\",\"single\":[" SPECIAL("[CLS]", "0") "," SEQUENCE("A", "0") "," SPECIAL("[SEP]", "0") "],\"pair\":[" SPECIAL(
        "[CLS]",
        "0") "," SEQUENCE("A",
                          "0") "," SPECIAL("[SEP]",
                                           "0") "," SEQUENCE("B",
                                                             "1") "," SPECIAL("[SEP]",
                                                                              "1") "],\"special_"
                                                                                   "tokens\":"
                                                                                   "{" TOKEN(
                                                                                       "[CLS"
                                                                                       "]") "," TOKEN("[SEP]") "}}";

/* [CLS] text [SEP]; the five special tokens are found in text. */
static tg_status set_bert(tg_tokenizer *t, json_t *root, tg_error *err) {
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    const tg_vocab *v = &t->model->vocab;
    int32_t cls = tg_vocab_id(v, "[CLS]", 5), sep = tg_vocab_id(v, "[SEP]", 5);
    if (cls < 0 || sep < 0)
        return tg_fail(err, TG_DATA, "vocab.txt: [CLS] and [SEP] are not both in it");
    tg_status st = TG_OK;
    for (size_t i = 0; i < 5 && st == TG_OK; i++) {
        tg_added_token token = {
            .content = (char *)(uintptr_t)names[i], .len = strlen(names[i]), .special = true};
        if (tg_vocab_id(v, names[i], token.len) >= 0) st = tg_added_add(&t->added, v, &token, err);
    }
    if (st != TG_OK) return st;
    tg_buf text = {0};
    tg_buf_printf(&text, bert_template, (int)cls, (int)sep);
    json_t *post = text.failed ? NULL : json_loads(text.data, 0, NULL);
    tg_buf_fini(&text);
    if (!post || json_object_set_new(root, "post_processor", post)) return tg_fail_nomem(err, 0);
    return TG_OK;
}

static tg_status read_vocab_txt(tg_tokenizer *t, const char *folder, bool *found, tg_error *err) {
    char *path = tg_path_join(folder, "vocab.txt");
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_status st = TG_OK;
    *found = tg_path_exists(path);
    if (*found) {
        json_t *root = json_loads(bert_parts, 0, NULL);
        st = root ? tg_wordpiece_open(&t->model, path, err) : tg_fail_nomem(err, sizeof bert_parts);
        if (st == TG_OK) st = set_case(root, folder, err);
        if (st == TG_OK) st = set_bert(t, root, err);
        if (st == TG_OK) st = read_parts(t, root, err);
        if (st == TG_OK) st = read_added(t, folder, err);
        json_decref(root);
    }
    tg_free(path);
    return st;
}

static const char *text_of(const void *arg, int32_t id) {
    return ((const tg_tokenizer *)arg)->token[id];
}

/* Builds what depends on all parts: id tables, matchers, decoder. */
static tg_status finish(tg_tokenizer *t, tg_error *err) {
    const tg_vocab *v = &t->model->vocab;
    t->size = v->size;
    for (size_t i = 0; i < t->added.n; i++)
        if (t->added.tokens[i].id >= t->size) t->size = t->added.tokens[i].id + 1;
    t->token = tg_alloc_array((size_t)t->size + 1, sizeof *t->token);
    t->special = tg_alloc_array((size_t)t->size + 1, sizeof *t->special);
    if (!t->token || !t->special) return tg_fail_nomem(err, (size_t)t->size * sizeof *t->token);
    for (int32_t id = 0; id < v->size; id++) t->token[id] = v->token[id];
    for (size_t i = 0; i < t->added.n; i++) {
        const tg_added_token *a = &t->added.tokens[i];
        t->token[a->id] = a->content;
        t->special[a->id] = a->special;
    }
    tg_status st = tg_added_build(&t->added, &t->normalizer, err);
    /* A token that is searched in normalised text is shown so, too, as in Hugging Face. */
    for (size_t i = 0; st == TG_OK && i < t->added.normal.n; i++)
        t->token[t->added.normal.patterns[i].token->id] = t->added.normal.patterns[i].text;
    if (st == TG_OK) st = tg_postproc_build(&t->postproc, t->size, text_of, t, err);
    if (st == TG_OK) st = tg_text_decoder_build(&t->decoder, t->size, text_of, t, err);
    return st;
}

/* Calls read with the joined paths when both files are there. */
static tg_status try_pair(tg_tokenizer *t, const char *folder, const char *vocab,
                          const char *merges, bool *found, tg_error *err) {
    char *a = tg_path_join(folder, vocab), *b = tg_path_join(folder, merges);
    tg_status st = a && b ? TG_OK : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK && tg_path_exists(a) && tg_path_exists(b)) {
        *found = true;
        st = read_pair(t, a, b, err);
        if (st == TG_OK) st = read_added(t, folder, err);
    }
    tg_free(a);
    tg_free(b);
    return st;
}

static tg_status try_whole(tg_tokenizer *t, const char *folder, const char *name, bool *found,
                           tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    *found = tg_path_exists(path);
    tg_status st = *found ? read_json(t, path, err) : TG_OK;
    tg_free(path);
    return st;
}

static tg_status read_folder(tg_tokenizer *t, const char *folder, tg_error *err) {
    bool found = false;
    tg_status st = try_whole(t, folder, "tokenizer.json", &found, err);
    if (!found && st == TG_OK) st = try_pair(t, folder, "vocab.json", "merges.txt", &found, err);
    if (!found && st == TG_OK) st = try_pair(t, folder, "encoder.json", "vocab.bpe", &found, err);
    if (!found && st == TG_OK) st = read_vocab_txt(t, folder, &found, err);
    if (!found && st == TG_OK) st = try_whole(t, folder, "spiece.model", &found, err);
    if (st != TG_OK || found) return st;
    if (!tg_path_is_dir(folder))
        return tg_fail(err, TG_NOINPUT, "tokenizer: '%s' is not there", folder);
    return tg_fail(err, TG_NOINPUT,
                   "tokenizer: '%s' holds none of tokenizer.json, vocab.json + merges.txt, "
                   "encoder.json + vocab.bpe, vocab.txt, spiece.model",
                   folder);
}

tg_status tg_tokenizer_open(tg_tokenizer **out, const char *path, tg_error *err) {
    *out = NULL;
    tg_tokenizer *t;
    tg_status st = create(&t, err);
    if (st != TG_OK) return st;
    bool is_file = tg_path_exists(path) && !tg_path_is_dir(path);
    const char *slash = is_file ? strrchr(path, '/') : NULL;
    char *folder = !is_file ? tg_strdup(path)
                   : slash  ? tg_strndup(path, (size_t)(slash - path) + 1)
                            : tg_strdup(".");
    if (!folder) st = tg_fail_nomem(err, strlen(path));
    if (st == TG_OK) st = is_file ? read_json(t, path, err) : read_folder(t, folder, err);
    if (st == TG_OK) st = tg_settings_read(t, folder, err);
    if (st == TG_OK) st = finish(t, err);
    tg_free(folder);
    if (st == TG_OK)
        *out = t;
    else
        tg_tokenizer_destroy(&t);
    return st;
}

tg_status tg_tokenizer_parse(tg_tokenizer **out, const char *json, size_t len, const char *config,
                             tg_error *err) {
    *out = NULL;
    tg_tokenizer *t;
    tg_status st = create(&t, err);
    if (st != TG_OK) return st;
    json_t *root = NULL;
    st = tg_part_parse("tokenizer.json", json, len, false, &root, err);
    if (st == TG_OK) st = read_root(t, root, "tokenizer.json", err);
    json_decref(root);
    if (st == TG_OK) st = tg_settings_parse(t, config, err);
    if (st == TG_OK) st = finish(t, err);
    if (st == TG_OK)
        *out = t;
    else
        tg_tokenizer_destroy(&t);
    return st;
}
