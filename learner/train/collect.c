/* The state of each environment slot and the loop that feeds generator and workers. One thread; the
 * pool has its own.
 *
 * A slot:  FREE -> RESETTING -> READY (prompt here) -> DECODING -> SCORING -> FREE. There are more
 * slots than places in the generator, so that prompts are fetched ahead and slow rewards do not
 * hold up generation. Prompts fetched ahead stay for the next iteration. */
#include "learner/train/collect_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/nn/pass.h"

#include <string.h>

enum { WAIT_SLICE_MS = 100, RANKING_SLICE_MS = 5 };

static int slots_for(const tg_pool *pool, tg_pool_stats stats, int n_envs, int group) {
    int64_t wanted = TG_MAX(2 * (int64_t)n_envs + 2, 2 * (int64_t)group),
            room = (int64_t)tg_pool_spec(pool)->capacity * stats.workers;
    if (room > 0) wanted = TG_MIN(wanted, room);
    return (int)TG_MAX(wanted, 1);
}

tg_status tg_collector_create(tg_collector **out, tg_pool *pool, tg_model *policy,
                              const tg_collect_opts *opts, tg_error *err) {
    tg_collector *c = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    c->pool = pool;
    c->policy = policy;
    c->opts = *opts;
    c->gen = *opts->gen;
    c->gen.max_new_tokens = opts->max_new;
    c->group = TG_MAX(opts->group, 1);
    c->shared = c->group > 1 && !opts->mask_model; /* masks go with single samples */
    c->gen.num_return_sequences = c->shared ? c->group : 1;
    c->next_request = c->next_episode = opts->first_episode;
    tg_pool_stats stats;
    tg_pool_get_stats(pool, &stats);
    c->n_slots = slots_for(pool, stats, opts->n_envs, c->group);
    c->slots = tg_alloc_array((size_t)c->n_slots, sizeof *c->slots);
    c->steps = tg_alloc_array((size_t)c->n_slots, sizeof *c->steps);
    tg_status st =
        c->slots && c->steps ? TG_OK : tg_fail_nomem(err, (size_t)c->n_slots * sizeof *c->slots);
    for (int i = 0; st == TG_OK && i < c->n_slots; i++) {
        c->slots[i].prompt = tg_alloc_array((size_t)opts->max_prompt + 1, sizeof(int32_t));
        if (!c->slots[i].prompt) st = tg_fail_nomem(err, (size_t)opts->max_prompt * 4);
    }
    if (st == TG_OK && c->n_slots < c->group)
        st = tg_fail(err, TG_UNAVAILABLE,
                     "groups of %d samples need as many slots; the workers have room for %d",
                     c->group, c->n_slots);
    if (st == TG_OK && c->group > 1 && !opts->gen->do_sample)
        st = tg_fail(err, TG_CONFIG,
                     "train_evaluation.compare_sample: %d samples of a prompt are all the same "
                     "without do_sample in alg.policy.args.generation_kwargs",
                     c->group);
    if (st == TG_OK && c->shared && c->gen.num_beams > 1 && c->group > c->gen.num_beams)
        st = tg_fail(err, TG_CONFIG,
                     "train_evaluation.compare_sample: %d samples of a prompt are more than the "
                     "%d num_beams of alg.policy.args.generation_kwargs",
                     c->group, (int)c->gen.num_beams);
    if (st == TG_OK) st = tg_pool_open_slots(pool, c->n_slots, err);
    if (st != TG_OK)
        tg_collector_destroy(&c);
    else
        *out = c;
    return st;
}

static void drop_records(tg_collector *c) {
    for (int i = 0; i < c->n_records; i++) {
        tg_free(c->records[i].tokens);
        tg_free(c->records[i].rewards);
        tg_free(c->records[i].logp);
        tg_free(c->records[i].masks);
        tg_free(c->records[i].text);
        tg_free(c->records[i].group_texts);
    }
    c->n_records = c->generated = c->finished = c->failed = c->dropped_groups = 0;
    c->finished_tokens = 0;
}

