/* Unicode normalisation form C that remembers where its output came from (Unicode Standard Annex
 * 15). */
#ifndef TG_TEXT_NFC_H
#define TG_TEXT_NFC_H

#include "common/text/scratch.h"

/* True only if text (valid UTF-8) is certainly in form C; a quick look, without memory. */
bool tg_nfc_is_clean(const char *s, size_t len);

/* Appends the form C of in to out. A character that was composed of several is aligned with the
 * first of them, as in Hugging Face. *points is work space that grows. False: out of memory. */
bool tg_nfc_run(tg_point **points, size_t *cap, tg_view in, tg_aligned *out);

#endif
