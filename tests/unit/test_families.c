/* Every decoder and encoder-decoder family against transformers: the recorded models of tests/oracle/gen_families.py and gen_seq2seq.py, on every backend of this build; what is
 * saved again, and settings that are refused. */
#include "tests/support/model_golden.h"

#include "common/base/file.h"
#include "common/nn/model.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

TEST(gpt_neo_as_in_transformers) {
    tg_golden_check("golden/families/gpt_neo", 2e-5, 1e-3);
}

TEST(gptj_as_in_transformers) {
    tg_golden_check("golden/families/gptj", 2e-5, 1e-3);
}

TEST(gpt_neox_as_in_transformers) {
    tg_golden_check("golden/families/gpt_neox", 2e-5, 1e-3);
}

TEST(gpt_neox_that_turns_an_odd_part_of_heads_as_in_transformers) {
    tg_golden_check("golden/families/gpt_neox_odd", 2e-5, 1e-3);
}

TEST(opt_as_in_transformers) {
    tg_golden_check("golden/families/opt", 2e-5, 1e-3);
}

TEST(opt_350m_as_in_transformers) {
    tg_golden_check("golden/families/opt_350m", 2e-5, 1e-3);
}

TEST(opt_with_embeddings_wider_than_it_as_in_transformers) {
    tg_golden_check("golden/families/opt_wide", 2e-5, 1e-3);
}

TEST(opt_without_gains_as_in_transformers) {
    tg_golden_check("golden/families/opt_plain", 2e-5, 1e-3);
}

TEST(bloom_that_adds_to_norms_as_in_transformers) {
    tg_golden_check("golden/families/bloom_stream", 2e-5, 1e-3);
}

TEST(longrope_as_in_transformers) {
    tg_golden_check("golden/families/llama_long", 2e-5, 1e-3);
}

TEST(texts_longer_than_trained_turn_as_in_transformers) {
    tg_golden_check("golden/families/gemma3_grown", 2e-5, 1e-3);
}

TEST(proportional_angles_as_in_transformers) {
    tg_golden_check("golden/families/qwen3_proportional", 2e-5, 1e-3);
}

TEST(bloom_as_in_transformers) {
    tg_golden_check("golden/families/bloom", 2e-5, 1e-3);
}

TEST(llama_as_in_transformers) {
    tg_golden_check("golden/families/llama", 2e-5, 1e-3);
}

TEST(mistral_as_in_transformers) {
    tg_golden_check("golden/families/mistral", 2e-5, 1e-3);
}

TEST(qwen2_as_in_transformers) {
    tg_golden_check("golden/families/qwen2", 2e-5, 1e-3);
}

TEST(qwen2_that_reads_its_padding_as_in_transformers) {
    tg_golden_check("golden/families/qwen2_pad", 2e-5, 1e-3);
}

TEST(qwen3_as_in_transformers) {
    tg_golden_check("golden/families/qwen3", 2e-5, 1e-3);
}

TEST(gemma_as_in_transformers) {
    tg_golden_check("golden/families/gemma", 2e-5, 1e-3);
}

TEST(gemma2_as_in_transformers) {
    tg_golden_check("golden/families/gemma2", 2e-5, 1e-3);
}

TEST(gemma3_as_in_transformers) {
    tg_golden_check("golden/families/gemma3_text", 2e-5, 1e-3);
}

TEST(t5_as_in_transformers) {
    tg_golden_check("golden/families/t5", 2e-5, 1e-3);
}

TEST(mt5_as_in_transformers) {
    tg_golden_check("golden/families/mt5", 2e-5, 1e-3);
}

TEST(bart_as_in_transformers) {
    tg_golden_check("golden/families/bart", 2e-5, 1e-3);
}

TEST(mbart_as_in_transformers) {
    tg_golden_check("golden/families/mbart", 2e-5, 1e-3);
}

TEST(marian_as_in_transformers) {
    tg_golden_check("golden/families/marian", 2e-5, 1e-3);
}

TEST(pegasus_as_in_transformers) {
    tg_golden_check("golden/families/pegasus", 2e-5, 1e-3);
}

TEST(blenderbot_as_in_transformers) {
    tg_golden_check("golden/families/blenderbot", 2e-5, 1e-3);
}

TEST(blenderbot_small_as_in_transformers) {
    tg_golden_check("golden/families/blenderbot-small", 2e-5, 1e-3);
}