void tg_collector_destroy(tg_collector **cp) {
    tg_collector *c = *cp;
    if (!c) return;
    tg_ranking_destroy(&c->ranking); /* reads texts of the records */
    drop_records(c);
    tg_generator_destroy(&c->generator);
    for (int i = 0; c->slots && i < c->n_slots; i++) tg_free(c->slots[i].prompt);
    tg_free(c->slots);
    tg_free(c->steps);
    tg_free(c->records);
    tg_free(c);
    *cp = NULL;
}

uint64_t tg_collector_next_episode(const tg_collector *c) {
    return c->next_episode;
}

/* ---- the workers --------------------------------------------------------------------------------- */

/* Asks for the prompts of the next episodes, as far as slots are free. */
static tg_status request_prompts(tg_collector *c, tg_error *err) {
    for (int i = 0; i < c->n_slots; i++) {
        tg_collect_slot *s = &c->slots[i];
        if (s->state != FREE) continue;
        bool leads = c->next_request % (uint64_t)c->group == 0;
        if (!leads && !c->leader_known) return TG_OK; /* the others need its sample */
        s->episode = c->next_request;
        tg_reset_item item = {.slot = (uint32_t)i,
                              .episode = s->episode,
                              .seed = c->opts.seed,
                              .split = TG_SPLIT_TRAIN,
                              .has_sample = !leads,
                              .sample = leads ? 0 : c->leader};
        tg_status st = tg_pool_reset(c->pool, &item, 1, err);
        if (st != TG_OK) return st;
        s->state = RESETTING;
        if (leads) c->leader_known = false;
        c->next_request++;
    }
    return TG_OK;
}

/* Takes every event that is there; blocks for the first one when asked to. */
static tg_status take_events(tg_collector *c, bool block, tg_error *err) {
    bool any = false;
    double start = block ? tg_clock_seconds() : 0;
    for (;;) {
        if (tg_halt_requested(c->opts.stop)) return tg_fail(err, TG_INTERRUPTED, "stopped");
        tg_pool_event event;
        int wait_ms = block && !any ? WAIT_SLICE_MS : 0;
        if (c->ranking && tg_ranking_pending(c->ranking)) {
            bool alone = tg_pool_pending(c->pool) == 0;
            tg_status ranked = tg_collect_take_rankings(c, alone ? wait_ms : 0, &any, err);
            if (ranked != TG_OK) return ranked;
            wait_ms = any || alone ? 0 : TG_MIN(wait_ms, RANKING_SLICE_MS);
        }
        tg_status st = tg_pool_wait(c->pool, &event, wait_ms, err);
        if (st == TG_TIMEOUT) {
            if (!block || any) break;
            continue;
        }
        if (st != TG_OK) return st;
        any = true;
        st = event.kind == TG_POOL_RESET ? tg_collect_on_reset(c, &event.reset, err)
                                         : tg_collect_on_step(c, &event.step, err);
        if (st != TG_OK) return st;
    }
    if (block) c->wait_s += tg_clock_seconds() - start;
    return any ? request_prompts(c, err) : TG_OK;
}

/* ---- generation ------------------------------------------------------------------------------------ */

static tg_collect_slot *slot_of(tg_collector *c, uint64_t episode, tg_collect_state state) {
    for (int i = 0; i < c->n_slots; i++)
        if (c->slots[i].state == state && c->slots[i].episode == episode) return &c->slots[i];
    return NULL;
}

static tg_status add_record(tg_collector *c, const tg_collect_slot *s, tg_error *err) {
    if (c->n_records == c->cap_records) {
        int cap = TG_MAX(64, 2 * c->cap_records);
        tg_record *grown = tg_realloc_array(c->records, (size_t)cap, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, (size_t)cap * sizeof *grown);
        c->records = grown;
        c->cap_records = cap;
    }
    tg_record *r = &c->records[c->n_records];
    *r = (tg_record){.n_prompt = s->n_prompt, .sample = s->sample};
    c->n_records++;
    r->tokens = tg_alloc_array((size_t)s->n_prompt + (size_t)c->opts.max_new, sizeof *r->tokens);
    r->rewards = tg_alloc_array((size_t)c->opts.max_new, sizeof *r->rewards);
    if (c->opts.known) r->logp = tg_alloc_array((size_t)c->opts.max_new, 2 * sizeof *r->logp);
    if (!r->tokens || !r->rewards || (c->opts.known && !r->logp))
        return tg_fail_nomem(err, (size_t)c->opts.max_new * 20);
    memcpy(r->tokens, s->prompt, (size_t)s->n_prompt * sizeof *r->tokens);
    return TG_OK;
}

