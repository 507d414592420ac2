/* Running a normaliser: each step reads one view and writes the other of two buffers, or passes its
 * input on when it changes nothing. What a character is aligned with follows Hugging Face: itself
 * when it stays, the character it came from when it is new. */
#include "common/text/normalizer.h"

#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <string.h>

static tg_span at(tg_view v, size_t i) {
    return v.at ? v.at[i] : (tg_span){0};
}

static bool put(tg_aligned *out, uint32_t cp, tg_span from) {
    char utf8[4];
    return tg_aligned_append(out, utf8, tg_utf8_encode(cp, utf8), from);
}

/* What a step makes of one code point: how many code points (0..3), in to. */
typedef unsigned map_fn(uint32_t cp, uint32_t to[3]);

static unsigned clean(uint32_t cp, uint32_t to[3]) {
    bool blank = cp == '\t' || cp == '\n' || cp == '\r';
    if (!blank && (cp == 0 || cp == 0xFFFD || tg_unicode_is_control(cp))) return 0;
    to[0] = blank || tg_unicode_class(cp) == TG_CP_SPACE ? ' ' : cp;
    return 1;
}

static unsigned chinese(uint32_t cp, uint32_t to[3]) {
    static const uint32_t ideographs[] = {0x3400,  0x4DBF,  0x4E00,  0x9FFF,  0xF900,
                                          0xFAFF,  0x20000, 0x2A6DF, 0x2A700, 0x2B81F,
                                          0x2B920, 0x2CEAF, 0x2F800, 0x2FA1F};
    to[0] = cp;
    if (cp < 0x3400 || !tg_unicode_in_ranges(ideographs, 7, cp)) return 1;
    to[0] = to[2] = ' ', to[1] = cp;
    return 3;
}

static unsigned accents(uint32_t cp, uint32_t to[3]) {
    to[0] = cp;
    return cp < 0x300 || !tg_unicode_is_nonspacing(cp);
}

static unsigned marks(uint32_t cp, uint32_t to[3]) {
    to[0] = cp;
    return cp < 0x300 || !tg_unicode_is_combining(cp);
}

static unsigned lower(uint32_t cp, uint32_t to[3]) {
    to[0] = tg_unicode_lower(cp);
    if (cp != 0x130) return 1;
    to[0] = 'i', to[1] = 0x307;
    return 2;
}

static unsigned nmt(uint32_t cp, uint32_t to[3]) {
    static const uint32_t dropped[] = {0x1,  0x8,  0xB,  0xB,  0xE,  0x1F,
                                       0x7F, 0x7F, 0x8F, 0x8F, 0x9F, 0x9F};
    static const uint32_t blank[] = {0x9,    0xA,    0xC,    0xD,    0x1680, 0x1680,
                                     0x200B, 0x200F, 0x2028, 0x2029, 0x2581, 0x2581,
                                     0xFEFF, 0xFEFF, 0xFFFD, 0xFFFD};
    if (tg_unicode_in_ranges(dropped, 6, cp)) return 0;
    to[0] = tg_unicode_in_ranges(blank, 8, cp) ? ' ' : cp;
    return 1;
}

/* Applies a map to every code point. Bytes up to the first change are copied as they are. */
static bool map(map_fn *fn, tg_view in, tg_aligned *out, bool *changed) {
    size_t same = 0; /* start of what is not copied yet */
    for (size_t i = 0; i < in.len;) {
        unsigned n;
        uint32_t to[3], cp = tg_utf8_at(in.s + i, &n);
        unsigned k = fn(cp, to);
        if (k != 1 || to[0] != cp) {
            if (!tg_aligned_append_view(out, tg_view_slice(in, same, i))) return false;
            for (unsigned j = 0; j < k; j++)
                if (!put(out, to[j], at(in, i))) return false;
            same = i + n;
            *changed = true;
        }
        i += n;
    }
    return !*changed || tg_aligned_append_view(out, tg_view_slice(in, same, in.len));
}

static size_t before(const char *s, size_t end) {
    do end--;
    while (end && ((unsigned char)s[end] & 0xC0) == 0x80);
    return end;
}

static bool is_space(const char *s, unsigned *n) {
    return tg_unicode_class(tg_utf8_at(s, n)) == TG_CP_SPACE;
}

