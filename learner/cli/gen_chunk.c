/* Result k of line i draws from stream number i * num_return_sequences + k, so it does not depend on the chunking. */
#include "learner/cli/gen_chunk.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <stdio.h>
#include <string.h>

enum { RESULTS = 1 << 20, SLOTS = 32, LEN_STEP = 64 };

tg_status tg_gen_chunk_init(tg_gen_chunk *c, tg_cli_model *model, const tg_gen_settings *settings,
                            uint64_t seed, int max_lines, tg_error *err) {
    const int64_t per_line = settings->num_return_sequences;
    *c = (tg_gen_chunk){
        .model = model,
        .settings = settings,
        .seed = seed,
        .per_line = per_line,
        .cap = (int)TG_MAX(TG_MIN(RESULTS / per_line, (int64_t)max_lines), (int64_t)1)};
    c->lines = tg_alloc_array((size_t)c->cap, sizeof *c->lines);
    c->results = tg_alloc_array((size_t)c->cap * (size_t)per_line, sizeof *c->results);
    return c->lines && c->results
               ? TG_OK
               : tg_fail_nomem(err, (size_t)c->cap * (size_t)per_line * sizeof *c->results);
}

static void forget_results(tg_gen_chunk *c) {
    for (int64_t i = 0; i < c->cap * c->per_line; i++) {
        tg_free(c->results[i].tokens);
        tg_free(c->results[i].logp);
        tg_free(c->results[i].sample_logp);
        c->results[i] = (tg_gen_text){0};
    }
}

void tg_gen_chunk_fini(tg_gen_chunk *c) {
    if (c->results) forget_results(c);
    tg_generator_destroy(&c->generator);
    tg_ids_fini(&c->ids);
    tg_free(c->lines);
    tg_free(c->results);
}

static void mark_bad(tg_gen_chunk *c, tg_gen_line *l, const tg_error *why) {
    l->bad = true;
    c->n_bad++;
    snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, why->msg);
}

/* An empty prompt begins with bos. */
static tg_status add_bos(tg_gen_chunk *c, tg_gen_line *l) {
    const tg_arch *arch = &c->model->model->arch;
    const int32_t bos = c->settings->bos_id >= 0 ? c->settings->bos_id : arch->bos_id;
    const int vocab = tg_cli_model_vocab(c->model);
    tg_error why;
    if (bos >= 0 && bos < vocab) return tg_ids_push(&c->ids, bos) ? TG_OK : TG_NOMEM;
    if (bos < 0)
        (void)tg_fail(&why, TG_DATA,
                      "the prompt is empty, and the model has no bos_token_id to begin with; give "
                      "one of either");
    else
        (void)tg_fail(&why, TG_DATA,
                      "the prompt is empty, and bos_token_id, with which it would begin, is %d: "
                      "the model has tokens 0 to %d",
                      bos, vocab - 1);
    mark_bad(c, l, &why);
    return TG_OK;
}

tg_status tg_gen_chunk_add(tg_gen_chunk *c, long number, size_t first, tg_status st,
                           const tg_error *why) {
    tg_gen_line *l = &c->lines[c->n++];
    *l = (tg_gen_line){.number = number, .first = first};
    if (st == TG_NOMEM) return st;
    if (st != TG_OK) {
        mark_bad(c, l, why);
        c->ids.n = first;
    } else if (c->ids.n == first) {
        st = add_bos(c, l);
    }
    l->n = c->ids.n - first;
    return st == TG_NOMEM ? st : TG_OK;
}

/* Room for the chunk's prompts and results, or as much as the model has positions. */
static tg_decoder_caps caps_needed(tg_gen_chunk *c) {
    const tg_arch *arch = &c->model->model->arch;
    bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    const int64_t limit = tg_arch_longest(arch), step = LEN_STEP;
    int64_t len = 1, src = 1, wanted = 0;
    for (int i = 0; i < c->n; i++) {
        const tg_gen_line *l = &c->lines[i];
        if (l->bad) continue;
        int n_prompt = seq2seq ? 1 : (int)l->n;
        int64_t need = n_prompt + tg_gen_max_new(c->settings, n_prompt) - 1;
        if (need <= limit) len = TG_MAX(len, need);
        if ((int64_t)l->n <= limit) src = TG_MAX(src, (int64_t)l->n);
        wanted += c->per_line * c->settings->num_beams;
    }
    tg_cli_model_check_length(c->model, "generate", len);
    return (tg_decoder_caps){.slots = (int)TG_MAX(TG_MIN(wanted, (int64_t)SLOTS), 1),
                             .len = (int)TG_MIN((len + step - 1) / step * step, limit),
                             .src =
                                 seq2seq ? (int)TG_MIN((src + step - 1) / step * step, limit) : 0};
}

