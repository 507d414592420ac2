/* Loading and saving a BPE model. The vocabulary is final before merges are read, because a merge
 * names tokens of it. */
#include "common/text/bpe_impl.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/bytelevel.h"

#include <string.h>

void tg_bpe_destroy(tg_text_model *m) {
    tg_bpe *b = (tg_bpe *)m;
    tg_vocab_fini(&b->base.vocab);
    tg_free(b->table);
    tg_free(b->merges);
    tg_free(b->n_bytes);
    tg_map_fini(&b->whole);
    tg_free(b->unk_token);
    tg_trie_fini(&b->symbols);
    tg_free(b->symbols_json);
    tg_free(b);
}

/* Room for n merges, at most half full. */
static tg_status reserve_merges(tg_bpe *b, size_t n, tg_error *err) {
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    b->table = tg_alloc_array(slots, sizeof *b->table);
    b->merges = tg_alloc_array(n + 1, sizeof *b->merges);
    if (!b->table || !b->merges) return tg_fail_nomem(err, slots * sizeof *b->table);
    b->mask = slots - 1;
    return TG_OK;
}

static tg_status unknown_token(tg_error *err, const char *where, size_t rank, const char *s,
                               size_t len) {
    return tg_fail(err, TG_DATA, "%s[%zu]: token '%.*s' is not in the vocabulary", where, rank,
                   (int)(len < 60 ? len : 60), s);
}

/* Adds the merge of the next rank. A pair that comes twice has the rank of its last place, as in
 * Hugging Face. */
static tg_status add_merge(tg_bpe *b, const char *left, size_t n_left, const char *right,
                           size_t n_right, tg_buf *joined, const char *where, tg_error *err) {
    const tg_vocab *v = &b->base.vocab;
    size_t rank = b->n_merges;
    tg_bpe_pair pair = {tg_vocab_id(v, left, n_left), tg_vocab_id(v, right, n_right)};
    if (pair.left < 0) return unknown_token(err, where, rank, left, n_left);
    if (pair.right < 0) return unknown_token(err, where, rank, right, n_right);
    tg_buf_reset(joined);
    tg_buf_append(joined, left, n_left);
    tg_buf_append(joined, right, n_right);
    if (joined->failed) return tg_fail_nomem(err, n_left + n_right);
    int32_t id = tg_vocab_id(v, joined->data ? joined->data : "", joined->len);
    if (id < 0)
        return unknown_token(err, where, rank, joined->data ? joined->data : "", joined->len);
    uint64_t key = tg_bpe_key(pair.left, pair.right);
    size_t i = tg_bpe_hash(key) & b->mask;
    while (b->table[i].key && b->table[i].key != key) i = (i + 1) & b->mask;
    b->table[i] = (tg_bpe_slot){key, (uint32_t)rank, id};
    b->merges[b->n_merges++] = pair;
    return TG_OK;
}

/* "left right" with exactly one space. */
static tg_status add_merge_line(tg_bpe *b, const char *line, size_t len, tg_buf *joined,
                                const char *where, tg_error *err) {
    const char *space = memchr(line, ' ', len);
    size_t n_left = space ? (size_t)(space - line) : 0;
    if (!space || memchr(space + 1, ' ', len - n_left - 1))
        return tg_fail(err, TG_DATA,
                       "%s[%zu]: expected two tokens with one space between, found '%.*s'", where,
                       b->n_merges, (int)(len < 60 ? len : 60), line);
    return add_merge(b, line, n_left, space + 1, len - n_left - 1, joined, where, err);
}

static tg_status read_merges(tg_bpe *b, const json_t *merges, tg_error *err) {
    static const char where[] = "model.merges";
    if (!json_is_array(merges)) return tg_fail(err, TG_DATA, "%s: expected a list", where);
    tg_status st = reserve_merges(b, json_array_size(merges), err);
    tg_buf joined = {0};
    for (size_t i = 0; i < json_array_size(merges) && st == TG_OK; i++) {
        const json_t *item = json_array_get(merges, i);
        const json_t *left = json_array_get(item, 0), *right = json_array_get(item, 1);
        if (json_is_string(item))
            st = add_merge_line(b, json_string_value(item), json_string_length(item), &joined,
                                where, err);
        else if (json_array_size(item) == 2 && json_is_string(left) && json_is_string(right))
            st =
                add_merge(b, json_string_value(left), json_string_length(left),
                          json_string_value(right), json_string_length(right), &joined, where, err);
        else
            st = tg_fail(err, TG_DATA, "%s[%zu]: expected \"left right\" or [\"left\", \"right\"]",
                         where, i);
    }
    tg_buf_fini(&joined);
    return st;
}

