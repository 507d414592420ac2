/* A chain of filters: tokens to bytes, the decoder's steps on whole texts, UTF-8, clean-up. Each holds back only what
 * later bytes may still change: an unfinished character, the start of a match, spaces that may be the last. */
#include "common/text/decode_stream.h"

#include "common/base/alloc.h"
#include "common/text/tokenizer_impl.h"
#include "common/text/utf8.h"

#include <string.h>

typedef enum kind { REPLACE, STRIP, UTF8 } kind;

typedef struct filter {
    kind kind;
    const char *from, *to; /* REPLACE; STRIP: from is the character */
    size_t n_from;
    uint32_t start, stop; /* STRIP */
    tg_buf held;
    uint32_t stripped; /* STRIP: how many at the start */
    bool begun;        /* STRIP: the start is over */
} filter;

enum { MAX_FILTERS = TG_DECODER_MAX + 1 + TG_CLEAN_UP_RULES };

struct tg_decode_stream {
    const tg_tokenizer *t;
    unsigned flags;
    filter filter[MAX_FILTERS];
    size_t n;
    tg_buf utf8;  /* of the call under way */
    tg_buf run;   /* bytes of ByteFallback tokens that may still make a character */
    int32_t last; /* BPEDecoder: the token that may be the last; -1: none */
    bool any;
    tg_buf *out; /* of the current call */
};

static void feed(tg_decode_stream *d, size_t at, const char *s, size_t len);

static void add(tg_decode_stream *d, filter f) {
    f.n_from = f.from ? strlen(f.from) : 0;
    d->filter[d->n++] = f;
}

tg_status tg_decode_stream_create(tg_decode_stream **out, const tg_tokenizer *t, unsigned flags,
                                  tg_error *err) {
    *out = NULL;
    if (t->marian && !(flags & TG_DECODE_SKIP_SPECIAL))
        return tg_fail(err, TG_UNSUPPORTED,
                       "decoding id by id with special tokens is not built into this version for "
                       "Marian's tokenizers; leave them out");
    tg_decode_stream *d = *out = tg_alloc(sizeof *d);
    if (!d) return tg_fail_nomem(err, sizeof *d);
    d->t = t, d->flags = flags, d->last = -1;
    const tg_text_decoder *dec = &t->decoder;
    for (size_t i = dec->fused; i < dec->n; i++) {
        const tg_decoder_step *step = &dec->step[i];
        if (step->kind == TG_DECODER_REPLACE)
            add(d, (filter){.kind = REPLACE, .from = step->from, .to = step->to});
        else
            add(d,
                (filter){
                    .kind = STRIP, .from = step->from, .start = step->start, .stop = step->stop});
    }
    add(d, (filter){.kind = UTF8});
    for (size_t i = 0; (flags & TG_DECODE_CLEAN_UP) && i < TG_CLEAN_UP_RULES; i++)
        add(d, (filter){.kind = REPLACE,
                        .from = tg_clean_up_rules[i][0],
                        .to = tg_clean_up_rules[i][1]});
    return TG_OK;
}

void tg_decode_stream_destroy(tg_decode_stream **dp) {
    tg_decode_stream *d = *dp;
    if (!d) return;
    for (size_t i = 0; i < d->n; i++) tg_buf_fini(&d->filter[i].held);
    tg_buf_fini(&d->run);
    tg_buf_fini(&d->utf8);
    tg_free(d);
    *dp = NULL;
}

/* ---- filters ---- */

static void drop(tg_buf *held, size_t n) {
    memmove(held->data, held->data + n, held->len - n);
    held->len -= n;
    held->data[held->len] = 0;
}

/* Passes on the first n bytes that are held. */
static void release(tg_decode_stream *d, size_t at, size_t n) {
    tg_buf *held = &d->filter[at].held;
    if (!n) return;
    feed(d, at + 1, held->data, n);
    drop(held, n);
}

/* The longest end of the bytes with which a match may begin. */
static size_t unfinished(const filter *f) {
    size_t n = f->n_from - 1 < f->held.len ? f->n_from - 1 : f->held.len;
    while (n && memcmp(f->held.data + f->held.len - n, f->from, n)) n--;
    return n;
}

static void run_replace(tg_decode_stream *d, size_t at) {
    filter *f = &d->filter[at];
    for (char *hit; f->held.len && (hit = memmem(f->held.data, f->held.len, f->from, f->n_from));) {
        release(d, at, (size_t)(hit - f->held.data));
        drop(&f->held, f->n_from);
        feed(d, at + 1, f->to, strlen(f->to));
    }
    if (f->held.len) release(d, at, f->held.len - unfinished(f));
}

/* How many of the character stand at the end, at most max. */
static size_t trailing(const filter *f, size_t max) {
    size_t n = 0;
    while (n < max && f->held.len >= (n + 1) * f->n_from &&
           !memcmp(f->held.data + f->held.len - (n + 1) * f->n_from, f->from, f->n_from))
        n++;
    return n;
}

