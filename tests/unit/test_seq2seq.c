/* Encoder-decoder passes and decoders beyond what the goldens compare: packing, slots and their sources, forks, sizes, refusals. */
#include "common/base/file.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"
#include "common/nn/safetensors.h"
#include "learner/optim/optim.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQS = 4, MAX_V = 23, ROWS = 64 };

static tg_error err;

static tg_model *open_golden(tg_backend *be, const char *family, unsigned flags) {
    tg_model *m = NULL;
    char name[100];
    snprintf(name, sizeof name, "golden/families/%s", family);
    CHECK_OK(tg_model_open(&m, be, tg_test_path(name), flags, 1, &err));
    return m;
}

static const int32_t offsets[SEQS + 1] = {0, 3, 4, 14, 19};
static const int32_t src_offsets[SEQS + 1] = {0, 7, 31, 32, 40};

typedef struct texts {
    int32_t tokens[ROWS], source[ROWS], rows[ROWS];
    tg_batch batch;
} texts;

static void fill(texts *t, const tg_model *m) {
    const tg_arch encoder = tg_arch_encoder(&m->arch);
    for (int i = 0; i < ROWS; i++) {
        t->tokens[i] = (i * 7 + 3) % m->arch.vocab_size;
        t->source[i] = (i * 5 + 1) % encoder.vocab_size;
        t->rows[i] = i;
    }
    t->batch = (tg_batch){.n_tokens = offsets[SEQS],
                          .n_seqs = SEQS,
                          .n_actions = offsets[SEQS],
                          .tokens = t->tokens,
                          .offsets = offsets,
                          .act_row = t->rows,
                          .act_token = t->tokens + 1,
                          .n_src = src_offsets[SEQS],
                          .src_tokens = t->source,
                          .src_offsets = src_offsets};
}

static const tg_pass_caps caps = {.tokens = 30, .seqs = 6, .actions = 25, .src = 50};

TEST(packing_changes_nothing) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    static const char *const families[] = {"t5", "bart", "mbart", "blenderbot-small"};
    for (size_t f = 0; f < 4; f++) {
        tg_model *m = open_golden(be, families[f], TG_MODEL_VALUE_HEAD);
        tg_pass *p = NULL;
        texts t;
        float all[3][ROWS], one[3][ROWS];
        fill(&t, m);
        REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_SCORE, &err));
        CHECK_OK(tg_pass_forward(p, &t.batch, (tg_pass_out){all[0], all[1], all[2]}, &err));
        for (int s = 0; s < SEQS; s++) {
            int at = offsets[s], n = offsets[s + 1] - at, src = src_offsets[s + 1] - src_offsets[s];
            tg_batch b = t.batch;
            b.n_seqs = 1, b.n_tokens = b.n_actions = n, b.n_src = src;
            b.tokens += at, b.act_token += at, b.src_tokens += src_offsets[s];
            b.offsets = (int32_t[]){0, n}, b.src_offsets = (int32_t[]){0, src};
            CHECK_OK(
                tg_pass_forward(p, &b, (tg_pass_out){one[0] + at, one[1] + at, one[2] + at}, &err));
        }
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < offsets[SEQS]; i++) CHECK_NEAR(all[k][i], one[k][i], 2e-6);
        tg_pass_destroy(&p);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

static void step_all(tg_decoder *d, const int32_t *slots, int32_t token, int n, float *logits) {
    int32_t tokens[SEQS];
    for (int i = 0; i < n; i++) tokens[i] = (token + i) % 19;
    CHECK_OK(tg_decoder_step(d, slots, tokens, n, logits, &err));
}

