/* Beam searches. A lane has as many slots as there are beams. A beam whose parent's slot nobody else continues stays there; the others
 * take the cache over, and of it only what their slot does not hold already: beams of one prompt have long beginnings in common. */
#include "learner/policy/generate_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

static tg_status lane_create(tg_generator *g, tg_lane *l, tg_error *err) {
    size_t n = (size_t)g->settings.num_beams;
    l->slot = tg_alloc_array(n, sizeof *l->slot);
    l->next = tg_alloc_array(n, sizeof *l->next);
    l->taken = tg_alloc_array(n, sizeof *l->taken);
    l->row = tg_alloc_array(n, sizeof *l->row);
    l->entry = tg_alloc_array(n, sizeof *l->entry);
    l->held = tg_alloc_array(n * (size_t)g->max_len, sizeof *l->held);
    l->n_held = tg_alloc_array(n, sizeof *l->n_held);
    if (!l->slot || !l->next || !l->taken || !l->row || !l->entry || !l->held || !l->n_held)
        return tg_fail_nomem(err, n * (size_t)g->max_len * sizeof *l->held);
    return tg_beams_create(&l->beams, &g->settings, g->V, g->max_len, err);
}

tg_status tg_lanes_create(tg_generator *g, tg_error *err) {
    int beams = (int)g->settings.num_beams;
    g->n_lanes = g->n_slots / beams;
    g->lanes = tg_alloc_array((size_t)g->n_lanes, sizeof *g->lanes);
    if (!g->lanes) return tg_fail_nomem(err, (size_t)g->n_lanes * sizeof *g->lanes);
    tg_status st = TG_OK;
    for (int i = 0; i < g->n_lanes && st == TG_OK; i++) {
        g->lanes[i].first = i * beams;
        st = lane_create(g, &g->lanes[i], err);
    }
    return st;
}

tg_status tg_lanes_mask(tg_generator *g, tg_error *err) {
    const size_t n = (size_t)g->settings.num_beams, words = (size_t)tg_mask_words(g->V);
    for (int i = 0; i < g->n_lanes; i++) {
        tg_lane *l = &g->lanes[i];
        l->masks = tg_alloc_array(n, sizeof *l->masks);
        if (!l->masks) return tg_fail_nomem(err, n * sizeof *l->masks);
        for (size_t k = 0; k < n; k++) l->masks[k] = g->masks + ((size_t)l->first + k) * words;
        tg_beams_allow(l->beams, (const uint32_t *const *)l->masks);
    }
    return TG_OK;
}

void tg_lanes_destroy(tg_generator *g) {
    for (int i = 0; g->lanes && i < g->n_lanes; i++) {
        tg_lane *l = &g->lanes[i];
        tg_beams_destroy(&l->beams);
        tg_free(l->request);
        tg_free(l->slot);
        tg_free(l->next);
        tg_free(l->taken);
        tg_free(l->row);
        tg_free(l->entry);
        tg_free(l->masks);
        tg_free(l->held);
        tg_free(l->n_held);
    }
    tg_free(g->lanes);
    g->lanes = NULL;
}

static int32_t *held(const tg_generator *g, const tg_lane *l, int slot) {
    return l->held + (size_t)(slot - l->first) * (size_t)g->max_len;
}

/* ---- batch ------------------------------------------------------------------------------------- */

static void feed_lane(tg_generator *g, tg_lane *l) {
    for (int i = 0; i < (int)g->settings.num_beams; i++) {
        tg_beam beam = tg_beams_get(l->beams, i);
        if (!beam.live) continue;
        int slot = l->slot[i];
        int32_t token = beam.h->tokens[beam.h->n - 1];
        tg_batch_feed(g, slot, token);
        held(g, l, slot)[l->n_held[slot - l->first]++] = token;
    }
}

static tg_status start_lane(tg_generator *g, tg_lane *l, tg_error *err) {
    tg_request *r = l->request = tg_requests_pop(g);
    const tg_beam_prompt p = {.tokens = r->tokens,
                              .n = r->n_prompt,
                              .max_new = r->max_new,
                              .source = tg_request_source(r),
                              .n_source = r->n_source,
                              .seed = r->seed,
                              .domain = r->domain,
                              .number = r->number * (uint64_t)g->settings.num_return_sequences};
    tg_beams_start(l->beams, &p);
    l->fresh = true;
    for (int i = 0; i < (int)g->settings.num_beams; i++) {
        l->slot[i] = l->first; /* all continue the one that is prefilled */
        l->n_held[i] = i ? 0 : r->n_prompt;
    }
    memcpy(held(g, l, l->first), r->tokens, (size_t)r->n_prompt * sizeof *r->tokens);
    return tg_batch_fill(g, l->first, r, err);
}

/* Hands every beam its row: entries are in the order in which the lanes made them. */
static void hand_out_rows(tg_generator *g) {
    for (int fresh = 0, at = 0; fresh < 2; fresh++) {
        for (int k = 0; k < g->n_lanes; k++) {
            tg_lane *l = &g->lanes[k];
            if (!l->request || l->fresh != fresh) continue;
            for (int i = 0; i < (int)g->settings.num_beams; i++) {
                bool live = tg_beams_get(l->beams, i).live;
                l->row[i] = fresh || live ? g->entries[at].row : NULL;
                l->entry[i] = at;
                at += !fresh && live;
            }
            at += fresh;
        }
    }
}

