/* CURVE key pairs and the files that hold them.
 *
 *     tg_key_pair pair;
 *     tg_key_pair_read(&pair, "/etc/textgen/worker.key", err);
 *     ... use ...
 *     tg_key_wipe(&pair, sizeof pair);
 *
 * A key is 32 bytes, written as 40 characters of Z85. A key file is a ZeroMQ certificate (what czmq and
 * pyzmq read and write): lines `public-key = "…"` and `secret-key = "…"`. A file with a secret must be
 * this user's or root's and closed to everybody else (mode 0600 or 0400). A name without '/' is
 * looked for in $CREDENTIALS_DIRECTORY (systemd's LoadCredential=) first. */
#ifndef TG_NET_KEYS_H
#define TG_NET_KEYS_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_KEY_BYTES = 32, TG_KEY_TEXT = 40 };

typedef struct tg_key_pair {
    char public_key[TG_KEY_TEXT + 1];
    char secret_key[TG_KEY_TEXT + 1];
} tg_key_pair;

/* TG_UNSUPPORTED: the libzmq of this machine was built without CURVE. */
tg_status tg_keys_available(tg_error *err) TG_MUST_CHECK;
tg_status tg_key_pair_create(tg_key_pair *out, tg_error *err) TG_MUST_CHECK;

/* TG_NOINPUT: no such file; TG_DENIED: others may read it; TG_DATA: not a key file, or the two keys do
 * not belong together. On failure *out holds nothing. */
tg_status tg_key_pair_read(tg_key_pair *out, const char *path, tg_error *err) TG_MUST_CHECK;
/* `path`.key (mode 0600, both keys) and `path`.pub (mode 0644). TG_USAGE: one of them exists. */
tg_status tg_key_pair_write(const tg_key_pair *pair, const char *path, tg_error *err) TG_MUST_CHECK;

/* A public key given as its 40 characters or as a file that holds it. */
tg_status tg_key_public_read(char out[TG_KEY_TEXT + 1], const char *key_or_path,
                             tg_error *err) TG_MUST_CHECK;

/* The text of a key file; secret may be NULL. name is for messages. Never reads behind len. */
tg_status tg_key_parse(const char *text, size_t len, const char *name, char *public_key,
                       char *secret_key, tg_error *err) TG_MUST_CHECK;
/* 40 characters of Z85 that stand for 32 bytes. */
bool tg_key_decode(uint8_t out[TG_KEY_BYTES], const char *text, size_t len);
/* The file of this name in systemd's credentials folder; NULL: a plain path, or no memory. Owned. */
char *tg_credential_path(const char *name);
/* Overwrites memory in a way that is not optimised away. */
void tg_key_wipe(void *secret, size_t size);

#endif