static tg_status make_room(tg_gen_chunk *c, tg_error *err) {
    tg_decoder_caps need = caps_needed(c), *have = &c->caps;
    if (c->generator && need.slots <= have->slots && need.len <= have->len && need.src <= have->src)
        return TG_OK;
    tg_generator_destroy(&c->generator);
    *have = (tg_decoder_caps){.slots = TG_MAX(need.slots, have->slots),
                              .len = TG_MAX(need.len, have->len),
                              .src = TG_MAX(need.src, have->src)};
    return tg_generator_create(&c->generator, c->model->model, c->settings, *have, err);
}

static tg_status add_lines(tg_gen_chunk *c, int first, int end, tg_error *err) {
    for (int i = first; i < end; i++) {
        tg_gen_line *l = &c->lines[i];
        if (l->bad) continue;
        tg_error why = {0};
        tg_status st =
            tg_generator_add(c->generator, (uint64_t)i, c->ids.data + l->first, (int)l->n, c->seed,
                             TG_RNG_EVAL, c->before + (uint64_t)i, &why);
        if (st == TG_NOMEM) return tg_fail_nomem(err, l->n * sizeof(int32_t));
        if (st != TG_OK) mark_bad(c, l, &why);
    }
    return TG_OK;
}

static tg_status keep_result(void *arg, const tg_gen_result *r, tg_error *err) {
    tg_gen_chunk *c = arg;
    tg_gen_text *t = &c->results[(int64_t)r->id * c->per_line + r->index];
    size_t n = (size_t)r->n;
    *t = (tg_gen_text){.n = r->n, .score = r->score, .end = r->end};
    t->tokens = tg_alloc_array(n + 1, sizeof *t->tokens);
    t->logp = tg_alloc_array(n + 1, sizeof *t->logp);
    t->sample_logp = tg_alloc_array(n + 1, sizeof *t->sample_logp);
    if (!t->tokens || !t->logp || !t->sample_logp) return tg_fail_nomem(err, n * 12);
    if (!n) return TG_OK;
    memcpy(t->tokens, r->tokens, n * sizeof *t->tokens);
    memcpy(t->logp, r->logp, n * sizeof *t->logp);
    memcpy(t->sample_logp, r->sample_logp, n * sizeof *t->sample_logp);
    return TG_OK;
}

static tg_status run_lines(tg_gen_chunk *c, int first, int end, tg_error *err) {
    tg_status st = add_lines(c, first, end, err);
    while (st == TG_OK && tg_generator_active(c->generator))
        st = tg_generator_advance(c->generator, keep_result, c, err);
    if (st != TG_OK) tg_generator_destroy(&c->generator); /* it cannot go on */
    return st;
}

/* After a sequence that found no next token, which ends all that run beside it: only its own line has no result then. */
static tg_status run_one_by_one(tg_gen_chunk *c, tg_error *err) {
    forget_results(c);
    for (int i = 0; i < c->n; i++) {
        tg_status st = make_room(c, err);
        if (st != TG_OK) return st;
        st = run_lines(c, i, i + 1, err);
        if (st == TG_DATA)
            mark_bad(c, &c->lines[i], err);
        else if (st != TG_OK)
            return st;
    }
    return TG_OK;
}

tg_status tg_gen_chunk_run(tg_gen_chunk *c, tg_error *err) {
    if (!c->n) return TG_OK;
    tg_status st = make_room(c, err);
    if (st != TG_OK) return st;
    st = run_lines(c, 0, c->n, err);
    return st == TG_DATA ? run_one_by_one(c, err) : st;
}

const tg_gen_text *tg_gen_chunk_result(const tg_gen_chunk *c, int i, int64_t k) {
    return &c->results[i * c->per_line + k];
}

void tg_gen_chunk_clear(tg_gen_chunk *c) {
    forget_results(c);
    c->before += (uint64_t)c->n;
    c->n = 0;
    c->ids.n = 0;
}
