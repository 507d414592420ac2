/* net-noise: stands between clients and a server and spoils whole messages: some are lost, doubled, overtaken by the
 * next, cut short or have a bit flipped, in both directions.
 *
 *     net-noise LISTEN CONNECT SEED LOSE DOUBLE OVERTAKE CUT FLIP [DELAY JITTER]
 *
 * The shares are of all messages, such as 0.01. Every message is late by DELAY ms, more or less JITTER: late ones
 * overtake each other. One connection to the server for each client. Prints what it did when it gets SIGTERM. */
#include "common/base/clock.h"
#include "common/base/rng.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { CLIENTS = 256, ID = 32, HEADER = 32 /* its checksum covers the payload */ };

typedef enum fault { PASS, LOSE, DOUBLE, OVERTAKE, CUT, FLIP, FAULTS } fault;

/* One direction of one client. */
typedef struct path {
    char *held; /* overtaken by the next message */
    size_t held_len;
} path;

typedef struct client {
    unsigned char id[ID];
    size_t id_len;
    void *server;
    path up, down;
} client;

/* A message on its way. */
typedef struct late {
    struct late *next;
    uint64_t due_ms;
    int client;
    bool up;
    size_t len;
    char bytes[];
} late;

typedef struct noise {
    late *first; /* by due_ms */
    double delay, jitter;
    void *ctx, *listener;
    const char *connect;
    double share[FAULTS];
    uint64_t seed, messages, done[FAULTS];
    client clients[CLIENTS];
    int n;
} noise;

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static fault draw(noise *x) {
    tg_rng r = tg_rng_at(x->seed, TG_RNG_TEST, x->messages >> 20, x->messages & 0xfffff);
    double u = tg_rng_uniform(&r);
    for (fault f = LOSE; f < FAULTS; f++) {
        if (u < x->share[f]) return f;
        u -= x->share[f];
    }
    return PASS;
}

static void send_now(noise *x, client *c, bool up, const void *bytes, size_t len) {
    if (up) {
        zmq_send(c->server, bytes, len, ZMQ_DONTWAIT);
    } else {
        zmq_send(x->listener, c->id, c->id_len, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_send(x->listener, bytes, len, ZMQ_DONTWAIT);
    }
}

static void deliver(noise *x, client *c, bool up, const void *bytes, size_t len) {
    if (x->delay <= 0) {
        send_now(x, c, up, bytes, len);
        return;
    }
    late *m = malloc(sizeof *m + len);
    if (!m) return;
    tg_rng r = tg_rng_at(x->seed + 1, TG_RNG_TEST, x->messages >> 20, x->messages & 0xfffff);
    double ms = x->delay + x->jitter * (2 * tg_rng_uniform(&r) - 1);
    *m = (late){.due_ms = tg_clock_ms() + (uint64_t)(ms > 0 ? ms : 0), .up = up, .len = len};
    m->client = (int)(c - x->clients);
    memcpy(m->bytes, bytes, len);
    late **at = &x->first;
    while (*at && (*at)->due_ms <= m->due_ms) at = &(*at)->next;
    m->next = *at;
    *at = m;
}

static void send_due(noise *x) {
    uint64_t now = tg_clock_ms();
    while (x->first && x->first->due_ms <= now) {
        late *m = x->first;
        x->first = m->next;
        send_now(x, &x->clients[m->client], m->up, m->bytes, m->len);
        free(m);
    }
}

static void release(noise *x, client *c, bool up) {
    path *p = up ? &c->up : &c->down;
    if (!p->held) return;
    deliver(x, c, up, p->held, p->held_len);
    free(p->held);
    p->held = NULL;
}

static void pass_on(noise *x, client *c, bool up, char *bytes, size_t len) {
    path *p = up ? &c->up : &c->down;
    fault f = draw(x);
    x->messages++;
    x->done[f]++;
    switch (f) {
    case LOSE: break;
    case DOUBLE:
        deliver(x, c, up, bytes, len);
        deliver(x, c, up, bytes, len);
        break;
    case OVERTAKE:
        release(x, c, up);
        p->held = malloc(len ? len : 1);
        if (p->held) memcpy(p->held, bytes, p->held_len = len);
        return; /* goes behind the next one */
    case CUT: deliver(x, c, up, bytes, len * 2 / 3); break;
    case FLIP:
        if (len > HEADER)
            bytes[HEADER + x->messages % (len - HEADER)] ^= (char)(1 << (x->messages % 7));
        deliver(x, c, up, bytes, len);
        break;
    default: deliver(x, c, up, bytes, len); break;
    }
    release(x, c, up);
}

static void *dial(noise *x) {
    void *s = zmq_socket(x->ctx, ZMQ_DEALER);
    int linger = 0;
    if (!s) return NULL;
    zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_connect(s, x->connect) == 0) return s;
    zmq_close(s);
    return NULL;
}