static tg_status read_merge_lines(tg_bpe *b, const char *text, size_t len, const char *path,
                                  tg_error *err) {
    size_t lines = 1;
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    tg_status st = reserve_merges(b, lines, err);
    tg_buf joined = {0};
    for (size_t i = 0; i < len && st == TG_OK;) {
        const char *end = memchr(text + i, '\n', len - i);
        size_t n = end ? (size_t)(end - (text + i)) : len - i;
        size_t next = i + n + 1;
        if (n && text[i + n - 1] == '\r') n--;
        bool version = n >= 8 && !memcmp(text + i, "#version", 8);
        if (n && !version) st = add_merge_line(b, text + i, n, &joined, path, err);
        i = next;
    }
    tg_buf_fini(&joined);
    return st;
}

/* What encoding needs to know about single tokens: the token of each byte and the bytes of each
 * token. */
static tg_status index_bytes(tg_bpe *b, tg_error *err) {
    const tg_vocab *v = &b->base.vocab;
    b->n_bytes = tg_alloc_array((size_t)v->size + 1, sizeof *b->n_bytes);
    if (!b->n_bytes) return tg_fail_nomem(err, (size_t)v->size * sizeof *b->n_bytes);
    for (int i = 0; i < 256; i++) b->byte_id[i] = -1;
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        b->fallback_id[i] = tg_vocab_id(v, name, strlen(name));
    }
    tg_buf bytes = {0};
    bool ok = true;
    for (size_t i = 0; i < v->ids.count && ok; i++) {
        const tg_map_entry *e = &v->ids.entries[i];
        tg_buf_reset(&bytes);
        if (!b->byte_level) {
            b->n_bytes[e->value] = (uint32_t)e->key_len;
            if (e->key_len == 1) b->byte_id[(unsigned char)e->key[0]] = (int32_t)e->value;
            continue;
        }
        if (!tg_bytelevel_bytes(&bytes, e->key, e->key_len) || !bytes.len) continue;
        b->n_bytes[e->value] = (uint32_t)bytes.len;
        if (bytes.len == 1) b->byte_id[(unsigned char)bytes.data[0]] = (int32_t)e->value;
        if (b->ignore_merges) ok = tg_map_set(&b->whole, bytes.data, bytes.len, e->value);
    }
    ok = ok && !bytes.failed;
    tg_buf_fini(&bytes);
    return ok ? TG_OK : tg_fail_nomem(err, v->ids.count);
}

static tg_status set_unk(tg_bpe *b, const char *token, tg_error *err) {
    b->unk = -1;
    if (!token) return TG_OK;
    b->unk_token = tg_strdup(token);
    if (!b->unk_token) return tg_fail_nomem(err, strlen(token));
    b->unk = tg_vocab_id(&b->base.vocab, token, strlen(token));
    if (b->unk < 0)
        return tg_fail(err, TG_DATA, "model.unk_token: '%.60s' is not in the vocabulary", token);
    return TG_OK;
}

static tg_status create(tg_bpe **out, tg_error *err) {
    *out = tg_alloc(sizeof **out);
    if (!*out) return tg_fail_nomem(err, sizeof **out);
    (*out)->base.ops = &tg_bpe_ops;
    (*out)->unk = -1;
    return TG_OK;
}

static tg_status finish(tg_bpe *b, tg_status st, tg_text_model **out, tg_error *err) {
    if (st == TG_OK) st = index_bytes(b, err);
    if (st == TG_OK)
        *out = &b->base;
    else
        tg_bpe_destroy(&b->base);
    return st;
}

/* SentencePiece's own models: symbols of the vocabulary that the user defined. */
static tg_status read_symbols(tg_bpe *b, const json_t *list, tg_error *err) {
    if (!json_array_size(list) || b->byte_level) return TG_OK;
    b->symbols_json = tg_part_dump(list);
    if (!b->symbols_json || !tg_trie_init(&b->symbols)) return tg_fail_nomem(err, 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *text = json_array_get(list, i);
        size_t len = json_string_length(text);
        if (!len || tg_vocab_id(&b->base.vocab, json_string_value(text), len) < 0)
            return tg_fail(err, TG_DATA, "model.user_defined[%zu]: not in the vocabulary", i);
        if (!tg_trie_set(&b->symbols, json_string_value(text), len, 1))
            return tg_fail_nomem(err, len);
    }
    return TG_OK;
}

