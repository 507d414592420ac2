/* One look-up a piece. Read-only after reading. */
#include "common/text/wordlevel.h"

#include "common/base/alloc.h"

#include <string.h>

typedef struct wordlevel {
    tg_text_model base;
    char *unk_token;
    int32_t unk; /* -1: not in the vocabulary, an unknown piece is an error */
} wordlevel;

static tg_status encode(const tg_text_model *m, tg_scratch *s, tg_view piece, tg_sink *out,
                        tg_error *err) {
    const wordlevel *w = (const wordlevel *)m;
    (void)s;
    int32_t id = tg_vocab_id(&m->vocab, piece.s, piece.len);
    if (id < 0) id = w->unk;
    if (id < 0)
        return tg_fail(err, TG_DATA,
                       "model.unk_token: '%.40s' is not in the vocabulary, and the text holds a "
                       "word that is not, either",
                       w->unk_token);
    tg_span span = {0};
    if (piece.at) span = (tg_span){piece.at[0].start, piece.at[piece.len - 1].end};
    return tg_sink_put(out, id, span) ? TG_OK : tg_fail_nomem(err, 1);
}

static void destroy(tg_text_model *m) {
    wordlevel *w = (wordlevel *)m;
    tg_vocab_fini(&m->vocab);
    tg_free(w->unk_token);
    tg_free(w);
}

static void write_json(const tg_text_model *m, tg_buf *out) {
    const wordlevel *w = (const wordlevel *)m;
    tg_buf_puts(out, "{\"type\":\"WordLevel\",\"vocab\":");
    tg_vocab_write_json(&m->vocab, out);
    tg_buf_puts(out, ",\"unk_token\":");
    tg_part_write_str(out, w->unk_token, strlen(w->unk_token));
    tg_buf_putc(out, '}');
}

static const tg_text_model_ops ops = {"WordLevel", encode, write_json, destroy};

tg_status tg_wordlevel_read(tg_text_model **out, const json_t *part, tg_error *err) {
    const char *unk = NULL;
    tg_status st = tg_part_check(part, "model", "type vocab unk_token", err);
    if (st == TG_OK) st = tg_part_str(part, "model", "unk_token", &unk, err);
    if (st != TG_OK) return st;
    wordlevel *w = tg_alloc(sizeof *w);
    if (!w) return tg_fail_nomem(err, sizeof *w);
    w->base.ops = &ops;
    w->unk_token = tg_strdup(unk ? unk : "<unk>");
    if (!w->unk_token) st = tg_fail_nomem(err, 0);
    if (st == TG_OK)
        st = tg_vocab_read(&w->base.vocab, json_object_get(part, "vocab"), "model.vocab", err);
    if (st == TG_OK) {
        w->unk = tg_vocab_id(&w->base.vocab, w->unk_token, strlen(w->unk_token));
        *out = &w->base;
    } else {
        destroy(&w->base);
    }
    return st;
}
