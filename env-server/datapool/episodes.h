/* CRD3's episodes: a list of names for each split, and a JSON file for each name. */
#ifndef TG_ENV_EPISODES_H
#define TG_ENV_EPISODES_H

#include "env-server/datapool/datapool.h"
#include "env-server/datapool/table/table.h"

/* A row is an episode's object; where there is no cleaned data, it is put together from aligned data. *out stays closed when the folder has no list of the split. A listed
 * file that is not there is a bad row. */
tg_status tg_episodes_open(const char *root, tg_split split, tg_table *out,
                           tg_error *err) TG_MUST_CHECK;

#endif
