/* Decoding with packed and with rounded weights and caches: packed ones give the same bits, rounded ones nearly the same logits, and a
 * decoder notices that the model has changed. */
#include "common/base/alloc.h"
#include "common/nn/decoder.h"
#include "tests/support/tg_test.h"

enum { SLOTS = 3, PROMPT = 7, STEPS = 5, V = 101, CALLS = STEPS + 1 };

static tg_error err;

static const tg_arch arch = {.family = "gpt2",
                             .n_layers = 2,
                             .n_heads = 2,
                             .n_kv_heads = 2,
                             .head_dim = 16,
                             .width = 32,
                             .mlp_width = 128,
                             .vocab_size = V,
                             .max_positions = 32,
                             .norm_eps = 1e-5f,
                             .tied_head = true,
                             .bos_id = -1,
                             .eos_id = -1,
                             .pad_id = -1};

typedef struct logits {
    float at[CALLS][SLOTS * V];
} logits;

static void run(tg_decoder *d, logits *out) {
    int32_t slots[SLOTS], tokens[SLOTS * PROMPT], offsets[SLOTS + 1];
    for (int s = 0; s <= SLOTS; s++) offsets[s] = s * PROMPT;
    for (int i = 0; i < SLOTS * PROMPT; i++) tokens[i] = i * 37 % V;
    for (int s = 0; s < SLOTS; s++) slots[s] = s;
    CHECK_OK(tg_decoder_prefill(d, slots, tokens, offsets, SLOTS, out->at[0], &err));
    for (int i = 1; i < CALLS; i++)
        CHECK_OK(tg_decoder_step(d, slots, tokens + i * SLOTS, SLOTS, out->at[i], &err));
}

static double difference(const logits *a, const logits *b) {
    double most = 0;
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < SLOTS * V; k++)
            most = fmax(most, fabs((double)a->at[i][k] - (double)b->at[i][k]));
    return most;
}

static tg_decoder *open(tg_model *m, tg_weight_form form, bool half) {
    tg_decoder *d = NULL;
    CHECK_OK(tg_decoder_create(
        &d, m,
        (tg_decoder_caps){
            .slots = SLOTS, .len = PROMPT + STEPS, .weights = form, .half_cache = half},
        &err));
    return d;
}

TEST(forms_of_weights_and_cache) {
    static logits plain, other;
    tg_backend *be;
    tg_model *m;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    REQUIRE_OK(tg_model_create(&m, be, &arch, 0, 3, &err));
    for (int form = 0; form < 3; form++)
        for (int half = 0; half < 2; half++) {
            tg_decoder *d = open(m, (tg_weight_form)form, half);
            REQUIRE(d);
            run(d, form || half ? &other : &plain);
            tg_decoder_destroy(&d);
            if (!form && !half) continue;
            double far = difference(&plain, &other);
            printf("# weights %s, cache %s: logits differ by up to %.2g\n",
                   form == 2 ? "bf16" : "f32", half ? "bf16" : "f32", far);
            CHECK(form == 2 || half ? far > 0 && far < 5e-3 : far == 0);
        }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(changed_weights_are_packed_again) {
    static logits before, after, fresh;
    static float twice[V * 32];
    tg_backend *be;
    tg_model *m;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    REQUIRE_OK(tg_model_create(&m, be, &arch, 0, 3, &err));
    tg_decoder *d = open(m, TG_WEIGHT_PACKED, false);
    REQUIRE(d);
    run(d, &before);
    REQUIRE_OK(tg_model_get(m, "transformer.wte.weight", twice, V * 32, &err));
    for (int i = 0; i < V * 32; i++) twice[i] *= 2;
    REQUIRE_OK(tg_model_set(m, "transformer.wte.weight", twice, V * 32, &err));
    run(d, &after);
    tg_decoder_destroy(&d);
    d = open(m, TG_WEIGHT_PLAIN, false);
    REQUIRE(d);
    run(d, &fresh);
    CHECK(difference(&before, &after) > 0);
    CHECK(difference(&after, &fresh) == 0);
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
