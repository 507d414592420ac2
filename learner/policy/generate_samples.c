/* Single sequences. The first sample of a prompt is prefilled; the others take its cache over when a slot becomes free and draw from its
 * logits, which are kept until the last of them has started. The queue's order sees to it that until then some slot still begins with
 * that prompt. */
#include "learner/policy/generate_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <string.h>

tg_status tg_samples_create(tg_generator *g, tg_error *err) {
    size_t n = (size_t)g->n_slots, len = (size_t)g->max_len + 1;
    g->running = tg_alloc_array(n, sizeof *g->running);
    g->storage = tg_alloc_array(n * len, 4 * sizeof *g->storage);
    if (!g->running || !g->storage) return tg_fail_nomem(err, n * len * 16);
    for (size_t i = 0; i < n; i++) {
        g->running[i].tokens = g->storage + i * 4 * len;
        g->running[i].logp = (void *)(g->running[i].tokens + len);
        g->running[i].sample_logp = g->running[i].logp + len;
        g->running[i].value = g->running[i].sample_logp + len;
    }
    if (g->settings.num_return_sequences > 1) {
        g->shared = tg_alloc_array((size_t)g->V, sizeof *g->shared);
        if (!g->shared) return tg_fail_nomem(err, (size_t)g->V * sizeof *g->shared);
    }
    return TG_OK;
}

void tg_samples_destroy(tg_generator *g) {
    for (int i = 0; g->running && i < g->n_slots; i++) {
        tg_request *r = g->running[i].request;
        if (r && ++r->ended == r->started && r != g->first) tg_free(r); /* the queue has its own */
    }
    tg_free(g->running);
    tg_free(g->storage);
    tg_free(g->shared);
    g->running = NULL;
}

/* ---- starting ---------------------------------------------------------------------------------- */

static void begin(tg_generator *g, int slot, tg_request *r) {
    tg_running *q = &g->running[slot];
    q->request = r;
    q->index = r->started++;
    q->n_new = 0;
    memcpy(q->tokens, r->tokens, (size_t)r->n_prompt * sizeof *q->tokens);
}

/* A slot whose cache begins with the request's prompt: this one if it does. */
static int base_slot(const tg_generator *g, int slot, uint64_t serial) {
    if (g->running[slot].held == serial) return slot;
    for (int i = 0; i < g->n_slots; i++)
        if (g->running[i].held == serial) return i;
    TG_UNREACHABLE();
}

static tg_status take_over(tg_generator *g, int slot, const tg_request *r, tg_error *err) {
    int base = base_slot(g, slot, r->serial);
    tg_status st =
        tg_decoder_fork(g->decoder, base, slot, r->n_prompt, base == slot ? r->n_prompt : 0, err);
    g->running[slot].held = r->serial;
    return st;
}

/* Free slots take what is next in the queue. What starts from a prompt of an earlier step is set up before a prefill can overwrite it. */
static tg_status start(tg_generator *g, tg_error *err) {
    for (int i = 0; i < g->n_slots && tg_requests_head(g); i++) {
        if (g->running[i].request) continue;
        tg_request *r = tg_requests_head(g);
        tg_status st = TG_OK;
        if (!r->started)
            st = tg_batch_fill(g, i, r, err);
        else if (r->serial == g->shared_serial)
            st = take_over(g, i, r, err);
        if (st != TG_OK) return st;
        begin(g, i, r);
        if (r->started == g->settings.num_return_sequences) tg_requests_pop(g);
    }
    return TG_OK;
}

/* Entries of those that were not prefilled themselves, after the model ran: a prompt of this step is there now. */
static tg_status start_from_others(tg_generator *g, tg_error *err) {
    int n_run = g->n_entries;
    for (int k = g->n_step; k < n_run; k++) {
        tg_running *q = &g->running[g->entries[k].slot];
        q->held = q->request->serial;
    }
    for (int i = 0; i < g->n_slots; i++) {
        const tg_request *r = g->running[i].request;
        if (!r || g->running[i].n_new > 0 || g->running[i].index == 0) continue;
        tg_entry e = {i, g->shared_value, g->shared};
        if (r->serial != g->shared_serial) {
            tg_status st = take_over(g, i, r, err);
            if (st != TG_OK) return st;
            for (int k = g->n_step; k < n_run; k++)
                if (g->running[g->entries[k].slot].request == r)
                    e.row = g->entries[k].row, e.value = g->entries[k].value;
        }
        g->entries[g->n_entries++] = e;
    }
    return TG_OK;
}

