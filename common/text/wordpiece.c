/* Two tries: tokens as they are, for the start of a word, and without the prefix, for the rest. A
 * walk down a trie finds the longest token, so a word costs at most its length times the longest
 * token. Read-only after reading. */
#include "common/text/wordpiece.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/trie.h"
#include "common/text/utf8.h"

#include <string.h>

typedef struct wordpiece {
    tg_text_model base;
    tg_trie first, rest;
    uint32_t *len; /* id -> bytes after the prefix, when the token has it */
    char *prefix, *unk_token;
    size_t prefix_len;
    int32_t unk; /* -1: not in the vocabulary, an unknown word is an error */
    json_int_t max_chars;
} wordpiece;

static tg_span span_of(tg_view v, size_t start, size_t end) {
    return v.at ? (tg_span){v.at[start].start, v.at[end - 1].end} : (tg_span){0};
}

/* The longest token at pos; returns its end, or pos when there is none. */
static size_t longest(const tg_trie *t, tg_view v, size_t pos, int32_t *id) {
    size_t end = pos;
    uint32_t node = 0;
    for (size_t i = pos; i < v.len; i++) {
        node = tg_trie_step(t, node, (unsigned char)v.s[i]);
        if (!node) break;
        bool whole = i + 1 == v.len || ((unsigned char)v.s[i + 1] & 0xC0) != 0x80;
        if (whole && t->value[node] >= 0) *id = t->value[node], end = i + 1;
    }
    return end;
}

static tg_status put_unknown(const wordpiece *w, tg_view piece, tg_sink *out, tg_error *err) {
    if (w->unk < 0)
        return tg_fail(err, TG_DATA,
                       "model.unk_token: '%.40s' is not in the vocabulary, and the text holds a "
                       "word without tokens",
                       w->unk_token);
    return tg_sink_put(out, w->unk, span_of(piece, 0, piece.len)) ? TG_OK : tg_fail_nomem(err, 1);
}

static bool put_cached(const wordpiece *w, tg_view piece, const tg_wordcache_entry *e,
                       tg_sink *out) {
    if (!out->spans && !tg_ids_reserve(out->ids, e->n)) return false;
    for (size_t i = 0, pos = 0; i < e->n; i++) {
        size_t end = i + 1 == e->n ? piece.len : pos + w->len[e->ids[i]];
        if (!i && e->n > 1) end = strlen(w->base.vocab.token[e->ids[0]]);
        if (!tg_sink_put(out, e->ids[i], span_of(piece, pos, end))) return false;
        pos = end;
    }
    return true;
}

static tg_status encode(const tg_text_model *m, tg_scratch *s, tg_view piece, tg_sink *out,
                        tg_error *err) {
    const wordpiece *w = (const wordpiece *)m;
    tg_wordcache_entry *slot = NULL;
    bool hit;
    if (piece.len <= TG_WORDCACHE_MAX_WORD) {
        slot = tg_wordcache_find(s->words, piece.s, piece.len, &hit);
        if (hit) return put_cached(w, piece, slot, out) ? TG_OK : tg_fail_nomem(err, slot->n);
    }
    size_t n_ids = out->ids->n, n_spans = out->spans ? out->spans->n : 0;
    bool known = (json_int_t)tg_utf8_count(piece.s, piece.len) <= w->max_chars;
    for (size_t pos = 0; known && pos < piece.len;) {
        int32_t id = -1;
        size_t end = longest(pos ? &w->rest : &w->first, piece, pos, &id);
        known = end > pos;
        if (known && !tg_sink_put(out, id, span_of(piece, pos, end))) return tg_fail_nomem(err, 1);
        pos = end;
    }
    if (!known) {
        out->ids->n = n_ids;
        if (out->spans) out->spans->n = n_spans;
        tg_status st = put_unknown(w, piece, out, err);
        if (st != TG_OK) return st;
    }
    if (slot)
        tg_wordcache_put(slot, piece.s, piece.len, out->ids->data + n_ids, out->ids->n - n_ids);
    return TG_OK;
}

static void destroy(tg_text_model *m) {
    wordpiece *w = (wordpiece *)m;
    tg_vocab_fini(&m->vocab);
    tg_trie_fini(&w->first);
    tg_trie_fini(&w->rest);
    tg_free(w->len);
    tg_free(w->prefix);
    tg_free(w->unk_token);
    tg_free(w);
}

static void write_json(const tg_text_model *m, tg_buf *out) {
    const wordpiece *w = (const wordpiece *)m;
    tg_buf_puts(out, "{\"type\":\"WordPiece\",\"unk_token\":");
    tg_part_write_str(out, w->unk_token, strlen(w->unk_token));
    tg_buf_puts(out, ",\"continuing_subword_prefix\":");
    tg_part_write_str(out, w->prefix, w->prefix_len);
    tg_buf_printf(out, ",\"max_input_chars_per_word\":%lld,\"vocab\":", (long long)w->max_chars);
    tg_vocab_write_json(&m->vocab, out);
    tg_buf_putc(out, '}');
}

