/* ZeroMQ's own protocol on a stream, ZMTP 3 without encryption, as far as a ROUTER and a DEALER need it: the greeting, READY, frames
 * and PING. Pure: bytes in, bytes out. ipc.c speaks it on sockets of the file system, where the peers may be libzmq's.
 *
 *     each side    greeting (64 bytes)     signature, version, mechanism NULL
 *     each side    READY                   a command with the type of its socket
 *     then         frames                  flags, length of 1 or 8 bytes, body */
#ifndef TG_NET_ZMTP_H
#define TG_NET_ZMTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TG_ZMTP_GREETING = 64,
    TG_ZMTP_HEAD = 9, /* at most, of a frame */
    TG_ZMTP_MAX_COMMAND =
        512,            /* bytes of a command that we take; those that exist are far smaller */
    TG_ZMTP_READY = 64, /* room for our READY, and for any PONG */
};

/* Of a frame: further parts of the same message follow; a command. */
enum { TG_ZMTP_MORE = 1, TG_ZMTP_LONG = 2, TG_ZMTP_COMMAND = 4 };

typedef enum tg_zmtp_result {
    TG_ZMTP_OK,
    TG_ZMTP_PART, /* it may become right with more bytes */
    TG_ZMTP_BAD
} tg_zmtp_result;

typedef struct tg_zmtp_frame {
    uint8_t flags;
    const uint8_t *body; /* into the bytes given */
    size_t len;          /* of the body */
    size_t total;        /* of the whole frame; known before the body is there */
} tg_zmtp_frame;

void tg_zmtp_put_greeting(uint8_t out[TG_ZMTP_GREETING]);
/* A wrong byte is found as soon as it is there. */
tg_zmtp_result tg_zmtp_check_greeting(const uint8_t *bytes, size_t n);

/* A body of more than max_body bytes is TG_ZMTP_BAD before any of it is there; so is a command of more than
 * TG_ZMTP_MAX_COMMAND. TG_ZMTP_PART: total says how long the frame will be, or 0 when that is not yet known. */
tg_zmtp_result tg_zmtp_read_frame(const uint8_t *bytes, size_t n, size_t max_body,
                                  tg_zmtp_frame *out);
/* The bytes before a body; returns how many. */
size_t tg_zmtp_put_head(uint8_t out[TG_ZMTP_HEAD], uint8_t flags, size_t len);

/* A whole frame with READY for a ROUTER or a DEALER; returns its length. */
size_t tg_zmtp_put_ready(uint8_t out[TG_ZMTP_READY], bool router);
/* Whether the body of a command is READY of a socket that a ROUTER (else: a DEALER) may talk to. */
bool tg_zmtp_is_ready(const uint8_t *body, size_t len, bool router);
/* The frame that answers a command, PONG for PING; 0: none is due. */
size_t tg_zmtp_put_answer(uint8_t out[TG_ZMTP_READY], const uint8_t *body, size_t len);

#endif
