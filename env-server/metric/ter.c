/* The edit distance in a band around the diagonal, and the greedy search for shifts.
 *
 * Row i of the table is about the first i words of the hypothesis, column j about the first j of the
 * reference. A trial shares the rows of the hypothesis before the first word that it moves, so only the
 * rest is computed, and given up when no cell of a row can still win. One thread at a time. */
#include "env-server/metric/ter.h"

#include "common/base/alloc.h"

#include <math.h>
#include <string.h>

enum { MAX_SHIFT = 10, MAX_DISTANCE = 50, BEAM = 25, MAX_TRIALS = 1000, INFINITE = 1 << 29 };

struct tg_ter_row {
    size_t first, end; /* columns in the band */
    size_t at;         /* of column `first` in cost */
};

static bool room(void *pointer, size_t *cap, size_t wanted, size_t size) {
    void **p = pointer;
    if (wanted <= *cap) return true;
    void *grown = tg_realloc_array(*p, wanted + wanted / 2, size);
    if (!grown) return false;
    *p = grown, *cap = wanted + wanted / 2;
    return true;
}

void tg_ter_fini(tg_ter *t) {
    tg_bleu_text_fini(&t->text);
    tg_words_fini(&t->words);
    tg_wids_fini(&t->hyp);
    tg_wids_fini(&t->ref);
    tg_wids_fini(&t->trial);
    tg_free(t->cost);
    tg_free(t->rows);
    tg_free(t->scratch);
    tg_free(t->align);
    tg_free(t->hyp_wrong);
    tg_free(t->ref_wrong);
    memset(t, 0, sizeof *t);
}

/* ---- the edit distance -------------------------------------------------------------------------- */

/* Where the bands lie depends on the two lengths alone. Row 0 is whole. */
static bool lay_out(tg_ter *t) {
    size_t n = t->hyp.n, m = t->ref.n, at = m + 1;
    double ratio = n ? (double)m / (double)n : 1;
    int64_t beam = BEAM < ratio / 2 ? (int64_t)ceil(ratio / 2 + BEAM) : BEAM;
    if (!room(&t->rows, &t->cap_rows, n + 1, sizeof *t->rows)) return false;
    t->rows[0] = (struct tg_ter_row){0, m + 1, 0};
    for (size_t i = 1; i <= n; i++) {
        int64_t diagonal = (int64_t)floor((double)i * ratio), first = diagonal - beam,
                end = diagonal + beam;
        if (end > (int64_t)m + 1 || i == n) end = (int64_t)m + 1;
        t->rows[i] = (struct tg_ter_row){first > 0 ? (size_t)first : 0, (size_t)end, at};
        at += t->rows[i].end - t->rows[i].first;
    }
    return room(&t->cost, &t->cap_cost, at, sizeof *t->cost) &&
           room(&t->scratch, &t->cap_scratch, 2 * (m + 1), sizeof *t->scratch);
}

/* One row from the one above; returns its smallest cost. Cells outside a band are infinite. */
static int32_t next_row(const tg_ter *t, size_t i, uint32_t word, const int32_t *above,
                        int32_t *row) {
    const struct tg_ter_row *a = &t->rows[i - 1], *r = &t->rows[i];
    int32_t left = INFINITE, least = INFINITE, diagonal = INFINITE;
    if (r->first > a->first && r->first - 1 < a->end) diagonal = above[r->first - 1 - a->first];
    for (size_t j = r->first; j < r->end; j++) {
        int32_t up = j >= a->first && j < a->end ? above[j - a->first] : INFINITE, best;
        if (j == 0)
            best = up + 1;
        else {
            best = diagonal + (t->ref.v[j - 1] != word);
            if (up + 1 < best) best = up + 1;
            if (left + 1 < best) best = left + 1;
            if (best > INFINITE) best = INFINITE;
        }
        row[j - r->first] = left = best;
        diagonal = up;
        if (best < least) least = best;
    }
    return least;
}

/* Fills the rows of t->hyp from row `from` on. */
static int32_t distance(tg_ter *t, size_t from) {
    size_t n = t->hyp.n, m = t->ref.n;
    if (from == 0)
        for (size_t j = 0; j <= m; j++) t->cost[j] = (int32_t)j;
    for (size_t i = from ? from : 1; i <= n; i++)
        next_row(t, i, t->hyp.v[i - 1], t->cost + t->rows[i - 1].at, t->cost + t->rows[i].at);
    return t->cost[t->rows[n].at + m - t->rows[n].first];
}

/* Distance of t->trial, which has `same` leading words in common with t->hyp; more than `most`: any number
 * larger than that. */
static int32_t trial_distance(tg_ter *t, size_t same, int32_t most) {
    size_t n = t->hyp.n, m = t->ref.n;
    const int32_t *above = t->cost + t->rows[same].at;
    int32_t *row = t->scratch, *other = t->scratch + m + 1;
    for (size_t i = same + 1; i <= n; i++) {
        if (next_row(t, i, t->trial.v[i - 1], above, row) > most) return INFINITE;
        above = row;
        row = other, other = (int32_t *)above;
    }
    return above[m - t->rows[n].first];
}

static int32_t cell(const tg_ter *t, size_t i, size_t j) {
    const struct tg_ter_row *r = &t->rows[i];
    return j >= r->first && j < r->end ? t->cost[r->at + j - r->first] : INFINITE;
}

