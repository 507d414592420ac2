/* env-play: plays a fixed set of episodes on an environment server, or on the environment itself without any server
 * (--local), and writes one line for each: sample, prompt, rewards, end, state digest. The two files must be equal,
 * whatever happened to workers, brokers and the network meanwhile: --local is the model of the history.
 *
 * Tokens are a function of (seed, episode, step). Each call's result is checked to come once and in order; failed calls
 * are counted by code and the episode's line says so. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/net/pool.h"
#include "env-server/cli/load.h"
#include "env-server/env/env.h"
#include "env-server/env/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RUN = 64, SLOW_MS = 20 };

typedef struct line {
    uint64_t sample, prompt, rewards, digest;
    uint32_t n_tokens;
    bool terminated, truncated, done;
    int stop, status;
    tg_code code;
} line;

typedef struct play {
    uint64_t seed, episodes, next, finished, failed, out_of_order;
    uint32_t max_run, vocab, eos;
    double eos_rate;
    line *lines;
    uint64_t *episode; /* of each slot */
    uint32_t *step;
    uint64_t slowest_ms; /* of a call */
    uint64_t taken;      /* results of calls */
    uint64_t again;      /* calls asked again after their deadline */
    bool ask_again, check_restore;
    uint64_t restored, restored_wrong;
    uint64_t *begun_ms; /* by slot */
    const char *until;  /* no episode begins once this file is there */
    uint64_t looked_ms; /* for it */
    double rate;        /* calls a second; 0: as fast as they are answered */
    uint64_t started_ms, calls;
    FILE *slow;
} play;

static uint32_t choose(const play *p, uint64_t episode, uint32_t step, int32_t out[MAX_RUN]) {
    tg_rng r = tg_rng_at(p->seed, TG_RNG_TEST, episode, step);
    uint32_t n = 1 + (uint32_t)tg_rng_below(&r, p->max_run);
    for (uint32_t i = 0; i < n; i++) {
        bool eos = tg_rng_uniform(&r) < p->eos_rate;
        out[i] = (int32_t)(eos ? p->eos : tg_rng_below(&r, p->vocab));
    }
    return n;
}

/* What a slot does next. */
typedef enum turn { STEP, RESET, RESET_AGAIN } turn;

static tg_reset_item next_reset(play *p, uint32_t slot, turn t) {
    if (t == RESET) p->episode[slot] = p->next++;
    p->step[slot] = 0;
    p->begun_ms[slot] = tg_clock_ms();
    return (tg_reset_item){
        .slot = slot, .episode = p->episode[slot], .seed = p->seed, .split = TG_SPLIT_TRAIN};
}

static tg_step_item next_step(play *p, uint32_t slot, int32_t tokens[MAX_RUN]) {
    p->begun_ms[slot] = tg_clock_ms();
    tg_step_item x = {slot, p->episode[slot], p->step[slot], tokens, 0};
    x.n_tokens = choose(p, x.episode, x.step, tokens);
    return x;
}

static void end(play *p, line *l, tg_code code) {
    l->done = true;
    l->code = code;
    p->finished++;
    p->failed += code != TG_CODE_OK;
}

static void time_call(play *p, uint32_t slot) {
    uint64_t ms = tg_clock_ms() - p->begun_ms[slot];
    p->taken++;
    if (ms > p->slowest_ms) p->slowest_ms = ms;
    if (p->slow && ms >= SLOW_MS)
        fprintf(p->slow, "%" PRIu64 " %" PRIu64 "\n", p->begun_ms[slot], p->begun_ms[slot] + ms);
}

static turn take_reset(play *p, const tg_reset_result *r) {
    line *l = &p->lines[p->episode[r->slot]];
    time_call(p, r->slot);
    p->out_of_order += r->episode != p->episode[r->slot] || l->done;
    if (r->code == TG_CODE_OK) {
        l->sample = r->sample;
        l->prompt = tg_siphash(1, 1, r->prompt, r->n_prompt * sizeof *r->prompt);
        l->digest = r->state_digest;
        return STEP;
    }
    if (r->code == TG_CODE_DEADLINE_EXCEEDED && p->ask_again) {
        p->again++;
        return RESET_AGAIN;
    }
    end(p, l, r->code);
    return RESET;
}

