/* Tokenizers: encode, decode, special tokens, saving. The goldens come from Hugging Face (tests/oracle/gen_tokenizer.py). */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/tokenizer.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdlib.h>

static tg_tokenizer *open_golden(const char *name) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s", name);
    CHECK_OK(tg_tokenizer_open(&t, tg_test_path(path), &err));
    return t;
}

static tg_ids encode(const tg_tokenizer *t, const char *text, size_t len, unsigned flags) {
    tg_ids ids = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_encode(t, text, len, flags, &ids, &err));
    return ids;
}

static bool same_ids(const tg_ids *a, const tg_ids *b) {
    return a->n == b->n && (!a->n || !memcmp(a->data, b->data, a->n * sizeof *a->data));
}

/* ---- goldens ---- */

static bool ids_are(const tg_ids *ids, const json_t *want) {
    bool same = ids->n == json_array_size(want);
    for (size_t i = 0; same && i < ids->n; i++)
        same = ids->data[i] == json_integer_value(json_array_get(want, i));
    return same;
}

static bool spans_are(const tg_spans *spans, const json_t *want) {
    bool same = spans->n == json_array_size(want);
    for (size_t i = 0; same && i < spans->n; i++) {
        const json_t *pair = json_array_get(want, i);
        same = spans->data[i].start == json_integer_value(json_array_get(pair, 0)) &&
               spans->data[i].end == json_integer_value(json_array_get(pair, 1));
    }
    return same;
}

static void check_decode(const tg_tokenizer *t, const json_t *c, unsigned flags, const char *key) {
    tg_ids ids = {0};
    tg_buf text = {0};
    tg_error err = {0};
    const json_t *list = json_object_get(c, "decode"), *want = json_object_get(c, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        tg_ids_push(&ids, (int32_t)json_integer_value(json_array_get(list, i)));
    CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, flags, &text, &err));
    CHECK(text.len == json_string_length(want) &&
          (!text.len || !memcmp(text.data, json_string_value(want), text.len)));
    tg_ids_fini(&ids);
    tg_buf_fini(&text);
}

static void check_case(const tg_tokenizer *t, const json_t *c) {
    const json_t *text = json_object_get(c, "text");
    const char *s = json_string_value(text);
    size_t len = json_string_length(text);
    tg_ids ids = {0};
    tg_spans spans = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_encode_spans(t, s, len, TG_ENCODE_SPECIAL, &ids, &spans, &err));
    tg_check(ids_are(&ids, json_object_get(c, "ids")), __FILE__, __LINE__, "ids of \"%s\"", s);
    tg_check(spans_are(&spans, json_object_get(c, "offsets")), __FILE__, __LINE__,
             "offsets of \"%s\"", s);
    tg_ids plain = encode(t, s, len, 0);
    tg_check(ids_are(&plain, json_object_get(c, "plain")), __FILE__, __LINE__,
             "plain ids of \"%s\"", s);
    check_decode(t, c, 0, "decoded");
    check_decode(t, c, TG_DECODE_SKIP_SPECIAL, "skipped");
    tg_ids_fini(&ids);
    tg_ids_fini(&plain);
    tg_spans_fini(&spans);
}

