/* One pair of files as a table; see parallel.h. */
#ifndef TG_ENV_PARALLEL_TABLE_H
#define TG_ENV_PARALLEL_TABLE_H

#include "env-server/datapool/table/table.h"

/* unescape: the character references of tagged files are replaced. */
tg_status tg_parallel_table(tg_table *t, const char *const paths[2], const char *const languages[2],
                            bool unescape, tg_error *err) TG_MUST_CHECK;

#endif
