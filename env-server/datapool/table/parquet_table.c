/* Parquet. */
#include "env-server/datapool/table/table.h"
tg_status tg_table_open_parquet(tg_table *t, const char *path, const char *const *columns,
                                tg_error *err) {
    (void)columns;
    (void)t;
    return tg_fail(err, TG_UNSUPPORTED, "%s: Parquet is known but not built into this version",
                   path);
}
