/* Rows as ids, pieces, colours or JSON. Pure functions of the row. */
#include "common/cli/tokenize_show.h"

#include "common/config/json.h"
#include "common/text/utf8.h"

#include <string.h>

static const char *name_of(const tg_tokenizer *t, int32_t id) {
    const char *token = tg_tokenizer_token(t, id);
    return token ? token : "";
}

/* A decimal number; most of the output is these. */
static void put_number(tg_buf *out, int64_t v) {
    char digits[24];
    size_t n = sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do digits[--n] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0) digits[--n] = '-';
    tg_buf_append(out, digits + n, sizeof digits - n);
}

void tg_show_ids(const tg_encodings *e, size_t row, tg_buf *out) {
    for (size_t i = e->start[row]; i < e->start[row + 1]; i++) {
        if (i > e->start[row]) tg_buf_putc(out, ' ');
        put_number(out, e->ids[i]);
    }
    tg_buf_putc(out, '\n');
}

void tg_show_pieces(const tg_tokenizer *t, const tg_encodings *e, size_t row, tg_buf *out) {
    for (size_t i = e->start[row]; i < e->start[row + 1]; i++) {
        tg_buf_puts(out, name_of(t, e->ids[i]));
        tg_buf_putc(out, '\n');
    }
}

/* Walks a text by code points. */
typedef struct walker {
    const char *s;
    size_t len, byte;
    uint32_t point;
} walker;

static size_t byte_of(walker *w, uint32_t point) {
    while (w->point < point && w->byte < w->len) {
        do w->byte++;
        while (w->byte < w->len && ((unsigned char)w->s[w->byte] & 0xC0) == 0x80);
        w->point++;
    }
    return w->byte;
}

static void put_color(tg_buf *out, size_t i, const char *s, size_t len) {
    static const char *const colors[] = {"48;5;153", "48;5;157", "48;5;229", "48;5;217",
                                         "48;5;183"};
    tg_buf_printf(out, "\x1b[30;%sm", colors[i % 5]);
    tg_buf_append(out, s, len);
    tg_buf_puts(out, "\x1b[0m");
}

void tg_show_colors(const tg_tokenizer *t, const tg_encodings *e, size_t row, const tg_text *text,
                    tg_buf *out) {
    tg_buf clean[2] = {{0}, {0}};
    tg_utf8_append_lossy(&clean[0], text->s, text->len);
    if (text->pair) tg_utf8_append_lossy(&clean[1], text->pair, text->pair_len);
    walker w[2] = {{clean[0].data, clean[0].len, 0, 0}, {clean[1].data, clean[1].len, 0, 0}};
    bool second = false;
    uint32_t last = 0;
    for (size_t i = e->start[row]; i < e->start[row + 1]; i++) {
        tg_span span = e->spans[i];
        if (e->special[i] || span.end <= span.start) {
            const char *name = name_of(t, e->ids[i]);
            tg_buf_printf(out, "\x1b[7m%s\x1b[0m", name);
            continue;
        }
        /* Offsets that go back are those of the second text. */
        if (span.start < last && text->pair && !second) second = true;
        walker *at = &w[second];
        size_t from = byte_of(at, span.start), to = byte_of(at, span.end);
        if (from < to) put_color(out, i, at->s + from, to - from);
        last = span.start;
    }
    tg_buf_putc(out, '\n');
    tg_buf_fini(&clean[0]);
    tg_buf_fini(&clean[1]);
}

static void put_bytes(tg_buf *out, const char *key, const uint8_t *value, size_t from, size_t to) {
    tg_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = from; i < to; i++) {
        if (i > from) tg_buf_putc(out, ',');
        put_number(out, value[i]);
    }
    tg_buf_putc(out, ']');
}

void tg_show_json(const tg_tokenizer *t, const tg_encodings *e, size_t row, bool masks,
                  tg_buf *out) {
    size_t from = e->start[row], to = e->start[row + 1];
    tg_buf_puts(out, "{\"ids\":[");
    for (size_t i = from; i < to; i++) {
        if (i > from) tg_buf_putc(out, ',');
        put_number(out, e->ids[i]);
    }
    tg_buf_puts(out, "],\"tokens\":[");
    for (size_t i = from; i < to; i++) {
        const char *token = name_of(t, e->ids[i]);
        if (i > from) tg_buf_putc(out, ',');
        tg_json_string(out, token, strlen(token));
    }
    tg_buf_puts(out, "],\"offsets\":[");
    for (size_t i = from; i < to; i++) {
        tg_buf_puts(out, i > from ? ",[" : "[");
        put_number(out, e->spans[i].start);
        tg_buf_putc(out, ',');
        put_number(out, e->spans[i].end);
        tg_buf_putc(out, ']');
    }
    tg_buf_putc(out, ']');
    if (!masks) return;
    put_bytes(out, "attention_mask", e->attention, from, to);
    put_bytes(out, "type_ids", e->types, from, to);
    put_bytes(out, "special_tokens_mask", e->special, from, to);
}
