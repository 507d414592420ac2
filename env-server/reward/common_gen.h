/* CommonGen's rules: the prompt names concepts, the text should use them and not repeat the prompt. */
#ifndef TG_ENV_COMMON_GEN_H
#define TG_ENV_COMMON_GEN_H

#include "common/base/status.h"

#include <stddef.h>

/* -1 when the text holds the prompt's concepts (without the prompt's last character), its
 * instruction, "generate" or "sentence", in any case; else 0. TG_DATA without the instruction. */
tg_status tg_repeat_penalty(const char *prompt, const char *text, size_t len, double *out,
                            tg_error *err) TG_MUST_CHECK;

/* Share of the concepts whose Porter stem is the stem of a word of the text (words between single
 * spaces); the concepts are the words of the prompt behind the instruction, if it has one. */
tg_status tg_concept_cover(const char *prompt, const char *text, size_t len, double *out,
                           tg_error *err) TG_MUST_CHECK;

#endif
