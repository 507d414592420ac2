/* The values of a page, in any of Parquet's encodings. */
#ifndef TG_ENV_PARQUET_VALUES_H
#define TG_ENV_PARQUET_VALUES_H

#include "env-server/datapool/parquet/meta.h"

typedef union tg_pq_value {
    int64_t i; /* truth values and whole numbers */
    double d;
    struct {
        uint32_t at, len; /* of a text, in the bytes of its values */
    } text;
} tg_pq_value;

typedef enum tg_pq_encoding {
    TG_PQ_ENC_PLAIN = 0,
    TG_PQ_ENC_PLAIN_DICTIONARY = 2,
    TG_PQ_ENC_RLE = 3,
    TG_PQ_ENC_BIT_PACKED = 4,
    TG_PQ_ENC_DELTA = 5,
    TG_PQ_ENC_DELTA_LENGTH = 6,
    TG_PQ_ENC_DELTA_BYTES = 7,
    TG_PQ_ENC_DICTIONARY = 8,
    TG_PQ_ENC_SPLIT = 9
} tg_pq_encoding;

typedef struct tg_pq_values {
    tg_pq_value *v; /* n of them; owned */
    size_t n;
    unsigned char *bytes; /* of texts: owned, or NULL when they lie in `in` */
} tg_pq_values;

/* Reads n values (not of a dictionary's indices). in is below 4 GiB. */
tg_status tg_pq_values_read(const tg_pq_node *leaf, int encoding, const unsigned char *in,
                            size_t len, size_t n, tg_pq_values *out, tg_error *err) TG_MUST_CHECK;
void tg_pq_values_fini(tg_pq_values *v);

#endif
