/* From the pieces of a model file to the tokenizer.json of its family. Written as text, then read by jansson, so that the
 * parts look here as they do in such a file. */
#include "common/text/spm.h"

#include "common/base/file.h"
#include "common/text/spm_impl.h"

#include <string.h>

static const struct {
    const char *class, *model_type;
    tg_spm_family family;
} families[] = {{"T5", "t5", TG_SPM_T5},
                {"MT5", "mt5", TG_SPM_T5},
                {"Albert", "albert", TG_SPM_ALBERT},
                {"XLNet", "xlnet", TG_SPM_XLNET},
                {"Llama", "llama", TG_SPM_LLAMA},
                {"CodeLlama", "mistral", TG_SPM_LLAMA},
                {"Gemma", "gemma", TG_SPM_GEMMA},
                {"MBartTokenizer", "mbart", TG_SPM_MBART},
                {"XLMRoberta", "xlm-roberta", TG_SPM_XLMR},
                {"Pegasus", "pegasus", TG_SPM_PEGASUS},
                {"Marian", "marian", TG_SPM_PLAIN}};

/* ---- which family ---- */

static tg_status find_family(const tg_spm *m, const json_t *config, const char *model_type,
                             tg_spm_family *out, tg_error *err) {
    const char *class = json_string_value(json_object_get(config, "tokenizer_class"));
    *out = TG_SPM_PLAIN;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *prefix = families[i].class;
        if (class ? !strncmp(class, prefix, strlen(prefix))
                  : model_type && !strcmp(model_type, families[i].model_type)) {
            *out = families[i].family;
            return TG_OK;
        }
    }
    if (class && strncmp(class, "PreTrained", 10) && strncmp(class, "TokenizersBackend", 17))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: the SentencePiece model of a %.40s is not built into this version; "
                       "convert it to a tokenizer.json",
                       m->name, class);
    if (m->model_type == TG_SPM_UNIGRAM && tg_spm_piece_is(m, 0, "<pad>") &&
        tg_spm_piece_is(m, 1, "</s>") && tg_spm_piece_is(m, 2, "<unk>"))
        *out = TG_SPM_T5;
    return TG_OK;
}

static tg_status check_type(const tg_spm *m, tg_spm_family f, tg_error *err) {
    bool bpe = m->model_type == TG_SPM_BPE, known = bpe || m->model_type == TG_SPM_UNIGRAM;
    bool wants_bpe = f == TG_SPM_LLAMA || f == TG_SPM_GEMMA;
    if (known && (f == TG_SPM_PLAIN || bpe == wants_bpe)) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: a SentencePiece model of type %d is not built into this version here "
                   "(1: unigram, 2: BPE; this family has %s)",
                   m->name, (int)m->model_type,
                   f == TG_SPM_PLAIN ? "either"
                   : wants_bpe       ? "BPE"
                                     : "unigram");
}

/* ---- normalizers, pre-tokenizers, decoders ---- */

static void put_base64(tg_buf *out, const unsigned char *p, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        tg_buf_putc(out, digits[v >> 18]);
        tg_buf_putc(out, digits[v >> 12 & 63]);
        tg_buf_putc(out, left > 1 ? digits[v >> 6 & 63] : '=');
        tg_buf_putc(out, left > 2 ? digits[v & 63] : '=');
    }
}