/* Walks the table back and notes where both texts differ. A substitution goes before a deletion, that
 * before an insertion. */
static bool alignment(tg_ter *t) {
    size_t i = t->hyp.n, j = t->ref.n;
    if (!room(&t->align, &t->cap_align, j, sizeof *t->align) ||
        !room(&t->ref_wrong, &t->cap_ref, j, 1) || !room(&t->hyp_wrong, &t->cap_hyp, i, 1))
        return false;
    while (i > 0 || j > 0) {
        int32_t here = cell(t, i, j);
        bool equal = i && j && t->hyp.v[i - 1] == t->ref.v[j - 1];
        if (i && j && cell(t, i - 1, j - 1) + !equal == here) {
            i--, j--;
            t->align[j] = (int32_t)i;
            t->hyp_wrong[i] = t->ref_wrong[j] = !equal;
        } else if (i && (j == 0 || cell(t, i - 1, j) + 1 == here)) {
            t->hyp_wrong[--i] = 1;
        } else {
            j--;
            t->align[j] = (int32_t)i - 1;
            t->ref_wrong[j] = 1;
        }
    }
    return true;
}

/* ---- shifts ------------------------------------------------------------------------------------- */

typedef struct shift {
    int32_t gain;
    size_t length, start, target;
} shift;

/* t->trial = the hypothesis with the block moved before the word at target (as if it were still there);
 * returns how many leading words stay. */
static size_t perform(tg_ter *t, size_t start, size_t length, size_t target) {
    const uint32_t *h = t->hyp.v;
    uint32_t *w = t->trial.v;
    size_t n = t->hyp.n, from, gap; /* the words [from, from + gap) change places with the block */
    memcpy(w, h, n * sizeof *w);
    if (target < start) {
        memcpy(w + target, h + start, length * sizeof *w);
        memcpy(w + target + length, h + target, (start - target) * sizeof *w);
        return target;
    }
    from = start + length;
    gap = target > from ? target - from : target - start;
    if (gap > n - from) gap = n - from;
    memcpy(w + start, h + from, gap * sizeof *w);
    memcpy(w + start + gap, h + start, length * sizeof *w);
    return start;
}

static bool better(const shift *a, const shift *b) {
    if (a->gain != b->gain) return a->gain > b->gain;
    if (a->length != b->length) return a->length > b->length;
    if (a->start != b->start) return a->start < b->start;
    return a->target < b->target;
}

static bool any_wrong(const uint8_t *wrong, size_t n) {
    return memchr(wrong, 1, n) != NULL;
}

/* Tries the block at every place near where the reference has it. */
static void try_places(tg_ter *t, size_t start_h, size_t start_r, size_t length, int32_t now,
                       shift *best, bool *found, int *trials) {
    int64_t previous = -1;
    for (int64_t offset = -1; offset < (int64_t)length; offset++) {
        int64_t r = (int64_t)start_r + offset, target = r < 0 ? 0 : t->align[r] + 1;
        if (target == previous) continue;
        previous = target;
        size_t same = perform(t, start_h, length, (size_t)target);
        /* A distance that cannot beat the best need not be exact. */
        int32_t most = *found ? now - best->gain : INFINITE;
        shift s = {now - trial_distance(t, same, most), length, start_h, (size_t)target};
        ++*trials;
        if (!*found || better(&s, best)) *best = s, *found = true;
    }
}

/* The best shift of the current hypothesis, whose table is complete. */
static bool find_shift(tg_ter *t, int32_t now, shift *best, bool *found, int *trials) {
    size_t n = t->hyp.n, m = t->ref.n;
    const uint32_t *h = t->hyp.v, *r = t->ref.v;
    *found = false;
    if (!alignment(t)) return false;
    for (size_t i = 0; i < n; i++) {
        size_t j = i > MAX_DISTANCE ? i - MAX_DISTANCE : 0;
        for (; j < m && j <= i + MAX_DISTANCE; j++)
            for (size_t length = 1; length <= MAX_SHIFT && i + length <= n && j + length <= m &&
                                    h[i + length - 1] == r[j + length - 1];
                 length++) {
                int32_t to = t->align[j];
                if (!any_wrong(t->hyp_wrong + i, length) || !any_wrong(t->ref_wrong + j, length) ||
                    (to >= (int32_t)i && to < (int32_t)(i + length)))
                    continue;
                try_places(t, i, j, length, now, best, found, trials);
                if (*trials >= MAX_TRIALS) return true;
            }
    }
    return true;
}

bool tg_ter_edits(tg_ter *t, uint64_t *edits) {
    size_t n = t->hyp.n;
    *edits = n;
    if (t->ref.n == 0) return true;
    if (!lay_out(t) || !tg_wids_reserve(&t->trial, n)) return false;
    uint64_t shifts = 0;
    int trials = 0;
    int32_t now = distance(t, 0);
    for (;;) {
        shift best = {0};
        bool found;
        if (!find_shift(t, now, &best, &found, &trials)) return false;
        if (trials >= MAX_TRIALS || !found || best.gain <= 0) break;
        size_t same = perform(t, best.start, best.length, best.target);
        memcpy(t->hyp.v, t->trial.v, n * sizeof *t->hyp.v);
        now = distance(t, same + 1);
        shifts++;
    }
    *edits = shifts + (uint64_t)now;
    return true;
}
