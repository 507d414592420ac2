/* Model folders made by hand: tensors missing, extra or misshapen, shards, bad configs, each refused by name. */
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/nn/family/config_json.h"
#include "common/nn/json_file.h"
#include "common/nn/model.h"
#include "common/nn/model_files.h"
#include "common/nn/safetensors.h"
#include "tests/support/small_model.h"
#include "tests/support/tg_test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tg_error err;

struct edit {
    const char *drop, *rename, *to, *also; /* tensor names */
    int cut;                               /* of shape[0] of `drop`, instead of dropping it */
    float also_adds;                       /* `also` is wte with this added */
    bool bare;                             /* without "transformer." */
    tg_dtype dtype;
};

/* Writes m's tensors to folder/model.safetensors, edited. */
static void write_edited(const tg_model *m, const char *folder, struct edit e) {
    static char names[64][TG_PARAM_NAME_MAX];
    tg_st_write list[64];
    float *x = tg_small_weights(m);
    size_t n = 0;
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        const char *name = p->name;
        bool hit = e.drop && !strcmp(name, e.drop);
        if (hit && !e.cut) continue;
        if (e.rename && !strcmp(name, e.rename)) name = e.to;
        if (e.bare && !strncmp(name, "transformer.", 12)) name += 12;
        strcpy(names[n], name);
        list[n] = (tg_st_write){
            .name = names[n], .dtype = TG_F32, .ndim = p->ndim, .data = x + p->offset};
        for (int d = 0; d < p->ndim; d++) list[n].shape[d] = p->shape[d];
        if (hit) list[n].shape[0] -= e.cut;
        n++;
    }
    float *extra = malloc(88 * sizeof *extra);
    for (int i = 0; i < 88; i++) extra[i] = x[i] + e.also_adds;
    if (e.also)
        list[n++] = (tg_st_write){
            .name = e.also, .dtype = e.dtype, .ndim = 2, .shape = {11, 8}, .data = extra};
    char path[400];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_OK(tg_safetensors_write(path, list, n, NULL, &err));
    free(extra);
    free(x);
}

TEST(tensors_missing_extra_or_misshapen_are_named) {
    static const struct {
        struct edit edit;
        tg_status status;
        const char *says[3];
    } table[] = {
        {{0}, TG_OK, {0}},
        {{.bare = true}, TG_OK, {0}},
        {{.also = "lm_head.weight"}, TG_OK, {0}},
        {{.drop = "transformer.wte.weight", .also = "lm_head.weight"}, TG_OK, {0}},
        {{.also = "transformer.h.1.attn.masked_bias"}, TG_OK, {0}},
        {{.also = "h.0.attn.bias"}, TG_OK, {0}},
        {{.also = "lm_head.weight", .also_adds = 1},
         TG_DATA,
         {"lm_head.weight", "ties", "tie_word_embeddings"}},
        {{.also = "wte.weight"}, TG_DATA, {"wte.weight", "same parameter", NULL}},
        {{.also = "v_head.weight"}, TG_DATA, {"v_head.weight", "not part of", NULL}},
        {{.also = "transformer.h.2.ln_1.weight"},
         TG_DATA,
         {"transformer.h.2.ln_1.weight", "not part of", NULL}},
        {{.also = "transformer.h..attn.bias"}, TG_DATA, {"not part of", NULL, NULL}},
        {{.drop = "transformer.h.1.ln_2.bias"},
         TG_DATA,
         {"transformer.h.1.ln_2.bias", "missing", "(8)"}},
        {{.drop = "transformer.wte.weight", .cut = 1},
         TG_DATA,
         {"transformer.wte.weight", "expected shape (11, 8)", "found (10, 8)"}},
        {{.rename = "transformer.ln_f.bias", .to = "transformer.ln_g.bias"},
         TG_DATA,
         {"transformer.ln_g.bias", "not part", NULL}},
        {{.drop = "transformer.wte.weight", .also = "transformer.wte.weight", .dtype = TG_I32},
         TG_DATA,
         {"transformer.wte.weight", "found I32", NULL}},
    };
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    const char *folder = tg_small_path("edited");
    REQUIRE_OK(tg_model_save(m, folder, &err));
    size_t used = be->bytes_used;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        write_edited(m, folder, table[i].edit);
        tg_model *back = NULL;
        err.msg[0] = '\0';
        tg_status st = tg_model_open(&back, be, folder, 0, 1, &err);
        tg_check(st == table[i].status, __FILE__, __LINE__, "case %zu: %d %s", i, (int)st, err.msg);
        for (int k = 0; k < 3 && table[i].says[k]; k++)
            tg_check(strstr(err.msg, table[i].says[k]), __FILE__, __LINE__,
                     "case %zu: \"%s\" should say \"%s\"", i, err.msg, table[i].says[k]);
        if (st == TG_OK) {
            CHECK(tg_small_same(m, back));
            tg_model_destroy(&back);
        }
        CHECK_EQ(be->bytes_used, used);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(a_large_tensor_is_loaded_in_pieces) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    a.vocab_size = 300000; /* more than two pieces, not a whole number of them */
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("large"), &err));
    REQUIRE_OK(tg_model_open(&back, be, tg_small_path("large"), TG_MODEL_TRAINABLE, 1, &err));
    CHECK(tg_small_same(m, back));
    tg_model_destroy(&m);
    tg_model_destroy(&back);
    tg_backend_close(&be);
}

