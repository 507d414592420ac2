/* SentencePiece model files (.model): a protobuf message of pieces with scores, the trainer's
 * choices and a normalisation map. Read by a small bounded parser of the few fields that decide ids.
 *
 * Built: unigram models laid out as T5's (<pad>, </s>, <unk> first), which become the tokenizer.json
 * that transformers makes of them, with 100 <extra_id_..> tokens behind. Others are refused by
 * name. */
#ifndef TG_TEXT_SPM_H
#define TG_TEXT_SPM_H

#include "common/base/status.h"

#include <jansson.h>

/* *root (json_decref) has the keys of a tokenizer.json. */
tg_status tg_spm_load(const char *path, json_t **root, tg_error *err) TG_MUST_CHECK;
/* The same from memory; name is for messages. */
tg_status tg_spm_parse(const char *name, const char *data, size_t len, json_t **root,
                       tg_error *err) TG_MUST_CHECK;

#endif
