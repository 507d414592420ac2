/* jansson has one number of digits for all of a text. */
#include "common/nn/json_file.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Digits that give every number back: 15 where they do, as people write them, else more. */
static int digits_of(const json_t *v) {
    enum { FEW = 15, ALL = 17 };
    int most = FEW;
    if (json_is_real(v)) {
        char text[40];
        for (; most < ALL; most++) {
            snprintf(text, sizeof text, "%.*g", most, json_real_value(v));
            if (strtod(text, NULL) == json_real_value(v)) break;
        }
        return most;
    }
    const char *key;
    const json_t *item;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)v, key, item) {
        const int digits = digits_of(item); /* within TG_MAX it would run twice at each level */
        most = TG_MAX(most, digits);
    }
    json_array_foreach(v, i, item) {
        const int digits = digits_of(item);
        most = TG_MAX(most, digits);
    }
    return most;
}

tg_status tg_json_file_write(const char *folder, const char *name, const json_t *object,
                             tg_error *err) {
    const size_t how =
        JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION((size_t)digits_of(object));
    char *text = object ? json_dumps(object, how) : NULL;
    char *path = tg_path_join(folder, name);
    tg_buf line = {0};
    if (text) tg_buf_printf(&line, "%s\n", text);
    tg_status st;
    if (!text || !path || line.failed)
        st = tg_fail_nomem(err, 4096);
    else
        st = tg_file_write_atomic(path, line.data, line.len, err);
    tg_buf_fini(&line);
    tg_free(path);
    free(text);
    return st;
}
