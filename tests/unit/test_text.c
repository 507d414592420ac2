/* UTF-8, character classes, the byte alphabet, normalisation, and training a tokenizer. */
#include "common/text/bpe_train.h"
#include "common/text/bytelevel.h"
#include "common/text/nfc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"
#include "common/base/alloc.h"
#include "tests/support/tg_test.h"

TEST(utf8_round_trip_of_every_code_point) {
    int bad = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xD800 && cp < 0xE000) continue;
        char s[4];
        uint32_t back = 0;
        unsigned n = tg_utf8_encode(cp, s), m;
        bad += tg_utf8_decode(s, n, &back) != n || back != cp || tg_utf8_at(s, &m) != cp || m != n;
        bad += tg_utf8_decode(s, n - 1, &back) != 0;
    }
    CHECK_EQ(bad, 0);
    CHECK_EQ(tg_utf8_count("aé日😀", 10), 4);
}

TEST(utf8_valid_prefix_stops_at_the_first_error) {
    CHECK_EQ(tg_utf8_valid_prefix("abcdefghij\xC3\xA9z", 13), 13);
    CHECK_EQ(tg_utf8_valid_prefix("abcdefgh\xC3", 9), 8);
    CHECK_EQ(tg_utf8_valid_prefix("\xED\xA0\x80", 3), 0);     /* a surrogate */
    CHECK_EQ(tg_utf8_valid_prefix("\xF4\x90\x80\x80", 4), 0); /* above U+10FFFF */
    CHECK_EQ(tg_utf8_valid_prefix("\xC0\x80", 2), 0);         /* not the shortest form */
}

TEST(classes_of_unicode_16) {
    CHECK_EQ(tg_unicode_class('a'), TG_CP_LETTER);
    CHECK_EQ(tg_unicode_class('_'), TG_CP_OTHER);
    CHECK_EQ(tg_unicode_class('7'), TG_CP_NUMBER);
    CHECK_EQ(tg_unicode_class('\v'), TG_CP_SPACE);
    CHECK_EQ(tg_unicode_class(0x85), TG_CP_SPACE);
    CHECK_EQ(tg_unicode_class(0x180E), TG_CP_OTHER);
    CHECK_EQ(tg_unicode_class(0x200B), TG_CP_OTHER);
    CHECK_EQ(tg_unicode_class(0x216B), TG_CP_NUMBER);
    CHECK_EQ(tg_unicode_class(0x0301), TG_CP_OTHER);
    CHECK_EQ(tg_unicode_class(0x1E5D0), TG_CP_LETTER); /* Unicode 16 */
    CHECK_EQ(tg_unicode_class(0x1E5F1), TG_CP_NUMBER);
    CHECK(tg_unicode_is_word('_') && tg_unicode_is_word(0x0301) && tg_unicode_is_word(0x200D) &&
          tg_unicode_is_word(0x24B6));
    CHECK(!tg_unicode_is_word('-') && !tg_unicode_is_word(0xB2) && !tg_unicode_is_word(' '));
}

TEST(byte_alphabet_is_a_bijection) {
    bool seen[0x144] = {false};
    for (int b = 0; b < 256; b++) {
        uint32_t cp = tg_bytelevel_char((unsigned char)b);
        REQUIRE(cp < 0x144 && !seen[cp]);
        seen[cp] = true;
        CHECK_EQ(tg_bytelevel_byte(cp), b);
    }
    CHECK_EQ(tg_bytelevel_char(' '), 0x120);
    CHECK_EQ(tg_bytelevel_char('\n'), 0x10A);
    CHECK_EQ(tg_bytelevel_byte(' '), -1);
    CHECK_EQ(tg_bytelevel_byte(0x144), -1);
}

static void check_cuts(const char *text, const char *cuts) {
    tg_buf got = {0};
    size_t len = strlen(text);
    for (size_t pos = 0; pos < len;) {
        size_t end = tg_bytelevel_next(text, len, pos);
        if (pos) tg_buf_putc(&got, '|');
        tg_buf_append(&got, text + pos, end - pos);
        pos = end;
    }
    CHECK_STR(got.data, cuts);
    tg_buf_fini(&got);
}

TEST(cuts_of_gpt2) {
    check_cuts("Hello world", "Hello| world");
    check_cuts("it's we'll 'tis x'S", "it|'s| we|'ll| '|tis| x|'|S");
    check_cuts("a  b   ", "a| | b|   ");
    check_cuts("a \n\n b\n", "a| \n\n| b|\n");
    check_cuts("x=1,234!!", "x|=|1|,|234|!!");
    check_cuts("日本 語é", "日本| 語é");
    check_cuts(" ", " ");
    check_cuts("\t\tx", "\t|\t|x");
}

static void check_nfc(const char *from, const char *to) {
    tg_point *points = NULL;
    size_t cap = 0;
    tg_aligned out = {0};
    CHECK(tg_nf_run(TG_NFC, &points, &cap, (tg_view){from, strlen(from), NULL}, &out));
    CHECK_STR(out.text.data, to);
    CHECK(!tg_nf_is_clean(TG_NFC, from, strlen(from)) || !strcmp(from, to));
    tg_free(points);
    tg_aligned_fini(&out);
}

