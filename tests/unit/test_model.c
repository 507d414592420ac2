/* Model folders: what is saved opens again bit for bit, and a table of bad folders each refused by
 * name. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/model.h"
#include "common/nn/safetensors.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>

static tg_error err;

static tg_arch tiny(void) {
    return (tg_arch){.family = "gpt2",
                     .n_layers = 2,
                     .n_heads = 2,
                     .n_kv_heads = 2,
                     .head_dim = 4,
                     .width = 8,
                     .mlp_width = 32,
                     .vocab_size = 11,
                     .max_positions = 7,
                     .norm_eps = 1e-5f,
                     .tied_head = true,
                     .bos_id = 10,
                     .eos_id = 10,
                     .pad_id = -1};
}

static tg_backend *open_ref(void) {
    tg_backend *be = NULL;
    CHECK_OK(tg_backend_open(&be, "ref", 1, &err));
    return be;
}

static const char *tmp(const char *name) {
    static char paths[4][300];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", tg_test_tmpdir(), name);
    return path;
}

static float *all(const tg_model *m) {
    float *x = malloc(m->params.total * sizeof *x);
    tg_backend_download(m->be, x, m->data, m->params.total * sizeof *x);
    return x;
}

static bool same_weights(const tg_model *a, const tg_model *b) {
    if (a->params.total != b->params.total) return false;
    float *x = all(a), *y = all(b);
    bool same = !memcmp(x, y, a->params.total * sizeof *x);
    free(x);
    free(y);
    return same;
}

TEST(table_has_every_tensor_once_and_aligned) {
    tg_arch a = tiny();
    a.value_head = true;
    tg_params p;
    REQUIRE_OK(tg_params_init(&p, &a, &err));
    CHECK_EQ(p.n, 2 + 2 * 12 + 2 + 1);
    size_t end = 0;
    for (size_t i = 0; i < p.n; i++) {
        CHECK_EQ(p.list[i].offset % 16, 0);
        CHECK(p.list[i].offset >= end && p.list[i].offset < end + 16);
        end = p.list[i].offset + p.list[i].count;
        CHECK(tg_params_find(&p, p.list[i].name) == &p.list[i]);
        CHECK(tg_params_role(&p, p.list[i].role, p.list[i].layer) == &p.list[i]);
    }
    CHECK(p.total >= end && p.total < end + 16);
    const tg_param *q = tg_params_find(&p, "transformer.h.1.attn.c_attn.weight");
    REQUIRE(q != NULL);
    CHECK(q->shape[0] == 8 && q->shape[1] == 24 && q->layer == 1);
    CHECK(tg_params_find(&p, "lm_head.weight") == NULL);
    tg_params_fini(&p);
    a.tied_head = false;
    REQUIRE_OK(tg_params_init(&p, &a, &err));
    CHECK(tg_params_find(&p, "lm_head.weight") != NULL);
    tg_params_fini(&p);
}

TEST(fresh_model_has_gpt2_statistics_and_depends_on_the_seed) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    a.vocab_size = 500, a.width = 64, a.head_dim = 32, a.mlp_width = 256;
    tg_model *m, *same, *other;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_create(&same, be, &a, TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_create(&other, be, &a, TG_MODEL_VALUE_HEAD, 2, &err));
    CHECK(same_weights(m, same));
    CHECK(!same_weights(m, other));
    CHECK_EQ(be->bytes_used, tg_model_bytes(&a, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD) +
                                 2 * tg_model_bytes(&a, TG_MODEL_VALUE_HEAD));
    static const struct {
        const char *name;
        size_t n;
        double mean, sd;
    } table[] = {
        {"transformer.wte.weight", 32000, 0, 0.02},
        {"transformer.h.1.mlp.c_proj.weight", 16384, 0, 0.01},
        {"transformer.h.0.attn.c_attn.weight", 12288, 0, 0.02},
        {"transformer.h.0.attn.c_attn.bias", 192, 0, 0},
        {"transformer.ln_f.weight", 64, 1, 0},
        {"value_head.weight", 64, 0, 0.125 / 1.7320508},
    };
    float *x = malloc(32000 * sizeof *x);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        REQUIRE_OK(tg_model_get(m, table[i].name, x, table[i].n, &err));
        double sum = 0, sq = 0, max = 0;
        for (size_t k = 0; k < table[i].n; k++) {
            sum += (double)x[k];
            sq += (double)x[k] * (double)x[k];
            max = fmax(max, fabs((double)x[k]));
        }
        double mean = sum / (double)table[i].n,
               sd = sqrt(fmax(0, sq / (double)table[i].n - mean * mean));
        CHECK_NEAR(mean, table[i].mean, 5 * table[i].sd / sqrt((double)table[i].n));
        CHECK_NEAR(sd, table[i].sd, table[i].sd * 3 / sqrt((double)table[i].n));
        if (i == 5) CHECK(max <= 0.125);
    }
    CHECK_OK(tg_model_get_grad(m, "transformer.ln_f.weight", x, 64, &err));
    CHECK(x[0] == 0 && x[63] == 0);
    CHECK_EQ(tg_model_get_grad(same, "transformer.ln_f.weight", x, 64, &err), TG_DATA);
    CHECK_EQ(tg_model_get(m, "nothing", x, 64, &err), TG_DATA);
    CHECK_EQ(tg_model_get(m, "transformer.ln_f.weight", x, 63, &err), TG_DATA);
    free(x);
    tg_model_destroy(&m);
    tg_model_destroy(&same);
    tg_model_destroy(&other);
    CHECK_EQ(be->bytes_used, 0);
    tg_backend_close(&be);
}

TEST(saved_folder_opens_with_the_same_bits) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    for (int tied = 0; tied < 2; tied++) {
        a.tied_head = tied;
        tg_model *m, *back;
        REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 5, &err));
        const char *folder = tmp(tied ? "tied/" : "untied");
        REQUIRE_OK(tg_model_save(m, folder, &err));
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(same_weights(m, back));
        CHECK(!memcmp(&m->arch, &back->arch, sizeof a));
        tg_model_destroy(&back);
        /* the value head is not in model.safetensors, and is drawn again when its file is gone */
        char file[400];
        snprintf(file, sizeof file, "%s/value_head.safetensors", folder);
        CHECK(tg_path_exists(file));
        CHECK_EQ(remove(file), 0);
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(!same_weights(m, back));
        tg_model_destroy(&back);
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 5, &err));
        CHECK(same_weights(m, back));
        CHECK_STR(back->folder, folder);
        /* saving over it keeps other files */
        snprintf(file, sizeof file, "%s/tokenizer.json", folder);
        CHECK_OK(tg_file_write_atomic(file, "{}", 2, &err));
        CHECK_OK(tg_model_save(back, folder, &err));
        CHECK(tg_path_exists(file));
        tg_buf text = {0};
        snprintf(file, sizeof file, "%s/config.json", folder);
        CHECK_OK(tg_file_read(file, 1 << 20, &text, &err));
        CHECK(text.data && strstr(text.data, "\"layer_norm_epsilon\": 1e-5,"));
        tg_buf_fini(&text);
        tg_model_destroy(&back);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

