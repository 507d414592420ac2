/* Connections of a listening link that have not said Hello, or whose session is over: they are cut after a while, so that nobody
 * fills the table of files by connecting and keeping silent. Internal to common/net; the loop's thread only.
 *
 * libzmq cannot drop a single peer of a ROUTER. The connection's file descriptor, which it reports, can be shut down: the end of the
 * connection is then found, and it is closed. What it reports is read right before, so a number that was given to
 * another connection meanwhile is a matter of microseconds, and costs that one a reconnection. */
#ifndef TG_NET_STRANGERS_H
#define TG_NET_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_stranger {
    uint64_t until_ms; /* to be cut then; 0: not at all */
    bool met;          /* said Hello */
} tg_stranger;

typedef struct tg_strangers {
    tg_stranger *by_fd;
    size_t cap;
    uint64_t first_ms; /* nobody is due before; 0: nobody at all */
} tg_strangers;

/* To be cut at until_ms, also when it was known before. Without memory it stays unknown. fd -1 is ignored, here and below. */
void tg_strangers_add(tg_strangers *s, int fd, uint64_t until_ms);
/* A connection was accepted. Its Hello may have been read before: messages and news of connections come by different ways. */
void tg_strangers_accepted(tg_strangers *s, int fd, uint64_t until_ms);
void tg_strangers_meet(tg_strangers *s, int fd);   /* it said Hello */
void tg_strangers_remove(tg_strangers *s, int fd); /* it is gone */
/* Cuts those that are due, at most `most` of them; returns how many. */
size_t tg_strangers_cut(tg_strangers *s, uint64_t now_ms, size_t most);
void tg_strangers_fini(tg_strangers *s);

#endif
