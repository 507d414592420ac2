/* Short hypotheses are matched bit by bit: for every place of the reference, the set of places of the hypothesis where the
 * same n-gram ends follows from that of the place before, shifted by one. Of the places in such a set, the lowest that is still
 * free is taken, so that an n-gram takes as many as the smaller count, always the same ones, and several references
 * together take the union.
 *
 * Long hypotheses have a table of their n-grams. The key of an n-gram is its words' ids, so that all orders of a place are
 * looked for independently. Invariants: between hypotheses all `places` are 0; a slot is in use when its stamp is
 * m->first or later, and its count in a reference holds when the stamp is m->now: nothing has to be cleared. */
#include "env-server/metric/matcher.h"

#include "common/base/alloc.h"

#include <string.h>

/* ---- short: bits ----------------------------------------------------------------------------------- */

static void forget_places(tg_matcher *m) {
    for (size_t i = 0; i < m->n_words && m->blocks; i++)
        memset(m->places + m->words[i] * m->blocks, 0, m->blocks * sizeof *m->places);
    m->n_words = 0;
}

static bool reserve_places(tg_matcher *m, const uint32_t *words, size_t n) {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) largest = words[i] > largest ? words[i] : largest;
    size_t needed = ((size_t)largest + 1) * m->blocks;
    if (needed <= m->cap_places) return true;
    needed += needed / 2 + 512;
    uint64_t *places = tg_alloc_array(needed, sizeof *places);
    if (!places) return false;
    tg_free(m->places);
    m->places = places, m->cap_places = needed;
    return true;
}

static void set_places(tg_matcher *m, const uint32_t *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        m->places[words[i] * m->blocks + i / 64] |= (uint64_t)1 << i % 64;
    if (n) memcpy(m->words, words, n * sizeof *words);
    m->n_words = n;
    memset(m->taken, 0, sizeof m->taken);
}

/* ends: where the n-grams that end at the place before end in the hypothesis; becomes that of this place, where the word's
 * places are `here`. Takes one place for each order. Bit k of `any`: ends[k] has some; else it is not to be read. */
static inline unsigned step(const uint64_t *here, uint64_t (*ends)[TG_MATCHER_SHORT],
                            uint64_t (*taken)[TG_MATCHER_SHORT], size_t blocks, unsigned order,
                            unsigned any) {
    unsigned now = 0;
    for (unsigned k = order; k-- > 0;) {
        if (k && !(any >> (k - 1) & 1)) continue;
        uint64_t carry = 0, take = UINT64_MAX, some = 0;
        for (size_t b = 0; b < blocks; b++) {
            uint64_t before = k ? ends[k - 1][b] : UINT64_MAX;
            uint64_t end = k ? (before << 1 | carry) & here[b] : here[b];
            carry = before >> 63;
            uint64_t left = end & ~taken[k][b];
            taken[k][b] |= left & -left & take;
            take &= left ? 0 : UINT64_MAX;
            some |= end;
            ends[k][b] = end;
        }
        now |= (unsigned)(some != 0) << k;
    }
    return now;
}

static void count_bits(uint64_t (*taken)[TG_MATCHER_SHORT], size_t blocks, unsigned order,
                       uint64_t *match) {
    for (unsigned k = 0; k < order; k++) {
        match[k] = 0;
        for (size_t b = 0; b < blocks; b++) match[k] += (uint64_t)__builtin_popcountll(taken[k][b]);
    }
}

/* The same for up to 128 words, most texts, in a few registers. */
__extension__ typedef unsigned __int128 bits128;

static inline bits128 take128(bits128 *taken, bits128 ends) {
    bits128 left = ends & ~*taken;
    *taken |= left & -left;
    return ends;
}

static void walk128(const tg_matcher *m, const uint32_t *words, size_t n,
                    uint64_t (*taken)[TG_MATCHER_SHORT]) {
    size_t blocks = m->blocks, known = m->cap_places / blocks;
    bits128 e1 = 0, e2 = 0, e3 = 0, t[4] = {0};
    for (size_t i = 0; i < n; i++) {
        bits128 here = 0;
        if (words[i] < known) {
            const uint64_t *at = m->places + words[i] * blocks;
            here = (bits128)(blocks > 1 ? at[1] : 0) << 64 | at[0];
        }
        take128(&t[3], e3 << 1 & here);
        e3 = take128(&t[2], e2 << 1 & here);
        e2 = take128(&t[1], e1 << 1 & here);
        e1 = take128(&t[0], here);
    }
    for (unsigned k = 0; k < TG_MATCHER_ORDER; k++)
        taken[k][0] = (uint64_t)t[k], taken[k][1] = (uint64_t)(t[k] >> 64);
}

static void walk_bits(const tg_matcher *m, const uint32_t *words, size_t n,
                      uint64_t (*taken)[TG_MATCHER_SHORT]) {
    static const uint64_t nowhere[TG_MATCHER_SHORT];
    uint64_t ends[TG_MATCHER_ORDER][TG_MATCHER_SHORT] = {{0}};
    size_t known = m->cap_places / m->blocks;
    unsigned any = 0;
    for (size_t i = 0; i < n; i++)
        any = step(words[i] < known ? m->places + words[i] * m->blocks : nowhere, ends, taken,
                   m->blocks, m->order, any);
}

