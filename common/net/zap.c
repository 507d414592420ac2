/* One REP socket in one thread: a question in, an answer out, until the context ends.
 *
 * Only a whole question of version 1.0, mechanism CURVE, our domain and a key of 32 bytes can be
 * answered with 200. */
#include "common/net/zap.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

enum { MAX_PARTS = 8, MAX_PART = 255, LOG_EVERY_MS = 10000 };
enum { VERSION, REQUEST_ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIAL, N_PARTS };

struct tg_zap {
    void *socket; /* the thread's own once it runs */
    tg_allow *allow;
    pthread_t thread;
    atomic_uint_least64_t accepted, refused;
    uint64_t logged, logged_ms; /* refusals in the log so far, and when the last line was written */
};

typedef struct part {
    uint8_t bytes[MAX_PART + 1];
    size_t len; /* > MAX_PART: it was longer, and is not what we know */
} part;

/* The parts of one question; the number, -1: the context ends. */
static int receive(void *socket, part parts[MAX_PARTS]) {
    int n = 0, more = 1;
    while (more) {
        part extra, *p = n < MAX_PARTS ? &parts[n] : &extra;
        int len;
        do len = zmq_recv(socket, p->bytes, MAX_PART, 0);
        while (len < 0 && zmq_errno() == EINTR);
        if (len < 0) return -1;
        p->len = (size_t)len;
        p->bytes[p->len < MAX_PART ? p->len : MAX_PART] = '\0';
        if (n < MAX_PARTS) n++;
        size_t size = sizeof more;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) return -1;
    }
    return n;
}

static bool is_text(const part *p, const char *text) {
    return p->len == strlen(text) && !memcmp(p->bytes, text, p->len);
}

static bool judge(tg_zap *z, const part *parts, int n, tg_user *user) {
    return n == N_PARTS && is_text(&parts[VERSION], "1.0") &&
           is_text(&parts[DOMAIN], TG_ZAP_DOMAIN) && is_text(&parts[MECHANISM], "CURVE") &&
           parts[CREDENTIAL].len == TG_KEY_BYTES &&
           tg_allow_find(z->allow, parts[CREDENTIAL].bytes, user);
}

static void log_refusal(tg_zap *z, const part *parts, int n) {
    uint64_t refused = atomic_load(&z->refused), now = tg_clock_ms();
    if (z->logged && now - z->logged_ms < LOG_EVERY_MS) return;
    tg_log_warn("net",
                "a connection from %.64s was refused: its key is not in the allow-list (%" PRIu64
                " refused so far)",
                n > ADDRESS && parts[ADDRESS].len <= MAX_PART ? (const char *)parts[ADDRESS].bytes
                                                              : "?",
                refused);
    z->logged = refused, z->logged_ms = now;
}

/* One property as ZMTP writes them: length of the name, name, length of the value (big endian), value. */
static size_t write_property(uint8_t *out, const char *name, const char *value) {
    size_t n = strlen(name), v = strlen(value), at = 0;
    out[at++] = (uint8_t)n;
    memcpy(out + at, name, n);
    at += n;
    for (int shift = 24; shift >= 0; shift -= 8) out[at++] = (uint8_t)(v >> shift);
    memcpy(out + at, value, v);
    return at + v;
}

static bool send_text(void *socket, const char *text, int flags) {
    return zmq_send(socket, text, strlen(text), flags) >= 0;
}

static bool answer(tg_zap *z, const part *id, const tg_user *user) {
    char who[TG_USER_MAX] = "", key[24];
    uint8_t metadata[64];
    size_t len = 0;
    if (user) {
        tg_user_text(user, who);
        snprintf(key, sizeof key, "%016" PRIx64, user->key_id);
        len = write_property(metadata, TG_ZAP_KEY_ID, key);
    }
    return send_text(z->socket, "1.0", ZMQ_SNDMORE) &&
           zmq_send(z->socket, id->bytes, id->len, ZMQ_SNDMORE) >= 0 &&
           send_text(z->socket, user ? "200" : "400", ZMQ_SNDMORE) &&
           send_text(z->socket, user ? "OK" : "not allowed", ZMQ_SNDMORE) &&
           send_text(z->socket, who, ZMQ_SNDMORE) && zmq_send(z->socket, metadata, len, 0) >= 0;
}

static void *run(void *arg) {
    tg_zap *z = arg;
    part parts[MAX_PARTS];
    for (int n; (n = receive(z->socket, parts)) >= 0;) {
        tg_user user;
        bool yes = judge(z, parts, n, &user);
        atomic_fetch_add(yes ? &z->accepted : &z->refused, 1);
        if (!yes) log_refusal(z, parts, n);
        static const part none = {.len = 0};
        const part *id =
            n > REQUEST_ID && parts[REQUEST_ID].len <= MAX_PART ? &parts[REQUEST_ID] : &none;
        if (!answer(z, id, yes ? &user : NULL) && zmq_errno() == ETERM) break;
    }
    zmq_close(z->socket);
    return NULL;
}

/* Signals are for the threads that have handlers for them. */
static int start_thread(tg_zap *z) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&z->thread, NULL, run, z);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

tg_status tg_zap_start(tg_zap **out, void *ctx, tg_allow *allow, tg_error *err) {
    tg_zap *z = *out = tg_alloc(sizeof *z);
    if (!z) return tg_fail_nomem(err, sizeof *z);
    int linger = 0;
    z->allow = allow;
    z->socket = zmq_socket(ctx, ZMQ_REP);
    tg_status st = TG_OK;
    if (!z->socket || zmq_setsockopt(z->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(z->socket, "inproc://zeromq.zap.01") != 0) {
        st = tg_fail(err, TG_UNAVAILABLE, "authentication cannot be started: %s",
                     zmq_strerror(zmq_errno()));
    } else if ((errno = start_thread(z)) != 0) {
        st = tg_fail_errno(err, TG_UNAVAILABLE, "no thread for authentication");
    }
    if (st == TG_OK) return TG_OK;
    if (z->socket) zmq_close(z->socket);
    tg_free(z);
    *out = NULL;
    return st;
}

void tg_zap_join(tg_zap **zap) {
    if (!*zap) return;
    pthread_join((*zap)->thread, NULL);
    tg_free(*zap);
    *zap = NULL;
}

void tg_zap_counts(const tg_zap *z, uint64_t *accepted, uint64_t *refused) {
    *accepted = atomic_load(&z->accepted);
    *refused = atomic_load(&z->refused);
}
