/* Encoding and decoding: the order of the parts. A tokenizer is read-only here; a call works in a
 * scratch of its own. */
#include "common/text/tokenizer_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/text/marian.h"
#include "common/text/utf8.h"

#include <string.h>

/* Code points of each byte of the text. */
static tg_status number_bytes(tg_spans *at, const char *s, size_t len, tg_error *err) {
    at->n = 0;
    if (len > UINT32_MAX)
        return tg_fail(err, TG_DATA, "text of %zu bytes: offsets go up to 4 GiB", len);
    if (!tg_spans_reserve(at, len + 1)) return tg_fail_nomem(err, len * sizeof(tg_span));
    uint32_t cp = 0;
    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)s[i] & 0xC0) != 0x80) cp++;
        at->data[i] = (tg_span){cp - 1, cp};
    }
    at->n = len;
    return TG_OK;
}

/* The token took [start, end) of the view, which may hold more than its own text. */
static bool put_added(tg_sink *out, tg_view v, size_t start, size_t end,
                      const tg_added_token *token) {
    tg_span span = {0};
    if (v.at && end > start) span = (tg_span){v.at[start].start, v.at[end - 1].end};
    if (!tg_sink_put(out, token->id, span)) return false;
    if (!out->spans || !(token->lstrip || token->rstrip)) return true;
    uint32_t leading, trailing;
    tg_postproc_blanks(v.s + start, end - start, &leading, &trailing);
    return tg_sink_strip(out, leading, trailing);
}

/* The language code that a stretch begins with, if any, is one token; raw becomes what follows. */
static bool put_language(const tg_tokenizer *t, tg_view *raw, tg_sink *out) {
    const size_t n = tg_marian_language(*raw);
    if (!n) return true;
    const int32_t id = tg_vocab_id(&t->model->vocab, raw->s, n);
    const tg_span span = raw->at ? (tg_span){raw->at[0].start, raw->at[n - 1].end} : (tg_span){0};
    const bool known = id >= 0 && id < t->model->known;
    *raw = tg_view_slice(*raw, n, raw->len);
    return tg_sink_put(out, known ? id : t->unk, span);
}

/* A stretch without tokens that are searched in the text as given: normalise, find the others, cut
 * the rest. */
static tg_status encode_segment(const tg_tokenizer *t, tg_scratch *s, tg_view raw, tg_sink *out,
                                tg_error *err) {
    tg_view v;
    if (t->marian && !put_language(t, &raw, out)) return tg_fail_nomem(err, 1);
    if (!raw.len) return TG_OK;
    tg_status st = tg_normalizer_run(&t->normalizer, s, raw, &v, err);
    if (st != TG_OK) return st;
    tg_added_cursor c = {0};
    size_t done = 0, start, end;
    const tg_added_token *token;
    while ((token = tg_added_next(&t->added.normal, v.s, v.len, &c, &start, &end))) {
        if (done < start)
            st = tg_pretok_run(&t->pretok, t->model, s, tg_view_slice(v, done, start), out, err);
        if (st == TG_OK && !put_added(out, v, start, end, token)) st = tg_fail_nomem(err, 1);
        if (st != TG_OK) return st;
        done = end;
    }
    return done < v.len
               ? tg_pretok_run(&t->pretok, t->model, s, tg_view_slice(v, done, v.len), out, err)
               : TG_OK;
}

static tg_status encode_text(const tg_tokenizer *t, tg_scratch *s, tg_view v, tg_sink *out,
                             tg_error *err) {
    tg_added_cursor c = {0};
    size_t done = 0, start, end;
    const tg_added_token *token;
    while ((token = tg_added_next(&t->added.raw, v.s, v.len, &c, &start, &end))) {
        tg_status st = TG_OK;
        if (done < start) st = encode_segment(t, s, tg_view_slice(v, done, start), out, err);
        if (st == TG_OK && !put_added(out, v, start, end, token)) st = tg_fail_nomem(err, 1);
        if (st != TG_OK) return st;
        done = end;
    }
    return done < v.len ? encode_segment(t, s, tg_view_slice(v, done, v.len), out, err) : TG_OK;
}

tg_status tg_tokenizer_tokens(const tg_tokenizer *t, tg_scratch *s, const char *text, size_t len,
                              bool spans, tg_tokens *out, tg_error *err) {
    if (!text) text = "";
    out->ids.n = out->spans.n = out->strips.n = 0;
    if (tg_utf8_valid_prefix(text, len) != len) {
        tg_buf_reset(&s->clean);
        tg_utf8_append_lossy(&s->clean, text, len);
        if (s->clean.failed) return tg_fail_nomem(err, len);
        text = s->clean.data, len = s->clean.len;
    }
    tg_view v = {text, len, NULL};
    if (spans || t->pretok.wants_places) {
        tg_status st = number_bytes(&s->at, text, len, err);
        if (st != TG_OK) return st;
        v.at = s->at.data;
    }
    tg_sink sink = {&out->ids, spans ? &out->spans : NULL, &out->strips};
    return encode_text(t, s, v, &sink, err);
}