static tg_status load_and_check(const tg_arch *arch, const char *folder, tg_backend *be) {
    tg_error other = {0};
    tg_model *m;
    tg_status loaded = tg_model_open(&m, be, folder, 0, 0, &err);
    tg_model_destroy(&m);
    CHECK_EQ(tg_model_check(folder, arch, &other), loaded);
    CHECK_STR(other.msg, err.msg);
    return loaded;
}

/* Found by loading and by checking, in any row of a large tensor, with the same words. */
TEST(weights_that_are_not_finite_are_named) {
    static const struct {
        size_t at;
        float value;
        const char *says;
    } table[] = {{0, NAN, "element 0 is NaN"},
                 {1023, INFINITY, "element 1023 is infinity"},
                 {70001, -INFINITY, "element 70001 is -infinity"},
                 {299999, -NAN, "element 299999 is NaN"}};
    tg_backend *be = tg_small_backend();
    tg_arch arch = tg_small_arch();
    arch.vocab_size = 300000 / arch.width;
    const char *folder = tg_small_path("nan");
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &arch, 0, 3, &err));
    size_t wte = (size_t)300000 / (size_t)arch.width * (size_t)arch.width;
    float *x = malloc(wte * sizeof *x);
    REQUIRE_OK(tg_model_get(m, "transformer.wte.weight", x, wte, &err));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        float was = x[table[i].at];
        x[table[i].at] = table[i].value;
        CHECK_OK(tg_model_set(m, "transformer.wte.weight", x, wte, &err));
        CHECK_OK(tg_model_save(m, folder, &err));
        CHECK_EQ(load_and_check(&arch, folder, be), TG_DATA);
        CHECK(strstr(err.msg, "model.safetensors: tensor \"transformer.wte.weight\": "));
        tg_check(strstr(err.msg, table[i].says) != NULL, __FILE__, __LINE__, "%s", err.msg);
        x[table[i].at] = was;
    }
    x[5] = FLT_MAX, x[6] = -FLT_MAX,
    x[7] = FLT_MIN / 2; /* the largest, and one below normal ones */
    CHECK_OK(tg_model_set(m, "transformer.wte.weight", x, wte, &err));
    CHECK_OK(tg_model_save(m, folder, &err));
    err.msg[0] = '\0';
    CHECK_OK(load_and_check(&arch, folder, be));
    free(x);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* A bias of -inf forbids a token. */
