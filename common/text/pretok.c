/* Running a pre-tokenizer: each part cuts its view and hands the cuts to the next part; behind the
 * last one stands the model. Depth-first, so no list of pieces is ever stored. */
#include "common/text/pretok.h"

#include "common/text/bytelevel.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <string.h>

/* One run over a text: what every level needs. */
typedef struct run {
    const tg_pretok *pretok;
    const tg_text_model *model;
    tg_scratch *scratch;
    tg_sink *out;
    tg_error *err;
} run;

static tg_status cut(run *r, size_t level, tg_view v);

static tg_status cut_byte_level(run *r, size_t level, tg_view v) {
    const tg_pretok_part *part = &r->pretok->part[level];
    if (part->prefix_space && v.s[0] != ' ') {
        /* The space is aligned with the first character, as in Hugging Face. */
        tg_aligned *a = &r->scratch->prefixed;
        tg_aligned_reset(a, v.at != NULL);
        if (!tg_aligned_append(a, " ", 1, v.at ? v.at[0] : (tg_span){0}) ||
            !tg_aligned_append_view(a, v))
            return tg_fail_nomem(r->err, v.len);
        v = tg_aligned_view(a);
    }
    if (!part->use_regex) return cut(r, level + 1, v);
    for (size_t pos = 0; pos < v.len;) {
        size_t end = tg_bytelevel_next(v.s, v.len, pos);
        tg_status st = cut(r, level + 1, tg_view_slice(v, pos, end));
        if (st != TG_OK) return st;
        pos = end;
    }
    return TG_OK;
}

/* The piece a Split holds back because what follows may join it. */
typedef struct pending {
    size_t start, end;
    bool any, match;
} pending;

static tg_status flush(run *r, size_t level, tg_view v, pending *p) {
    bool any = p->any && p->end > p->start;
    p->any = false;
    return any ? cut(r, level + 1, tg_view_slice(v, p->start, p->end)) : TG_OK;
}

/* Does the next stretch join the one held back? */
static bool joins(tg_split_behavior behavior, const pending *p, bool match) {
    switch (behavior) {
    case TG_SPLIT_CONTIGUOUS: return p->any && p->match == match;
    case TG_SPLIT_MERGED_WITH_PREVIOUS: return p->any && !p->match && match;
    case TG_SPLIT_MERGED_WITH_NEXT: return p->any && p->match && !match;
    default: return false;
    }
}

static tg_status put(run *r, size_t level, tg_view v, pending *p, size_t start, size_t end,
                     bool match) {
    const tg_pretok_part *part = &r->pretok->part[level];
    if (start == end) return TG_OK;
    match ^= part->invert;
    if (joins(part->behavior, p, match)) {
        p->end = end;
        /* A stretch that was joined to takes no more, except of its own kind. */
        if (part->behavior != TG_SPLIT_CONTIGUOUS)
            p->match = part->behavior == TG_SPLIT_MERGED_WITH_PREVIOUS;
        return TG_OK;
    }
    tg_status st = flush(r, level, v, p);
    if (part->behavior == TG_SPLIT_REMOVED && match) return st;
    *p = (pending){start, end, true, match};
    return st;
}

static tg_status cut_split(run *r, size_t level, tg_view v) {
    const tg_pretok_part *part = &r->pretok->part[level];
    pending p = {0};
    tg_status st = TG_OK;
    for (size_t pos = 0; pos < v.len && st == TG_OK;) {
        size_t start, end;
        st = tg_regex_find(part->regex, &r->scratch->match, v.s, v.len, pos, &start, &end, r->err);
        if (st == TG_OK) st = put(r, level, v, &p, pos, start, false);
        if (st == TG_OK) st = put(r, level, v, &p, start, end, true);
        pos = end;
    }
    return st == TG_OK ? flush(r, level, v, &p) : st;
}

static tg_status cut_digits(run *r, size_t level, tg_view v) {
    pending p = {0};
    tg_status st = TG_OK;
    for (size_t pos = 0; pos < v.len && st == TG_OK;) {
        unsigned n;
        bool digit = tg_unicode_is_numeric(tg_utf8_at(v.s + pos, &n));
        bool alone = digit && r->pretok->part[level].behavior == TG_SPLIT_ISOLATED;
        if (p.any && p.match == digit && !alone)
            p.end = pos + n;
        else {
            st = flush(r, level, v, &p);
            p = (pending){pos, pos + n, true, digit};
        }
        pos += n;
    }
    return st == TG_OK ? flush(r, level, v, &p) : st;
}

/* Runs of word characters and runs of what is neither word nor white space. */
static tg_status cut_words(run *r, size_t level, tg_view v) {
    size_t start = 0;
    int kind = 0; /* of the run that began at start; 0: white space */
    for (size_t pos = 0; pos < v.len;) {
        unsigned n;
        uint32_t cp = tg_utf8_at(v.s + pos, &n);
        int now = tg_unicode_is_word(cp) ? 1 : tg_unicode_class(cp) == TG_CP_SPACE ? 0 : 2;
        if (now != kind) {
            tg_status st = kind ? cut(r, level + 1, tg_view_slice(v, start, pos)) : TG_OK;
            if (st != TG_OK) return st;
            start = pos, kind = now;
        }
        pos += n;
    }
    return kind ? cut(r, level + 1, tg_view_slice(v, start, v.len)) : TG_OK;
}

static bool is_space_at(const char *s, unsigned *n) {
    if ((unsigned char)*s < 0x80) return *n = 1, *s == ' ' || (*s >= 9 && *s <= 13);
    return tg_unicode_class(tg_utf8_at(s, n)) == TG_CP_SPACE;
}

