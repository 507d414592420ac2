/* Optimizers: torch's answers (tests/golden/optim, gen_optim.py), the 8-bit data type, decay groups, frozen tensors, state in
 * checkpoints. */
#include "tests/support/tg_test.h"

#include "common/base/file.h"
#include "common/nn/quant8.h"
#include "learner/optim/optim.h"
#include "learner/train/checkpoint.h"
#include "tests/support/optim_eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

/* ---- torch ---- */

static double difference(const json_t *got, const json_t *want) {
    if (json_array_size(got) != json_array_size(want)) return (double)INFINITY;
    double worst = 0;
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t *g = json_array_get(got, i), *w = json_array_get(want, i);
        double d = json_is_array(w) ? difference(g, w)
                                    : fabs(json_number_value(g) - json_number_value(w)) /
                                          fmax(1, fabs(json_number_value(w)));
        worst = fmax(worst, d);
    }
    return worst;
}

TEST(torch_agrees) {
    FILE *f = fopen(tg_test_path("golden/optim/cases.jsonl"), "r");
    REQUIRE(f);
    char *line = NULL;
    size_t cap = 0;
    int cases = 0;
    while (getline(&line, &cap, f) > 0) {
        json_t *c = json_loads(line, 0, NULL);
        REQUIRE(c);
        json_t *request = json_object_get(c, "request"), *want = json_object_get(c, "want");
        const char *backends[] = {"ref", "cpu"};
        for (int i = 0; i < 2; i++) {
            json_object_set_new(request, "backend", json_string(backends[i]));
            json_t *got = json_object();
            CHECK_OK(tg_optim_eval(request, got, &err));
            double d =
                fmax(difference(json_object_get(got, "param"), json_object_get(want, "param")),
                     difference(json_object_get(got, "state"), json_object_get(want, "state")));
            tg_check(d <= 2e-5, __FILE__, __LINE__, "%s on %s: differs by %g",
                     json_string_value(json_object_get(request, "kind")), backends[i], d);
            json_decref(got);
        }
        json_decref(c);
        cases++;
    }
    free(line);
    fclose(f);
    CHECK_EQ(cases, 24);
}

/* ---- 8 bits ---- */

TEST(every_code_is_itself_after_a_round_trip) {
    for (int c = 0; c < 256; c++) {
        float x = tg_quant8_decode_signed((uint8_t)c), y = tg_quant8_decode_unsigned((uint8_t)c);
        CHECK_EQ(tg_quant8_encode_signed(x), c);
        CHECK_EQ(tg_quant8_encode_unsigned(y), c);
        CHECK(fabsf(x) <= 1 && y >= 0 && y <= 1);
    }
    CHECK_EQ(tg_quant8_encode_signed(0), 0);
    CHECK_EQ(tg_quant8_encode_unsigned(0), 0);
    CHECK(tg_quant8_decode_unsigned(tg_quant8_encode_unsigned(1e-12f)) > 0);
}

TEST(rounding_is_monotone_and_close) {
    float last_s = 0, last_u = 0;
    for (double a = 1e-8; a <= 1; a *= 1.0003) {
        float x = (float)a, s = tg_quant8_decode_signed(tg_quant8_encode_signed(x)),
              u = tg_quant8_decode_unsigned(tg_quant8_encode_unsigned(x));
        CHECK_EQ(s >= last_s && u >= last_u, 1);
        CHECK_NEAR(tg_quant8_decode_signed(tg_quant8_encode_signed(-x)), (double)-s, 0);
        /* half a part of the decade that x is in */
        int decade = (int)floor(log10(a) + 7);
        double part = decade < 0 ? 1e-6 : 0.9 * pow(10, decade - 6) / pow(2, decade);
        CHECK(fabs((double)s - a) <= part * 0.5001 + 1e-9);
        CHECK(fabs((double)u - a) <= part * 0.2501 + 1e-7);
        last_s = s, last_u = u;
    }
}

/* ---- over models ---- */

