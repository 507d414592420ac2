/* What the decoder computes for a sequence, to the last bit, whatever shares its batch: alone, with 1 to 39 others, prefilled by itself or packed,
 * computed or forked from another slot. Sampling is reproducible only as far as this holds. Every decoder family, wide enough for the fast kernels. */
#include "common/base/check.h"
#include "common/base/rng.h"
#include "common/nn/decoder.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

#include <stdio.h>
#include <stdlib.h>

static tg_error err;

enum { SEQS = 40, PROMPT = 7, STEPS = 2, MAX_LEN = 24, VOCAB = 203 };

/* Prompts of 1 to PROMPT tokens and what they are continued with. */
static int prompt_length(int seq) {
    return 1 + seq * 5 % PROMPT;
}

static int32_t token(int seq, int at) {
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, (uint64_t)seq, (uint64_t)at);
    return (int32_t)tg_rng_below(&r, VOCAB);
}

/* A seq2seq model's sources, 1 to PROMPT tokens. */
static void encode(tg_decoder *d, int first, int n) {
    int32_t slots[SEQS], tokens[SEQS * PROMPT], offsets[SEQS + 1] = {0};
    for (int i = 0; i < n; i++) {
        int length = 1 + (first + i) * 3 % PROMPT;
        for (int t = 0; t < length; t++) tokens[offsets[i] + t] = token(first + i, 100 + t);
        offsets[i + 1] = offsets[i] + length;
        slots[i] = i;
    }
    CHECK_OK(tg_decoder_encode(d, slots, tokens, offsets, n, &err));
}

static bool seq2seq; /* the model that is tested */

/* Logits after the prompt and after each step, (STEPS + 1, VOCAB), of sequences first .. first + n - 1 run together. */
static void run(tg_decoder *d, int first, int n, float *out) {
    int32_t slots[SEQS], tokens[SEQS * PROMPT], offsets[SEQS + 1] = {0};
    float *logits = malloc((size_t)n * VOCAB * sizeof *logits);
    if (seq2seq) encode(d, first, n);
    for (int step = 0; step <= STEPS; step++) {
        for (int i = 0; i < n; i++) {
            int length = prompt_length(first + i);
            slots[i] = i;
            if (step) tokens[i] = token(first + i, length + step - 1);
            for (int t = 0; !step && t < length; t++) tokens[offsets[i] + t] = token(first + i, t);
            offsets[i + 1] = offsets[i] + length;
        }
        if (step)
            CHECK_OK(tg_decoder_step(d, slots, tokens, n, logits, &err));
        else
            CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, n, logits, &err));
        for (int i = 0; i < n; i++)
            memcpy(out + ((size_t)i * (STEPS + 1) + (size_t)step) * VOCAB,
                   logits + (size_t)i * VOCAB, VOCAB * sizeof *out);
    }
    free(logits);
}

static void check_together(tg_decoder *d, const float *alone, int n, const char *name) {
    enum { SIZE = (STEPS + 1) * VOCAB };
    static float out[SEQS * SIZE];
    int first = (SEQS - n) / 2, prompts = 0, steps = 0;
    run(d, first, n, out);
    for (int i = 0; i < n; i++) {
        const float *mine = out + (size_t)i * SIZE, *want = alone + (size_t)(first + i) * SIZE;
        prompts += memcmp(mine, want, VOCAB * sizeof *out) != 0;
        steps += memcmp(mine + VOCAB, want + VOCAB, (SIZE - VOCAB) * sizeof *out) != 0;
    }
    tg_check(!prompts, __FILE__, __LINE__, "%s: %d of %d packed prompts differ from one alone",
             name, prompts, n);
    tg_check(!steps, __FILE__, __LINE__, "%s: %d of %d sequences decoded together differ", name,
             steps, n);
}

