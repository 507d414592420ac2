/* Building the corpus once, at the start: epochs only permute it. */
#include "learner/train/corpus.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

typedef struct builder {
    tg_corpus *c;
    const tg_tokenizer *tokenizer;
    const tg_corpus_opts *opts;
    tg_buf text;
    tg_ids ids;
    int64_t used, cap, cap_texts;
} builder;

static bool room_for(builder *b, int64_t tokens) {
    if (b->used + tokens > b->cap) {
        int64_t cap = TG_MAX(b->used + tokens, 2 * b->cap);
        int32_t *grown = tg_realloc_array(b->c->tokens, (size_t)cap, sizeof *grown);
        if (!grown) return false;
        b->c->tokens = grown;
        b->cap = cap;
    }
    if (b->c->n + 2 > b->cap_texts) {
        int64_t cap = TG_MAX(b->c->n + 2, 2 * b->cap_texts);
        int64_t *grown = tg_realloc_array(b->c->start, (size_t)cap, sizeof *grown);
        if (!grown) return false;
        b->c->start = grown;
        b->cap_texts = cap;
    }
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
    if (!room_for(b, (int64_t)keep)) return tg_fail_nomem(err, keep * 4);
    const int32_t *from = b->ids.data + (b->opts->truncate_left ? b->ids.n - keep : 0);
    memcpy(b->c->tokens + b->used, from, keep * sizeof *from);
    b->c->start[b->c->n++] = b->used;
    b->used += (int64_t)keep;
    b->c->start[b->c->n] = b->used;
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
            st = add_text(&b, s->prompt_text, s->references[r], err);
    }
    tg_buf_fini(&b.text);
    tg_ids_fini(&b.ids);
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
    *c = (tg_corpus){0};
}

tg_status tg_packer_init(tg_packer *p, int max_tokens, tg_error *err) {
    size_t n = (size_t)max_tokens;
    *p = (tg_packer){.caps = {max_tokens, max_tokens, max_tokens}};
    p->tokens = tg_alloc_array(n, sizeof *p->tokens);
    p->offsets = tg_alloc_array(n + 1, sizeof *p->offsets);
    p->act_row = tg_alloc_array(n, sizeof *p->act_row);
    p->act_token = tg_alloc_array(n, sizeof *p->act_token);
    tg_packer_reset(p);
    if (p->tokens && p->offsets && p->act_row && p->act_token) return TG_OK;
    tg_packer_fini(p);
    return tg_fail_nomem(err, n * 16);
}

void tg_packer_fini(tg_packer *p) {
    tg_free(p->tokens);
    tg_free(p->offsets);
    tg_free(p->act_row);
    tg_free(p->act_token);
    *p = (tg_packer){0};
}

void tg_packer_reset(tg_packer *p) {
    p->batch = (tg_batch){.tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->act_row,
                          .act_token = p->act_token};
}

bool tg_packer_add(tg_packer *p, const tg_corpus *c, int64_t text, int32_t ignored) {
    tg_batch *b = &p->batch;
    const int32_t *from = c->tokens + c->start[text];
    int rows = (int)(c->start[text + 1] - c->start[text]) - 1; /* the last token predicts nothing */
    if (b->n_tokens + rows > p->caps.tokens) return false;
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
