/* A JSON settings file of a model folder (config.json), and typed readings of its keys. */
#ifndef TG_NN_CONFIG_JSON_H
#define TG_NN_CONFIG_JSON_H

#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tg_config_json {
    char *path;
    json_t *root; /* an object */
} tg_config_json;

/* As json_loadb, of text that ends with a 0. Python writes integers of any length (10^30 stands for texts without a longest one): those
 * that jansson cannot hold become reals. */
json_t *tg_config_json_parse(const char *text, size_t len, size_t flags, json_error_t *where);
/* TG_NOINPUT: not there; TG_DATA: not a JSON object. */
tg_status tg_config_json_open(tg_config_json *c, const char *folder, const char *file,
                              tg_error *err) TG_MUST_CHECK;
/* How a folder without generation_config.json generates, with what its config.json leaves to the family: config classes have defaults
 * for these keys, and files from before the keys (or written as a difference to the class) lack them. The first BART folders say that
 * an answer begins with bos, but not with which token: forced_bos_token_id is set there. */
tg_status tg_config_json_renew(json_t *root, tg_error *err) TG_MUST_CHECK;
void tg_config_json_close(tg_config_json *c);

/* Absent or null: the default, which need not be within the bounds. Wrong type or out of bounds: TG_DATA naming file, key, expected and
 * found. `alias` (or NULL) is another name of the key. */
tg_status tg_config_json_int(const tg_config_json *c, const char *key, const char *alias,
                             int64_t min, int64_t max, int64_t def, int *out,
                             tg_error *err) TG_MUST_CHECK;
tg_status tg_config_json_float(const tg_config_json *c, const char *key, double min, double max,
                               double def, float *out, tg_error *err) TG_MUST_CHECK;
tg_status tg_config_json_bool(const tg_config_json *c, const char *key, bool def, bool *out,
                              tg_error *err) TG_MUST_CHECK;
/* Borrowed from c. */
tg_status tg_config_json_str(const tg_config_json *c, const char *key, const char *def,
                             const char **out, tg_error *err) TG_MUST_CHECK;
/* A token id: a number, null, or a list of which the first counts; -1 when none or not below
 * vocab_size. */
tg_status tg_config_json_token(const tg_config_json *c, const char *key, int64_t def,
                               int vocab_size, int32_t *out, tg_error *err) TG_MUST_CHECK;

#endif
