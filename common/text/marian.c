#include "common/text/marian.h"

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/text/spm.h"
#include "common/text/spm_read.h"
#include "common/text/tokenizer_impl.h"
#include "common/text/unigram.h"

#include <string.h>

#define MARK "\xE2\x96\x81"

/* The name of a token as the config has it. */
static const char *name_of(const json_t *config, const char *key, const char *standard) {
    const json_t *value = json_object_get(config, key);
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_is_string(value) ? json_string_value(value) : standard;
}

/* ---- the vocabulary ---- */

/* Texts of vocab.json in the order of their ids, which have no gaps (tg_free). */
static tg_status by_id(const json_t *vocab, const char ***out, tg_error *err) {
    const size_t n = json_object_size(vocab);
    const char **texts = *out = tg_alloc_array(n + 1, sizeof *texts), *text;
    if (!texts) return tg_fail_nomem(err, n * sizeof *texts);
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, text, value) {
        const json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || (size_t)id >= n || texts[id])
            return tg_fail(err, TG_DATA,
                           "vocab.json: '%.40s': expected an id of its own below %zu, found %lld",
                           text, n, (long long)id);
        texts[id] = text;
    }
    return TG_OK;
}

typedef struct maker {
    const json_t *pieces, *types; /* of the SentencePiece model: [text, score], tg_spm_type */
    tg_map place;                 /* text -> its place among the pieces */
    json_t *vocab, *kinds;        /* the same in the order of vocab.json */
} maker;

static bool put(maker *m, const char *text, double score, json_int_t type) {
    json_t *entry = json_pack("[s,f]", text, score);
    return entry && !json_array_append_new(m->vocab, entry) &&
           !json_array_append_new(m->kinds, json_integer(type));
}

/* A token that is no piece of this language is never found in a text. */
static bool put_token(maker *m, const char *text, const char *unk) {
    uint64_t at;
    if (!strcmp(text, unk)) return put(m, text, 0, TG_SPM_UNKNOWN);
    if (!tg_map_get(&m->place, text, strlen(text), &at)) return put(m, text, 0, TG_SPM_UNUSED);
    const json_int_t type = json_integer_value(json_array_get(m->types, at));
    return put(m, text, json_number_value(json_array_get(json_array_get(m->pieces, at), 1)),
               type == TG_SPM_UNKNOWN ? TG_SPM_UNUSED : type);
}

static bool index_pieces(maker *m) {
    for (size_t i = 0; i < json_array_size(m->pieces); i++) {
        const json_t *text = json_array_get(json_array_get(m->pieces, i), 0);
        if (!tg_map_set(&m->place, json_string_value(text), json_string_length(text), i))
            return false;
    }
    return true;
}

/* Pieces that vocab.json lacks come behind its tokens: texts are cut there too. */
static bool put_others(maker *m, const json_t *vocab) {
    for (size_t i = 0; i < json_array_size(m->pieces); i++) {
        const json_t *piece = json_array_get(m->pieces, i);
        const char *text = json_string_value(json_array_get(piece, 0));
        const json_int_t type = json_integer_value(json_array_get(m->types, i));
        const bool found = type == TG_SPM_NORMAL || type == TG_SPM_USER_DEFINED;
        if (found && !json_object_get(vocab, text) &&
            !put(m, text, json_number_value(json_array_get(piece, 1)), type))
            return false;
    }
    return true;
}

/* The model of SentencePiece's own numbers becomes one of vocab.json's. */
static tg_status renumber(json_t *model, const json_t *vocab, const char *unk, tg_error *err) {
    const json_t *id = json_object_get(vocab, unk);
    const char **texts = NULL;
    if (!id) return tg_fail(err, TG_DATA, "vocab.json: the unknown token '%.40s' is missing", unk);
    maker m = {.pieces = json_object_get(model, "vocab"),
               .types = json_object_get(model, "piece_types"),
               .vocab = json_array(),
               .kinds = json_array()};
    tg_status st = by_id(vocab, &texts, err);
    bool done = st == TG_OK && m.vocab && m.kinds && index_pieces(&m);
    for (size_t i = 0; done && i < json_object_size(vocab); i++)
        done = put_token(&m, texts[i], unk);
    done = done && put_others(&m, vocab) && !json_object_set(model, "vocab", m.vocab) &&
           !json_object_set(model, "piece_types", m.kinds) &&
           !json_object_set_new(model, "unk_id", json_integer(json_integer_value(id))) &&
           !json_object_set_new(model, "known", json_integer((json_int_t)json_object_size(vocab)));
    if (st == TG_OK && !done) st = tg_fail_nomem(err, json_object_size(vocab));
    json_decref(m.vocab);
    json_decref(m.kinds);
    tg_map_fini(&m.place);
    tg_free(texts);
    return st;
}

