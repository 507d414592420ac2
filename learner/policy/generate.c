/* Continuous batching: a first-in first-out queue feeds a fixed number of decoder slots. Which
 * sequences share a step never enters a sequence's own draws: those come from its stream (seed,
 * domain, number) at its own token count. Runs on the caller's thread; the draws of one step are
 * spread over the backend's team. */
#include "learner/policy/generate.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/policy/sample.h"

#include <string.h>

typedef struct sequence {
    uint64_t id, seed, number;
    tg_rng_domain domain;
    int n_prompt, n_new, max_new;
    int32_t *tokens;           /* (n_prompt + max_new) */
    float *logp, *sample_logp; /* (max_new) */
    struct sequence *next;     /* in the queue */
} sequence;

struct tg_generator {
    tg_model *model;
    tg_gen_settings settings;
    tg_decoder *decoder;
    int n_slots, max_len;
    sequence **running; /* (n_slots), NULL: free */
    sequence *first, **last;
    int n_queued, n_running;
    int64_t tokens_done; /* of finished sequences */
    /* one step's batch, (n_slots) entries */
    int32_t *slots, *feed, *offsets;
    int32_t *prompts;        /* (n_slots * max_len) */
    float *logits, *scratch; /* (n_slots, V), (n_slots, 2 V) */
    tg_status *status;
    tg_error *errors;
};

static void sequence_destroy(sequence *q) {
    tg_free(q);
}

/* One block: the struct, then its arrays. */
static sequence *sequence_create(const int32_t *prompt, int n_prompt, int max_new) {
    size_t ints = (size_t)n_prompt + (size_t)max_new;
    sequence *q =
        tg_alloc(sizeof *q + ints * sizeof(int32_t) + 2 * (size_t)max_new * sizeof(float));
    if (!q) return NULL;
    q->tokens = (int32_t *)(q + 1);
    q->logp = (void *)(q->tokens + ints);
    q->sample_logp = q->logp + max_new;
    q->n_prompt = n_prompt;
    q->max_new = max_new;
    memcpy(q->tokens, prompt, (size_t)n_prompt * sizeof *prompt);
    return q;
}

static tg_status buffers_create(tg_generator *g, tg_error *err) {
    size_t n = (size_t)g->n_slots, V = (size_t)g->model->arch.vocab_size;
    g->running = tg_alloc_array(n, sizeof *g->running);
    g->slots = tg_alloc_array(n, sizeof *g->slots);
    g->feed = tg_alloc_array(n, sizeof *g->feed);
    g->offsets = tg_alloc_array(n + 1, sizeof *g->offsets);
    g->prompts = tg_alloc_array(n * (size_t)g->max_len, sizeof *g->prompts);
    g->logits = tg_alloc_array(n * V, sizeof *g->logits);
    g->scratch = tg_alloc_array(n * V, 2 * sizeof *g->scratch);
    g->status = tg_alloc_array(n, sizeof *g->status);
    g->errors = tg_alloc_array(n, sizeof *g->errors);
    if (!g->running || !g->slots || !g->feed || !g->offsets || !g->prompts || !g->logits ||
        !g->scratch || !g->status || !g->errors)
        return tg_fail_nomem(err, n * V * 3 * sizeof(float));
    return TG_OK;
}

tg_status tg_generator_create(tg_generator **out, tg_model *m, const tg_gen_settings *s,
                              int n_slots, int max_len, tg_error *err) {
    *out = NULL;
    TG_ASSERT(n_slots > 0 && max_len > 0);
    tg_status st = tg_gen_settings_supported(s, "generation_kwargs", err);
    if (st != TG_OK) return st;
    tg_generator *g = tg_alloc(sizeof *g);
    if (!g) return tg_fail_nomem(err, sizeof *g);
    g->model = m;
    g->settings = *s;
    g->n_slots = n_slots;
    g->max_len = max_len;
    g->last = &g->first;
    st = buffers_create(g, err);
    if (st == TG_OK)
        st = tg_decoder_create(
            &g->decoder, m,
            (tg_decoder_caps){.slots = n_slots, .len = max_len, .weights = s->weights}, err);
    if (st != TG_OK) tg_generator_destroy(&g);
    *out = g;
    return st;
}

void tg_generator_destroy(tg_generator **gp) {
    tg_generator *g = *gp;
    if (!g) return;
    for (sequence *q = g->first, *next; q; q = next) {
        next = q->next;
        sequence_destroy(q);
    }
    for (int i = 0; g->running && i < g->n_slots; i++) sequence_destroy(g->running[i]);
    tg_decoder_destroy(&g->decoder);
    tg_free(g->running);
    tg_free(g->slots);
    tg_free(g->feed);
    tg_free(g->offsets);
    tg_free(g->prompts);
    tg_free(g->logits);
    tg_free(g->scratch);
    tg_free(g->status);
    tg_free(g->errors);
    tg_free(g);
    *gp = NULL;
}