/* A group starts whole; what a sample draws depends on its episode alone, however it is asked for. */
static tg_status start_group(tg_collector *c, tg_error *err) {
    const uint64_t n = (uint64_t)c->group;
    for (uint64_t k = 0; k < n; k++) {
        tg_collect_slot *s = slot_of(c, c->next_episode, READY);
        tg_status st = add_record(c, s, err);
        if (st == TG_OK && (!c->shared || k == 0)) {
            uint64_t id = c->shared ? c->next_episode / n : c->next_episode;
            st = tg_generator_add(c->generator, id, s->prompt, s->n_prompt, c->opts.seed,
                                  TG_RNG_SAMPLE, id, err);
            if (st != TG_OK) tg_error_prefix(err, "prompt %llu: ", (unsigned long long)id);
        }
        if (st != TG_OK) return st;
        s->state = DECODING;
        c->next_episode++;
    }
    return TG_OK;
}

/* Whether every member of the next group has its prompt. */
static bool group_ready(tg_collector *c) {
    for (int k = 0; k < c->group; k++)
        if (!slot_of(c, c->next_episode + (uint64_t)k, READY)) return false;
    return true;
}

/* Tokens to expect of the finished and the running episodes: a running one will hardly be shorter
 * than the mean of those that ended. */
static int64_t expected_tokens(const tg_collector *c) {
    int64_t made = tg_generator_tokens(c->generator);
    int running = c->n_records - c->generated;
    int64_t mean = c->generated ? c->finished_tokens / c->generated : 0;
    return c->finished_tokens + TG_MAX(made - c->finished_tokens, running * mean);
}

static uint32_t *copy_masks(const tg_collector *c, const tg_gen_result *g) {
    size_t n = (size_t)g->n * (size_t)tg_mask_words(c->policy->arch.vocab_size);
    uint32_t *copy = tg_alloc_array(n, sizeof *copy);
    if (copy) memcpy(copy, g->masks, n * sizeof *copy);
    return copy;
}

static tg_status on_generated(void *arg, const tg_gen_result *g, tg_error *err) {
    tg_collector *c = arg;
    uint64_t episode = c->shared ? g->id * (uint64_t)c->group + (uint64_t)g->index : g->id;
    tg_collect_slot *s = slot_of(c, episode, DECODING);
    TG_ASSERT(s && g->n <= c->opts.max_new);
    if (!g->n) /* of a beam search */
        return tg_fail(err, TG_DATA,
                       "alg.policy.args.generation_kwargs allow fewer texts of a prompt than the "
                       "%d samples of train_evaluation.compare_sample",
                       c->group);
    tg_record *r = &c->records[episode - c->first_episode];
    memcpy(r->tokens + r->n_prompt, g->tokens, (size_t)g->n * sizeof *r->tokens);
    r->n_actions = g->n;
    if (r->logp) {
        memcpy(r->logp, g->logp, (size_t)g->n * sizeof *r->logp);
        memcpy(r->logp + c->opts.max_new, g->value, (size_t)g->n * sizeof *r->logp);
    }
    if (g->masks && !(r->masks = copy_masks(c, g))) return tg_fail_nomem(err, (size_t)g->n * 4);
    c->finished_tokens += g->n;
    c->generated++;
    s->state = SCORING;
    c->steps[c->n_steps++] = (tg_step_item){.slot = (uint32_t)(s - c->slots),
                                            .episode = episode,
                                            .tokens = r->tokens + r->n_prompt,
                                            .n_tokens = (size_t)g->n};
    return TG_OK;
}

