/* Decoding beside passes: sequences through refilled slots have the packed pass's log-probs, long prompts are run in groups, and bad calls
 * change nothing. */
#include "common/nn/decoder.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

#include <stdlib.h>

static tg_error err;

static void log_softmax(float *x, int n) {
    double top = -(double)INFINITY, sum = 0;
    for (int i = 0; i < n; i++) top = fmax(top, (double)x[i]);
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - top);
    for (int i = 0; i < n; i++) x[i] = (float)((double)x[i] - top - log(sum));
}

/* Log-probs of every row of the batch, (N, V). */
static float *pass_logprobs(tg_model *m, const tg_batch *b) {
    int V = m->arch.vocab_size;
    tg_pass *p = NULL;
    CHECK_OK(tg_pass_create(&p, m, tg_tiny_caps(b), false, &err));
    CHECK_OK(tg_pass_forward(p, b, (tg_pass_out){0}, &err));
    float *x = malloc((size_t)b->n_tokens * (size_t)V * sizeof *x);
    int32_t rows[512];
    for (int i = 0; i < b->n_tokens; i++) rows[i] = i;
    CHECK_OK(tg_pass_logits(p, rows, b->n_tokens, x, &err));
    for (int i = 0; i < b->n_tokens; i++) log_softmax(x + (size_t)i * (size_t)V, V);
    tg_pass_destroy(&p);
    return x;
}

static void check_row(float *logits, const float *want, int V, int seq, int at) {
    log_softmax(logits, V);
    double w = tg_tiny_worst(logits, want, (size_t)V);
    tg_check(w <= 1e-5, __FILE__, __LINE__, "sequence %d, token %d: log-probs differ by %g", seq,
             at, w);
}

/* Sequences of the batch through 3 slots: each is prefilled with half of its tokens when a slot is free and stepped to its end, so
 * that slots are refilled with shorter and longer sequences at different times. */
static void check_decoder(tg_model *m, const tg_tiny_batch *b) {
    enum { SLOTS = 3 };
    int V = m->arch.vocab_size, running[SLOTS] = {-1, -1, -1}, next = 0, left = b->batch.n_seqs;
    float *want = pass_logprobs(m, &b->batch),
          *logits = malloc((size_t)SLOTS * (size_t)V * sizeof *logits);
    tg_decoder *d = NULL;
    CHECK_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = SLOTS, .len = 24}, &err));
    for (int guard = 0; d && left && guard < 1000; guard++) {
        int32_t slots[SLOTS], tokens[128], offsets[SLOTS + 1] = {0};
        int n = 0, at[SLOTS];
        for (int s = SLOTS - 1; s >= 0; s--) { /* step what runs */
            if (running[s] < 0) continue;
            at[n] = b->offsets[running[s]] + tg_decoder_length(d, s);
            tokens[n] = b->tokens[at[n]];
            slots[n++] = s;
        }
        CHECK_OK(tg_decoder_step(d, slots, tokens, n, logits, &err));
        for (int i = 0; i < n; i++)
            check_row(logits + (size_t)i * (size_t)V, want + (size_t)at[i] * (size_t)V, V,
                      running[slots[i]], at[i]);
        n = 0;
        for (int s = 0; s < SLOTS && next < b->batch.n_seqs; s++) { /* fill what is free */
            if (running[s] >= 0) continue;
            int begin = b->offsets[next], len = b->offsets[next + 1] - begin, half = (len + 1) / 2;
            memcpy(tokens + offsets[n], b->tokens + begin, (size_t)half * sizeof tokens[0]);
            running[s] = next++;
            slots[n] = s;
            offsets[n + 1] = offsets[n] + half;
            n++;
        }
        CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, n, logits, &err));
        for (int i = 0; i < n; i++) {
            int row = b->offsets[running[slots[i]]] + tg_decoder_length(d, slots[i]) - 1;
            check_row(logits + (size_t)i * (size_t)V, want + (size_t)row * (size_t)V, V,
                      running[slots[i]], row);
        }
        for (int s = 0; s < SLOTS; s++) {
            int q = running[s];
            if (q < 0 || tg_decoder_length(d, s) < b->offsets[q + 1] - b->offsets[q]) continue;
            running[s] = -1;
            left--;
        }
    }
    CHECK_EQ(left, 0);
    tg_decoder_destroy(&d);
    free(want);
    free(logits);
}

