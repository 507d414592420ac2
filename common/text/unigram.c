/* The lattice is one node a byte, kept in the scratch: the best way to end there. Read-only on the
 * model. */
#include "common/text/unigram.h"

#include "common/base/alloc.h"
#include "common/text/spm_read.h"
#include "common/text/trie.h"
#include "common/text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNK_PENALTY 10.0

typedef struct unigram {
    tg_text_model base;
    tg_trie trie;
    double *score; /* by id */
    double *said;  /* as the file has it */
    uint32_t *len; /* id -> bytes of its text */
    double unk_score;
    int32_t unk; /* -1: none, an unknown character is an error */
    bool byte_fallback;
    uint8_t *
        types; /* SentencePiece's own model: types of pieces, scores in single precision; else NULL */
    int32_t byte_id[256]; /* <0x00> …; -1: none */
} unigram;

/* The shortest decimal that reads back as x: "%.17g" has digits that no writer puts. */
static void shortest(double x, char text[32]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, x);
        if (strtod(text, NULL) == x) return;
    }
}

/* A score as Hugging Face's JSON reader gets it: all digits as one integer, then one division or
 * multiplication by a power of ten. That is up to one unit in the last place off, and decides ties. */
static double as_read_there(double x) {
    char text[32];
    uint64_t digits = 0;
    int exponent = 0;
    bool fraction = false;
    if (!isfinite(x)) return x;
    shortest(x, text);
    for (const char *p = text; *p; p++) {
        if (*p == 'e') {
            exponent += atoi(p + 1);
            break;
        }
        if (*p == '.') fraction = true;
        if (*p < '0' || *p > '9') continue;
        digits = digits * 10 + (uint64_t)(*p - '0');
        exponent -= fraction;
    }
    char power[16];
    snprintf(power, sizeof power, "1e%d", exponent < 0 ? -exponent : exponent);
    double scale = strtod(power, NULL);
    double value = exponent < 0 ? (double)digits / scale : (double)digits * scale;
    if (!isfinite(value) || !isfinite(scale)) return x;
    return x < 0 ? -value : value;
}

static tg_span span_of(tg_view v, size_t start, size_t end) {
    return v.at ? (tg_span){v.at[start].start, v.at[end - 1].end} : (tg_span){0};
}

static void offer(tg_path_node *node, double score, size_t start, int32_t id) {
    if (node->start == UINT32_MAX || score > node->score)
        *node = (tg_path_node){score, (uint32_t)start, id};
}

/* Fills the lattice from left to right. False: a character has no token, and there is no unk. */
static bool forward(const unigram *u, tg_view v, tg_path_node *path) {
    for (size_t i = 1; i <= v.len; i++) path[i].start = UINT32_MAX;
    path[0] = (tg_path_node){0};
    for (size_t start = 0; start < v.len;) {
        unsigned n;
        tg_utf8_at(v.s + start, &n);
        double here = path[start].score;
        bool single = false;
        uint32_t node = 0;
        for (size_t i = start; i < v.len; i++) {
            node = tg_trie_step(&u->trie, node, (unsigned char)v.s[i]);
            if (!node) break;
            int32_t id = u->trie.value[node];
            if (id < 0) continue;
            double sum = u->score[id] + here;
            offer(&path[i + 1], u->types ? (double)(float)sum : sum, start, id);
            single |= i + 1 == start + n;
        }
        if (!single) {
            if (u->unk < 0) return false;
            double sum = u->unk_score + here;
            offer(&path[start + n], u->types ? (double)(float)sum : sum, start, u->unk);
        }
        start += n;
    }
    return true;
}

static bool put_bytes(const unigram *u, tg_view v, size_t start, size_t end, tg_sink *out) {
    for (size_t i = start; i < end; i++)
        if (!tg_sink_put(out, u->byte_id[(unsigned char)v.s[i]], span_of(v, start, end)))
            return false;
    return true;
}

