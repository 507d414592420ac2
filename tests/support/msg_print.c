/* Messages as one line of JSON. A field forgotten by the codec shows as a difference between the
 * two prints. */
#include "tests/support/msg.h"

#include <inttypes.h>
#include <string.h>

static void key(tg_buf *b, const char *name) {
    char last = b->len ? b->data[b->len - 1] : '{';
    tg_buf_printf(b, "%s\"%s\":", last == '{' ? "" : ",", name);
}

static void num(tg_buf *b, const char *name, uint64_t v) {
    key(b, name);
    tg_buf_printf(b, "%" PRIu64, v);
}

static void boolean(tg_buf *b, const char *name, bool v) {
    key(b, name);
    tg_buf_puts(b, v ? "true" : "false");
}

static void hex(tg_buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    tg_buf_printf(b, "\"%016" PRIx64 "\"", bits);
}

static void real(tg_buf *b, const char *name, double v) {
    key(b, name);
    hex(b, v);
}

static void quoted(tg_buf *b, const char *s) {
    tg_buf_putc(b, '"');
    for (; s && *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            tg_buf_printf(b, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            tg_buf_printf(b, "\\u%04x", c);
        } else {
            tg_buf_putc(b, (char)c);
        }
    }
    tg_buf_putc(b, '"');
}

static void text(tg_buf *b, const char *name, const char *s) {
    key(b, name);
    quoted(b, s);
}

static void texts(tg_buf *b, const char *name, const char *const *s, size_t n) {
    key(b, name);
    for (size_t i = 0; i < n; i++) {
        tg_buf_putc(b, i ? ',' : '[');
        quoted(b, s[i]);
    }
    tg_buf_puts(b, n ? "]" : "[]");
}

static void ids(tg_buf *b, const char *name, const int32_t *t, size_t n) {
    key(b, name);
    tg_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++) tg_buf_printf(b, i ? ",%d" : "%d", t[i]);
    tg_buf_putc(b, ']');
}

static void reals(tg_buf *b, const char *name, const double *v, size_t n) {
    key(b, name);
    tg_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) tg_buf_putc(b, ',');
        hex(b, v[i]);
    }
    tg_buf_putc(b, ']');
}

/* Opens a list of objects; each element is begun with next(). */
static void list(tg_buf *b, const char *name) {
    key(b, name);
    tg_buf_putc(b, '[');
}

static void next(tg_buf *b) {
    tg_buf_puts(b, b->data[b->len - 1] == '[' ? "{" : ",{");
}

