/* Tokenizers in use: the order of merges, memory, threads. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/text/spm.h"
#include "common/text/tokenizer.h"
#include "tests/support/spm_bytes.h"
#include "tests/support/tg_test.h"

#include <pthread.h>

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

/* ---- merging ---- */

typedef struct naive {
    char left[32], right[32];
} naive;

/* The definition: again and again, the pair with the lowest rank, leftmost first. ASCII letters only. */
static size_t naive_bpe(const tg_tokenizer *t, const naive *merges, size_t n_merges,
                        const char *word, tg_ids *out) {
    char piece[256][32];
    size_t n = strlen(word);
    for (size_t i = 0; i < n; i++) piece[i][0] = word[i], piece[i][1] = 0;
    for (size_t rank = 0; rank < n_merges;) {
        size_t at = n;
        for (size_t i = 0; i + 1 < n && at == n; i++)
            if (!strcmp(piece[i], merges[rank].left) && !strcmp(piece[i + 1], merges[rank].right))
                at = i;
        if (at == n) {
            rank++;
            continue;
        }
        size_t end = strlen(piece[at]), more = strlen(piece[at + 1]);
        if (end + more >= sizeof piece[0]) return 0;
        memmove(piece[at] + end, piece[at + 1], more + 1);
        memmove(piece + at + 1, piece + at + 2, (n - at - 2) * sizeof piece[0]);
        n--;
        rank = 0;
    }
    for (size_t i = 0; i < n; i++) tg_ids_push(out, tg_tokenizer_id(t, piece[i]));
    return n;
}

TEST(merging_follows_the_definition_for_short_and_long_words) {
    tg_tokenizer *t = open_golden("gpt2-a");
    REQUIRE(t);
    tg_buf file = {0};
    tg_error err = {0};
    REQUIRE_OK(
        tg_file_read(tg_test_path("golden/tokenizer/gpt2-a/merges.txt"), 1 << 20, &file, &err));
    static naive merges[300];
    size_t n = 0;
    for (char *line = strtok(file.data, "\n"); line; line = strtok(NULL, "\n"))
        if (line[0] != '#' && sscanf(line, "%31s %31s", merges[n].left, merges[n].right) == 2) n++;
    tg_rng rng = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < 300; i++) {
        char word[201] = {0};
        size_t len = 1 + (size_t)tg_rng_below(&rng, 200);
        for (size_t k = 0; k < len; k++) word[k] = "theranodil"[tg_rng_below(&rng, 10)];
        tg_ids want = {0}, got = encode(t, word, len, 0);
        naive_bpe(t, merges, n, word, &want);
        if (!tg_check(same_ids(&got, &want), __FILE__, __LINE__, "word of %zu: %s", len, word))
            i = 300;
        tg_ids_fini(&want);
        tg_ids_fini(&got);
    }
    tg_buf_fini(&file);
    tg_tokenizer_destroy(&t);
}

/* ---- memory and threads ---- */

TEST(a_warm_call_allocates_nothing) {
    tg_tokenizer *t = open_golden("split");
    REQUIRE(t);
    static const char text[] =
        "The cat and the dog went home, it's naïve e\xCC\x81 \xFF\n 1234 <|endoftext|> x";
    tg_ids ids = {0};
    tg_spans spans = {0};
    tg_buf back = {0};
    tg_error err = {0};
    uint64_t calls = 0;
    for (int i = 0; i < 3; i++) {
        calls = tg_alloc_calls();
        ids.n = spans.n = 0;
        tg_buf_reset(&back);
        CHECK_OK(tg_tokenizer_encode_spans(t, text, strlen(text), TG_ENCODE_SPECIAL, &ids, &spans,
                                           &err));
        CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, 0, &back, &err));
    }
    CHECK_EQ(tg_alloc_calls() - calls, 0);
    tg_ids_fini(&ids);
    tg_spans_fini(&spans);
    tg_buf_fini(&back);
    tg_tokenizer_destroy(&t);
}

