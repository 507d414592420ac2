/* Order and packing of minibatches.
 *
 * Invariant: an epoch visits every row exactly once, whatever the mode; the pieces of a minibatch
 * hold each of its rows once. */
#include "learner/rl/minibatch.h"

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/check.h"
#include "common/base/rng.h"
#include "learner/rl/pack.h"

#include <string.h>

/* A sequence of the minibatch being packed: the rows wanted of one episode. */
typedef struct wanted {
    int episode;
    int head, tail; /* chain of places through `next` */
    int n_actions, n_states;
} wanted;

struct tg_minibatch_state {
    const tg_rollout *r;
    tg_minibatch_mode mode;
    int batch_size;
    tg_pack pack;
    tg_arena arena;
    int32_t *episode_order; /* (n_episodes) scratch of shuffle */
    unsigned char *seen;    /* (max(n_rows, n_episodes)) scratch of shuffle */
    wanted *seqs;           /* (n_episodes) of the packed minibatch */
    int *seq_of;            /* (n_episodes): index into seqs, -1 none */
    int *next;              /* (n_rows): chain of places */
    int n_seqs, at_seq,
        first_row_of; /* packed minibatch: how many, next to emit, offset of its rows */
    int32_t *place;   /* of each action of the piece being emitted */
};

tg_minibatch_mode tg_minibatch_mode_find(const char *name) {
    return strcmp(name, "transition") == 0 ? TG_MINIBATCH_TRANSITION : TG_MINIBATCH_SEQUENCE;
}

tg_status tg_minibatches_create(tg_minibatches **out, const tg_rollout *r, tg_minibatch_mode mode,
                                int batch_size, tg_pass_caps caps, tg_error *err) {
    *out = NULL;
    tg_minibatches *m = tg_alloc(sizeof *m);
    struct tg_minibatch_state *s = tg_alloc(sizeof *s);
    if (!m || !s) {
        tg_free(m);
        tg_free(s);
        return tg_fail_nomem(err, sizeof *m + sizeof *s);
    }
    size_t rows = (size_t)r->n_rows, eps = (size_t)r->n_episodes;
    int max_batches = TG_MAX((r->n_rows + batch_size - 1) / batch_size, 1);
    m->state = s;
    s->r = r;
    s->mode = mode;
    s->batch_size = batch_size;
    m->rows = tg_arena_array(&s->arena, rows, sizeof(int32_t));
    m->first = tg_arena_array(&s->arena, (size_t)max_batches + 1, sizeof(int));
    s->episode_order = tg_arena_array(&s->arena, eps, sizeof(int32_t));
    s->seen = tg_arena_array(&s->arena, TG_MAX(rows, eps), 1);
    s->seqs = tg_arena_array(&s->arena, eps, sizeof(wanted));
    s->seq_of = tg_arena_array(&s->arena, eps, sizeof(int));
    s->next = tg_arena_array(&s->arena, rows, sizeof(int));
    s->place = tg_arena_array(&s->arena, (size_t)caps.actions, sizeof(int32_t));
    tg_status st = tg_pack_init(&s->pack, r, caps, &s->arena, err);
    if (st == TG_OK && (!m->rows || !m->first || !s->episode_order || !s->seen || !s->seqs ||
                        !s->seq_of || !s->next || !s->place))
        st = tg_fail_nomem(err, (size_t)caps.actions * 4 + rows * 16);
    if (st != TG_OK) {
        tg_minibatches_destroy(&m);
        return st;
    }
    *out = m;
    return TG_OK;
}

void tg_minibatches_destroy(tg_minibatches **m) {
    if (!*m) return;
    tg_arena_fini(&(*m)->state->arena);
    tg_free((*m)->state);
    tg_free(*m);
    *m = NULL;
}

/* ---- order ---- */

