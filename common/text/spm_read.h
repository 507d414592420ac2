/* What a SentencePiece model file holds (inside of spm.c). */
#ifndef TG_TEXT_SPM_READ_H
#define TG_TEXT_SPM_READ_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_spm_type {
    TG_SPM_NORMAL = 1,
    TG_SPM_UNKNOWN,
    TG_SPM_CONTROL,
    TG_SPM_USER_DEFINED,
    TG_SPM_UNUSED,
    TG_SPM_BYTE
} tg_spm_type;
enum { TG_SPM_UNIGRAM = 1, TG_SPM_BPE = 2 };

typedef struct tg_spm_piece {
    const char *text; /* valid UTF-8 without NUL, not terminated; borrowed from the data */
    size_t len;
    float score;
    tg_spm_type type;
} tg_spm_piece;

typedef struct tg_spm {
    const char *name; /* of the file */
    tg_spm_piece *pieces;
    size_t n, cap;
    uint64_t model_type;
    bool byte_fallback, add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces,
        whitespace_as_suffix;
    int64_t unk_id, bos_id, eos_id, pad_id; /* -1: none */
    const unsigned char *charsmap;          /* borrowed */
    size_t charsmap_len;
} tg_spm;

/* TG_DATA: not such a file, or a piece that cannot be. */
tg_status tg_spm_read(tg_spm *m, const char *name, const char *data, size_t len,
                      tg_error *err) TG_MUST_CHECK;
void tg_spm_fini(tg_spm *m);

#endif
