/* Continuous batching: a first-in first-out queue feeds a fixed number of decoder slots. Which sequences share a step never enters a
 * sequence's own draws: those come from its stream (seed, domain, number) at its own token count. Runs on the caller's thread; the
 * choice of tokens is spread over the backend's team. */
#include "learner/policy/generate_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

static tg_status buffers_create(tg_generator *g, tg_error *err) {
    size_t n = (size_t)g->n_slots;
    g->n_threads = TG_MIN(tg_team_size(g->model->be->team), g->n_slots);
    g->slots = tg_alloc_array(n, sizeof *g->slots);
    g->feed = tg_alloc_array(n, sizeof *g->feed);
    g->offsets = tg_alloc_array(n + 1, sizeof *g->offsets);
    g->src_offsets = tg_alloc_array(n + 1, sizeof *g->src_offsets);
    g->logits = tg_backend_host_alloc(g->model->be, n * (size_t)g->V, sizeof *g->logits);
    g->entries = tg_alloc_array(n, sizeof *g->entries);
    g->status = tg_alloc_array(n, sizeof *g->status);
    g->errors = tg_alloc_array(n, sizeof *g->errors);
    g->spaces = tg_alloc_array((size_t)g->n_threads, sizeof *g->spaces);
    if (!g->slots || !g->feed || !g->offsets || !g->src_offsets || !g->logits || !g->entries ||
        !g->status || !g->errors || !g->spaces)
        return tg_fail_nomem(err, n * (size_t)g->V * sizeof(float));
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < g->n_threads; i++)
        st = tg_gen_space_init(&g->spaces[i], g->V, err);
    return st;
}

/* The answer's own lengths count, and it begins with the start token, or if there is none with bos. */
static tg_status seq2seq_settings(tg_generator *g, tg_error *err) {
    tg_gen_settings *s = &g->settings;
    const tg_arch *arch = &g->model->arch;
    s->lengths_count_prompt = true;
    if (s->decoder_start_id < 0) s->decoder_start_id = arch->start_id;
    if (s->decoder_start_id < 0) s->decoder_start_id = s->bos_id >= 0 ? s->bos_id : arch->bos_id;
    if (s->decoder_start_id < 0)
        return tg_fail(err, TG_DATA,
                       "the model has no decoder_start_token_id and no bos_token_id: give one in "
                       "generation_kwargs");
    if (s->decoder_start_id < g->V) return TG_OK;
    return tg_fail(err, TG_CONFIG,
                   "generation_kwargs.decoder_start_token_id: expected a token id of the model, 0 "
                   "to %d, found %d (where it is not given, bos_token_id counts)",
                   g->V - 1, s->decoder_start_id);
}

tg_decoder_caps tg_generator_caps(const tg_arch *arch, int slots, int max_prompt, int max_new) {
    if (arch->kind == TG_KIND_SEQ2SEQ)
        return (tg_decoder_caps){.slots = slots, .len = max_new, .src = max_prompt};
    return (tg_decoder_caps){.slots = slots, .len = max_prompt + max_new};
}

size_t tg_generator_bytes(const tg_arch *arch, const tg_gen_settings *s, tg_decoder_caps caps,
                          int threads, bool masked) {
    caps.slots = tg_gen_slots(s, caps.slots);
    caps.weights = s->weights;
    caps.half_cache = s->half_cache;
    const size_t n = (size_t)caps.slots, len = (size_t)caps.len + 1, V = (size_t)arch->vocab_size;
    const size_t decoder = tg_stock_bytes(tg_decoder_bytes(arch, caps)), row = V * sizeof(float);
    const size_t logits = tg_stock_bytes(n * row);
    const size_t spaces = (size_t)TG_MIN(threads, caps.slots) * 5 * row; /* tg_gen_space_init */
    const size_t tokens = n * (s->num_beams > 1 ? 10 : 4) * len * sizeof(int32_t);
    const size_t masks =
        n * (s->num_beams > 1 ? 1 : len) * (size_t)tg_mask_words((int)V) * sizeof(uint32_t);
    return decoder + logits + spaces + tokens +
           (masked ? decoder + logits + tg_stock_bytes(masks) : 0);
}