TEST(saved_in_shards_and_whole_again_it_is_the_same_model) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 5, &err));
    static const size_t sizes[] = {1, 600, 0, 2000};
    for (size_t i = 0; i < 4; i++) { /* one tensor a file, a few files, one file, a few again */
        REQUIRE_OK(tg_model_save_as(m, tmp("shards"), (tg_save_opts){TG_F32, sizes[i]}, &err));
        CHECK_EQ(tg_path_exists(tmp("shards/model.safetensors")), sizes[i] == 0);
        REQUIRE_OK(tg_model_open(&back, be, tmp("shards"), TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(same_weights(m, back));
        tg_model_destroy(&back);
    }
    REQUIRE_OK(tg_model_save_as(m, tmp("half"), (tg_save_opts){TG_BF16, 600}, &err));
    REQUIRE_OK(tg_model_open(&back, be, tmp("half"), TG_MODEL_VALUE_HEAD, 99, &err));
    CHECK(!same_weights(m, back));
    for (size_t i = 0; i < m->params.total; i++)
        CHECK_NEAR((double)back->data[i], (double)m->data[i], fabs((double)m->data[i]) / 256);
    tg_model_destroy(&back);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(unknown_config_keys_survive_a_save) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 5, &err));
    REQUIRE_OK(tg_model_save(m, tmp("keep"), &err));
    tg_model_destroy(&m);
    const char *text =
        "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":2,\"n_head\":2,\"vocab_size\":11,"
        "\"n_positions\":7,\"eos_token_id\":50256,\"dtype\":\"bfloat16\",\"my_key\":[1,2]}";
    CHECK_OK(tg_file_write_atomic(tmp("keep/config.json"), text, strlen(text), &err));
    text = "{\"temperature\": 0.25}";
    CHECK_OK(tg_file_write_atomic(tmp("keep/generation_config.json"), text, strlen(text), &err));
    REQUIRE_OK(tg_model_open(&m, be, tmp("keep"), 0, 1, &err));
    CHECK_EQ(m->arch.eos_id, -1);
    tg_model *copy;
    REQUIRE_OK(tg_model_clone(&copy, m, 0, 1, &err));
    tg_model_destroy(&m);
    REQUIRE_OK(tg_model_save(copy, tmp("kept"), &err));
    tg_buf got = {0};
    CHECK_OK(tg_file_read(tmp("kept/config.json"), 1 << 20, &got, &err));
    REQUIRE(got.data != NULL);
    CHECK(strstr(got.data, "my_key") != NULL);
    CHECK(strstr(got.data, "50256") != NULL);
    CHECK(strstr(got.data, "\"dtype\": \"float32\"") != NULL);
    CHECK(strstr(got.data, "bfloat16") == NULL && strstr(got.data, "torch_dtype") == NULL);
    tg_buf_reset(&got);
    CHECK_OK(tg_file_read(tmp("kept/generation_config.json"), 1 << 20, &got, &err));
    CHECK(strstr(got.data, "0.25") != NULL);
    tg_buf_fini(&got);
    tg_model_destroy(&copy);
    tg_backend_close(&be);
}

