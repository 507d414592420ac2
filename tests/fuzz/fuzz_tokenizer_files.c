/* The older files of a tokenizer: vocab.txt, vocab.json + merges.txt, added_tokens.json, special_tokens_map.json and
 * tokenizer_config.json; vocab.json beside Marian's two models, which are always the same. The input is up to five texts with a zero byte between; the first letter says what they are. */
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/text/encode.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[3][5] = {
    {"vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
     "config.json"},
    {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
     "added_tokens.json"},
    {"vocab.json", "tokenizer_config.json", "special_tokens_map.json", "config.json",
     "added_tokens.json"}};

/* Pieces of a SentencePiece model: <unk> of its type, then "the", "cat" and "a" with scores. */
static const char pieces[] = "\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02"
                             "\x0A\x0A\x0A\x03the\x15\0\0\0\xC0"
                             "\x0A\x0A\x0A\x03"
                             "cat\x15\0\0\0\xC0"
                             "\x0A\x08\x0A\x01"
                             "a\x15\0\0\x40\xC0";
static const char *const models[] = {"source.spm", "target.spm"};

static void put_models(const char *folder, bool there) {
    char path[128];
    tg_error err = {0};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, models[i]);
        if (there)
            TG_ASSERT(tg_file_write_atomic(path, pieces, sizeof pieces - 1, &err) == TG_OK);
        else
            unlink(path);
    }
}

static void use(const tg_tokenizer *t) {
    static const char text[] = "The cat's 12 na\xC3\xAFve [MASK] <mask> ab </s> \xFF";
    tg_text texts[2] = {{text, sizeof text - 1, NULL, 0}, {text, 7, text + 4, 9}};
    tg_encode_options o = tg_encode_defaults(t);
    o.offsets = o.truncate = o.overflow = true;
    o.max_length = 9, o.stride = 1, o.pad = TG_PAD_LONGEST, o.pad_multiple = 4;
    tg_encodings e = {0};
    tg_error err = {0};
    tg_buf out = {0};
    size_t end[64];
    tg_status st = tg_tokenizer_encode_batch(t, texts, 2, &o, NULL, &e, &err);
    TG_ASSERT(st == TG_OK || err.msg[0]);
    if (st == TG_OK && e.n <= 64)
        TG_ASSERT(tg_tokenizer_decode_batch(t, e.ids, e.start, e.n, TG_DECODE_SKIP_SPECIAL, NULL,
                                            &out, end, &err) == TG_OK);
    tg_buf_fini(&out);
    tg_encodings_fini(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char folder[64];
    tg_error err = {0};
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/textgen-fuzz-files.XXXXXX");
        TG_ASSERT(mkdtemp(folder));
    }
    if (!size) return 0;
    const bool marian = data[0] == 'm';
    const char *const *files = names[marian ? 2 : data[0] == 'b'];
    const char *p = (const char *)data + 1;
    size_t left = size - 1;
    char path[128];
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        const char *zero = memchr(p, 0, left);
        size_t n = zero ? (size_t)(zero - p) : left;
        if (n) TG_ASSERT(tg_file_write_atomic(path, p, n, &err) == TG_OK);
        p += n + (zero != NULL), left -= n + (zero != NULL);
    }
    put_models(folder, marian);
    tg_tokenizer *t = NULL;
    tg_status st = tg_tokenizer_open(&t, folder, &err);
    TG_ASSERT((st == TG_OK) == (t != NULL));
    TG_ASSERT(st == TG_OK || (err.status == st && err.msg[0]));
    if (t) use(t), use(tg_tokenizer_target(t));
    tg_tokenizer_destroy(&t);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    put_models(folder, false);
    rmdir(folder); /* goes away when this was the last input; made again by the next */
    folder[0] = 0;
    return 0;
}