static turn take_step(play *p, const tg_step_result *r) {
    line *l = &p->lines[p->episode[r->slot]];
    time_call(p, r->slot);
    p->out_of_order += r->episode != p->episode[r->slot] || r->step != p->step[r->slot] || l->done;
    if (r->code == TG_CODE_DEADLINE_EXCEEDED && p->ask_again) {
        p->again++; /* the same step once more: its tokens are a function of its number */
        return STEP;
    }
    if (r->code != TG_CODE_OK) {
        end(p, l, r->code);
        return RESET;
    }
    if (r->reward_status == TG_REWARD_OK)
        l->rewards = tg_siphash(l->rewards, 2, r->rewards, r->n_applied * sizeof *r->rewards);
    p->step[r->slot] += r->n_applied;
    l->n_tokens += r->n_applied;
    l->digest = r->state_digest;
    l->terminated = r->terminated, l->truncated = r->truncated;
    l->stop = (int)r->stop, l->status = (int)r->reward_status;
    if (!r->terminated && !r->truncated) return STEP;
    end(p, l, TG_CODE_OK);
    return RESET;
}

/* ---- restoring, beside the life ------------------------------------------------------------- */

typedef struct twin {
    tg_slot slot;
    int32_t tokens[4096];
    double rewards[4096];
    size_t n;
    uint64_t reset_digest;
    tg_reset_item reset;
} twin;

/* After every step a second slot is put back from the log and must be in the same state. */
static void check_twin(play *p, const tg_env *env, twin *t, const tg_step_item *x,
                       const tg_step_result *r) {
    for (uint32_t i = 0; i < r->n_applied && t->n < 4096; i++, t->n++) {
        t->tokens[t->n] = x->tokens[i];
        t->rewards[t->n] = r->rewards[i];
    }
    if (r->terminated || r->truncated) return;
    tg_restore_item item = {.slot = 0,
                            .episode = t->reset.episode,
                            .seed = t->reset.seed,
                            .split = t->reset.split,
                            .sample = t->reset.sample,
                            .tokens = t->tokens,
                            .rewards = t->rewards,
                            .n_tokens = t->n,
                            .reset_digest = t->reset_digest,
                            .state_digest = r->state_digest};
    tg_restore_result out;
    tg_slot_restore(env, &t->slot, &item, &out);
    p->restored++;
    p->restored_wrong += out.code != TG_CODE_OK || out.state_digest != r->state_digest;
}

/* ---- without a server ----------------------------------------------------------------------- */

static tg_status play_locally(play *p, const tg_env *env, twin *t, tg_error *err) {
    tg_slot s;
    tg_status st = tg_slot_init(&s, env, 0, err);
    int32_t tokens[MAX_RUN];
    while (st == TG_OK && p->next < p->episodes) {
        tg_reset_item item = next_reset(p, 0, RESET);
        tg_reset_result reset;
        tg_step_result step;
        tg_slot_reset(env, &s, &item, false, &reset);
        turn next = take_reset(p, &reset);
        t->n = 0, t->reset = item, t->reset.sample = reset.sample;
        t->reset_digest = reset.state_digest;
        while (next == STEP) {
            tg_step_item x = next_step(p, 0, tokens);
            tg_slot_step(env, &s, &x, false, &step);
            if (p->check_restore) check_twin(p, env, t, &x, &step);
            next = take_step(p, &step);
        }
    }
    tg_slot_fini(&s);
    return st;
}

/* ---- with one ------------------------------------------------------------------------------- */

/* Short of `rate` calls a second there is nothing to do: the pool's loop stands still for that long. */
static void keep_pace(play *p) {
    if (p->rate <= 0) return;
    uint64_t now = tg_clock_ms();
    if (!p->calls) p->started_ms = now;
    double due = (double)p->started_ms + 1000.0 * (double)p->calls++ / p->rate;
    if (due > (double)now + 1)
        usleep((useconds_t)(1000.0 * (due - (double)now)));
    else if (due < (double)now - 1000)
        p->calls = 0; /* what was missed is not made up for */
}

static void look_for_the_end(play *p) {
    uint64_t now = tg_clock_ms();
    if (!p->until || now < p->looked_ms + 100) return;
    p->looked_ms = now;
    if (access(p->until, F_OK) == 0) p->episodes = p->next;
}