TEST(the_bias_of_the_output_may_be_minus_infinity) {
    static const struct {
        float value;
        tg_status status;
    } table[] = {{-INFINITY, TG_OK}, {INFINITY, TG_DATA}, {NAN, TG_DATA}};
    tg_backend *be = tg_small_backend();
    tg_model *m;
    REQUIRE_OK(tg_model_open(&m, be, "tests/golden/families/gptj", 0, 0, &err));
    const tg_param *p = tg_params_role(&m->params, TG_ROLE_HEAD_B, -1);
    REQUIRE(p != NULL);
    float x[256] = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        x[2] = table[i].value;
        CHECK_OK(tg_model_set(m, p->name, x, p->count, &err));
        CHECK_OK(tg_model_save(m, tg_small_path("bias"), &err));
        err.msg[0] = '\0';
        CHECK_EQ(load_and_check(&m->arch, tg_small_path("bias"), be), table[i].status);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(shards_are_read_through_the_index) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("shards"), &err));
    CHECK_EQ(remove(tg_small_path("shards/model.safetensors")), 0);
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err), TG_NOINPUT);
    float *x = tg_small_weights(m);
    tg_buf index = {0};
    tg_buf_puts(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    tg_st_write list[64];
    for (int s = 0; s < 2; s++) {
        size_t n = 0;
        for (size_t i = (size_t)s; i < m->params.n; i += 2) {
            const tg_param *p = &m->params.list[i];
            list[n] = (tg_st_write){
                .name = p->name, .dtype = TG_F32, .ndim = p->ndim, .data = x + p->offset};
            for (int d = 0; d < p->ndim; d++) list[n].shape[d] = p->shape[d];
            tg_buf_printf(&index, "%s\"%s\":\"part%d.safetensors\"", i ? "," : "", p->name, s);
            n++;
        }
        CHECK_OK(tg_safetensors_write(
            tg_small_path(s ? "shards/part1.safetensors" : "shards/part0.safetensors"), list, n,
            NULL, &err));
        if (s == 0) tg_buf_puts(&index, "");
    }
    tg_buf_puts(&index, "}}");
    CHECK_OK(tg_file_write_atomic(tg_small_path("shards/model.safetensors.index.json"), index.data,
                                  index.len, &err));
    tg_status st = tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err);
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg);
    if (st == TG_OK) CHECK(tg_small_same(m, back));
    tg_model_destroy(&back);
    CHECK_EQ(remove(tg_small_path("shards/part1.safetensors")), 0);
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "part1.safetensors") != NULL);
    const char *bad = "{\"weight_map\":{\"a\":\"../x\"}}";
    CHECK_OK(tg_file_write_atomic(tg_small_path("shards/model.safetensors.index.json"), bad,
                                  strlen(bad), &err));
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err), TG_DATA);
    /* no folders, and nothing longer than names of files may be */
    char longer[257] = "", no_name[400];
    memset(longer, 'x', sizeof longer - 1);
    const char *const names[] = {".", "..", longer};
    for (size_t i = 0; i < TG_COUNT_OF(names); i++) {
        snprintf(no_name, sizeof no_name, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        CHECK_OK(tg_file_write_atomic(tg_small_path("shards/model.safetensors.index.json"), no_name,
                                      strlen(no_name), &err));
        CHECK_EQ(tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err), TG_DATA);
        CHECK(strstr(err.msg, "weight_map: a: expected the name of a file") != NULL);
    }
    const char *none = "{\"weight_map\":{}}";
    CHECK_OK(tg_file_write_atomic(tg_small_path("shards/model.safetensors.index.json"), none,
                                  strlen(none), &err));
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("shards"), 0, 1, &err), TG_DATA);
    CHECK(strstr(err.msg, "model.safetensors.index.json: weight_map") != NULL);
    tg_buf_fini(&index);
    free(x);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(bad_configs_are_refused_with_file_key_and_reason) {
    static const struct {
        const char *text;
        tg_status status;
        const char *says;
    } table[] = {
        {"{\"model_type\":\"gpt2\"}", TG_OK, ""},
        {"{\"model_type\":\"gpt2\",\"n_inner\":null,\"hidden_size\":24}", TG_OK, ""},
        {"{\"model_type\":\"gpt2\",\"eos_token_id\":[3,4],\"bos_token_id\":null}", TG_OK, ""},
        {"", TG_DATA, "JSON"},
        {"[]", TG_DATA, "object"},
        {"{\"n_embd\":8", TG_DATA, "config.json:1"},
        {"{\"n_embd\":8}", TG_DATA, "model_type"},
        {"{\"model_type\":3}", TG_DATA, "model_type"},
        {"{\"model_type\":\"mamba\"}", TG_UNSUPPORTED, "mamba"},
        {"{\"model_type\":\"gpt2\",\"model_type\":\"gpt2\"}", TG_DATA, "duplicate"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":\"8\"}", TG_DATA,
         "n_embd: expected an integer from 1 to 65536, found \"8\""},
        {"{\"model_type\":\"gpt2\",\"n_embd\":8.5}", TG_DATA, "n_embd"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":8,\"hidden_size\":\"8\"}", TG_DATA,
         "config.json: hidden_size: expected an integer from 1 to 65536, found \"8\""},
        {"{\"model_type\":\"bloom\",\"n_embed\":0}", TG_DATA, "config.json: n_embed: expected"},
        {"{\"model_type\":\"llama\",\"rope_parameters\":\"linear\"}", TG_DATA,
         "config.json: rope_parameters: expected an object"},
        {"{\"model_type\":\"llama\",\"rope_scaling\":[2]}", TG_DATA,
         "config.json: rope_scaling: expected an object"},
        {"{\"model_type\":\"llama\",\"hidden_size\":65536,\"num_attention_heads\":1}",
         TG_UNSUPPORTED, "config.json: model: head_dim 65536"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification\"],"
         "\"num_labels\":1,\"problem_type\":\"single_label_classification\"}",
         TG_DATA, "problem_type: single_label_classification of 1 label"},
        {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"],"
         "\"id2label\":{\"0\":\"a\"},\"problem_type\":\"single_label_classification\"}",
         TG_DATA, "problem_type: single_label_classification of 1 label"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":0}", TG_DATA, "n_embd"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":10,\"n_head\":3}", TG_DATA, "multiple of n_head"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":1000000}", TG_DATA, "n_layer"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":-1}", TG_DATA, "vocab_size"},
        {"{\"model_type\":\"gpt2\",\"activation_function\":\"mish\"}", TG_UNSUPPORTED, "mish"},
        {"{\"model_type\":\"gpt2\",\"add_cross_attention\":true}", TG_UNSUPPORTED,
         "add_cross_attention"},
        {"{\"model_type\":\"gpt2\",\"tie_word_embeddings\":\"yes\"}", TG_DATA,
         "tie_word_embeddings"},
        {"{\"model_type\":\"gpt2\",\"layer_norm_epsilon\":\"x\"}", TG_DATA, "layer_norm_epsilon"},
        {"{\"model_type\":\"gpt2\",\"eos_token_id\":\"x\"}", TG_DATA, "eos_token_id"},
    };
    tg_arch a;
    CHECK_EQ(tg_arch_load(&a, tg_small_path("none"), &err), TG_NOINPUT);
    CHECK_OK(tg_dir_create(tg_small_path("configs"), &err));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CHECK_OK(tg_file_write_atomic(tg_small_path("configs/config.json"), table[i].text,
                                      strlen(table[i].text), &err));
        err.msg[0] = '\0';
        tg_status st = tg_arch_load(&a, tg_small_path("configs"), &err);
        tg_check(st == table[i].status && strstr(err.msg, table[i].says), __FILE__, __LINE__,
                 "case %zu: %d \"%s\" should say \"%s\"", i, (int)st, err.msg, table[i].says);
        if (st != TG_OK) CHECK(strstr(err.msg, "config.json") != NULL);
        if (i == 0)
            CHECK(a.width == 768 && a.n_layers == 12 && a.mlp_width == 3072 && a.tied_head &&
                  a.eos_id == 50256);
        if (i == 1) CHECK(a.width == 24 && a.mlp_width == 96);
        if (i == 2) CHECK(a.eos_id == 3 && a.bos_id == -1);
    }
}

