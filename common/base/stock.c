/* A block is a range of addresses, cut into pieces that each came from one place: only what is one mapping to the system can be moved
 * at once. Moving a piece (mremap) moves its pages and copies nothing.
 *
 * Invariant: the pieces of a block follow each other without gaps and cover it. A kept piece has no block and is mapped somewhere; a
 * resting one has a block and addresses, but its pages went to a kept piece; one of no bytes says that its block is lost. */
#include "common/base/stock.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct tg_piece {
    char *at;
    size_t bytes;
    const char *block; /* the first byte of its block; NULL: kept */
    bool rests;
};

/* Fresh addresses, whole units and aligned to them; no memory is behind them until it is touched. */
static char *map_units(size_t bytes) {
    const size_t more = bytes + TG_STOCK_UNIT;
    char *raw = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    const size_t before = (TG_STOCK_UNIT - (uintptr_t)raw % TG_STOCK_UNIT) % TG_STOCK_UNIT;
    if (before) munmap(raw, before);
    munmap(raw + before + bytes, more - before - bytes);
#if defined(MADV_HUGEPAGE)
    /* matrices are streamed through, and page walks would cost as much as the reading */
    (void)madvise(raw + before, bytes, MADV_HUGEPAGE);
#endif
    return raw + before;
}

/* Whether there is a mapping behind all of these addresses. */
static bool is_mapped(char *at, size_t bytes) {
    unsigned char in[TG_STOCK_UNIT / 4096];
    for (size_t i = 0; i < bytes; i += TG_STOCK_UNIT)
        if (mincore(at + i, TG_STOCK_UNIT, in)) return false;
    return true;
}

/* Addresses of ours that a move did not reach: mostly as they were, which is as good as fresh; else mapped again. */
static bool still_there(char *at, size_t bytes) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    return is_mapped(at, bytes) ||
           mmap(at, bytes, PROT_READ | PROT_WRITE, how, -1, 0) != MAP_FAILED;
}

/* Room for `more` further pieces. */
static bool reserve(tg_stock *s, size_t more) {
    if (s->n + more <= s->cap) return true;
    const size_t cap = 2 * (s->n + more);
    struct tg_piece *list = tg_realloc_array(s->list, cap, sizeof *list);
    if (!list) return false;
    s->list = list;
    s->cap = cap;
    return true;
}

static void add(tg_stock *s, struct tg_piece piece) {
    TG_ASSERT(s->n < s->cap);
    if (!piece.block) s->kept += piece.bytes;
    s->list[s->n++] = piece;
}

static void drop(tg_stock *s, size_t i) {
    if (!s->list[i].block) s->kept -= s->list[i].bytes;
    s->list[i] = s->list[--s->n];
}

bool tg_stock_has(const tg_stock *s, const void *p) {
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].block && s->list[i].block == p) return true;
    return false;
}

/* Moves `bytes` of kept piece i to `to`, what is more stays kept. false: the system would not, as at its limit of mappings, where it would not cut
 * one either: it has the memory back, and the piece stays. */
static bool move_kept(tg_stock *s, size_t i, char *to, size_t bytes) {
    const struct tg_piece from = s->list[i];
    if (mremap(from.at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        (void)madvise(from.at, bytes, MADV_DONTNEED);
        return false;
    }
    drop(s, i);
    if (bytes < from.bytes)
        add(s, (struct tg_piece){from.at + bytes, from.bytes - bytes, NULL, false});
    return true;
}

/* Pieces for bytes of a block from `at` on: kept ones as far as they go, then fresh. There is room in the list for one piece more. false: the
 * addresses are gone, and a resting piece of no bytes stands for them. */
static bool furnish(tg_stock *s, char *at, size_t bytes, const char *block) {
    for (size_t i = s->n; bytes && i > 0; i--) {
        if (s->list[i - 1].block) continue;
        const size_t n = TG_MIN(s->list[i - 1].bytes, bytes);
        if (move_kept(s, i - 1, at, n)) {
            add(s, (struct tg_piece){at, n, block, false});
            at += n;
            bytes -= n;
        } else if (!still_there(at, n)) {
            munmap(at, bytes);
            add(s, (struct tg_piece){at, 0, block, true});
            return false;
        }
    }
    if (bytes) add(s, (struct tg_piece){at, bytes, block, false});
    return true;
}

void *tg_stock_alloc(tg_stock *s, size_t bytes) {
    if (bytes > SIZE_MAX / 2 || !tg_alloc_allowed() || !reserve(s, 2)) return NULL;
    bytes = (bytes + TG_STOCK_UNIT - 1) / TG_STOCK_UNIT * TG_STOCK_UNIT;
    char *block = map_units(bytes);
    if (block && !furnish(s, block, bytes, block)) {
        tg_stock_free(s, block);
        return NULL;
    }
    return block;
}

void tg_stock_free(tg_stock *s, void *block) {
    for (size_t i = s->n; i > 0; i--) {
        struct tg_piece *p = &s->list[i - 1];
        if (p->block != block) continue;
        if (p->rests) {
            munmap(p->at, p->bytes);
            drop(s, i - 1);
        } else {
            p->block = NULL;
            s->kept += p->bytes;
        }
    }
}

/* Moves a piece's pages to other addresses, where they are kept; false: the system cannot do that. */
static bool leave(tg_stock *s, const struct tg_piece *p) {
#if defined(MREMAP_DONTUNMAP)
    char *to = reserve(s, 1) ? map_units(p->bytes) : NULL;
    if (!to) return false;
    if (mremap(p->at, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) ==
        MAP_FAILED) {
        munmap(to, p->bytes);
        return false;
    }
    add(s, (struct tg_piece){to, p->bytes, NULL, false});
    return true;
#else
    (void)s, (void)p;
    return false;
#endif
}

void tg_stock_rest(tg_stock *s, void *block) {
    for (size_t i = 0, n = s->n; i < n; i++) {
        const struct tg_piece p = s->list[i];
        if (p.block != block || p.rests) continue;
        if (leave(s, &p))
            s->list[i].rests = true;
        else if (madvise(p.at, p.bytes, MADV_DONTNEED)) /* else the system has the pages */
            memset(p.at, 0, p.bytes);
    }
}

bool tg_stock_wake(tg_stock *s, void *block) {
    for (size_t i = s->n; i > 0; i--) {
        const struct tg_piece p = s->list[i - 1];
        if (p.block != block || !p.rests) continue;
        if (!p.bytes || !reserve(s, 1)) return false;
        drop(s, i - 1);
        if (!furnish(s, p.at, p.bytes, block)) return false;
    }
    return true;
}

void tg_stock_fini(tg_stock *s) {
    for (size_t i = 0; i < s->n; i++) munmap(s->list[i].at, s->list[i].bytes);
    tg_free(s->list);
    *s = (tg_stock){0};
}
