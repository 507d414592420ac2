/* The written caps of protocol v1. A payload beyond one of them is refused before anything is
 * allocated for it (wire.c), and an encoder refuses to write it, so both ends agree. Raising a cap
 * is compatible; lowering one is not. */
#ifndef TG_PROTO_LIMITS_H
#define TG_PROTO_LIMITS_H

enum {
    TG_LIMIT_MESSAGE = 64 << 20, /* bytes of a frame: header and payload */
    TG_LIMIT_SLOTS = 65536,      /* slots in one OpenSlots, SlotsOpened or CloseSlots */
    TG_LIMIT_BATCH =
        4096, /* items of Reset, Step, Restore, Score and their replies; samples of a range */
    TG_LIMIT_GENERATIONS = 65536, /* items of a MetricRequest, texts of its reply: a whole split */
    TG_LIMIT_METRICS = 1024,      /* values of a MetricReply */
    TG_LIMIT_TOKENS = 65536,      /* tokens of one run, prompt or generation */
    TG_LIMIT_NAME = 256,          /* bytes of a name or id */
    TG_LIMIT_NAMES = 256,         /* capabilities, reward names, metric names */
    TG_LIMIT_FUNCTIONS = 256,     /* reward functions in Hello and Welcome */
    TG_LIMIT_NOTE = 4096,         /* bytes of an error message or reason */
    TG_LIMIT_TEXT = 4 << 20,      /* bytes of a text or JSON value */
    TG_LIMIT_REFERENCES = 1024,   /* references of one sample */
    TG_LIMIT_COMPONENTS = 64,     /* named parts of one reward */
    TG_LIMIT_UNKNOWN = 16,        /* fields of a later minor version, per message */
    TG_LIMIT_ITEMS = 131072,      /* all repeated entries of one payload together */

    /* Decoding a payload of n bytes with k repeated entries allocates at most 2 n + k * ITEM_COST +
       SLACK bytes. */
    TG_DECODE_ITEM_COST = 512,
    TG_DECODE_SLACK = 8192
};

#endif
