/* Large blocks whose memory stays with the process when they are given back: the next block is made of it. A system clears every page
 * that it hands out, and a virtual machine's host may have to find it first, seconds for a gigabyte; a program that goes through phases
 * would pay that in each of them.
 *
 *     tg_stock s = {0};
 *     float *x = tg_stock_alloc(&s, bytes);       // its contents are undefined
 *     tg_stock_rest(&s, x);                       // the address stays and reads as zeros; other blocks get the memory
 *     tg_stock_wake(&s, x);                       // memory again, contents undefined
 *     tg_stock_free(&s, x);
 *     tg_stock_fini(&s);                          // gives everything back to the system
 *
 * What is held is never more than was ever in use at one time, as nothing new is asked for while something is kept. One thread at a
 * time. */
#ifndef TG_BASE_STOCK_H
#define TG_BASE_STOCK_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TG_STOCK_UNIT = 2 << 20,           /* blocks are whole units, aligned to them: large pages */
    TG_STOCK_LARGE = 2 * TG_STOCK_UNIT /* what is smaller had better come from the heap */
};

typedef struct tg_stock {
    struct tg_piece *list; /* private: every piece, of blocks and kept */
    size_t n, cap;
    size_t kept; /* read-only: bytes that no block has */
} tg_stock;

/* What a block of so many bytes takes, or where it is not large what the heap gives for it: for memory plans. */
static inline size_t tg_stock_bytes(size_t bytes) {
    return bytes < TG_STOCK_LARGE ? bytes
                                  : (bytes + TG_STOCK_UNIT - 1) / TG_STOCK_UNIT * TG_STOCK_UNIT;
}

void *tg_stock_alloc(tg_stock *s, size_t bytes); /* bytes > 0; NULL: out of memory */
void tg_stock_free(tg_stock *s, void *block);
/* Whether p is a block; the beginning of one, that is. */
bool tg_stock_has(const tg_stock *s, const void *p);
void tg_stock_rest(tg_stock *s, void *block);
/* A block that does not rest is left as it is. false: out of memory; the block can only be freed. */
bool tg_stock_wake(tg_stock *s, void *block);
void tg_stock_fini(tg_stock *s);

#endif