static void run_strip(tg_decode_stream *d, size_t at) {
    filter *f = &d->filter[at];
    while (!f->begun && f->stripped < f->start && f->held.len >= f->n_from) {
        f->begun = memcmp(f->held.data, f->from, f->n_from) != 0;
        if (f->begun) break;
        drop(&f->held, f->n_from);
        f->stripped++;
    }
    f->begun |= f->stripped == f->start;
    if (!f->begun) return;
    /* The end may be cut inside the character: those bytes wait, too. */
    size_t part = f->stop ? unfinished(f) : 0;
    f->held.len -= part;
    size_t keep = trailing(f, f->stop) * f->n_from;
    f->held.len += part;
    if (f->held.len > keep + part) release(d, at, f->held.len - keep - part);
}

static void run_utf8(tg_decode_stream *d, size_t at, bool end) {
    filter *f = &d->filter[at];
    tg_buf *text = &d->utf8;
    tg_buf_reset(text);
    size_t used = f->held.len;
    if (end)
        tg_utf8_append_lossy(text, f->held.data, f->held.len);
    else
        used = tg_utf8_append_known(text, f->held.data, f->held.len);
    d->out->failed |= text->failed;
    if (text->len) feed(d, at + 1, text->data, text->len);
    if (used) drop(&f->held, used);
}

static void feed(tg_decode_stream *d, size_t at, const char *s, size_t len) {
    if (!len) return;
    if (at == d->n) {
        tg_buf_append(d->out, s, len);
        return;
    }
    filter *f = &d->filter[at];
    tg_buf_append(&f->held, s, len);
    if (f->held.failed) {
        d->out->failed = true;
        return;
    }
    if (f->kind == REPLACE)
        run_replace(d, at);
    else if (f->kind == STRIP)
        run_strip(d, at);
    else
        run_utf8(d, at, false);
}

/* Lets go of what a filter holds, after the last byte. */
static void finish(tg_decode_stream *d, size_t at) {
    filter *f = &d->filter[at];
    if (f->kind == UTF8)
        run_utf8(d, at, true);
    else if (f->kind == STRIP && f->held.len)
        release(d, at, f->held.len - trailing(f, f->stop) * f->n_from);
    else
        release(d, at, f->held.len);
    tg_buf_reset(&f->held);
    f->stripped = 0, f->begun = false;
}

/* ---- tokens ---- */

static void put_token(tg_decode_stream *d, const struct tg_decoder_table *table, int32_t id) {
    uint32_t start = table->offsets[id];
    feed(d, 0, table->bytes.data + start, table->offsets[id + 1] - start);
}

/* Bytes that are no UTF-8 together become one U+FFFD each. */
static void end_run(tg_decode_stream *d) {
    size_t n = d->run.len;
    if (!n) return;
    if (tg_utf8_valid_prefix(d->run.data, n) == n)
        feed(d, 0, d->run.data, n);
    else
        for (size_t i = 0; i < n; i++) feed(d, 0, "\xEF\xBF\xBD", 3);
    d->out->failed |= d->run.failed;
    tg_buf_reset(&d->run);
}

tg_status tg_decode_stream_put(tg_decode_stream *d, int32_t id, tg_buf *out, tg_error *err) {
    const tg_tokenizer *t = d->t;
    const tg_text_decoder *dec = &t->decoder;
    if (id < 0) return tg_fail(err, TG_DATA, "decode: id %d is negative", (int)id);
    if (id >= t->size || !t->token[id]) return TG_OK;
    if ((d->flags & TG_DECODE_SKIP_SPECIAL) && t->special[id]) return TG_OK;
    d->out = out;
    const struct tg_decoder_table *table = d->any ? &dec->rest : &dec->first;
    d->any = true;
    if (dec->byte && dec->byte[id] >= 0) {
        tg_buf_putc(&d->run, (char)dec->byte[id]);
    } else {
        end_run(d);
        if (dec->last_differs) {
            if (d->last >= 0) put_token(d, &dec->rest, d->last);
            d->last = id;
        } else {
            put_token(d, table, id);
        }
    }
    return out->failed || d->run.failed ? tg_fail_nomem(err, out->len) : TG_OK;
}

tg_status tg_decode_stream_end(tg_decode_stream *d, tg_buf *out, tg_error *err) {
    d->out = out;
    end_run(d);
    if (d->last >= 0) put_token(d, &d->t->decoder.last, d->last);
    for (size_t i = 0; i < d->n; i++) finish(d, i);
    d->last = -1, d->any = false;
    return out->failed ? tg_fail_nomem(err, out->len) : TG_OK;
}

static void copy(tg_buf *to, const tg_buf *from, tg_buf *out) {
    tg_buf_reset(to);
    if (from->len) tg_buf_append(to, from->data, from->len);
    out->failed |= to->failed;
}

tg_status tg_decode_stream_peek(const tg_decode_stream *d, tg_decode_stream *spare, tg_buf *out,
                                tg_error *err) {
    for (size_t i = 0; i < d->n; i++) {
        const filter *from = &d->filter[i];
        filter *to = &spare->filter[i];
        copy(&to->held, &from->held, out);
        to->stripped = from->stripped, to->begun = from->begun;
    }
    copy(&spare->run, &d->run, out);
    spare->last = d->last, spare->any = d->any;
    return tg_decode_stream_end(spare, out, err);
}
