/* An export: a source is described, and its networks are written as model folders. */
#ifndef TG_LEARNER_CLI_EXPORT_JOB_H
#define TG_LEARNER_CLI_EXPORT_JOB_H

#include "common/nn/model_files.h"
#include "common/nn/params.h"
#include "common/nn/weights.h"
#include "learner/cli/export_source.h"

typedef struct tg_export_job {
    tg_export_source source; /* owned: tg_export_source_fini */
    tg_save_opts opts;
    bool keep_dtype;
    size_t infinite;    /* numbers that f16 cannot hold */
    bool model_written; /* and its critic is next */
    /* of the network being written */
    tg_arch arch;
    tg_params params;
    tg_weights weights;
} tg_export_job;

/* source, base: as tg_export_source_find has them. Describes it on stdout; `out`, unless dry or NULL, becomes a model folder. opts and
 * keep_dtype are set before. */
tg_status tg_export_run(tg_export_job *j, const char *source, const char *base, const char *out,
                        bool dry, bool overwrite, tg_error *err) TG_MUST_CHECK;

#endif
