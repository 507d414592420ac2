/* METEOR (Lavie and Agarwal 2007) with the arithmetic of NLTK's single_meteor_score: words matched
 * exactly, by Porter stem, by WordNet synonym, each greedily from the end.
 *
 * A tg_meteor is read-only after create; each thread brings its own tg_meteor_work. */
#ifndef TG_ENV_METEOR_H
#define TG_ENV_METEOR_H

#include "common/base/status.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/words.h"
#include "proto/messages.h"

typedef struct tg_meteor tg_meteor;
/* compat: NLTK 3.7's rules, and the reference list compared as the text Python makes of it. */
tg_status tg_meteor_create(tg_meteor **out, bool compat, tg_error *err) TG_MUST_CHECK;
void tg_meteor_destroy(tg_meteor **m);

/* Zeroed at first, reused freely. */
typedef struct tg_meteor_work {
    tg_nltk_list hyp, ref;
    tg_words ids;
    tg_buf text, stems;
    struct tg_meteor_word *words; /* of both texts */
    size_t words_cap;
    int64_t *head; /* by word id */
    size_t head_cap;
} tg_meteor_work;
void tg_meteor_work_fini(tg_meteor_work *w);

/* Against one reference text. */
tg_status tg_meteor_pair(const tg_meteor *m, tg_meteor_work *w, const char *text, size_t len,
                         const char *reference, size_t reference_len, double *out,
                         tg_error *err) TG_MUST_CHECK;
/* Against all references of a sample: the best one. Without references 0. */
tg_status tg_meteor_sample(const tg_meteor *m, tg_meteor_work *w, const char *text, size_t len,
                           const tg_sample *s, double *out, tg_error *err) TG_MUST_CHECK;

#endif