/* An unknown stretch: a token by chance, bytes, or unk. */
static bool put_unknown(const unigram *u, tg_view v, size_t start, size_t end, tg_sink *out) {
    int32_t id =
        u->types && !u->base.known ? -1 : tg_vocab_id(&u->base.vocab, v.s + start, end - start);
    if (u->base.known && id >= u->base.known) id = -1;
    bool bytes = id < 0 && u->byte_fallback;
    for (size_t i = start; bytes && i < end; i++) bytes = u->byte_id[(unsigned char)v.s[i]] >= 0;
    if (bytes) return put_bytes(u, v, start, end, out);
    return tg_sink_put(out, id >= 0 ? id : u->unk, span_of(v, start, end));
}

/* Turns the links around, so that the way is read from the left: path[i].start becomes the end of
 * the token that begins at i. */
static void reverse(tg_path_node *path, size_t len) {
    uint32_t next = (uint32_t)len;
    int32_t next_id = -1;
    for (uint32_t i = (uint32_t)len;;) {
        tg_path_node node = path[i];
        path[i].start = next, path[i].id = next_id;
        if (!i) return;
        next = i, next_id = node.id, i = node.start;
    }
}

static bool put_path(const unigram *u, tg_view v, tg_path_node *path, tg_sink *out, bool *odd) {
    reverse(path, v.len);
    for (size_t pos = 0; pos < v.len;) {
        size_t end = path[pos].start;
        int32_t id = path[pos].id;
        if (id == u->unk) {
            *odd = true;
            while (end < v.len && path[end].id == u->unk) end = path[end].start;
            if (!put_unknown(u, v, pos, end, out)) return false;
        } else {
            const bool outside = u->base.known && id >= u->base.known;
            *odd |= outside;
            if (!tg_sink_put(out, outside ? u->unk : id, span_of(v, pos, end))) return false;
        }
        pos = end;
    }
    return true;
}

static bool put_cached(const unigram *u, tg_view v, const tg_wordcache_entry *e, tg_sink *out) {
    if (!tg_ids_reserve(out->ids, e->n)) return false;
    memcpy(out->ids->data + out->ids->n, e->ids, e->n * sizeof *e->ids);
    out->ids->n += e->n;
    for (size_t i = 0, pos = 0; out->spans && i < e->n; pos += u->len[e->ids[i++]])
        if (!tg_spans_push(out->spans, span_of(v, pos, pos + u->len[e->ids[i]]))) return false;
    return true;
}

static tg_status encode(const tg_text_model *m, tg_scratch *s, tg_view piece, tg_sink *out,
                        tg_error *err) {
    const unigram *u = (const unigram *)m;
    tg_wordcache_entry *slot = NULL;
    bool hit, odd = false;
    if (piece.len <= TG_WORDCACHE_MAX_WORD) {
        slot = tg_wordcache_find(s->words, piece.s, piece.len, &hit);
        if (hit) return put_cached(u, piece, slot, out) ? TG_OK : tg_fail_nomem(err, slot->n);
    }
    if (piece.len >= s->path_cap) {
        size_t cap = piece.len + 64;
        tg_path_node *path = tg_realloc_array(s->path, cap, sizeof *path);
        if (!path || piece.len >= UINT32_MAX) {
            if (path) s->path = path, s->path_cap = cap;
            return tg_fail_nomem(err, cap * sizeof *path);
        }
        s->path = path, s->path_cap = cap;
    }
    if (!forward(u, piece, s->path))
        return tg_fail(err, TG_DATA,
                       "model.unk_id: none, and the text holds a character without a "
                       "token");
    size_t start = out->ids->n;
    if (!put_path(u, piece, s->path, out, &odd)) return tg_fail_nomem(err, piece.len);
    if (slot && !odd)
        tg_wordcache_put(slot, piece.s, piece.len, out->ids->data + start, out->ids->n - start);
    return TG_OK;
}

static void destroy(tg_text_model *m) {
    unigram *u = (unigram *)m;
    tg_vocab_fini(&m->vocab);
    tg_trie_fini(&u->trie);
    tg_free(u->score);
    tg_free(u->said);
    tg_free(u->len);
    tg_free(u->types);
    tg_free(u);
}

