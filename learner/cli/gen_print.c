#include "learner/cli/gen_print.h"

#include "common/config/json.h"
#include "common/config/jsonl.h"

#include <stdio.h>

static void put_numbers(tg_buf *out, const char *key, const float *values, int n) {
    tg_buf_printf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_json_number(out, (double)values[i]);
    }
    tg_buf_putc(out, ']');
}

static void put_json(const tg_gen_chunk *c, const tg_gen_text *t, const tg_buf *text, tg_buf *out) {
    static const char *const ends[] = {"none", "eos", "stop", "length"};
    tg_buf_puts(out, "{\"ids\": [");
    for (int i = 0; i < t->n; i++) tg_buf_printf(out, i ? ", %d" : "%d", t->tokens[i]);
    tg_buf_puts(out, "], \"text\": ");
    if (c->model->tokenizer)
        tg_json_string(out, text->data ? text->data : "", text->len);
    else
        tg_buf_puts(out, "null");
    put_numbers(out, "logprob", t->logp, t->n);
    if (c->settings->do_sample && c->settings->num_beams == 1)
        put_numbers(out, "sample_logprob", t->sample_logp, t->n);
    if (c->settings->num_beams > 1) {
        put_numbers(out, "step_score", t->sample_logp, t->n);
        tg_buf_puts(out, ", \"score\": ");
        tg_json_number(out, t->score);
    }
    tg_buf_printf(out, ", \"end\": \"%s\"}", ends[t->end]);
}

static tg_status print_result(const tg_gen_chunk *c, const tg_gen_text *t, bool jsonl, tg_buf *out,
                              tg_error *err) {
    const tg_tokenizer *tokenizer = c->model->tokenizer;
    tg_buf text = {0};
    tg_status st = TG_OK;
    if (tokenizer)
        st = tg_tokenizer_decode(tokenizer, t->tokens, (size_t)t->n, TG_DECODE_SKIP_SPECIAL, &text,
                                 err);
    if (st == TG_OK && !jsonl) {
        tg_buf_append(out, text.data, text.len);
        tg_buf_putc(out, '\n');
    } else if (st == TG_OK) {
        put_json(c, t, &text, out);
    }
    tg_buf_fini(&text);
    return st;
}

tg_status tg_gen_print_line(const tg_gen_chunk *c, int i, bool jsonl, tg_buf *out, tg_error *err) {
    const tg_gen_line *l = &c->lines[i];
    if (l->bad) {
        if (jsonl)
            tg_jsonl_put_error(out, l->number, l->why);
        else
            fprintf(stderr, "textgen generate: line %ld: %s\n", l->number, l->why);
        return TG_OK;
    }
    bool list = jsonl && c->per_line > 1;
    tg_status st = TG_OK;
    if (list) tg_buf_putc(out, '[');
    for (int64_t k = 0; k < c->per_line && st == TG_OK; k++) {
        if (list && k) tg_buf_puts(out, ", ");
        st = print_result(c, tg_gen_chunk_result(c, i, k), jsonl, out, err);
    }
    if (list) tg_buf_putc(out, ']');
    if (jsonl) tg_buf_putc(out, '\n');
    return st;
}