static void match_bits(tg_matcher *m, const uint32_t *words, size_t n, uint64_t *match) {
    uint64_t taken[TG_MATCHER_ORDER][TG_MATCHER_SHORT] = {{0}};
    if (m->blocks <= 2)
        walk128(m, words, n, taken);
    else
        walk_bits(m, words, n, taken);
    for (unsigned k = 0; k < m->order; k++)
        for (size_t b = 0; b < m->blocks; b++) m->taken[k][b] |= taken[k][b];
    if (match) count_bits(taken, m->blocks, m->order, match);
}

/* ---- long: a table --------------------------------------------------------------------------------- */

struct tg_matcher_slot {
    uint64_t a, b; /* ids + 1 of words 1 and 2, 3 and 4; 0: no word */
    uint32_t hyp, ref, best;
    uint32_t stamp;
};
typedef struct tg_matcher_slot slot;

static inline void append(uint64_t *a, uint64_t *b, unsigned at, uint32_t word) {
    uint64_t id = (uint64_t)word + 1;
    if (at < 2)
        *a |= id << 32 * at;
    else
        *b |= id << 32 * (at - 2);
}

/* The n-gram's slot, or the free one where it belongs. */
static inline slot *find(const tg_matcher *m, uint64_t a, uint64_t b) {
    size_t mask = ((size_t)1 << m->bits) - 1;
    size_t at = (size_t)((a * 0x9e3779b97f4a7c15u + b * 0xd6e8feb86659fd93u) >> (64 - m->bits));
    slot *table = m->table;
    while (table[at].stamp >= m->first && (table[at].a != a || table[at].b != b))
        at = (at + 1) & mask;
    return &table[at];
}

/* Room for n n-grams, and a new stamp. */
static bool reserve_slots(tg_matcher *m, size_t n) {
    unsigned bits = m->bits ? m->bits : 9;
    while ((size_t)1 << bits < 2 * n) bits++;
    if (bits != m->bits) {
        slot *table = tg_alloc_array((size_t)1 << bits, sizeof *table);
        if (!table) return false;
        tg_free(m->table);
        m->table = table, m->bits = bits, m->now = 0;
    } else if (m->now > UINT32_MAX / 2) {
        memset(m->table, 0, sizeof *m->table << bits);
        m->now = 0;
    }
    m->first = ++m->now;
    return true;
}

static void fill_table(tg_matcher *m, const uint32_t *words, size_t n) {
    memset(m->match, 0, sizeof m->match);
    for (size_t i = 0; i < n; i++) {
        unsigned most = n - i < m->order ? (unsigned)(n - i) : m->order;
        uint64_t a = 0, b = 0;
        for (unsigned k = 0; k < most; k++) {
            append(&a, &b, k, words[i + k]);
            slot *s = find(m, a, b);
            if (s->stamp < m->first) *s = (slot){.a = a, .b = b, .stamp = m->first};
            s->hyp++;
        }
    }
}

static void match_table(tg_matcher *m, const uint32_t *words, size_t n, uint64_t *match) {
    uint64_t own[TG_MATCHER_ORDER] = {0};
    m->now++;
    for (size_t i = 0; i < n; i++) {
        unsigned most = n - i < m->order ? (unsigned)(n - i) : m->order;
        uint64_t a = 0, b = 0;
        for (unsigned k = 0; k < most; k++) {
            append(&a, &b, k, words[i + k]);
            slot *s = find(m, a, b);
            if (s->stamp < m->first) break; /* nor is there any that goes on from it */
            if (s->stamp != m->now) s->stamp = m->now, s->ref = 0;
            bool hit = ++s->ref <= s->hyp;
            own[k] += hit;
            if (s->ref > s->best) s->best = s->ref, m->match[k] += hit;
        }
    }
    if (match) memcpy(match, own, m->order * sizeof *match);
}

/* ---- both ------------------------------------------------------------------------------------------ */

void tg_matcher_hypothesis(tg_matcher *m, const uint32_t *words, size_t n, unsigned order) {
    forget_places(m);
    m->order = order;
    m->blocks = n <= 64 * TG_MATCHER_SHORT ? n / 64 + (n % 64 > 0 || !n) : 0;
    if (m->blocks ? !reserve_places(m, words, n) : !reserve_slots(m, n * order))
        m->failed = true;
    else if (m->blocks)
        set_places(m, words, n);
    else
        fill_table(m, words, n);
}

void tg_matcher_reference(tg_matcher *m, const uint32_t *words, size_t n, uint64_t *match) {
    if (m->failed) {
        if (match) memset(match, 0, m->order * sizeof *match);
    } else if (m->blocks)
        match_bits(m, words, n, match);
    else
        match_table(m, words, n, match);
}

void tg_matcher_all(const tg_matcher *m, uint64_t *match) {
    uint64_t taken[TG_MATCHER_ORDER][TG_MATCHER_SHORT];
    memcpy(taken, m->taken, sizeof taken);
    if (m->blocks)
        count_bits(taken, m->blocks, m->order, match);
    else
        memcpy(match, m->match, m->order * sizeof *match);
}

void tg_matcher_fini(tg_matcher *m) {
    tg_free(m->places);
    tg_free(m->table);
    memset(m, 0, sizeof *m);
}