static void shuffle(int32_t *x, int n, tg_rng *rng) { /* Fisher and Yates */
    for (int i = n - 1; i > 0; i--) {
        int j = (int)tg_rng_below(rng, (uint64_t)i + 1);
        int32_t t = x[i];
        x[i] = x[j];
        x[j] = t;
    }
}

static tg_status given_rows(tg_minibatches *m, const tg_order *order, int epoch, tg_error *err) {
    struct tg_minibatch_state *s = m->state;
    int n = s->r->n_rows;
    if (epoch >= order->n_permutations)
        return tg_fail(err, TG_DATA, "epoch %d has no permutation: %d are given", epoch,
                       order->n_permutations);
    memset(s->seen, 0, (size_t)n);
    for (int i = 0; i < n; i++) {
        int32_t row = order->permutations[epoch][i];
        if (row < 0 || row >= n || s->seen[row])
            return tg_fail(err, TG_DATA,
                           "permutation %d: entry %d (row %d) is out of range or repeated; %d rows",
                           epoch, i, (int)row, n);
        s->seen[row] = 1;
        m->rows[i] = row;
    }
    return TG_OK;
}

static void cut_transitions(tg_minibatches *m) {
    struct tg_minibatch_state *s = m->state;
    m->n = 0;
    for (int at = 0; at < s->r->n_rows; at += s->batch_size) m->first[m->n++] = at;
    m->first[m->n] = s->r->n_rows;
}

/* Episodes of episode_order end to end; a cut falls between two whose middles lie in different
 * n-ths of the rows. */
static void cut_sequences(tg_minibatches *m, int n_episodes) {
    struct tg_minibatch_state *s = m->state;
    const int64_t rows = s->r->n_rows, wanted_n = (rows + s->batch_size - 1) / s->batch_size;
    int at = 0;
    int64_t current = -1;
    m->n = 0;
    for (int i = 0; i < n_episodes; i++) {
        const tg_episode *e = &s->r->episodes[s->episode_order[i]];
        int64_t bin = (2 * (int64_t)at + e->n_rows) * wanted_n / (2 * rows);
        if (bin != current) m->first[m->n++] = at;
        current = bin;
        for (int k = 0; k < e->n_rows; k++) m->rows[at++] = e->first_row + k;
    }
    m->first[m->n] = at;
}

tg_status tg_minibatches_shuffle(tg_minibatches *m, const tg_order *order, int epoch,
                                 tg_error *err) {
    struct tg_minibatch_state *s = m->state;
    const tg_rollout *r = s->r;
    tg_rng rng = tg_rng_at(order->seed, TG_RNG_MINIBATCH, order->iteration, (uint64_t)epoch);
    if (order->permutations) {
        tg_status st = given_rows(m, order, epoch, err);
        if (st != TG_OK) return st;
    } else {
        for (int i = 0; i < r->n_rows; i++) m->rows[i] = i;
    }
    if (s->mode == TG_MINIBATCH_TRANSITION) {
        if (!order->permutations) shuffle(m->rows, r->n_rows, &rng);
        cut_transitions(m);
        return TG_OK;
    }
    int n = 0; /* episodes with rows, by first appearance */
    memset(s->seen, 0, (size_t)r->n_episodes);
    for (int i = 0; i < r->n_rows; i++) {
        int32_t e = r->row_episode[m->rows[i]];
        if (!s->seen[e]) s->episode_order[n++] = e;
        s->seen[e] = 1;
    }
    if (!order->permutations) shuffle(s->episode_order, n, &rng);
    cut_sequences(m, n);
    return TG_OK;
}

/* The first n-th is as random as any; of single transitions take those that sb3-contrib takes, every n-th. */
tg_status tg_minibatches_draw(tg_minibatches **out, const tg_rollout *r, tg_minibatch_mode mode,
                              int share, tg_pass_caps caps, const tg_order *order, tg_error *err) {
    const int n = r->n_rows / share + (r->n_rows % share != 0);
    tg_minibatches *m;
    tg_status st = tg_minibatches_create(&m, r, mode, n, caps, err);
    if (st == TG_OK) st = tg_minibatches_shuffle(m, order, 0, err);
    for (int i = 0; st == TG_OK && mode == TG_MINIBATCH_TRANSITION && i < n; i++)
        m->rows[i] = m->rows[i * share];
    if (st != TG_OK) tg_minibatches_destroy(&m);
    *out = m;
    return st;
}