static client *client_of(noise *x, const void *id, size_t len) {
    for (int i = 0; i < x->n; i++)
        if (x->clients[i].id_len == len && !memcmp(x->clients[i].id, id, len))
            return &x->clients[i];
    if (len > ID) return NULL;
    int at = x->n < CLIENTS ? x->n++ : (int)(x->messages % CLIENTS); /* an old one goes */
    client *c = &x->clients[at];
    if (c->server) zmq_close(c->server);
    free(c->up.held);
    free(c->down.held);
    *c = (client){.id_len = len, .server = dial(x)};
    memcpy(c->id, id, len);
    return c->server ? c : NULL;
}

static void from_client(noise *x) {
    zmq_msg_t id, body;
    zmq_msg_init(&id);
    zmq_msg_init(&body);
    while (zmq_msg_recv(&id, x->listener, ZMQ_DONTWAIT) >= 0) {
        if (!zmq_msg_more(&id) || zmq_msg_recv(&body, x->listener, 0) < 0) continue;
        client *c = client_of(x, zmq_msg_data(&id), zmq_msg_size(&id));
        if (c) pass_on(x, c, true, zmq_msg_data(&body), zmq_msg_size(&body));
    }
    zmq_msg_close(&id);
    zmq_msg_close(&body);
}

static void from_server(noise *x, client *c) {
    zmq_msg_t body;
    zmq_msg_init(&body);
    while (zmq_msg_recv(&body, c->server, ZMQ_DONTWAIT) >= 0)
        pass_on(x, c, false, zmq_msg_data(&body), zmq_msg_size(&body));
    zmq_msg_close(&body);
}

static void turn(noise *x) {
    zmq_pollitem_t items[CLIENTS + 1] = {{.socket = x->listener, .events = ZMQ_POLLIN}};
    for (int i = 0; i < x->n; i++)
        items[i + 1] = (zmq_pollitem_t){.socket = x->clients[i].server, .events = ZMQ_POLLIN};
    int n = x->n, ready = zmq_poll(items, n + 1, x->first ? 1 : 20);
    for (int i = 0; i < n && ready == 0; i++) { /* nothing came: those held have waited enough */
        release(x, &x->clients[i], true);
        release(x, &x->clients[i], false);
    }
    for (int i = 0; i < n && ready > 0; i++)
        if (items[i + 1].revents & ZMQ_POLLIN) from_server(x, &x->clients[i]);
    if (ready > 0 && items[0].revents & ZMQ_POLLIN) from_client(x);
}

int main(int argc, char **argv) {
    if (argc != 9 && argc != 11) {
        fprintf(
            stderr,
            "usage: net-noise LISTEN CONNECT SEED LOSE DOUBLE OVERTAKE CUT FLIP [DELAY JITTER]\n");
        return 64;
    }
    noise *x = calloc(1, sizeof *x);
    if (!x) return 70;
    x->connect = argv[2];
    x->seed = strtoull(argv[3], NULL, 10);
    for (int f = LOSE; f < FAULTS; f++) x->share[f] = strtod(argv[3 + f], NULL);
    if (argc == 11) x->delay = strtod(argv[9], NULL), x->jitter = strtod(argv[10], NULL);
    x->ctx = zmq_ctx_new();
    x->listener = zmq_socket(x->ctx, ZMQ_ROUTER);
    if (!x->listener || zmq_bind(x->listener, argv[1]) != 0) {
        fprintf(stderr, "net-noise: cannot listen on %s: %s\n", argv[1], zmq_strerror(zmq_errno()));
        return 69;
    }
    signal(SIGTERM, on_signal);
    while (!stop) {
        turn(x);
        send_due(x);
    }
    printf("messages %llu lost %llu doubled %llu overtaken %llu cut %llu flipped %llu\n",
           (unsigned long long)x->messages, (unsigned long long)x->done[LOSE],
           (unsigned long long)x->done[DOUBLE], (unsigned long long)x->done[OVERTAKE],
           (unsigned long long)x->done[CUT], (unsigned long long)x->done[FLIP]);
    for (int i = 0; i < x->n; i++) {
        if (x->clients[i].server) zmq_close(x->clients[i].server);
        free(x->clients[i].up.held);
        free(x->clients[i].down.held);
    }
    while (x->first) {
        late *m = x->first;
        x->first = m->next;
        free(m);
    }
    int linger = 0;
    zmq_setsockopt(x->listener, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(x->listener);
    zmq_ctx_term(x->ctx);
    free(x);
    return 0;
}
