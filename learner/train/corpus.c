/* Building the corpus once, at the start: epochs only permute it. */
#include "learner/train/corpus.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/text/encode.h"

#include <string.h>

typedef struct builder {
    tg_corpus *c;
    const tg_tokenizer *tokenizer;
    const tg_corpus_opts *opts;
    tg_buf text;
    tg_ids ids;
    tg_encodings rows; /* seq2seq */
    struct list {
        int64_t used, cap, cap_texts;
    } texts, sources;
} builder;

static bool grow(int32_t **tokens, int64_t **start, struct list *l, int64_t n, int64_t more) {
    if (l->used + more > l->cap) {
        int64_t cap = TG_MAX(l->used + more, 2 * l->cap);
        int32_t *grown = tg_realloc_array(*tokens, (size_t)cap, sizeof *grown);
        if (!grown) return false;
        *tokens = grown;
        l->cap = cap;
    }
    if (n + 2 > l->cap_texts) {
        int64_t cap = TG_MAX(n + 2, 2 * l->cap_texts);
        int64_t *grown = tg_realloc_array(*start, (size_t)cap, sizeof *grown);
        if (!grown) return false;
        *start = grown;
        l->cap_texts = cap;
    }
    return true;
}

/* Text c->n of a list, made of one token (-1: none) and n others. */
static bool append(int32_t **tokens, int64_t **start, struct list *l, int64_t at, int32_t first,
                   const int32_t *ids, size_t n) {
    int64_t all = (int64_t)n + (first >= 0);
    if (!grow(tokens, start, l, at, all)) return false;
    (*start)[at] = l->used;
    if (first >= 0) (*tokens)[l->used] = first;
    memcpy(*tokens + l->used + (first >= 0), ids, n * sizeof *ids);
    l->used += all;
    (*start)[at + 1] = l->used;
    return true;
}

static tg_status add_text(builder *b, const char *prompt, const char *reference, tg_error *err) {
    b->ids.n = 0;
    tg_buf_reset(&b->text);
    tg_buf_puts(&b->text, prompt);
    tg_buf_puts(&b->text, reference);
    if (b->text.failed) return tg_fail_nomem(err, b->text.len);
    tg_status st = tg_tokenizer_encode(b->tokenizer, b->text.data ? b->text.data : "", b->text.len,
                                       TG_ENCODE_SPECIAL, &b->ids, err);
    if (st != TG_OK) return st;
    int32_t eos = tg_tokenizer_eos(b->tokenizer);
    bool has_eos =
        b->ids.n && b->ids.data[b->ids.n - 1] == eos; /* T5's post-processor adds it by itself */
    if (b->opts->add_eos && eos >= 0 && !has_eos && !tg_ids_push(&b->ids, eos))
        return tg_fail_nomem(err, b->ids.n * 4);
    if (b->ids.n < 2) {
        b->c->n_dropped++;
        return TG_OK;
    }
    size_t keep = TG_MIN(b->ids.n, (size_t)b->opts->max_length);
    b->c->n_truncated += keep < b->ids.n;
    const int32_t *from = b->ids.data + (b->opts->truncate_left ? b->ids.n - keep : 0);
    if (!append(&b->c->tokens, &b->c->start, &b->texts, b->c->n, -1, from, keep))
        return tg_fail_nomem(err, keep * 4);
    b->c->n++;
    return TG_OK;
}

/* One text, cut as transformers does: special tokens stay. */
static tg_status encode_row(builder *b, const tg_tokenizer *t, const char *text, tg_error *err) {
    tg_encode_options o = tg_encode_defaults(t);
    tg_text row = {.s = text, .len = strlen(text)};
    o.max_length = INT64_MAX;
    tg_status st = tg_tokenizer_encode_batch(t, &row, 1, &o, NULL, &b->rows, err);
    if (st != TG_OK || b->rows.start[1] <= (size_t)b->opts->max_length) return st;
    o.truncate = true;
    o.truncate_left = b->opts->truncate_left;
    o.max_length = b->opts->max_length;
    b->c->n_truncated++;
    return tg_tokenizer_encode_batch(t, &row, 1, &o, NULL, &b->rows, err);
}

static tg_status add_pair(builder *b, const char *prompt, const char *reference, tg_error *err) {
    tg_corpus *c = b->c;
    tg_status st = encode_row(b, b->tokenizer, prompt, err);
    if (st != TG_OK) return st;
    const int64_t used = b->sources.used;
    const size_t source = b->rows.start[1];
    if (!append(&c->src, &c->src_start, &b->sources, c->n, -1, b->rows.ids, source))
        return tg_fail_nomem(err, source * 4);
    st = encode_row(b, tg_tokenizer_target(b->tokenizer), reference, err);
    if (st != TG_OK) return st;
    const size_t n = b->rows.start[1];
    b->ids.n = 0;
    for (size_t i = 0; i < n; i++)
        if (!tg_ids_push(&b->ids, b->rows.ids[i])) return tg_fail_nomem(err, n * 4);
    const bool wraps = b->opts->wraps;
    int32_t eos = tg_tokenizer_eos(b->tokenizer);
    bool room = n < (size_t)b->opts->max_length, ends = n && b->rows.ids[n - 1] == eos;
    ends |= wraps && n > 1 && b->rows.ids[n - 2] == eos; /* a language may follow it */
    if (b->opts->add_eos && eos >= 0 && !ends && room && !tg_ids_push(&b->ids, eos))
        return tg_fail_nomem(err, n * 4);
    if (!source || !b->ids.n) {
        b->sources.used = used;
        c->n_dropped++;
        return TG_OK;
    }
    const int32_t first = wraps ? b->ids.data[b->ids.n - 1] : b->opts->start_id;
    if (!append(&c->tokens, &c->start, &b->texts, c->n, first, b->ids.data, b->ids.n))
        return tg_fail_nomem(err, n * 4);
    c->n++;
    return TG_OK;
}

