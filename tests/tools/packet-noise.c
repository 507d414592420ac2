/* packet-noise: the cable between two network namespaces, with the faults of a bad line: every packet is late by DELAY
 * ms, more or less JITTER (so that packets overtake each other), and some are lost, in both directions. What the kernel's
 * netem does, where the kernel has none. Needs root and /dev/net/tun.
 *
 *     packet-noise NAMESPACE-A NAMESPACE-B SEED DELAY JITTER LOSS REORDER
 *
 * Makes a device `line` in each namespace; says "ready"; the caller gives them addresses. A share REORDER of the packets
 * is not delayed at all, as with netem. Prints what it did when it gets SIGTERM. */
#include "common/base/clock.h"
#include "common/base/rng.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PACKET = 2048 };

typedef struct packet {
    struct packet *next;
    uint64_t due_ms;
    int to;
    size_t len;
    char bytes[];
} packet;

typedef struct line {
    int end[2];
    uint64_t seed, packets, lost, at_once, bytes;
    double delay, jitter, loss, reorder;
    packet *first; /* by due_ms */
} line;

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static int open_end(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int ns = open(path, O_RDONLY | O_CLOEXEC), fd = -1;
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strcpy(r.ifr_name, "line");
    if (ns >= 0 && setns(ns, CLONE_NEWNET) == 0) {
        fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, TUNSETIFF, &r) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (ns >= 0) close(ns);
    return fd;
}

static void put(line *l, packet *p) {
    packet **at = &l->first;
    while (*at && (*at)->due_ms <= p->due_ms) at = &(*at)->next;
    p->next = *at;
    *at = p;
}

static void take(line *l, int from) {
    char bytes[PACKET];
    for (ssize_t n; (n = read(l->end[from], bytes, sizeof bytes)) > 0;) {
        tg_rng r = tg_rng_at(l->seed, TG_RNG_TEST, l->packets >> 20, l->packets & 0xfffff);
        double lose = tg_rng_uniform(&r), hurry = tg_rng_uniform(&r), u = tg_rng_uniform(&r);
        l->packets++;
        l->bytes += (uint64_t)n;
        packet *p = lose < l->loss ? NULL : malloc(sizeof *p + (size_t)n);
        if (!p) {
            l->lost++;
            continue;
        }
        double ms = hurry < l->reorder ? 0 : l->delay + l->jitter * (2 * u - 1);
        l->at_once += hurry < l->reorder;
        *p = (packet){.due_ms = tg_clock_ms() + (uint64_t)(ms > 0 ? ms : 0), .to = !from};
        p->len = (size_t)n;
        memcpy(p->bytes, bytes, (size_t)n);
        put(l, p);
    }
}

static void send_due(line *l) {
    uint64_t now = tg_clock_ms();
    while (l->first && l->first->due_ms <= now) {
        packet *p = l->first;
        l->first = p->next;
        if (write(l->end[p->to], p->bytes, p->len) < 0) l->lost++; /* the device is down */
        free(p);
    }
}

int main(int argc, char **argv) {
    line l = {0};
    if (argc != 8) {
        fprintf(stderr,
                "usage: packet-noise NAMESPACE-A NAMESPACE-B SEED DELAY JITTER LOSS REORDER\n");
        return 64;
    }
    l.seed = strtoull(argv[3], NULL, 10);
    l.delay = strtod(argv[4], NULL), l.jitter = strtod(argv[5], NULL);
    l.loss = strtod(argv[6], NULL), l.reorder = strtod(argv[7], NULL);
    for (int i = 0; i < 2; i++)
        if ((l.end[i] = open_end(argv[1 + i])) < 0) {
            fprintf(stderr, "packet-noise: no device can be made in %s\n", argv[1 + i]);
            return 69;
        }
    signal(SIGTERM, on_signal);
    puts("ready");
    fflush(stdout);
    while (!stop) {
        struct pollfd fds[2] = {{.fd = l.end[0], .events = POLLIN},
                                {.fd = l.end[1], .events = POLLIN}};
        uint64_t now = tg_clock_ms();
        int wait = !l.first ? 100 : l.first->due_ms > now ? (int)(l.first->due_ms - now) : 0;
        if (poll(fds, 2, wait) > 0)
            for (int i = 0; i < 2; i++)
                if (fds[i].revents & POLLIN) take(&l, i);
        send_due(&l);
    }
    printf("packets %llu (%llu bytes) lost %llu not delayed %llu\n", (unsigned long long)l.packets,
           (unsigned long long)l.bytes, (unsigned long long)l.lost, (unsigned long long)l.at_once);
    while (l.first) {
        packet *p = l.first;
        l.first = p->next;
        free(p);
    }
    return 0;
}
