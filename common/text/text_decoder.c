/* Decoding by tables from id to bytes, made once: what a token becomes depends only on whether it is
 * the first. Steps behind a Fuse work on the finished text. Read-only after building. */
#include "common/text/text_decoder.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/text/bytelevel.h"
#include "common/text/utf8.h"

#include <string.h>

/* Replaces in b from start on. */
static void replace(tg_buf *b, size_t start, const char *from, const char *to) {
    TG_ASSERT(from && to);
    size_t n_from = strlen(from), n_to = strlen(to), w = start;
    if (!b->data || start >= b->len || !n_from ||
        !memmem(b->data + start, b->len - start, from, n_from))
        return;
    if (n_to > n_from) { /* grows: through a copy */
        tg_buf copy = {0};
        tg_buf_append(&copy, b->data + start, b->len - start);
        if (copy.failed) b->failed = true;
        b->len = start;
        for (size_t r = 0; r < copy.len;) {
            char *hit = memmem(copy.data + r, copy.len - r, from, n_from);
            size_t keep = hit ? (size_t)(hit - (copy.data + r)) : copy.len - r;
            tg_buf_append(b, copy.data + r, keep);
            if (hit) tg_buf_append(b, to, n_to);
            r += keep + (hit ? n_from : 0);
        }
        tg_buf_fini(&copy);
        return;
    }
    for (size_t r = start; r < b->len;) {
        char *hit = memmem(b->data + r, b->len - r, from, n_from);
        size_t keep = hit ? (size_t)(hit - (b->data + r)) : b->len - r;
        memmove(b->data + w, b->data + r, keep);
        w += keep, r += keep;
        if (!hit) break;
        memcpy(b->data + w, to, n_to);
        w += n_to, r += n_from;
    }
    b->len = w, b->data[w] = 0;
}

static void strip(tg_buf *b, size_t start, const tg_decoder_step *step) {
    TG_ASSERT(step->from);
    size_t n = strlen(step->from), left = start, right = b->len;
    for (uint32_t i = 0; i < step->start && right - left >= n; i++, left += n)
        if (memcmp(b->data + left, step->from, n)) break;
    for (uint32_t i = 0; i < step->stop && right - left >= n; i++, right -= n)
        if (memcmp(b->data + right - n, step->from, n)) break;
    if (left == start && right == b->len) return;
    memmove(b->data + start, b->data + left, right - left);
    b->len = start + right - left;
    b->data[b->len] = 0;
}

