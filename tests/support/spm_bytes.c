#include "tests/support/spm_bytes.h"

#include <string.h>

void tg_spm_bytes_piece(tg_buf *out, const char *text, float score) {
    size_t len = strlen(text);
    tg_buf_printf(out, "\x0A%c\x0A%c%s\x15", (char)(len + 7), (char)len, text);
    tg_buf_append(out, &score, sizeof score);
}
