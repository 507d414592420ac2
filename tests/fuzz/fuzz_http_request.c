/* Requests of any bytes to the operations port. What is accepted has a path that begins with '/'; a prefix of
 * an accepted request is either incomplete or accepted with the same path. */
#include "common/base/check.h"
#include "common/net/http_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = malloc(size ? size : 1); /* exactly as long, for the sanitizer */
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    tg_http_request whole, part;
    int status = tg_http_request_parse(bytes, size, &whole);
    TG_ASSERT(status == 0 || status == 200 || (status >= 400 && status <= 505));
    if (status == 0) TG_ASSERT(size < TG_HTTP_HEAD_MAX);
    if (status == 200) {
        TG_ASSERT(whole.path[0] == '/' && strlen(whole.path) <= TG_HTTP_PATH_MAX);
        for (size_t n = 0; n < size && n < 512; n++) {
            int early = tg_http_request_parse(bytes, n, &part);
            TG_ASSERT(early == 0 || (early == 200 && !strcmp(part.path, whole.path)));
        }
    }
    free(bytes);
    return 0;
}
