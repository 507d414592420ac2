/* Decompose, order the marks, compose. Each code point carries its change count, from which the
 * alignment of the output follows: an inserted character is aligned like the one before it, another
 * with the next input character. */
#include "common/text/nfc.h"

#include "common/base/alloc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

/* Hugging Face normalises by Unicode 9: to it, marks that came later (up to 15) are plain characters. */
static const uint32_t late_marks[] = {
    0x07FD,  0x07FD,  0x0898,  0x089F,  0x08CA,  0x08D3,  0x09FE,  0x09FE,  0x0C3C,
    0x0C3C,  0x0D3B,  0x0D3C,  0x0EBA,  0x0EBA,  0x1715,  0x1715,  0x1ABF,  0x1ACE,
    0x1DF6,  0x1DFA,  0xA82C,  0xA82C,  0x10D24, 0x10D27, 0x10EAB, 0x10EAC, 0x10EFD,
    0x10EFF, 0x10F46, 0x10F50, 0x10F82, 0x10F85, 0x11070, 0x11070, 0x1133B, 0x1133B,
    0x1145E, 0x1145E, 0x11839, 0x1183A, 0x1193D, 0x1193E, 0x11943, 0x11943, 0x119E0,
    0x119E0, 0x11A34, 0x11A34, 0x11A47, 0x11A47, 0x11A99, 0x11A99, 0x11D42, 0x11D42,
    0x11D44, 0x11D45, 0x11D97, 0x11D97, 0x11F41, 0x11F42, 0x16FF0, 0x16FF1, 0x1E08F,
    0x1E08F, 0x1E130, 0x1E136, 0x1E2AE, 0x1E2AE, 0x1E2EC, 0x1E2EF, 0x1E4EC, 0x1E4EF,
};
/* Compatibility decompositions that came later. */
static const uint32_t late_compat[] = {
    0x32FF,  0x32FF,  0xA7F2,  0xA7F4,  0xAB69,  0xAB69,  0x10781, 0x10785, 0x10787,
    0x107B0, 0x107B2, 0x107BA, 0x1E030, 0x1E06D, 0x1F16C, 0x1F16C, 0x1FBF0, 0x1FBF9,
};
enum { MAX_PARTS = 32 };
enum { LATE_PAIR = 0x11938 }; /* the one composition that came later: U+11935 U+11930 */

static uint32_t class_of(uint32_t cp) {
    uint32_t class = utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
    if (class && tg_unicode_in_ranges(late_marks, sizeof late_marks / sizeof late_marks[0] / 2, cp))
        return 0;
    return class;
}

static bool is_late(uint32_t cp) {
    return tg_unicode_in_ranges(late_compat, sizeof late_compat / sizeof late_compat[0] / 2, cp);
}

static bool is_clean(uint32_t cp) {
    if (cp < 0x300 || (cp >= 0xAC00 && cp <= 0xD7A3) || (cp >= 0x1E00 && cp <= 0x1EFF)) return true;
    if (cp >= 0x1100 && cp <= 0x11FF) return false; /* Hangul letters compose by rule */
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)cp);
    if (p->combining_class && class_of(cp)) return false;
    if (p->decomp_seqindex != UINT16_MAX && p->decomp_type == 0) return false;
    return p->comb_index == UINT16_MAX || p->comb_index < 0x8000;
}

bool tg_nf_is_clean(tg_nf form, const char *s, size_t len) {
    uint32_t ascii = 0xA0; /* no form changes what is below */
    for (size_t i = 0; i < len;) {
        unsigned n;
        uint32_t cp = tg_utf8_at(s + i, &n);
        if (cp >= ascii && (form != TG_NFC || !is_clean(cp))) return false;
        i += n;
    }
    return true;
}

