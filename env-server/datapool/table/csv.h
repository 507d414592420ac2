/* Comma- and tab-separated records: fields in double quotes may hold separators, line ends and
 * doubled quotes. A quote inside a field that did not start with one stands for itself. */
#ifndef TG_ENV_CSV_H
#define TG_ENV_CSV_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stddef.h>

typedef struct tg_csv_record {
    tg_buf bytes; /* the fields one after the other, a NUL behind each */
    size_t *at;   /* where each starts */
    size_t *len;
    size_t n;
    size_t cap; /* private */
} tg_csv_record;

static inline const char *tg_csv_field(const tg_csv_record *r, size_t i) {
    return r->bytes.data + r->at[i];
}

/* Reads the record at text[0] (replacing what r held); *used gets its length with the line end. A
 * blank line is a record of no fields. TG_DATA: a quote is not closed; *used is then the rest. */
tg_status tg_csv_read(const char *text, size_t len, char separator, tg_csv_record *r, size_t *used,
                      tg_error *err) TG_MUST_CHECK;
/* Only its length; the same value as *used. blank: it has no fields. */
size_t tg_csv_skip(const char *text, size_t len, char separator, bool *blank);
void tg_csv_record_fini(tg_csv_record *r);

#endif
