/* tokenize-bytes TOKENIZER: ids, one line for each line of hexadecimal digits on stdin; for texts that no JSON can hold. */
#include "common/base/alloc.h"
#include "common/text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c) {
    const char *at = strchr("0123456789abcdef", c);
    return c && at ? (int)(at - "0123456789abcdef") : -1;
}

int main(int argc, char **argv) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    if (argc != 2) return 64;
    if (tg_tokenizer_open(&t, argv[1], &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 70;
    }
    char *line = NULL;
    size_t cap = 0;
    tg_ids ids = {0};
    for (ssize_t n; (n = getline(&line, &cap, stdin)) >= 0;) {
        size_t len = 0;
        for (ssize_t i = 0; i + 1 < n && digit(line[i]) >= 0; i += 2)
            line[len++] = (char)(digit(line[i]) << 4 | digit(line[i + 1]));
        ids.n = 0;
        if (tg_tokenizer_encode(t, line, len, TG_ENCODE_SPECIAL, &ids, &err) != TG_OK) return 70;
        for (size_t i = 0; i < ids.n; i++) printf(i ? " %d" : "%d", (int)ids.data[i]);
        printf("\n");
    }
    free(line);
    tg_ids_fini(&ids);
    tg_tokenizer_destroy(&t);
    return 0;
}
