/* Added tokens and the search for them. A matcher is a sorted array narrowed byte by byte, so that
 * the longest token at a place is found in O(length · log n) and a text without tokens costs one
 * table look-up a byte. Read-only once built. */
#include "common/text/added.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <string.h>

const tg_added_token *tg_added_find(const tg_added *a, const char *content, size_t len) {
    uint64_t i;
    return tg_map_get(&a->index, content, len, &i) ? &a->tokens[i] : NULL;
}

static int32_t next_id(const tg_added *a, const tg_vocab *vocab) {
    int32_t id = (int32_t)vocab->ids.count;
    for (size_t i = 0; i < a->n; i++)
        if (a->tokens[i].id >= id) id = a->tokens[i].id + 1;
    return id;
}

tg_status tg_added_add(tg_added *a, const tg_vocab *vocab, const tg_added_token *token,
                       tg_error *err) {
    uint64_t place;
    if (!token->len) return TG_OK;
    if (tg_map_get(&a->index, token->content, token->len, &place)) {
        tg_added_token *old = &a->tokens[place];
        /* NOLINTNEXTLINE: what the index names is there */
        old->special |= token->special;
        old->single_word = token->single_word, old->normalized = token->normalized;
        old->lstrip = token->lstrip, old->rstrip = token->rstrip;
        return TG_OK;
    }
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 16;
        tg_added_token *p = tg_realloc_array(a->tokens, cap, sizeof *p);
        if (!p) return tg_fail_nomem(err, cap * sizeof *p);
        a->tokens = p, a->cap = cap;
    }
    tg_added_token copy = *token;
    copy.id = tg_vocab_id(vocab, token->content, token->len);
    if (copy.id < 0) copy.id = next_id(a, vocab);
    if (copy.id > TG_VOCAB_MAX_ID) return tg_fail(err, TG_DATA, "added_tokens: too many tokens");
    copy.content = tg_strndup(token->content, token->len);
    if (!copy.content) return tg_fail_nomem(err, token->len);
    if (!tg_map_set(&a->index, copy.content, copy.len, a->n)) {
        tg_free(copy.content);
        return tg_fail_nomem(err, copy.len);
    }
    a->tokens[a->n++] = copy;
    return TG_OK;
}

tg_status tg_added_read_token(tg_added_token *token, const json_t *item, const char *where,
                              tg_error *err) {
    *token = (tg_added_token){.id = -1};
    tg_status st = tg_part_check(
        item, where, "id content single_word lstrip rstrip normalized special __type", err);
    if (st != TG_OK) return st;
    const json_t *content = json_object_get(item, "content"), *id = json_object_get(item, "id");
    if (!json_is_string(content))
        return tg_fail(err, TG_DATA, "%s.content: expected a string", where);
    if (id && !json_is_integer(id))
        return tg_fail(err, TG_DATA, "%s.id: expected an integer", where);
    token->content = (char *)json_string_value(content);
    token->len = json_string_length(content);
    if (id) token->id = (int32_t)json_integer_value(id);
    st = tg_part_bool(item, where, "special", false, &token->special, err);
    if (st == TG_OK) st = tg_part_bool(item, where, "single_word", false, &token->single_word, err);
    if (st == TG_OK) st = tg_part_bool(item, where, "lstrip", false, &token->lstrip, err);
    if (st == TG_OK) st = tg_part_bool(item, where, "rstrip", false, &token->rstrip, err);
    if (st == TG_OK)
        st = tg_part_bool(item, where, "normalized", !token->special, &token->normalized, err);
    return st;
}

tg_status tg_added_read(tg_added *a, const json_t *list, const tg_vocab *vocab, tg_error *err) {
    if (!list || json_is_null(list)) return TG_OK;
    if (!json_is_array(list)) return tg_fail(err, TG_DATA, "added_tokens: expected a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char where[40];
        snprintf(where, sizeof where, "added_tokens[%zu]", i);
        tg_added_token token;
        tg_status st = tg_added_read_token(&token, json_array_get(list, i), where, err);
        if (st == TG_OK) st = tg_added_add(a, vocab, &token, err);
        if (st != TG_OK) return st;
        const tg_added_token *have = tg_added_find(a, token.content, token.len);
        if (have && token.id >= 0 && have->id != token.id)
            tg_log_warn(
                "text",
                "%s: '%.60s' has id %d, not %d as the file says (as Hugging Face numbers it)",
                where, token.content, (int)have->id, (int)token.id);
    }
    return TG_OK;
}

