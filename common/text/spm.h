/* SentencePiece model files (.model): a protobuf message of pieces with scores, the trainer's choices and a
 * normalisation map. Read by a small bounded parser of the few fields that decide ids.
 *
 * A model becomes the tokenizer.json that transformers makes of it for its family: T5 and mT5, ALBERT, XLNet, Llama,
 * Gemma, mBART, XLM-RoBERTa or Pegasus, with their offsets and added tokens. The family is named by tokenizer_config.json
 * or config.json beside it, or known by T5's first pieces. Without one, ids are those of SentencePiece itself: then the
 * root has parts that only this program reads, and no tokens are added. */
#ifndef TG_TEXT_SPM_H
#define TG_TEXT_SPM_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <jansson.h>

/* *root (json_decref) has the keys of a tokenizer.json. config: tokenizer_config.json, model_type: of config.json;
 * NULL: there is none. data (if not NULL) gets the file. */
tg_status tg_spm_load(const char *path, const json_t *config, const char *model_type, json_t **root,
                      tg_buf *data, tg_error *err) TG_MUST_CHECK;
/* The same from memory; name is for messages. */
tg_status tg_spm_parse(const char *name, const char *data, size_t len, const json_t *config,
                       const char *model_type, json_t **root, tg_error *err) TG_MUST_CHECK;

#endif
