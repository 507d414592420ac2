/* One entry for each file descriptor, so that thousands of silent connections cost a good one nothing; all of them are looked at only
 * when the first of them is due. */
#include "common/net/strangers.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>
#include <sys/socket.h>

enum { FIRST_ENTRIES = 64 };

static bool knows(const tg_strangers *s, int fd) {
    return fd >= 0 && (size_t)fd < s->cap;
}

/* NULL without memory. */
static tg_stranger *entry(tg_strangers *s, int fd) {
    if (fd < 0) return NULL;
    if (!knows(s, fd)) {
        size_t cap = 2 * (size_t)fd + FIRST_ENTRIES;
        tg_stranger *by_fd = tg_realloc_array(s->by_fd, cap, sizeof *by_fd);
        if (!by_fd) return NULL;
        memset(by_fd + s->cap, 0, (cap - s->cap) * sizeof *by_fd);
        s->by_fd = by_fd, s->cap = cap;
    }
    return &s->by_fd[fd];
}

void tg_strangers_add(tg_strangers *s, int fd, uint64_t until_ms) {
    tg_stranger *e = entry(s, fd);
    if (!e) return;
    *e = (tg_stranger){.until_ms = until_ms};
    s->first_ms = s->first_ms ? TG_MIN(s->first_ms, until_ms) : until_ms;
}

void tg_strangers_accepted(tg_strangers *s, int fd, uint64_t until_ms) {
    if (!knows(s, fd) || !s->by_fd[fd].met) tg_strangers_add(s, fd, until_ms);
}

void tg_strangers_meet(tg_strangers *s, int fd) {
    tg_stranger *e = entry(s, fd);
    if (e) *e = (tg_stranger){.met = true}; /* else it may be cut, and comes back */
}

void tg_strangers_remove(tg_strangers *s, int fd) {
    if (knows(s, fd)) s->by_fd[fd] = (tg_stranger){0};
}

size_t tg_strangers_cut(tg_strangers *s, uint64_t now_ms, size_t most) {
    if (s->first_ms == 0 || s->first_ms > now_ms) return 0;
    size_t n = 0;
    s->first_ms = 0;
    for (size_t fd = 0; fd < s->cap; fd++) {
        tg_stranger *e = &s->by_fd[fd];
        if (e->until_ms == 0) continue;
        if (e->until_ms <= now_ms && n < most) {
            shutdown((int)fd, SHUT_RDWR);
            e->until_ms = 0;
            n++;
        } else {
            s->first_ms = s->first_ms ? TG_MIN(s->first_ms, e->until_ms) : e->until_ms;
        }
    }
    return n;
}

void tg_strangers_fini(tg_strangers *s) {
    tg_free(s->by_fd);
    *s = (tg_strangers){0};
}
