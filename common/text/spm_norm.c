/* One pass from left to right. Read-only after reading. */
#include "common/text/spm_norm.h"

#include "common/base/alloc.h"
#include "common/text/charsmap.h"
#include "common/text/trie.h"
#include "common/text/utf8.h"

#include <string.h>

struct tg_spm_norm {
    tg_charsmap *map; /* NULL: none */
    tg_trie symbols;
    bool has_symbols;
    bool dummy_prefix, fold, escape, suffix;
};

tg_status tg_spm_norm_read(tg_spm_norm **out, const json_t *part, const char *where,
                           tg_error *err) {
    *out = tg_alloc(sizeof **out);
    if (!*out) return tg_fail_nomem(err, sizeof **out);
    tg_spm_norm *n = *out;
    const char *map = NULL;
    tg_status st = tg_part_check(part, where,
                                 "type precompiled_charsmap add_dummy_prefix "
                                 "remove_extra_whitespaces escape_whitespaces "
                                 "whitespace_as_suffix user_defined",
                                 err);
    if (st == TG_OK)
        st = tg_part_bool(part, where, "add_dummy_prefix", true, &n->dummy_prefix, err);
    if (st == TG_OK)
        st = tg_part_bool(part, where, "remove_extra_whitespaces", true, &n->fold, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "escape_whitespaces", true, &n->escape, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "whitespace_as_suffix", false, &n->suffix, err);
    if (st == TG_OK) st = tg_part_str(part, where, "precompiled_charsmap", &map, err);
    if (st == TG_OK && map && *map) st = tg_charsmap_read(&n->map, map, where, err);
    if (st == TG_OK && !tg_trie_init(&n->symbols)) st = tg_fail_nomem(err, sizeof n->symbols);
    const json_t *symbols = json_object_get(part, "user_defined");
    for (size_t i = 0; i < json_array_size(symbols) && st == TG_OK; i++) {
        const json_t *text = json_array_get(symbols, i);
        if (!json_string_length(text)) continue;
        n->has_symbols = true;
        if (!tg_trie_set(&n->symbols, json_string_value(text), json_string_length(text), 1))
            st = tg_fail_nomem(err, json_string_length(text));
    }
    if (st != TG_OK) tg_spm_norm_destroy(out);
    return st;
}

void tg_spm_norm_destroy(tg_spm_norm **n) {
    if (!*n) return;
    tg_charsmap_destroy(&(*n)->map);
    tg_trie_fini(&(*n)->symbols);
    tg_free(*n);
    *n = NULL;
}

/* What the text at pos becomes; returns how many bytes of it that stands for. */
static size_t next(const tg_spm_norm *n, tg_view in, size_t pos, const char **text, size_t *len) {
    size_t used = 0;
    if (n->has_symbols) used = tg_trie_longest(&n->symbols, in.s + pos, in.len - pos);
    if (!used && n->map) {
        const char *to = tg_charsmap_longest(n->map, in.s + pos, in.len - pos, &used);
        if (to) {
            *text = to, *len = strlen(to);
            return used;
        }
        used = 0;
    }
    unsigned bytes;
    if (!used) tg_utf8_at(in.s + pos, &bytes), used = bytes;
    *text = in.s + pos, *len = used;
    return used;
}

static bool put(const tg_spm_norm *n, tg_aligned *out, const char *s, size_t len, tg_span from) {
    for (size_t i = 0; i < len;) {
        const char *space = n->escape ? memchr(s + i, ' ', len - i) : NULL;
        size_t end = space ? (size_t)(space - s) : len;
        if (end > i && !tg_aligned_append(out, s + i, end - i, from)) return false;
        if (space && !tg_aligned_append(out, "\xE2\x96\x81", 3, from)) return false;
        i = end + (space != NULL);
    }
    return true;
}

static tg_span span_of(tg_view in, size_t from, size_t to) {
    return in.at ? (tg_span){in.at[from].start, in.at[to - 1].end} : (tg_span){0};
}

static void drop_last_spaces(const tg_spm_norm *n, tg_aligned *out) {
    const char *mark = n->escape ? "\xE2\x96\x81" : " ";
    size_t len = strlen(mark);
    while (out->text.len >= len && !memcmp(out->text.data + out->text.len - len, mark, len)) {
        out->text.len -= len;
        if (out->track) out->at.n -= len;
    }
}

bool tg_spm_norm_run(const tg_spm_norm *n, tg_view in, tg_aligned *out) {
    size_t pos = 0, len, used;
    const char *text;
    while (n->fold && pos < in.len) { /* spaces at the start */
        used = next(n, in, pos, &text, &len);
        if (len != 1 || *text != ' ') break;
        pos += used;
    }
    if (pos == in.len) return true;
    tg_span first = span_of(in, pos, pos + 1);
    if (n->dummy_prefix && !n->suffix && !put(n, out, " ", 1, (tg_span){first.start, first.start}))
        return false;
    bool after_space = n->fold;
    for (; pos < in.len; pos += used) {
        used = next(n, in, pos, &text, &len);
        while (after_space && len && *text == ' ') text++, len--;
        if (!put(n, out, text, len, span_of(in, pos, pos + used))) return false;
        if (len) after_space = n->fold && text[len - 1] == ' ';
    }
    if (n->fold) drop_last_spaces(n, out);
    tg_span last = span_of(in, in.len - 1, in.len);
    return !(n->dummy_prefix && n->suffix) || put(n, out, " ", 1, (tg_span){last.end, last.end});
}
