/* Marian's tokenizers: two SentencePiece models and a vocab.json. The same against transformers, on trained models: tests/oracle/check_marian.py. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/decode_stream.h"
#include "common/text/tokenizer.h"
#include "tests/support/spm_bytes.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>

#define M "\xE2\x96\x81"

/* A unigram model whose unknown piece is the first. */
static tg_buf small_spm(const char *const *pieces) {
    tg_buf b = {0};
    const float unknown = 0;
    tg_buf_append(&b, "\x0A\x0E\x0A\x05<unk>\x15", 10);
    tg_buf_append(&b, &unknown, sizeof unknown);
    tg_buf_append(&b, "\x18\x02", 2); /* its type */
    for (int i = 0; pieces[i]; i++) tg_spm_bytes_piece(&b, pieces[i], -2 - (float)i);
    return b;
}

static const char *const source[] = {M, M "cat", "s", "only", NULL};
static const char *const target[] = {M, M "Katze", "n", "s", NULL};
static const char vocab[] = "{\"</s>\":0,\"<unk>\":1,\">>de<<\":2,\"" M "\":3,\"" M
                            "cat\":4,\"s\":5,\"" M "Katze\":6,\"n\":7,\"<pad>\":8}";

static void put_file(const char *dir, const char *name, const char *data, size_t len) {
    char path[300];
    tg_error err = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(tg_file_write_atomic(path, data, len, &err));
}

/* A folder in the test's own; NULL: without the file. */
static const char *make(const char *name, const char *ids, const char *config, bool with_target) {
    static char dir[256];
    tg_error err = {0};
    snprintf(dir, sizeof dir, "%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_dir_create(dir, &err));
    tg_buf a = small_spm(source), b = small_spm(target);
    put_file(dir, "source.spm", a.data, a.len);
    if (with_target) put_file(dir, "target.spm", b.data, b.len);
    if (ids) put_file(dir, "vocab.json", ids, strlen(ids));
    if (config) put_file(dir, "tokenizer_config.json", config, strlen(config));
    put_file(dir, "config.json", "{\"model_type\":\"marian\"}", 23);
    tg_buf_fini(&a);
    tg_buf_fini(&b);
    return dir;
}

static void check_ids(const tg_tokenizer *t, const char *text, size_t n, const int32_t *want) {
    tg_ids ids = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_encode(t, text, strlen(text), TG_ENCODE_SPECIAL, &ids, &err));
    CHECK(ids.n == n && !memcmp(ids.data, want, n * sizeof *want));
    tg_ids_fini(&ids);
}

#define CHECK_IDS(t, text, ...)                                                                    \
    check_ids(t, text, sizeof((int32_t[]){__VA_ARGS__}) / 4, (int32_t[]){__VA_ARGS__})

static void check_text(const tg_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                       const char *want) {
    tg_buf text = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_decode(t, ids, n, flags, &text, &err));
    CHECK(text.data && !strcmp(text.data, want));
    tg_buf_fini(&text);
}

TEST(each_language_is_cut_by_its_own_model) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    REQUIRE_OK(tg_tokenizer_open(&t, make("both", vocab, NULL, true), &err));
    const tg_tokenizer *other = tg_tokenizer_target(t);
    CHECK(other != t && tg_tokenizer_target(other) == other);
    CHECK_IDS(t, "cats", 4, 5, 0);
    CHECK_IDS(other, "Katzen", 6, 7, 0);
    CHECK_IDS(t, "Katzen", 3, 1, 0);      /* neighbours that are unknown are one */
    CHECK_IDS(t, "cat n", 4, 3, 7, 0);    /* no piece of the source's, but the vocabulary has it */
    CHECK_IDS(t, "cat only", 4, 3, 1, 0); /* a piece that vocab.json lacks */
    CHECK_IDS(t, ">>de<<cat", 2, 4, 0);
    CHECK_IDS(t, ">>fr<< cat", 1, 4, 0);
    CHECK_IDS(t, "cat</s>cat", 4, 0, 4, 0);
    CHECK_IDS(t, "", 0);
    CHECK(tg_tokenizer_eos(t) == 0 && tg_tokenizer_unk(t) == 1 && tg_tokenizer_pad(t) == 8);
    CHECK(tg_tokenizer_bos(t) == -1 && tg_tokenizer_size(t) == 9);
    CHECK(tg_tokenizer_vocab_size(t) == 9 && tg_tokenizer_max_length(t) == 512);
    tg_tokenizer_destroy(&t);
}