/* Slot `to` of d goes on as a fresh decoder does that reads the same source and tokens. */
static void check_continues(tg_model *m, tg_decoder *d, int to, const int32_t *source, int n_src,
                            const int32_t *tokens, int n) {
    tg_decoder *fresh = NULL;
    int32_t zero = 0, slot = to, next = 4;
    float got[MAX_V], want[MAX_V];
    REQUIRE_OK(
        tg_decoder_create(&fresh, m, (tg_decoder_caps){.slots = 1, .len = 24, .src = 24}, &err));
    CHECK_OK(tg_decoder_encode(fresh, &zero, source, (int32_t[]){0, n_src}, 1, &err));
    CHECK_OK(tg_decoder_prefill(fresh, &zero, tokens, (int32_t[]){0, n}, 1, want, &err));
    CHECK_OK(tg_decoder_step(fresh, &zero, &next, 1, want, &err));
    CHECK_OK(tg_decoder_step(d, &slot, &next, 1, got, &err));
    for (int v = 0; v < m->arch.vocab_size; v++) CHECK_NEAR(got[v], want[v], 2e-6);
    tg_decoder_destroy(&fresh);
}

TEST(a_fork_takes_the_source_along) {
    for (size_t i = 0; tg_backend_list()[i]; i++) {
        tg_backend *be = NULL;
        REQUIRE_OK(tg_backend_open(&be, tg_backend_list()[i]->name, 2, &err));
        tg_model *m = open_golden(be, i % 2 ? "t5" : "bart", 0);
        tg_decoder *d = NULL;
        texts t;
        float logits[SEQS * MAX_V];
        const int32_t slots[SEQS] = {2, 0, 3, 1}, begin[] = {0, 2, 3}, prefix[] = {0, 5, 0};
        fill(&t, m);
        REQUIRE_OK(
            tg_decoder_create(&d, m, (tg_decoder_caps){.slots = SEQS, .len = 24, .src = 24}, &err));
        CHECK_OK(tg_decoder_encode(d, slots, t.source, (int32_t[]){0, 9, 12}, 2, &err));
        CHECK_OK(tg_decoder_prefill(d, slots, prefix, begin, 2, logits, &err));
        step_all(d, slots, 6, 2, logits); /* slot 2: 0 5 6, slot 0: 0 7 */
        CHECK_OK(tg_decoder_fork(d, 2, 1, 3, 0, &err));
        CHECK_OK(tg_decoder_fork(d, 2, 0, 3, 0, &err)); /* of another source before */
        /* what the first slot does now is its own business */
        CHECK_OK(tg_decoder_encode(d, slots, t.source + 20, (int32_t[]){0, 24}, 1, &err));
        CHECK_OK(tg_decoder_prefill(d, slots, prefix + 2, (int32_t[]){0, 1}, 1, logits, &err));
        check_continues(m, d, 1, t.source, 9, (int32_t[]){0, 5, 6}, 3);
        check_continues(m, d, 0, t.source, 9, (int32_t[]){0, 5, 6}, 3);
        check_continues(m, d, 2, t.source + 20, 24, (int32_t[]){0}, 1);
        /* beams of one source: the second fork copies tokens alone */
        CHECK_OK(tg_decoder_fork(d, 1, 0, 2, 0, &err));
        check_continues(m, d, 0, t.source, 9, (int32_t[]){0, 5}, 2);
        tg_decoder_destroy(&d);
        tg_model_destroy(&m);
        tg_backend_close(&be);
    }
}

