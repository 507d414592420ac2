/* Group (diverse) beam search (Vijayakumar et al. 2016) as in transformers 4.46 (_group_beam_search with BeamSearchScorer), the last
 * version series that has it: finished results keep a worst score each group is measured by, and a group that is done goes on
 * choosing padding, which the groups behind it avoid like any other token. */
#include "learner/policy/beam_impl.h"

#include "common/base/check.h"

#include <math.h>

static double length_factor(const tg_beams *b, int n_new) {
    return pow((double)n_new, b->s->length_penalty);
}

/* b->spare, whose score is set, joins the group's finished ones, and if they are too many the worst leaves. */
static void add_finished(tg_beams *b, tg_beam_group *g) {
    tg_hypothesis **list = b->finished + g->first, *h = b->spare;
    if (g->n_finished < g->n) {
        b->spare = list[g->n_finished];
        list[g->n_finished++] = h;
        g->worst = fmin(g->worst, h->score);
        return;
    }
    if (!(h->score > g->worst)) return;
    int worst = 0;
    for (int i = 1; i < g->n; i++)
        if (list[i]->score < list[worst]->score) worst = i;
    b->spare = list[worst];
    for (int i = worst; i + 1 < g->n; i++) list[i] = list[i + 1];
    list[g->n - 1] = h;
    g->worst = list[0]->score;
    for (int i = 1; i < g->n; i++) g->worst = fmin(g->worst, list[i]->score);
}

/* `best`: the largest sum of this step. */
static bool group_done(const tg_beams *b, const tg_beam_group *g, float best) {
    if (g->n_finished < g->n) return false;
    if (b->s->early == TG_STOP_EARLY) return true;
    bool at_limit = b->s->early == TG_STOP_NEVER && b->s->length_penalty > 0;
    return g->worst >= (double)best / length_factor(b, at_limit ? b->p.max_new : b->step + 1);
}

/* Whichever end token it was, the result ends with the first of them, and has that one's log-prob. */
static void end_with_first(const tg_beams *b, const float *logits, tg_candidate *c) {
    const int32_t end = b->s->eos_ids[0];
    if (end != c->token && end < b->V) c->logp += logits[end] - logits[c->token];
    c->token = end;
}

/* End tokens among the best finish a result; the others become the group's beams, in order. */
static void take_candidates(tg_beams *b, tg_beam_group *g, const float *const *rows) {
    int n = 0;
    for (int i = 0; i < b->n_candidates && n < g->n; i++) {
        tg_candidate c = b->candidates[i];
        if (tg_gen_is_eos(b->s, c.token)) {
            if (i >= g->n) continue;
            end_with_first(b, rows[c.beam], &c);
            tg_beams_extend(b, b->spare, &c);
            b->spare->score = (double)c.sum / length_factor(b, b->step + 1);
            b->spare->end = TG_END_EOS;
            add_finished(b, g);
        } else {
            int at = g->first + n++;
            tg_beams_extend(b, b->next[at], &c);
            b->parent[at] = c.beam;
        }
    }
    for (int i = 0; i < g->n; i++) b->live[g->first + i] = i < n;
    g->done = group_done(b, g, b->n_candidates ? b->candidates[0].sum : -INFINITY);
}

/* One token for each group in turn: a group sees what those before it chose. */
static tg_status choose(tg_beams *b, const float *const *rows, tg_gen_space *w, tg_error *err) {
    int32_t *chosen = b->chosen;
    for (int k = 0; k < b->n_groups; k++) {
        tg_beam_group *g = &b->groups[k];
        bool was_done = g->done;
        if (!was_done) {
            tg_status st = tg_beams_gather(b, g, rows, chosen, g->first, w, err);
            if (st != TG_OK) return st;
            take_candidates(b, g, rows);
        }
        for (int i = g->first; i < g->first + g->n; i++) {
            const tg_hypothesis *h = b->next[i];
            int32_t padding = b->s->pad_id >= 0 ? b->s->pad_id : b->s->eos_ids[0];
            chosen[i] = was_done || !b->live[i] ? padding : h->tokens[h->n - 1];
        }
    }
    return TG_OK;
}

static void swap_in(tg_beams *b) {
    tg_hypothesis **old = b->beam;
    b->beam = b->next;
    b->next = old;
    for (int i = 0; i < b->n_beams; i++) b->sum[i] = b->live[i] ? (float)b->beam[i]->score : 0;
}

/* All running beams end here: by length, or all at once by a stop sequence. */
static bool all_end(const tg_beams *b) {
    bool pad_ends = b->s->pad_id < 0 || tg_gen_is_eos(b->s, b->s->pad_id);
    for (int k = 0; k < b->n_groups; k++) {
        const tg_beam_group *g = &b->groups[k];
        if (g->done && !pad_ends && b->step < b->p.max_new) return false;
        for (int i = g->first; !g->done && i < g->first + g->n; i++) {
            const tg_hypothesis *h = b->beam[i];
            if (b->live[i] &&
                tg_gen_ends(b->s, h->tokens, h->n, b->p.n, b->p.max_new) == TG_END_NONE)
                return false;
        }
    }
    return true;
}

/* The beams of groups that are not done are results as well; then the best of all groups, of equal ones the later. */
static void rank(tg_beams *b) {
    for (int k = 0; k < b->n_groups; k++) {
        tg_beam_group *g = &b->groups[k];
        for (int i = g->first; !g->done && i < g->first + g->n; i++) {
            if (!b->live[i]) continue;
            tg_hypothesis *h = b->beam[i];
            h->end = tg_gen_ends(b->s, h->tokens, h->n, b->p.n, b->p.max_new);
            h->score /= length_factor(b, b->step);
            b->beam[i] = b->spare;
            b->spare = h;
            add_finished(b, g);
        }
    }
    for (int k = 0; k < b->n_groups; k++) {
        const tg_beam_group *g = &b->groups[k];
        for (int i = 0; i < g->n_finished; i++) {
            tg_hypothesis *h = b->finished[g->first + i];
            int at = b->n_ranked++;
            for (; at > 0 && h->score >= b->ranked[at - 1]->score; at--)
                b->ranked[at] = b->ranked[at - 1];
            b->ranked[at] = h;
        }
    }
    b->n_ranked = TG_MIN(b->n_ranked, (int)b->s->num_return_sequences);
}

tg_status tg_group_beams_step(tg_beams *b, const float *const *rows, tg_gen_space *w,
                              tg_error *err) {
    tg_status st = choose(b, rows, w, err);
    if (st != TG_OK) return st;
    swap_in(b);
    b->step++;
    bool all_done = true;
    for (int k = 0; k < b->n_groups; k++) {
        const tg_beam_group *g = &b->groups[k];
        all_done = all_done && g->done;
        for (int i = g->first; g->done && i < g->first + g->n; i++) b->live[i] = false;
    }
    b->done = all_done || all_end(b);
    if (!b->done) return TG_OK;
    rank(b);
    return tg_beams_enough(b, err);
}
