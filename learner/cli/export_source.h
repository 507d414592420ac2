/* Where an export comes from: a model folder, the model of a run, or a checkpoint of one. */
#ifndef TG_LEARNER_CLI_EXPORT_SOURCE_H
#define TG_LEARNER_CLI_EXPORT_SOURCE_H

#include "common/nn/weights.h"

typedef struct tg_export_source {
    char *settings;   /* folder with config.json and the tokenizer */
    char *folder;     /* folder with the weights */
    const char *file; /* the one file that has them, or NULL: as in a model folder */
    char *critic;     /* the same of a critic of its own, or NULL: there is none */
    const char *critic_file;
} tg_export_source;

/* name: a model folder or name, a run folder (its model/, else its newest checkpoint), or a checkpoint folder. base: where a
 * checkpoint's settings and tokenizer are, NULL: the run's model folder, else the model that the run began with. */
tg_status tg_export_source_find(tg_export_source *s, const char *name, const char *base,
                                tg_error *err) TG_MUST_CHECK;
void tg_export_source_fini(tg_export_source *s);

#endif