static void write_json(const tg_text_model *m, tg_buf *out) {
    const unigram *u = (const unigram *)m;
    tg_buf_puts(out, "{\"type\":\"Unigram\",\"unk_id\":");
    if (u->unk >= 0)
        tg_buf_printf(out, "%d", (int)u->unk);
    else
        tg_buf_puts(out, "null");
    tg_buf_puts(out, ",\"vocab\":[");
    for (int32_t id = 0; id < m->vocab.size; id++) {
        tg_buf_puts(out, id ? ",\n[" : "\n[");
        tg_part_write_str(out, m->vocab.token[id], strlen(m->vocab.token[id]));
        char text[32];
        shortest(u->said[id], text);
        tg_buf_printf(out, ",%s%s]", text, strpbrk(text, ".en") ? "" : ".0");
    }
    tg_buf_printf(out, "\n],\"byte_fallback\":%s", u->byte_fallback ? "true" : "false");
    if (u->types) tg_buf_puts(out, ",\"piece_types\":[");
    for (int32_t id = 0; u->types && id < m->vocab.size; id++)
        tg_buf_printf(out, id ? ",%d" : "%d", u->types[id]);
    if (u->types) tg_buf_puts(out, "]");
    if (u->base.known) tg_buf_printf(out, ",\"known\":%d", (int)u->base.known);
    tg_buf_puts(out, "}");
}

static const tg_text_model_ops ops = {"Unigram", encode, write_json, destroy};

/* "vocab": [["token", score], …]; the id of a token is its place. */
static tg_status read_vocab(unigram *u, const json_t *vocab, tg_error *err) {
    size_t n = json_array_size(vocab);
    double min = (double)INFINITY;
    u->score = tg_alloc_array(n + 1, sizeof *u->score);
    u->said = tg_alloc_array(n + 1, sizeof *u->said);
    u->len = tg_alloc_array(n + 1, sizeof *u->len);
    if (!u->score || !u->said || !u->len) return tg_fail_nomem(err, n * sizeof *u->score);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(vocab, i), *token = json_array_get(item, 0);
        const json_t *score = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !json_is_string(token) || !json_is_number(score))
            return tg_fail(err, TG_DATA, "model.vocab[%zu]: expected [\"token\", score]", i);
        const char *text = json_string_value(token);
        size_t len = json_string_length(token);
        if (tg_vocab_id(&u->base.vocab, text, len) >= 0)
            return tg_fail(err, TG_UNSUPPORTED, "model.vocab[%zu]: token '%.40s' is there twice", i,
                           text);
        tg_status st = tg_vocab_add(&u->base.vocab, text, len, (int64_t)i, err);
        if (st != TG_OK) return st;
        u->said[i] = json_number_value(score);
        u->score[i] = as_read_there(u->said[i]);
        u->len[i] = (uint32_t)len;
        if (u->score[i] < min) min = u->score[i];
        if (len && !tg_trie_set(&u->trie, text, len, (int32_t)i)) return tg_fail_nomem(err, len);
    }
    u->unk_score = min - UNK_PENALTY;
    return tg_vocab_index(&u->base.vocab, err);
}

/* SentencePiece's own rules: only normal pieces and symbols of the user are found in text, and a symbol's score is so
 * high that it is taken whole. */
