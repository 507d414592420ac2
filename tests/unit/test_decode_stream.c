/* Decoding one id at a time: the same text as all at once, never half a character. */
#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/text/decode_stream.h"
#include "common/text/utf8.h"
#include "tests/support/tg_test.h"

static void check_ids(const tg_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                      const char *name) {
    tg_error err = {0};
    tg_decode_stream *d = NULL, *spare = NULL;
    tg_buf whole = {0}, out = {0}, part = {0};
    REQUIRE_OK(tg_decode_stream_create(&d, t, flags, &err));
    REQUIRE_OK(tg_decode_stream_create(&spare, t, flags, &err));
    CHECK_OK(tg_tokenizer_decode(t, ids, n, flags, &whole, &err));
    for (int round = 0; round < 2; round++) {
        bool valid = true;
        tg_buf_reset(&out);
        for (size_t i = 0; i < n; i++) {
            CHECK_OK(tg_decode_stream_put(d, ids[i], &out, &err));
            valid &= tg_utf8_valid_prefix(out.data, out.len) == out.len;
            if (round == 0) continue;
            size_t known = out.len; /* what it would be, were this the last */
            CHECK_OK(tg_decode_stream_peek(d, spare, &out, &err));
            tg_buf_reset(&part);
            CHECK_OK(tg_tokenizer_decode(t, ids, i + 1, flags, &part, &err));
            tg_check(out.len == part.len && (!out.len || !memcmp(out.data, part.data, out.len)),
                     __FILE__, __LINE__, "%s, flags %u, %zu ids: '%s' != '%s'", name, flags, i + 1,
                     out.data ? out.data : "", part.data ? part.data : "");
            out.len = known;
        }
        CHECK_OK(tg_decode_stream_end(d, &out, &err));
        bool same = out.len == whole.len && (!out.len || !memcmp(out.data, whole.data, out.len));
        tg_check(same && valid, __FILE__, __LINE__, "%s, flags %u: '%s' != '%s'", name, flags,
                 out.data ? out.data : "", whole.data ? whole.data : "");
    }
    tg_decode_stream_destroy(&d);
    tg_decode_stream_destroy(&spare);
    tg_buf_fini(&part);
    tg_buf_fini(&whole);
    tg_buf_fini(&out);
}

static void check_tokenizer(const char *name) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s", name);
    REQUIRE_OK(tg_tokenizer_open(&t, tg_test_path(path), &err));
    tg_rng rng = tg_rng_at(5, TG_RNG_TEST, strlen(name), 0);
    static const char text[] =
        "Hello world , it 's na\xC3\xAFve do n't \xF0\x9F\x98\x80 \xE6\x97\xA5 . ' x";
    tg_ids ids = {0};
    CHECK_OK(tg_tokenizer_encode(t, text, strlen(text), TG_ENCODE_SPECIAL, &ids, &err));
    for (unsigned flags = 0; flags < 4; flags++) check_ids(t, ids.data, ids.n, flags, name);
    for (int i = 0; i < 400; i++) {
        int32_t random[40];
        size_t n = (size_t)tg_rng_below(&rng, 40);
        uint64_t below = i % 3 ? 300 : (uint64_t)tg_tokenizer_size(t) + 3;
        for (size_t k = 0; k < n; k++) random[k] = (int32_t)tg_rng_below(&rng, below);
        check_ids(t, random, n, (unsigned)i % 4, name);
    }
    tg_ids_fini(&ids);
    tg_tokenizer_destroy(&t);
}

TEST(byte_level_streams) {
    check_tokenizer("gpt2-a");
    check_tokenizer("split");
}
TEST(wordpiece_streams) {
    check_tokenizer("bert");
}
TEST(metaspace_streams) {
    check_tokenizer("t5");
}
TEST(byte_fallback_streams) {
    check_tokenizer("llama");
}

static tg_tokenizer *parse(const char *decoder) {
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    tg_buf json = {0};
    tg_buf_printf(
        &json,
        "{\"version\":\"1.0\",\"decoder\":%s,\"model\":{\"type\":\"WordLevel\",\"unk_token\":"
        "\"a\",\"vocab\":{\"a\":0,\" \":1,\"  \":2,\"b</w>\":3,\"<0xE2>\":4,\"<0x82>\":5,"
        "\"<0xAC>\":6,\"ab\":7,\"aab\":8,\"x \":9,\".\":10,\"'\":11}}}",
        decoder);
    CHECK_OK(tg_tokenizer_parse(&t, json.data, json.len, NULL, &err));
    tg_buf_fini(&json);
    return t;
}

TEST(steps_on_whole_texts_stream) {
    static const char *const decoders[] = {
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"aab\"},\"content\":\"long one\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":3}]}",
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":"
        "\"a\",\"start\":0,\"stop\":1}]}",
        "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}", "null"};
    tg_rng rng = tg_rng_at(6, TG_RNG_TEST, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        tg_tokenizer *t = parse(decoders[i]);
        REQUIRE(t);
        for (int k = 0; k < 500; k++) {
            int32_t ids[12];
            size_t n = (size_t)tg_rng_below(&rng, 12);
            for (size_t j = 0; j < n; j++) ids[j] = (int32_t)tg_rng_below(&rng, 13);
            check_ids(t, ids, n, (unsigned)k % 4, decoders[i]);
        }
        tg_tokenizer_destroy(&t);
    }
}

TEST(streams_report_what_is_wrong) {
    tg_tokenizer *t = parse("null");
    REQUIRE(t);
    tg_error err = {0};
    tg_decode_stream *d = NULL;
    tg_buf out = {0};
    REQUIRE_OK(tg_decode_stream_create(&d, t, 0, &err));
    CHECK_EQ(tg_decode_stream_put(d, -1, &out, &err), TG_DATA);
    tg_alloc_fail_after(0);
    CHECK_EQ(tg_decode_stream_put(d, 7, &out, &err), TG_NOMEM);
    tg_alloc_fail_after(-1);
    tg_decode_stream_destroy(&d);
    tg_decode_stream_destroy(&d);
    tg_buf_fini(&out);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
