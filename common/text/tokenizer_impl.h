/* Inside of a tokenizer: one of each part, in the order text passes them. Shared by tokenizer.c and
 * encode.c (use), tokenizer_open.c and tokenizer_legacy.c (reading a folder), settings.c (special tokens) and
 * tokenizer_save.c. */
#ifndef TG_TEXT_TOKENIZER_IMPL_H
#define TG_TEXT_TOKENIZER_IMPL_H

#include "common/text/added.h"
#include "common/text/text_decoder.h"
#include "common/text/text_model.h"
#include "common/text/normalizer.h"
#include "common/text/postproc.h"
#include "common/text/pretok.h"
#include "common/text/tokenizer.h"

struct tg_tokenizer {
    tg_added added;
    tg_normalizer normalizer;
    tg_pretok pretok;
    tg_text_model *model;
    tg_postproc postproc;
    tg_text_decoder decoder;

    int32_t size;       /* one past the largest id */
    const char **token; /* id -> text, added tokens first; borrowed, NULL for a hole */
    bool *special;      /* id -> is it special */
    int32_t bos, eos, pad, unk;
    int64_t max_length;
    bool truncate_left, pad_left; /* truncation_side, padding_side */
    uint8_t pad_type;             /* pad_token_type_id */
    char *config_json;            /* tokenizer_config.json as it was read; NULL: there was none */
    char *special_json;           /* special_tokens_map.json */
    char *chat_template;          /* chat_template.jinja, kept for those who chat */
    tg_buf spm;  /* the SentencePiece model, when no tokenizer.json says the same; else empty */
    bool marian; /* spm is source.spm, or of the target target.spm */
    char *vocab_json;     /* marian: the file */
    tg_tokenizer *target; /* marian: of the other language; NULL: this is it, or not marian */

    tg_scratch_pool *pool; /* changed by const calls: it has its own lock */
};

/* All parts but the model, from an object with the keys of a tokenizer.json (tokenizer_open.c). */
tg_status tg_tokenizer_read_parts(tg_tokenizer *t, const json_t *root, tg_error *err) TG_MUST_CHECK;

/* The files beside a tokenizer; NULL: the file is not there. */
typedef struct tg_side_files {
    json_t *tokenizer, *special,
        *model; /* tokenizer_config.json, special_tokens_map.json, config.json */
} tg_side_files;
tg_status tg_side_files_load(tg_tokenizer *t, const char *folder, tg_side_files *f,
                             tg_error *err) TG_MUST_CHECK;
void tg_side_files_fini(tg_side_files *f);
/* What they say about special tokens, lengths and sides (settings.c). The other parts have been read. */
tg_status tg_settings_apply(tg_tokenizer *t, const tg_side_files *f, tg_error *err) TG_MUST_CHECK;
/* The same from the text of a tokenizer_config.json; NULL: there is none. */
tg_status tg_settings_parse(tg_tokenizer *t, const char *config, tg_error *err) TG_MUST_CHECK;

/* Folders without a tokenizer.json (tokenizer_legacy.c). */
tg_status tg_legacy_pair(tg_tokenizer *t, const char *folder, const char *vocab, const char *merges,
                         const tg_side_files *f, tg_error *err) TG_MUST_CHECK;
tg_status tg_legacy_vocab_txt(tg_tokenizer *t, const char *folder, const char *path,
                              const tg_side_files *f, tg_error *err) TG_MUST_CHECK;

/* The tokens of one text, before special tokens; replaces what out holds. */
tg_status tg_tokenizer_tokens(const tg_tokenizer *t, tg_scratch *s, const char *text, size_t len,
                              bool spans, tg_tokens *out, tg_error *err) TG_MUST_CHECK;
/* The tokenizer as a tokenizer.json (tokenizer_save.c). */
void tg_tokenizer_write_json(const tg_tokenizer *t, tg_buf *out);

#endif
