/* ToTTo's tables as text, as the data set's baseline writes them: highlighted cells (or all), each
 * with the headers above it and to its left. */
#ifndef TG_ENV_TOTTO_TEXT_H
#define TG_ENV_TOTTO_TEXT_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct tg_totto_table {
    const json_t *table; /* rows of {value, is_header, column_span} */
    const json_t *cells; /* highlighted: [row, column] */
    const char *page_title, *section_title;
} tg_totto_table;

/* Checks the shapes, spans and indices once. Everything borrowed from the row. */
tg_status tg_totto_table_read(const json_t *row, tg_totto_table *out, tg_error *err) TG_MUST_CHECK;
/* Appends the text; titles: with page and section title (left out where empty). Failure is sticky. */
void tg_totto_subtable(const tg_totto_table *t, bool titles, tg_buf *out);
void tg_totto_fulltable(const tg_totto_table *t, bool titles, tg_buf *out);

#endif
