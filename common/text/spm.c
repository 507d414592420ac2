/* The wire format of Protocol Buffers: a key (field number and type), then a number or a length and
 * bytes. Every length is checked against what is left before it is used. */
#include "common/text/spm.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/text/utf8.h"

#include <stdint.h>
#include <string.h>

enum { EXTRA_IDS = 100 };
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5 }; /* types of pieces */
enum { UNIGRAM = 1 };                                      /* model_type */

typedef struct bytes {
    const unsigned char *p;
    size_t len;
} bytes;

typedef struct field {
    uint64_t number;
    uint64_t value; /* varint, fixed32 and fixed64 */
    bytes data;     /* length-delimited */
} field;

static bool take_varint(bytes *in, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->len; shift += 7) {
        unsigned char b = *in->p++;
        in->len--;
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

static bool take_fixed(bytes *in, unsigned n, uint64_t *out) {
    if (in->len < n) return false;
    *out = 0;
    for (unsigned i = 0; i < n; i++) *out |= (uint64_t)in->p[i] << 8 * i;
    in->p += n, in->len -= n;
    return true;
}

/* The next field; false at a fault. Ask only while in->len > 0. */
static bool take_field(bytes *in, field *f) {
    uint64_t key, len;
    if (!take_varint(in, &key)) return false;
    *f = (field){.number = key >> 3};
    switch (key & 7) {
    case 0: return take_varint(in, &f->value);
    case 1: return take_fixed(in, 8, &f->value);
    case 5: return take_fixed(in, 4, &f->value);
    case 2:
        if (!take_varint(in, &len) || len > in->len) return false;
        f->data = (bytes){in->p, (size_t)len};
        in->p += len, in->len -= (size_t)len;
        return true;
    default: return false;
    }
}

typedef struct model {
    const char *name;
    json_t *vocab;
    uint64_t type, unk_id, byte_fallback;
    bytes charsmap;
} model;

static tg_status broken(const model *m, const char *what, tg_error *err) {
    return tg_fail(err, TG_DATA, "%s: not a SentencePiece model: %s", m->name, what);
}

static tg_status read_piece(model *m, bytes in, tg_error *err) {
    field f;
    bytes text = {0};
    uint64_t type = NORMAL;
    float score = 0;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "a piece is cut short", err);
        if (f.number == 1) text = f.data;
        if (f.number == 3) type = f.value;
        uint32_t bits = (uint32_t)f.value;
        if (f.number == 2) memcpy(&score, &bits, sizeof score);
    }
    const char *s = text.len ? (const char *)text.p : "";
    if (memchr(s, 0, text.len) || tg_utf8_valid_prefix(s, text.len) != text.len)
        return broken(m, "a piece is not UTF-8", err);
    if (type != NORMAL && type != UNKNOWN && type != CONTROL && type != UNUSED)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: piece '%.*s' is of type %d, which is not built into this version",
                       m->name, (int)(text.len < 40 ? text.len : 40), s, (int)type);
    json_t *pair = json_pack("[s%,f]", s, text.len, (double)score);
    if (!pair || json_array_append_new(m->vocab, pair)) return tg_fail_nomem(err, text.len);
    return TG_OK;
}

static tg_status read_trainer(model *m, bytes in, tg_error *err) {
    field f;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "trainer_spec is cut short", err);
        if (f.number == 3) m->type = f.value;
        if (f.number == 35) m->byte_fallback = f.value;
        if (f.number == 40) m->unk_id = f.value;
    }
    return TG_OK;
}

static tg_status read_normalizer(model *m, bytes in, tg_error *err) {
    field f;
    while (in.len) {
        if (!take_field(&in, &f)) return broken(m, "normalizer_spec is cut short", err);
        if (f.number == 2) m->charsmap = f.data;
    }
    return TG_OK;
}

static tg_status read_model(model *m, bytes in, tg_error *err) {
    tg_status st = TG_OK;
    field f;
    while (in.len && st == TG_OK) {
        if (!take_field(&in, &f)) return broken(m, "a field is cut short", err);
        if (f.number == 1) st = read_piece(m, f.data, err);
        if (f.number == 2) st = read_trainer(m, f.data, err);
        if (f.number == 3) st = read_normalizer(m, f.data, err);
    }
    return st;
}

static bool piece_is(const model *m, size_t i, const char *text) {
    const char *s = json_string_value(json_array_get(json_array_get(m->vocab, i), 0));
    return s && !strcmp(s, text);
}