tg_status tg_generator_create(tg_generator **out, tg_model *m, const tg_gen_settings *s,
                              tg_decoder_caps caps, tg_error *err) {
    *out = NULL;
    TG_ASSERT(caps.slots > 0 && caps.len > 0);
    tg_status st = tg_gen_settings_supported(s, "generation_kwargs", err);
    if (st == TG_OK) st = tg_gen_settings_fit(s, m->arch.vocab_size, "generation_kwargs", err);
    if (st == TG_OK && !tg_node_is_null(s->stop_strings) && !s->stop_text)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "generation_kwargs.stop_strings: needs a tokenizer, and there is none; give "
                     "stop_ids");
    if (st != TG_OK) return st;
    tg_generator *g = tg_alloc(sizeof *g);
    if (!g) return tg_fail_nomem(err, sizeof *g);
    g->model = m;
    g->settings = *s;
    g->n_slots = caps.slots = tg_gen_slots(s, caps.slots);
    caps.weights = s->weights;
    caps.half_cache = s->half_cache;
    g->caps = caps;
    g->max_len = caps.len;
    g->max_src = caps.src;
    g->seq2seq = m->arch.kind == TG_KIND_SEQ2SEQ;
    g->V = m->arch.vocab_size;
    g->last = &g->first;
    st = buffers_create(g, err);
    if (st == TG_OK) st = s->num_beams > 1 ? tg_lanes_create(g, err) : tg_samples_create(g, err);
    if (st == TG_OK && g->seq2seq) st = seq2seq_settings(g, err);
    if (st == TG_OK) st = tg_decoder_create(&g->decoder, m, caps, err);
    if (st != TG_OK) tg_generator_destroy(&g);
    *out = g;
    return st;
}

tg_status tg_generator_mask(tg_generator *g, tg_model *mask_model, const tg_mask_opts *opts,
                            const uint32_t *always, tg_error *err) {
    if (!g->lanes && g->settings.num_return_sequences > 1)
        return tg_fail(err, TG_UNSUPPORTED,
                       "generation_kwargs: masks without beams go with num_return_sequences 1");
    TG_ASSERT(mask_model->arch.vocab_size == g->V && !g->mask_decoder);
    size_t rows = (size_t)g->n_slots * (g->lanes ? 1 : (size_t)(g->max_len + 1));
    g->mask = *opts;
    g->always = always;
    g->mask_logits = tg_backend_host_alloc(g->model->be, (size_t)g->n_slots * (size_t)g->V,
                                           sizeof *g->mask_logits);
    g->masks =
        tg_backend_host_alloc(g->model->be, rows * (size_t)tg_mask_words(g->V), sizeof *g->masks);
    if (!g->mask_logits || !g->masks) return tg_fail_nomem(err, rows * 4);
    tg_decoder_caps caps = g->caps;
    caps.values = false;
    tg_status st = tg_decoder_create(&g->mask_decoder, mask_model, caps, err);
    return st == TG_OK && g->lanes ? tg_lanes_mask(g, err) : st;
}

int32_t tg_generator_start(const tg_generator *g) {
    return g->seq2seq ? g->settings.decoder_start_id : -1;
}

static void requests_destroy(tg_request *r) {
    for (tg_request *next; r; r = next) {
        next = r->next;
        tg_free(r);
    }
}

void tg_generator_destroy(tg_generator **gp) {
    tg_generator *g = *gp;
    if (!g) return;
    tg_samples_destroy(g);
    tg_lanes_destroy(g);
    requests_destroy(g->first);
    requests_destroy(g->unused);
    tg_decoder_destroy(&g->decoder);
    tg_decoder_destroy(&g->mask_decoder);
    tg_backend_host_free(g->model->be, g->mask_logits);
    tg_backend_host_free(g->model->be, g->masks);
    for (int i = 0; g->spaces && i < g->n_threads; i++) tg_gen_space_fini(&g->spaces[i]);
    tg_free(g->spaces);
    tg_free(g->slots);
    tg_free(g->feed);
    tg_free(g->offsets);
    tg_free(g->prompts);
    tg_free(g->src_offsets);
    tg_free(g->sources);
    tg_backend_host_free(g->model->be, g->logits);
    tg_free(g->entries);
    tg_free(g->status);
    tg_free(g->errors);
    tg_free(g);
    *gp = NULL;
}