tg_status tg_generator_add(tg_generator *g, uint64_t id, const int32_t *prompt, int n_prompt,
                           uint64_t seed, tg_rng_domain domain, uint64_t number, tg_error *err) {
    if (n_prompt < 1)
        return tg_fail(err, TG_DATA, "sequence %llu: the prompt has no token",
                       (unsigned long long)id);
    int64_t max_new = tg_gen_max_new(&g->settings, n_prompt);
    /* The last new token is never fed back, so it needs no place in the cache. */
    if (n_prompt + max_new - 1 > g->max_len)
        return tg_fail(err, TG_DATA,
                       "sequence %llu: %d prompt tokens and %lld new ones do not fit the %d "
                       "positions there are",
                       (unsigned long long)id, n_prompt, (long long)max_new, g->max_len);
    sequence *q = sequence_create(prompt, n_prompt, (int)max_new);
    if (!q) return tg_fail_nomem(err, ((size_t)n_prompt + (size_t)max_new) * 12);
    q->id = id;
    q->seed = seed;
    q->domain = domain;
    q->number = number;
    *g->last = q;
    g->last = &q->next;
    g->n_queued++;
    return TG_OK;
}

int tg_generator_active(const tg_generator *g) {
    return g->n_queued + g->n_running;
}

int64_t tg_generator_tokens(const tg_generator *g) {
    int64_t n = g->tokens_done;
    for (int i = 0; i < g->n_slots; i++)
        if (g->running[i]) n += g->running[i]->n_new;
    return n;
}

/* ---- one step ----------------------------------------------------------------------------------
 */

static sequence *queue_pop(tg_generator *g) {
    sequence *q = g->first;
    g->first = q->next;
    if (!g->first) g->last = &g->first;
    g->n_queued--;
    q->next = NULL;
    return q;
}

/* Entries of the batch that were already running: their newest token is fed. */
static int batch_running(tg_generator *g) {
    int n = 0;
    for (int i = 0; i < g->n_slots; i++) {
        sequence *q = g->running[i];
        if (!q) continue;
        g->slots[n] = i;
        g->feed[n++] = q->tokens[q->n_prompt + q->n_new - 1];
    }
    return n;
}

/* Entries that start now, behind the first `at`: their prompts are packed. */
static int batch_starting(tg_generator *g, int at) {
    int n = 0;
    g->offsets[0] = 0;
    for (int i = 0; i < g->n_slots && g->first; i++) {
        if (g->running[i]) continue;
        sequence *q = queue_pop(g);
        g->running[i] = q;
        g->n_running++;
        g->slots[at + n] = i;
        memcpy(g->prompts + g->offsets[n], q->tokens, (size_t)q->n_prompt * sizeof *q->tokens);
        g->offsets[n + 1] = g->offsets[n] + q->n_prompt;
        n++;
    }
    return n;
}

static void draw_one(void *arg, int entry) {
    tg_generator *g = arg;
    sequence *q = g->running[g->slots[entry]];
    int V = g->model->arch.vocab_size;
    tg_rng stream = tg_rng_at(q->seed, q->domain, q->number, (uint64_t)q->n_new);
    tg_draw d;
    g->status[entry] = tg_sample(&g->settings, g->logits + (size_t)entry * (size_t)V, V, q->tokens,
                                 q->n_prompt + q->n_new, q->n_new, tg_rng_uniform(&stream),
                                 g->scratch + (size_t)entry * 2 * (size_t)V, &d, &g->errors[entry]);
    if (g->status[entry] != TG_OK) return;
    q->tokens[q->n_prompt + q->n_new] = d.token;
    q->logp[q->n_new] = d.logp;
    q->sample_logp[q->n_new] = d.sample_logp;
    q->n_new++;
}

static tg_status finish_ended(tg_generator *g, int slot, tg_gen_done *done, void *arg,
                              tg_error *err) {
    sequence *q = g->running[slot];
    bool eos =
        g->settings.eos_id >= 0 && q->tokens[q->n_prompt + q->n_new - 1] == g->settings.eos_id;
    if (!eos && q->n_new < q->max_new) return TG_OK;
    g->running[slot] = NULL;
    g->n_running--;
    g->tokens_done += q->n_new;
    tg_gen_result r = {.id = q->id,
                       .tokens = q->tokens + q->n_prompt,
                       .logp = q->logp,
                       .sample_logp = q->sample_logp,
                       .n = q->n_new,
                       .eos = eos};
    tg_status st = done(arg, &r, err);
    sequence_destroy(q);
    return st;
}

tg_status tg_generator_advance(tg_generator *g, tg_gen_done *done, void *arg, tg_error *err) {
    size_t V = (size_t)g->model->arch.vocab_size;
    int n = batch_running(g), started = batch_starting(g, n);
    tg_status st = TG_OK;
    if (n) st = tg_decoder_step(g->decoder, g->slots, g->feed, n, g->logits, err);
    if (st == TG_OK && started)
        st = tg_decoder_prefill(g->decoder, g->slots + n, g->prompts, g->offsets, started,
                                g->logits + (size_t)n * V, err);
    if (st != TG_OK) return st;
    int total = n + started;
    tg_team_run(g->model->be->team, total, draw_one, g);
    for (int i = 0; i < total; i++) {
        if (g->status[i] != TG_OK) {
            if (err) *err = g->errors[i];
            return g->status[i];
        }
    }
    for (int i = 0; i < total && st == TG_OK; i++)
        st = finish_ended(g, g->slots[i], done, arg, err);
    return st;
}