/* ---- the other parts ---- */

/* A text ends with eos; what is decoded has no spaces at its ends. */
static tg_status set_parts(json_t *root, const json_t *vocab, const char *eos, tg_error *err) {
    const json_t *id = json_object_get(vocab, eos);
    const json_int_t ends = INT32_MAX;
    if (!json_is_integer(id))
        return tg_fail(err, TG_DATA, "vocab.json: the end of a text, '%.40s', is missing", eos);
    json_t *post = json_pack(
        "{s:s,s:[{s:{s:s,s:i}},{s:{s:s,s:i}}],s:[{s:{s:s,s:i}},{s:{s:s,s:i}},{s:{s:s,s:i}}],"
        "s:{s:{s:s,s:[I],s:[s]}}}",
        "type", "TemplateProcessing", "single", "Sequence", "id", "A", "type_id", 0, "SpecialToken",
        "id", eos, "type_id", 0, "pair", "Sequence", "id", "A", "type_id", 0, "Sequence", "id", "B",
        "type_id", 0, "SpecialToken", "id", eos, "type_id", 0, "special_tokens", eos, "id", eos,
        "ids", json_integer_value(id), "tokens", eos);
    json_t *decoder =
        json_pack("{s:s,s:[{s:s,s:{s:s},s:s},{s:s},{s:s,s:s,s:I,s:I}]}", "type", "Sequence",
                  "decoders", "type", "Replace", "pattern", "String", MARK, "content", " ", "type",
                  "Fuse", "type", "Strip", "content", " ", "start", ends, "stop", ends);
    const bool failed = !post || !decoder || json_object_set(root, "post_processor", post) ||
                        json_object_set(root, "decoder", decoder);
    json_decref(post);
    json_decref(decoder);
    return failed ? tg_fail_nomem(err, 0) : TG_OK;
}

tg_status tg_marian_load(const char *path, const json_t *vocab, const json_t *config, json_t **root,
                         tg_buf *data, tg_error *err) {
    tg_status st = tg_spm_load(path, NULL, "marian", root, data, err);
    if (st != TG_OK) return st;
    json_t *model = json_object_get(*root, "model");
    if (!json_object_get(model, "piece_types"))
        st = tg_fail(err, TG_UNSUPPORTED,
                     "a SentencePiece model of another type than unigram is not built into this "
                     "version for Marian");
    if (st == TG_OK && json_is_true(json_object_get(config, "separate_vocabs")))
        st = tg_fail(err, TG_UNSUPPORTED,
                     "tokenizer_config.json: separate_vocabs, a vocabulary for each language, is "
                     "not built into this version");
    if (st == TG_OK) st = renumber(model, vocab, name_of(config, "unk_token", "<unk>"), err);
    if (st == TG_OK) st = set_parts(*root, vocab, name_of(config, "eos_token", "</s>"), err);
    if (st == TG_OK) return st;
    if (err) tg_error_prefix(err, "%s: ", path);
    json_decref(*root);
    *root = NULL;
    return st;
}

/* ---- use ---- */

size_t tg_marian_language(tg_view text) {
    if (text.len < 4 || memcmp(text.s, ">>", 2)) return 0;
    const char *end = memmem(text.s, text.len, "<<", 2);
    return end ? (size_t)(end - text.s) + 2 : 0;
}

/* A piece of the source language drops the mark of a space at the beginning of a text; others are not known there, and keep it. */
static void put_piece(const tg_tokenizer *t, int32_t id, bool begins, tg_buf *out) {
    const char *text = t->token[id];
    if (begins && tg_unigram_finds(t->model, id) && !strncmp(text, MARK, 3)) text += 3;
    for (const char *mark; (mark = strstr(text, MARK)); text = mark + 3) {
        tg_buf_append(out, text, (size_t)(mark - text));
        tg_buf_putc(out, ' ');
    }
    tg_buf_puts(out, text);
}

void tg_marian_decode(const tg_tokenizer *t, const int32_t *ids, size_t n, tg_buf *out) {
    size_t begin = out->len, text = begin;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= t->size || !t->token[ids[i]]) continue;
        if (t->special[ids[i]]) {
            tg_buf_puts(out, t->token[ids[i]]);
            tg_buf_putc(out, ' ');
            text = out->len;
        } else {
            put_piece(t, ids[i], out->len == text, out);
        }
    }
    if (out->failed || out->len == begin) return;
    while (out->len > begin && out->data[out->len - 1] == ' ') out->len--;
    size_t blanks = strspn(out->data + begin, " ");
    if (blanks > out->len - begin) blanks = out->len - begin;
    memmove(out->data + begin, out->data + begin + blanks, out->len - begin - blanks);
    out->len -= blanks;
    out->data[out->len] = 0;
}
