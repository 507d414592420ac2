/* Bit-parallel LCS. In row i, bit j is 0 exactly where the table grows: L(i, j+1) = L(i, j) + 1; so
 * L(i, j) is the number of zeros among the first j bits. One thread at a time. */
#include "env-server/metric/lcs.h"

#include "common/base/alloc.h"

#include <string.h>

static const uint32_t NONE = UINT32_MAX;

static bool room(void *pointer, size_t *cap, size_t wanted, size_t size) {
    void **p = pointer;
    if (wanted <= *cap) return true;
    void *grown = tg_realloc_array(*p, wanted + wanted / 2, size);
    if (!grown) return false;
    *p = grown, *cap = wanted + wanted / 2;
    return true;
}

/* The lists of positions in b of every id. All heads are NONE before and after a call, so that a
 * large vocabulary costs nothing. */
static bool index_b(tg_lcs *l, const uint32_t *b, size_t n_b, size_t n_ids, size_t words) {
    size_t had = l->cap_head;
    if (!room(&l->head, &l->cap_head, n_ids, sizeof *l->head)) return false;
    if (l->cap_head > had) memset(l->head + had, 0xff, (l->cap_head - had) * sizeof *l->head);
    if (!room(&l->next, &l->cap_next, n_b, sizeof *l->next) ||
        !room(&l->match, &l->cap_match, words, sizeof *l->match))
        return false;
    memset(l->match, 0, words * sizeof *l->match);
    for (size_t j = n_b; j-- > 0;) {
        l->next[j] = l->head[b[j]];
        l->head[b[j]] = (uint32_t)j;
    }
    return true;
}

static void forget_b(tg_lcs *l, const uint32_t *b, size_t n_b) {
    for (size_t j = 0; j < n_b; j++) l->head[b[j]] = NONE;
}

/* to = next row of from; both may be the same. */
static void next_row(tg_lcs *l, const uint64_t *from, uint64_t *to, size_t words, uint32_t id) {
    uint32_t first = l->head[id];
    if (first == NONE) {
        if (to != from) memcpy(to, from, words * sizeof *to);
        return;
    }
    for (uint32_t j = first; j != NONE; j = l->next[j]) l->match[j / 64] |= (uint64_t)1 << (j % 64);
    uint64_t carry = 0;
    for (size_t k = 0; k < words; k++) {
        uint64_t v = from[k], u = v & l->match[k], sum = v + u, with_carry = sum + carry;
        to[k] = with_carry | (v - u);
        carry = (sum < v) | (with_carry < sum);
    }
    for (uint32_t j = first; j != NONE; j = l->next[j]) l->match[j / 64] = 0;
}

/* Zeros among the first j bits. */
static size_t zeros(const uint64_t *row, size_t j) {
    size_t n = 0;
    for (size_t k = 0; k < j / 64; k++) n += 64 - (size_t)__builtin_popcountll(row[k]);
    if (j % 64) n += (size_t)__builtin_popcountll(~row[j / 64] & (((uint64_t)1 << (j % 64)) - 1));
    return n;
}

bool tg_lcs_length(tg_lcs *l, const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b,
                   size_t n_ids, size_t *out) {
    size_t words = n_b / 64 + 1;
    *out = 0;
    if (!n_a || !n_b) return true;
    if (!room(&l->rows, &l->cap_rows, words, sizeof *l->rows) || !index_b(l, b, n_b, n_ids, words))
        return false;
    memset(l->rows, 0xff, words * sizeof *l->rows);
    for (size_t i = 0; i < n_a; i++) next_row(l, l->rows, l->rows, words, a[i]);
    forget_b(l, b, n_b);
    *out = zeros(l->rows, n_b);
    return true;
}

bool tg_lcs_mark(tg_lcs *l, const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b,
                 size_t n_ids, uint8_t *mask) {
    size_t words = n_b / 64 + 1;
    if (!n_a || !n_b) return true;
    if (n_a >= SIZE_MAX / 16 / words) return false;
    if (!room(&l->rows, &l->cap_rows, (n_a + 1) * words, sizeof *l->rows) ||
        !index_b(l, b, n_b, n_ids, words))
        return false;
    memset(l->rows, 0xff, words * sizeof *l->rows);
    for (size_t i = 0; i < n_a; i++)
        next_row(l, l->rows + i * words, l->rows + (i + 1) * words, words, a[i]);
    forget_b(l, b, n_b);
    size_t i = n_a, j = n_b, here = zeros(l->rows + n_a * words, n_b); /* L(i, j) */
    while (i > 0 && j > 0 && here > 0) {
        const uint64_t *row = l->rows + i * words, *above = row - words;
        if (a[i - 1] == b[j - 1]) {
            mask[--i] = 1;
            j--, here--;
            continue;
        }
        bool grows = !(row[(j - 1) / 64] >> ((j - 1) % 64) & 1);
        /* Where the row grows at j, L(i, j-1) is smaller, so L(i-1, j) must be L(i, j). */
        if (!grows && zeros(above, j) < here)
            j--;
        else
            i--;
    }
    return true;
}

void tg_lcs_fini(tg_lcs *l) {
    tg_free(l->rows);
    tg_free(l->match);
    tg_free(l->head);
    tg_free(l->next);
    memset(l, 0, sizeof *l);
}
