/* A small grammar that writes plain English: the text the built-in model learns from.
 *
 *     tg_buf text = {0};
 *     tg_grammar_text(seed, line, &text);     // one short text, without a newline
 *
 * A text is a pure function of (seed, line), so any part of a corpus can be made alone. */
#ifndef TG_CLI_GRAMMAR_H
#define TG_CLI_GRAMMAR_H

#include "common/base/buf.h"

#include <stdint.h>

void tg_grammar_text(uint64_t seed, uint64_t line, tg_buf *out);

#endif
