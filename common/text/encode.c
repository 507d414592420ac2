/* Batches. Texts are dealt out in tiles of neighbours; a tile writes rows without padding into memory of its own, then,
 * when the length of every row is known, into its place in the result. So neither depends on the number of threads. */
#include "common/text/encode_row.h"

#include "common/base/alloc.h"

#include <string.h>

enum { TILES_PER_THREAD = 8 };

/* Rows of one tile, before padding. */
typedef struct tile {
    tg_ids ids;
    tg_spans spans;
    tg_buf types, special;
    tg_ids ends, texts; /* a row's end in ids; its text */
    tg_status status;
    tg_error err;
} tile;

struct tg_encodings_work {
    tile *tiles;
    size_t n, cap;
};

typedef struct batch {
    const tg_tokenizer *t;
    const tg_text *texts;
    size_t n_texts;
    const tg_encode_options *o;
    tile *tiles;
    size_t n_tiles;
    size_t *first_row; /* of each tile */
    tg_encodings *out;
} batch;

tg_encode_options tg_encode_defaults(const tg_tokenizer *t) {
    return (tg_encode_options){.special = true,
                               .truncate_left = t->truncate_left,
                               .pad_left = t->pad_left,
                               .pad_id = t->pad >= 0 ? t->pad : 0,
                               .pad_type = t->pad_type};
}

static tg_status check_options(const tg_encode_options *o, tg_error *err) {
    if (o->truncate && (o->max_length < 0 || o->stride < 0))
        return tg_fail(err, TG_CONFIG, "max_length %lld, stride %lld: expected 0 or more",
                       (long long)o->max_length, (long long)o->stride);
    if (o->pad && (o->pad_length < 0 || o->pad_multiple < 0 || o->pad_length > INT32_MAX ||
                   o->pad_multiple > INT32_MAX))
        return tg_fail(err, TG_CONFIG, "padding to %lld, multiple of %lld: expected 0 or more",
                       (long long)o->pad_length, (long long)o->pad_multiple);
    return TG_OK;
}

/* ---- rows of a tile ---- */

static tg_status add_row(const batch *b, tile *tl, const tg_post_plan *plan, const tg_cut cut[2],
                         size_t part_a, size_t part_b, size_t text, tg_error *err) {
    tg_token_range range[2] = {tg_cut_part(&cut[0], part_a), tg_cut_part(&cut[1], part_b)};
    tg_row row = {&tl->ids, b->o->offsets ? &tl->spans : NULL, &tl->types, &tl->special};
    if (!tg_postproc_row(&b->t->postproc, plan, range, &row) || tl->types.failed ||
        tl->special.failed)
        return tg_fail_nomem(err, tl->ids.n);
    if (tl->ids.n > INT32_MAX || text > INT32_MAX)
        return tg_fail(err, TG_DATA, "more than 2^31 tokens or texts in one batch");
    return tg_ids_push(&tl->ends, (int32_t)tl->ids.n) && tg_ids_push(&tl->texts, (int32_t)text)
               ? TG_OK
               : tg_fail_nomem(err, tl->ends.n);
}

/* The first row, then each other part of the first text with all parts of the second, then the first part with the
 * others of the second. */
static tg_status add_rows(const batch *b, tile *tl, const tg_post_plan *plan, const tg_cut cut[2],
                          size_t text, tg_error *err) {
    tg_status st = add_row(b, tl, plan, cut, 0, 0, text, err);
    for (size_t i = 1; b->o->overflow && i < cut[0].parts && st == TG_OK; i++)
        for (size_t k = 0; k < cut[1].parts && st == TG_OK; k++)
            st = add_row(b, tl, plan, cut, i, k, text, err);
    for (size_t k = 1; b->o->overflow && k < cut[1].parts && st == TG_OK; k++)
        st = add_row(b, tl, plan, cut, 0, k, text, err);
    return st;
}