static void make_mask(tg_generator *g, tg_lane *l, int beam, tg_gen_space *w) {
    const tg_hypothesis *h = tg_beams_get(l->beams, beam).h;
    const tg_gen_context c = {.tokens = h->tokens,
                              .n = h->n,
                              .n_prompt = l->request->n_prompt,
                              .max_new = l->request->max_new};
    tg_mask_make(&g->mask, g->mask_logits + (size_t)l->entry[beam] * (size_t)g->V, l->row[beam],
                 g->V, g->always, l->masks[beam], w);
    tg_process_allow_forced(&g->settings, &c, l->masks[beam], g->V);
}

static tg_status step_lane(tg_generator *g, int lane, tg_gen_space *w, tg_error *err) {
    tg_lane *l = &g->lanes[lane];
    if (!l->request) return TG_OK;
    for (int i = 0; l->masks && i < (int)g->settings.num_beams; i++)
        if (l->row[i]) make_mask(g, l, i, w);
    return tg_beams_step(l->beams, l->row, w, err);
}

/* ---- slots ------------------------------------------------------------------------------------- */

static int common_prefix(const int32_t *a, int n_a, const int32_t *b, int n_b) {
    int n = 0;
    while (n < n_a && n < n_b && a[n] == b[n]) n++;
    return n;
}

static tg_status take_over(tg_generator *g, tg_lane *l, int from, int to, tg_error *err) {
    int n = l->n_held[from - l->first], *n_to = &l->n_held[to - l->first];
    const int32_t *source = held(g, l, from);
    int32_t *target = held(g, l, to);
    int keep = common_prefix(source, n, target, *n_to);
    memcpy(target + keep, source + keep, (size_t)(n - keep) * sizeof *target);
    *n_to = n;
    tg_status st = tg_decoder_fork(g->decoder, from, to, n, keep, err);
    if (st == TG_OK && g->mask_decoder)
        st = tg_decoder_fork(g->mask_decoder, from, to, n, keep, err);
    return st;
}

/* A slot for every live beam that holds what its parent's does. */
static tg_status reorder(tg_generator *g, tg_lane *l, tg_error *err) {
    int n = (int)g->settings.num_beams;
    memset(l->taken, 0, (size_t)n * sizeof *l->taken);
    for (int i = 0; i < n; i++) {
        tg_beam beam = tg_beams_get(l->beams, i);
        l->next[i] = -1;
        if (!beam.live) continue;
        int from = l->slot[beam.parent];
        if (l->taken[from - l->first]) continue;
        l->taken[from - l->first] = true;
        l->next[i] = from;
    }
    int unused = 0;
    for (int i = 0; i < n; i++) {
        tg_beam beam = tg_beams_get(l->beams, i);
        if (!beam.live || l->next[i] >= 0) continue;
        while (l->taken[unused]) unused++;
        l->taken[unused] = true;
        l->next[i] = l->first + unused;
        tg_status st = take_over(g, l, l->slot[beam.parent], l->next[i], err);
        if (st != TG_OK) return st;
    }
    memcpy(l->slot, l->next, (size_t)n * sizeof *l->slot);
    return TG_OK;
}

static tg_status finish_lane(tg_generator *g, tg_lane *l, tg_gen_done *done, void *arg,
                             tg_error *err) {
    tg_request *r = l->request;
    tg_status st = TG_OK;
    for (int k = 0; k < (int)g->settings.num_return_sequences && st == TG_OK; k++) {
        const tg_hypothesis *h = tg_beams_result(l->beams, k);
        tg_gen_result result = {.id = r->id, .index = k, .score = -1e9, .end = TG_END_NONE};
        if (h) {
            result.tokens = h->tokens + r->n_prompt;
            result.logp = h->logp;
            result.sample_logp = h->step;
            result.n = h->n - r->n_prompt;
            result.end = h->end;
            result.eos = h->end == TG_END_EOS;
            result.score = h->score;
        }
        g->tokens_done += result.n;
        st = done(arg, &result, err);
    }
    l->request = NULL;
    tg_requests_end(g, r);
    return st;
}

tg_status tg_lanes_advance(tg_generator *g, tg_gen_done *done, void *arg, tg_error *err) {
    tg_status st = TG_OK;
    for (int k = 0; k < g->n_lanes; k++) {
        g->lanes[k].fresh = false;
        if (g->lanes[k].request) feed_lane(g, &g->lanes[k]);
    }
    for (int k = 0; k < g->n_lanes && st == TG_OK; k++)
        if (!g->lanes[k].request && tg_requests_head(g)) st = start_lane(g, &g->lanes[k], err);
    if (st == TG_OK) st = tg_batch_run(g, err);
    if (st != TG_OK) return st;
    hand_out_rows(g);
    st = tg_batch_spread(g, g->n_lanes, step_lane, err);
    for (int k = 0; k < g->n_lanes && st == TG_OK; k++) {
        tg_lane *l = &g->lanes[k];
        if (!l->request) continue;
        st = tg_beams_done(l->beams) ? finish_lane(g, l, done, arg, err) : reorder(g, l, err);
    }
    return st;
}
