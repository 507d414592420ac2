/* Categories from utf8proc (Unicode 15 in Debian 12), completed to Unicode 16 by unicode_props.c. Pure functions. */
#include "common/text/unicode.h"

#include <stddef.h>
#include <utf8proc.h>

/* Marks of Unicode 16.0, and what Rust's \w has beside L, M, Nd, Nl and Pc: joiners and circled letters. */
static const uint32_t more_word[] = {
    0x0897,  0x0897,  0x200C,  0x200D,  0x24B6,  0x24E9,  0x10D69, 0x10D6D, 0x10EFC,
    0x10EFC, 0x113B8, 0x113C0, 0x113C2, 0x113C2, 0x113C5, 0x113C5, 0x113C7, 0x113CA,
    0x113CC, 0x113D0, 0x113D2, 0x113D2, 0x113E1, 0x113E2, 0x11F5A, 0x11F5A, 0x1611E,
    0x1612F, 0x1E5EE, 0x1E5EF, 0x1F130, 0x1F149, 0x1F150, 0x1F169, 0x1F170, 0x1F189,
};
#define PAIRS(table) ((unsigned)(sizeof(table) / sizeof(table[0]) / 2))

bool tg_unicode_in_ranges(const uint32_t *pairs, unsigned n, uint32_t cp) {
    unsigned lo = 0, hi = n;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (cp > pairs[2 * mid + 1])
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && cp >= pairs[2 * lo];
}

/* Has a property gained cp since Unicode 14? */
static bool gained(const char *name, size_t len, uint32_t cp) {
    const uint32_t *pairs;
    unsigned n;
    return tg_unicode_property(name, len, &pairs, &n) && tg_unicode_in_ranges(pairs, n, cp);
}

static bool is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

tg_cp_class tg_unicode_class(uint32_t cp) {
    if (cp < 0x80) {
        if ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') return TG_CP_LETTER;
        if (cp >= '0' && cp <= '9') return TG_CP_NUMBER;
        return is_space(cp) ? TG_CP_SPACE : TG_CP_OTHER;
    }
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return TG_CP_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return TG_CP_NUMBER;
    case UTF8PROC_CATEGORY_CN:
        if (gained("L", 1, cp)) return TG_CP_LETTER;
        if (gained("N", 1, cp)) return TG_CP_NUMBER;
        return TG_CP_OTHER;
    default: return is_space(cp) ? TG_CP_SPACE : TG_CP_OTHER;
    }
}

bool tg_unicode_is_numeric(uint32_t cp) {
    static const uint32_t newer[] = {0x11DE0, 0x11DE9, 0x16FF4, 0x16FF6};
    return tg_unicode_class(cp) == TG_CP_NUMBER || tg_unicode_in_ranges(newer, PAIRS(newer), cp);
}

bool tg_unicode_is_word(uint32_t cp) {
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_NO: return false;
    default: break;
    }
    return tg_unicode_class(cp) == TG_CP_LETTER || tg_unicode_class(cp) == TG_CP_NUMBER ||
           tg_unicode_in_ranges(more_word, PAIRS(more_word), cp);
}