static tg_status check_layout(const model *m, tg_error *err) {
    if (m->type != UNIGRAM || m->byte_fallback)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: a SentencePiece model of type %d%s is not built into this version "
                       "(unigram is); convert it to a tokenizer.json",
                       m->name, (int)m->type, m->byte_fallback ? " with byte_fallback" : "");
    if (m->unk_id != 2 || !piece_is(m, 0, "<pad>") || !piece_is(m, 1, "</s>") ||
        !piece_is(m, 2, "<unk>"))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: only T5's order of pieces (<pad>, </s>, <unk> first) is built into "
                       "this version; convert it to a tokenizer.json",
                       m->name);
    return TG_OK;
}

static void put_base64(tg_buf *out, bytes in) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < in.len; i += 3) {
        size_t left = in.len - i;
        uint32_t v = (uint32_t)in.p[i] << 16 | (left > 1 ? (uint32_t)in.p[i + 1] << 8 : 0) |
                     (left > 2 ? in.p[i + 2] : 0);
        tg_buf_putc(out, digits[v >> 18]);
        tg_buf_putc(out, digits[v >> 12 & 63]);
        tg_buf_putc(out, left > 1 ? digits[v >> 6 & 63] : '=');
        tg_buf_putc(out, left > 2 ? digits[v & 63] : '=');
    }
}

/* One special token, which is in the vocabulary. */
static json_t *special(const char *text) {
    return json_pack("{s:s,s:b,s:b,s:b,s:b,s:b}", "content", text, "single_word", 0, "lstrip", 0,
                     "rstrip", 0, "normalized", 0, "special", 1);
}

static bool add_specials(const model *m, json_t *added) {
    static const char *const first[] = {"<pad>", "</s>", "<unk>"};
    bool ok = true;
    for (size_t i = 0; i < 3 && ok; i++) ok = !json_array_append_new(added, special(first[i]));
    for (int i = EXTRA_IDS; i-- > 0 && ok;) {
        char text[24];
        snprintf(text, sizeof text, "<extra_id_%d>", i);
        ok = !json_array_append_new(m->vocab, json_pack("[s,f]", text, 0.0)) &&
             !json_array_append_new(added, special(text));
    }
    return ok;
}

/* What transformers' T5Tokenizer does around the pieces. */
static const char t5_parts[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
    "\"prepend_scheme\":\"always\",\"split\":true}]},\"post_processor\":{\"type\":"
    "\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
    "{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{\"id\":\"A\","
    "\"type_id\":0}},{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}},{\"Sequence\":{\"id\":"
    "\"B\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}],"
    "\"special_tokens\":{\"</s>\":{\"id\":\"</s>\",\"ids\":[1],\"tokens\":[\"</s>\"]}}},"
    "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":"
    "\"always\",\"split\":true}}";

static bool assemble(const model *m, json_t *root) {
    bool ok = add_specials(m, json_object_get(root, "added_tokens"));
    json_t *part = json_pack("{s:s,s:i,s:O,s:b}", "type", "Unigram", "unk_id", 2, "vocab", m->vocab,
                             "byte_fallback", 0);
    ok = ok && part && !json_object_set(root, "model", part);
    json_decref(part);
    if (!ok || !m->charsmap.len) return ok;
    tg_buf text = {0};
    put_base64(&text, m->charsmap);
    part = text.failed
               ? NULL
               : json_pack("{s:s,s:s}", "type", "Precompiled", "precompiled_charsmap", text.data);
    ok = part && !json_object_set(root, "normalizer", part);
    json_decref(part);
    tg_buf_fini(&text);
    return ok;
}

tg_status tg_spm_parse(const char *name, const char *data, size_t len, json_t **root,
                       tg_error *err) {
    /* Defaults of the format: unigram, unk_id 0. */
    model m = {.name = name, .vocab = json_array(), .type = UNIGRAM};
    *root = json_loads(t5_parts, 0, NULL);
    tg_status st = m.vocab && *root ? TG_OK : tg_fail_nomem(err, sizeof t5_parts);
    if (st == TG_OK) st = read_model(&m, (bytes){(const unsigned char *)data, len}, err);
    if (st == TG_OK) st = check_layout(&m, err);
    if (st == TG_OK && !assemble(&m, *root)) st = tg_fail_nomem(err, len);
    json_decref(m.vocab);
    if (st != TG_OK) {
        json_decref(*root);
        *root = NULL;
    }
    return st;
}

tg_status tg_spm_load(const char *path, json_t **root, tg_error *err) {
    tg_buf data = {0};
    *root = NULL;
    tg_status st = tg_file_read(path, (size_t)1 << 30, &data, err);
    if (st == TG_OK) st = tg_spm_parse(path, data.data ? data.data : "", data.len, root, err);
    tg_buf_fini(&data);
    return st;
}
