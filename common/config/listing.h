/* What `list` commands say of a registry's rows: {kind, name, summary, built, options}. */
#ifndef TG_CONFIG_LISTING_H
#define TG_CONFIG_LISTING_H

#include "common/base/buf.h"
#include "common/config/option.h"

#include <stdbool.h>

typedef struct tg_listed {
    const char *kind, *name, *summary;
    bool built;
    const tg_opt *options; /* NULL: none */
} tg_listed;

/* Whether the word a user gave names the kind: "reward" and "rewards" do. NULL names every kind. */
bool tg_kind_is(const char *kind, const char *given);

/* Appends the row to the JSON array that is being written: "[" before the first (*n is 0), "," before others; counts it. */
void tg_listed_json(const tg_listed *row, size_t *n, tg_buf *out);

#endif