static tg_status advance(play *p, tg_pool *pool, uint32_t slot, turn next, tg_error *err) {
    int32_t tokens[MAX_RUN];
    keep_pace(p);
    look_for_the_end(p);
    if (next == RESET && p->next == p->episodes) return TG_OK;
    if (next != STEP) {
        tg_reset_item item = next_reset(p, slot, next);
        return tg_pool_reset(pool, &item, 1, err);
    }
    tg_step_item item = next_step(p, slot, tokens);
    return tg_pool_step(pool, &item, 1, err);
}

static tg_status play_remotely(play *p, tg_pool *pool, uint32_t slots, tg_error *err) {
    tg_status st = tg_pool_open_slots(pool, (int)slots, err);
    for (uint32_t i = 0; i < slots && st == TG_OK && p->next < p->episodes; i++)
        st = advance(p, pool, i, RESET, err);
    while (st == TG_OK && p->finished < p->episodes) {
        tg_pool_event e;
        st = tg_pool_wait(pool, &e, 120000, err);
        if (st != TG_OK) break;
        bool reset = e.kind == TG_POOL_RESET;
        uint32_t slot = reset ? e.reset.slot : e.step.slot;
        turn next = reset ? take_reset(p, &e.reset) : take_step(p, &e.step);
        st = advance(p, pool, slot, next, err);
    }
    return st;
}

/* ---- results -------------------------------------------------------------------------------- */

static tg_status write_lines(const play *p, const char *path, tg_error *err) {
    FILE *f = path ? fopen(path, "w") : stdout;
    if (!f) return tg_fail(err, TG_IO, "%s cannot be written", path);
    for (uint64_t i = 0; i < p->episodes; i++) {
        const line *l = &p->lines[i];
        fprintf(f,
                "%" PRIu64 " %s sample %" PRIu64 " prompt %016" PRIx64
                " tokens %u rewards %016" PRIx64 " end %d%d stop %d status %d digest %016" PRIx64
                "\n",
                i, tg_code_name(l->code), l->sample, l->prompt, l->n_tokens, l->rewards,
                l->terminated, l->truncated, l->stop, l->status, l->digest);
    }
    return f == stdout || fclose(f) == 0 ? TG_OK : tg_fail(err, TG_IO, "%s: write failed", path);
}

static tg_status start(play *p, const tg_env_spec *spec, uint32_t slots, tg_error *err) {
    p->vocab = spec->vocab_size, p->eos = spec->has_eos ? spec->eos_id : 0;
    p->lines = tg_alloc_array(p->episodes, sizeof *p->lines);
    p->episode = tg_alloc_array(slots, sizeof *p->episode);
    p->step = tg_alloc_array(slots, sizeof *p->step);
    p->begun_ms = tg_alloc_array(slots, sizeof *p->begun_ms);
    return p->lines && p->episode && p->step && p->begun_ms ? TG_OK : tg_fail_nomem(err, slots);
}

static tg_status run_local(play *p, const char *config, const tg_args *args, tg_error *err) {
    tg_loaded l;
    tg_env *env;
    tg_status st = tg_loaded_open(&l, config, args, err);
    if (st != TG_OK) return st;
    st = tg_env_open(&env, &l.settings, err);
    if (st == TG_OK) {
        twin *t = tg_alloc(sizeof *t);
        st = t ? start(p, &env->spec, 1, err) : tg_fail_nomem(err, sizeof *t);
        if (st == TG_OK) st = tg_slot_init(&t->slot, env, 1, err);
        if (st == TG_OK) {
            st = play_locally(p, env, t, err);
            tg_slot_fini(&t->slot);
        }
        if (p->check_restore)
            fprintf(stderr, "env-play: restored %" PRIu64 " wrong %" PRIu64 "\n", p->restored,
                    p->restored_wrong);
        tg_free(t);
        tg_env_close(&env);
    }
    tg_loaded_close(&l);
    return st;
}