static void check_golden(const char *name) {
    tg_tokenizer *t = open_golden(name);
    REQUIRE(t);
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s/cases.jsonl", name);
    tg_buf file = {0};
    tg_error err = {0};
    REQUIRE_OK(tg_file_read(tg_test_path(path), 1 << 24, &file, &err));
    int n = 0;
    for (char *line = strtok(file.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        json_t *c = json_loads(line, JSON_ALLOW_NUL, NULL);
        REQUIRE(c);
        check_case(t, c);
        json_decref(c);
    }
    CHECK(n > 30);
    tg_buf_fini(&file);
    tg_tokenizer_destroy(&t);
}

TEST(golden_gpt2) {
    check_golden("gpt2-a");
}

TEST(golden_roberta_with_stripped_and_single_words) {
    check_golden("roberta");
}

TEST(golden_nfc_and_regex_split) {
    check_golden("split");
}

TEST(golden_wordpiece) {
    check_golden("bert");
}

TEST(golden_unigram_with_precompiled_map) {
    check_golden("t5");
}

TEST(golden_bpe_with_byte_fallback) {
    check_golden("llama");
}

/* ---- folders ---- */

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

TEST(special_tokens_without_a_config) {
    tg_tokenizer *t = open_golden("roberta");
    REQUIRE(t);
    CHECK_EQ(tg_tokenizer_bos(t), 0);
    CHECK_EQ(tg_tokenizer_pad(t), 1);
    CHECK_EQ(tg_tokenizer_eos(t), 2);
    CHECK_EQ(tg_tokenizer_unk(t), 3);
    CHECK_EQ(tg_tokenizer_max_length(t), INT64_MAX);
    CHECK_EQ(tg_tokenizer_size(t),
             tg_tokenizer_vocab_size(t) + 2); /* "word" and a tab were added */
    tg_tokenizer_destroy(&t);
}

static void copy(const char *from, const char *dir, const char *name) {
    tg_buf file = {0};
    tg_error err = {0};
    CHECK_OK(tg_file_read(tg_test_path(from), 1 << 24, &file, &err));
    char *to = tg_path_join(dir, name);
    CHECK_OK(tg_file_write_atomic(to, file.data, file.len, &err));
    tg_free(to);
    tg_buf_fini(&file);
}

TEST(older_pairs_of_files_give_the_same_ids) {
    static const char *const names[2][2] = {{"vocab.json", "merges.txt"},
                                            {"encoder.json", "vocab.bpe"}};
    static const char text[] = " The man and the other, it's where he went <|endoftext|>x";
    tg_tokenizer *whole = open_golden("gpt2-a");
    REQUIRE(whole);
    tg_ids want = encode(whole, text, strlen(text), TG_ENCODE_SPECIAL);
    for (int i = 0; i < 2; i++) {
        char dir[512];
        snprintf(dir, sizeof dir, "%s/pair%d", tg_test_tmpdir(), i);
        tg_error err = {0};
        REQUIRE_OK(tg_dir_create(dir, &err));
        copy("golden/tokenizer/gpt2-a/vocab.json", dir, names[i][0]);
        copy("golden/tokenizer/gpt2-a/merges.txt", dir, names[i][1]);
        tg_tokenizer *t = NULL;
        REQUIRE_OK(tg_tokenizer_open(&t, dir, &err));
        tg_ids got = encode(t, text, strlen(text), TG_ENCODE_SPECIAL);
        CHECK(same_ids(&got, &want));
        CHECK_EQ(tg_tokenizer_eos(t), 0);
        CHECK_EQ(tg_tokenizer_digest(t), tg_tokenizer_digest(whole));
        tg_ids_fini(&got);
        tg_tokenizer_destroy(&t);
    }
    tg_ids_fini(&want);
    tg_tokenizer_destroy(&whole);
}

static void write_file(const char *dir, const char *name, const char *text) {
    tg_error err = {0};
    char *path = tg_path_join(dir, name);
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
    tg_free(path);
}

TEST(files_beside_a_pair_add_tokens_and_settings) {
    char dir[512];
    snprintf(dir, sizeof dir, "%s/beside", tg_test_tmpdir());
    tg_error err = {0};
    REQUIRE_OK(tg_dir_create(dir, &err));
    copy("golden/tokenizer/gpt2-a/vocab.json", dir, "vocab.json");
    copy("golden/tokenizer/gpt2-a/merges.txt", dir, "merges.txt");
    write_file(dir, "added_tokens.json", "{\"<two>\": 301, \"<one>\": 300}");
    write_file(dir, "tokenizer_config.json",
               "{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_prefix_space\": true, "
               "\"model_max_length\": "
               "1000000000000000019884624838656, \"pad_token\": {\"content\": \"<pad>\", "
               "\"lstrip\": true}, "
               "\"bos_token\": null, \"additional_special_tokens\": [\"<two>\"]}");
    tg_tokenizer *t = NULL;
    REQUIRE_OK(tg_tokenizer_open(&t, dir, &err));
    CHECK_EQ(tg_tokenizer_id(t, "<one>"), 300);
    CHECK_EQ(tg_tokenizer_id(t, "<two>"), 301);
    CHECK_EQ(tg_tokenizer_pad(t), 302);
    CHECK_EQ(tg_tokenizer_bos(t), -1);
    CHECK_EQ(tg_tokenizer_eos(t), 0);
    CHECK_EQ(tg_tokenizer_max_length(t), INT64_MAX);
    CHECK(tg_tokenizer_is_special(t, 301) && tg_tokenizer_is_special(t, 302) &&
          !tg_tokenizer_is_special(t, 300));
    tg_ids ids = encode(t, "w<one>w <pad>", 13, 0);
    static const int32_t want[] = {
        266, 300, 266, 302}; /* a space before each stretch; <pad> takes the one it has */
    CHECK(ids.n == 4 && !memcmp(ids.data, want, sizeof want));
    tg_ids_fini(&ids);
    tg_tokenizer_destroy(&t);
    write_file(dir, "added_tokens.json", "{\"<one>\": 305}");
    CHECK_EQ(tg_tokenizer_open(&t, dir, &err), TG_DATA);
    CHECK(strstr(err.msg, "no token has id 300"));
}

TEST(what_is_saved_opens_to_the_same_tokenizer) {
    static const char *const names[] = {"gpt2-a", "roberta", "split"};
    for (int i = 0; i < 3; i++) {
        tg_tokenizer *t = open_golden(names[i]), *again = NULL;
        REQUIRE(t);
        char dir[512];
        snprintf(dir, sizeof dir, "%s/saved/%s", tg_test_tmpdir(), names[i]);
        tg_error err = {0};
        REQUIRE_OK(tg_tokenizer_save(t, dir, &err));
        REQUIRE_OK(tg_tokenizer_open(&again, dir, &err));
        CHECK_EQ(tg_tokenizer_digest(t), tg_tokenizer_digest(again));
        CHECK_EQ(tg_tokenizer_eos(t), tg_tokenizer_eos(again));
        CHECK_EQ(tg_tokenizer_pad(t), tg_tokenizer_pad(again));
        CHECK_EQ(tg_tokenizer_max_length(t), tg_tokenizer_max_length(again));
        tg_tokenizer_destroy(&t);
        tg_tokenizer_destroy(&again);
    }
}

TEST(a_folder_without_a_tokenizer_says_what_was_looked_for) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK_EQ(tg_tokenizer_open(&t, tg_test_tmpdir(), &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "tokenizer.json") && strstr(err.msg, "vocab.bpe"));
    CHECK_EQ(tg_tokenizer_open(&t, "/no/such/folder", &err), TG_NOINPUT);
    CHECK(!t);
}