static const char *const names[] = {
    "gpt_neo",     "gptj",        "gpt_neox",     "opt",        "opt_350m",
    "bloom",       "llama",       "mistral",      "qwen2",      "qwen3",
    "gemma",       "gemma2",      "t5",           "mt5",        "bart",
    "mbart",       "marian",      "pegasus",      "blenderbot", "blenderbot-small",
    "gemma3_text", "opt_plain",   "bloom_stream", "llama_long", "qwen3_proportional",
    "opt_wide",    "gpt_neox_odd"};
enum { N_NAMES = sizeof names / sizeof *names };

static const char *golden(const char *family) {
    static char path[600];
    char name[100];
    snprintf(name, sizeof name, "golden/families/%s", family);
    snprintf(path, sizeof path, "%s", tg_test_path(name));
    return path;
}

static void check_same(const tg_model *a, const tg_model *b) {
    CHECK_EQ(a->params.n, b->params.n);
    CHECK_EQ(a->params.total, b->params.total);
    CHECK(!memcmp(a->data, b->data, a->params.total * sizeof(float)));
    CHECK(!memcmp(&a->arch, &b->arch, sizeof a->arch));
}

TEST(saved_and_opened_again_it_is_the_same_model) {
    tg_backend *be = NULL;
    CHECK_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < N_NAMES; i++) {
        tg_model *m = NULL, *again = NULL, *bare = NULL;
        char folder[700];
        snprintf(folder, sizeof folder, "%s/%s", tg_test_tmpdir(), names[i]);
        CHECK_OK(tg_model_open(&m, be, golden(names[i]), 0, 1, &err));
        if (!m) continue;
        CHECK_OK(tg_model_save(m, folder, &err));
        CHECK_OK(tg_model_open(&again, be, folder, 0, 1, &err));
        if (again) check_same(m, again);
        /* without the config.json it came from, all settings are written anew */
        free(m->config_text);
        m->config_text = NULL;
        strcat(folder, ".bare");
        CHECK_OK(tg_model_save(m, folder, &err));
        CHECK_OK(tg_model_open(&bare, be, folder, 0, 1, &err));
        if (bare) check_same(m, bare);
        tg_model_destroy(&bare);
        tg_model_destroy(&again);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

/* gelu_new is the same function with other last bits. */
TEST(gemma_that_names_no_activation_is_saved_with_its_default) {
    static const char *const gemmas[] = {"gemma", "gemma2", "gemma3_text"};
    tg_backend *be = NULL;
    CHECK_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < sizeof gemmas / sizeof *gemmas; i++) {
        tg_model *m = NULL;
        char folder[700], path[720];
        snprintf(folder, sizeof folder, "%s/%s.act", tg_test_tmpdir(), gemmas[i]);
        CHECK_OK(tg_model_open(&m, be, golden(gemmas[i]), 0, 1, &err));
        if (!m) continue;
        free(m->config_text);
        m->config_text = NULL;
        CHECK_OK(tg_model_save(m, folder, &err));
        snprintf(path, sizeof path, "%s/config.json", folder);
        tg_buf text = {0};
        CHECK_OK(tg_file_read(path, 1 << 20, &text, &err));
        CHECK(text.data && strstr(text.data, "\"gelu_pytorch_tanh\""));
        tg_buf_fini(&text);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

/* A family's golden config.json with one key changed. */
static tg_status load_changed(tg_arch *arch, const char *family, const char *key,
                              const char *value) {
    char path[800], folder[700];
    snprintf(path, sizeof path, "%s/config.json", golden(family));
    json_t *o = json_load_file(path, 0, NULL), *v = json_loads(value, JSON_DECODE_ANY, NULL);
    CHECK(o && v);
    json_object_set_new(o, key, v);
    snprintf(folder, sizeof folder, "%s/changed", tg_test_tmpdir());
    CHECK_OK(tg_dir_create(folder, &err));
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK(!json_dump_file(o, path, 0));
    json_decref(o);
    return tg_arch_load(arch, folder, &err);
}

/* A quarter of two floats is none: nothing is said of the angles, and the default is the same quarter. */
TEST(heads_too_small_to_turn_are_saved_and_opened_again) {
    static const char config[] =
        "{\"model_type\": \"gpt_neox\", \"vocab_size\": 11, \"hidden_size\": 4, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"intermediate_size\": 8, "
        "\"max_position_embeddings\": 16}";
    tg_backend *be = NULL;
    tg_model *m = NULL;
    tg_arch arch;
    char folder[700], path[800];
    snprintf(folder, sizeof folder, "%s/small_heads", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    CHECK_OK(tg_file_write_atomic(path, config, sizeof config - 1, &err));
    REQUIRE_OK(tg_arch_load(&arch, folder, &err));
    CHECK_EQ(arch.rope.dims, 0);
    CHECK_OK(tg_backend_open(&be, "cpu", 1, &err));
    CHECK_OK(tg_model_create(&m, be, &arch, 0, 1, &err));
    CHECK_OK(tg_model_save(m, folder, &err));
    CHECK_OK(tg_arch_load(&arch, folder, &err));
    CHECK_EQ(arch.rope.dims, 0);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(a_pad_token_below_zero_is_a_row_from_the_end_and_no_padding) {
    static const struct {
        const char *id;
        int fixed;
    } cases[] = {{"10", 10}, {"-1", 22}, {"-13", 10}, {"-24", -1}, {"null", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arch arch;
        CHECK_OK(load_changed(&arch, "qwen2_pad", "pad_token_id", cases[i].id));
        CHECK_EQ(tg_arch_fixed_token(&arch), cases[i].fixed);
        CHECK_EQ(arch.pad_id, i ? -1 : 10);
    }
}

TEST(answers_begin_with_bos_where_no_start_is_named) {
    tg_arch arch;
    CHECK_OK(load_changed(&arch, "mbart", "decoder_start_token_id", "null"));
    CHECK(arch.bos_id >= 0 && arch.bos_id != arch.eos_id);
    CHECK_EQ(arch.start_id, arch.bos_id);
}

/* It must be refused, and the message name the key. */
static void check_refused(const char *family, const char *key, const char *value,
                          tg_status expected) {
    tg_arch arch;
    tg_status st = load_changed(&arch, family, key, value);
    tg_check(st == expected, __FILE__, __LINE__, "%s %s: %d, expected %d", family, key, (int)st,
             (int)expected);
    tg_check(st == TG_OK || strstr(err.msg, key) != NULL, __FILE__, __LINE__, "%s: no %s in: %s",
             family, key, err.msg);
}

TEST(what_is_not_built_is_refused_by_name) {
    static const struct {
        const char *family, *key, *value;
        tg_status status;
    } cases[] = {
        {"llama", "hidden_act", "\"mish\"", TG_UNSUPPORTED},
        {"llama", "hidden_act", "7", TG_DATA},
        {"llama", "num_hidden_layers", "0", TG_DATA},
        {"opt", "layer_norm_elementwise_affine", "0.5", TG_DATA},
        {"opt", "word_embed_proj_dim", "\"8\"", TG_DATA},
        {"bloom", "apply_residual_connection_post_layernorm", "\"yes\"", TG_DATA},
        {"gptj", "rotary_dim", "null", TG_UNSUPPORTED},
        {"gpt_neox", "head_dim", "4", TG_UNSUPPORTED},
        {"gpt_neox", "head_dim", "8", TG_OK},
        {"gpt_neox", "head_dim", "null", TG_OK},
        {"gpt_neo", "attention_layers", "[\"global\", \"sparse\"]", TG_UNSUPPORTED},
        {"gpt_neo", "attention_layers", "[\"global\"]", TG_DATA},
        {"mistral", "layer_types", "[\"chunked_attention\", \"full_attention\"]", TG_UNSUPPORTED},
        {"gemma2", "layer_types", "[\"chunked_attention\", \"full_attention\"]", TG_UNSUPPORTED},
        {"gemma", "use_bidirectional_attention", "true", TG_UNSUPPORTED},
        {"gemma3_text", "use_bidirectional_attention", "true", TG_UNSUPPORTED},
        {"gemma3_text", "sliding_window", "null", TG_DATA},
        {"gemma2", "final_logit_softcapping", "0.0", TG_DATA},
        {"gemma2", "final_logit_softcapping", "null", TG_OK},
        {"gemma2", "attn_logit_softcapping", "0", TG_DATA},
        {"gemma2", "attn_logit_softcapping", "null", TG_OK},
        {"gemma3_text", "final_logit_softcapping", "0.0", TG_DATA},
        {"gemma3_text", "attn_logit_softcapping", "0.0", TG_OK},
        {"gemma3_text", "rope_parameters", "{\"rope_type\": \"default\"}", TG_UNSUPPORTED},
        {"gemma3_text", "rope_parameters", "{\"full_attention\": 3}", TG_DATA},
        {"gemma3_text", "rope_parameters", "{\"full_attention\": {\"truncate\": false}}",
         TG_UNSUPPORTED},
        {"gemma3_text", "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2}",
         TG_UNSUPPORTED},
        {"bart", "encoder_attention_heads", "null", TG_DATA},
        {"bart", "decoder_attention_heads", "5", TG_DATA},
        {"bart", "activation_function", "\"mish\"", TG_UNSUPPORTED},
        {"marian", "decoder_vocab_size", "0", TG_DATA},
        {"t5", "feed_forward_proj", "\"gated-mish\"", TG_UNSUPPORTED},
        {"t5", "relative_attention_num_buckets", "5000", TG_DATA},
        {"t5", "scale_decoder_outputs", "1", TG_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].family, cases[i].key, cases[i].value, cases[i].status);
    tg_arch arch;
    static const char *const ropes[] = {"{\"rope_type\":\"longrope\",\"short_factor\":[1]}",
                                        "{\"rope_type\":\"longrope\",\"short_factor\":[1,2]}",
                                        "{\"rope_type\":\"longrope\",\"short_factor\":[1,2],"
                                        "\"long_factor\":[1,2],"
                                        "\"original_max_position_embeddings\":1}",
                                        "{\"mrope_section\":[1]}",
                                        "{\"full_attention\":{\"rope_type\":\"default\"}}",
                                        "{\"rope_type\":\"linear\"}",
                                        "{\"rope_type\":\"llama3\",\"factor\":2}",
                                        "{\"rope_type\":\"linear\",\"factor\":2,"
                                        "\"partial_rotary_factor\":0.5}",
                                        "{\"rope_type\":\"yarn\",\"factor\":2,"
                                        "\"attention_factor\":0}"};
    static const char *const words[] = {
        "short_factor",    "long_factor",           "attention_factor",
        "mrope_section",   "full_attention",        "factor",
        "low_freq_factor", "partial_rotary_factor", "attention_factor"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char folder[700], path[800];
        snprintf(folder, sizeof folder, "%s/rope", tg_test_tmpdir());
        CHECK_OK(tg_dir_create(folder, &err));
        snprintf(path, sizeof path, "%s/config.json", folder);
        FILE *f = fopen(path, "w");
        fprintf(f, "{\"model_type\":\"llama\",\"head_dim\":4,\"rope_scaling\":%s}", ropes[i]);
        fclose(f);
        CHECK(tg_arch_load(&arch, folder, &err) != TG_OK);
        CHECK(strstr(err.msg, words[i]));
    }
}

TEST(gemma3_takes_the_kind_of_angles_by_its_new_name_only) {
    static const struct {
        const char *scaling;
        tg_status status;
    } cases[] = {{"{\"rope_type\":\"linear\",\"factor\":2}", TG_OK},
                 {"{\"rope_type\":\"linear\",\"type\":\"dynamic\",\"factor\":2}", TG_OK},
                 {"{\"type\":\"default\"}", TG_OK},
                 {"{\"type\":\"linear\",\"factor\":2}", TG_UNSUPPORTED}};
    char folder[700], path[800], text[200];
    snprintf(folder, sizeof folder, "%s/kind", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arch arch;
        snprintf(text, sizeof text, "{\"model_type\":\"gemma3_text\",\"rope_scaling\":%s}",
                 cases[i].scaling);
        CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
        CHECK_EQ(tg_arch_load(&arch, folder, &err), cases[i].status);
    }
    CHECK(strstr(err.msg, "rename the key to rope_type"));
}

TEST(gemma3_has_no_original_positions_at_the_top) {
    static const char scaling[] =
        "\"original_max_position_embeddings\":16,\"rope_scaling\":{\"rope_type\":\"llama3\","
        "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4%s}}";
    static const char *const inside[] = {"", ",\"original_max_position_embeddings\":32"};
    static const int wanted[] = {64, 32};
    char folder[700], path[800], text[400];
    snprintf(folder, sizeof folder, "%s/original", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    for (int i = 0; i < 4; i++) {
        tg_arch arch;
        int n =
            snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"max_position_embeddings\":64,",
                     i < 2 ? "gemma3_text" : "llama");
        snprintf(text + n, sizeof text - (size_t)n, scaling, inside[i % 2]);
        CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
        CHECK_OK(tg_arch_load(&arch, folder, &err));
        CHECK_EQ(arch.rope.original_positions, i < 2 ? wanted[i] : 16);
    }
}

TEST(bloom_in_slices_is_refused) {
    char folder[700], path[800];
    snprintf(folder, sizeof folder, "%s/slices", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    for (int slices = 1; slices < 3; slices++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"model_type\":\"bloom\",\"slow_but_exact\":true,\"pretraining_tp\":%d}",
                 slices);
        CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
        tg_arch arch;
        CHECK_EQ(tg_arch_load(&arch, folder, &err), slices == 1 ? TG_OK : TG_UNSUPPORTED);
    }
    CHECK(strstr(err.msg, "slow_but_exact"));
}

TEST_MAIN
