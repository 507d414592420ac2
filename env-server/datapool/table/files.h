/* Lists of files, sorted by name, so that their order does not depend on the file system. */
#ifndef TG_ENV_FILES_H
#define TG_ENV_FILES_H

#include "common/base/status.h"

#include <stddef.h>

typedef struct tg_files {
    char **paths; /* owned, each with the folder's name before it */
    size_t n;
    size_t cap; /* private */
} tg_files;

/* Appends the entries of a folder whose names end in suffix (NULL: all), hidden ones left out. A
 * folder that is not there adds nothing. */
tg_status tg_files_list(tg_files *f, const char *dir, const char *suffix,
                        tg_error *err) TG_MUST_CHECK;
tg_status tg_files_push(tg_files *f, char *path, tg_error *err) TG_MUST_CHECK; /* takes path */
/* Sorts all by name; digits that stand together count as a number, so 2_1.txt is before 10_1.txt. */
void tg_files_sort_by_number(tg_files *f);
/* Gives the paths away. */
char **tg_files_take(tg_files *f, size_t *n);
void tg_files_fini(tg_files *f);

const char *tg_file_name(const char *path); /* behind the last slash */

#endif