const char *const tg_clean_up_rules[TG_CLEAN_UP_RULES][2] = {
    {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

void tg_text_decoder_clean_up(tg_buf *out, size_t start) {
    for (size_t i = 0; i < TG_CLEAN_UP_RULES; i++)
        replace(out, start, tg_clean_up_rules[i][0], tg_clean_up_rules[i][1]);
}

/* The WordPiece decoder's own rules, on one token. */
static void clean_token(tg_buf *out, size_t start) {
    static const char *const rules[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        replace(out, start, rules[i][0], rules[i][1]);
}

/* Where a token stands in its text. */
typedef enum place { FIRST, INSIDE, LAST } place;

/* A token's text, from start of b to its end, through one step. */
static void apply(const tg_decoder_step *step, place at, tg_buf *b, size_t start) {
    bool first = at == FIRST;
    size_t n = step->from ? strlen(step->from) : 0;
    switch (step->kind) {
    case TG_DECODER_BYTE_LEVEL: {
        tg_buf bytes = {0};
        /* A token outside the byte alphabet (an added one, most often) stands for its own text. */
        if (b->len > start && tg_bytelevel_bytes(&bytes, b->data + start, b->len - start)) {
            b->len = start;
            tg_buf_append(b, bytes.data, bytes.len);
        }
        b->failed |= bytes.failed;
        tg_buf_fini(&bytes);
        return;
    }
    case TG_DECODER_WORDPIECE:
        if (!first && b->len - start >= n && n && !memcmp(b->data + start, step->from, n)) {
            memmove(b->data + start, b->data + start + n, b->len - start - n);
            b->len -= n;
        } else if (!first && n) {
            tg_buf_putc(b, ' ');
            if (b->failed) return;
            memmove(b->data + start + 1, b->data + start, b->len - start - 1);
            b->data[start] = ' ';
        }
        if (step->option) clean_token(b, start);
        return;
    case TG_DECODER_METASPACE:
        replace(b, start, step->from, first && !step->option ? "" : " ");
        return;
    case TG_DECODER_BPE: replace(b, start, step->from, at == LAST ? "" : " "); return;
    case TG_DECODER_REPLACE: replace(b, start, step->from, step->to); return;
    case TG_DECODER_STRIP: strip(b, start, step); return;
    default: return;
    }
}

/* "<0xE2>" -> 0xE2; -1: not of that form. Hexadecimal digits of either case, as in Hugging Face. */
static int16_t byte_of(const char *s, size_t len) {
    if (len != 6 || memcmp(s, "<0x", 3) || s[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        char c = s[i], low = (char)(c | 0x20);
        int d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (d < 0) return -1;
        value = value * 16 + d;
    }
    return (int16_t)value;
}

static tg_status build_table(tg_text_decoder *d, struct tg_decoder_table *table, place at,
                             const char *(*text)(const void *arg, int32_t id), const void *arg,
                             tg_error *err) {
    table->offsets = tg_alloc_array((size_t)d->n_tokens + 1, sizeof *table->offsets);
    if (!table->offsets) return tg_fail_nomem(err, (size_t)d->n_tokens * sizeof(uint32_t));
    tg_buf *b = &table->bytes;
    for (int32_t id = 0; id < d->n_tokens; id++) {
        size_t start = b->len;
        table->offsets[id] = (uint32_t)start;
        const char *token = text(arg, id);
        if (!token) continue;
        if (d->spaces && at != FIRST) tg_buf_putc(b, ' ');
        tg_buf_puts(b, token);
        for (size_t i = 0; i < d->fused && !b->failed; i++) apply(&d->step[i], at, b, start);
        if (b->failed || b->len > UINT32_MAX) return tg_fail_nomem(err, b->len);
        if (d->byte && at == INSIDE && b->len > start)
            d->byte[id] = byte_of(b->data + start, b->len - start);
    }
    table->offsets[d->n_tokens] = (uint32_t)b->len;
    return TG_OK;
}

tg_status tg_text_decoder_build(tg_text_decoder *d, int32_t n,
                                const char *(*text)(const void *arg, int32_t id), const void *arg,
                                tg_error *err) {
    d->n_tokens = n;
    if (d->byte_fallback) {
        d->byte = tg_alloc_array((size_t)n + 1, sizeof *d->byte);
        if (!d->byte) return tg_fail_nomem(err, (size_t)n * sizeof *d->byte);
        for (int32_t id = 0; id < n; id++) d->byte[id] = -1;
    }
    tg_status st = build_table(d, &d->first, FIRST, text, arg, err);
    if (st == TG_OK) st = build_table(d, &d->rest, INSIDE, text, arg, err);
    return st == TG_OK && d->last_differs ? build_table(d, &d->last, LAST, text, arg, err) : st;
}

/* Bytes that are no UTF-8 together become one U+FFFD each. */
static void end_run(tg_decoding *t) {
    size_t n = t->run;
    t->run = 0;
    if (!n || t->out->failed || tg_utf8_valid_prefix(t->out->data + t->out->len - n, n) == n)
        return;
    t->out->len -= n;
    for (size_t i = 0; i < n; i++) tg_buf_puts(t->out, "\xEF\xBF\xBD");
}

void tg_text_decoder_put(const tg_text_decoder *d, tg_decoding *t, int32_t id) {
    const struct tg_decoder_table *table = t->any ? &d->rest : &d->first;
    t->any = true;
    if (d->byte && d->byte[id] >= 0) {
        tg_buf_putc(t->out, (char)d->byte[id]);
        t->run++;
        return;
    }
    if (t->run) end_run(t);
    uint32_t start = table->offsets[id];
    t->last = t->out->len, t->last_id = id;
    tg_buf_append(t->out, table->bytes.data + start, table->offsets[id + 1] - start);
}

/* The spaces that suffixes of the last token became go. */
static void end_word(const tg_text_decoder *d, tg_decoding *t) {
    uint32_t start = d->last.offsets[t->last_id];
    if (t->out->failed) return;
    t->out->len = t->last;
    tg_buf_append(t->out, d->last.bytes.data + start, d->last.offsets[t->last_id + 1] - start);
}

void tg_text_decoder_end(const tg_text_decoder *d, tg_decoding *t) {
    end_run(t);
    if (d->last_differs && t->any) end_word(d, t);
    for (size_t i = d->fused; i < d->n && !t->out->failed && t->out->len > t->start; i++)
        apply(&d->step[i], INSIDE, t->out, t->start);
}
