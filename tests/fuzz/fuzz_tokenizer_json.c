/* A tokenizer.json: opens or gives a message, never crashes; what opens encodes, decodes and saves to an equal one. */
#include "common/base/check.h"
#include "common/text/tokenizer_impl.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "The cat's 12 naïve e\xCC\x81  \n<|endoftext|> \xFF"
                           "a<mask> ab";

static void use(const tg_tokenizer *t) {
    tg_error err = {0};
    tg_ids ids = {0};
    tg_spans spans = {0};
    tg_buf out = {0};
    /* A regular expression may give up on a text; that is an error, not a crash. */
    tg_status st =
        tg_tokenizer_encode_spans(t, text, sizeof text - 1, TG_ENCODE_SPECIAL, &ids, &spans, &err);
    TG_ASSERT(st == TG_OK || err.msg[0]);
    TG_ASSERT(ids.n == spans.n);
    for (size_t i = 0; i < ids.n; i++)
        TG_ASSERT(ids.data[i] >= 0 && ids.data[i] < tg_tokenizer_size(t));
    TG_ASSERT(tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_CLEAN_UP, &out, &err) == TG_OK);
    tg_buf_reset(&out);
    tg_tokenizer_write_json(t, &out);
    tg_tokenizer *again = NULL;
    TG_ASSERT(tg_tokenizer_parse(&again, out.data, out.len, NULL, &err) == TG_OK);
    TG_ASSERT(tg_tokenizer_digest(again) == tg_tokenizer_digest(t));
    tg_tokenizer_destroy(&again);
    tg_ids_fini(&ids);
    tg_spans_fini(&spans);
    tg_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    tg_status st = tg_tokenizer_parse(&t, (const char *)data, size, NULL, &err);
    TG_ASSERT((st == TG_OK) == (t != NULL));
    TG_ASSERT(st == TG_OK || (err.status == st && err.msg[0]));
    if (t) use(t);
    tg_tokenizer_destroy(&t);
    return 0;
}
