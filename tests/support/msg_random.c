/* Random messages. Sizes are small; the caps have tests of their own. */
#include "tests/support/msg.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

static uint32_t below(tg_rng *r, uint32_t n) {
    return (uint32_t)tg_rng_below(r, n);
}

static uint64_t number(tg_rng *r) {
    return tg_rng_u64(r) >> below(r, 64); /* all magnitudes */
}

static bool coin(tg_rng *r) {
    return below(r, 2);
}

static const char *text(tg_arena *a, tg_rng *r) {
    static const char *const pieces[] = {"a",    "Z", " ",  "\n", "\"", "\\",
                                         "é",    "ß", "漢", "字", "😀",  "\xf4\x8f\xbf\xbf",
                                         "\x7f", "€"};
    char *s = tg_arena_alloc(a, 256);
    size_t len = 0;
    for (uint32_t n = below(r, 24); n > 0; n--) {
        const char *piece = pieces[below(r, TG_COUNT_OF(pieces))];
        memcpy(s + len, piece, strlen(piece));
        len += strlen(piece);
    }
    return s;
}

static const char **texts(tg_arena *a, tg_rng *r, size_t *n) {
    *n = below(r, 5);
    const char **out = tg_arena_array(a, *n, sizeof *out);
    for (size_t i = 0; i < *n; i++) out[i] = text(a, r);
    return *n ? out : NULL;
}

static const int32_t *tokens(tg_arena *a, tg_rng *r, size_t *n) {
    *n = below(r, 40);
    int32_t *out = tg_arena_array(a, *n, sizeof *out);
    for (size_t i = 0; i < *n; i++) out[i] = (int32_t)(tg_rng_u32(r) >> (1 + below(r, 31)));
    return *n ? out : NULL;
}

/* No -0.0: protobuf-c sends a scalar field of that value as the default, 0.0. */
static double real(tg_rng *r) {
    static const double odd[] = {0.0, 1.0, -1.5, 1e-320, 1e308, (double)INFINITY};
    return coin(r) ? tg_rng_normal(r) : odd[below(r, TG_COUNT_OF(odd))];
}

static const double *reals(tg_arena *a, tg_rng *r, size_t n) {
    double *out = tg_arena_array(a, n, sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = real(r);
    return n ? out : NULL;
}

static const tg_component *components(tg_arena *a, tg_rng *r, size_t *n) {
    *n = below(r, 4);
    tg_component *out = tg_arena_array(a, *n, sizeof *out);
    for (size_t i = 0; i < *n; i++)
        out[i] = (tg_component){text(a, r), real(r), (tg_reward_status)below(r, 6)};
    return *n ? out : NULL;
}

static tg_env_spec spec(tg_arena *a, tg_rng *r) {
    tg_env_spec s = {
        .env_id = text(a, r),
        .config_digest = number(r),
        .tokenizer_digest = number(r),
        .vocab_size = (uint32_t)number(r),
        .eos_id = (uint32_t)number(r),
        .pad_id = (uint32_t)number(r),
        .has_eos = coin(r),
        .max_prompt_length = (uint32_t)number(r),
        .max_episode_length = (uint32_t)number(r),
        .terminate_on_eos = coin(r),
        .n_samples = {0, number(r), number(r), number(r)},
        .deterministic = coin(r),
        .capacity = (uint32_t)number(r),
        .has_context_start = coin(r),
        .n_tokens = (uint32_t)number(r),
        .compat = coin(r),
        .pad_right = coin(r),
        .has_reward = coin(r),
        .batched_reward = coin(r),
    };
    s.context_start = tokens(a, r, &s.n_context_start);
    s.reward_names = texts(a, r, &s.n_rewards);
    s.metric_names = texts(a, r, &s.n_metrics);
    return s;
}

static const tg_reward_fn *functions(tg_arena *a, tg_rng *r, size_t *n) {
    *n = below(r, 4);
    tg_reward_fn *out = tg_arena_array(a, *n, sizeof *out);
    for (size_t i = 0; i < *n; i++) {
        out[i] = (tg_reward_fn){text(a, r), text(a, r), coin(r), (uint32_t)number(r),
                                (uint32_t)number(r)};
    }
    return *n ? out : NULL;
}

static bool token(tg_rng *r, uint8_t out[16]) {
    if (coin(r)) return false;
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)tg_rng_u32(r);
    return true;
}