/* ---- queue ------------------------------------------------------------------------------------- */

/* A block that was used before, if it is large enough. */
static tg_request *request_take(tg_generator *g, int n_tokens) {
    tg_request *r = g->unused;
    if (r && r->cap >= n_tokens) {
        g->unused = r->next;
        return r;
    }
    int cap = TG_MAX(n_tokens, 64);
    r = tg_alloc(sizeof *r + (size_t)cap * sizeof *r->tokens);
    if (r) r->cap = cap;
    return r;
}

static tg_status check_request(const tg_generator *g, int n, int n_prompt, int64_t max_new,
                               tg_error *err) {
    if (n < 1)
        return tg_fail(err, TG_DATA, "the prompt has no token, and the model needs at least one");
    const int positions = tg_arch_longest(&g->model->arch);
    if (g->seq2seq && n > g->max_src)
        return tg_fail(err, TG_DATA, "a source of %d tokens, room is for %d: shorten it", n,
                       n > positions ? positions : g->max_src);
    /* The last new token is never fed back, so it needs no place in the cache. */
    const int64_t need = n_prompt + max_new - 1;
    if (need > g->max_len)
        return tg_fail(err, TG_DATA,
                       "%d prompt tokens and %lld new ones do not fit the %d positions there are: "
                       "lower max_new_tokens or shorten the prompt",
                       n_prompt, (long long)max_new, need > positions ? positions : g->max_len);
    return TG_OK;
}

tg_status tg_generator_add(tg_generator *g, uint64_t id, const int32_t *prompt, int n,
                           uint64_t seed, tg_rng_domain domain, uint64_t number, tg_error *err) {
    int n_prompt = g->seq2seq ? 1 : n;
    int64_t max_new = tg_gen_max_new(&g->settings, n_prompt);
    tg_status st = check_request(g, n, n_prompt, max_new, err);
    if (st != TG_OK) return st;
    tg_request *r = request_take(g, n + 1);
    if (!r) return tg_fail_nomem(err, (size_t)n * sizeof *prompt);
    *r = (tg_request){.id = id,
                      .seed = seed,
                      .domain = domain,
                      .number = number,
                      .serial = ++g->serials,
                      .n_prompt = n_prompt,
                      .n_source = n,
                      .source = g->seq2seq ? 1 : 0,
                      .max_new = (int)max_new,
                      .cap = r->cap};
    if (g->seq2seq) r->tokens[0] = g->settings.decoder_start_id;
    memcpy(r->tokens + r->source, prompt, (size_t)n * sizeof *prompt);
    *g->last = r;
    g->last = &r->next;
    g->n_queued++;
    g->n_active++;
    return TG_OK;
}

tg_request *tg_requests_head(const tg_generator *g) {
    return g->first;
}

tg_request *tg_requests_pop(tg_generator *g) {
    tg_request *r = g->first;
    g->first = r->next;
    if (!g->first) g->last = &g->first;
    g->n_queued--;
    r->next = NULL;
    return r;
}

void tg_requests_end(tg_generator *g, tg_request *r) {
    r->next = g->unused;
    g->unused = r;
    g->n_active--;
}

int tg_generator_active(const tg_generator *g) {
    return g->n_active;
}

int64_t tg_generator_tokens(const tg_generator *g) {
    int64_t n = g->tokens_done;
    for (int i = 0; g->running && i < g->n_slots; i++)
        if (g->running[i].request) n += g->running[i].n_new;
    return n;
}

/* ---- one step's batch -------------------------------------------------------------------------- */

int tg_batch_feed(tg_generator *g, int slot, int32_t token) {
    TG_ASSERT(!g->n_fill);
    g->slots[g->n_step] = slot;
    g->feed[g->n_step++] = token;
    g->entries[g->n_entries] = (tg_entry){.slot = slot};
    return g->n_entries++;
}

