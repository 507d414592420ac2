/* Categories from utf8proc (Unicode 15 in Debian 12), completed to Unicode 16. The tables start at 14, for PCRE2's sake.
 * Pure functions. */
#include "common/text/unicode.h"

#include <stddef.h>
#include <utf8proc.h>

/* Letters that Unicode 15.0, 15.1 and 16.0 added to 14.0. */
static const uint32_t new_letters[] = {
    0x1C89,  0x1C8A,  0xA7CB,  0xA7CD,  0xA7DA,  0xA7DC,  0x105C0, 0x105F3, 0x10D4A, 0x10D65,
    0x10D6F, 0x10D85, 0x10EC2, 0x10EC4, 0x1123F, 0x11240, 0x11380, 0x11389, 0x1138B, 0x1138B,
    0x1138E, 0x1138E, 0x11390, 0x113B5, 0x113B7, 0x113B7, 0x113D1, 0x113D1, 0x113D3, 0x113D3,
    0x11BC0, 0x11BE0, 0x11F02, 0x11F02, 0x11F04, 0x11F10, 0x11F12, 0x11F33, 0x1342F, 0x1342F,
    0x13441, 0x13446, 0x13460, 0x143FA, 0x16100, 0x1611D, 0x16D40, 0x16D6C, 0x18CFF, 0x18CFF,
    0x1B132, 0x1B132, 0x1B155, 0x1B155, 0x1DF25, 0x1DF2A, 0x1E030, 0x1E06D, 0x1E4D0, 0x1E4EB,
    0x1E5D0, 0x1E5ED, 0x1E5F0, 0x1E5F0, 0x2B739, 0x2B739, 0x2EBF0, 0x2EE5D, 0x31350, 0x323AF,
};
/* Numbers likewise; those after 15.0 are all decimal digits. */
static const uint32_t new_numbers[] = {
    0x10D40, 0x10D49, 0x116D0, 0x116E3, 0x11BF0, 0x11BF9, 0x11F50, 0x11F59, 0x16130, 0x16139,
    0x16D70, 0x16D79, 0x1CCF0, 0x1CCF9, 0x1D2C0, 0x1D2D3, 0x1E4F0, 0x1E4F9, 0x1E5F1, 0x1E5FA,
};
/* Marks of Unicode 16.0, and what \w has beside L, M, Nd, Nl and Pc: joiners and circled letters.
 */
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

const uint32_t *tg_unicode_added(char which, unsigned *n) {
    *n = which == 'L' ? PAIRS(new_letters) : PAIRS(new_numbers);
    return which == 'L' ? new_letters : new_numbers;
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
        if (tg_unicode_in_ranges(new_letters, PAIRS(new_letters), cp)) return TG_CP_LETTER;
        if (tg_unicode_in_ranges(new_numbers, PAIRS(new_numbers), cp)) return TG_CP_NUMBER;
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
