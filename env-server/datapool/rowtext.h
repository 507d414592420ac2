/* Reading fields of a row and filling samples, for recipes. Messages name the field and what the row
 * has instead; the caller adds file and line. */
#ifndef TG_ENV_ROWTEXT_H
#define TG_ENV_ROWTEXT_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "env-server/datapool/datapool.h"

#include <jansson.h>

enum { TG_ROW_TEXT_MAX = 4 << 20, TG_ROW_LIST_MAX = 1 << 20 };

/* The value of a field that must be there; names: "a|b" tries several. NULL and TG_DATA in err. */
const json_t *tg_row_field(const json_t *row, const char *names, tg_error *err);
/* A text; borrowed from the row. NULL: it is not one (TG_DATA in err). */
const char *tg_row_text(const json_t *row, const char *names, tg_error *err);
/* A value that must be a text; what is for the message. */
const char *tg_value_text(const json_t *value, const char *what, tg_error *err);
/* A list of texts. NULL: it is not one. */
const json_t *tg_row_texts(const json_t *row, const char *names, tg_error *err);
/* A whole number, also written as a text. False: TG_DATA in err. */
bool tg_row_int(const json_t *row, const char *names, int64_t *out, tg_error *err);
bool tg_value_int(const json_t *value, const char *what, int64_t *out, tg_error *err);

/* Sets the id "{split}_{number}". */
tg_status tg_sample_number(tg_sample *s, tg_split split, uint64_t number, tg_arena *arena,
                           tg_error *err) TG_MUST_CHECK;
/* The buffer's text becomes the prompt; the buffer is emptied, also on failure. */
tg_status tg_sample_prompt(tg_sample *s, tg_buf *prompt, tg_arena *arena,
                           tg_error *err) TG_MUST_CHECK;
/* Room for n references, to be set with tg_sample_reference. */
tg_status tg_sample_references(tg_sample *s, size_t n, tg_arena *arena,
                               tg_error *err) TG_MUST_CHECK;
tg_status tg_sample_reference(tg_sample *s, size_t i, const char *text, size_t len, tg_arena *arena,
                              tg_error *err) TG_MUST_CHECK;
/* One reference alone. */
tg_status tg_sample_only(tg_sample *s, const char *reference, tg_arena *arena,
                         tg_error *err) TG_MUST_CHECK;
/* Takes meta (which may be NULL: out of memory). */
tg_status tg_sample_meta(tg_sample *s, json_t *meta, tg_arena *arena, tg_error *err) TG_MUST_CHECK;

#endif
