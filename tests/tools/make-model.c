/* make-model FOLDER CONFIG-JSON TOKENIZER-FOLDER [TOKENIZER-CONFIG-JSON [SCALE [SEED]]]: a model folder with random weights. */
#include "tests/support/make_model.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: make-model FOLDER CONFIG-JSON TOKENIZER-FOLDER "
                        "[TOKENIZER-CONFIG-JSON [SCALE [SEED]]]\n");
        return 64;
    }
    tg_error err = {0};
    const char *tokenizer_config = argc > 4 && *argv[4] ? argv[4] : NULL;
    float scale = argc > 5 ? strtof(argv[5], NULL) : 1;
    uint64_t seed = argc > 6 ? strtoull(argv[6], NULL, 10) : 1;
    if (tg_make_model(argv[1], argv[2], argv[3], tokenizer_config, scale, seed, &err) == TG_OK)
        return 0;
    fprintf(stderr, "make-model: %s\n", err.msg);
    return 65;
}