/* The logits that samples of a later step will start from. */
static void keep_shared(tg_generator *g) {
    const tg_request *r = tg_requests_head(g);
    if (!r || !r->started || r->serial == g->shared_serial) return;
    for (int k = g->n_step; k < g->n_step + g->n_fill; k++) {
        if (g->running[g->entries[k].slot].request != r) continue;
        memcpy(g->shared, g->entries[k].row, (size_t)g->V * sizeof *g->shared);
        g->shared_value = g->entries[k].value;
        g->shared_serial = r->serial;
    }
}

/* ---- tokens ------------------------------------------------------------------------------------ */

static uint32_t *masks_of(const tg_generator *g, int slot) {
    return g->masks + (size_t)slot * (size_t)(g->max_len + 1) * (size_t)tg_mask_words(g->V);
}

/* The set for the entry's next token, kept with the sequence. */
static tg_sample_mask mask_of(tg_generator *g, int entry, const tg_gen_context *c,
                              tg_gen_space *w) {
    if (!g->mask_decoder) return (tg_sample_mask){0};
    int slot = g->entries[entry].slot;
    size_t words = (size_t)tg_mask_words(g->V);
    uint32_t *bits = masks_of(g, slot) + (size_t)g->running[slot].n_new * words;
    tg_mask_make(&g->mask, g->mask_logits + (size_t)entry * (size_t)g->V, g->entries[entry].row,
                 g->V, g->always, bits, w);
    tg_process_allow_forced(&g->settings, c, bits, g->V);
    return (tg_sample_mask){.allowed = bits, .left = g->mask.compat ? bits : NULL};
}

static tg_status draw(tg_generator *g, int entry, tg_gen_space *w, tg_error *err) {
    tg_running *q = &g->running[g->entries[entry].slot];
    const tg_request *r = q->request;
    uint64_t number = r->number * (uint64_t)g->settings.num_return_sequences + (uint64_t)q->index;
    tg_rng stream = tg_rng_at(r->seed, r->domain, number, (uint64_t)q->n_new);
    const tg_gen_context c = {.tokens = q->tokens,
                              .n = r->n_prompt + q->n_new,
                              .n_prompt = r->n_prompt,
                              .max_new = r->max_new,
                              .source = tg_request_source(r),
                              .n_source = r->n_source};
    tg_draw d;
    tg_sample_mask mask = mask_of(g, entry, &c, w);
    tg_status st = tg_sample(&g->settings, &c, g->entries[entry].row, g->V,
                             mask.allowed ? &mask : NULL, tg_rng_uniform(&stream), w, &d, err);
    if (st != TG_OK) return st;
    q->tokens[c.n] = d.token;
    q->logp[q->n_new] = d.logp;
    q->sample_logp[q->n_new] = d.sample_logp;
    q->value[q->n_new] = g->entries[entry].value;
    q->n_new++;
    return TG_OK;
}

static tg_status finish_ended(tg_generator *g, int slot, tg_gen_done *done, void *arg,
                              tg_error *err) {
    tg_running *q = &g->running[slot];
    tg_request *r = q->request;
    tg_gen_end end =
        tg_gen_ends(&g->settings, q->tokens, r->n_prompt + q->n_new, r->n_prompt, r->max_new);
    if (end == TG_END_NONE) return TG_OK;
    q->request = NULL;
    g->tokens_done += q->n_new;
    tg_gen_result result = {.id = r->id,
                            .index = q->index,
                            .tokens = q->tokens + r->n_prompt,
                            .logp = q->logp,
                            .sample_logp = q->sample_logp,
                            .value = g->caps.values ? q->value : NULL,
                            .masks = g->mask_decoder ? masks_of(g, slot) : NULL,
                            .n = q->n_new,
                            .end = end,
                            .eos = end == TG_END_EOS,
                            .score = (double)NAN};
    if (++r->ended == g->settings.num_return_sequences) tg_requests_end(g, r);
    return done(arg, &result, err);
}

tg_status tg_samples_advance(tg_generator *g, tg_gen_done *done, void *arg, tg_error *err) {
    for (int i = 0; i < g->n_slots; i++) {
        const tg_running *q = &g->running[i];
        if (q->request) tg_batch_feed(g, i, q->tokens[q->request->n_prompt + q->n_new - 1]);
    }
    tg_status st = start(g, err);
    if (st == TG_OK) st = tg_batch_run(g, err);
    if (st == TG_OK) st = start_from_others(g, err);
    if (st == TG_OK) st = tg_batch_spread(g, g->n_entries, draw, err);
    if (st == TG_OK) keep_shared(g);
    for (int i = 0; i < g->n_entries && st == TG_OK; i++)
        st = finish_ended(g, g->entries[i].slot, done, arg, err);
    return st;
}
