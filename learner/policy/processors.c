/* One function for each, and one table for their order (transformers 5.22, _get_logits_processor). Arithmetic is in float, as there. */
#include "learner/policy/processors.h"

#include "common/base/check.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct job {
    const tg_gen_settings *s;
    const tg_gen_context *c;
    float *scores, *work;
    int V;
} job;

static void ban(const job *j, int32_t token) {
    if (token >= 0 && token < j->V) j->scores[token] = -INFINITY;
}

static void ban_all(const job *j, const int32_t *tokens, int n) {
    for (int i = 0; i < n; i++) ban(j, tokens[i]);
}

/* Each distinct token once: a positive score is divided by the penalty, a negative one multiplied. Marks in `work` keep
 * a token seen twice from being penalised twice. */
static void penalise(const job *j, const int32_t *tokens, int n, float penalty) {
    for (int i = 0; i < n; i++)
        if (tokens[i] >= 0 && tokens[i] < j->V) j->work[tokens[i]] = 0;
    for (int i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= j->V || j->work[tokens[i]] != 0) continue;
        float *x = &j->scores[tokens[i]];
        *x = *x < 0 ? *x * penalty : *x / penalty;
        j->work[tokens[i]] = 1;
    }
}

static void encoder_repetition_penalty(const job *j) {
    penalise(j, j->c->source, j->c->n_source, (float)(1 / j->s->encoder_repetition_penalty));
}

static void repetition_penalty(const job *j) {
    penalise(j, j->c->tokens, j->c->n, (float)j->s->repetition_penalty);
}

/* Bans what would complete an n-gram of `text`. */
static void ban_ngrams(const job *j, const int32_t *text, int n_text, int64_t size) {
    const tg_gen_context *c = j->c;
    if (c->n + 1 < size) return;
    const int32_t *last = c->tokens + c->n - (size - 1);
    for (int64_t i = 0; i + size <= n_text; i++)
        if (!memcmp(text + i, last, (size_t)(size - 1) * sizeof *text)) ban(j, text[i + size - 1]);
}

static void no_repeat_ngram(const job *j) {
    ban_ngrams(j, j->c->tokens, j->c->n, j->s->no_repeat_ngram_size);
}

static void encoder_no_repeat_ngram(const job *j) {
    ban_ngrams(j, j->c->source, j->c->n_source, j->s->encoder_no_repeat_ngram_size);
}

/* The next token would complete the sequence. */
static bool would_complete(const tg_gen_context *c, const tg_id_list *sequence) {
    int before = sequence->n - 1;
    return before <= c->n && !memcmp(c->tokens + c->n - before, sequence->ids,
                                     (size_t)before * sizeof *sequence->ids);
}

static void sequence_bias(const job *j) {
    for (int i = 0; i < j->s->n_biases; i++) {
        const tg_id_bias *b = &j->s->biases[i];
        int32_t last = b->sequence.ids[b->sequence.n - 1];
        if (last < j->V && would_complete(j->c, &b->sequence)) j->scores[last] += b->bias;
    }
}

/* An end token alone is no bad word. */
static void bad_words(const job *j) {
    for (int i = 0; i < j->s->n_bad_words; i++) {
        const tg_id_list *w = &j->s->bad_words[i];
        if (w->n == 1 && tg_gen_is_eos(j->s, w->ids[0])) continue;
        if (would_complete(j->c, w)) ban(j, w->ids[w->n - 1]);
    }
}

static void min_length(const job *j) {
    if (j->c->n - j->c->n_prompt < tg_gen_min_new(j->s, j->c->n_prompt))
        ban_all(j, j->s->eos_ids, j->s->n_eos);
}

static void force(const job *j, const int32_t *tokens, int n) {
    for (int i = 0; i < j->V; i++) j->scores[i] = -INFINITY;
    for (int i = 0; i < n; i++)
        if (tokens[i] < j->V) j->scores[tokens[i]] = 0;
}

static bool bos_is_forced(const tg_gen_settings *s, const tg_gen_context *c) {
    return s->forced_bos_token_id != INT64_MIN && c->n == 1;
}

