/* The four Unicode normalisation forms, remembering where their output came from (Unicode Standard
 * Annex 15). */
#ifndef TG_TEXT_NFC_H
#define TG_TEXT_NFC_H

#include "common/text/scratch.h"

typedef enum tg_nf { TG_NFC, TG_NFD, TG_NFKC, TG_NFKD } tg_nf;

/* True only if text (valid UTF-8) is certainly in that form; a quick look, without memory. */
bool tg_nf_is_clean(tg_nf form, const char *s, size_t len);

/* Appends in, in that form, to out. A character that was composed of several is aligned with the
 * first of them, as in Hugging Face. *points is work space that grows. False: out of memory. */
bool tg_nf_run(tg_nf form, tg_point **points, size_t *cap, tg_view in, tg_aligned *out);

/* Appends points, which stand for in by their change counts: an inserted one is aligned like what
 * was consumed before it, another with the next input character. */
bool tg_points_emit(const tg_point *points, size_t n, tg_view in, tg_aligned *out);

#endif
