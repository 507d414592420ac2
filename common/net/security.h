/* What a process knows about keys: its own pair, the server's public key it expects, and whom it lets in.
 *
 *     tg_security_opts o = {.key = "worker.key", .server_key = "broker.pub"};
 *     tg_security_open(&sec, &o, err);          // NULL without --key: no encryption
 *     tg_net_secure(net, sec, err);             // before anything is opened on the net
 *     ... on SIGHUP: tg_security_reload(sec) ...
 *     tg_security_close(&sec);                  // after the net; wipes the secret
 *
 * With a key, every tcp connection is encrypted and authenticated on both sides (CURVE): who listens needs
 * an allow-list, who dials the server's public key. Sockets of the file system (ipc) are guarded by their
 * mode and never encrypted. One object may serve several nets and threads. */
#ifndef TG_NET_SECURITY_H
#define TG_NET_SECURITY_H

#include "common/base/status.h"
#include "common/net/allow.h"

#include <stdbool.h>

typedef struct tg_security_opts {
    const char *key;        /* file with the own key pair; NULL: no encryption */
    const char *server_key; /* public key, or a file with it, of who is dialled */
    const char *allow;      /* allow-list, for who listens */
    bool insecure;          /* listen on a reachable tcp address without keys */
} tg_security_opts;

/* Rows for a table of flags (common/config/args.h); o is a tg_security_opts. */
#define TG_SECURITY_FLAGS(o)                                                                       \
    {"key", TG_FLAG_STR, &(o).key, "FILE",                                                         \
     "Own key pair (textgen keygen): tcp connections are encrypted and authenticated."},           \
        {"server-key", TG_FLAG_STR, &(o).server_key, "KEY|FILE",                                   \
         "Public key of the address that is connected to."},                                       \
        {"allow", TG_FLAG_STR, &(o).allow, "FILE",                                                 \
         "Who may connect: lines KEY ROLE TENANT; read again on SIGHUP."},                         \
    {                                                                                              \
        "insecure", TG_FLAG_SWITCH, &(o).insecure, NULL,                                           \
            "Allow a tcp address that other machines reach, without keys."                         \
    }

typedef struct tg_security tg_security;

/* *out is NULL when opts has no key. TG_USAGE: options that do not fit together. */
tg_status tg_security_open(tg_security **out, const tg_security_opts *opts,
                           tg_error *err) TG_MUST_CHECK;
void tg_security_close(tg_security **sec);

/* Reads the allow-list again and says in the log what came of it: a bad file leaves the old list. sec
 * may be NULL. Any thread. */
void tg_security_reload(tg_security *sec);
tg_allow *tg_security_allow(const tg_security *sec); /* NULL: none */

/* From here on this process leaves no core and cannot be traced by its own user. For mains that hold a
 * secret; sec may be NULL: nothing happens. */
void tg_security_harden(const tg_security *sec);

/* For net.c and endpoint.c: sets the CURVE options of a ZeroMQ socket. *secured tells whether it did. */
tg_status tg_security_apply(const tg_security *sec, void *socket, const char *address, bool listen,
                            bool *secured, tg_error *err) TG_MUST_CHECK;

#endif
