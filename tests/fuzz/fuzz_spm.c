/* A SentencePiece model: opens or gives a message, never crashes; what opens encodes, decodes and streams. The first byte
 * chooses the family. */
#include "common/base/check.h"
#include "common/text/decode_stream.h"
#include "common/text/spm.h"
#include "common/text/tokenizer_impl.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "The cat's 12 na\xC3\xAFve e\xCC\x81  \n<s> \xFF"
                           "a<mask> ab \xE2\x96\x81 ``x''";

static const char *const types[] = {NULL,    "t5",    "albert",      "xlnet",  "llama",
                                    "gemma", "mbart", "xlm-roberta", "pegasus"};

static void use(const tg_tokenizer *t) {
    tg_error err = {0};
    tg_ids ids = {0};
    tg_spans spans = {0};
    tg_buf whole = {0}, streamed = {0};
    tg_decode_stream *d = NULL;
    tg_status st =
        tg_tokenizer_encode_spans(t, text, sizeof text - 1, TG_ENCODE_SPECIAL, &ids, &spans, &err);
    TG_ASSERT(st == TG_OK || err.msg[0]);
    TG_ASSERT(ids.n == spans.n);
    for (size_t i = 0; i < ids.n; i++)
        TG_ASSERT(ids.data[i] >= 0 && ids.data[i] < tg_tokenizer_size(t));
    TG_ASSERT(tg_tokenizer_decode(t, ids.data, ids.n, 0, &whole, &err) == TG_OK);
    TG_ASSERT(tg_decode_stream_create(&d, t, 0, &err) == TG_OK);
    for (size_t i = 0; i < ids.n; i++)
        TG_ASSERT(tg_decode_stream_put(d, ids.data[i], &streamed, &err) == TG_OK);
    TG_ASSERT(tg_decode_stream_end(d, &streamed, &err) == TG_OK);
    TG_ASSERT(whole.len == streamed.len &&
              (!whole.len || !memcmp(whole.data, streamed.data, whole.len)));
    tg_decode_stream_destroy(&d);
    tg_ids_fini(&ids);
    tg_spans_fini(&spans);
    tg_buf_fini(&whole);
    tg_buf_fini(&streamed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_error err = {0};
    json_t *root = NULL;
    tg_tokenizer *t = NULL;
    if (!size) return 0;
    const char *type = types[data[0] % (sizeof types / sizeof types[0])];
    tg_status st =
        tg_spm_parse("fuzz.model", (const char *)data + 1, size - 1, NULL, type, &root, &err);
    TG_ASSERT((st == TG_OK) == (root != NULL));
    TG_ASSERT(st == TG_OK || (err.status == st && err.msg[0]));
    char *json = root ? json_dumps(root, JSON_COMPACT) : NULL;
    if (json) {
        st = tg_tokenizer_parse(&t, json, strlen(json), NULL, &err);
        TG_ASSERT(st == TG_OK || err.msg[0]);
    }
    if (t) use(t);
    tg_tokenizer_destroy(&t);
    free(json);
    json_decref(root);
    return 0;
}