static void *hello(tg_arena *a, tg_rng *r) {
    tg_hello *m = tg_arena_alloc(a, sizeof *m);
    m->proto_major = (uint32_t)number(r);
    m->proto_minor = (uint32_t)number(r);
    m->heartbeat_ms = (uint32_t)number(r);
    m->role = (tg_role)(1 + below(r, 4));
    m->software = text(a, r);
    for (int i = 0; i < 16; i++) m->peer_uuid[i] = (uint8_t)tg_rng_u32(r);
    m->has_spec = coin(r);
    if (m->has_spec) m->spec = spec(a, r);
    m->capabilities = texts(a, r, &m->n_capabilities);
    m->resume_session = number(r);
    m->has_resume_token = token(r, m->resume_token);
    m->functions = functions(a, r, &m->n_functions);
    return m;
}

static void *welcome(tg_arena *a, tg_rng *r) {
    tg_welcome *m = tg_arena_alloc(a, sizeof *m);
    m->proto_minor = (uint32_t)number(r);
    m->heartbeat_ms = (uint32_t)number(r);
    m->lease_ms = (uint32_t)number(r);
    m->session = number(r);
    m->epoch = number(r);
    m->limits = (tg_limits){(uint32_t)number(r), (uint32_t)number(r), (uint32_t)number(r),
                            (uint32_t)number(r)};
    m->software = text(a, r);
    m->has_spec = coin(r);
    if (m->has_spec) m->spec = spec(a, r);
    m->capabilities = texts(a, r, &m->n_capabilities);
    m->has_resume_token = token(r, m->resume_token);
    m->resumed = coin(r);
    m->credits = (uint32_t)number(r);
    m->functions = functions(a, r, &m->n_functions);
    return m;
}

static void *slots(tg_arena *a, tg_rng *r) {
    tg_slot_list *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 50);
    uint32_t *list = tg_arena_array(a, m->n, sizeof *list);
    for (size_t i = 0; i < m->n; i++) list[i] = (uint32_t)number(r);
    m->slots = m->n ? list : NULL;
    return m;
}

static void *reset(tg_arena *a, tg_rng *r) {
    tg_reset_batch *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_reset_item *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_reset_item){(uint32_t)number(r),         number(r), number(r),
                               (tg_split)(1 + below(r, 3)), coin(r),   number(r)};
    }
    m->items = m->n ? x : NULL;
    m->want_text = coin(r);
    return m;
}

static void *reset_reply(tg_arena *a, tg_rng *r) {
    tg_reset_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_reset_result *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_reset_result){.slot = (uint32_t)number(r),
                                 .episode = number(r),
                                 .sample = number(r),
                                 .state_digest = number(r),
                                 .code = (tg_code)below(r, 23),
                                 .message = text(a, r),
                                 .prompt_text = text(a, r),
                                 .sample_id = text(a, r)};
        x[i].prompt = tokens(a, r, &x[i].n_prompt);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *step(tg_arena *a, tg_rng *r) {
    tg_step_batch *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_step_item *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_step_item){
            .slot = (uint32_t)number(r), .episode = number(r), .step = (uint32_t)number(r)};
        x[i].tokens = tokens(a, r, &x[i].n_tokens);
    }
    m->items = m->n ? x : NULL;
    m->deadline_ms = (uint32_t)number(r);
    m->want_text = coin(r);
    return m;
}