static bool eos_is_forced(const tg_gen_settings *s, const tg_gen_context *c) {
    return s->forced_eos.n > 0 && c->n == c->n_prompt + c->max_new - 1;
}

static void forced_bos(const job *j) {
    int32_t bos = (int32_t)j->s->forced_bos_token_id;
    if (bos_is_forced(j->s, j->c)) force(j, &bos, 1);
}

static void forced_eos(const job *j) {
    if (eos_is_forced(j->s, j->c)) force(j, j->s->forced_eos.ids, j->s->forced_eos.n);
}

static void remove_invalid(const job *j) {
    for (int i = 0; i < j->V; i++) {
        float x = j->scores[i];
        if (isnan(x))
            j->scores[i] = 0;
        else if (isinf(x))
            j->scores[i] = x > 0 ? FLT_MAX : -FLT_MAX;
    }
}

static void decay(const job *j) {
    int64_t past = j->c->n - j->c->n_prompt - j->s->decay_start;
    if (past <= 0) return;
    float factor = (float)(pow(j->s->decay_factor, (double)past) - 1);
    for (int i = 0; i < j->s->n_eos; i++) {
        int32_t eos = j->s->eos_ids[i];
        bool again = false; /* a list may name one twice: it gets one bonus */
        for (int k = 0; k < i; k++) again = again || j->s->eos_ids[k] == eos;
        if (!again && eos < j->V && isfinite(j->scores[eos]))
            j->scores[eos] += fabsf(j->scores[eos]) * factor;
    }
}

static void suppress(const job *j) {
    ban_all(j, j->s->suppress.ids, j->s->suppress.n);
}

/* The first token that is free: behind a forced one. */
static void begin_suppress(const job *j) {
    bool behind_forced = j->c->n_prompt == 1 && j->s->forced_bos_token_id != INT64_MIN;
    if (j->c->n == j->c->n_prompt + behind_forced)
        ban_all(j, j->s->begin_suppress.ids, j->s->begin_suppress.n);
}

/* Which processors the settings ask for, in order; returns how many. */
static int chosen(const tg_gen_settings *s, void (*out[])(const job *)) {
    const struct {
        bool on;
        void (*run)(const job *);
    } table[] = {
        {s->n_biases > 0, sequence_bias},
        {s->encoder_repetition_penalty != 1.0, encoder_repetition_penalty},
        {s->repetition_penalty != 1.0, repetition_penalty},
        {s->no_repeat_ngram_size > 0, no_repeat_ngram},
        {s->encoder_no_repeat_ngram_size > 0, encoder_no_repeat_ngram},
        {s->n_bad_words > 0, bad_words},
        {s->n_eos > 0 && (s->min_length > 0 || s->min_new_tokens > 0), min_length},
        {s->forced_bos_token_id != INT64_MIN, forced_bos},
        {s->forced_eos.n > 0, forced_eos},
        {s->remove_invalid_values, remove_invalid},
        {s->decay_start != INT64_MIN, decay},
        {s->suppress.n > 0, suppress},
        {s->begin_suppress.n > 0, begin_suppress},
    };
    int n = 0;
    for (size_t i = 0; i < TG_COUNT_OF(table); i++)
        if (table[i].on) out[n++] = table[i].run;
    return n;
}

enum { MOST = 16 };

bool tg_processors_any(const tg_gen_settings *s) {
    void (*run[MOST])(const job *);
    return chosen(s, run) > 0;
}

void tg_process(const tg_gen_settings *s, const tg_gen_context *c, float *scores, int V,
                float *work) {
    const job j = {s, c, scores, work, V};
    void (*run[MOST])(const job *);
    int n = chosen(s, run);
    for (int i = 0; i < n; i++) run[i](&j);
}

static void allow(uint32_t *bits, int64_t token, int V) {
    if (token >= 0 && token < V) bits[token / 32] |= 1u << (token % 32);
}

void tg_process_allow_forced(const tg_gen_settings *s, const tg_gen_context *c, uint32_t *bits,
                             int V) {
    if (bos_is_forced(s, c)) allow(bits, s->forced_bos_token_id, V);
    for (int i = 0; i < s->forced_eos.n && eos_is_forced(s, c); i++)
        allow(bits, s->forced_eos.ids[i], V);
}
