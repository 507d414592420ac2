/* Longest common subsequences of id sequences, bit-parallel: one row of the table is one bit per
 * word of the second sequence (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").
 *
 * O(n_a * n_b / 64) time; the length alone needs O(n_a + n_b) memory, an alignment one bit per
 * cell. */
#ifndef TG_ENV_METRIC_LCS_H
#define TG_ENV_METRIC_LCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reused memory; zero it to start. */
typedef struct tg_lcs {
    uint64_t *rows; /* private */
    size_t cap_rows;
    uint64_t *match;
    size_t cap_match;
    uint32_t *head, *next; /* positions of each id in b, as lists */
    size_t cap_head, cap_next;
} tg_lcs;

/* Length of the longest common subsequence. n_ids: one more than the largest id. False: no memory. */
bool tg_lcs_length(tg_lcs *l, const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b,
                   size_t n_ids, size_t *out);

/* Sets mask[i] for every a[i] that belongs to the longest common subsequence found by walking the
 * table back from its end: equal words are paired, else the walk goes back in b only when that
 * side is strictly longer. This is ROUGE-1.5.5's choice among equally long ones. */
bool tg_lcs_mark(tg_lcs *l, const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b,
                 size_t n_ids, uint8_t *mask);
void tg_lcs_fini(tg_lcs *l);

#endif