/* Opens and uses a tokenizer while allocation fails at each place in turn. */
static void starve(const char *name) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s", tg_test_path(name));
    tg_status st = TG_NOMEM;
    int64_t k = 0;
    for (; k < 100000 && st != TG_OK; k += 7) {
        tg_alloc_fail_after(k);
        st = tg_tokenizer_open(&t, path, &err);
        if (st != TG_OK &&
            !tg_check(st == TG_NOMEM && !t, __FILE__, __LINE__, "open %d: %s", (int)k, err.msg))
            break;
    }
    tg_alloc_fail_after(-1);
    REQUIRE(st == TG_OK && t);
    static const char text[] = "The cat, e\xCC\x81 \xFF <|endoftext|>";
    st = TG_NOMEM;
    for (k = 0; k < 1000 && st != TG_OK; k++) {
        tg_ids ids = {0};
        tg_spans spans = {0};
        tg_buf back = {0};
        tg_alloc_fail_after(k);
        st =
            tg_tokenizer_encode_spans(t, text, strlen(text), TG_ENCODE_SPECIAL, &ids, &spans, &err);
        if (st == TG_OK)
            st = tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_CLEAN_UP, &back, &err);
        else
            CHECK(ids.n == 0 && spans.n == 0);
        tg_ids_fini(&ids);
        tg_spans_fini(&spans);
        tg_buf_fini(&back);
        CHECK(st == TG_OK || st == TG_NOMEM);
    }
    tg_alloc_fail_after(-1);
    CHECK(st == TG_OK);
    tg_tokenizer_destroy(&t);
}

TEST(running_out_of_memory_is_an_error) {
    starve("golden/tokenizer/split");
    starve("golden/tokenizer/bert");
    starve("golden/tokenizer/t5");
    starve("golden/tokenizer/llama");
}

/* ---- vocab.txt, and no quadratic case ---- */

TEST(vocab_txt_is_berts_tokenizer) {
    char dir[256], path[300], saved[300];
    snprintf(dir, sizeof dir, "%s/vocab", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    snprintf(saved, sizeof saved, "%s/saved", dir);
    static const char text[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nwor\n##ld\n!\n";
    tg_error err = {0};
    REQUIRE_OK(tg_dir_create(dir, &err));
    REQUIRE_OK(tg_file_write_atomic(path, text, sizeof text - 1, &err));
    tg_tokenizer *t = NULL, *again = NULL;
    REQUIRE_OK(tg_tokenizer_open(&t, dir, &err));
    static const char input[] = "H\xC3\xA9llo WORLD!xyz [MASK]";
    static const int32_t want[] = {2, 5, 6, 7, 8, 1, 4, 3};
    tg_ids ids = {0};
    CHECK_OK(tg_tokenizer_encode(t, input, sizeof input - 1, TG_ENCODE_SPECIAL, &ids, &err));
    CHECK(ids.n == 8 && !memcmp(ids.data, want, sizeof want));
    CHECK(tg_tokenizer_pad(t) == 0 && tg_tokenizer_unk(t) == 1 && tg_tokenizer_eos(t) == -1);
    tg_buf back = {0};
    CHECK_OK(tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_SKIP_SPECIAL, &back, &err));
    CHECK(back.data && !strcmp(back.data, "hello world!"));
    CHECK_OK(tg_tokenizer_save(t, saved, &err));
    REQUIRE_OK(tg_tokenizer_open(&again, saved, &err));
    CHECK(tg_tokenizer_digest(again) == tg_tokenizer_digest(t));
    tg_buf_fini(&back);
    tg_ids_fini(&ids);
    tg_tokenizer_destroy(&t);
    tg_tokenizer_destroy(&again);
}

TEST(a_chat_template_is_kept) {
    char dir[256], vocab[300], saved[300], path[330];
    snprintf(dir, sizeof dir, "%s/chat", tg_test_tmpdir());
    snprintf(saved, sizeof saved, "%s/saved", dir);
    snprintf(vocab, sizeof vocab, "%s/vocab.txt", dir);
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n";
    static const char template[] = "{% for m in messages %}\n{{ m['content'] }}\n{% endfor %}";
    tg_error err = {0};
    REQUIRE_OK(tg_dir_create(dir, &err));
    REQUIRE_OK(tg_file_write_atomic(vocab, words, sizeof words - 1, &err));
    REQUIRE_OK(tg_file_write_atomic(path, template, sizeof template - 1, &err));
    tg_tokenizer *t = NULL;
    REQUIRE_OK(tg_tokenizer_open(&t, dir, &err));
    CHECK_OK(tg_tokenizer_save(t, saved, &err));
    snprintf(path, sizeof path, "%s/chat_template.jinja", saved);
    tg_buf back = {0};
    CHECK_OK(tg_file_read(path, sizeof template, &back, &err));
    CHECK(back.data && !strcmp(back.data, template));
    tg_buf_fini(&back);
    tg_tokenizer_destroy(&t);
}

/* The bytes of a SentencePiece model with T5's first pieces and unk_id 2. */
static tg_buf small_spm(void) {
    tg_buf b = {0};
    tg_spm_bytes_piece(&b, "<pad>", 0);
    tg_spm_bytes_piece(&b, "</s>", 0);
    tg_spm_bytes_piece(&b, "<unk>", 0);
    tg_spm_bytes_piece(&b, "\xE2\x96\x81", -2);
    tg_spm_bytes_piece(&b,
                       "\xE2\x96\x81"
                       "a",
                       -3);
    tg_spm_bytes_piece(&b, "b", -4);
    tg_buf_append(&b, "\x12\x03\xC0\x02\x02", 5);
    return b;
}

TEST(sentencepiece_model_is_read) {
    char dir[256], path[300];
    snprintf(dir, sizeof dir, "%s/spm", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/spiece.model", dir);
    tg_error err = {0};
    tg_buf b = small_spm();
    REQUIRE_OK(tg_dir_create(dir, &err));
    REQUIRE_OK(tg_file_write_atomic(path, b.data, b.len, &err));
    tg_tokenizer *t = NULL;
    REQUIRE_OK(tg_tokenizer_open(&t, dir, &err));
    static const char input[] = " ab  b<extra_id_99>zz";
    static const int32_t want[] = {4, 5, 3, 5, 6, 3, 2, 1};
    tg_ids ids = {0};
    CHECK_OK(tg_tokenizer_encode(t, input, sizeof input - 1, TG_ENCODE_SPECIAL, &ids, &err));
    CHECK(ids.n == 8 && !memcmp(ids.data, want, sizeof want));
    CHECK(tg_tokenizer_size(t) == 106 && tg_tokenizer_eos(t) == 1 && tg_tokenizer_pad(t) == 0);
    tg_ids_fini(&ids);
    tg_tokenizer_destroy(&t);
    tg_buf_fini(&b);
}

/* Every prefix, and every byte turned over: an error or a tokenizer, nothing else. */
TEST(broken_sentencepiece_models_are_refused) {
    tg_buf b = small_spm();
    tg_error err = {0};
    json_t *root = NULL;
    size_t whole = 0; /* prefixes that end between two pieces are models, too */
    for (size_t len = 0; len < b.len; len++) {
        tg_status st = tg_spm_parse("x.model", b.data, len, NULL, NULL, &root, &err);
        CHECK((st == TG_OK) == (root != NULL));
        whole += st == TG_OK;
        json_decref(root);
    }
    CHECK(whole <= 6);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] = (char)~b.data[i];
        tg_status st = tg_spm_parse("x.model", b.data, b.len, NULL, NULL, &root, &err);
        CHECK((st == TG_OK) == (root != NULL));
        json_decref(root);
        b.data[i] = (char)~b.data[i];
    }
    tg_buf_fini(&b);
}