/* ---- packing ---- */

tg_status tg_minibatches_pack(tg_minibatches *m, int k, tg_error *err) {
    struct tg_minibatch_state *s = m->state;
    s->n_seqs = s->at_seq = 0;
    s->first_row_of = m->first[k];
    for (int i = 0; i < s->r->n_episodes; i++) s->seq_of[i] = -1;
    for (int i = 0; i < m->first[k + 1] - m->first[k]; i++) {
        int row = m->rows[m->first[k] + i], e = s->r->row_episode[row];
        const tg_episode *ep = &s->r->episodes[e];
        if (s->seq_of[e] < 0) {
            s->seq_of[e] = s->n_seqs;
            s->seqs[s->n_seqs++] = (wanted){.episode = e, .head = i, .tail = i};
        } else {
            s->next[s->seqs[s->seq_of[e]].tail] = i;
        }
        wanted *w = &s->seqs[s->seq_of[e]];
        s->next[i] = -1;
        w->tail = i;
        w->n_actions++;
        w->n_states = TG_MAX(w->n_states, row - ep->first_row + 1);
    }
    tg_pack_clear(&s->pack);
    for (int i = 0; i < s->n_seqs; i++) {
        const wanted *w = &s->seqs[i];
        const tg_episode *ep = &s->r->episodes[w->episode];
        if (!tg_pack_fits(&s->pack, s->r, ep, w->n_states, w->n_actions))
            return tg_fail(err, TG_BUG,
                           "a prompt of %d tokens, %d states and %d actions do not fit a pass of "
                           "%d tokens (source %d) and %d actions",
                           ep->n_prompt, w->n_states, w->n_actions, s->pack.caps.tokens,
                           s->pack.caps.src, s->pack.caps.actions);
    }
    return TG_OK;
}

bool tg_minibatches_next(tg_minibatches *m, tg_minibatch_piece *out) {
    struct tg_minibatch_state *s = m->state;
    tg_pack_clear(&s->pack);
    for (; s->at_seq < s->n_seqs; s->at_seq++) {
        const wanted *w = &s->seqs[s->at_seq];
        const tg_episode *ep = &s->r->episodes[w->episode];
        if (!tg_pack_fits(&s->pack, s->r, ep, w->n_states, w->n_actions)) break;
        tg_pack_sequence(&s->pack, s->r, ep, w->n_states);
        for (int i = w->head; i >= 0; i = s->next[i]) {
            s->place[s->pack.batch.n_actions] = i;
            tg_pack_action(&s->pack, s->r, ep, m->rows[s->first_row_of + i] - ep->first_row);
        }
    }
    *out = (tg_minibatch_piece){.batch = tg_pack_batch(&s->pack), .place = s->place};
    return out->batch.n_seqs > 0;
}

tg_pass_caps tg_minibatch_caps(int batch_size, int n_rows, int max_sequence, int max_tokens) {
    /* A sequence-mode minibatch exceeds batch_size by less than one episode at each end. */
    int64_t rows = TG_MIN((int64_t)batch_size + 2 * (int64_t)max_sequence, (int64_t)n_rows);
    int64_t tokens =
        TG_MAX(TG_MIN(rows * max_sequence, (int64_t)max_tokens), (int64_t)max_sequence);
    int n = (int)TG_MIN(rows, tokens);
    /* Episodes are scored whole, also one that is longer than all rows. */
    return (tg_pass_caps){.tokens = (int)tokens, .seqs = n, .actions = TG_MAX(n, max_sequence)};
}
