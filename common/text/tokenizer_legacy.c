/* Folders without a tokenizer.json: GPT-2's pairs of files and BERT's vocab.txt. What the family's own code does around
 * the vocabulary is written as a tokenizer.json would say it. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/bpe.h"
#include "common/text/wordpiece.h"

#include <string.h>

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

/* ---- byte-level pairs ---- */

#define QWEN                                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "              \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r"                                                             \
    "\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

typedef enum family { GPT2, ROBERTA, BLENDERBOT, NEOX, QWEN2 } family;

static family family_of(const tg_tokenizer *t, const tg_side_files *f) {
    static const struct {
        const char *class, *model_type;
        family kind;
    } known[] = {{"Roberta", "roberta", ROBERTA},
                 {"Bart", "bart", ROBERTA},
                 {"Blenderbot", "blenderbot", BLENDERBOT},
                 {"GPTNeoX", "gpt_neox", NEOX},
                 {"Qwen2", "qwen2", QWEN2},
                 {"Qwen2", "qwen3", QWEN2}};
    const char *class = json_string_value(json_object_get(f->tokenizer, "tokenizer_class"));
    const char *type = json_string_value(json_object_get(f->model, "model_type"));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (class ? !strncmp(class, known[i].class, strlen(known[i].class))
                  : type && !strcmp(type, known[i].model_type))
            return known[i].kind;
    /* No file names a family: RoBERTa's vocabulary is known by these two tokens. */
    const tg_vocab *v = &t->model->vocab;
    bool pair = tg_vocab_id(v, "<s>", 3) >= 0 && tg_vocab_id(v, "</s>", 4) >= 0;
    return !class && !type && pair ? ROBERTA : GPT2;
}

static tg_status add_special(tg_tokenizer *t, const char *text, bool lstrip, tg_error *err) {
    tg_added_token token = {
        .content = (char *)(uintptr_t)text, .len = strlen(text), .special = true, .lstrip = lstrip};
    const tg_vocab *v = &t->model->vocab;
    return tg_vocab_id(v, text, token.len) >= 0 ? tg_added_add(&t->added, v, &token, err) : TG_OK;
}

static const char *role_of(const tg_side_files *f, const char *key, const char *standard) {
    const json_t *value = json_object_get(f->tokenizer, key);
    if (!value) value = json_object_get(f->special, key);
    if (!value) return standard;
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_string_value(value);
}

/* The token's id, as a template's special_tokens say it; -1: the vocabulary does not have it. */
static void put_entry(const tg_tokenizer *t, tg_buf *out, const char *name, const char *comma) {
    tg_buf_puts(out, comma);
    tg_part_write_str(out, name, strlen(name));
    tg_buf_puts(out, ":{\"id\":");
    tg_part_write_str(out, name, strlen(name));
    tg_buf_printf(out, ",\"ids\":[%d],\"tokens\":[",
                  (int)tg_vocab_id(&t->model->vocab, name, strlen(name)));
    tg_part_write_str(out, name, strlen(name));
    tg_buf_puts(out, "]}");
}

static void put_special(tg_buf *out, const char *name, int type) {
    tg_buf_puts(out, "{\"SpecialToken\":{\"id\":");
    tg_part_write_str(out, name, strlen(name));
    tg_buf_printf(out, ",\"type_id\":%d}}", type);
}

static void put_sequence(tg_buf *out, const char *bos, const char *eos, int which) {
    if (bos) put_special(out, bos, which), tg_buf_puts(out, ",");
    tg_buf_printf(out, "{\"Sequence\":{\"id\":\"%c\",\"type_id\":%d}}", 'A' + which, which);
    if (eos) tg_buf_puts(out, ","), put_special(out, eos, which);
}