/* A quadratic step would take hours here. */
TEST(a_megabyte_without_a_space_is_encoded) {
    static const char *const names[] = {"golden/tokenizer/bert", "golden/tokenizer/t5",
                                        "golden/tokenizer/llama"};
    tg_buf text = {0};
    for (int i = 0; i < 1 << 18; i++)
        tg_buf_puts(&text, i % 3 ? "the!"
                                 : "\xC3\xA9"
                                   "ab");
    for (size_t i = 0; i < 3; i++) {
        tg_tokenizer *t = NULL;
        tg_error err = {0};
        REQUIRE_OK(tg_tokenizer_open(&t, tg_test_path(names[i]), &err));
        tg_ids ids = {0};
        CHECK_OK(tg_tokenizer_encode(t, text.data, text.len, 0, &ids, &err));
        CHECK(ids.n > 1000);
        tg_ids_fini(&ids);
        tg_tokenizer_destroy(&t);
    }
    tg_buf_fini(&text);
}

typedef struct shared {
    const tg_tokenizer *t;
    const tg_ids *want;
    const char *text;
    bool same;
} shared;

static void *encode_often(void *arg) {
    shared *s = arg;
    s->same = true;
    for (int i = 0; i < 50; i++) {
        tg_ids ids = {0};
        tg_error err = {0};
        s->same &= tg_tokenizer_encode(s->t, s->text, strlen(s->text), TG_ENCODE_SPECIAL, &ids,
                                       &err) == TG_OK;
        s->same &= same_ids(&ids, s->want);
        tg_ids_fini(&ids);
    }
    return NULL;
}

TEST(threads_share_a_tokenizer) {
    tg_tokenizer *t = open_golden("split");
    REQUIRE(t);
    static const char text[] =
        "hello world, the cat's words 12345 naïve e\xCC\x81 <|endoftext|>   end";
    tg_ids want = encode(t, text, strlen(text), TG_ENCODE_SPECIAL);
    pthread_t thread[4];
    shared s[4];
    for (int i = 0; i < 4; i++) {
        s[i] = (shared){t, &want, text, false};
        REQUIRE(!pthread_create(&thread[i], NULL, encode_often, &s[i]));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(s[i].same);
    }
    tg_ids_fini(&want);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
