/* Parquet on any bytes: the file opens or says why not with its name; rows read or say why not, the
 * same twice. */
#include "common/base/check.h"
#include "env-server/datapool/table/table.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[32];
    tg_table t;
    tg_error err = {0};
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    tg_status st = tg_table_open_parquet(&t, path, NULL, &err);
    TG_ASSERT(st == TG_OK || (err.status == st && strstr(err.msg, path)));
    for (uint64_t i = 0; st == TG_OK && i < t.count && i < 64; i++) {
        json_t *a, *b;
        tg_status first = tg_table_row(&t, i, &a, &err), second = tg_table_row(&t, i, &b, &err);
        TG_ASSERT(first == second && (first == TG_OK || strstr(err.msg, path)));
        TG_ASSERT(first != TG_OK || json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    tg_table_close(&t);
    close(fd);
    return 0;
}