/* add_bos_token and add_eos_token of the config (OPT has the first). */
static void put_template(const tg_tokenizer *t, const tg_side_files *f, tg_buf *out) {
    const char *standard = "<|endoftext|>";
    const char *bos = role_of(f, "bos_token", standard), *eos = role_of(f, "eos_token", standard);
    if (!json_is_true(json_object_get(f->tokenizer, "add_bos_token"))) bos = NULL;
    if (!json_is_true(json_object_get(f->tokenizer, "add_eos_token"))) eos = NULL;
    if (!bos && !eos) {
        tg_buf_puts(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false,"
                         "\"use_regex\":true}");
        return;
    }
    tg_buf_puts(out, "{\"type\":\"TemplateProcessing\",\"single\":[");
    put_sequence(out, bos, eos, 0);
    tg_buf_puts(out, "],\"pair\":[");
    put_sequence(out, bos, eos, 0);
    tg_buf_puts(out, ",");
    put_sequence(out, bos, eos, 1);
    tg_buf_puts(out, "],\"special_tokens\":{");
    if (bos) put_entry(t, out, bos, "");
    if (eos && (!bos || strcmp(bos, eos))) put_entry(t, out, eos, bos ? "," : "");
    tg_buf_puts(out, "}}");
}

static tg_status put_post_processor(const tg_tokenizer *t, family kind, const tg_side_files *f,
                                    bool prefix, tg_buf *out, tg_error *err) {
    if (kind != ROBERTA) {
        put_template(t, f, out);
        return TG_OK;
    }
    const char *cls = role_of(f, "cls_token", "<s>"), *sep = role_of(f, "sep_token", "</s>");
    int32_t cls_id = cls ? tg_vocab_id(&t->model->vocab, cls, strlen(cls)) : -1;
    int32_t sep_id = sep ? tg_vocab_id(&t->model->vocab, sep, strlen(sep)) : -1;
    if (cls_id < 0 || sep_id < 0)
        return tg_fail(err, TG_DATA, "vocab.json: '%.40s' and '%.40s' are not both in it",
                       cls ? cls : "<s>", sep ? sep : "</s>");
    const json_t *trim = json_object_get(f->tokenizer, "trim_offsets");
    tg_buf_puts(out, "{\"type\":\"RobertaProcessing\",\"sep\":[");
    tg_part_write_str(out, sep, strlen(sep));
    tg_buf_printf(out, ",%d],\"cls\":[", (int)sep_id);
    tg_part_write_str(out, cls, strlen(cls));
    tg_buf_printf(out, ",%d],\"trim_offsets\":%s,\"add_prefix_space\":%s}", (int)cls_id,
                  json_is_false(trim) ? "false" : "true", prefix ? "true" : "false");
    return TG_OK;
}

static tg_status put_parts(const tg_tokenizer *t, family kind, const tg_side_files *f, tg_buf *out,
                           tg_error *err) {
    const json_t *said = json_object_get(f->tokenizer, "add_prefix_space");
    bool prefix = json_is_boolean(said) ? json_is_true(said) : kind == BLENDERBOT;
    tg_buf_printf(out, "{\"normalizer\":%s,\"pre_tokenizer\":",
                  kind == NEOX || kind == QWEN2 ? "{\"type\":\"NFC\"}" : "null");
    if (kind == QWEN2)
        tg_buf_puts(out,
                    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                    "{\"Regex\":\"" QWEN "\"},\"behavior\":\"Isolated\",\"invert\":false},");
    tg_buf_printf(out,
                  "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
                  "\"use_regex\":%s}%s,\"post_processor\":",
                  prefix ? "true" : "false", kind == QWEN2 ? "false" : "true",
                  kind == QWEN2 ? "]}" : "");
    tg_status st = put_post_processor(t, kind, f, prefix, out, err);
    tg_buf_puts(out, ",\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                     "\"trim_offsets\":true,\"use_regex\":true}}");
    return st == TG_OK && out->failed ? tg_fail_nomem(err, out->len) : st;
}

