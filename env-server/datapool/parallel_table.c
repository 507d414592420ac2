/* A pair of files, segment by segment. Opening finds where the segments of each begin; those with an
 * empty side are passed over in plain text, as the WMT loaders do. */
#include "env-server/datapool/parallel_table.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "common/base/str.h"
#include "common/text/utf8.h"
#include "env-server/datapool/parallel.h"
#include "env-server/datapool/table/datafile.h"
#include "env-server/datapool/table/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum mode { PLAIN, TAGS, SEGMENTS } mode;

typedef struct side {
    tg_datafile *file;
    tg_offsets segments;
    mode mode;
    char language[16];
} side;

typedef struct pair {
    side sides[2];
    bool unescape;
} pair;

/* ---- segments ------------------------------------------------------------------------------ */

static bool has_end(const char *path, const char *end) {
    char packed[24];
    snprintf(packed, sizeof packed, "%s.gz", end);
    return tg_str_ends(path, end) || tg_str_ends(path, packed);
}

static mode mode_of(const char *path) {
    if (has_end(path, ".sgm") || has_end(path, ".xml")) return SEGMENTS;
    return strstr(tg_file_name(path), "tags") ? TAGS : PLAIN;
}

static size_t line_len(const char *at, const char *end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return (size_t)((stop ? stop : end) - at);
}

/* Content of the segment that begins at `at` (behind its tag, where it has one). */
static const char *segment(const side *s, uint64_t at, size_t *len) {
    size_t size;
    const char *bytes = tg_datafile_bytes(s->file, &size), *begin = bytes + at, *end = bytes + size;
    const char *stop = s->mode == SEGMENTS ? memmem(begin, (size_t)(end - begin), "</seg>", 6)
                                           : begin + line_len(begin, end);
    *len = (size_t)((stop ? stop : end) - begin);
    tg_datafile_used(s->file, begin, *len);
    if (s->mode == PLAIN) {
        if (*len && begin[*len - 1] == '\r') --*len;
        return begin;
    }
    while (*len && strchr(" \t\r\n", *begin) && *begin) begin++, --*len;
    while (*len && begin[*len - 1] && strchr(" \t\r\n", begin[*len - 1])) --*len;
    return begin;
}

static tg_status find_segments(side *s, tg_error *err) {
    size_t size;
    const char *bytes = tg_datafile_bytes(s->file, &size), *end = bytes + size, *at = bytes;
    if (size >= 3 && !memcmp(at, "\xEF\xBB\xBF", 3)) at += 3;
    while (at < end) {
        const char *from = at;
        size_t len = line_len(at, end);
        bool take = true;
        if (s->mode == SEGMENTS) {
            const char *tag = memmem(at, (size_t)(end - at), "<seg", 4);
            const char *close = tag ? memchr(tag, '>', (size_t)(end - tag)) : NULL;
            if (!close) break;
            const char *stop = memmem(close, (size_t)(end - close), "</seg>", 6);
            if (!stop)
                return tg_fail(err, TG_DATA, "%s:%" PRIu64 ": <seg> without </seg>",
                               tg_datafile_path(s->file),
                               tg_datafile_line(s->file, (uint64_t)(tag - bytes)));
            from = close + 1;
            at = stop + 6;
        } else {
            size_t blanks = 0;
            while (blanks < len && (at[blanks] == ' ' || at[blanks] == '\t')) blanks++;
            take = s->mode == PLAIN || blanks == len || at[blanks] != '<';
            at += len + 1;
        }
        if (take && !tg_offsets_push(&s->segments, (uint64_t)(from - bytes)))
            return tg_fail_nomem(err, 2 * s->segments.cap * sizeof *s->segments.at);
        tg_datafile_used(s->file, from, (size_t)((at < end ? at : end) - from));
    }
    return TG_OK;
}

/* Keeps the pairs that have text on both sides. */
static tg_status align(pair *p, tg_error *err) {
    side *a = &p->sides[0], *b = &p->sides[1];
    if (a->segments.n != b->segments.n)
        return tg_fail(
            err, TG_DATA, "%s has %zu segments, but %s has %zu: they do not belong together",
            tg_datafile_path(a->file), a->segments.n, tg_datafile_path(b->file), b->segments.n);
    size_t kept = 0;
    for (size_t i = 0; i < a->segments.n; i++) {
        size_t la, lb;
        (void)segment(a, a->segments.at[i], &la);
        (void)segment(b, b->segments.at[i], &lb);
        if (a->mode == PLAIN && (!la || !lb)) continue;
        a->segments.at[kept] = a->segments.at[i];
        b->segments.at[kept++] = b->segments.at[i];
    }
    a->segments.n = b->segments.n = kept;
    return TG_OK;
}