/* ---- what is refused ---- */

#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
#define TINY_BPE                                                                                   \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static tg_status parse(const char *json, tg_error *err) {
    tg_tokenizer *t = NULL;
    *err = (tg_error){0};
    tg_status st = tg_tokenizer_parse(&t, json, strlen(json), NULL, err);
    CHECK((st == TG_OK) == (t != NULL));
    tg_tokenizer_destroy(&t);
    return st;
}

TEST(unknown_parts_are_refused_by_name) {
    static const struct {
        const char *json, *message;
        tg_status status;
    } cases[] = {
        {"{\"version\":\"1.0\"," BYTE_LEVEL "," TINY_BPE "}", "", TG_OK},
        {"[]", "expected a JSON object", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL, "not valid JSON", TG_DATA},
        {"{\"version\":\"2.0\"," BYTE_LEVEL "," TINY_BPE "}", "version", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"extra\":1," BYTE_LEVEL "," TINY_BPE "}", "\"extra\"",
         TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"normalizer\":{\"type\":\"ByteLevel\"}," BYTE_LEVEL "," TINY_BPE
         "}",
         "ByteLevel", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
         "\"AAAA\"}," BYTE_LEVEL "," TINY_BPE "}",
         "precompiled_charsmap", TG_DATA},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"SudachiPy\"}," TINY_BPE "}",
         "SudachiPy", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"Metaspace\"}," TINY_BPE "}",
         "replacement", TG_DATA},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"new\":1}," TINY_BPE "}",
         "\"new\"", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
         "\"type\":\"ByteLevel\"},"
         "{\"type\":\"Digits\"}]}," TINY_BPE "}",
         "after ByteLevel", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[^"
         "b]"
         "]\"},\"behavior\":"
         "\"Isolated\"}," TINY_BPE "}",
         "inside brackets", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},"
         "\"behavior\":"
         "\"Isolated\"}," TINY_BPE "}",
         "bad regular expression", TG_DATA},
        {"{\"version\":\"1.0\",\"post_processor\":{\"type\":\"Nothing\"}," BYTE_LEVEL "," TINY_BPE
         "}",
         "Nothing", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"x\",99],"
         "\"cls\":[\"y\",0]}," BYTE_LEVEL "," TINY_BPE "}",
         "id 99", TG_DATA},
        {"{\"version\":\"1.0\",\"decoder\":{\"type\":\"CTC\"}," BYTE_LEVEL "," TINY_BPE "}", "CTC",
         TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"model\":{\"type\":\"CharLevel\"}}", "CharLevel", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\",\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0]]}"
         "}",
         "unk_id", TG_DATA},
        {"{\"version\":\"1.0\",\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}",
         "model.vocab[0]", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL ",\"model\":{\"type\":\"Unigram\"}}", "Unigram",
         TG_UNSUPPORTED},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}",
         "dropout", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{},"
         "\"merges\":[]}}",
         "byte_fallback", TG_UNSUPPORTED},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
         "'aa' is not in the vocabulary", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}",
         "one space", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
         "both have id 0", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
         "outside", TG_DATA},
        {"{\"version\":\"1.0\"," BYTE_LEVEL
         ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":999999999},\"merges\":[]}}",
         "outside", TG_DATA},
        {"{\"version\":\"1.0\",\"added_tokens\":[{\"content\":3}]," BYTE_LEVEL "," TINY_BPE "}",
         "added_tokens[0]", TG_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_error err;
        tg_status st = parse(cases[i].json, &err);
        tg_check(st == cases[i].status && (st == TG_OK || strstr(err.msg, cases[i].message)),
                 __FILE__, __LINE__, "case %zu: %s: %s", i, tg_status_name(st), err.msg);
    }
}

