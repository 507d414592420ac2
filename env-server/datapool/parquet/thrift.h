/* Reading of Thrift's compact protocol, which Parquet's footer and page headers use. A cursor never
 * leaves its bytes; failure is sticky, and every read then gives 0. */
#ifndef TG_ENV_THRIFT_H
#define TG_ENV_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_thrift {
    const unsigned char *at, *end;
    bool failed;
} tg_thrift;

typedef enum tg_thrift_type {
    TG_THRIFT_STOP = 0,
    TG_THRIFT_TRUE = 1,
    TG_THRIFT_FALSE = 2,
    TG_THRIFT_I8 = 3,
    TG_THRIFT_I16 = 4,
    TG_THRIFT_I32 = 5,
    TG_THRIFT_I64 = 6,
    TG_THRIFT_DOUBLE = 7,
    TG_THRIFT_BINARY = 8,
    TG_THRIFT_LIST = 9,
    TG_THRIFT_SET = 10,
    TG_THRIFT_MAP = 11,
    TG_THRIFT_STRUCT = 12
} tg_thrift_type;

/* The next field of a struct; id starts at 0 and is updated. False at the struct's end (and when
 * reading failed). */
bool tg_thrift_field(tg_thrift *t, int *id, tg_thrift_type *type);
/* A whole number of any width. A field of another type is skipped and gives 0. */
int64_t tg_thrift_int(tg_thrift *t, tg_thrift_type type);
bool tg_thrift_bool(tg_thrift *t, tg_thrift_type type);
const char *tg_thrift_binary(tg_thrift *t, tg_thrift_type type, size_t *len);
/* Number of elements and their type; 0 for a field that is no list. */
size_t tg_thrift_list(tg_thrift *t, tg_thrift_type type, tg_thrift_type *element);
void tg_thrift_skip(tg_thrift *t, tg_thrift_type type);

#endif