TEST(a_slot_forgets_a_longer_source) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "t5", 0);
    tg_decoder *d = NULL;
    texts t;
    float logits[MAX_V];
    int32_t slot = 1, start = 0;
    fill(&t, m);
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 8, .src = 24}, &err));
    for (int n = 24; n >= 1; n -= 23) {
        CHECK_OK(tg_decoder_encode(d, &slot, t.source, (int32_t[]){0, n}, 1, &err));
        CHECK_OK(tg_decoder_prefill(d, &slot, &start, (int32_t[]){0, 1}, 1, logits, &err));
        check_continues(m, d, 1, t.source, n, &start, 1);
    }
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* More sources than one group of rows holds; T5's texts may be long. */
TEST(many_sources_are_encoded_in_groups) {
    enum { LONG = 900, N = 4 };
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_model *m = open_golden(be, "t5", 0);
    tg_decoder *d = NULL, *one = NULL;
    static int32_t source[N * LONG];
    int32_t begin[N + 1], slots[N], ones[N + 1], start[N] = {0};
    float all[N * MAX_V], single[MAX_V];
    for (int i = 0; i < N * LONG; i++) source[i] = (i * i + 3 * i) % 23;
    for (int s = 0; s <= N; s++) begin[s] = s * LONG - (s > 1 ? 450 : 0), ones[s] = s;
    for (int s = 0; s < N; s++) slots[s] = N - 1 - s;
    REQUIRE_OK(
        tg_decoder_create(&d, m, (tg_decoder_caps){.slots = N, .len = 2, .src = LONG}, &err));
    REQUIRE_OK(
        tg_decoder_create(&one, m, (tg_decoder_caps){.slots = 1, .len = 2, .src = LONG}, &err));
    CHECK_OK(tg_decoder_encode(d, slots, source, begin, N, &err));
    CHECK_OK(tg_decoder_prefill(d, slots, start, ones, N, all, &err));
    for (int s = 0; s < N; s++) {
        int32_t zero = 0;
        CHECK_OK(tg_decoder_encode(one, &zero, source + begin[s],
                                   (int32_t[]){0, begin[s + 1] - begin[s]}, 1, &err));
        CHECK_OK(tg_decoder_prefill(one, &zero, start, (int32_t[]){0, 1}, 1, single, &err));
        for (int v = 0; v < 23; v++) CHECK_NEAR(all[s * 23 + v], single[v], 2e-6);
    }
    tg_decoder_destroy(&d);
    tg_decoder_destroy(&one);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(plans_are_what_is_allocated) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    static const char *const families[] = {"t5", "mt5", "bart", "mbart", "marian", "pegasus"};
    for (size_t f = 0; f < 6; f++) {
        size_t before = be->bytes_used;
        const unsigned flags = TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD;
        tg_model *m = open_golden(be, families[f], flags);
        CHECK_EQ(be->bytes_used - before, tg_model_bytes(&m->arch, flags));
        static const unsigned modes[] = {TG_PASS_SCORE, TG_PASS_TRAIN, TG_PASS_RECOMPUTE};
        for (int k = 0; k < 3; k++) {
            tg_pass *p = NULL;
            before = be->bytes_used;
            CHECK_OK(tg_pass_create(&p, m, caps, modes[k], &err));
            CHECK_EQ(be->bytes_used - before, tg_pass_bytes(&m->arch, flags, caps, modes[k]));
            tg_pass_destroy(&p);
        }
        tg_decoder *d = NULL;
        const tg_decoder_caps room = {.slots = 5, .len = 9, .src = 19};
        before = be->bytes_used;
        CHECK_OK(tg_decoder_create(&d, m, room, &err));
        CHECK_EQ(be->bytes_used - before, tg_decoder_bytes(&m->arch, room));
        tg_decoder_destroy(&d);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

TEST(bad_batches_are_refused) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "marian", 0);
    tg_pass *p = NULL;
    texts t;
    float logp[ROWS];
    REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_SCORE, &err));
    static const struct {
        int32_t token, offset;
        int n_src;
        const char *says;
    } cases[] = {{0, 7, 40, NULL},
                 {22, 7, 40, NULL}, /* the encoder's vocabulary is larger */
                 {23, 7, 40, "source token 0 is 23"},
                 {-1, 7, 40, "source token 0 is -1"},
                 {0, 0, 40, "source 0 runs from"},
                 {0, 7, 51, "51 source tokens"},
                 {0, 7, 0, "0 source tokens"},
                 {0, 7, 39, "source offsets run from 0 to 40"},
                 {0, 31, 40, "source 0 has 31 tokens"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill(&t, m);
        int32_t where[SEQS + 1];
        memcpy(where, src_offsets, sizeof where);
        where[1] = cases[i].offset;
        t.source[0] = cases[i].token;
        t.batch.src_offsets = where;
        t.batch.n_src = cases[i].n_src;
        tg_status st = tg_pass_forward(p, &t.batch, (tg_pass_out){.logp = logp}, &err);
        tg_check(cases[i].says ? st == TG_DATA && strstr(err.msg, cases[i].says) : st == TG_OK,
                 __FILE__, __LINE__, "case %zu: %d \"%s\"", i, (int)st, err.msg);
    }
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(bad_sources_are_refused) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "bart", 0);
    tg_decoder *d = NULL;
    int32_t slots[] = {0, 0}, source[] = {1, 2, 3, 4, 5, 6, 99}, one[] = {0, 1};
    float logits[2 * MAX_V];
    CHECK_EQ(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 4, .src = 25}, &err),
             TG_DATA);
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 4, .src = 5}, &err));
    CHECK_EQ(tg_decoder_prefill(d, slots, source, one, 1, logits, &err), TG_DATA);
    CHECK(strstr(err.msg, "no source"));
    CHECK_EQ(tg_decoder_encode(d, slots, source, (int32_t[]){0, 6}, 1, &err), TG_DATA);
    CHECK_EQ(tg_decoder_encode(d, slots, source, (int32_t[]){0, 0}, 1, &err), TG_DATA);
    CHECK_EQ(tg_decoder_encode(d, slots, source + 6, one, 1, &err), TG_DATA);
    CHECK_EQ(tg_decoder_encode(d, slots, source, (int32_t[]){0, 1, 2}, 2, &err), TG_DATA);
    CHECK_OK(tg_decoder_encode(d, slots, source, (int32_t[]){0, 5}, 1, &err));
    CHECK_OK(tg_decoder_prefill(d, slots, source, one, 1, logits, &err));
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* Waves of positions and the bias of the logits are not trained, and do not decay. */
TEST(fixed_tensors_stay_as_they_are) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "pegasus", TG_MODEL_TRAINABLE), *old = NULL;
    CHECK_OK(tg_model_clone(&old, m, 0, 1, &err));
    tg_pass *p = NULL;
    tg_optim *o = NULL;
    texts t;
    float logp[ROWS], dlogp[ROWS];
    fill(&t, m);
    for (int i = 0; i < ROWS; i++) dlogp[i] = 1;
    tg_optim_opts opts = {
        .kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.5};
    REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_TRAIN, &err));
    REQUIRE_OK(tg_optim_create(&o, &m, 1, &opts, &err));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tg_pass_forward(p, &t.batch, (tg_pass_out){.logp = logp}, &err));
        CHECK_OK(tg_pass_backward(p, dlogp, NULL, NULL, &err));
        tg_optim_step(o, 0.01, 1);
    }
    int fixed = 0;
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *q = &m->params.list[i];
        bool same = !memcmp(m->data + q->offset, old->data + q->offset, q->count * sizeof(float));
        tg_check(same == q->fixed, __FILE__, __LINE__, "%s %s", q->name,
                 same ? "did not change" : "changed");
        fixed += q->fixed;
    }
    CHECK_EQ(fixed, 3);
    tg_optim_destroy(&o);
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_model_destroy(&old);
    tg_backend_close(&be);
}