void tg_wordpiece_write_txt(const tg_text_model *m, tg_buf *out) {
    for (int32_t id = 0; id < m->vocab.size; id++)
        tg_buf_printf(out, "%s\n", m->vocab.token[id] ? m->vocab.token[id] : "");
}

static const tg_text_model_ops ops = {"WordPiece", encode, write_json, destroy};

static tg_status create(wordpiece **out, const char *unk, const char *prefix, tg_error *err) {
    wordpiece *w = tg_alloc(sizeof *w);
    if (!w) return tg_fail_nomem(err, sizeof *w);
    w->base.ops = &ops;
    w->unk_token = tg_strdup(unk ? unk : "[UNK]");
    w->prefix = tg_strdup(prefix ? prefix : "##");
    w->max_chars = 100;
    if (!w->unk_token || !w->prefix || !tg_trie_init(&w->first) || !tg_trie_init(&w->rest)) {
        destroy(&w->base);
        return tg_fail_nomem(err, sizeof *w);
    }
    w->prefix_len = strlen(w->prefix);
    *out = w;
    return TG_OK;
}

/* After the vocabulary is complete and indexed. */
static tg_status finish(wordpiece *w, tg_status st, tg_text_model **out, tg_error *err) {
    const tg_vocab *v = &w->base.vocab;
    bool ok = true;
    if (st == TG_OK) {
        w->unk = tg_vocab_id(v, w->unk_token, strlen(w->unk_token));
        w->len = tg_alloc_array((size_t)v->size + 1, sizeof *w->len);
        ok = w->len != NULL;
    }
    for (int32_t id = 0; st == TG_OK && ok && id < v->size; id++) {
        if (!v->token[id]) continue;
        const char *token = v->token[id];
        size_t len = strlen(token);
        bool inside = len >= w->prefix_len && !memcmp(token, w->prefix, w->prefix_len);
        w->len[id] = (uint32_t)(inside ? len - w->prefix_len : len);
        if (len) ok = tg_trie_set(&w->first, token, len, id);
        if (ok && inside && len > w->prefix_len)
            ok = tg_trie_set(&w->rest, token + w->prefix_len, len - w->prefix_len, id);
    }
    if (st == TG_OK && !ok) st = tg_fail_nomem(err, v->ids.count);
    if (st == TG_OK)
        *out = &w->base;
    else
        destroy(&w->base);
    return st;
}

tg_status tg_wordpiece_read(tg_text_model **out, const json_t *part, tg_error *err) {
    const char *unk, *prefix;
    tg_status st = tg_part_check(
        part, "model", "type unk_token continuing_subword_prefix max_input_chars_per_word vocab",
        err);
    if (st == TG_OK) st = tg_part_str(part, "model", "unk_token", &unk, err);
    if (st == TG_OK) st = tg_part_str(part, "model", "continuing_subword_prefix", &prefix, err);
    const json_t *max = json_object_get(part, "max_input_chars_per_word");
    if (st == TG_OK && max && (!json_is_integer(max) || json_integer_value(max) < 0))
        st = tg_fail(err, TG_DATA, "model.max_input_chars_per_word: expected a count");
    wordpiece *w;
    if (st == TG_OK) st = create(&w, unk, prefix, err);
    if (st != TG_OK) return st;
    if (max) w->max_chars = json_integer_value(max);
    st = tg_vocab_read(&w->base.vocab, json_object_get(part, "vocab"), "model.vocab", err);
    return finish(w, st, out, err);
}

tg_status tg_wordpiece_open(tg_text_model **out, const char *path, tg_error *err) {
    tg_buf text = {0};
    wordpiece *w = NULL;
    tg_status st = tg_file_read(path, (size_t)1 << 30, &text, err);
    if (st == TG_OK) st = create(&w, NULL, NULL, err);
    int64_t id = 0;
    for (size_t i = 0; st == TG_OK && i < text.len; id++) {
        const char *line = text.data + i, *end = memchr(line, '\n', text.len - i);
        size_t n = end ? (size_t)(end - line) : text.len - i;
        i += n + 1;
        if (n && line[n - 1] == '\r') n--;
        if (memchr(line, 0, n))
            st = tg_fail(err, TG_DATA, "%s: line %lld holds a NUL", path, (long long)id + 1);
        else
            st = tg_vocab_add(&w->base.vocab, line, n, id, err);
    }
    tg_buf_fini(&text);
    if (st == TG_OK) st = tg_vocab_index(&w->base.vocab, err);
    return w ? finish(w, st, out, err) : st;
}