static int by_text(const void *x, const void *y) {
    const tg_pattern *a = x, *b = y;
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    if (order) return order;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

static tg_status add_pattern(tg_matcher *m, const tg_added_token *token,
                             const tg_normalizer *normalizer, tg_error *err) {
    tg_buf text = {0};
    tg_status st = TG_OK;
    if (token->normalized)
        st = tg_normalizer_text(normalizer, token->content, token->len, &text, err);
    else
        tg_buf_append(&text, token->content, token->len);
    if (st == TG_OK && text.failed) st = tg_fail_nomem(err, token->len);
    if (st == TG_OK && text.len) {
        m->begins[(unsigned char)text.data[0]] = true;
        size_t len = text.len;
        m->patterns[m->n++] = (tg_pattern){tg_buf_take(&text), len, token};
    }
    tg_buf_fini(&text);
    return st;
}

tg_status tg_added_build(tg_added *a, const tg_normalizer *normalizer, tg_error *err) {
    a->raw.patterns = tg_alloc_array(a->n + 1, sizeof(tg_pattern));
    a->normal.patterns = tg_alloc_array(a->n + 1, sizeof(tg_pattern));
    if (!a->raw.patterns || !a->normal.patterns)
        return tg_fail_nomem(err, a->n * sizeof(tg_pattern));
    for (size_t i = 0; i < a->n; i++) {
        const tg_added_token *token = &a->tokens[i];
        tg_status st =
            add_pattern(token->normalized ? &a->normal : &a->raw, token, normalizer, err);
        if (st != TG_OK) return st;
    }
    qsort(a->raw.patterns, a->raw.n, sizeof(tg_pattern), by_text);
    qsort(a->normal.patterns, a->normal.n, sizeof(tg_pattern), by_text);
    return TG_OK;
}

static void matcher_fini(tg_matcher *m) {
    for (size_t i = 0; i < m->n; i++) tg_free(m->patterns[i].text);
    tg_free(m->patterns);
}

void tg_added_fini(tg_added *a) {
    matcher_fini(&a->raw);
    matcher_fini(&a->normal);
    for (size_t i = 0; i < a->n; i++) tg_free(a->tokens[i].content);
    tg_free(a->tokens);
    tg_map_fini(&a->index);
    *a = (tg_added){0};
}

static void write_flag(tg_buf *out, const char *key, bool value) {
    tg_buf_printf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

void tg_added_write_json(const tg_added *a, tg_buf *out) {
    tg_buf_putc(out, '[');
    for (size_t i = 0; i < a->n; i++) {
        const tg_added_token *t = &a->tokens[i];
        tg_buf_printf(out, "%s{\"id\":%d,\"content\":", i ? ",\n" : "\n", (int)t->id);
        tg_part_write_str(out, t->content, t->len);
        write_flag(out, "single_word", t->single_word);
        write_flag(out, "lstrip", t->lstrip);
        write_flag(out, "rstrip", t->rstrip);
        write_flag(out, "normalized", t->normalized);
        write_flag(out, "special", t->special);
        tg_buf_putc(out, '}');
    }
    tg_buf_puts(out, "\n]");
}

/* First pattern in [lo, hi) (equal in their first `depth` bytes) whose byte at depth is at least b.
 * One that ends there comes first. */
static size_t lower(const tg_matcher *m, size_t lo, size_t hi, size_t depth, int b) {
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const tg_pattern *p = &m->patterns[mid];
        if (p->len <= depth || (unsigned char)p->text[depth] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest pattern that s starts with, or NULL. Of equal patterns the one added first. */
static const tg_pattern *longest(const tg_matcher *m, const char *s, size_t len) {
    const tg_pattern *best = NULL;
    size_t lo = 0, hi = m->n;
    for (size_t depth = 0; depth < len && lo < hi; depth++) {
        int b = (unsigned char)s[depth];
        size_t first = lower(m, lo, hi, depth, b);
        hi = lower(m, first, hi, depth, b + 1);
        lo = first;
        if (lo < hi && m->patterns[lo].len == depth + 1) best = &m->patterns[lo];
    }
    return best;
}

static size_t char_start(const char *s, size_t end) {
    do end--;
    while (end && ((unsigned char)s[end] & 0xC0) == 0x80);
    return end;
}

static bool single_word(const char *s, size_t len, size_t start, size_t end) {
    unsigned n;
    if (start && tg_unicode_is_word(tg_utf8_at(s + char_start(s, start), &n))) return false;
    return end == len || !tg_unicode_is_word(tg_utf8_at(s + end, &n));
}

static bool space_at(const char *s, unsigned *n) {
    return tg_unicode_class(tg_utf8_at(s, n)) == TG_CP_SPACE;
}

const tg_added_token *tg_added_next(const tg_matcher *m, const char *s, size_t len,
                                    tg_added_cursor *c, size_t *start, size_t *end) {
    if (!m->n) return NULL;
    while (c->pos < len) {
        const tg_pattern *p =
            m->begins[(unsigned char)s[c->pos]] ? longest(m, s + c->pos, len - c->pos) : NULL;
        if (!p) {
            c->pos++;
            continue;
        }
        *start = c->pos, *end = c->pos + p->len;
        c->pos = *end;
        if (p->token->single_word && !single_word(s, len, *start, *end)) continue;
        unsigned n;
        if (p->token->lstrip && *start < c->done) *start = c->done;
        if (p->token->lstrip)
            while (*start > c->done && space_at(s + char_start(s, *start), &n))
                *start = char_start(s, *start);
        if (p->token->rstrip)
            while (*end < len && space_at(s + *end, &n)) *end += n;
        c->done = *end;
        return p->token;
    }
    return NULL;
}