TEST(clone_copies_and_adds_or_drops_the_value_head) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m, *plain, *again;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD | TG_MODEL_TRAINABLE, 3, &err));
    REQUIRE_OK(tg_model_clone(&plain, m, 0, 0, &err));
    CHECK(tg_params_find(&plain->params, "value_head.weight") == NULL);
    CHECK(plain->grad == NULL);
    REQUIRE_OK(tg_model_clone(&again, plain, TG_MODEL_VALUE_HEAD, 3, &err));
    CHECK(same_weights(m, again));
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, back[8];
    CHECK_OK(tg_model_set(m, "value_head.weight", ones, 8, &err));
    CHECK_OK(tg_model_get(m, "value_head.weight", back, 8, &err));
    CHECK(!memcmp(ones, back, sizeof ones));
    CHECK(!same_weights(m, again));
    tg_model_destroy(&m);
    tg_model_destroy(&plain);
    tg_model_destroy(&again);
    tg_backend_close(&be);
}

/* ---- folders made by hand -------------------------------------------------------------------- */

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
    float *x = all(m);
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
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    const char *folder = tmp("edited");
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
            CHECK(same_weights(m, back));
            tg_model_destroy(&back);
        }
        CHECK_EQ(be->bytes_used, used);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(a_large_tensor_is_loaded_in_pieces) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    a.vocab_size = 300000; /* more than two pieces, not a whole number of them */
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tmp("large"), &err));
    REQUIRE_OK(tg_model_open(&back, be, tmp("large"), TG_MODEL_TRAINABLE, 1, &err));
    CHECK(same_weights(m, back));
    tg_model_destroy(&m);
    tg_model_destroy(&back);
    tg_backend_close(&be);
}