static tg_status encode_row(const batch *b, tg_scratch *s, tile *tl, size_t i, tg_error *err) {
    const tg_text *text = &b->texts[i];
    const tg_postproc *post = &b->t->postproc;
    bool pair = text->pair != NULL;
    tg_tokens *first = &s->tokens[0], *second = pair ? &s->tokens[1] : NULL;
    tg_cut cut[2];
    tg_status st = tg_tokenizer_tokens(b->t, s, text->s, text->len, b->o->offsets, first, err);
    if (st == TG_OK && pair)
        st = tg_tokenizer_tokens(b->t, s, text->pair, text->pair_len, b->o->offsets, second, err);
    if (st == TG_OK) st = tg_cut_texts(b->o, post->added[pair], first, second, cut, err);
    if (st == TG_OK) st = add_rows(b, tl, &post->plan[pair][b->o->special], cut, i, err);
    if (st != TG_OK && st != TG_NOMEM) tg_error_prefix(err, "text %zu: ", i);
    return st;
}

static size_t tile_start(const batch *b, size_t at) {
    return b->n_texts / b->n_tiles * at + b->n_texts % b->n_tiles * at / b->n_tiles;
}

static void encode_tile(void *arg, int at) {
    batch *b = arg;
    tile *tl = &b->tiles[at];
    tl->ids.n = tl->spans.n = tl->ends.n = tl->texts.n = 0;
    tg_buf_reset(&tl->types);
    tg_buf_reset(&tl->special);
    tl->err = (tg_error){0};
    tg_scratch *s = tg_scratch_take(b->t->pool);
    tl->status = s ? TG_OK : tg_fail_nomem(&tl->err, sizeof *s);
    size_t end = tile_start(b, (size_t)at + 1);
    for (size_t i = tile_start(b, (size_t)at); i < end && tl->status == TG_OK; i++)
        tl->status = encode_row(b, s, tl, i, &tl->err);
    if (s) tg_scratch_give(b->t->pool, s);
}

/* ---- the result ---- */

static size_t row_len(const tile *tl, size_t row) {
    return (size_t)(tl->ends.data[row] - (row ? tl->ends.data[row - 1] : 0));
}

/* The length that rows are padded to; 0: each keeps its own. */
static size_t pad_to(const batch *b) {
    size_t len = (size_t)b->o->pad_length, multiple = (size_t)b->o->pad_multiple;
    if (b->o->pad == TG_PAD_NONE) return 0;
    if (b->o->pad == TG_PAD_LONGEST) {
        len = 0;
        for (size_t i = 0; i < b->n_tiles; i++)
            for (size_t row = 0; row < b->tiles[i].ends.n; row++) {
                /* What was cut off follows its text and does not count. */
                const tile *tl = &b->tiles[i];
                bool rest = row && tl->texts.data[row] == tl->texts.data[row - 1];
                size_t n = row_len(tl, row);
                if (!rest && n > len) len = n;
            }
    }
    if (multiple && len % multiple) len += multiple - len % multiple;
    return len;
}

static bool grow(void **p, size_t n, size_t size) {
    void *more = tg_realloc_array(*p, n, size);
    if (!more) return false;
    *p = more;
    return true;
}

static bool reserve(tg_encodings *e, size_t rows, size_t tokens, bool spans) {
    if (rows >= e->rows_cap) {
        size_t cap = rows + rows / 2 + 16;
        void *start = e->start, *text = e->text;
        bool ok = grow(&start, cap + 1, sizeof *e->start);
        e->start = start;
        ok = ok && grow(&text, cap, sizeof *e->text);
        e->text = text;
        if (!ok) return false;
        e->rows_cap = cap;
    }
    if (tokens > e->tokens_cap) {
        size_t cap = tokens + tokens / 2;
        void *p[4] = {e->ids, e->attention, e->types, e->special};
        bool ok = grow(&p[0], cap, sizeof *e->ids);
        for (int i = 1; i < 4 && ok; i++) ok = grow(&p[i], cap, 1);
        e->ids = p[0], e->attention = p[1], e->types = p[2], e->special = p[3];
        if (!ok) return false;
        e->tokens_cap = cap;
    }
    if (!spans || tokens <= e->spans_cap) return true;
    void *p = e->spans;
    if (!grow(&p, tokens + tokens / 2, sizeof *e->spans)) return false;
    e->spans = p, e->spans_cap = tokens + tokens / 2;
    return true;
}

