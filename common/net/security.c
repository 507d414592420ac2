/* Keys of a process and the socket options made of them.
 *
 * The secret lives in one page of its own, kept out of swap and core files where the system allows, and is
 * wiped at the end; libzmq holds its own copy while a socket is open. */
#include "common/net/security.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/net/address.h"
#include "common/net/zap.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

struct tg_security {
    tg_key_pair *pair; /* a page of its own */
    size_t page;
    bool has_server;
    char server[TG_KEY_TEXT + 1];
    tg_allow *allow;
};

static tg_status map_page(tg_security *s, tg_error *err) {
    long size = sysconf(_SC_PAGESIZE);
    s->page = size > 0 ? (size_t)size : 4096;
    void *page = mmap(NULL, s->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return tg_fail_nomem(err, s->page);
    if (mlock(page, s->page) != 0)
        tg_log_debug("net", "the page of the secret key may be swapped out");
    madvise(page, s->page, MADV_DONTDUMP);
    s->pair = page;
    return TG_OK;
}

static tg_status check_opts(const tg_security_opts *o, tg_error *err) {
    if (o->key) return TG_OK;
    if (o->allow)
        return tg_fail(err, TG_USAGE, "--allow %s needs --key FILE: the server's own key pair",
                       o->allow);
    if (o->server_key)
        return tg_fail(err, TG_USAGE, "--server-key needs --key FILE: the own key pair");
    return TG_OK;
}

tg_status tg_security_open(tg_security **out, const tg_security_opts *o, tg_error *err) {
    *out = NULL;
    tg_status st = check_opts(o, err);
    if (st != TG_OK || !o->key) return st;
    tg_security *s = *out = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    st = map_page(s, err);
    if (st == TG_OK) st = tg_key_pair_read(s->pair, o->key, err);
    if (st == TG_OK && o->server_key) {
        st = tg_key_public_read(s->server, o->server_key, err);
        s->has_server = true;
    }
    if (st == TG_OK && o->allow) st = tg_allow_open(&s->allow, o->allow, err);
    if (st != TG_OK) tg_security_close(out);
    return st;
}

void tg_security_close(tg_security **sec) {
    tg_security *s = *sec;
    if (!s) return;
    tg_allow_close(&s->allow);
    if (s->pair) {
        tg_key_wipe(s->pair, s->page);
        munmap(s->pair, s->page);
    }
    tg_free(s);
    *sec = NULL;
}

void tg_security_reload(tg_security *s) {
    tg_error err;
    if (!s || !s->allow) return;
    if (tg_allow_reload(s->allow, &err) == TG_OK)
        tg_log_info("net", "allow-list read again: %zu keys", tg_allow_count(s->allow));
    else
        tg_log_error("net", "the old allow-list stays in force: %s", err.msg);
}

tg_allow *tg_security_allow(const tg_security *s) {
    return s ? s->allow : NULL;
}

void tg_security_harden(const tg_security *s) {
    if (!s) return;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* they trace their own process */
    if (prctl(PR_SET_DUMPABLE, 0) != 0) tg_log_debug("net", "core files cannot be turned off");
#endif
}

/* ---- sockets -------------------------------------------------------------------------------- */

static bool set_int(void *socket, int option, int value) {
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool set_text(void *socket, int option, const char *text) {
    return zmq_setsockopt(socket, option, text, strlen(text) + (option != ZMQ_ZAP_DOMAIN)) == 0;
}

/* A domain that is not empty also keeps out peers of the old protocol versions, which know no keys. */
static bool apply_server(const tg_security *s, void *socket) {
    return set_int(socket, ZMQ_CURVE_SERVER, 1) &&
           set_text(socket, ZMQ_CURVE_SECRETKEY, s->pair->secret_key) &&
#ifdef ZMQ_ZAP_ENFORCE_DOMAIN /* a draft option: absent from distributions' libzmq */
           set_int(socket, ZMQ_ZAP_ENFORCE_DOMAIN, 1) &&
#endif
           set_text(socket, ZMQ_ZAP_DOMAIN, TG_ZAP_DOMAIN);
}

static bool apply_client(const tg_security *s, void *socket) {
    return set_text(socket, ZMQ_CURVE_SERVERKEY, s->server) &&
           set_text(socket, ZMQ_CURVE_PUBLICKEY, s->pair->public_key) &&
           set_text(socket, ZMQ_CURVE_SECRETKEY, s->pair->secret_key);
}

tg_status tg_security_apply(const tg_security *s, void *socket, const char *address, bool listen,
                            bool *secured, tg_error *err) {
    *secured = false;
    if (!s || tg_address_is_ipc(address)) return TG_OK;
    if (listen && !s->allow)
        return tg_fail(err, TG_USAGE,
                       "%s: listening with a key needs --allow FILE: who may connect", address);
    if (!listen && !s->has_server)
        return tg_fail(
            err, TG_USAGE,
            "%s: connecting with a key needs --server-key: the public key of that address",
            address);
    if (!(listen ? apply_server(s, socket) : apply_client(s, socket)))
        return tg_fail(err, TG_BUG, "%s: CURVE was refused: %s", address,
                       zmq_strerror(zmq_errno()));
    *secured = true;
    return TG_OK;
}
