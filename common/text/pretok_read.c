/* Reading the "pre_tokenizer" part. Nested sequences are laid flat: the order is what matters. */
#include "common/text/pretok.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"

#include <string.h>

static tg_status read_byte_level(tg_pretok_part *p, const json_t *part, const char *where,
                                 tg_error *err) {
    bool trim; /* used by the post-processor alone */
    p->kind = TG_PRETOK_BYTE_LEVEL;
    tg_status st = tg_part_check(part, where, "type add_prefix_space trim_offsets use_regex", err);
    if (st == TG_OK)
        st = tg_part_bool(part, where, "add_prefix_space", true, &p->prefix_space, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "trim_offsets", true, &trim, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "use_regex", true, &p->use_regex, err);
    return st;
}

static tg_status read_digits(tg_pretok_part *p, const json_t *part, const char *where,
                             tg_error *err) {
    bool each;
    p->kind = TG_PRETOK_DIGITS;
    tg_status st = tg_part_check(part, where, "type individual_digits", err);
    if (st == TG_OK) st = tg_part_bool(part, where, "individual_digits", false, &each, err);
    if (st == TG_OK) p->behavior = each ? TG_SPLIT_ISOLATED : TG_SPLIT_CONTIGUOUS;
    return st;
}

/* Files without "prepend_scheme" say it with "add_prefix_space". */
static tg_status read_metaspace(tg_pretok *all, tg_pretok_part *p, const json_t *part,
                                const char *where, tg_error *err) {
    const char *scheme = NULL, *mark = NULL;
    bool prefix;
    p->kind = TG_PRETOK_METASPACE;
    tg_status st = tg_part_check(
        part, where, "type replacement str_rep add_prefix_space prepend_scheme split", err);
    if (st == TG_OK) st = tg_part_str(part, where, "replacement", &mark, err);
    if (st == TG_OK) st = tg_part_str(part, where, "prepend_scheme", &scheme, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "add_prefix_space", true, &prefix, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "split", true, &p->split, err);
    if (st != TG_OK) return st;
    if (!mark || !*mark || tg_utf8_count(mark, strlen(mark)) != 1)
        return tg_fail(err, TG_DATA, "%s.replacement: expected one character", where);
    memcpy(p->mark, mark, strlen(mark) + 1);
    if (!prefix && scheme && strcmp(scheme, "never"))
        return tg_fail(err, TG_DATA,
                       "%s: add_prefix_space is false, but prepend_scheme is \"%.20s\"", where,
                       scheme);
    p->prefix_space = scheme ? !strcmp(scheme, "always") : prefix;
    p->prefix_first = scheme && !strcmp(scheme, "first");
    if (scheme && !p->prefix_space && !p->prefix_first && strcmp(scheme, "never"))
        return tg_fail(err, TG_DATA,
                       "%s.prepend_scheme: '%.20s' is not one of always, first, never", where,
                       scheme);
    all->wants_places |= p->prefix_first;
    for (size_t i = 0; i + 1 < all->n; i++)
        if (all->part[i].kind == TG_PRETOK_METASPACE)
            return tg_fail(err, TG_UNSUPPORTED, "%s: a second Metaspace", where);
    return TG_OK;
}

static tg_status read_behavior(tg_pretok_part *p, const json_t *part, const char *where,
                               tg_error *err) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name;
    tg_status st = tg_part_str(part, where, "behavior", &name, err);
    if (st != TG_OK) return st;
    for (int i = 0; name && i < 5; i++)
        if (!strcmp(name, names[i])) {
            p->behavior = (tg_split_behavior)i;
            return TG_OK;
        }
    return tg_fail(err, TG_DATA,
                   "%s.behavior: '%.40s' is not one of Removed, Isolated, MergedWithPrevious, "
                   "MergedWithNext, Contiguous",
                   where, name ? name : "");
}

static tg_status read_split(tg_pretok_part *p, const json_t *part, const char *where,
                            tg_error *err) {
    p->kind = TG_PRETOK_SPLIT;
    tg_status st = tg_part_check(part, where, "type pattern behavior invert", err);
    if (st == TG_OK) st = read_behavior(p, part, where, err);
    if (st == TG_OK) st = tg_part_bool(part, where, "invert", false, &p->invert, err);
    if (st != TG_OK) return st;
    const json_t *pattern = json_object_get(part, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *text = json_string_value(json_object_get(pattern, "String"));
    if (!regex && !text)
        return tg_fail(err, TG_DATA, "%s.pattern: expected {\"Regex\": …} or {\"String\": …}",
                       where);
    return tg_regex_create(&p->regex, regex ? regex : text, !regex, where, err);
}

static tg_status read_part(tg_pretok *p, const json_t *part, const char *where, int depth,
                           tg_error *err);

static tg_status read_sequence(tg_pretok *p, const json_t *part, const char *where, int depth,
                               tg_error *err) {
    tg_status st = tg_part_check(part, where, "type pretokenizers", err);
    const json_t *list = json_object_get(part, "pretokenizers");
    if (st == TG_OK && !json_is_array(list))
        st = tg_fail(err, TG_DATA, "%s.pretokenizers: expected a list", where);
    for (size_t i = 0; st == TG_OK && i < json_array_size(list); i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "pre_tokenizer.pretokenizers[%zu]", i);
        st = read_part(p, json_array_get(list, i), inner, depth + 1, err);
    }
    return st;
}

