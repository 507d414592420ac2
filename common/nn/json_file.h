/* A JSON object as a file of a folder, written as people write them: indented, keys in order, a line end behind it. */
#ifndef TG_NN_JSON_FILE_H
#define TG_NN_JSON_FILE_H

#include "common/base/status.h"

#include <jansson.h>

/* The file appears complete or not at all; every number in it reads back to the same one. object is borrowed; NULL, as jansson
 * has it when there is no memory, is TG_NOMEM. */
tg_status tg_json_file_write(const char *folder, const char *name, const json_t *object,
                             tg_error *err) TG_MUST_CHECK;

#endif
