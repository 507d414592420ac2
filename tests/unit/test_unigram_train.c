/* Training a unigram tokenizer: it covers its text, likes whole words, and is a function of the counts. */
#include "common/base/alloc.h"
#include "common/text/unigram_train.h"
#include "tests/support/tg_test.h"

static const char *const lines[] = {
    "the cat and the dog went to the house", "the house of the cat is the house of the dog",
    "hello world hello there world of words", "naïve café ﬁne 日本語 日本語 123 1234",
    "walking talking walking talked walked talks walks"};
enum { LINES = 5 };

static tg_tokenizer *train(int64_t vocab, bool backwards, tg_status want) {
    tg_unigram_trainer *u = NULL;
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK_OK(tg_unigram_trainer_create(&u, &err));
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LINES; i++) {
            const char *line = lines[backwards ? LINES - 1 - i : i];
            CHECK_OK(tg_unigram_trainer_add(u, line, strlen(line), &err));
        }
    const tg_unigram_train_options o = {.vocab_size = vocab, .max_length = 64};
    CHECK_EQ(tg_unigram_train(u, &o, &t, &err), want);
    tg_unigram_trainer_destroy(&u);
    return t;
}

TEST(the_text_is_covered_and_comes_back) {
    tg_tokenizer *t = train(90, false, TG_OK);
    REQUIRE(t);
    CHECK(tg_tokenizer_size(t) <= 90 && tg_tokenizer_size(t) > 50);
    CHECK_EQ(tg_tokenizer_pad(t), 0);
    CHECK_EQ(tg_tokenizer_eos(t), 1);
    CHECK_EQ(tg_tokenizer_unk(t), 2);
    CHECK_EQ(tg_tokenizer_max_length(t), 64);
    CHECK(tg_tokenizer_id(t, "\xE2\x96\x81the") > 2); /* the most frequent word */
    tg_error err = {0};
    for (int i = 0; i < LINES; i++) {
        tg_ids ids = {0};
        tg_buf back = {0};
        CHECK_OK(tg_tokenizer_encode(t, lines[i], strlen(lines[i]), TG_ENCODE_SPECIAL, &ids, &err));
        for (size_t k = 0; k < ids.n; k++) CHECK(ids.data[k] != 2);
        CHECK_EQ(ids.data[ids.n - 1], 1);
        CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_SKIP_SPECIAL, &back, &err));
        if (i != 3) CHECK_STR(back.data, lines[i]); /* that one is changed by NFKC */
        tg_ids_fini(&ids);
        tg_buf_fini(&back);
    }
    tg_tokenizer_destroy(&t);
}

TEST(the_order_of_texts_does_not_matter) {
    tg_tokenizer *a = train(80, false, TG_OK), *b = train(80, true, TG_OK);
    REQUIRE(a && b);
    CHECK(tg_tokenizer_digest(a) == tg_tokenizer_digest(b));
    tg_tokenizer_destroy(&a);
    tg_tokenizer_destroy(&b);
}

TEST(a_larger_vocabulary_needs_fewer_tokens) {
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        tg_tokenizer *t = train(i ? 110 : 50, false, TG_OK);
        REQUIRE(t);
        tg_ids ids = {0};
        tg_error err = {0};
        CHECK_OK(tg_tokenizer_encode(t, lines[4], strlen(lines[4]), 0, &ids, &err));
        n[i] = ids.n;
        tg_ids_fini(&ids);
        tg_tokenizer_destroy(&t);
    }
    CHECK(n[1] < n[0]);
}

TEST(what_cannot_be_trained_is_said) {
    CHECK(!train(20, false, TG_CONFIG)); /* fewer than the characters */
    CHECK(!train(2, false, TG_CONFIG));
    tg_unigram_trainer *u = NULL;
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK_OK(tg_unigram_trainer_create(&u, &err));
    CHECK_OK(tg_unigram_trainer_add(u, " \n\t ", 4, &err));
    const tg_unigram_train_options o = {.vocab_size = 50};
    CHECK_EQ(tg_unigram_train(u, &o, &t, &err), TG_DATA);
    tg_unigram_trainer_destroy(&u);
}

TEST(training_without_memory_fails_cleanly) {
    for (int64_t after = 0; after < 400; after += 3) {
        tg_unigram_trainer *u = NULL;
        tg_tokenizer *t = NULL;
        tg_error err = {0};
        const tg_unigram_train_options o = {.vocab_size = 60};
        tg_alloc_fail_after(after);
        tg_status st = tg_unigram_trainer_create(&u, &err);
        for (int i = 0; i < LINES && st == TG_OK; i++)
            st = tg_unigram_trainer_add(u, lines[i], strlen(lines[i]), &err);
        if (st == TG_OK) st = tg_unigram_train(u, &o, &t, &err);
        tg_alloc_fail_after(-1);
        CHECK((st == TG_OK) == (t != NULL));
        tg_unigram_trainer_destroy(&u);
        tg_tokenizer_destroy(&t);
    }
}

TEST_MAIN