TEST(shards_are_read_through_the_index) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tmp("shards"), &err));
    CHECK_EQ(remove(tmp("shards/model.safetensors")), 0);
    CHECK_EQ(tg_model_open(&back, be, tmp("shards"), 0, 1, &err), TG_NOINPUT);
    float *x = all(m);
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
            tmp(s ? "shards/part1.safetensors" : "shards/part0.safetensors"), list, n, NULL, &err));
        if (s == 0) tg_buf_puts(&index, "");
    }
    tg_buf_puts(&index, "}}");
    CHECK_OK(tg_file_write_atomic(tmp("shards/model.safetensors.index.json"), index.data, index.len,
                                  &err));
    tg_status st = tg_model_open(&back, be, tmp("shards"), 0, 1, &err);
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg);
    if (st == TG_OK) CHECK(same_weights(m, back));
    tg_model_destroy(&back);
    CHECK_EQ(remove(tmp("shards/part1.safetensors")), 0);
    CHECK_EQ(tg_model_open(&back, be, tmp("shards"), 0, 1, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "part1.safetensors") != NULL);
    const char *bad = "{\"weight_map\":{\"a\":\"../x\"}}";
    CHECK_OK(
        tg_file_write_atomic(tmp("shards/model.safetensors.index.json"), bad, strlen(bad), &err));
    CHECK_EQ(tg_model_open(&back, be, tmp("shards"), 0, 1, &err), TG_DATA);
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
        {"{\"model_type\":\"gpt2\",\"n_embd\":0}", TG_DATA, "n_embd"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":10,\"n_head\":3}", TG_DATA, "multiple of n_head"},
        {"{\"model_type\":\"gpt2\",\"n_layer\":1000000}", TG_DATA, "n_layer"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":-1}", TG_DATA, "vocab_size"},
        {"{\"model_type\":\"gpt2\",\"activation_function\":\"relu\"}", TG_UNSUPPORTED, "relu"},
        {"{\"model_type\":\"gpt2\",\"add_cross_attention\":true}", TG_UNSUPPORTED,
         "add_cross_attention"},
        {"{\"model_type\":\"gpt2\",\"tie_word_embeddings\":\"yes\"}", TG_DATA,
         "tie_word_embeddings"},
        {"{\"model_type\":\"gpt2\",\"layer_norm_epsilon\":\"x\"}", TG_DATA, "layer_norm_epsilon"},
        {"{\"model_type\":\"gpt2\",\"eos_token_id\":\"x\"}", TG_DATA, "eos_token_id"},
    };
    tg_arch a;
    CHECK_EQ(tg_arch_load(&a, tmp("none"), &err), TG_NOINPUT);
    CHECK_OK(tg_dir_create(tmp("configs"), &err));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CHECK_OK(tg_file_write_atomic(tmp("configs/config.json"), table[i].text,
                                      strlen(table[i].text), &err));
        err.msg[0] = '\0';
        tg_status st = tg_arch_load(&a, tmp("configs"), &err);
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

TEST(architectures_that_make_no_model_are_refused) {
    tg_backend *be = open_ref();
    tg_model *m;
    tg_arch a = tiny();
    a.n_layers = 0;
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_DATA);
    a = tiny();
    a.n_kv_heads = 3;
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_DATA);
    a = tiny();
    strcpy(a.family, "x");
    CHECK_EQ(tg_model_create(&m, be, &a, 0, 1, &err), TG_UNSUPPORTED);
    CHECK_EQ(tg_model_bytes(&a, 0), 0);
    CHECK_EQ(tg_model_open(&m, be, "/nowhere", 0, 1, &err), TG_NOINPUT);
    CHECK(m == NULL);
    tg_backend_close(&be);
}

TEST(out_of_memory_is_reported_at_every_allocation) {
    tg_backend *be = open_ref();
    tg_arch a = tiny();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 3, &err));
    REQUIRE_OK(tg_model_save(m, tmp("oom"), &err));
    tg_model_destroy(&m);
    bool done = false;
    int failures = 0;
    for (int n = 0; n < 2000 && !done; n++) {
        tg_alloc_fail_after(n);
        tg_status st =
            tg_model_open(&m, be, tmp("oom"), TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err);
        bool failed = tg_alloc_calls() && st != TG_OK;
        tg_alloc_fail_after(-1);
        done = st == TG_OK;
        failures += failed;
        if (!done) CHECK_EQ(st, TG_NOMEM);
        tg_model_destroy(&m);
        CHECK_EQ(be->bytes_used, 0);
    }
    CHECK(done && failures > 10);
    tg_backend_close(&be);
}

TEST_MAIN