static tg_status cut_spaces(run *r, size_t level, tg_view v) {
    size_t start = 0;
    for (size_t pos = 0; pos < v.len;) {
        unsigned n;
        if (is_space_at(v.s + pos, &n)) {
            tg_status st = start < pos ? cut(r, level + 1, tg_view_slice(v, start, pos)) : TG_OK;
            if (st != TG_OK) return st;
            start = pos + n;
        }
        pos += n;
    }
    return start < v.len ? cut(r, level + 1, tg_view_slice(v, start, v.len)) : TG_OK;
}

static tg_status cut_punctuation(run *r, size_t level, tg_view v) {
    pending p = {0};
    tg_status st = TG_OK;
    size_t start = 0;
    for (size_t pos = 0; pos < v.len && st == TG_OK;) {
        unsigned n;
        if (tg_unicode_is_punctuation(tg_utf8_at(v.s + pos, &n))) {
            st = put(r, level, v, &p, start, pos, false);
            if (st == TG_OK) st = put(r, level, v, &p, pos, pos + n, true);
            start = pos + n;
        }
        pos += n;
    }
    if (st == TG_OK) st = put(r, level, v, &p, start, v.len, false);
    return st == TG_OK ? flush(r, level, v, &p) : st;
}

/* Where the script changes. What goes with any script joins what stands before it; at the start of a text it is lost, as
 * in Hugging Face. */
static tg_status cut_scripts(run *r, size_t level, tg_view v) {
    size_t start = 0;
    unsigned last = 0; /* 0: none yet */
    for (size_t pos = 0; pos < v.len;) {
        unsigned n, script = tg_unicode_script(tg_utf8_at(v.s + pos, &n));
        if (script && script != last) {
            tg_status st = last ? cut(r, level + 1, tg_view_slice(v, start, pos)) : TG_OK;
            if (st != TG_OK) return st;
            start = pos, last = script;
        }
        pos += n;
    }
    return last ? cut(r, level + 1, tg_view_slice(v, start, v.len)) : TG_OK;
}

static tg_status cut_fixed(run *r, size_t level, tg_view v) {
    tg_status st = TG_OK;
    for (size_t pos = 0; pos < v.len && st == TG_OK;) {
        size_t end = pos;
        for (size_t i = 0; i < r->pretok->part[level].length && end < v.len; i++) {
            unsigned n;
            tg_utf8_at(v.s + end, &n);
            end += n;
        }
        st = cut(r, level + 1, tg_view_slice(v, pos, end));
        pos = end;
    }
    return st;
}

static bool starts_with(tg_view v, const char *mark, size_t len) {
    return v.len >= len && !memcmp(v.s, mark, len);
}

/* Spaces become the mark, and one stands before the text, aligned with its first character. */
static bool put_marks(const tg_pretok_part *part, size_t len, tg_view v, tg_aligned *out) {
    tg_aligned_reset(out, v.at != NULL);
    bool has = v.s[0] == ' ' || starts_with(v, part->mark, len);
    bool first = part->prefix_first && v.at && v.at[0].start == 0;
    if (!has && (part->prefix_space || first) &&
        !tg_aligned_append(out, part->mark, len, v.at ? v.at[0] : (tg_span){0}))
        return false;
    for (size_t pos = 0; pos < v.len;) {
        const char *space = memchr(v.s + pos, ' ', v.len - pos);
        size_t end = space ? (size_t)(space - v.s) : v.len;
        if (!tg_aligned_append_view(out, tg_view_slice(v, pos, end))) return false;
        if (space && !tg_aligned_append(out, part->mark, len, v.at ? v.at[end] : (tg_span){0}))
            return false;
        pos = end + 1;
    }
    return true;
}

static tg_status cut_metaspace(run *r, size_t level, tg_view v) {
    const tg_pretok_part *part = &r->pretok->part[level];
    size_t len = strlen(part->mark), start = 0;
    if (!put_marks(part, len, v, &r->scratch->spaced)) return tg_fail_nomem(r->err, v.len);
    v = tg_aligned_view(&r->scratch->spaced);
    for (size_t pos = part->split ? 1 : v.len; pos < v.len;) {
        const char *mark = memmem(v.s + pos, v.len - pos, part->mark, len);
        if (!mark) break;
        size_t end = (size_t)(mark - v.s);
        tg_status st = cut(r, level + 1, tg_view_slice(v, start, end));
        if (st != TG_OK) return st;
        start = end, pos = end + len;
    }
    return cut(r, level + 1, tg_view_slice(v, start, v.len));
}

static tg_status cut(run *r, size_t level, tg_view v) {
    if (!v.len) return TG_OK;
    if (level == r->pretok->n)
        return r->model->ops->encode(r->model, r->scratch, v, r->out, r->err);
    switch (r->pretok->part[level].kind) {
    case TG_PRETOK_BYTE_LEVEL: return cut_byte_level(r, level, v);
    case TG_PRETOK_DIGITS: return cut_digits(r, level, v);
    case TG_PRETOK_WHITESPACE: return cut_words(r, level, v);
    case TG_PRETOK_WHITESPACE_SPLIT: return cut_spaces(r, level, v);
    case TG_PRETOK_PUNCTUATION: return cut_punctuation(r, level, v);
    case TG_PRETOK_METASPACE: return cut_metaspace(r, level, v);
    case TG_PRETOK_SCRIPTS: return cut_scripts(r, level, v);
    case TG_PRETOK_FIXED_LENGTH: return cut_fixed(r, level, v);
    default: return cut_split(r, level, v);
    }
}

tg_status tg_pretok_run(const tg_pretok *p, const tg_text_model *model, tg_scratch *s, tg_view text,
                        tg_sink *out, tg_error *err) {
    run r = {p, model, s, out, err};
    return cut(&r, 0, text);
}