TEST(decoding_is_the_packed_pass) {
    static const int lengths[] = {24, 3, 9, 1, 17, 2, 24, 5, 11};
    for (size_t k = 0; tg_backend_list()[k]; k++) {
        for (int grouped = 0; grouped < 2; grouped++) {
            tg_backend *be = tg_tiny_backend(tg_backend_list()[k]->name, 2);
            tg_arch arch = tg_tiny_arch();
            if (grouped)
                arch.n_heads = 4, arch.n_kv_heads = 2, arch.head_dim = 5, arch.tied_head = false;
            tg_model *m = tg_tiny_model(be, &arch, 0, 8);
            tg_tiny_batch b;
            tg_tiny_fill(&b, &arch, lengths, 9, 1, 5);
            check_decoder(m, &b);
            tg_model_destroy(&m);
            tg_backend_close(&be);
        }
    }
}

TEST(long_prompts_are_run_in_groups) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    arch.max_positions = 1200, arch.n_layers = 1, arch.n_heads = arch.n_kv_heads = 1;
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    tg_decoder *d, *one;
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 4, .len = 1200}, &err));
    REQUIRE_OK(tg_decoder_create(&one, m, (tg_decoder_caps){.slots = 1, .len = 1200}, &err));
    static int32_t tokens[3600];
    for (int i = 0; i < 3600; i++) tokens[i] = i * 7 % arch.vocab_size;
    int32_t offsets[] = {0, 900, 1900, 1901, 3000}, slots[] = {2, 0, 3, 1};
    float all[4][29], single[29];
    CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, 4, all[0], &err));
    for (int i = 0; i < 4; i++) {
        int32_t zero = 0, pair[] = {0, offsets[i + 1] - offsets[i]};
        CHECK_OK(tg_decoder_prefill(one, &zero, tokens + offsets[i], pair, 1, single, &err));
        CHECK_NEAR(tg_tiny_worst(all[i], single, 29), 0, 1e-5);
        CHECK_EQ(tg_decoder_length(d, slots[i]), pair[1]);
    }
    tg_decoder_destroy(&d);
    tg_decoder_destroy(&one);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(bad_decoder_calls_are_refused_and_change_nothing) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 3);
    tg_decoder *d;
    CHECK_EQ(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 25}, &err), TG_DATA);
    CHECK(d == NULL && strstr(err.msg, "24 positions"));
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 3}, &err));
    float logits[2 * 29], before[29];
    int32_t slots[] = {0, 1}, tokens[] = {1, 2, 3, 4, 5}, offsets[] = {0, 2, 3};
    CHECK_EQ(tg_decoder_step(d, slots, tokens, 1, logits, &err), TG_DATA);
    CHECK(strstr(err.msg, "not prefilled") != NULL);
    CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, 2, logits, &err));
    CHECK_EQ(tg_decoder_step(d, (int32_t[]){1, 1}, tokens, 2, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_step(d, (int32_t[]){2}, tokens, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_step(d, (int32_t[]){-1}, tokens, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_step(d, slots, (int32_t[]){29}, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_step(d, slots, tokens, 3, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_prefill(d, slots, tokens, (int32_t[]){0, 4}, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_prefill(d, slots, tokens, (int32_t[]){0, 0}, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_prefill(d, slots, tokens, (int32_t[]){1, 2}, 1, logits, &err), TG_DATA);
    CHECK_EQ(tg_decoder_prefill(d, slots, (int32_t[]){-7}, (int32_t[]){0, 1}, 1, logits, &err),
             TG_DATA);
    CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, 0, logits, &err));
    CHECK_OK(tg_decoder_step(d, slots, tokens, 0, logits, &err));
    CHECK_EQ(tg_decoder_length(d, 0), 2);
    CHECK_OK(tg_decoder_step(d, slots, tokens + 2, 1, before, &err));
    CHECK_EQ(tg_decoder_step(d, slots, tokens, 1, logits, &err), TG_DATA);
    CHECK(strstr(err.msg, "full") != NULL);
    CHECK_OK(tg_decoder_prefill(d, slots, tokens, (int32_t[]){0, 3}, 1, logits, &err));
    CHECK_NEAR(tg_tiny_worst(before, logits, 29), 0, 1e-5);
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
