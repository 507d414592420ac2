/* The vocabulary of a model: token text <-> id. Ids may have holes. */
#ifndef TG_TEXT_VOCAB_H
#define TG_TEXT_VOCAB_H

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/status.h"

#include <jansson.h>
#include <stdint.h>

#define TG_VOCAB_MAX_ID ((1 << 24) - 1)

typedef struct tg_vocab {
    tg_map ids;         /* text -> id */
    const char **token; /* id -> text, borrowed from ids; NULL for a hole */
    int32_t size;       /* one past the largest id */
} tg_vocab;

/* Adds all tokens first, then indexes them once. TG_DATA: id out of range. */
tg_status tg_vocab_add(tg_vocab *v, const char *token, size_t len, int64_t id,
                       tg_error *err) TG_MUST_CHECK;
/* TG_DATA when two tokens have one id. No tokens may be added after it. */
tg_status tg_vocab_index(tg_vocab *v, tg_error *err) TG_MUST_CHECK;
/* Adds all of {"token": id, …} and indexes them. where names the object for messages. */
tg_status tg_vocab_read(tg_vocab *v, const json_t *object, const char *where,
                        tg_error *err) TG_MUST_CHECK;
int32_t tg_vocab_id(const tg_vocab *v, const char *token, size_t len); /* -1: unknown */
const char *tg_vocab_token(const tg_vocab *v, int32_t id);             /* NULL: none */
/* {"token":id, …} in order of id: a vocab.json. */
void tg_vocab_write_json(const tg_vocab *v, tg_buf *out);
void tg_vocab_fini(tg_vocab *v);

#endif
