/* Splits by name. */
#ifndef TG_PROTO_SPLIT_H
#define TG_PROTO_SPLIT_H

#include "common/base/status.h"
#include "proto/types.h"

#include <stdbool.h>

const char *tg_split_name(tg_split split); /* "train", "val", "test" */
bool tg_split_parse(const char *name, tg_split *out);

enum { TG_SPLITS = 3 };
typedef struct tg_split_list {
    tg_split v[TG_SPLITS];
    int n;
} tg_split_list;
/* "val,test": one or more, each once. The error (TG_USAGE) says what was expected. */
tg_status tg_split_list_parse(const char *text, tg_split_list *out, tg_error *err) TG_MUST_CHECK;

#endif
