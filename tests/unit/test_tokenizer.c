/* Tokenizers: encode, decode, special tokens, saving; goldens come from Hugging Face (tests/oracle/gen_tokenizer.py). */
#include "common/text/tokenizer.h"
#include "tests/support/tg_test.h"

static tg_tokenizer *open_golden(const char *name) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s", name);
    CHECK_OK(tg_tokenizer_open(&t, tg_test_path(path), &err));
    return t;
}

TEST(special_tokens_of_a_folder) {
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    CHECK_EQ(tg_tokenizer_vocab_size(t), 300);
    CHECK_EQ(tg_tokenizer_size(t), 300);
    CHECK_EQ(tg_tokenizer_bos(t), 0);
    CHECK_EQ(tg_tokenizer_eos(t), 0);
    CHECK_EQ(tg_tokenizer_unk(t), 0);
    CHECK_EQ(tg_tokenizer_pad(t), -1);
    CHECK_EQ(tg_tokenizer_max_length(t), 64);
    CHECK(tg_tokenizer_is_special(t, 0));
    CHECK(!tg_tokenizer_is_special(t, 1));
    CHECK_STR(tg_tokenizer_token(t, 221), "Ġ");
    CHECK_EQ(tg_tokenizer_id(t, "Ġw"), 266);
    CHECK_EQ(tg_tokenizer_id(t, "no such token"), -1);
    CHECK(!tg_tokenizer_token(t, 300) && !tg_tokenizer_token(t, -1));
    tg_tokenizer_set_pad_as_eos(t);
    CHECK_EQ(tg_tokenizer_pad(t), 0);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
