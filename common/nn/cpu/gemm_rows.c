#include "common/nn/cpu/gemm_rows.h"

#include "common/base/check.h"
#include "common/base/threads.h"

enum {
    RAW = 0, /* of a piece; then one thread makes it BUSY, and READY */
    BUSY,
    READY,
    LINE = 64 /* bytes, of a cache */
};

/* Words of `steps` steps of a packed row: floats, or pairs. */
static size_t words(const tg_gemm_rows *r, int steps) {
    return r->pairs ? ((size_t)steps + 1) / 2 : (size_t)steps;
}

/* The panels of one block of `depth` steps lie behind each other: what is read ahead at the end of a panel is the next one. */
static float *packed_row(const tg_gemm_rows *r, int row, int k, int depth) {
    return r->packed + words(r, k) * (size_t)r->count + (size_t)row * words(r, depth);
}

/* Where op(a) (row, k) lies; rows count from the first. */
static const float *a_at(const tg_gemm_rows *r, int row, int k) {
    const size_t m = (size_t)r->first + (size_t)row, lda = (size_t)r->g->lda;
    return r->g->a + (r->g->ta ? (size_t)k * lda + m : m * lda + (size_t)k);
}

static void pack(const tg_gemm_rows *r, int panel, int k, int depth) {
    const int at = tg_gemm_panel_row(r, panel), rows = tg_gemm_panel_row(r, panel + 1) - at;
    const size_t lda = (size_t)r->g->lda;
    float *to = packed_row(r, at, k, depth);
    if (r->pairs)
        r->k->pack_pairs((uint32_t *)(void *)to, a_at(r, at, k), lda, r->g->ta, rows, depth);
    else
        r->k->pack_rows(to, a_at(r, at, k), lda, r->g->ta, rows, depth);
    if (r->g->rounded && !r->pairs) r->k->round_bf16(to, (size_t)rows * (size_t)depth);
}

static int piece_of(const tg_gemm_rows *r, int panel, int k) {
    return k / r->depth * r->panels + panel;
}

const float *tg_gemm_panel(tg_gemm_rows *r, int panel, int k, int depth) {
    atomic_uchar *piece = &r->piece[piece_of(r, panel, k)];
    unsigned char state = atomic_load_explicit(piece, memory_order_acquire);
    if (state == RAW && atomic_compare_exchange_strong(piece, &state, BUSY)) {
        pack(r, panel, k, depth);
        atomic_store_explicit(piece, READY, memory_order_release);
    } else {
        for (int i = 0; atomic_load_explicit(piece, memory_order_acquire) != READY; i++)
            tg_team_relax(i);
    }
    return packed_row(r, tg_gemm_panel_row(r, panel), k, depth);
}

/* Rows that lie along the steps are taken in turn, a line of each, of 16 rows: at a line a step, or two where steps are pairs, that is
 * a whole panel. Else a step of a panel is one line or two. */
void tg_gemm_panel_fetch(const tg_gemm_rows *r, int panel, int k, tg_fetch *f) {
    enum { TURN = 15 };
    if (atomic_load_explicit(&r->piece[piece_of(r, panel, k)], memory_order_relaxed) != RAW) return;
    const size_t ld = (size_t)r->g->lda * sizeof(float), two = r->pairs ? LINE : 0;
    f->at = (const char *)a_at(r, tg_gemm_panel_row(r, panel), k);
    f->step = ld;
    f->turn = r->g->ta ? 0 : TURN;
    f->jump = r->g->ta ? ld : LINE + two - TURN * ld;
    f->pair = r->g->ta ? (size_t)(*r->k->gemm_rows - 1) * sizeof(float) : two;
}
