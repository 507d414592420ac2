/* Where a model_name of a config lives on this machine.
 *
 * Looked up in this order: a folder path; $TEXTGEN_MODELS/<name>; the Hugging Face cache
 * ($HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
 * ~/.cache/huggingface/hub: models--<org>--<name>/snapshots/<refs/main>); a built-in
 * "textgen/<name>" that ships with us
 * (<binary>/../configs/models, <binary>/../share/textgen/configs/models). Not found: TG_NOINPUT
 * listing every place and the fix. */
#ifndef TG_CONFIG_LOCATE_H
#define TG_CONFIG_LOCATE_H

#include "common/base/status.h"

/* Returns an owned path (tg_free). */
tg_status tg_model_locate(const char *model_name, char **path, tg_error *err) TG_MUST_CHECK;

/* The snapshot of a data set ("org/name") in the same caches; *path is owned, or NULL when there is
 * none. */
tg_status tg_hub_dataset(const char *name, char **path, tg_error *err) TG_MUST_CHECK;

#endif