void tg_xml_unescape(const char *text, size_t len, tg_buf *out) {
    static const struct {
        const char *name;
        char c;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        for (size_t k = 0; text[i] == '&' && k < 5 && !n; k++) {
            size_t m = strlen(names[k].name);
            if (len - i >= m && !memcmp(text + i, names[k].name, m)) {
                tg_buf_putc(out, names[k].c);
                n = m;
            }
        }
        if (!n && len - i > 3 && text[i] == '&' && text[i + 1] == '#') {
            const char *semicolon = memchr(text + i, ';', len - i < 12 ? len - i : 12);
            char code[16] = "", encoded[4], *end = code;
            if (semicolon) memcpy(code, text + i + 2, (size_t)(semicolon - text) - i - 2);
            bool hex = code[0] == 'x' || code[0] == 'X';
            unsigned long point = strtoul(code + hex, &end, hex ? 16 : 10);
            if (semicolon && !*end && end > code + hex && point && point <= 0x10FFFF &&
                (point < 0xD800 || point > 0xDFFF)) {
                tg_buf_append(out, encoded, tg_utf8_encode((uint32_t)point, encoded));
                n = (size_t)(semicolon - text) - i + 1;
            }
        }
        if (!n) tg_buf_putc(out, text[i]);
        i += n ? n : 1;
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

static tg_status side_text(const pair *p, const side *s, uint64_t i, json_t **out, tg_error *err) {
    size_t len;
    const char *text = segment(s, s->segments.at[i], &len);
    if (s->mode == PLAIN || !p->unescape) return tg_table_text(text, len, out, err);
    tg_buf plain = {0};
    tg_xml_unescape(text, len, &plain);
    tg_status st = plain.failed ? tg_fail_nomem(err, len)
                                : tg_table_text(plain.data ? plain.data : "", plain.len, out, err);
    tg_buf_fini(&plain);
    return st;
}

static tg_status pair_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const pair *p = t->state;
    json_t *a = NULL, *b = NULL;
    tg_status st = side_text(p, &p->sides[0], i, &a, err);
    if (st == TG_OK) st = side_text(p, &p->sides[1], i, &b, err);
    if (st == TG_OK && !(*out = json_pack("{s:{s:O, s:O}}", "translation", p->sides[0].language, a,
                                          p->sides[1].language, b)))
        st = tg_fail_nomem(err, 1);
    json_decref(a);
    json_decref(b);
    return st;
}

static void pair_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const side *s = &((const pair *)t->state)->sides[0];
    snprintf(out, size, "%s:%" PRIu64, tg_datafile_path(s->file),
             tg_datafile_line(s->file, s->segments.at[i]));
}

static void pair_close(void *state) {
    pair *p = state;
    for (size_t i = 0; i < 2; i++) {
        tg_datafile_close(&p->sides[i].file);
        tg_free(p->sides[i].segments.at);
    }
    tg_free(p);
}

tg_status tg_parallel_table(tg_table *t, const char *const paths[2], const char *const languages[2],
                            bool unescape, tg_error *err) {
    static const tg_table_ops ops = {pair_row, pair_where, pair_close};
    memset(t, 0, sizeof *t);
    pair *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->unescape = unescape;
    tg_status st = TG_OK;
    uint64_t digest[2] = {0};
    for (size_t i = 0; i < 2 && st == TG_OK; i++) {
        side *s = &p->sides[i];
        snprintf(s->language, sizeof s->language, "%s", languages[i]);
        s->mode = mode_of(paths[i]);
        st = tg_datafile_open(&s->file, paths[i], err);
        if (st == TG_OK) st = find_segments(s, err);
        if (st == TG_OK) digest[i] = tg_datafile_digest(s->file);
    }
    if (st == TG_OK) st = align(p, err);
    if (st != TG_OK) {
        pair_close(p);
        return st;
    }
    *t = (tg_table){&ops, p, p->sides[0].segments.n, tg_hash64(digest, sizeof digest),
                    tg_datafile_path(p->sides[0].file)};
    return TG_OK;
}