static tg_status place_rows(batch *b, tg_error *err) {
    size_t rows = 0, tokens = 0, len = pad_to(b);
    tg_encodings *e = b->out;
    for (size_t i = 0; i < b->n_tiles; i++) {
        b->first_row[i] = rows;
        rows += b->tiles[i].ends.n;
        for (size_t row = 0; row < b->tiles[i].ends.n; row++) {
            size_t n = row_len(&b->tiles[i], row);
            tokens += n > len ? n : len;
        }
    }
    if (tokens > SIZE_MAX / 64 || !reserve(e, rows, tokens, b->o->offsets))
        return tg_fail_nomem(err, tokens * sizeof(int32_t));
    e->start[0] = 0;
    for (size_t i = 0, at = 0; i < b->n_tiles; i++)
        for (size_t row = 0; row < b->tiles[i].ends.n; row++, at++) {
            size_t n = row_len(&b->tiles[i], row);
            e->start[at + 1] = e->start[at] + (n > len ? n : len);
            e->text[at] = (uint32_t)b->tiles[i].texts.data[row];
        }
    e->n = rows;
    return TG_OK;
}

static void put_padding(const batch *b, size_t at, size_t n) {
    const tg_encodings *e = b->out;
    for (size_t i = at; i < at + n; i++) e->ids[i] = b->o->pad_id;
    memset(e->attention + at, 0, n);
    memset(e->types + at, b->o->pad_type, n);
    memset(e->special + at, 1, n);
    if (b->o->offsets) memset(e->spans + at, 0, n * sizeof *e->spans);
}

static void copy_row(const batch *b, const tile *tl, size_t row, size_t to) {
    const tg_encodings *e = b->out;
    size_t n = row_len(tl, row), from = (size_t)tl->ends.data[row] - n;
    size_t at = e->start[to], padding = e->start[to + 1] - at - n;
    if (padding) put_padding(b, b->o->pad_left ? at : at + n, padding);
    if (!n) return;
    if (b->o->pad_left) at += padding;
    memcpy(e->ids + at, tl->ids.data + from, n * sizeof *e->ids);
    memset(e->attention + at, 1, n);
    memcpy(e->types + at, tl->types.data + from, n);
    memcpy(e->special + at, tl->special.data + from, n);
    if (b->o->offsets) memcpy(e->spans + at, tl->spans.data + from, n * sizeof *e->spans);
}

static void copy_tile(void *arg, int at) {
    const batch *b = arg;
    const tile *tl = &b->tiles[at];
    for (size_t row = 0; row < tl->ends.n; row++) copy_row(b, tl, row, b->first_row[at] + row);
}

static void run(tg_team *team, size_t tiles, tg_team_fn *work, batch *b) {
    if (team)
        tg_team_run(team, (int)tiles, work, b);
    else
        for (size_t i = 0; i < tiles; i++) work(b, (int)i);
}

static tg_status reserve_tiles(tg_encodings *e, size_t n, tg_error *err) {
    if (!e->work) e->work = tg_alloc(sizeof *e->work);
    if (!e->work) return tg_fail_nomem(err, sizeof *e->work);
    if (n <= e->work->cap) return TG_OK;
    tile *tiles = tg_realloc_array(e->work->tiles, n, sizeof *tiles);
    if (!tiles) return tg_fail_nomem(err, n * sizeof *tiles);
    memset(tiles + e->work->cap, 0, (n - e->work->cap) * sizeof *tiles);
    e->work->tiles = tiles, e->work->cap = n;
    return TG_OK;
}

