/* The rows of the registry: what is built, each in its own file, and the data pools of RL4LMs that
 * are known with all their keys but not built into this version (planned.c). */
#ifndef TG_ENV_DATAPOOL_ROWS_H
#define TG_ENV_DATAPOOL_ROWS_H

#include "env-server/datapool/datapool.h"

extern const tg_datapool_ops tg_datapool_dummy, tg_datapool_jsonl;

extern const tg_entry tg_datapool_planned[]; /* ends with a row without a name */

#endif