static const tg_arch small = {.family = "gpt2",
                              .n_layers = 3,
                              .n_heads = 2,
                              .n_kv_heads = 2,
                              .head_dim = 16,
                              .width = 32,
                              .mlp_width = 128,
                              .vocab_size = 150,
                              .max_positions = 20,
                              .norm_eps = 1e-5f,
                              .tied_head = true,
                              .bos_id = -1,
                              .eos_id = -1,
                              .pad_id = -1};

static tg_optim_opts opts_of(const char *kind) {
    return (tg_optim_opts){.kind = kind,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .weight_decay = 0.5,
                           .alpha = 0.99,
                           .momentum = 0.9,
                           .centered = true};
}

static void give_gradients(tg_model *m, int step) {
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        for (size_t k = 0; p->grad_offset != TG_PARAM_FROZEN && k < p->count; k++)
            m->grad[p->grad_offset + k] = sinf((float)(i + 7 * k) + (float)step);
    }
}

static float first_of(const tg_model *m, const char *name) {
    return m->data[tg_params_find(&m->params, name)->offset];
}

/* With zero gradients a step of AdamW only decays. */
TEST(decay_rules_name_their_tensors) {
    static const struct {
        const char *name;
        bool rl4lms, trainer;
    } tensors[] = {{"transformer.h.1.ln_2.weight", true, false},
                   {"transformer.ln_f.weight", true, false},
                   {"transformer.h.1.ln_2.bias", false, false},
                   {"transformer.h.0.mlp.c_fc.bias", false, false},
                   {"transformer.h.0.mlp.c_fc.weight", true, true},
                   {"transformer.wte.weight", true, true},
                   {"transformer.wpe.weight", true, true}};
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (int rule = 0; rule < 2; rule++) {
        tg_model *m;
        tg_optim *o;
        REQUIRE_OK(tg_model_create(&m, be, &small, TG_MODEL_TRAINABLE, 1, &err));
        for (size_t i = 0; i < m->params.n; i++) m->data[m->params.list[i].offset] = 1;
        tg_optim_opts opts = opts_of("adamw");
        opts.decay = rule ? TG_DECAY_TRAINER : TG_DECAY_RL4LMS;
        REQUIRE_OK(tg_optim_create(&o, &m, 1, &opts, &err));
        tg_optim_step(o, 0.1, 1);
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
            bool decays = rule ? tensors[i].trainer : tensors[i].rl4lms;
            CHECK_NEAR(first_of(m, tensors[i].name), decays ? 0.95 : 1, 1e-6);
        }
        tg_optim_destroy(&o);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

TEST(eight_bits_take_a_quarter_and_every_byte_is_planned) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &small, TG_MODEL_TRAINABLE, 1, &err));
    static const char *const kinds[] = {"adamw", "adamw_8bit", "adam", "rmsprop", "sgd"};
    size_t bytes[5];
    for (int i = 0; i < 5; i++) {
        tg_optim_opts opts = opts_of(kinds[i]);
        size_t before = be->bytes_used;
        tg_optim *o;
        REQUIRE_OK(tg_optim_create(&o, &m, 1, &opts, &err));
        bytes[i] = be->bytes_used - before;
        CHECK_EQ(bytes[i], tg_optim_bytes(&opts, &m->params));
        tg_optim_destroy(&o);
        CHECK_EQ(be->bytes_used, before);
    }
    CHECK(bytes[1] < bytes[0] * 0.6); /* this model has many small tensors, which stay in f32 */
    CHECK_EQ(bytes[2], bytes[0]);
    CHECK_EQ(bytes[3] * 2, bytes[0] * 3);
    CHECK_EQ(bytes[4] * 2, bytes[0]);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* Saved and resumed in the middle, every optimizer goes on bit by bit; frozen tensors never move. */