/* Starts what may be started now: whole groups, in order. */
static tg_status admit(tg_collector *c, int64_t wanted, tg_error *err) {
    for (;;) {
        int running = c->n_records - c->generated;
        if (running && running + c->group > c->opts.n_envs) return TG_OK;
        if (expected_tokens(c) >= wanted) return TG_OK;
        while (!group_ready(c)) {
            tg_status st = take_events(c, true, err);
            if (st != TG_OK) return st;
        }
        tg_status st = start_group(c, err);
        if (st != TG_OK) return st;
    }
}

/* Generates until the episodes started in this round reach `wanted` tokens, then waits for their
 * rewards. */
static tg_status run_round(tg_collector *c, int64_t wanted, tg_error *err) {
    tg_status st = request_prompts(c, err);
    while (st == TG_OK) {
        st = admit(c, wanted, err);
        if (st != TG_OK || !tg_generator_active(c->generator)) break;
        c->n_steps = 0;
        st = tg_generator_advance(c->generator, on_generated, c, err);
        if (st == TG_OK && c->n_steps)
            st = tg_pool_step(c->pool, c->steps, (size_t)c->n_steps, err);
        if (st == TG_OK) st = take_events(c, false, err);
    }
    while (st == TG_OK && c->finished < c->n_records) st = take_events(c, true, err);
    return st;
}

static tg_status check_failures(const tg_collector *c, tg_error *err) {
    if (c->failed <= c->opts.max_failed * c->n_records) return TG_OK;
    return tg_fail(err, TG_UNAVAILABLE,
                   "%d of %d rewards failed, more than train_evaluation.max_failed_rewards (%g) "
                   "allows; the last "
                   "one: %s",
                   c->failed, c->n_records, c->opts.max_failed, c->failure);
}

static int64_t usable_tokens(const tg_collector *c) {
    int64_t n = 0;
    for (int i = 0; i < c->n_records; i++) n += c->records[i].ok ? c->records[i].n_actions : 0;
    return n;
}

static tg_status open_generator(tg_collector *c, tg_error *err) {
    if (c->opts.mask_model && c->gen.num_beams > 1)
        return tg_fail(err, TG_UNSUPPORTED,
                       "alg.policy.args.generation_kwargs.num_beams: rollouts of a maskable policy "
                       "go with 1; train_evaluation.generation_kwargs may have more");
    tg_decoder_caps caps =
        tg_generator_caps(&c->policy->arch, c->opts.n_envs, c->opts.max_prompt, c->opts.max_new);
    caps.values = c->opts.known;
    tg_status st = tg_generator_create(&c->generator, c->policy, &c->gen, caps, err);
    if (st == TG_OK && c->opts.mask_model)
        st = tg_generator_mask(c->generator, c->opts.mask_model, &c->opts.mask, c->opts.special,
                               err);
    if (st != TG_OK) tg_generator_destroy(&c->generator);
    return st;
}

tg_status tg_collect(tg_collector *c, int rows, tg_rollout **out, tg_collect_info *info,
                     tg_error *err) {
    if (c->ranking && tg_ranking_pending(c->ranking))
        tg_ranking_destroy(&c->ranking); /* of a failed call */
    drop_records(c);
    c->first_episode = c->next_episode;
    c->wait_s = 0;
    tg_status st = open_generator(c, err);
    if (st != TG_OK) return st;
    c->start_id = tg_generator_start(c->generator);
    /* Each round ends with all rewards in: how many more episodes are needed never depends on when
     * one arrived. */
    for (int64_t wanted = rows; st == TG_OK;) {
        st = run_round(c, wanted, err);
        if (st == TG_OK) st = check_failures(c, err);
        int64_t usable = usable_tokens(c);
        if (st != TG_OK || usable >= rows) break;
        wanted = c->finished_tokens + (rows - usable);
    }
    *info = (tg_collect_info){.episodes = c->n_records,
                              .failed = c->failed,
                              .dropped_groups = c->dropped_groups,
                              .tokens = tg_generator_tokens(c->generator),
                              .wait_s = c->wait_s};
    tg_generator_destroy(&c->generator);
    if (st == TG_INTERRUPTED) c->next_episode = c->first_episode;
    return st == TG_OK ? tg_collect_build(c, rows, out, err) : st;
}
