/* Any bytes as text, for every kind of tokenizer: encoding works, ids and offsets are in range, and decoding gives the
 * text back where the tokenizer keeps it. */
#include "common/base/check.h"
#include "common/text/decode_stream.h"
#include "common/text/encode.h"
#include "common/text/utf8.h"
#include "tests/support/tg_test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opened once and never closed: the fuzzer has no last call. */
static const tg_tokenizer *tokenizer(int i) {
    static tg_tokenizer *t[6];
    static const char *const names[] = {"golden/tokenizer/gpt2-a", "golden/tokenizer/roberta",
                                        "golden/tokenizer/split",  "golden/tokenizer/bert",
                                        "golden/tokenizer/t5",     "golden/tokenizer/llama"};
    tg_error err = {0};
    if (!t[i]) TG_ASSERT(tg_tokenizer_open(&t[i], tg_test_path(names[i]), &err) == TG_OK);
    return t[i];
}

/* One id at a time gives the same text as all at once. */
static void check_stream(const tg_tokenizer *t, const tg_ids *ids) {
    tg_error err = {0};
    tg_decode_stream *d = NULL;
    tg_buf whole = {0}, parts = {0};
    TG_ASSERT(tg_tokenizer_decode(t, ids->data, ids->n, TG_DECODE_CLEAN_UP, &whole, &err) == TG_OK);
    TG_ASSERT(tg_decode_stream_create(&d, t, TG_DECODE_CLEAN_UP, &err) == TG_OK);
    for (size_t i = 0; i < ids->n; i++) {
        TG_ASSERT(tg_decode_stream_put(d, ids->data[i], &parts, &err) == TG_OK);
        TG_ASSERT(tg_utf8_valid_prefix(parts.data, parts.len) == parts.len);
    }
    TG_ASSERT(tg_decode_stream_end(d, &parts, &err) == TG_OK);
    TG_ASSERT(whole.len == parts.len && (!whole.len || !memcmp(whole.data, parts.data, whole.len)));
    tg_decode_stream_destroy(&d);
    tg_buf_fini(&whole);
    tg_buf_fini(&parts);
}

/* The text as a pair of its halves, cut and padded: rows have the length that was asked for. */
static void check_rows(const tg_tokenizer *t, const char *text, size_t len) {
    tg_text pair = {text, len / 2, text + len / 2, len - len / 2};
    tg_encode_options o = tg_encode_defaults(t);
    o.offsets = o.truncate = o.overflow = true;
    o.max_length = 12, o.stride = 2, o.pad = TG_PAD_LENGTH, o.pad_length = 12;
    tg_encodings e = {0};
    tg_error err = {0};
    TG_ASSERT(tg_tokenizer_encode_batch(t, &pair, len < 2000, &o, NULL, &e, &err) == TG_OK);
    for (size_t row = 0; row < e.n; row++) TG_ASSERT(e.start[row + 1] - e.start[row] == 12);
    tg_encodings_fini(&e);
}

static void check(int i, const char *text, size_t len, const tg_buf *clean) {
    const tg_tokenizer *t = tokenizer(i);
    tg_ids ids = {0}, plain = {0};
    tg_spans spans = {0};
    tg_buf back = {0};
    tg_error err = {0};
    size_t points = tg_utf8_count(clean->data, clean->len);
    TG_ASSERT(tg_tokenizer_encode_spans(t, text, len, TG_ENCODE_SPECIAL, &ids, &spans, &err) ==
              TG_OK);
    TG_ASSERT(spans.n == ids.n);
    for (size_t k = 0; k < ids.n; k++) {
        TG_ASSERT(ids.data[k] >= 0 && ids.data[k] < tg_tokenizer_size(t));
        TG_ASSERT(spans.data[k].start <= spans.data[k].end && spans.data[k].end <= points);
    }
    TG_ASSERT(tg_tokenizer_encode(t, text, len, 0, &plain, &err) == TG_OK);
    TG_ASSERT(plain.n <= ids.n);
    TG_ASSERT(tg_tokenizer_decode(t, plain.data, plain.n, 0, &back, &err) == TG_OK);
    check_stream(t, &ids);
    check_rows(t, text, len);
    /* The first tokenizer neither normalises nor strips. */
    if (i == 0)
        TG_ASSERT(back.len == clean->len &&
                  (!back.len || !memcmp(back.data, clean->data, back.len)));
    tg_ids_fini(&ids);
    tg_ids_fini(&plain);
    tg_spans_fini(&spans);
    tg_buf_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_buf clean = {0};
    tg_utf8_append_lossy(&clean, (const char *)data, size);
    for (int i = 0; i < 6; i++) check(i, (const char *)data, size, &clean);
    tg_buf_fini(&clean);
    return 0;
}