/* Appends to packed sequences; *cap is the room of *list. */
static tg_status pack(int32_t **list, size_t *cap, int32_t *offsets, int at, const int32_t *tokens,
                      int n, tg_error *err) {
    size_t wanted = (size_t)offsets[at] + (size_t)n;
    if (wanted > *cap) {
        size_t more = TG_MAX(wanted, 2 * *cap);
        int32_t *grown = tg_realloc_array(*list, more, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, more * sizeof *grown);
        *list = grown;
        *cap = more;
    }
    memcpy(*list + offsets[at], tokens, (size_t)n * sizeof *tokens);
    offsets[at + 1] = offsets[at] + n;
    return TG_OK;
}

tg_status tg_batch_fill(tg_generator *g, int slot, const tg_request *r, tg_error *err) {
    tg_status st =
        pack(&g->prompts, &g->cap_prompts, g->offsets, g->n_fill, r->tokens, r->n_prompt, err);
    if (st == TG_OK && g->seq2seq)
        st = pack(&g->sources, &g->cap_sources, g->src_offsets, g->n_fill, tg_request_source(r),
                  r->n_source, err);
    if (st != TG_OK) return st;
    g->slots[g->n_step + g->n_fill++] = slot;
    g->entries[g->n_entries++] = (tg_entry){.slot = slot};
    return TG_OK;
}

/* The values of n entries from `first` on. */
static void take_values(tg_generator *g, const tg_decoder *d, int first, int n) {
    const float *values = tg_decoder_values(d);
    for (int i = 0; values && i < n; i++) g->entries[first + i].value = values[i];
}

static tg_status run_decoder(tg_generator *g, tg_decoder *d, float *logits, tg_error *err) {
    const int32_t *filled = g->slots + g->n_step;
    tg_status st = TG_OK;
    if (g->n_step) st = tg_decoder_step(d, g->slots, g->feed, g->n_step, logits, err);
    if (st == TG_OK) take_values(g, d, 0, g->n_step);
    if (st == TG_OK && g->n_fill && g->seq2seq)
        st = tg_decoder_encode(d, filled, g->sources, g->src_offsets, g->n_fill, err);
    if (st == TG_OK && g->n_fill)
        st = tg_decoder_prefill(d, filled, g->prompts, g->offsets, g->n_fill,
                                logits + (size_t)g->n_step * (size_t)g->V, err);
    if (st == TG_OK) take_values(g, d, g->n_step, g->n_fill);
    return st;
}

tg_status tg_batch_run(tg_generator *g, tg_error *err) {
    tg_status st = run_decoder(g, g->decoder, g->logits, err);
    if (st == TG_OK && g->mask_decoder) st = run_decoder(g, g->mask_decoder, g->mask_logits, err);
    for (int i = 0; i < g->n_step + g->n_fill; i++)
        g->entries[i].row = g->logits + (size_t)i * (size_t)g->V;
    return st;
}

typedef struct spread_job {
    tg_generator *g;
    tg_batch_work *work;
    int n, n_threads;
} spread_job;

/* Each thread's share has its own space; which share an item is in does not enter its result. */
static void spread_share(void *arg, int share) {
    const spread_job *j = arg;
    for (int i = share; i < j->n; i += j->n_threads)
        j->g->status[i] = j->work(j->g, i, &j->g->spaces[share], &j->g->errors[i]);
}

tg_status tg_batch_spread(tg_generator *g, int n, tg_batch_work *work, tg_error *err) {
    spread_job j = {g, work, n, g->n_threads};
    tg_team_run(g->model->be->team, TG_MIN(n, g->n_threads), spread_share, &j);
    for (int i = 0; i < n; i++) {
        if (g->status[i] == TG_OK) continue;
        if (err) *err = g->errors[i];
        return g->status[i];
    }
    return TG_OK;
}

tg_status tg_generator_advance(tg_generator *g, tg_gen_done *done, void *arg, tg_error *err) {
    g->n_step = g->n_fill = g->n_entries = 0;
    g->offsets[0] = g->src_offsets[0] = 0;
    return g->lanes ? tg_lanes_advance(g, done, arg, err) : tg_samples_advance(g, done, arg, err);
}