static void components(tg_buf *b, const tg_component *c, size_t n) {
    list(b, "components");
    for (size_t i = 0; i < n; i++) {
        next(b);
        text(b, "name", c[i].name);
        real(b, "value", c[i].value);
        num(b, "status", c[i].status);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void spec(tg_buf *b, bool has, const tg_env_spec *s) {
    key(b, "spec");
    if (!has) {
        tg_buf_puts(b, "null");
        return;
    }
    tg_buf_putc(b, '{');
    text(b, "env_id", s->env_id);
    num(b, "config_digest", s->config_digest);
    num(b, "tokenizer_digest", s->tokenizer_digest);
    num(b, "vocab_size", s->vocab_size);
    num(b, "eos_id", s->eos_id);
    num(b, "pad_id", s->pad_id);
    boolean(b, "has_eos", s->has_eos);
    num(b, "max_prompt_length", s->max_prompt_length);
    num(b, "max_episode_length", s->max_episode_length);
    boolean(b, "terminate_on_eos", s->terminate_on_eos);
    num(b, "n_train", s->n_samples[TG_SPLIT_TRAIN]);
    num(b, "n_val", s->n_samples[TG_SPLIT_VAL]);
    num(b, "n_test", s->n_samples[TG_SPLIT_TEST]);
    texts(b, "reward_names", s->reward_names, s->n_rewards);
    texts(b, "metric_names", s->metric_names, s->n_metrics);
    boolean(b, "deterministic", s->deterministic);
    num(b, "capacity", s->capacity);
    ids(b, "context_start", s->context_start, s->n_context_start);
    boolean(b, "has_context_start", s->has_context_start);
    num(b, "n_tokens", s->n_tokens);
    boolean(b, "compat", s->compat);
    boolean(b, "pad_right", s->pad_right);
    boolean(b, "has_reward", s->has_reward);
    boolean(b, "batched_reward", s->batched_reward);
    tg_buf_putc(b, '}');
}

static void functions(tg_buf *b, const tg_reward_fn *f, size_t n) {
    list(b, "functions");
    for (size_t i = 0; i < n; i++) {
        next(b);
        text(b, "name", f[i].name);
        text(b, "version", f[i].version);
        boolean(b, "deterministic", f[i].deterministic);
        num(b, "max_batch", f[i].max_batch);
        num(b, "concurrency", f[i].concurrency);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void bytes16(tg_buf *b, const char *name, bool has, const uint8_t *v) {
    key(b, name);
    tg_buf_putc(b, '"');
    for (int i = 0; has && i < 16; i++) tg_buf_printf(b, "%02x", v[i]);
    tg_buf_putc(b, '"');
}

static void hello(tg_buf *b, const tg_hello *m) {
    num(b, "proto_major", m->proto_major);
    num(b, "proto_minor", m->proto_minor);
    text(b, "software", m->software);
    num(b, "role", m->role);
    texts(b, "capabilities", m->capabilities, m->n_capabilities);
    bytes16(b, "peer_uuid", true, m->peer_uuid);
    num(b, "heartbeat_ms", m->heartbeat_ms);
    spec(b, m->has_spec, &m->spec);
    num(b, "resume_session", m->resume_session);
    bytes16(b, "resume_token", m->has_resume_token, m->resume_token);
    functions(b, m->functions, m->n_functions);
}

static void welcome(tg_buf *b, const tg_welcome *m) {
    num(b, "proto_minor", m->proto_minor);
    texts(b, "capabilities", m->capabilities, m->n_capabilities);
    num(b, "session", m->session);
    num(b, "epoch", m->epoch);
    num(b, "heartbeat_ms", m->heartbeat_ms);
    num(b, "lease_ms", m->lease_ms);
    key(b, "limits");
    tg_buf_putc(b, '{');
    num(b, "max_message", m->limits.max_message);
    num(b, "max_slots", m->limits.max_slots);
    num(b, "max_batch", m->limits.max_batch);
    num(b, "max_tokens", m->limits.max_tokens);
    tg_buf_putc(b, '}');
    text(b, "software", m->software);
    spec(b, m->has_spec, &m->spec);
    bytes16(b, "resume_token", m->has_resume_token, m->resume_token);
    boolean(b, "resumed", m->resumed);
    num(b, "credits", m->credits);
    functions(b, m->functions, m->n_functions);
}

static void slots(tg_buf *b, const tg_slot_list *m) {
    key(b, "slots");
    tg_buf_putc(b, '[');
    for (size_t i = 0; i < m->n; i++) tg_buf_printf(b, i ? ",%u" : "%u", m->slots[i]);
    tg_buf_putc(b, ']');
}

static void reset(tg_buf *b, const tg_reset_batch *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_reset_item *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "seed", x->seed);
        num(b, "split", x->split);
        boolean(b, "has_sample", x->has_sample);
        num(b, "sample", x->sample);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
    boolean(b, "want_text", m->want_text);
}

static void reset_reply(tg_buf *b, const tg_reset_reply *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_reset_result *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "code", x->code);
        text(b, "message", x->message);
        num(b, "sample", x->sample);
        ids(b, "prompt", x->prompt, x->n_prompt);
        text(b, "prompt_text", x->prompt_text);
        num(b, "state_digest", x->state_digest);
        text(b, "sample_id", x->sample_id);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void step(tg_buf *b, const tg_step_batch *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_step_item *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "step", x->step);
        ids(b, "tokens", x->tokens, x->n_tokens);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
    num(b, "deadline_ms", m->deadline_ms);
    boolean(b, "want_text", m->want_text);
}

static void step_reply(tg_buf *b, const tg_step_reply *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_step_result *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "step", x->step);
        num(b, "code", x->code);
        text(b, "message", x->message);
        num(b, "n_applied", x->n_applied);
        reals(b, "rewards", x->rewards, x->n_applied);
        num(b, "reward_status", x->reward_status);
        boolean(b, "terminated", x->terminated);
        boolean(b, "truncated", x->truncated);
        num(b, "stop", x->stop);
        num(b, "state_digest", x->state_digest);
        boolean(b, "replayed", x->replayed);
        text(b, "text", x->text);
        components(b, x->components, x->n_components);
        num(b, "expected_step", x->expected_step);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void restore(tg_buf *b, const tg_restore_batch *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_restore_item *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "seed", x->seed);
        num(b, "split", x->split);
        num(b, "sample", x->sample);
        ids(b, "tokens", x->tokens, x->n_tokens);
        reals(b, "rewards", x->rewards, x->n_tokens);
        num(b, "reset_digest", x->reset_digest);
        num(b, "state_digest", x->state_digest);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void restore_reply(tg_buf *b, const tg_restore_reply *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_restore_result *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        num(b, "episode", x->episode);
        num(b, "code", x->code);
        text(b, "message", x->message);
        num(b, "state_digest", x->state_digest);
        text(b, "sample_id", x->sample_id);
        ids(b, "prompt", x->prompt, x->n_prompt);
        num(b, "stop", x->stop);
        num(b, "reward_status", x->reward_status);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void snapshot_reply(tg_buf *b, const tg_snapshot_reply *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_snapshot *x = &m->items[i];
        next(b);
        num(b, "slot", x->slot);
        boolean(b, "live", x->live);
        num(b, "episode", x->episode);
        num(b, "seed", x->seed);
        num(b, "split", x->split);
        num(b, "sample", x->sample);
        text(b, "sample_id", x->sample_id);
        ids(b, "prompt", x->prompt, x->n_prompt);
        ids(b, "tokens", x->tokens, x->n_tokens);
        reals(b, "rewards", x->rewards, x->n_tokens);
        num(b, "state_digest", x->state_digest);
        boolean(b, "terminated", x->terminated);
        boolean(b, "truncated", x->truncated);
        num(b, "stop", x->stop);
        num(b, "reward_status", x->reward_status);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void sample_range(tg_buf *b, const tg_sample_range *m) {
    num(b, "split", m->split);
    num(b, "first", m->first);
    num(b, "n", m->n);
}

static void samples(tg_buf *b, const tg_samples *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_sample *x = &m->items[i];
        next(b);
        num(b, "index", x->index);
        text(b, "id", x->id);
        text(b, "prompt_text", x->prompt_text);
        texts(b, "references", x->references, x->n_references);
        text(b, "meta_json", x->meta_json);
        ids(b, "prompt", x->prompt, x->n_prompt);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void metric(tg_buf *b, const tg_metric_request *m) {
    num(b, "split", m->split);
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_generation *x = &m->items[i];
        next(b);
        num(b, "sample", x->sample);
        ids(b, "tokens", x->tokens, x->n_tokens);
        text(b, "text", x->text);
        boolean(b, "has_text", x->text != NULL);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
    num(b, "deadline_ms", m->deadline_ms);
    boolean(b, "want_text", m->want_text);
}

static void metric_reply(tg_buf *b, const tg_metric_reply *m) {
    list(b, "values");
    for (size_t i = 0; i < m->n_values; i++) {
        const tg_metric_value *x = &m->values[i];
        next(b);
        text(b, "key", x->key);
        boolean(b, "has_corpus", x->has_corpus);
        real(b, "corpus", x->corpus);
        reals(b, "samples", x->samples, x->n_samples);
        text(b, "error", x->error);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
    texts(b, "texts", m->texts, m->n_texts);
}

static void score(tg_buf *b, const tg_score_request *m) {
    text(b, "fn", m->fn);
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_score_item *x = &m->items[i];
        next(b);
        num(b, "id", x->id);
        text(b, "prompt", x->prompt);
        text(b, "completion", x->completion);
        texts(b, "references", x->references, x->n_references);
        text(b, "meta_json", x->meta_json);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
    num(b, "deadline_ms", m->deadline_ms);
    boolean(b, "ranked", m->ranked);
}

static void score_reply(tg_buf *b, const tg_score_reply *m) {
    list(b, "items");
    for (size_t i = 0; i < m->n; i++) {
        const tg_score_result *x = &m->items[i];
        next(b);
        num(b, "id", x->id);
        num(b, "status", x->status);
        real(b, "value", x->value);
        text(b, "message", x->message);
        components(b, x->components, x->n_components);
        tg_buf_putc(b, '}');
    }
    tg_buf_putc(b, ']');
}

static void heartbeat(tg_buf *b, const tg_heartbeat *m) {
    num(b, "epoch", m->epoch);
    num(b, "in_flight", m->in_flight);
    num(b, "oldest_ms", m->oldest_ms);
    num(b, "completed", m->completed);
    num(b, "loop_lag_us", m->loop_lag_us);
    boolean(b, "draining", m->draining);
    num(b, "slots", m->slots);
    num(b, "steps", m->steps);
}

static void wire_error(tg_buf *b, const tg_wire_error *m) {
    num(b, "code", m->code);
    text(b, "message", m->message);
    boolean(b, "retryable", m->retryable);
    num(b, "retry_after_ms", m->retry_after_ms);
}

void tg_test_msg_print(tg_msg_type type, const void *msg, tg_buf *b) {
    tg_buf_putc(b, '{');
    switch (type) {
    case TG_MSG_HELLO: hello(b, msg); break;
    case TG_MSG_WELCOME: welcome(b, msg); break;
    case TG_MSG_OPEN_SLOTS:
    case TG_MSG_SLOTS_OPENED:
    case TG_MSG_CLOSE_SLOTS:
    case TG_MSG_SNAPSHOT:
    case TG_MSG_CANCEL: slots(b, msg); break;
    case TG_MSG_RESTORE: restore(b, msg); break;
    case TG_MSG_RESTORE_REPLY: restore_reply(b, msg); break;
    case TG_MSG_SNAPSHOT_REPLY: snapshot_reply(b, msg); break;
    case TG_MSG_RESET: reset(b, msg); break;
    case TG_MSG_RESET_REPLY: reset_reply(b, msg); break;
    case TG_MSG_STEP: step(b, msg); break;
    case TG_MSG_STEP_REPLY: step_reply(b, msg); break;
    case TG_MSG_SAMPLE_RANGE: sample_range(b, msg); break;
    case TG_MSG_SAMPLES: samples(b, msg); break;
    case TG_MSG_METRIC: metric(b, msg); break;
    case TG_MSG_METRIC_REPLY: metric_reply(b, msg); break;
    case TG_MSG_SCORE: score(b, msg); break;
    case TG_MSG_SCORE_REPLY: score_reply(b, msg); break;
    case TG_MSG_HEARTBEAT: heartbeat(b, msg); break;
    case TG_MSG_ERROR: wire_error(b, msg); break;
    case TG_MSG_BYE: text(b, "reason", ((const tg_bye *)msg)->reason); break;
    }
    tg_buf_putc(b, '}');
}