static void goes_on(const char *kind, unsigned flags) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_model *m[2];
    tg_optim *o[2];
    tg_optim_opts opts = opts_of(kind);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(tg_model_create(&m[i], be, &small, flags, 1, &err));
        REQUIRE_OK(tg_optim_create(&o[i], &m[i], 1, &opts, &err));
    }
    float frozen = first_of(m[0], "transformer.h.0.mlp.c_fc.weight");
    for (int t = 0; t < 3; t++) give_gradients(m[0], t), tg_optim_step(o[0], 0.01, 0.5f);
    char dir[256];
    snprintf(dir, sizeof dir, "%s/%s-%u", tg_test_tmpdir(), kind, flags);
    REQUIRE_OK(tg_dir_create(dir, &err));
    tg_run_state state = {.iteration = 3, .seed = 1, .digest = 2};
    tg_checkpoint_nets nets = {.model = {m[0]}, .name = {"policy"}, .n = 1, .optim = o[0]};
    REQUIRE_OK(tg_checkpoint_save(dir, &state, &nets, &err));
    bool found = false;
    tg_run_state resumed = {.seed = 1, .digest = 2};
    nets.model[0] = m[1], nets.optim = o[1];
    REQUIRE_OK(tg_checkpoint_resume(dir, &resumed, &nets, &found, &err));
    CHECK(found);
    for (int i = 0; i < 2; i++)
        for (int t = 3; t < 6; t++) give_gradients(m[i], t), tg_optim_step(o[i], 0.01, 0.5f);
    CHECK(!memcmp(m[0]->data, m[1]->data, m[0]->params.total * sizeof(float)));
    bool is_frozen = flags != TG_MODEL_TRAINABLE;
    CHECK((first_of(m[0], "transformer.h.0.mlp.c_fc.weight") == frozen) == is_frozen);
    for (int i = 0; i < 2; i++) tg_optim_destroy(&o[i]), tg_model_destroy(&m[i]);
    tg_backend_close(&be);
}

TEST(every_optimizer_goes_on_from_a_checkpoint_bit_by_bit) {
    static const char *const kinds[] = {"adamw", "adamw_8bit", "adam", "rmsprop", "sgd"};
    for (int i = 0; i < 5; i++) {
        goes_on(kinds[i], TG_MODEL_TRAINABLE);
        goes_on(kinds[i], TG_MODEL_TRAIN_LAST(1));
    }
}

TEST(frozen_tensors_have_neither_gradient_nor_state) {
    tg_params all, some;
    REQUIRE_OK(tg_model_params(&all, &small, TG_MODEL_TRAINABLE, &err));
    REQUIRE_OK(tg_model_params(&some, &small, TG_MODEL_TRAIN_LAST(1), &err));
    CHECK_EQ(all.grad_total, all.total);
    CHECK_EQ(some.total, all.total);
    size_t expected = 0;
    for (size_t i = 0; i < some.n; i++) {
        const tg_param *p = &some.list[i];
        bool trained = p->layer == 2 || p->role == TG_ROLE_FINAL_W || p->role == TG_ROLE_FINAL_B;
        CHECK_EQ(p->grad_offset != TG_PARAM_FROZEN, trained);
        if (trained) expected += (p->count + 15) / 16 * 16;
    }
    CHECK_EQ(some.grad_total, expected);
    tg_optim_opts opts = opts_of("adamw");
    CHECK_EQ(tg_optim_bytes(&opts, &some), 2 * expected * sizeof(float));
    CHECK_EQ(tg_model_bytes(&small, TG_MODEL_TRAIN_LAST(1)),
             (all.total + expected) * sizeof(float));
    tg_params_fini(&all);
    tg_params_fini(&some);
}

TEST(what_is_no_optimizer_is_refused_by_name) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &small, TG_MODEL_TRAINABLE, 1, &err));
    tg_optim *o;
    tg_optim_opts opts = opts_of("adagrad");
    CHECK_EQ(tg_optim_create(&o, &m, 1, &opts, &err), TG_UNSUPPORTED);
    CHECK(o == NULL && strstr(err.msg, "adagrad"));
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
