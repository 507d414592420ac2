/* A chunk of lines of `textgen generate`: all run through one generator, as large as they need, and each has its results or what is wrong with
 * it.
 *
 *     tg_gen_chunk_init(&c, &model, &settings, seed, max_lines, err);
 *     …append a prompt to c.ids…  tg_gen_chunk_add(&c, number, first, st, &why);     // until c.n == c.cap
 *     tg_gen_chunk_run(&c, err);
 *     …c.lines, tg_gen_chunk_result…
 *     tg_gen_chunk_clear(&c);                                                         // for the next lines
 */
#ifndef TG_LEARNER_CLI_GEN_CHUNK_H
#define TG_LEARNER_CLI_GEN_CHUNK_H

#include "learner/cli/open_model.h"
#include "learner/policy/generate.h"

typedef struct tg_gen_line {
    long number;
    size_t first, n; /* its prompt in the chunk's ids */
    bool bad;
    char why[256];
} tg_gen_line;

typedef struct tg_gen_text {
    int32_t *tokens; /* owned; NULL until the sequence ended */
    float *logp, *sample_logp;
    int n;
    double score;
    tg_gen_end end;
} tg_gen_text;

typedef struct tg_gen_chunk {
    tg_cli_model *model;             /* borrowed */
    const tg_gen_settings *settings; /* borrowed */
    tg_generator *generator;
    tg_decoder_caps caps; /* of the generator */
    uint64_t seed;
    int64_t per_line; /* num_return_sequences */
    uint64_t before;  /* lines of the chunks before: where its draws go on */
    tg_gen_line *lines;
    int n, cap;
    long n_bad;           /* of all chunks */
    tg_gen_text *results; /* (cap * per_line) */
    tg_ids ids;           /* prompts, one behind the other */
} tg_gen_chunk;

/* At most max_lines, fewer where a line has very many results. */
tg_status tg_gen_chunk_init(tg_gen_chunk *c, tg_cli_model *model, const tg_gen_settings *settings,
                            uint64_t seed, int max_lines, tg_error *err) TG_MUST_CHECK;
void tg_gen_chunk_fini(tg_gen_chunk *c);

/* The line whose prompt was appended to c->ids, from `first` on; `st` and `why` say how that went. TG_NOMEM is the only failure, without a
 * message. */
tg_status tg_gen_chunk_add(tg_gen_chunk *c, long number, size_t first, tg_status st,
                           const tg_error *why) TG_MUST_CHECK;
/* What is wrong with a line alone becomes its result. */
tg_status tg_gen_chunk_run(tg_gen_chunk *c, tg_error *err) TG_MUST_CHECK;
/* Result k of line i. */
const tg_gen_text *tg_gen_chunk_result(const tg_gen_chunk *c, int i, int64_t k);
/* Forgets lines and results. */
void tg_gen_chunk_clear(tg_gen_chunk *c);

#endif
