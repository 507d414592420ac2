/* The generator's parts: queue and batch (generate.c), single sequences (generate_samples.c), beams (generate_beams.c). */
#ifndef TG_POLICY_GENERATE_IMPL_H
#define TG_POLICY_GENERATE_IMPL_H

#include "common/nn/pass.h"
#include "learner/policy/beam.h"
#include "learner/policy/generate.h"
#include "learner/policy/sample.h"

/* A prompt on its way. One block with its tokens; kept and used again when it is over. */
typedef struct tg_request {
    uint64_t id, seed, number;
    uint64_t serial; /* order of arrival: names what a slot holds */
    tg_rng_domain domain;
    int n_prompt;         /* tokens the decoder begins with */
    int n_source, source; /* the encoder's, or the prompt again: n_source tokens from there on */
    int max_new;
    int started, ended; /* of num_return_sequences */
    int cap;            /* of tokens */
    struct tg_request *next;
    int32_t tokens[];
} tg_request;

/* A sequence in a slot, without beams. */
typedef struct tg_running {
    tg_request *request; /* NULL: the slot is free */
    int index;
    int n_new;
    uint64_t held;   /* serial of the request whose prompt the slot's cache begins with; 0: none */
    int32_t *tokens; /* (max_len + 1) */
    float *logp, *sample_logp, *value; /* (max_len + 1) */
} tg_running;

/* A beam search and its slots. */
typedef struct tg_lane {
    tg_request *request; /* NULL: free */
    tg_beams *beams;
    bool fresh;        /* its prompt is prefilled in this step */
    int first;         /* slots first .. first + num_beams - 1 */
    int32_t *slot;     /* (num_beams) slot of each beam */
    int32_t *next;     /* (num_beams) scratch of reordering */
    bool *taken;       /* (num_beams) slot first + i is in use */
    const float **row; /* (num_beams) logits of each beam in this step */
    int *entry;        /* (num_beams) which of the step's entries that is */
    uint32_t **masks;  /* (num_beams) with masks: what each beam may go on with; NULL: without */
    int32_t *held;     /* (num_beams, max_len) what each slot's cache holds … */
    int *n_held;       /* (num_beams) … and how much of it */
} tg_lane;

/* One row of logits that this step computes or reuses. */
typedef struct tg_entry {
    int32_t slot;
    float value; /* with caps.values */
    const float *row;
} tg_entry;

struct tg_generator {
    tg_model *model;
    tg_gen_settings settings;
    tg_decoder *decoder;
    tg_decoder_caps caps;
    int n_slots, max_len, max_src, V;
    bool seq2seq;
    tg_request *first, **last; /* the queue */
    tg_request *unused;
    int n_queued, n_active; /* prompts waiting; waiting or running */
    uint64_t serials;
    int64_t tokens_done; /* of finished sequences */
    /* one step's batch: n_step slots that go on, n_fill that are prefilled, then those that start from an earlier prefill */
    int32_t *slots, *feed, *offsets; /* (n_slots), (n_slots), (n_slots + 1) */
    int32_t *prompts;                /* (cap_prompts) */
    int32_t *src_offsets, *sources;  /* seq2seq: (n_slots + 1), (cap_sources) */
    size_t cap_prompts, cap_sources;
    float *logits; /* (n_slots, V) */
    /* with masks */
    tg_mask_opts mask;
    tg_decoder *mask_decoder;
    const uint32_t *always;
    float *mask_logits; /* (n_slots, V), as logits */
    uint32_t *masks;    /* (n_slots, max_len + 1, words); with beams (n_slots, words) */
    tg_entry *entries;
    int n_step, n_fill, n_entries;
    int n_threads;
    tg_gen_space *spaces; /* (n_threads) */
    tg_status *status;    /* (n_slots) of each entry or lane */
    tg_error *errors;
    /* without beams */
    tg_running *running; /* (n_slots) */
    int32_t *storage;
    float *shared; /* (V) logits after the prompt of the request that is only partly started */
    float shared_value;
    uint64_t shared_serial;
    /* with beams */
    tg_lane *lanes;
    int n_lanes;
};

static inline const int32_t *tg_request_source(const tg_request *r) {
    return r->tokens + r->source;
}

/* queue */
tg_request *tg_requests_head(const tg_generator *g);
tg_request *tg_requests_pop(tg_generator *g);
void tg_requests_end(tg_generator *g, tg_request *r);

/* batch: a slot goes on by a token; a slot starts with a prompt. Each returns the entry's number. */
int tg_batch_feed(tg_generator *g, int slot, int32_t token);
tg_status tg_batch_fill(tg_generator *g, int slot, const tg_request *r,
                        tg_error *err) TG_MUST_CHECK;
/* Runs the model; afterwards the rows of the entries are there. */
tg_status tg_batch_run(tg_generator *g, tg_error *err) TG_MUST_CHECK;
/* Spreads work(g, i, space) over the team, i < n; the first failure counts. */
typedef tg_status tg_batch_work(tg_generator *g, int i, tg_gen_space *w, tg_error *err);
tg_status tg_batch_spread(tg_generator *g, int n, tg_batch_work *work, tg_error *err) TG_MUST_CHECK;

tg_status tg_samples_create(tg_generator *g, tg_error *err) TG_MUST_CHECK;
void tg_samples_destroy(tg_generator *g);
tg_status tg_samples_advance(tg_generator *g, tg_gen_done *done, void *arg,
                             tg_error *err) TG_MUST_CHECK;

tg_status tg_lanes_create(tg_generator *g, tg_error *err) TG_MUST_CHECK;
void tg_lanes_destroy(tg_generator *g);
tg_status tg_lanes_mask(tg_generator *g, tg_error *err) TG_MUST_CHECK; /* after g->masks is there */
tg_status tg_lanes_advance(tg_generator *g, tg_gen_done *done, void *arg,
                           tg_error *err) TG_MUST_CHECK;

#endif