static tg_status read_types(unigram *u, const json_t *types, tg_error *err) {
    size_t n = (size_t)u->base.vocab.size;
    float min = INFINITY, max = -INFINITY;
    if (!types) return TG_OK;
    u->types = tg_alloc_array(n + 1, 1);
    if (!u->types) return tg_fail_nomem(err, n);
    if (json_array_size(types) != n)
        return tg_fail(err, TG_DATA, "model.piece_types: expected one number for each token");
    for (size_t i = 0; i < n; i++) {
        json_int_t type = json_integer_value(json_array_get(types, i));
        if (type < TG_SPM_NORMAL || type > TG_SPM_BYTE)
            return tg_fail(err, TG_DATA, "model.piece_types[%zu]: expected 1 to 6", i);
        u->types[i] = (uint8_t)type;
        u->score[i] = (double)(float)u->said[i];
        if (type != TG_SPM_NORMAL) continue;
        if ((float)u->said[i] < min) min = (float)u->said[i];
        if ((float)u->said[i] > max) max = (float)u->said[i];
    }
    u->unk_score = (double)(min - 10.0F);
    tg_trie_fini(&u->trie);
    if (!tg_trie_init(&u->trie)) return tg_fail_nomem(err, sizeof u->trie);
    for (size_t i = 0; i < n; i++) {
        const char *text = u->base.vocab.token[i];
        bool symbol = u->types[i] == TG_SPM_USER_DEFINED;
        if (symbol) u->score[i] = (double)(float)((double)((float)u->len[i] * max) - 0.1);
        if (u->len[i] && (symbol || u->types[i] == TG_SPM_NORMAL) &&
            !tg_trie_set(&u->trie, text, u->len[i], (int32_t)i))
            return tg_fail_nomem(err, n);
    }
    return TG_OK;
}

static tg_status read_unk(unigram *u, const json_t *unk, size_t n, tg_error *err) {
    u->unk = -1;
    if (!unk || json_is_null(unk)) return TG_OK;
    if (!json_is_integer(unk) || json_integer_value(unk) < 0 ||
        json_integer_value(unk) >= (json_int_t)n)
        return tg_fail(err, TG_DATA, "model.unk_id: expected null or an id below %zu", n);
    u->unk = (int32_t)json_integer_value(unk);
    return TG_OK;
}

static tg_status read_known(unigram *u, const json_t *known, size_t n, tg_error *err) {
    json_int_t value = json_integer_value(known);
    if (!known) return TG_OK;
    if (!json_is_integer(known) || value <= u->unk || value > (json_int_t)n)
        return tg_fail(err, TG_DATA, "model.known: expected a number of tokens, unk_id among them");
    u->base.known = (int32_t)value;
    return TG_OK;
}

tg_status tg_unigram_read(tg_text_model **out, const json_t *part, tg_error *err) {
    tg_status st =
        tg_part_check(part, "model", "type unk_id vocab byte_fallback piece_types known", err);
    const json_t *vocab = json_object_get(part, "vocab");
    if (st == TG_OK && !json_is_array(vocab))
        st = tg_fail(err, TG_DATA, "model.vocab: expected a list of [\"token\", score]");
    if (st != TG_OK) return st;
    unigram *u = tg_alloc(sizeof *u);
    if (!u) return tg_fail_nomem(err, sizeof *u);
    u->base.ops = &ops;
    st = tg_part_bool(part, "model", "byte_fallback", false, &u->byte_fallback, err);
    if (st == TG_OK) st = read_unk(u, json_object_get(part, "unk_id"), json_array_size(vocab), err);
    if (st == TG_OK)
        st = read_known(u, json_object_get(part, "known"), json_array_size(vocab), err);
    if (st == TG_OK && !tg_trie_init(&u->trie)) st = tg_fail_nomem(err, sizeof u->trie);
    if (st == TG_OK) st = read_vocab(u, vocab, err);
    if (st == TG_OK) st = read_types(u, json_object_get(part, "piece_types"), err);
    for (int b = 0; st == TG_OK && b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)b);
        u->byte_id[b] = tg_vocab_id(&u->base.vocab, name, strlen(name));
    }
    if (st == TG_OK)
        *out = &u->base;
    else
        destroy(&u->base);
    return st;
}

bool tg_unigram_finds(const tg_text_model *m, int32_t id) {
    const unigram *u = (const unigram *)m;
    return m->ops == &ops && id < m->vocab.size &&
           (!u->types || u->types[id] == TG_SPM_NORMAL || u->types[id] == TG_SPM_USER_DEFINED);
}
