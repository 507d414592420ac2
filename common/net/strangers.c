/* An array by age. Removal looks from the end: who says Hello came last. */
#include "common/net/strangers.h"

#include "common/base/alloc.h"

#include <string.h>
#include <sys/socket.h>

static bool knows(const tg_strangers *s, int fd) {
    return fd >= 0 && (size_t)fd < s->cap_met && s->met[fd];
}

void tg_strangers_accepted(tg_strangers *s, int fd, uint64_t now_ms) {
    if (!knows(s, fd)) tg_strangers_add(s, fd, now_ms);
}

void tg_strangers_meet(tg_strangers *s, int fd) {
    tg_strangers_remove(s, fd);
    if (fd < 0) return;
    if ((size_t)fd >= s->cap_met) {
        size_t cap = 2 * (size_t)fd + 64;
        bool *met = tg_realloc_array(s->met, cap, sizeof *met);
        if (!met) return; /* then it may be cut, and comes back */
        memset(met + s->cap_met, 0, (cap - s->cap_met) * sizeof *met);
        s->met = met, s->cap_met = cap;
    }
    s->met[fd] = true;
}

void tg_strangers_add(tg_strangers *s, int fd, uint64_t now_ms) {
    if (fd < 0) return;
    tg_strangers_remove(s, fd);
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        tg_stranger *list = tg_realloc_array(s->list, cap, sizeof *list);
        if (!list) return;
        s->list = list, s->cap = cap;
    }
    s->list[s->n++] = (tg_stranger){fd, now_ms};
}

void tg_strangers_remove(tg_strangers *s, int fd) {
    if (knows(s, fd)) s->met[fd] = false;
    for (size_t i = s->n; i-- > 0;) {
        if (s->list[i].fd != fd) continue;
        memmove(&s->list[i], &s->list[i + 1], (s->n - i - 1) * sizeof *s->list);
        s->n--;
        return;
    }
}

size_t tg_strangers_cut(tg_strangers *s, uint64_t now_ms, uint64_t limit_ms) {
    size_t n = 0;
    while (n < s->n && s->list[n].since_ms + limit_ms <= now_ms)
        shutdown(s->list[n++].fd, SHUT_RDWR);
    if (n) memmove(s->list, s->list + n, (s->n - n) * sizeof *s->list);
    s->n -= n;
    return n;
}

void tg_strangers_fini(tg_strangers *s) {
    tg_free(s->list);
    tg_free(s->met);
    *s = (tg_strangers){0};
}