/* ---- odd text ---- */

TEST(broken_utf8_is_read_as_replacement_characters) {
    static const struct {
        const char *raw, *read;
    } cases[] = {{"a\xFFz", "a\xEF\xBF\xBDz"},
                 {"\xE2\x82", "\xEF\xBF\xBD"},
                 {"\xE2\x28\xA1", "\xEF\xBF\xBD(\xEF\xBF\xBD"},
                 {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"\xF0\x9F\x98 x", "\xEF\xBF\xBD x"},
                 {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}};
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ids a = encode(t, cases[i].raw, strlen(cases[i].raw), 0),
               b = encode(t, cases[i].read, strlen(cases[i].read), 0);
        tg_check(same_ids(&a, &b), __FILE__, __LINE__, "case %zu", i);
        tg_ids_fini(&a);
        tg_ids_fini(&b);
    }
    tg_tokenizer_destroy(&t);
}

TEST(cut_characters_decode_to_replacement_characters) {
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    tg_ids ids = encode(t, "日本", 6, 0);
    tg_buf text = {0};
    tg_error err = {0};
    REQUIRE(ids.n == 6);
    CHECK_OK(tg_tokenizer_decode(t, ids.data, 5, 0, &text, &err));
    CHECK_STR(text.data, "日\xEF\xBF\xBD");
    int32_t nothing[] = {65, 100000, 66}, negative[] = {65, -1};
    tg_buf_reset(&text);
    CHECK_OK(tg_tokenizer_decode(t, nothing, 3, 0, &text, &err));
    CHECK_STR(text.data, "ab");
    CHECK_EQ(tg_tokenizer_decode(t, negative, 2, 0, &text, &err), TG_DATA);
    tg_ids_fini(&ids);
    tg_buf_fini(&text);
    tg_tokenizer_destroy(&t);
}

TEST(clean_up_joins_punctuation) {
    static const char from[] = "a . b ? c ! d , e ' f n't 'm 's 've 're .",
                      to[] = "a. b? c! d, e'fn't'm's've're.";
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    tg_ids ids = encode(t, from, strlen(from), 0);
    tg_buf text = {0};
    tg_error err = {0};
    tg_buf_puts(&text, "keep . ");
    CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_CLEAN_UP, &text, &err));
    CHECK(!strncmp(text.data, "keep . ", 7));
    CHECK_STR(text.data + 7, to);
    tg_ids_fini(&ids);
    tg_buf_fini(&text);
    tg_tokenizer_destroy(&t);
}

TEST(long_text_without_a_space) {
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    enum { LEN = 1 << 20 };
    char *text = malloc(LEN);
    REQUIRE(text);
    for (size_t i = 0; i < LEN; i++) text[i] = "thereandin"[(i * 7 + i / 13) % 10];
    tg_ids ids = encode(t, text, LEN, 0);
    tg_buf back = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, 0, &back, &err));
    CHECK(back.len == LEN && !memcmp(back.data, text, LEN));
    tg_ids_fini(&ids);
    tg_buf_fini(&back);
    free(text);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
