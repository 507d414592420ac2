/* The texts that `score` judges: objects {"prediction", "references", "prompt", "meta"}, one a line, or a file of
 * predictions with files of references beside it. */
#ifndef TG_ENV_TEXTS_H
#define TG_ENV_TEXTS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/metric/metric.h"

typedef struct tg_texts {
    tg_arena arena; /* owns everything below */
    tg_metric_item *items;
    size_t n, cap;
} tg_texts;

/* path NULL or "-": stdin. TG_DATA with file and line for a bad one, or when there is none. */
tg_status tg_texts_read(tg_texts *t, const char *path, tg_error *err) TG_MUST_CHECK;

/* Files that belong together line by line. A name that ends in .jsonl, .json or .ndjson: a JSON value a line, else plain texts (an
 * empty line is an empty text). */
typedef struct tg_texts_files {
    const char *predictions; /* a text a line, or an object as above */
    const char *prompts;     /* NULL: none. A text a line */
    const char *const *
        references; /* a text, a list of texts or {"references": …} a line; each file adds to the lists */
    size_t n_references;
} tg_texts_files;

/* TG_DATA with file and line for a bad line, or with both counts when files differ in length. */
tg_status tg_texts_read_files(tg_texts *t, const tg_texts_files *files,
                              tg_error *err) TG_MUST_CHECK;
/* One line of a file, for tests; json: it is a JSON value. */
tg_status tg_texts_add_line(tg_texts *t, const char *line, size_t len, bool json,
                            tg_error *err) TG_MUST_CHECK;
void tg_texts_fini(tg_texts *t);

#endif