/* Options that change ids and are not built. An empty affix and a dropout of 0 mean none. */
static tg_status refuse_options(const json_t *part, tg_error *err) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < 2; i++) {
        const char *text;
        tg_status st = tg_part_str(part, "model", affixes[i], &text, err);
        if (st != TG_OK) return st;
        if (text && *text)
            return tg_fail(err, TG_UNSUPPORTED, "model.%s: '%.40s' is not built into this version",
                           affixes[i], text);
    }
    const json_t *dropout = json_object_get(part, "dropout");
    if (json_is_number(dropout) ? json_number_value(dropout) != 0
                                : dropout && !json_is_null(dropout))
        return tg_fail(err, TG_UNSUPPORTED,
                       "model.dropout: only null is supported, ids would be random");
    return TG_OK;
}

tg_status tg_bpe_read(tg_text_model **out, const json_t *part, bool byte_level, tg_error *err) {
    tg_status st = tg_part_check(
        part, "model",
        "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk "
        "byte_fallback ignore_merges vocab merges user_defined",
        err);
    if (st == TG_OK) st = refuse_options(part, err);
    if (st != TG_OK) return st;
    tg_bpe *b;
    st = create(&b, err);
    if (st != TG_OK) return st;
    const char *unk = NULL;
    b->byte_level = byte_level;
    st = tg_part_bool(part, "model", "byte_fallback", false, &b->byte_fallback, err);
    if (st == TG_OK && byte_level && b->byte_fallback)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "model.byte_fallback: true with a ByteLevel pre_tokenizer is not built into "
                     "this version");
    if (st == TG_OK)
        st = tg_part_bool(part, "model", "ignore_merges", false, &b->ignore_merges, err);
    if (st == TG_OK) st = tg_part_bool(part, "model", "fuse_unk", false, &b->fuse_unk, err);
    if (st == TG_OK) st = tg_part_str(part, "model", "unk_token", &unk, err);
    if (st == TG_OK)
        st = tg_vocab_read(&b->base.vocab, json_object_get(part, "vocab"), "model.vocab", err);
    if (st == TG_OK) st = set_unk(b, unk, err);
    if (st == TG_OK) st = read_merges(b, json_object_get(part, "merges"), err);
    if (st == TG_OK) st = read_symbols(b, json_object_get(part, "user_defined"), err);
    return finish(b, st, out, err);
}

tg_status tg_bpe_open(tg_text_model **out, const char *vocab_path, const char *merges_path,
                      tg_error *err) {
    tg_bpe *b;
    tg_status st = create(&b, err);
    if (st != TG_OK) return st;
    b->byte_level = true;
    json_t *vocab = NULL;
    tg_buf merges = {0};
    st = tg_part_load(vocab_path, false, &vocab, err);
    if (st == TG_OK) st = tg_vocab_read(&b->base.vocab, vocab, vocab_path, err);
    if (st == TG_OK) st = tg_file_read(merges_path, (size_t)1 << 30, &merges, err);
    if (st == TG_OK)
        st = read_merge_lines(b, merges.data ? merges.data : "", merges.len, merges_path, err);
    json_decref(vocab);
    tg_buf_fini(&merges);
    return finish(b, st, out, err);
}

void tg_bpe_write_json(const tg_text_model *m, tg_buf *out) {
    const tg_bpe *b = (const tg_bpe *)m;
    const tg_vocab *v = &m->vocab;
    tg_buf_puts(out, "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    if (b->unk_token)
        tg_part_write_str(out, b->unk_token, strlen(b->unk_token));
    else
        tg_buf_puts(out, "null");
    tg_buf_printf(out,
                  ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":%s,"
                  "\"byte_fallback\":%s,\"ignore_merges\":%s,\"vocab\":",
                  b->fuse_unk ? "true" : "false", b->byte_fallback ? "true" : "false",
                  b->ignore_merges ? "true" : "false");
    tg_vocab_write_json(v, out);
    tg_buf_puts(out, ",\"merges\":[");
    for (size_t i = 0; i < b->n_merges; i++) {
        const char *left = v->token[b->merges[i].left], *right = v->token[b->merges[i].right];
        tg_buf_puts(out, i ? ",\n[" : "\n[");
        tg_part_write_str(out, left, strlen(left));
        tg_buf_putc(out, ',');
        tg_part_write_str(out, right, strlen(right));
        tg_buf_putc(out, ']');
    }
    tg_buf_puts(out, "\n]");
    if (b->symbols_json) tg_buf_printf(out, ",\"user_defined\":%s", b->symbols_json);
    tg_buf_puts(out, "}");
}

void tg_bpe_write_merges(const tg_text_model *m, tg_buf *out) {
    const tg_bpe *b = (const tg_bpe *)m;
    tg_buf_puts(out, "#version: 0.2\n");
    for (size_t i = 0; i < b->n_merges; i++)
        tg_buf_printf(out, "%s %s\n", m->vocab.token[b->merges[i].left],
                      m->vocab.token[b->merges[i].right]);
}