tg_status tg_tokenizer_encode_spans(const tg_tokenizer *t, const char *text, size_t len,
                                    unsigned flags, tg_ids *ids, tg_spans *spans, tg_error *err) {
    TG_ASSERT(!spans || spans->n == ids->n); /* a span is found by the place of its id */
    tg_scratch *s = tg_scratch_take(t->pool);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    size_t n_ids = ids->n, n_spans = spans ? spans->n : 0;
    tg_tokens *tokens = &s->tokens[0];
    tg_status st = tg_tokenizer_tokens(t, s, text, len, spans != NULL, tokens, err);
    tg_token_range range[2] = {{tokens, 0, tokens->ids.n, false}};
    if (st == TG_OK &&
        !tg_postproc_row(&t->postproc, &t->postproc.plan[0][(flags & TG_ENCODE_SPECIAL) != 0],
                         range, &(tg_row){.ids = ids, .spans = spans}))
        st = tg_fail_nomem(err, tokens->ids.n);
    tg_scratch_give(t->pool, s);
    if (st != TG_OK) {
        ids->n = n_ids;
        if (spans) spans->n = n_spans;
    }
    return st;
}

tg_status tg_tokenizer_encode(const tg_tokenizer *t, const char *text, size_t len, unsigned flags,
                              tg_ids *ids, tg_error *err) {
    return tg_tokenizer_encode_spans(t, text, len, flags, ids, NULL, err);
}

static void decode_tables(const tg_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                          tg_buf *out) {
    tg_decoding text = {.out = out};
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= t->size || !t->token[ids[i]]) continue;
        if ((flags & TG_DECODE_SKIP_SPECIAL) && t->special[ids[i]]) continue;
        tg_text_decoder_put(&t->decoder, &text, ids[i]);
    }
    tg_text_decoder_end(&t->decoder, &text);
}

tg_status tg_tokenizer_decode(const tg_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                              tg_buf *out, tg_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0)
            return tg_fail(err, TG_DATA, "decode: id %d at place %zu is negative", (int)ids[i], i);
    tg_scratch *s = tg_scratch_take(t->pool);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    tg_buf_reset(&s->joined);
    if (t->marian && !(flags & TG_DECODE_SKIP_SPECIAL))
        tg_marian_decode(t, ids, n, &s->joined);
    else
        decode_tables(t, ids, n, flags, &s->joined);
    size_t start = out->len;
    tg_utf8_append_lossy(out, s->joined.data, s->joined.len);
    if (flags & TG_DECODE_CLEAN_UP) tg_text_decoder_clean_up(out, start);
    bool failed = s->joined.failed || out->failed;
    tg_scratch_give(t->pool, s);
    return failed ? tg_fail_nomem(err, n) : TG_OK;
}

void tg_tokenizer_piece(const tg_tokenizer *t, int32_t id, tg_buf *out) {
    if (id < 0 || id >= t->size || !t->token[id]) return;
    tg_decoding inside = {.out = out, .any = true};
    tg_text_decoder_put(&t->decoder, &inside, id);
}

const tg_tokenizer *tg_tokenizer_target(const tg_tokenizer *t) {
    return t->target ? t->target : t;
}

int32_t tg_tokenizer_vocab_size(const tg_tokenizer *t) {
    return t->model->known ? t->model->known : (int32_t)t->model->vocab.ids.count;
}

int32_t tg_tokenizer_size(const tg_tokenizer *t) {
    return t->size;
}

int32_t tg_tokenizer_bos(const tg_tokenizer *t) {
    return t->bos;
}

int32_t tg_tokenizer_eos(const tg_tokenizer *t) {
    return t->eos;
}

int32_t tg_tokenizer_pad(const tg_tokenizer *t) {
    return t->pad;
}

int32_t tg_tokenizer_unk(const tg_tokenizer *t) {
    return t->unk;
}

bool tg_tokenizer_is_special(const tg_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->size && t->special[id];
}

void tg_tokenizer_set_pad_as_eos(tg_tokenizer *t) {
    if (t->pad < 0) t->pad = t->eos;
}

int64_t tg_tokenizer_max_length(const tg_tokenizer *t) {
    return t->max_length;
}

const char *tg_tokenizer_token(const tg_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->size ? t->token[id] : NULL;
}

int32_t tg_tokenizer_id(const tg_tokenizer *t, const char *token) {
    const tg_added_token *added = tg_added_find(&t->added, token, strlen(token));
    return added ? added->id : tg_vocab_id(&t->model->vocab, token, strlen(token));
}

uint64_t tg_tokenizer_digest(const tg_tokenizer *t) {
    tg_buf json = {0};
    tg_tokenizer_write_json(t, &json);
    if (t->target) tg_tokenizer_write_json(t->target, &json);
    int32_t special[4] = {t->bos, t->eos, t->pad, t->unk};
    tg_buf_append(&json, special, sizeof special);
    /* A setting that tokenizer_config.json may change after the pre-tokenizer was read. */
    tg_buf_putc(&json, t->pretok.n && t->pretok.part[t->pretok.n - 1].prefix_space);
    uint64_t digest = json.failed ? 0 : tg_hash64(json.data, json.len);
    tg_buf_fini(&json);
    return digest;
}

void tg_tokenizer_destroy(tg_tokenizer **tp) {
    tg_tokenizer *t = *tp;
    if (!t) return;
    *tp = NULL;
    tg_added_fini(&t->added);
    tg_normalizer_fini(&t->normalizer);
    tg_pretok_fini(&t->pretok);
    tg_text_model_destroy(&t->model);
    tg_postproc_fini(&t->postproc);
    tg_text_decoder_fini(&t->decoder);
    tg_free(t->token);
    tg_free(t->special);
    tg_free(t->config_json);
    tg_free(t->special_json);
    tg_free(t->chat_template);
    tg_free(t->vocab_json);
    tg_buf_fini(&t->spm);
    tg_tokenizer_destroy(&t->target);
    if (t->pool) tg_scratch_pool_fini(t->pool);
    tg_free(t->pool);
    tg_free(t);
}
