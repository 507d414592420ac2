/* A ZeroMQ peer without our endpoint: sends what it likes, with the keys it likes. For tests of what a server
 * does with strangers. Blocking, one thread. */
#ifndef TG_TEST_RAW_PEER_H
#define TG_TEST_RAW_PEER_H

#include "proto/frame.h"
#include "proto/messages.h"

#include <stdbool.h>

typedef struct raw_peer {
    void *ctx, *socket, *monitor;
    uint64_t session, seq; /* session: of the Welcome */
    tg_limits limits;
    uint8_t token[16];
    bool has_token;
} raw_peer;

/* key and server_key: files; NULL: no encryption. */
bool raw_peer_open(raw_peer *p, const char *address, const char *key, const char *server_key);
void raw_peer_close(raw_peer *p);
/* Waits for the end of a handshake: 1 made, 0 nothing in time, -1 refused or broken. */
int raw_peer_handshake(raw_peer *p, int timeout_ms);
/* Any bytes as one message. */
bool raw_peer_send_bytes(raw_peer *p, const void *bytes, size_t len);
bool raw_peer_send(raw_peer *p, tg_msg_type type, uint64_t session, const void *msg);
/* The next message that is no heartbeat (tg_msg_free), NULL: none in time. */
void *raw_peer_receive(raw_peer *p, tg_frame *head, int timeout_ms);
/* Hello and its Welcome; otherwise the code of the Error, or TG_CODE_DEADLINE_EXCEEDED. resume: NULL or the peer whose session is wanted. */
tg_code raw_peer_hello(raw_peer *p, tg_role role, const raw_peer *resume);
/* The code of the Error that answers the message last sent; OK: another answer; DEADLINE_EXCEEDED: none. */
tg_code raw_peer_answer(raw_peer *p, int timeout_ms);

#endif