static tg_status run_remote(play *p, const tg_pool_opts *o, uint32_t slots, tg_error *err) {
    tg_pool *pool;
    tg_pool_stats stats = {0};
    tg_status st = tg_pool_open(&pool, o, err);
    if (st != TG_OK) return st;
    st = start(p, tg_pool_spec(pool), slots, err);
    if (st == TG_OK) st = play_remotely(p, pool, slots, err);
    tg_pool_get_stats(pool, &stats);
    fprintf(stderr,
            "env-play: lost %" PRIu64 " rebuilt %" PRIu64 " dropped %" PRIu64 " slowest %" PRIu64
            " ms again %" PRIu64 " calls %" PRIu64 "\n",
            stats.workers_lost, stats.episodes_rebuilt, stats.replies_dropped, p->slowest_ms,
            p->again, p->taken);
    tg_pool_close(&pool);
    return st;
}

int main(int argc, char **argv) {
    const char *config = NULL, *out = NULL, *slow = NULL;
    bool local = false;
    tg_pool_opts o = {0};
    int64_t slots = 16, episodes = 100, seed = 1, run = 3, timeout = 30000, workers = 1, beat = 0;
    play p = {.eos_rate = 0.03};
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &config, "FILE", "With --local: the environment's config."},
        {"local", TG_FLAG_SWITCH, &local, NULL, "Play without a server."},
        {"address", TG_FLAG_STR, &o.connect, "ADDRESSES", "Servers to connect to."},
        {"bind", TG_FLAG_STR, &o.bind, "ADDRESS", "Workers connect here."},
        {"min-workers", TG_FLAG_INT, &workers, "N", "Wait for so many (1)."},
        {"slots", TG_FLAG_INT, &slots, "N", "Episodes at a time (16)."},
        {"episodes", TG_FLAG_INT, &episodes, "N", "Episodes (100)."},
        {"seed", TG_FLAG_INT, &seed, "S", "Seed (1)."},
        {"run", TG_FLAG_INT, &run, "N", "At most so many tokens a step (3)."},
        {"eos-rate", TG_FLAG_FLOAT, &p.eos_rate, "P", "Share of tokens that end it (0.03)."},
        {"timeout-ms", TG_FLAG_INT, &timeout, "MS", "Deadline of a call (30000)."},
        {"heartbeat-ms", TG_FLAG_INT, &beat, "MS", "Heartbeats (1000)."},
        {"again", TG_FLAG_SWITCH, &p.ask_again, NULL,
         "Ask again for a step or a reset after its deadline."},
        {"check-restore", TG_FLAG_SWITCH, &p.check_restore, NULL,
         "With --local: put the episode back after every step and compare."},
        {"rate", TG_FLAG_FLOAT, &p.rate, "N", "At most so many calls a second (0: any number)."},
        {"until", TG_FLAG_STR, &p.until, "FILE", "No episode begins once FILE is there."},
        {"slow", TG_FLAG_STR, &slow, "FILE",
         "Begin and end (monotonic ms) of every call of 20 ms or more."},
        {"out", TG_FLAG_STR, &out, "FILE", "One line for each episode (stdout)."},
        {0}};
    const tg_args_spec spec = {"env-play",
                               "(--local --config FILE | --address A | --bind A)",
                               "Plays fixed episodes and writes what happened.",
                               flags,
                               NULL,
                               0,
                               0,
                               false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st == TG_OK && !args.help) {
        p.seed = (uint64_t)seed, p.episodes = (uint64_t)episodes;
        p.max_run = (uint32_t)(run < 1 ? 1 : run > MAX_RUN ? MAX_RUN : run);
        o.min_workers = (int)workers, o.call_timeout_ms = (int)timeout;
        o.heartbeat_ms = (int)beat;
        o.open_timeout_ms = timeout > 60000 ? (int)timeout : 60000;
        p.slow = slow ? fopen(slow, "w") : NULL;
        st = local ? run_local(&p, config, &args, &err) : run_remote(&p, &o, (uint32_t)slots, &err);
        if (st == TG_OK) st = write_lines(&p, out, &err);
        if (st == TG_OK && (p.failed || p.out_of_order))
            fprintf(stderr,
                    "env-play: %" PRIu64 " episodes failed, %" PRIu64 " results out of order\n",
                    p.failed, p.out_of_order);
    }
    if (p.slow) fclose(p.slow);
    tg_args_fini(&args);
    tg_free(p.lines);
    tg_free(p.episode);
    tg_free(p.step);
    tg_free(p.begun_ms);
    if (st != TG_OK) return tg_args_report("env-play", &err);
    return p.failed || p.out_of_order || p.restored_wrong ? 1 : 0;
}
