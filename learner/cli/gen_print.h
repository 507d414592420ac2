/* The results of a chunk as lines of text or of JSON. */
#ifndef TG_LEARNER_CLI_GEN_PRINT_H
#define TG_LEARNER_CLI_GEN_PRINT_H

#include "common/base/buf.h"
#include "learner/cli/gen_chunk.h"

/* Appends what line i became. Of a bad one jsonl has the reason in its place; of text it is said on stderr. */
tg_status tg_gen_print_line(const tg_gen_chunk *c, int i, bool jsonl, tg_buf *out,
                            tg_error *err) TG_MUST_CHECK;

#endif