static void *step_reply(tg_arena *a, tg_rng *r) {
    tg_step_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_step_result *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_step_result){
            .slot = (uint32_t)number(r),
            .episode = number(r),
            .step = (uint32_t)number(r),
            .expected_step = (uint32_t)number(r),
            .n_applied = below(r, 30),
            .code = (tg_code)below(r, 23),
            .message = text(a, r),
            .text = text(a, r),
            .reward_status = (tg_reward_status)below(r, 6),
            .terminated = coin(r),
            .truncated = coin(r),
            .replayed = coin(r),
            .stop = (tg_stop)below(r, 5),
            .state_digest = number(r),
        };
        x[i].rewards = reals(a, r, x[i].n_applied);
        x[i].components = components(a, r, &x[i].n_components);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *restore(tg_arena *a, tg_rng *r) {
    tg_restore_batch *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_restore_item *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_restore_item){.slot = (uint32_t)number(r),
                                 .episode = number(r),
                                 .seed = number(r),
                                 .sample = number(r),
                                 .split = (tg_split)(1 + below(r, 3)),
                                 .reset_digest = number(r),
                                 .state_digest = number(r)};
        x[i].tokens = tokens(a, r, &x[i].n_tokens);
        x[i].rewards = reals(a, r, x[i].n_tokens);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *restore_reply(tg_arena *a, tg_rng *r) {
    tg_restore_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_restore_result *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_restore_result){.slot = (uint32_t)number(r),
                                   .episode = number(r),
                                   .state_digest = number(r),
                                   .code = (tg_code)below(r, 23),
                                   .message = text(a, r),
                                   .sample_id = text(a, r),
                                   .stop = (tg_stop)below(r, 5),
                                   .reward_status = (tg_reward_status)below(r, 6)};
        x[i].prompt = tokens(a, r, &x[i].n_prompt);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *snapshot_reply(tg_arena *a, tg_rng *r) {
    tg_snapshot_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_snapshot *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_snapshot){.slot = (uint32_t)number(r),
                             .live = coin(r),
                             .episode = number(r),
                             .seed = number(r),
                             .sample = number(r),
                             .state_digest = number(r),
                             .split = (tg_split)(1 + below(r, 3)),
                             .sample_id = text(a, r),
                             .terminated = coin(r),
                             .truncated = coin(r),
                             .stop = (tg_stop)below(r, 5),
                             .reward_status = (tg_reward_status)below(r, 6)};
        x[i].prompt = tokens(a, r, &x[i].n_prompt);
        x[i].tokens = tokens(a, r, &x[i].n_tokens);
        x[i].rewards = reals(a, r, x[i].n_tokens);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *sample_range(tg_arena *a, tg_rng *r) {
    tg_sample_range *m = tg_arena_alloc(a, sizeof *m);
    *m = (tg_sample_range){(tg_split)(1 + below(r, 3)), number(r), (uint32_t)number(r)};
    return m;
}

static void *samples(tg_arena *a, tg_rng *r) {
    tg_samples *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_sample *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_sample){.index = number(r),
                           .id = text(a, r),
                           .prompt_text = text(a, r),
                           .meta_json = text(a, r)};
        x[i].references = texts(a, r, &x[i].n_references);
        x[i].prompt = tokens(a, r, &x[i].n_prompt);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *metric(tg_arena *a, tg_rng *r) {
    tg_metric_request *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_generation *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_generation){.sample = number(r), .text = coin(r) ? text(a, r) : NULL};
        x[i].tokens = tokens(a, r, &x[i].n_tokens);
    }
    m->split = (tg_split)(1 + below(r, 3));
    m->items = m->n ? x : NULL;
    m->deadline_ms = (uint32_t)number(r);
    m->want_text = coin(r);
    return m;
}