/* A folder of that name with nothing but this config.json. */
static const char *folder_of(const char *name, const char *config) {
    static char folder[500];
    char path[600];
    snprintf(folder, sizeof folder, "%s/%s", tg_test_tmpdir(), name);
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    CHECK_OK(tg_file_write_atomic(path, config, strlen(config), &err));
    return folder;
}

/* Its tokens are the decoder's, also those that the encoder does not have. */
TEST(a_decoder_with_more_tokens_than_its_encoder_keeps_their_numbers) {
    static const char text[] =
        "{\"model_type\": \"marian\", \"vocab_size\": 50, \"decoder_vocab_size\": 70,"
        "\"share_encoder_decoder_embeddings\": false, \"pad_token_id\": 49,"
        "\"eos_token_id\": 60, \"bos_token_id\": 70, \"decoder_start_token_id\": 69}";
    const char *folder = folder_of("tokens", text);
    tg_arch a;
    CHECK_OK(tg_arch_load(&a, folder, &err));
    CHECK_EQ(a.start_id, 69);
    CHECK_EQ(a.eos_id, 60);
    CHECK_EQ(a.pad_id, 49);
    CHECK_EQ(a.bos_id, -1);
}

/* Its tree would be many times as large as the text; the same number of bytes in one value is fine. */
TEST(a_config_of_many_small_values_is_refused) {
    char folder[700], path[800];
    snprintf(folder, sizeof folder, "%s/dense", tg_test_tmpdir());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_dir_create(folder, &err));
    for (int dense = 0; dense < 2; dense++) {
        tg_buf text = {0};
        tg_buf_puts(&text, dense ? "{\"model_type\": \"gpt2\", \"x\": [0"
                                 : "{\"model_type\": \"gpt2\", \"x\": [\"");
        for (int i = 0; i < 20000; i++) tg_buf_puts(&text, dense ? ",0" : "00");
        tg_buf_puts(&text, dense ? "]}" : "\"]}");
        CHECK_OK(tg_file_write_atomic(path, text.data, text.len, &err));
        tg_buf_fini(&text);
        tg_arch arch;
        CHECK_EQ(tg_arch_load(&arch, folder, &err), dense ? TG_DATA : TG_OK);
    }
    CHECK(strstr(err.msg, "config.json: too many values"));
}