/* Slot 1 takes over slot 0's sequence at each point of its life, whatever it held before. */
static void check_forks(tg_decoder *d, const float *alone) {
    enum { SIZE = (STEPS + 1) * VOCAB };
    static float out[SEQS * SIZE], logits[VOCAB];
    for (int length = 1; length <= prompt_length(4) + STEPS; length++) {
        for (int keep = 0; keep < 2; keep++) {
            int cut = length - prompt_length(4), n = prompt_length(4);
            run(d, 4, 2, out); /* the other slot is longer or shorter, and of other tokens */
            if (keep) CHECK_OK(tg_decoder_fork(d, 0, 1, TG_MIN(length, 2), 0, &err));
            CHECK_OK(tg_decoder_fork(d, 0, 1, length, keep ? TG_MIN(length, 2) : 0, &err));
            CHECK_EQ(tg_decoder_length(d, 1), length);
            CHECK_EQ(tg_decoder_length(d, 0), n + STEPS);
            if (cut < 0 || cut >= STEPS) continue;
            int32_t next = token(4, length);
            CHECK_OK(tg_decoder_step(d, (int32_t[]){1}, &next, 1, logits, &err));
            CHECK(!memcmp(logits, alone + (size_t)4 * SIZE + (size_t)(cut + 1) * VOCAB,
                          sizeof logits));
            CHECK_OK(tg_decoder_fork(d, 0, 0, length, length, &err)); /* the same by cutting off */
            CHECK_OK(tg_decoder_step(d, (int32_t[]){0}, &next, 1, logits, &err));
            CHECK(!memcmp(logits, alone + (size_t)4 * SIZE + (size_t)(cut + 1) * VOCAB,
                          sizeof logits));
        }
    }
}

static void check_model(tg_model *m, const char *name, tg_weight_form weights) {
    enum { SIZE = (STEPS + 1) * VOCAB };
    static float alone[SEQS * SIZE];
    tg_decoder *d;
    tg_decoder_caps caps = {.slots = SEQS,
                            .len = MAX_LEN,
                            .src = seq2seq ? PROMPT : 0,
                            .weights = weights,
                            .half_cache = weights == TG_WEIGHT_PACKED_BF16};
    REQUIRE_OK(tg_decoder_create(&d, m, caps, &err));
    for (int i = 0; i < SEQS; i++) run(d, i, 1, alone + (size_t)i * SIZE);
    static const int sizes[] = {2, 3, 5, 6, 7, 8, 15, 17, 29, SEQS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_together(d, alone, sizes[i], name);
    check_forks(d, alone);
    tg_decoder_destroy(&d);
}

/* The recorded architecture, five times as wide: rows long enough for every part of a kernel. */
static tg_arch wide_arch(const char *family) {
    char folder[100];
    snprintf(folder, sizeof folder, "golden/families/%s", family);
    tg_arch a;
    if (strcmp(family, "gpt2")) {
        CHECK_OK(tg_arch_load(&a, tg_test_path(folder), &err));
    } else {
        a = tg_tiny_arch();
    }
    a.width *= 5, a.mlp_width *= 5, a.head_dim *= 5, a.rope.dims = a.rope.dims * 5 / 2 * 2;
    a.local_rope.dims = a.local_rope.dims * 5 / 2 * 2;
    a.enc_head_dim *= 5, a.enc_mlp_width *= 5;
    a.vocab_size = VOCAB;
    a.src_vocab = VOCAB;
    return a;
}

TEST(a_row_does_not_depend_on_its_batch) {
    static const char *const families[] = {
        "gpt2",    "gpt_neo",    "gptj",        "gpt_neox",  "opt",         "bloom", "llama",
        "mistral", "qwen2",      "qwen3",       "gemma",     "gemma2",      "t5",    "mt5",
        "bart",    "blenderbot", "gemma3_text", "opt_plain", "bloom_stream"};
    static const char *const backends[] = {"ref", "cpu"};
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++) {
        tg_backend *be;
        REQUIRE_OK(tg_backend_open(&be, backends[k], 2, &err));
        for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
            tg_arch arch = wide_arch(families[i]);
            tg_model *m = tg_tiny_model(be, &arch, 0, 8);
            seq2seq = arch.kind == TG_KIND_SEQ2SEQ;
            check_model(m, families[i], TG_WEIGHT_PLAIN);
            if (k) check_model(m, families[i], TG_WEIGHT_PACKED);
            if (k) check_model(m, families[i], TG_WEIGHT_PACKED_BF16);
            tg_model_destroy(&m);
        }
        tg_backend_close(&be);
    }
}

TEST(forks_that_cannot_be_are_refused) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    tg_decoder *d;
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 8}, &err));
    float logits[29];
    CHECK_OK(tg_decoder_prefill(d, (int32_t[]){0}, (int32_t[]){1, 2, 3}, (int32_t[]){0, 3}, 1,
                                logits, &err));
    static const int bad[][4] = {{0, 2, 3, 0}, {-1, 1, 3, 0}, {0, 1, 4, 0}, {0, 1, 0, 0},
                                 {1, 0, 1, 0}, {0, 1, 3, 1},  {0, 0, 2, 3}, {0, 1, 3, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(tg_decoder_fork(d, bad[i][0], bad[i][1], bad[i][2], bad[i][3], &err), TG_DATA);
    CHECK_EQ(tg_decoder_length(d, 0), 3);
    CHECK_EQ(tg_decoder_length(d, 1), 0);
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