TEST(normal_form_c) {
    check_nfc("e\xCC\x81", "é");
    check_nfc("q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87");       /* marks in canonical order */
    check_nfc("\xE1\xB8\x8B\xCC\xA3", "\xE1\xB8\x8D\xCC\x87"); /* d with dot above, dot below */
    check_nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C"); /* Hangul letters */
    check_nfc("\xE2\x84\xAB", "Å");                                    /* Angstrom sign */
    check_nfc("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"); /* excluded from composition */
    check_nfc("a\xCC\x93\xCC\x81", "a\xCC\x93\xCC\x81");   /* a mark of the same class is between */
    check_nfc("plain é 日本", "plain é 日本");
}

static tg_tokenizer *train(const char *const *texts, size_t n, int64_t vocab) {
    static const char *const special[] = {"<|endoftext|>"};
    tg_bpe_train_options o = {.vocab_size = vocab,
                              .min_frequency = 2,
                              .special = special,
                              .n_special = 1,
                              .max_length = 128};
    tg_bpe_trainer *b = NULL;
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK_OK(tg_bpe_trainer_create(&b, &err));
    for (size_t i = 0; i < n; i++)
        CHECK_OK(tg_bpe_trainer_add(b, texts[i], strlen(texts[i]), &err));
    CHECK_OK(tg_bpe_train(b, &o, &t, &err));
    tg_bpe_trainer_destroy(&b);
    return t;
}

TEST(training_merges_frequent_pairs_first) {
    /* "ab" occurs 5 times, "abc" 3: ab, then abc; "dd" overlaps itself. Nothing else occurs twice. */
    static const char *const texts[] = {"ab", "ab\nabc", "abc\nabc", "dddd", "dddd"};
    tg_tokenizer *t = train(texts, 5, 300);
    REQUIRE(t);
    CHECK_EQ(tg_tokenizer_eos(t), 0);
    CHECK_EQ(tg_tokenizer_max_length(t), 128);
    CHECK_EQ(tg_tokenizer_id(t, "!"), 1);
    CHECK_EQ(tg_tokenizer_id(t, "dd"), 257); /* 6 pairs in all */
    CHECK_EQ(tg_tokenizer_id(t, "ab"), 258);
    CHECK_EQ(tg_tokenizer_id(t, "abc"), 259);
    CHECK_EQ(tg_tokenizer_id(t, "dddd"), 260);
    CHECK_EQ(tg_tokenizer_size(t), 261);
    tg_tokenizer_destroy(&t);
}

TEST(training_takes_the_smaller_ids_of_equally_frequent_pairs) {
    static const char *const texts[] = {"cd", "ab", "cd", "ab", "cb", "cb"};
    tg_tokenizer *t = train(texts, 6, 259);
    REQUIRE(t);
    CHECK_EQ(tg_tokenizer_id(t, "ab"), 257);
    CHECK_EQ(tg_tokenizer_id(t, "cb"), 258);
    CHECK_EQ(tg_tokenizer_id(t, "cd"), -1);
    tg_tokenizer_destroy(&t);
}

TEST(training_does_not_depend_on_the_order_of_texts) {
    static const char *const texts[] = {"the cat and the dog", "a dog and a cat",
                                        "dogs and cats and the rest", "and so on, and so on"};
    const char *const other[] = {texts[0], "and so on, and so on", "dogs and cats and the rest",
                                 "a dog and a cat"};
    tg_tokenizer *a = train(texts, 4, 290), *b = train(other, 4, 290);
    REQUIRE(a && b);
    CHECK_EQ(tg_tokenizer_digest(a), tg_tokenizer_digest(b));
    tg_tokenizer_destroy(&a);
    tg_tokenizer_destroy(&b);
}

TEST(training_refuses_a_vocabulary_without_room_for_bytes) {
    static const char *const special[] = {"<|endoftext|>"};
    tg_bpe_train_options o = {.vocab_size = 256, .special = special, .n_special = 1};
    tg_bpe_trainer *b = NULL;
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK_OK(tg_bpe_trainer_create(&b, &err));
    CHECK_EQ(tg_bpe_train(b, &o, &t, &err), TG_CONFIG);
    CHECK(!t && strstr(err.msg, "257"));
    tg_bpe_trainer_destroy(&b);
}

TEST(training_survives_running_out_of_memory) {
    tg_bpe_train_options o = {.vocab_size = 300, .min_frequency = 2};
    tg_bpe_trainer *b = NULL;
    tg_error err = {0};
    CHECK_OK(tg_bpe_trainer_create(&b, &err));
    CHECK_OK(tg_bpe_trainer_add(b, "banana bandana banana", 21, &err));
    tg_status st = TG_NOMEM;
    for (int64_t k = 0; k < 100000 && st != TG_OK; k += 5) {
        tg_tokenizer *t = NULL;
        tg_alloc_fail_after(k);
        st = tg_bpe_train(b, &o, &t, &err);
        tg_alloc_fail_after(-1);
        CHECK((st == TG_OK) == (t != NULL) && (st == TG_OK || st == TG_NOMEM));
        tg_tokenizer_destroy(&t);
    }
    CHECK(st == TG_OK);
    tg_bpe_trainer_destroy(&b);
}

TEST_MAIN