tg_status tg_corpus_build(tg_corpus *c, const tg_split_samples *samples,
                          const tg_tokenizer *tokenizer, const tg_corpus_opts *opts,
                          tg_error *err) {
    *c = (tg_corpus){0};
    builder b = {.c = c, .tokenizer = tokenizer, .opts = opts};
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < samples->n; i++) {
        const tg_sample *s = samples->all[i];
        for (size_t r = 0; st == TG_OK && r < s->n_references; r++)
            st = (opts->start_id < 0 ? add_text : add_pair)(&b, s->prompt_text, s->references[r],
                                                            err);
    }
    tg_buf_fini(&b.text);
    tg_ids_fini(&b.ids);
    tg_encodings_fini(&b.rows);
    if (st == TG_OK && c->n == 0)
        st = tg_fail(err, TG_DATA,
                     "the data pool has no text to learn from: %zu samples, and none has a "
                     "reference of two tokens or "
                     "more",
                     samples->n);
    if (st != TG_OK) tg_corpus_fini(c);
    return st;
}

void tg_corpus_fini(tg_corpus *c) {
    tg_free(c->tokens);
    tg_free(c->start);
    tg_free(c->src);
    tg_free(c->src_start);
    *c = (tg_corpus){0};
}

tg_status tg_packer_init(tg_packer *p, tg_pass_caps caps, tg_error *err) {
    size_t n = (size_t)caps.tokens;
    *p = (tg_packer){.caps = caps};
    p->tokens = tg_alloc_array(n, sizeof *p->tokens);
    p->offsets = tg_alloc_array(n + 1, sizeof *p->offsets);
    p->act_row = tg_alloc_array(n, sizeof *p->act_row);
    p->act_token = tg_alloc_array(n, sizeof *p->act_token);
    p->src_tokens = tg_alloc_array((size_t)caps.src + 1, sizeof *p->src_tokens);
    p->src_offsets = tg_alloc_array(n + 1, sizeof *p->src_offsets);
    tg_packer_reset(p);
    if (p->tokens && p->offsets && p->act_row && p->act_token && p->src_tokens && p->src_offsets)
        return TG_OK;
    tg_packer_fini(p);
    return tg_fail_nomem(err, n * 16);
}

void tg_packer_fini(tg_packer *p) {
    tg_free(p->tokens);
    tg_free(p->offsets);
    tg_free(p->act_row);
    tg_free(p->act_token);
    tg_free(p->src_tokens);
    tg_free(p->src_offsets);
    *p = (tg_packer){0};
}

void tg_packer_reset(tg_packer *p) {
    p->batch = (tg_batch){.tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->act_row,
                          .act_token = p->act_token,
                          .src_tokens = p->src_tokens,
                          .src_offsets = p->src_offsets};
}

static void add_source(tg_packer *p, const tg_corpus *c, int64_t text, int n) {
    tg_batch *b = &p->batch;
    memcpy(p->src_tokens + b->n_src, c->src + c->src_start[text], (size_t)n * sizeof *c->src);
    b->n_src += n;
    p->src_offsets[0] = 0;
    p->src_offsets[b->n_seqs + 1] = b->n_src;
}

bool tg_packer_add(tg_packer *p, const tg_corpus *c, int64_t text, int32_t ignored) {
    tg_batch *b = &p->batch;
    const int32_t *from = c->tokens + c->start[text];
    int rows = (int)(c->start[text + 1] - c->start[text]) - 1; /* the last token predicts nothing */
    int source = c->src ? (int)(c->src_start[text + 1] - c->src_start[text]) : 0;
    if (b->n_tokens + rows > p->caps.tokens || b->n_src + source > p->caps.src) return false;
    if (source) add_source(p, c, text, source);
    memcpy(p->tokens + b->n_tokens, from, (size_t)rows * sizeof *from);
    for (int i = 0; i < rows; i++) {
        if (from[i + 1] == ignored) continue;
        p->act_row[b->n_actions] = b->n_tokens + i;
        p->act_token[b->n_actions++] = from[i + 1];
    }
    b->n_tokens += rows;
    p->offsets[0] = 0;
    p->offsets[++b->n_seqs] = b->n_tokens;
    return true;
}
