/* SentencePiece models made by hand: pieces one after the other are a model. */
#ifndef TG_TESTS_SPM_BYTES_H
#define TG_TESTS_SPM_BYTES_H

#include "common/base/buf.h"

/* A normal piece; of less than 100 bytes. */
void tg_spm_bytes_piece(tg_buf *out, const char *text, float score);

#endif
