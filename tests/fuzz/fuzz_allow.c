/* Allow-lists and key files of any bytes: either a whole list or an error that names the place. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/net/allow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1); /* exactly as long, for the sanitizer */
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    tg_allow_entry *list;
    size_t n;
    tg_error err = {0};
    tg_status st = tg_allow_parse(text, size, "allow", &list, &n, &err);
    TG_ASSERT(st == TG_OK || (st == TG_DATA && err.msg[0] && !list && n == 0));
    for (size_t i = 0; i < n; i++) {
        tg_user back;
        char user[TG_USER_MAX];
        tg_user_text(&list[i].user, user);
        TG_ASSERT(tg_user_parse(&back, user) && list[i].user.key_id);
        TG_ASSERT(i == 0 || list[i - 1].user.key_id < list[i].user.key_id);
    }
    tg_free(list);
    tg_key_pair pair;
    st = tg_key_parse(text, size, "key", pair.public_key, pair.secret_key, &err);
    TG_ASSERT(st == TG_OK || (st == TG_DATA && err.msg[0]));
    if (st == TG_OK) TG_ASSERT(strlen(pair.public_key) == TG_KEY_TEXT);
    free(text);
    return 0;
}
