/* SentencePiece's own normaliser: its map applied to the longest match at each place, white space folded, a space in
 * front (or behind), spaces written as U+2581. Symbols that the user defined are left alone. */
#ifndef TG_TEXT_SPM_NORM_H
#define TG_TEXT_SPM_NORM_H

#include "common/text/part.h"
#include "common/text/view.h"

typedef struct tg_spm_norm tg_spm_norm;

/* From a "SentencePiece" part, which spm.c writes. */
tg_status tg_spm_norm_read(tg_spm_norm **out, const json_t *part, const char *where,
                           tg_error *err) TG_MUST_CHECK;
void tg_spm_norm_destroy(tg_spm_norm **n);
/* Appends to out, which is empty. False: out of memory. */
bool tg_spm_norm_run(const tg_spm_norm *n, tg_view in, tg_aligned *out);

#endif