/* A piece of the other language keeps its space behind a special token, as in transformers. */
TEST(texts_come_back_without_spaces_at_their_ends) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    REQUIRE_OK(tg_tokenizer_open(&t, make("decode", vocab, NULL, true), &err));
    const int32_t ids[] = {8, 6, 7, 3, 4, 3, 0};
    check_text(t, ids, 7, TG_DECODE_SKIP_SPECIAL, "Katzen  cat");
    check_text(t, ids, 7, 0, "<pad>  Katzen  cat </s>");
    check_text(t, (int32_t[]){8, 4, 5, 0}, 4, 0, "<pad> cats</s>");
    tg_decode_stream *d = NULL;
    tg_buf text = {0};
    REQUIRE_OK(tg_decode_stream_create(&d, t, TG_DECODE_SKIP_SPECIAL, &err));
    for (int i = 0; i < 7; i++) CHECK_OK(tg_decode_stream_put(d, ids[i], &text, &err));
    CHECK_OK(tg_decode_stream_end(d, &text, &err));
    CHECK(text.data && !strcmp(text.data, "Katzen  cat"));
    tg_decode_stream_destroy(&d);
    CHECK(tg_decode_stream_create(&d, t, 0, &err) == TG_UNSUPPORTED && !d);
    tg_buf_fini(&text);
    tg_tokenizer_destroy(&t);
}

TEST(what_is_saved_opens_alike) {
    tg_tokenizer *t = NULL, *again = NULL;
    tg_error err = {0};
    char saved[300];
    REQUIRE_OK(tg_tokenizer_open(&t, make("save", vocab, NULL, true), &err));
    snprintf(saved, sizeof saved, "%s/saved", tg_test_tmpdir());
    REQUIRE_OK(tg_tokenizer_save(t, saved, &err));
    REQUIRE_OK(tg_tokenizer_open(&again, saved, &err));
    CHECK(tg_tokenizer_digest(again) == tg_tokenizer_digest(t));
    CHECK_IDS(tg_tokenizer_target(again), "Katzen", 6, 7, 0);
    tg_tokenizer_destroy(&t);
    tg_tokenizer_destroy(&again);
}

static void refuse(const char *name, const char *ids, const char *config, bool with_target,
                   tg_status want, const char *named) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    CHECK(tg_tokenizer_open(&t, make(name, ids, config, with_target), &err) == want && !t);
    CHECK(strstr(err.msg, named) != NULL);
}

TEST(what_is_missing_or_wrong_is_named) {
    refuse("no-target", vocab, NULL, false, TG_NOINPUT, "target.spm");
    refuse("no-vocab", NULL, NULL, true, TG_NOINPUT, "vocab.json");
    refuse("no-unk", "{\"</s>\":0}", NULL, true, TG_DATA, "<unk>");
    refuse("no-end", "{\"<unk>\":0}", NULL, true, TG_DATA, "</s>");
    refuse("gap", "{\"</s>\":0,\"<unk>\":2}", NULL, true, TG_DATA, "<unk>");
    refuse("twice", "{\"</s>\":0,\"<unk>\":0}", NULL, true, TG_DATA, "<unk>");
    refuse("word", "{\"</s>\":0,\"<unk>\":\"1\"}", NULL, true, TG_DATA, "<unk>");
    refuse("list", "[1]", NULL, true, TG_DATA, "vocab.json");
    refuse("separate", vocab, "{\"separate_vocabs\":true}", true, TG_UNSUPPORTED,
           "separate_vocabs");
}

TEST(running_out_of_memory_is_an_error) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    const char *folder = make("starved", vocab, NULL, true);
    tg_status st = TG_NOMEM;
    for (int64_t n = 0; st == TG_NOMEM && n < 5000; n++) {
        tg_alloc_fail_after(n);
        st = tg_tokenizer_open(&t, folder, &err);
        CHECK(st == TG_OK || (st == TG_NOMEM && !t));
    }
    tg_alloc_fail_after(-1);
    CHECK(st == TG_OK);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