/* T5's config says that heads are tied; its later models' files have their own. */
TEST(a_head_in_the_file_counts) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "mt5", 0), *again = NULL;
    CHECK(!m->arch.tied_head);
    char folder[600];
    snprintf(folder, sizeof folder, "%s/same", tg_test_tmpdir());
    const tg_param *head = tg_params_find(&m->params, "lm_head.weight"),
                   *embed = tg_params_find(&m->params, "shared.weight");
    REQUIRE(head && embed);
    memcpy(m->data + head->offset, m->data + embed->offset, head->count * sizeof(float));
    CHECK_OK(tg_model_save(m, folder, &err));
    CHECK_OK(tg_model_open(&again, be, folder, 0, 1, &err));
    CHECK(again && again->arch.tied_head && again->params.n == m->params.n - 1);
    tg_model_destroy(&again);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(a_fresh_model_says_how_answers_begin) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m = open_golden(be, "bart", 0), *fresh = NULL;
    char path[700];
    CHECK_OK(tg_model_create(&fresh, be, &m->arch, 0, 3, &err));
    snprintf(path, sizeof path, "%s/fresh", tg_test_tmpdir());
    CHECK_OK(tg_model_save(fresh, path, &err));
    strcat(path, "/generation_config.json");
    tg_buf text = {0};
    CHECK_OK(tg_file_read(path, 10000, &text, &err));
    CHECK(text.data && strstr(text.data, "\"decoder_start_token_id\": 2"));
    tg_buf_fini(&text);
    tg_model_destroy(&fresh);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
