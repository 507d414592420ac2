/* save-tokenizer FROM TO: opens a tokenizer and saves it, so that the oracle can see what Hugging Face makes of it. */
#include "common/text/tokenizer.h"

#include <stdio.h>

int main(int argc, char **argv) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    if (argc != 3) return 64;
    tg_status st = tg_tokenizer_open(&t, argv[1], &err);
    if (st == TG_OK) st = tg_tokenizer_save(t, argv[2], &err);
    tg_tokenizer_destroy(&t);
    if (st != TG_OK) fprintf(stderr, "save-tokenizer: %s\n", err.msg);
    return tg_status_exit_code(st);
}
