/* A remainder of polynomials over two elements. Where the machine multiplies such polynomials, 64 bytes at a time are moved to where the
 * next 64 stand: what is r there is r times x^512 here, so that a long text becomes 16 bytes of the same remainder. */
#include "common/base/crc32.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <wmmintrin.h>
#define HAS_PRODUCTS 1
#endif

/* Without the two inversions that CRC-32 begins and ends with. */
static uint32_t divide(uint32_t r, const unsigned char *p, size_t len) {
    /* Nibble table of the reflected polynomial 0xedb88320: 64 bytes, no start-up work. */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    for (size_t i = 0; i < len; i++) {
        r ^= p[i];
        r = (r >> 4) ^ table[r & 15];
        r = (r >> 4) ^ table[r & 15];
    }
    return r;
}

#ifdef HAS_PRODUCTS
enum { BLOCK = 16, STEP = 4 * BLOCK };

__attribute__((target("pclmul"))) static __m128i load(const unsigned char *p, int block) {
    return _mm_loadu_si128((const __m128i *)(const void *)(p + BLOCK * block));
}

/* A block moved to where `next` stands. */
__attribute__((target("pclmul"))) static __m128i move(__m128i block, __m128i by, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(block, by, 0x00),
                  high = _mm_clmulepi64_si128(block, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* At least STEP bytes. */
__attribute__((target("pclmul"))) static uint32_t
divide_by_machine(uint32_t r, const unsigned char *p, size_t len) {
    /* x^(d + 32) and x^(d - 32) modulo the polynomial, reflected, for a distance d of 512 and of 128 bits */
    const __m128i far = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
                  near = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i a = load(p, 0), b = load(p, 1), c = load(p, 2), d = load(p, 3);
    a = _mm_xor_si128(a, _mm_cvtsi32_si128((int)r));
    for (p += STEP, len -= STEP; len >= STEP; p += STEP, len -= STEP) {
        a = move(a, far, load(p, 0));
        b = move(b, far, load(p, 1));
        c = move(c, far, load(p, 2));
        d = move(d, far, load(p, 3));
    }
    unsigned char rest[BLOCK];
    _mm_storeu_si128((__m128i *)(void *)rest, move(move(move(a, near, b), near, c), near, d));
    return divide(divide(0, rest, BLOCK), p, len);
}
#endif

uint32_t tg_crc32(uint32_t crc, const void *bytes, size_t len) {
#ifdef HAS_PRODUCTS
    if (len >= STEP && __builtin_cpu_supports("pclmul"))
        return ~divide_by_machine(~crc, bytes, len);
#endif
    return ~divide(~crc, bytes, len);
}
