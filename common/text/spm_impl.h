/* From SentencePiece pieces to the text of a tokenizer.json: what spm.c (parts) and spm_vocab.c (vocabularies) share. */
#ifndef TG_TEXT_SPM_IMPL_H
#define TG_TEXT_SPM_IMPL_H

#include "common/base/map.h"
#include "common/text/part.h"
#include "common/text/spm_read.h"

#define TG_SPM_MARK "\xE2\x96\x81" /* stands for a space */

typedef enum tg_spm_family {
    TG_SPM_PLAIN, /* SentencePiece itself */
    TG_SPM_T5,
    TG_SPM_ALBERT,
    TG_SPM_XLNET,
    TG_SPM_LLAMA,
    TG_SPM_GEMMA,
    TG_SPM_MBART,
    TG_SPM_XLMR,
    TG_SPM_PEGASUS,
    TG_SPM_FAMILIES
} tg_spm_family;

typedef struct tg_spm_maker {
    const tg_spm *m;
    const json_t *config; /* tokenizer_config.json; may be NULL */
    tg_spm_family family;
    tg_buf *out;
    tg_map added; /* names that are in added_tokens already */
} tg_spm_maker;

enum { TG_SPM_LANGUAGES = 25 };
extern const char *const tg_spm_languages[TG_SPM_LANGUAGES]; /* of mBART, in order */

/* A token's name as the config has it; NULL: there is none. */
const char *tg_spm_name(const tg_spm_maker *k, const char *key, const char *standard);
bool tg_spm_flag(const tg_spm_maker *k, const char *key, bool standard);
int tg_spm_count(const tg_spm_maker *k, const char *key, int standard);
bool tg_spm_piece_is(const tg_spm *m, size_t i, const char *text);
int tg_spm_pegasus_offset(const tg_spm_maker *k); /* one past the last <unk_N> */

/* "model":{ … without the closing brace. */
void tg_spm_put_unigram(tg_spm_maker *k);
tg_status tg_spm_put_bpe(tg_spm_maker *k, const char *unk, tg_error *err) TG_MUST_CHECK;
/* The pieces from that one on, as [text, score]. */
void tg_spm_put_pieces(tg_spm_maker *k, size_t from);

#endif
