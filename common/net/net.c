/* The context's life. The thread that answers for keys runs from before the first socket until the
 * context has ended. */
#include "common/net/net.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/net/memory_limit.h"
#include "common/net/zap.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <zmq.h>

enum {
    CURVE_IO_THREADS = 2, /* encryption costs the I/O thread two to six times as much */
    CONNECTION_BYTES = 50000,
    FEWEST_FILES = 64
};

struct tg_net {
    void *ctx;
    atomic_uint serial; /* names of the monitor sockets */
    tg_security *security;
    tg_zap *zap;
};

/* Every connection is a descriptor: take all that the administrator allows, but no more than there is memory for. libzmq
 * accepts a crowd faster than anybody can look at the memory that is left, and the kernel would then end the process. */
static void set_descriptor_limit(void) {
    struct rlimit files;
    tg_memory_limit memory;
    tg_memory_limit_init_own(&memory);
    uint64_t room = memory.limit / 5 * 4 / CONNECTION_BYTES;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    rlim_t most = memory.limit ? TG_MAX((rlim_t)room, (rlim_t)FEWEST_FILES) : files.rlim_max;
    files.rlim_cur = TG_MIN(files.rlim_max, most);
    setrlimit(RLIMIT_NOFILE, &files);
}

tg_status tg_net_create(tg_net **out, tg_error *err) {
    int major, minor, patch;
    *out = NULL;
    zmq_version(&major, &minor, &patch);
    if (major * 10000 + minor * 100 + patch < 40304) {
        return tg_fail(err, TG_UNAVAILABLE,
                       "libzmq %d.%d.%d has known holes; 4.3.4 or later is needed", major, minor,
                       patch);
    }
    tg_net *net = tg_alloc(sizeof *net);
    if (!net) return tg_fail_nomem(err, sizeof *net);
    set_descriptor_limit();
    net->ctx = zmq_ctx_new();
    if (!net->ctx) {
        tg_free(net);
        return tg_fail_errno(err, TG_UNAVAILABLE, "cannot create a ZeroMQ context");
    }
    /* A client with many sessions has three sockets for each; 1023 is libzmq's default. */
    zmq_ctx_set(net->ctx, ZMQ_MAX_SOCKETS, zmq_ctx_get(net->ctx, ZMQ_SOCKET_LIMIT));
    *out = net;
    return TG_OK;
}

void tg_net_destroy(tg_net **net) {
    if (!*net) return;
    while (zmq_ctx_term((*net)->ctx) != 0 && errno == EINTR) continue;
    tg_zap_join(&(*net)->zap);
    tg_free(*net);
    *net = NULL;
}

tg_status tg_net_secure(tg_net *net, tg_security *sec, tg_error *err) {
    net->security = sec;
    if (!sec) return TG_OK;
    if (zmq_ctx_set(net->ctx, ZMQ_IO_THREADS, CURVE_IO_THREADS) != 0)
        return tg_fail_errno(err, TG_UNAVAILABLE, "ZeroMQ takes no %d threads", CURVE_IO_THREADS);
    tg_allow *allow = tg_security_allow(sec);
    return allow ? tg_zap_start(&net->zap, net->ctx, allow, err) : TG_OK;
}

tg_security *tg_net_security(const tg_net *net) {
    return net->security;
}

void tg_net_auth_counts(const tg_net *net, uint64_t *accepted, uint64_t *refused) {
    *accepted = *refused = 0;
    if (net->zap) tg_zap_counts(net->zap, accepted, refused);
}

void *tg_net_context(const tg_net *net) {
    return net->ctx;
}

uint32_t tg_net_serial(tg_net *net) {
    return atomic_fetch_add(&net->serial, 1);
}