static void *metric_reply(tg_arena *a, tg_rng *r) {
    tg_metric_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n_values = below(r, 20);
    tg_metric_value *x = tg_arena_array(a, m->n_values, sizeof *x);
    for (size_t i = 0; i < m->n_values; i++) {
        size_t n = below(r, 10);
        x[i] = (tg_metric_value){text(a, r), text(a, r), coin(r), real(r), reals(a, r, n), n};
    }
    m->values = m->n_values ? x : NULL;
    m->texts = texts(a, r, &m->n_texts);
    return m;
}

static void *score(tg_arena *a, tg_rng *r) {
    tg_score_request *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_score_item *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_score_item){.id = number(r),
                               .prompt = text(a, r),
                               .completion = text(a, r),
                               .meta_json = text(a, r)};
        x[i].references = texts(a, r, &x[i].n_references);
    }
    m->fn = text(a, r);
    m->items = m->n ? x : NULL;
    m->deadline_ms = (uint32_t)number(r);
    m->ranked = coin(r);
    return m;
}

static void *score_reply(tg_arena *a, tg_rng *r) {
    tg_score_reply *m = tg_arena_alloc(a, sizeof *m);
    m->n = below(r, 20);
    tg_score_result *x = tg_arena_array(a, m->n, sizeof *x);
    for (size_t i = 0; i < m->n; i++) {
        x[i] = (tg_score_result){.id = number(r),
                                 .status = (tg_reward_status)below(r, 6),
                                 .value = real(r),
                                 .message = text(a, r)};
        x[i].components = components(a, r, &x[i].n_components);
    }
    m->items = m->n ? x : NULL;
    return m;
}

static void *heartbeat(tg_arena *a, tg_rng *r) {
    tg_heartbeat *m = tg_arena_alloc(a, sizeof *m);
    *m = (tg_heartbeat){number(r),           number(r), number(r),           number(r),
                        (uint32_t)number(r), coin(r),   (uint32_t)number(r), number(r)};
    return m;
}

static void *wire_error(tg_arena *a, tg_rng *r) {
    tg_wire_error *m = tg_arena_alloc(a, sizeof *m);
    *m = (tg_wire_error){(tg_code)below(r, 23), text(a, r), coin(r), (uint32_t)number(r)};
    return m;
}

static void *bye(tg_arena *a, tg_rng *r) {
    tg_bye *m = tg_arena_alloc(a, sizeof *m);
    m->reason = text(a, r);
    return m;
}

void *tg_test_msg_random(tg_arena *a, tg_rng *r, tg_msg_type type) {
    switch (type) {
    case TG_MSG_HELLO: return hello(a, r);
    case TG_MSG_WELCOME: return welcome(a, r);
    case TG_MSG_OPEN_SLOTS:
    case TG_MSG_SLOTS_OPENED:
    case TG_MSG_CLOSE_SLOTS:
    case TG_MSG_SNAPSHOT:
    case TG_MSG_CANCEL: return slots(a, r);
    case TG_MSG_RESTORE: return restore(a, r);
    case TG_MSG_RESTORE_REPLY: return restore_reply(a, r);
    case TG_MSG_SNAPSHOT_REPLY: return snapshot_reply(a, r);
    case TG_MSG_RESET: return reset(a, r);
    case TG_MSG_RESET_REPLY: return reset_reply(a, r);
    case TG_MSG_STEP: return step(a, r);
    case TG_MSG_STEP_REPLY: return step_reply(a, r);
    case TG_MSG_SAMPLE_RANGE: return sample_range(a, r);
    case TG_MSG_SAMPLES: return samples(a, r);
    case TG_MSG_METRIC: return metric(a, r);
    case TG_MSG_METRIC_REPLY: return metric_reply(a, r);
    case TG_MSG_SCORE: return score(a, r);
    case TG_MSG_SCORE_REPLY: return score_reply(a, r);
    case TG_MSG_HEARTBEAT: return heartbeat(a, r);
    case TG_MSG_ERROR: return wire_error(a, r);
    case TG_MSG_BYE: return bye(a, r);
    }
    return NULL;
}