tg_status tg_tokenizer_encode_batch(const tg_tokenizer *t, const tg_text *texts, size_t n,
                                    const tg_encode_options *o, tg_team *team, tg_encodings *out,
                                    tg_error *err) {
    size_t most =
        team && tg_team_size(team) > 1 ? TILES_PER_THREAD * (size_t)tg_team_size(team) : 1;
    size_t tiles = n < most ? n : most, first_row[1024];
    if (tiles > 1024) tiles = 1024;
    out->n = 0;
    tg_status st = check_options(o, err);
    if (st == TG_OK) st = reserve_tiles(out, tiles, err);
    if (st != TG_OK) return st;
    batch b = {t, texts, n, o, out->work->tiles, tiles, first_row, out};
    run(team, tiles, encode_tile, &b);
    for (size_t i = 0; i < tiles && st == TG_OK; i++) {
        st = b.tiles[i].status;
        if (st != TG_OK && err) *err = b.tiles[i].err;
    }
    if (st == TG_OK) st = place_rows(&b, err);
    if (st == TG_OK) run(team, tiles, copy_tile, &b);
    return st;
}

void tg_encodings_fini(tg_encodings *e) {
    for (size_t i = 0; e->work && i < e->work->cap; i++) {
        tile *tl = &e->work->tiles[i];
        tg_ids_fini(&tl->ids);
        tg_spans_fini(&tl->spans);
        tg_buf_fini(&tl->types);
        tg_buf_fini(&tl->special);
        tg_ids_fini(&tl->ends);
        tg_ids_fini(&tl->texts);
    }
    if (e->work) tg_free(e->work->tiles);
    tg_free(e->work);
    tg_free(e->start);
    tg_free(e->text);
    tg_free(e->ids);
    tg_free(e->attention);
    tg_free(e->types);
    tg_free(e->special);
    tg_free(e->spans);
    *e = (tg_encodings){0};
}

/* ---- decoding ---- */

typedef struct decoding {
    const tg_tokenizer *t;
    const int32_t *ids;
    const size_t *start;
    size_t n, n_tiles, *end;
    unsigned flags;
    struct {
        tg_buf text;
        tg_status status;
        tg_error err;
    } tile[64];
} decoding;

static void decode_tile(void *arg, int at) {
    decoding *d = arg;
    size_t from = d->n * (size_t)at / d->n_tiles, to = d->n * ((size_t)at + 1) / d->n_tiles;
    for (size_t i = from; i < to && d->tile[at].status == TG_OK; i++) {
        d->tile[at].status =
            tg_tokenizer_decode(d->t, d->ids + d->start[i], d->start[i + 1] - d->start[i], d->flags,
                                &d->tile[at].text, &d->tile[at].err);
        d->end[i] = d->tile[at].text.len;
    }
}

tg_status tg_tokenizer_decode_batch(const tg_tokenizer *t, const int32_t *ids, const size_t *start,
                                    size_t n, unsigned flags, tg_team *team, tg_buf *out,
                                    size_t *end, tg_error *err) {
    decoding *d = tg_alloc(sizeof *d);
    if (!d) return tg_fail_nomem(err, sizeof *d);
    size_t most = team ? (size_t)tg_team_size(team) : 1;
    if (most > 64) most = 64;
    d->t = t, d->ids = ids, d->start = start, d->n = n, d->end = end, d->flags = flags;
    d->n_tiles = n < most ? n : most;
    if (team)
        tg_team_run(team, (int)d->n_tiles, decode_tile, d);
    else if (d->n_tiles)
        decode_tile(d, 0);
    tg_status st = TG_OK;
    for (size_t i = 0; i < d->n_tiles; i++) {
        size_t base = out->len, from = n * i / d->n_tiles, to = n * (i + 1) / d->n_tiles;
        if (st == TG_OK && d->tile[i].status != TG_OK) {
            st = d->tile[i].status;
            if (err) *err = d->tile[i].err;
        }
        if (st == TG_OK) tg_buf_append(out, d->tile[i].text.data, d->tile[i].text.len);
        for (size_t k = from; k < to; k++) end[k] += base;
        tg_buf_fini(&d->tile[i].text);
    }
    if (st == TG_OK && out->failed) st = tg_fail_nomem(err, out->len);
    tg_free(d);
    return st;
}
