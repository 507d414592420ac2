/* Separated text on any bytes: the two ways of walking over records agree, the table opens or says why
 * not with the file's name, and rows read the same twice. The first byte chooses the separator. */
#include "common/base/check.h"
#include "env-server/datapool/pyliteral.h"
#include "env-server/datapool/table/csv.h"
#include "env-server/datapool/table/table.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const char *text, size_t len, char separator) {
    tg_csv_record r = {0};
    tg_error err = {0};
    for (size_t at = 0; at < len;) {
        size_t used = 0;
        bool blank;
        size_t skipped = tg_csv_skip(text + at, len - at, separator, &blank);
        tg_status st = tg_csv_read(text + at, len - at, separator, &r, &used, &err);
        TG_ASSERT(st == TG_OK || st == TG_DATA);
        TG_ASSERT(used == skipped && used > 0 && used <= len - at);
        TG_ASSERT(st != TG_OK || blank == (r.n == 0));
        at += used;
    }
    tg_csv_record_fini(&r);
}

static void read_table(const char *path, char separator) {
    tg_table t;
    tg_error err = {0};
    const tg_csv_format format = {.separator = separator};
    tg_status st = tg_table_open_csv(&t, path, &format, &err);
    TG_ASSERT(st == TG_OK || (err.status == st && strstr(err.msg, path)));
    for (uint64_t i = 0; st == TG_OK && i < t.count && i < 1000; i++) {
        json_t *a, *b;
        tg_status first = tg_table_row(&t, i, &a, &err), second = tg_table_row(&t, i, &b, &err);
        TG_ASSERT(first == second && (first == TG_OK || strstr(err.msg, path)));
        TG_ASSERT(first != TG_OK || json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    tg_table_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    char separator = data[0] % 2 ? '\t' : ',', path[32];
    walk((const char *)data + 1, size - 1, separator);
    json_t *value;
    tg_error err = {0};
    if (tg_py_literal((const char *)data + 1, size - 1, &value, &err) == TG_OK) json_decref(value);
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data + 1, size - 1) == (ssize_t)(size - 1)) read_table(path, separator);
    close(fd);
    return 0;
}