static tg_status read_punctuation(tg_pretok_part *p, const json_t *part, const char *where,
                                  tg_error *err) {
    p->kind = TG_PRETOK_PUNCTUATION;
    p->behavior = TG_SPLIT_ISOLATED;
    tg_status st = tg_part_check(part, where, "type behavior", err);
    if (st != TG_OK || !json_object_get(part, "behavior")) return st;
    return read_behavior(p, part, where, err);
}

static tg_status read_delimiter(tg_pretok_part *p, const json_t *part, const char *where,
                                tg_error *err) {
    const char *text = NULL;
    p->kind = TG_PRETOK_SPLIT;
    p->behavior = TG_SPLIT_REMOVED;
    tg_status st = tg_part_check(part, where, "type delimiter", err);
    if (st == TG_OK) st = tg_part_str(part, where, "delimiter", &text, err);
    if (st == TG_OK && (!text || tg_utf8_count(text, strlen(text)) != 1))
        st = tg_fail(err, TG_DATA, "%s.delimiter: expected one character", where);
    return st == TG_OK ? tg_regex_create(&p->regex, text, true, where, err) : st;
}

static tg_status read_fixed(tg_pretok_part *p, const json_t *part, const char *where,
                            tg_error *err) {
    p->kind = TG_PRETOK_FIXED_LENGTH;
    tg_status st = tg_part_check(part, where, "type length", err);
    const json_t *length = json_object_get(part, "length");
    if (st == TG_OK && length && (!json_is_integer(length) || json_integer_value(length) < 1))
        st = tg_fail(err, TG_DATA, "%s.length: expected a count of at least 1", where);
    p->length = length ? (size_t)json_integer_value(length) : 5;
    return st;
}

/* BertPreTokenizer is WhitespaceSplit, then Punctuation with every match alone. */
static tg_status read_bert(tg_pretok *p, const json_t *part, const char *where, tg_error *err) {
    if (p->n + 1 > TG_PRETOK_MAX)
        return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d parts", where, TG_PRETOK_MAX);
    p->part[p->n - 1].kind = TG_PRETOK_WHITESPACE_SPLIT;
    p->part[p->n++] =
        (tg_pretok_part){.kind = TG_PRETOK_PUNCTUATION, .behavior = TG_SPLIT_ISOLATED};
    return tg_part_check(part, where, "type", err);
}

static tg_status read_part(tg_pretok *p, const json_t *part, const char *where, int depth,
                           tg_error *err) {
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "%s.type: missing", where);
    if (depth > 4) return tg_fail(err, TG_DATA, "%s: nested too deep", where);
    if (!strcmp(type, "Sequence")) return read_sequence(p, part, where, depth, err);
    if (p->byte_level)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: \"%.40s\" after ByteLevel is not built into this version", where, type);
    if (p->n == TG_PRETOK_MAX)
        return tg_fail(err, TG_UNSUPPORTED, "%s: more than %d parts", where, TG_PRETOK_MAX);
    tg_pretok_part *next =
        &p->part[p->n++]; /* counted first, so that fini frees a half-read part */
    if (!strcmp(type, "ByteLevel")) {
        p->byte_level = true;
        return read_byte_level(next, part, where, err);
    }
    if (!strcmp(type, "Split")) return read_split(next, part, where, err);
    if (!strcmp(type, "Digits")) return read_digits(next, part, where, err);
    if (!strcmp(type, "Punctuation")) return read_punctuation(next, part, where, err);
    if (!strcmp(type, "Metaspace")) return read_metaspace(p, next, part, where, err);
    if (!strcmp(type, "BertPreTokenizer")) return read_bert(p, part, where, err);
    if (!strcmp(type, "CharDelimiterSplit")) return read_delimiter(next, part, where, err);
    if (!strcmp(type, "FixedLength")) return read_fixed(next, part, where, err);
    if (!strcmp(type, "UnicodeScripts")) {
        next->kind = TG_PRETOK_SCRIPTS;
        return tg_part_check(part, where, "type", err);
    }
    bool split = !strcmp(type, "WhitespaceSplit");
    if (split || !strcmp(type, "Whitespace")) {
        next->kind = split ? TG_PRETOK_WHITESPACE_SPLIT : TG_PRETOK_WHITESPACE;
        return tg_part_check(part, where, "type", err);
    }
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: type \"%.40s\" is not built into this version (ByteLevel, Split, Digits, "
                   "BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Metaspace, "
                   "CharDelimiterSplit, UnicodeScripts, FixedLength and Sequence are)",
                   where, type);
}

tg_status tg_pretok_read(tg_pretok *p, const json_t *part, tg_error *err) {
    *p = (tg_pretok){0};
    bool none = !part || json_is_null(part);
    p->json = none ? tg_strdup("null") : tg_part_dump(part);
    if (!p->json) return tg_fail_nomem(err, 0);
    return none ? TG_OK : read_part(p, part, "pre_tokenizer", 0, err);
}

void tg_pretok_fini(tg_pretok *p) {
    for (size_t i = 0; i < p->n; i++) tg_regex_destroy(&p->part[i].regex);
    tg_free(p->json);
    *p = (tg_pretok){0};
}