static tg_view strip(const tg_norm_step *step, tg_view in) {
    size_t start = 0, end = in.len;
    unsigned n;
    while (step->left && start < end && is_space(in.s + start, &n)) start += n;
    while (step->right && end > start && is_space(in.s + before(in.s, end), &n))
        end = before(in.s, end);
    return tg_view_slice(in, start, end);
}

static tg_status replace(const tg_norm_step *step, tg_scratch *s, tg_view in, tg_aligned *out,
                         bool *changed, tg_error *err) {
    size_t len = strlen(step->text);
    for (size_t pos = 0; pos < in.len;) {
        size_t start, end;
        tg_status st = tg_regex_find(step->regex, &s->match, in.s, in.len, pos, &start, &end, err);
        if (st != TG_OK) return st;
        if (start == end && !*changed) return TG_OK;
        *changed = true;
        if (!tg_aligned_append_view(out, tg_view_slice(in, pos, start)) ||
            (end > start && !tg_aligned_append(out, step->text, len, at(in, end - 1))))
            return tg_fail_nomem(err, in.len);
        pos = end;
    }
    return TG_OK;
}

static map_fn *map_of(tg_norm_kind kind) {
    switch (kind) {
    case TG_NORM_CLEAN: return clean;
    case TG_NORM_CHINESE: return chinese;
    case TG_NORM_ACCENTS: return accents;
    case TG_NORM_MARKS: return marks;
    case TG_NORM_LOWER: return lower;
    default: return nmt;
    }
}

/* Runs one step into out; *changed says that out holds the result. */
static tg_status run_step(const tg_norm_step *step, tg_scratch *s, tg_view in, tg_aligned *out,
                          bool *changed, tg_error *err) {
    bool ok = true;
    switch (step->kind) {
    case TG_NORM_FORM:
        if (tg_nf_is_clean(step->form, in.s, in.len)) return TG_OK;
        *changed = true;
        ok = tg_nf_run(step->form, &s->points, &s->points_cap, in, out);
        break;
    case TG_NORM_PRECOMPILED:
        if (step->charsmap)
            ok = tg_charsmap_run(step->charsmap, &s->points, &s->points_cap, in, out, changed);
        break;
    case TG_NORM_SENTENCEPIECE:
        *changed = true;
        ok = tg_spm_norm_run(step->spm, in, out);
        break;
    case TG_NORM_REPLACE: return replace(step, s, in, out, changed, err);
    case TG_NORM_PREPEND:
        *changed = true;
        ok = tg_aligned_append(out, step->text, strlen(step->text), at(in, 0)) &&
             tg_aligned_append_view(out, in);
        break;
    default: ok = map(map_of(step->kind), in, out, changed);
    }
    return ok ? TG_OK : tg_fail_nomem(err, in.len);
}

tg_status tg_normalizer_run(const tg_normalizer *n, tg_scratch *s, tg_view in, tg_view *out,
                            tg_error *err) {
    size_t next = 0; /* buffer that the current view is not in */
    *out = in;
    for (size_t i = 0; i < n->n && out->len; i++) {
        if (n->step[i].kind == TG_NORM_STRIP) {
            *out = strip(&n->step[i], *out);
            continue;
        }
        tg_aligned *to = &s->normal[next];
        tg_aligned_reset(to, in.at != NULL);
        bool changed = false;
        tg_status st = run_step(&n->step[i], s, *out, to, &changed, err);
        if (st != TG_OK) return st;
        if (!changed) continue;
        *out = tg_aligned_view(to);
        next = !next;
    }
    return TG_OK;
}

tg_status tg_normalizer_text(const tg_normalizer *n, const char *text, size_t len, tg_buf *out,
                             tg_error *err) {
    tg_scratch_pool pool;
    tg_scratch_pool_init(&pool);
    tg_scratch *s = tg_scratch_take(&pool);
    tg_view done = {0};
    tg_status st = s ? tg_normalizer_run(n, s, (tg_view){text, len, NULL}, &done, err)
                     : tg_fail_nomem(err, sizeof *s);
    if (st == TG_OK) {
        tg_buf_append(out, done.s, done.len);
        if (out->failed) st = tg_fail_nomem(err, len);
    }
    if (s) tg_scratch_give(&pool, s);
    tg_scratch_pool_fini(&pool);
    return st;
}
