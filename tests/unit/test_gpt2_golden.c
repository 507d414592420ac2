/* GPT-2 against transformers: the recorded batches of tests/oracle/gen_gpt2.py, on every backend of this build. */
#include "tests/support/model_golden.h"
#include "tests/support/tg_test.h"

TEST(plain_gpt2_as_in_transformers) {
    tg_golden_check("golden/gpt2/plain", 1e-5, 1e-4);
}

TEST(untied_and_layer_scaled_gpt2_as_in_transformers) {
    tg_golden_check("golden/gpt2/odd", 1e-5, 1e-4);
}

TEST_MAIN