static void put_charsmap(const tg_spm_maker *k) {
    tg_buf_puts(k->out, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    put_base64(k->out, k->m->charsmap, k->m->charsmap_len);
    tg_buf_puts(k->out, "\"}");
}

#define REPLACE(kind, from, to)                                                                    \
    "{\"type\":\"Replace\",\"pattern\":{\"" kind "\":\"" from "\"},\"content\":\"" to "\"}"

static void put_normalizer(const tg_spm_maker *k) {
    bool map = k->m->charsmap_len > 0;
    tg_buf_puts(k->out, ",\n\"normalizer\":");
    switch (k->family) {
    case TG_SPM_GEMMA: tg_buf_puts(k->out, REPLACE("String", " ", TG_SPM_MARK)); return;
    case TG_SPM_LLAMA:
    case TG_SPM_MBART: tg_buf_puts(k->out, "null"); return;
    case TG_SPM_ALBERT:
    case TG_SPM_XLNET: {
        bool accents = k->family == TG_SPM_ALBERT && tg_spm_flag(k, "keep_accents", false);
        bool lower = tg_spm_flag(k, "do_lower_case", k->family == TG_SPM_ALBERT);
        tg_buf_puts(k->out, "{\"type\":\"Sequence\",\"normalizers\":[" REPLACE(
                                "String", "``", "\\\"") "," REPLACE("String", "''", "\\\""));
        if (!accents) tg_buf_puts(k->out, ",{\"type\":\"NFKD\"},{\"type\":\"StripAccents\"}");
        if (lower) tg_buf_puts(k->out, ",{\"type\":\"Lowercase\"}");
        if (map) tg_buf_puts(k->out, ","), put_charsmap(k);
        tg_buf_puts(k->out, "]}");
        return;
    }
    case TG_SPM_PEGASUS:
        tg_buf_puts(k->out, "{\"type\":\"Sequence\",\"normalizers\":[");
        if (map)
            put_charsmap(k);
        else
            tg_buf_puts(k->out, REPLACE("Regex", "\\\\n", " "));
        tg_buf_puts(k->out, "," REPLACE("Regex", " {2,}", " ") "]}");
        return;
    default:
        if (map)
            put_charsmap(k);
        else
            tg_buf_puts(k->out, "null");
    }
}

static void put_metaspace(const tg_spm_maker *k, const char *scheme, bool split) {
    tg_buf_printf(k->out,
                  "{\"type\":\"Metaspace\",\"replacement\":\"" TG_SPM_MARK
                  "\",\"prepend_scheme\":\"%s\",\"split\":%s}",
                  scheme, split ? "true" : "false");
}

static void put_pre_tokenizer(const tg_spm_maker *k) {
    tg_buf_puts(k->out, ",\n\"pre_tokenizer\":");
    bool prefix = tg_spm_flag(k, "add_prefix_space", true);
    const char *llama = !prefix ? "never" : tg_spm_flag(k, "legacy", false) ? "always" : "first";
    switch (k->family) {
    case TG_SPM_LLAMA: put_metaspace(k, llama, false); return;
    case TG_SPM_GEMMA:
        tg_buf_puts(k->out, "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":"
                            "\"MergedWithPrevious\",\"invert\":false}");
        return;
    case TG_SPM_PEGASUS: put_metaspace(k, "always", true); return;
    default:
        tg_buf_puts(k->out, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                            "\"WhitespaceSplit\"},");
        put_metaspace(k, k->family == TG_SPM_ALBERT && !prefix ? "never" : "always", true);
        tg_buf_puts(k->out, "]}");
    }
}

static void put_decoder(const tg_spm_maker *k) {
    bool prefix = tg_spm_flag(k, "add_prefix_space", true);
    tg_buf_puts(k->out, ",\n\"decoder\":");
    if (k->family != TG_SPM_LLAMA && k->family != TG_SPM_GEMMA && k->family != TG_SPM_PLAIN) {
        put_metaspace(k, k->family == TG_SPM_ALBERT && !prefix ? "never" : "always", true);
        return;
    }
    bool strip = k->family == TG_SPM_PLAIN ? k->m->add_dummy_prefix && !k->m->whitespace_as_suffix
                                           : k->family == TG_SPM_LLAMA && prefix;
    tg_buf_printf(
        k->out,
        "{\"type\":\"Sequence\",\"decoders\":[" REPLACE(
            "String", TG_SPM_MARK, " ") ","
                                        "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}%s]}",
        strip ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
}

/* ---- special tokens ---- */

static bool in_vocab(const tg_spm_maker *k, const char *name) {
    if (k->family == TG_SPM_T5 && !strncmp(name, "<extra_id_", 10)) return true;
    if (k->family == TG_SPM_MBART || k->family == TG_SPM_XLMR || k->family == TG_SPM_PEGASUS)
        return true;
    for (size_t i = 0; i < k->m->n; i++)
        if (tg_spm_piece_is(k->m, i, name)) return true;
    return false;
}

static void add_token(tg_spm_maker *k, const char *text, size_t len, bool special, bool lstrip) {
    uint64_t have;
    if (tg_map_get(&k->added, text, len, &have)) return;
    if (!tg_map_set(&k->added, text, len, 1)) k->out->failed = true;
    tg_buf_puts(k->out, k->added.count > 1 ? ",\n" : "\n");
    tg_buf_puts(k->out, "{\"content\":");
    tg_part_write_str(k->out, text, len);
    tg_buf_printf(k->out,
                  ",\"single_word\":false,\"lstrip\":%s,\"rstrip\":false,\"normalized\":false,"
                  "\"special\":%s}",
                  lstrip ? "true" : "false", special ? "true" : "false");
}

static const struct {
    const char *key;
    const char *names[TG_SPM_FAMILIES]; /* by family */
} roles[] = {
    {"bos_token",
     {[TG_SPM_ALBERT] = "[CLS]",
      [TG_SPM_XLNET] = "<s>",
      [TG_SPM_LLAMA] = "<s>",
      [TG_SPM_GEMMA] = "<bos>",
      [TG_SPM_MBART] = "<s>",
      [TG_SPM_XLMR] = "<s>"}},
    {"eos_token",
     {[TG_SPM_T5] = "</s>",
      [TG_SPM_ALBERT] = "[SEP]",
      [TG_SPM_XLNET] = "</s>",
      [TG_SPM_LLAMA] = "</s>",
      [TG_SPM_GEMMA] = "<eos>",
      [TG_SPM_MBART] = "</s>",
      [TG_SPM_XLMR] = "</s>",
      [TG_SPM_PEGASUS] = "</s>"}},
    {"unk_token",
     {[TG_SPM_T5] = "<unk>",
      [TG_SPM_ALBERT] = "<unk>",
      [TG_SPM_XLNET] = "<unk>",
      [TG_SPM_LLAMA] = "<unk>",
      [TG_SPM_GEMMA] = "<unk>",
      [TG_SPM_MBART] = "<unk>",
      [TG_SPM_XLMR] = "<unk>",
      [TG_SPM_PEGASUS] = "<unk>"}},
    {"sep_token",
     {[TG_SPM_ALBERT] = "[SEP]",
      [TG_SPM_XLNET] = "<sep>",
      [TG_SPM_MBART] = "</s>",
      [TG_SPM_XLMR] = "</s>"}},
    {"pad_token",
     {[TG_SPM_T5] = "<pad>",
      [TG_SPM_ALBERT] = "<pad>",
      [TG_SPM_XLNET] = "<pad>",
      [TG_SPM_GEMMA] = "<pad>",
      [TG_SPM_MBART] = "<pad>",
      [TG_SPM_XLMR] = "<pad>",
      [TG_SPM_PEGASUS] = "<pad>"}},
    {"cls_token",
     {[TG_SPM_ALBERT] = "[CLS]",
      [TG_SPM_XLNET] = "<cls>",
      [TG_SPM_MBART] = "<s>",
      [TG_SPM_XLMR] = "<s>"}},
    {"mask_token",
     {[TG_SPM_ALBERT] = "[MASK]",
      [TG_SPM_XLNET] = "<mask>",
      [TG_SPM_GEMMA] = "<mask>",
      [TG_SPM_MBART] = "<mask>",
      [TG_SPM_XLMR] = "<mask>",
      [TG_SPM_PEGASUS] = "<mask_2>"}},
};

static void put_numbered_added(tg_spm_maker *k, const char *pattern, int first, int last) {
    for (int i = first; i < last; i++) {
        char text[32];
        snprintf(text, sizeof text, pattern, i);
        add_token(k, text, strlen(text), true, false);
    }
}

static void put_added(tg_spm_maker *k) {
    tg_buf_puts(k->out, ",\n\"added_tokens\":[");
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const char *name = tg_spm_name(k, roles[i].key, roles[i].names[k->family]);
        bool mask = !strcmp(roles[i].key, "mask_token");
        if (name && in_vocab(k, name))
            add_token(k, name, strlen(name), true, mask && k->family == TG_SPM_MBART);
    }
    if (k->family == TG_SPM_T5)
        put_numbered_added(k, "<extra_id_%d>", 0, tg_spm_count(k, "extra_ids", 100));
    if (k->family == TG_SPM_PEGASUS) {
        const char *sent = tg_spm_name(k, "mask_token_sent", "<mask_1>");
        if (sent) add_token(k, sent, strlen(sent), true, false);
        put_numbered_added(k, "<unk_%d>", 2, tg_spm_pegasus_offset(k));
    }
    for (size_t i = 0; k->family == TG_SPM_MBART && i < TG_SPM_LANGUAGES; i++)
        add_token(k, tg_spm_languages[i], strlen(tg_spm_languages[i]), true, false);
    /* A list in the config stands for those of the model. */
    bool listed = json_is_array(json_object_get(k->config, "additional_special_tokens"));
    for (size_t i = 0; !listed && i < k->m->n; i++) {
        const tg_spm_piece *p = &k->m->pieces[i];
        if (p->type == TG_SPM_CONTROL || p->type == TG_SPM_USER_DEFINED)
            add_token(k, p->text, p->len, p->type == TG_SPM_CONTROL, false);
    }
    tg_buf_puts(k->out, "\n]");
}

/* ---- templates ---- */

/* "<s>:0 $A:0 …" as Hugging Face writes templates for short; names hold no spaces. */
static void put_template(const tg_spm_maker *k, const char *key, const char *pieces) {
    tg_buf_printf(k->out, "\"%s\":[", key);
    for (const char *p = pieces; *p;) {
        size_t n = strcspn(p, " "), name = n;
        char type = '0';
        if (n > 2 && p[n - 2] == ':') type = p[n - 1], name = n - 2;
        if (p != pieces) tg_buf_putc(k->out, ',');
        bool text = *p == '$';
        tg_buf_puts(k->out, text ? "{\"Sequence\":{\"id\":" : "{\"SpecialToken\":{\"id\":");
        tg_part_write_str(k->out, text ? p + 1 : p, text ? name - 1 : name);
        tg_buf_printf(k->out, ",\"type_id\":%c}}", type);
        p += n + (p[n] == ' ');
    }
    tg_buf_puts(k->out, "],");
}

static void put_post_processor(const tg_spm_maker *k) {
    const char *bos = tg_spm_name(k, "bos_token", roles[0].names[k->family]);
    const char *eos = tg_spm_name(k, "eos_token", roles[1].names[k->family]);
    const char *lang = tg_spm_name(k, "src_lang", "en_XX");
    if (!bos) bos = "";
    if (!eos) eos = "</s>";
    char single[512], pair[1024];
    bool add_bos = *bos && tg_spm_flag(k, "add_bos_token", false);
    bool add_eos = tg_spm_flag(k, "add_eos_token", false);
    switch (k->family) {
    case TG_SPM_ALBERT:
        snprintf(single, sizeof single, "[CLS] $A [SEP]");
        snprintf(pair, sizeof pair, "[CLS] $A [SEP] $B:1 [SEP]:1");
        break;
    case TG_SPM_XLNET:
        snprintf(single, sizeof single, "$A <sep> <cls>:2");
        snprintf(pair, sizeof pair, "$A <sep> $B:1 <sep>:1 <cls>:2");
        break;
    case TG_SPM_MBART:
        snprintf(single, sizeof single, "$A %.60s %.60s", eos, lang ? lang : "en_XX");
        snprintf(pair, sizeof pair, "$A $B %.60s %.60s", eos, lang ? lang : "en_XX");
        break;
    case TG_SPM_XLMR:
        snprintf(single, sizeof single, "%.60s $A %.60s", bos, eos);
        snprintf(pair, sizeof pair, "%.60s $A %.60s %.60s $B %.60s", bos, eos, eos, eos);
        break;
    case TG_SPM_T5:
        snprintf(single, sizeof single, "$A </s>");
        snprintf(pair, sizeof pair, "$A </s> $B </s>");
        break;
    case TG_SPM_PEGASUS:
        snprintf(single, sizeof single, "$A %.60s", eos);
        snprintf(pair, sizeof pair, "$A $B %.60s", eos);
        break;
    default:
        snprintf(single, sizeof single, "%.60s%s$A%s%.60s", add_bos ? bos : "", add_bos ? " " : "",
                 add_eos ? " " : "", add_eos ? eos : "");
        snprintf(pair, sizeof pair, "%s%s%.60s%s $B:1%s%.60s%s", single, add_bos ? " " : "",
                 add_bos ? bos : "", add_bos ? ":1" : "", add_eos ? " " : "", add_eos ? eos : "",
                 add_eos ? ":1" : "");
    }
    tg_buf_puts(k->out, ",\n\"post_processor\":{\"type\":\"TemplateProcessing\",");
    put_template(k, "single", single);
    put_template(k, "pair", pair);
    tg_buf_puts(k->out, "\"special_tokens\":{}}");
}

/* The ids of the special tokens in the template, when the vocabulary is there. */
static tg_status fill_template(json_t *root, tg_error *err) {
    json_t *post = json_object_get(root, "post_processor");
    json_t *tokens = json_object_get(post, "special_tokens");
    const json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    const json_t *pair = json_object_get(post, "pair");
    for (size_t i = 0; i < json_array_size(pair); i++) {
        const char *name = json_string_value(
            json_object_get(json_object_get(json_array_get(pair, i), "SpecialToken"), "id"));
        if (!name || json_object_get(tokens, name)) continue;
        json_int_t id = -1;
        const json_t *value = json_object_get(vocab, name);
        if (value) id = json_integer_value(value);
        for (size_t k = 0; id < 0 && k < json_array_size(vocab); k++) {
            const char *text = json_string_value(json_array_get(json_array_get(vocab, k), 0));
            if (text && !strcmp(text, name)) id = (json_int_t)k;
        }
        if (id < 0)
            return tg_fail(err, TG_DATA,
                           "SentencePiece model: token '%.40s' of the template is "
                           "not in its vocabulary",
                           name);
        json_t *entry = json_pack("{s:s,s:[I],s:[s]}", "id", name, "ids", id, "tokens", name);
        if (!entry || json_object_set_new(tokens, name, entry)) return tg_fail_nomem(err, 0);
    }
    return TG_OK;
}

/* ---- SentencePiece itself ---- */

static void put_bool(tg_buf *out, const char *key, bool value) {
    tg_buf_printf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

static void put_symbols(const tg_spm_maker *k) {
    const char *comma = "";
    tg_buf_puts(k->out, ",\"user_defined\":[");
    for (size_t i = 0; i < k->m->n; i++) {
        if (k->m->pieces[i].type != TG_SPM_USER_DEFINED) continue;
        tg_buf_puts(k->out, comma);
        tg_part_write_str(k->out, k->m->pieces[i].text, k->m->pieces[i].len);
        comma = ",";
    }
    tg_buf_puts(k->out, "]");
}

static tg_status put_plain(tg_spm_maker *k, tg_error *err) {
    const tg_spm *m = k->m;
    tg_status st = TG_OK;
    if (m->model_type == TG_SPM_BPE) {
        char unk[256] = "";
        if (m->unk_id >= 0 && m->pieces[m->unk_id].len < sizeof unk)
            memcpy(unk, m->pieces[m->unk_id].text, m->pieces[m->unk_id].len);
        st = tg_spm_put_bpe(k, *unk ? unk : NULL, err);
        put_symbols(k);
    } else {
        tg_buf_puts(k->out, "\"model\":{\"type\":\"Unigram\",\"vocab\":[");
        tg_spm_put_pieces(k, 0);
        tg_buf_puts(k->out, "\n],\"unk_id\":");
        tg_buf_printf(k->out, m->unk_id < 0 ? "null" : "%d", (int)m->unk_id);
        put_bool(k->out, "byte_fallback", m->byte_fallback);
        tg_buf_puts(k->out, ",\"piece_types\":[");
        for (size_t i = 0; i < m->n; i++)
            tg_buf_printf(k->out, i ? ",%d" : "%d", (int)m->pieces[i].type);
        tg_buf_puts(k->out, "]");
    }
    tg_buf_puts(k->out,
                "},\n\"normalizer\":{\"type\":\"SentencePiece\",\"precompiled_charsmap\":\"");
    put_base64(k->out, m->charsmap, m->charsmap_len);
    tg_buf_puts(k->out, "\"");
    put_bool(k->out, "add_dummy_prefix", m->add_dummy_prefix);
    put_bool(k->out, "remove_extra_whitespaces", m->remove_extra_whitespaces);
    put_bool(k->out, "escape_whitespaces", m->escape_whitespaces);
    put_bool(k->out, "whitespace_as_suffix", m->whitespace_as_suffix);
    put_symbols(k);
    tg_buf_puts(k->out, "},\n\"pre_tokenizer\":null,\"post_processor\":null,\"added_tokens\":[]");
    put_decoder(k);
    return st;
}

/* ---- the whole ---- */

static tg_status put_root(tg_spm_maker *k, tg_error *err) {
    tg_status st = TG_OK;
    tg_buf_puts(k->out, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n");
    if (k->family == TG_SPM_PLAIN) {
        st = put_plain(k, err);
    } else {
        if (k->family == TG_SPM_LLAMA || k->family == TG_SPM_GEMMA) {
            st = tg_spm_put_bpe(
                k, k->family == TG_SPM_GEMMA ? tg_spm_name(k, "unk_token", "<unk>") : NULL, err);
        } else {
            tg_spm_put_unigram(k);
        }
        tg_buf_puts(k->out, "}");
        put_added(k);
        put_normalizer(k);
        put_pre_tokenizer(k);
        put_post_processor(k);
        put_decoder(k);
    }
    tg_buf_puts(k->out, "}");
    return st == TG_OK && k->out->failed ? tg_fail_nomem(err, k->out->len) : st;
}

tg_status tg_spm_parse(const char *name, const char *data, size_t len, const json_t *config,
                       const char *model_type, json_t **root, tg_error *err) {
    tg_spm m;
    tg_buf text = {0};
    tg_spm_maker k = {.m = &m, .config = config, .out = &text};
    *root = NULL;
    tg_status st = tg_spm_read(&m, name, data, len, err);
    if (st == TG_OK) st = find_family(&m, config, model_type, &k.family, err);
    if (st == TG_OK) st = check_type(&m, k.family, err);
    if (st == TG_OK) st = put_root(&k, err);
    if (st == TG_OK) {
        json_error_t why;
        *root = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &why);
        if (!*root) st = tg_fail(err, TG_DATA, "%s: not usable: %s", name, why.text);
    }
    if (st == TG_OK && k.family != TG_SPM_PLAIN) st = fill_template(*root, err);
    if (st != TG_OK) {
        json_decref(*root);
        *root = NULL;
    }
    tg_map_fini(&k.added);
    tg_buf_fini(&text);
    tg_spm_fini(&m);
    return st;
}

tg_status tg_spm_load(const char *path, const json_t *config, const char *model_type, json_t **root,
                      tg_buf *data, tg_error *err) {
    tg_buf own = {0};
    if (!data) data = &own;
    *root = NULL;
    tg_status st = tg_file_read(path, (size_t)1 << 30, data, err);
    if (st == TG_OK)
        st = tg_spm_parse(path, data->data ? data->data : "", data->len, config, model_type, root,
                          err);
    tg_buf_fini(&own);
    return st;
}
