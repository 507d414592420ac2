/* A pickle machine that executes nothing.
 *
 * It knows the opcodes that a saved table of tensors needs. Names of Python objects become numbers
 * through the host's table; calling one asks the host. Everything else is TG_DATA that says which opcode
 * or name was met and at which byte. Values refer to the bytes of the file; the memory that a pickle may take is
 * bounded by a small multiple of its own length, whatever lengths, indices or nesting it claims. Nothing
 * here walks values recursively. */
#ifndef TG_NN_TORCH_PICKLE_H
#define TG_NN_TORCH_PICKLE_H

#include "common/base/arena.h"
#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tg_pickle_kind {
    TG_PICKLE_UNSET, /* never on the stack */
    TG_PICKLE_MARK,
    TG_PICKLE_NONE,
    TG_PICKLE_BOOL,
    TG_PICKLE_INT,
    TG_PICKLE_FLOAT,
    TG_PICKLE_LONG, /* n bytes at text, little endian, two's complement: more than 64 bits */
    TG_PICKLE_TEXT, /* n bytes at text, in the file, without a NUL behind them */
    TG_PICKLE_TUPLE,
    TG_PICKLE_LIST,
    TG_PICKLE_DICT,   /* list->items: key, value, key, value … in the order they were set */
    TG_PICKLE_GLOBAL, /* n: the host's number */
    TG_PICKLE_OBJECT, /* what the host made: n its type, i its number */
} tg_pickle_kind;

typedef struct tg_pickle_value tg_pickle_value;

typedef struct tg_pickle_list {
    tg_pickle_value *items;
    size_t n, cap;
    struct tg_pickle_list *next; /* private */
} tg_pickle_list;

struct tg_pickle_value {
    tg_pickle_kind kind;
    uint32_t n;
    union {
        int64_t i;
        double f;
        const unsigned char *text;
        const tg_pickle_value *items; /* tuple: n of them */
        tg_pickle_list *list;
    };
};

typedef struct tg_pickle tg_pickle;

typedef struct tg_pickle_host {
    void *arg;
    /* The number of module.name, or a negative one: not known. */
    int (*global)(void *arg, const char *module, size_t module_len, const char *name,
                  size_t name_len);
    /* What a persistent id stands for. */
    tg_status (*load)(void *arg, tg_pickle *p, const tg_pickle_value *id, tg_pickle_value *out,
                      tg_error *err);
    /* Calls `global`; args is a tuple. */
    tg_status (*call)(void *arg, tg_pickle *p, uint32_t global, const tg_pickle_value *args,
                      tg_pickle_value *out, tg_error *err);
} tg_pickle_host;

struct tg_pickle { /* all private */
    tg_pickle_host host;
    tg_arena arena; /* items of tuples */
    tg_pickle_list *lists;
    tg_pickle_value *stack, *memo;
    size_t depth, stack_cap, memo_cap, memo_next;
    size_t used, budget; /* bytes */
    const unsigned char *bytes;
    size_t len, at, op_at;
    tg_error *err;
};

/* Runs one pickle at the start of the bytes, which are borrowed as long as values are looked at. *used: its length.
 * Values stay until fini; several pickles may be run one after the other. */
void tg_pickle_init(tg_pickle *p, tg_pickle_host host);
tg_status tg_pickle_run(tg_pickle *p, const unsigned char *bytes, size_t len, size_t *used,
                        tg_pickle_value *out, tg_error *err) TG_MUST_CHECK;
void tg_pickle_fini(tg_pickle *p);
/* After a run that failed inside a dict: the outermost key whose value was being made. NULL: none. */
const tg_pickle_value *tg_pickle_open_key(const tg_pickle *p);
/* For the host: a fresh dict. */
tg_status tg_pickle_new_dict(tg_pickle *p, tg_pickle_value *out, tg_error *err) TG_MUST_CHECK;
/* For the host: one more key and value of such a dict. */
tg_status tg_pickle_dict_add(tg_pickle *p, const tg_pickle_value *dict,
                             const tg_pickle_value pair[2], tg_error *err) TG_MUST_CHECK;
/* The same: counts what the host itself allocates against the pickle's budget. */
tg_status tg_pickle_spend(tg_pickle *p, size_t bytes, tg_error *err) TG_MUST_CHECK;
/* "a list", "text" …: for messages. */
const char *tg_pickle_kind_name(tg_pickle_kind kind);

#endif