tg_status tg_legacy_pair(tg_tokenizer *t, const char *folder, const char *vocab, const char *merges,
                         const tg_side_files *f, tg_error *err) {
    tg_status st = tg_bpe_open(&t->model, vocab, merges, err);
    if (st != TG_OK) return st;
    family kind = family_of(t, f);
    tg_buf text = {0};
    json_t *root = NULL;
    st = put_parts(t, kind, f, &text, err);
    if (st == TG_OK) st = tg_part_parse(vocab, text.data, text.len, false, &root, err);
    const char *mask = role_of(f, "mask_token", "<mask>");
    if (st == TG_OK && (kind == ROBERTA || kind == BLENDERBOT) && mask)
        st = add_special(t, mask, kind == BLENDERBOT, err);
    if (st == TG_OK) st = tg_tokenizer_read_parts(t, root, err);
    if (st == TG_OK) st = read_added(t, folder, err);
    json_decref(root);
    tg_buf_fini(&text);
    return st;
}

/* ---- vocab.txt ---- */

static const char bert_parts[] =
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
    "true,"
    "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}";

/* do_lower_case and the like of tokenizer_config.json. */
static tg_status set_case(json_t *root, const tg_side_files *f, tg_error *err) {
    json_t *norm = json_object_get(root, "normalizer");
    static const char *const keys[][2] = {{"do_lower_case", "lowercase"},
                                          {"strip_accents", "strip_accents"},
                                          {"tokenize_chinese_chars", "handle_chinese_chars"}};
    for (size_t i = 0; i < 3; i++) {
        json_t *value = json_object_get(f->tokenizer, keys[i][0]);
        if (json_is_boolean(value) && json_object_set(norm, keys[i][1], value))
            return tg_fail_nomem(err, 0);
    }
    return TG_OK;
}

#define SPECIAL(name, type) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define SEQUENCE(name, type) "{\"Sequence\":{\"id\":\"" name "\",\"type_id\":" type "}}"
#define TOKEN(name) "\"" name "\":{\"id\":\"" name "\",\"ids\":[%d],\"tokens\":[\"" name "\"]}"
#define FIRST SPECIAL("[CLS]", "0") "," SEQUENCE("A", "0") "," SPECIAL("[SEP]", "0")
#define SECOND SEQUENCE("B", "1") "," SPECIAL("[SEP]", "1")
#define TOKENS TOKEN("[CLS]") "," TOKEN("[SEP]")
static const char bert_template[] =
    "{\"type\":\"TemplateProcessing\",\"single\":[" FIRST "],\"pair\":[" FIRST "," SECOND
    "],\"special_tokens\":{" TOKENS "}}";

/* [CLS] text [SEP]; the five special tokens are found in text. */
static tg_status set_bert(tg_tokenizer *t, json_t *root, tg_error *err) {
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    const tg_vocab *v = &t->model->vocab;
    int32_t cls = tg_vocab_id(v, "[CLS]", 5), sep = tg_vocab_id(v, "[SEP]", 5);
    if (cls < 0 || sep < 0)
        return tg_fail(err, TG_DATA, "vocab.txt: [CLS] and [SEP] are not both in it");
    tg_status st = TG_OK;
    for (size_t i = 0; i < 5 && st == TG_OK; i++) st = add_special(t, names[i], false, err);
    if (st != TG_OK) return st;
    tg_buf text = {0};
    tg_buf_printf(&text, bert_template, (int)cls, (int)sep);
    json_t *post = text.failed ? NULL : json_loads(text.data, 0, NULL);
    tg_buf_fini(&text);
    if (!post || json_object_set_new(root, "post_processor", post)) return tg_fail_nomem(err, 0);
    return TG_OK;
}

tg_status tg_legacy_vocab_txt(tg_tokenizer *t, const char *folder, const char *path,
                              const tg_side_files *f, tg_error *err) {
    json_t *root = json_loads(bert_parts, 0, NULL);
    tg_status st =
        root ? tg_wordpiece_open(&t->model, path, err) : tg_fail_nomem(err, sizeof bert_parts);
    if (st == TG_OK) st = set_case(root, f, err);
    if (st == TG_OK) st = set_bert(t, root, err);
    if (st == TG_OK) st = tg_tokenizer_read_parts(t, root, err);
    if (st == TG_OK) st = read_added(t, folder, err);
    json_decref(root);
    return st;
}
