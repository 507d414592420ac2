/* Decoding by a table from id to bytes, made once. Read-only afterwards. */
#include "common/text/text_decoder.h"

#include "common/base/alloc.h"
#include "common/text/bytelevel.h"

#include <string.h>

tg_status tg_text_decoder_read(tg_text_decoder *d, const json_t *part, tg_error *err) {
    *d = (tg_text_decoder){0};
    bool none = !part || json_is_null(part);
    d->json = none ? tg_strdup("null") : tg_part_dump(part);
    if (!d->json) return tg_fail_nomem(err, 0);
    if (none) return TG_OK;
    const char *type = tg_part_type(part);
    if (!type) return tg_fail(err, TG_DATA, "decoder.type: missing");
    if (strcmp(type, "ByteLevel"))
        return tg_fail(err, TG_UNSUPPORTED,
                       "decoder: type \"%.40s\" is not built into this version (ByteLevel is)",
                       type);
    d->byte_level = true;
    /* The options are those of the ByteLevel part in general; none of them changes decoding. */
    return tg_part_check(part, "decoder", "type add_prefix_space trim_offsets use_regex", err);
}

tg_status tg_text_decoder_build(tg_text_decoder *d, int32_t n,
                                const char *(*text)(const void *arg, int32_t id), const void *arg,
                                tg_error *err) {
    d->offsets = tg_alloc_array((size_t)n + 1, sizeof *d->offsets);
    if (!d->offsets) return tg_fail_nomem(err, (size_t)n * sizeof *d->offsets);
    d->n_tokens = n;
    for (int32_t id = 0; id < n; id++) {
        d->offsets[id] = (uint32_t)d->bytes.len;
        const char *token = text(arg, id);
        size_t len = token ? strlen(token) : 0;
        /* A token outside the byte alphabet (an added one, most often) stands for its own text. */
        if (!d->byte_level || !tg_bytelevel_bytes(&d->bytes, token ? token : "", len))
            tg_buf_append(&d->bytes, token, len);
        if (d->bytes.failed || d->bytes.len > UINT32_MAX) return tg_fail_nomem(err, d->bytes.len);
    }
    d->offsets[n] = (uint32_t)d->bytes.len;
    return TG_OK;
}

void tg_text_decoder_fini(tg_text_decoder *d) {
    tg_free(d->json);
    tg_free(d->offsets);
    tg_buf_fini(&d->bytes);
    *d = (tg_text_decoder){0};
}

void tg_text_decoder_put(const tg_text_decoder *d, int32_t id, bool first, tg_buf *out) {
    if (!d->byte_level && !first) tg_buf_putc(out, ' ');
    uint32_t start = d->offsets[id];
    tg_buf_append(out, d->bytes.data + start, d->offsets[id + 1] - start);
}

static void replace(tg_buf *b, size_t start, const char *from, const char *to) {
    size_t n_from = strlen(from), n_to = strlen(to), w = start;
    char *hit;
    for (size_t r = start; r < b->len;) {
        hit = memmem(b->data + r, b->len - r, from, n_from);
        size_t keep = hit ? (size_t)(hit - (b->data + r)) : b->len - r;
        memmove(b->data + w, b->data + r, keep);
        w += keep, r += keep;
        if (!hit) break;
        memcpy(b->data + w, to, n_to); /* to is never longer than from */
        w += n_to, r += n_from;
    }
    if (b->data && start < b->len) b->len = w, b->data[w] = 0;
}

void tg_text_decoder_clean_up(tg_buf *out, size_t start) {
    static const char *const rules[][2] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        replace(out, start, rules[i][0], rules[i][1]);
}