static int by_class(const void *x, const void *y) {
    const tg_point *a = x, *b = y;
    if (a->class != b->class) return a->class < b->class ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Puts the marks in [start, end) in canonical order. A run is most often sorted already. */
static void sort_marks(tg_point *p, size_t start, size_t end) {
    for (size_t i = start + 1; i < end; i++)
        if (p[i - 1].class > p[i].class) {
            qsort(p + start, end - start, sizeof *p, by_class);
            return;
        }
}

/* Canonical decomposition of the whole text, marks in order. Returns the number of points, 0 when
 * out of memory. */
static size_t decompose(tg_nf form, tg_point **points, size_t *cap, tg_view in) {
    bool compat = form == TG_NFKC || form == TG_NFKD;
    utf8proc_option_t option = UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
    size_t n = 0, marks = 0; /* marks: where the current run of marks starts */
    for (size_t i = 0; i < in.len;) {
        unsigned bytes;
        uint32_t cp = tg_utf8_at(in.s + i, &bytes);
        utf8proc_int32_t part[MAX_PARTS] = {(utf8proc_int32_t)cp};
        int boundary = 0;
        utf8proc_ssize_t k = 1;
        if (cp >= 0xA0 && cp != LATE_PAIR && !(compat && is_late(cp)))
            k = utf8proc_decompose_char((utf8proc_int32_t)cp, part, MAX_PARTS, option, &boundary);
        if (k < 1 || k > MAX_PARTS) k = 1, part[0] = (utf8proc_int32_t)cp;
        if (n + (size_t)k > *cap) {
            size_t more = *cap ? 2 * *cap : 64;
            tg_point *p = tg_realloc_array(*points, more, sizeof *p);
            if (!p) return 0;
            *points = p, *cap = more;
        }
        for (utf8proc_ssize_t j = 0; j < k; j++) {
            tg_point point = {(uint32_t)part[j], j > 0, class_of((uint32_t)part[j]), (uint32_t)n};
            if (!point.class) {
                sort_marks(*points, marks, n);
                marks = n + 1;
            }
            (*points)[n++] = point;
        }
        i += bytes;
    }
    sort_marks(*points, marks, n);
    return n;
}

/* The composition of two code points, or 0. */
static uint32_t pair(uint32_t a, uint32_t b) {
    if (b < 0x300) return 0;
    utf8proc_int32_t two[2] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    bool one = utf8proc_normalize_utf32(two, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1;
    return one && two[0] != LATE_PAIR ? (uint32_t)two[0] : 0;
}

/* Composes in place: a mark joins the last starter unless a mark between has the same or a higher
 * class. */
static size_t compose(tg_point *p, size_t n) {
    size_t out = 0, starter = SIZE_MAX;
    int64_t last = -1; /* class of the last point kept after the starter; -1: none */
    for (size_t i = 0; i < n; i++) {
        uint32_t both =
            starter != SIZE_MAX && (last < p[i].class) ? pair(p[starter].cp, p[i].cp) : 0;
        if (both) {
            p[starter].cp = both;
            p[starter].change += p[i].change - 1;
            continue;
        }
        last = p[i].class;
        if (!p[i].class) starter = out, last = -1;
        p[out++] = p[i];
    }
    return out;
}

static size_t char_len(const char *s) {
    unsigned n;
    tg_utf8_at(s, &n);
    return n;
}

bool tg_points_emit(const tg_point *points, size_t n, tg_view in, tg_aligned *out) {
    size_t pos = 0; /* input consumed */
    for (size_t i = 0; i < n; i++) {
        const tg_point *p = &points[i];
        tg_span from = {0};
        if (in.at && p->change > 0)
            from = pos ? in.at[pos - 1] : (tg_span){0};
        else if (in.at)
            from = in.at[pos < in.len ? pos : in.len - 1];
        for (int k = p->change; k <= 0 && pos < in.len; k++) pos += char_len(in.s + pos);
        char utf8[4];
        if (!tg_aligned_append(out, utf8, tg_utf8_encode(p->cp, utf8), from)) return false;
    }
    return true;
}

bool tg_nf_run(tg_nf form, tg_point **points, size_t *cap, tg_view in, tg_aligned *out) {
    if (!in.len) return true;
    size_t n = decompose(form, points, cap, in);
    if (!n) return false;
    if (form == TG_NFC || form == TG_NFKC) n = compose(*points, n);
    return tg_points_emit(*points, n, in, out);
}