TEST(architectures_that_make_no_model_are_refused) {
    tg_backend *be = tg_small_backend();
    tg_model *m;
    tg_arch a = tg_small_arch();
    a.n_layers = 0;
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_DATA);
    a = tg_small_arch();
    a.n_kv_heads = 3;
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_DATA);
    a = tg_small_arch();
    strcpy(a.family, "x");
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_UNSUPPORTED);
    CHECK_EQ(tg_model_bytes(&a, 0), 0);
    CHECK_EQ(tg_model_open(&m, be, "/nowhere", 0, 1, &err), TG_NOINPUT);
    CHECK(m == NULL);
    tg_backend_close(&be);
}

/* transformers refuses 8.0000003 where it wants an int, and divides by a cap of 0. */
TEST(the_config_of_gemma_is_saved_as_transformers_reads_it) {
    tg_backend *be = tg_small_backend();
    tg_model *m = NULL;
    tg_arch a;
    tg_buf text = {0};
    char folder[500], path[600];
    snprintf(folder, sizeof folder, "%s/gemma", tg_test_tmpdir());
    CHECK_OK(tg_arch_load(&a, "tests/golden/families/gemma2", &err));
    a.attn_scale = (float)(1 / sqrt(8.0));
    a.logit_softcap = a.attn_softcap = 0;
    CHECK_OK(tg_model_create(&m, be, &a, 0, 1, &err));
    CHECK_OK(tg_model_save(m, folder, &err));
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_OK(tg_file_read(path, 1 << 20, &text, &err));
    CHECK(text.data && strstr(text.data, "\"query_pre_attn_scalar\": 8,"));
    CHECK(text.data && strstr(text.data, "\"final_logit_softcapping\": null"));
    CHECK(text.data && strstr(text.data, "\"attn_logit_softcapping\": null"));
    tg_buf_fini(&text);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* Each level of it once: what is read at all is written at once. */
TEST(settings_that_are_deep_are_saved) {
    enum { DEPTH = 200 };
    char folder[500];
    snprintf(folder, sizeof folder, "%s/deep", tg_test_tmpdir());
    CHECK_OK(tg_dir_create(folder, &err));
    json_t *deep = json_pack("[f]", 0.1);
    for (int i = 0; i < DEPTH; i++)
        deep = i % 2 ? json_pack("[o]", deep) : json_pack("{s:o}", "inner", deep);
    json_t *whole = json_pack("{s:o}", "outer", deep);
    CHECK_OK(tg_json_file_write(folder, "config.json", whole, &err));
    tg_config_json c;
    CHECK_OK(tg_config_json_open(&c, folder, "config.json", &err));
    CHECK(json_equal(whole, c.root));
    tg_config_json_close(&c);
    json_decref(whole);
}

/* Python's 10^30; what is not such a number stays as it is. */
TEST(integers_of_any_length_are_read) {
    static const char text[] =
        "{\"model_type\": \"gpt2\", \"n_embd\": 24,\n"
        "\"a\": [1000000000000000019884624838656, -1000000000000000019884624838656],\n"
        "\"b\": \"\\\"1000000000000000019884624838656\", \"c\": 9007199254740993,\n"
        "\"d\": [0.10000000000000000000000000000, 100000000000000000000e-20]}";
    const char *folder = folder_of("long", text);
    tg_arch arch;
    CHECK_OK(tg_arch_load(&arch, folder, &err));
    CHECK_OK(tg_model_write_config(folder, &arch, text, TG_F32, &err));
    tg_config_json c;
    CHECK_OK(tg_config_json_open(&c, folder, "config.json", &err));
    const json_t *a = json_object_get(c.root, "a"), *d = json_object_get(c.root, "d");
    CHECK_EQ(json_integer_value(json_object_get(c.root, "n_embd")), 24);
    CHECK(json_real_value(json_array_get(a, 0)) == 1e30);
    CHECK(json_real_value(json_array_get(a, 1)) == -1e30);
    CHECK_STR(json_string_value(json_object_get(c.root, "b")), "\"1000000000000000019884624838656");
    CHECK_EQ(json_integer_value(json_object_get(c.root, "c")), 9007199254740993);
    CHECK(json_real_value(json_array_get(d, 0)) == 0.1);
    CHECK(json_real_value(json_array_get(d, 1)) == 1);
    tg_config_json_close(&c);
}

TEST_MAIN
