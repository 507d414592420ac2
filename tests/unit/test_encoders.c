/* Every encoder family, and causal ones with labels, against transformers: the recorded models of tests/oracle/gen_encoders.py on every backend; names of other files;
 * classifiers; what is refused. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/classifier.h"
#include "common/nn/safetensors.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static tg_error err;

static const char *const names[] = {"bert",        "minilm",       "roberta",
                                    "xlm-roberta", "distilbert",   "albert",
                                    "gpt2-labels", "llama-labels", "opt-labels"};
enum { N_NAMES = sizeof names / sizeof *names };

struct golden {
    char folder[600];
    tg_safetensors file;
    tg_batch batch;
    int32_t *ints[4];
};

static float *floats(const struct golden *g, const char *name) {
    const tg_st_tensor *t = tg_safetensors_find(&g->file, name);
    float *x = calloc(t ? t->count + 1 : 1, sizeof *x);
    tg_check(t && tg_st_to_f32(t, x, &err) == TG_OK, __FILE__, __LINE__, "golden tensor %s", name);
    return x;
}

static void open_golden(struct golden *g, const char *name) {
    char path[700];
    snprintf(path, sizeof path, "golden/encoders/%s", name);
    snprintf(g->folder, sizeof g->folder, "%s", tg_test_path(path));
    snprintf(path, sizeof path, "%s/expected.safetensors", g->folder);
    CHECK_OK(tg_safetensors_open(&g->file, path, &err));
    static const char *const wanted[] = {"tokens", "offsets", "types"};
    int n[3];
    for (int k = 0; k < 3; k++) {
        const tg_st_tensor *t = tg_safetensors_find(&g->file, wanted[k]);
        n[k] = (int)t->count;
        g->ints[k] = malloc(t->count * sizeof(int32_t));
        for (size_t i = 0; i < t->count; i++) {
            int64_t v;
            memcpy(&v, t->data + 8 * i, sizeof v);
            g->ints[k][i] = (int32_t)v;
        }
    }
    g->ints[3] = malloc((size_t)n[0] * sizeof(int32_t));
    for (int i = 0; i < n[0]; i++) g->ints[3][i] = i;
    g->batch = (tg_batch){.n_tokens = n[0],
                          .n_seqs = n[1] - 1,
                          .n_actions = n[0],
                          .tokens = g->ints[0],
                          .offsets = g->ints[1],
                          .types = g->ints[2],
                          .act_row = g->ints[3],
                          .act_token = g->ints[0]};
}

static void close_golden(struct golden *g) {
    for (int k = 0; k < 4; k++) free(g->ints[k]);
    tg_safetensors_close(&g->file);
}

static void check_near(const char *model, const char *what, const float *got, const float *want,
                       size_t n, double tolerance) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= worst)) worst = d;
    }
    tg_check(worst <= tolerance, __FILE__, __LINE__, "%s: %s differs by %g, allowed %g", model,
             what, worst, tolerance);
}

static void check_grads(const char *model, const tg_model *m, const struct golden *g) {
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        char name[160];
        snprintf(name, sizeof name, "mixed.%s", p->name);
        if (m->arch.labels && p->role == TG_ROLE_VALUE_W) continue;
        float *want = floats(g, name), *got = malloc(p->count * sizeof *got);
        CHECK_OK(tg_model_get_grad(m, p->name, got, p->count, &err));
        double top = 1e-2; /* smaller ones are rounding */
        for (size_t k = 0; k < p->count; k++) top = fmax(top, fabs((double)want[k]));
        check_near(model, name, got, want, p->count, 1e-4 * top);
        free(want);
        free(got);
    }
}

static void check_model(const char *name, const struct golden *g, tg_model *m, unsigned mode) {
    const tg_batch *b = &g->batch;
    const size_t N = (size_t)b->n_tokens, S = (size_t)b->n_seqs, C = (size_t)m->arch.width;
    const size_t L = (size_t)m->arch.n_labels;
    tg_pass *p = NULL;
    tg_pass_caps caps = {.tokens = (int)N, .seqs = (int)S, .actions = (int)N};
    m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
    REQUIRE_OK(tg_pass_create(&p, m, caps, mode, &err));
    float *out = malloc((N + S * L) * sizeof *out), *states = malloc(N * C * sizeof *states);
    const char *head = m->arch.labels ? "labels" : "value",
               *d = m->arch.labels ? "dlabels" : "dvalue";
    float *want = floats(g, head), *weights = floats(g, d), *want_states = floats(g, "states");
    if (m->arch.labels)
        CHECK_OK(tg_pass_labels(p, b, out, &err));
    else
        CHECK_OK(tg_pass_forward(p, b, (tg_pass_out){.value = out}, &err));
    check_near(name, head, out, want, m->arch.labels ? S * L : N, 2e-5);
    CHECK_OK(tg_pass_states(p, b->act_row, (int)N, states, &err));
    check_near(name, "states", states, want_states, N * C, 2e-5);
    if (m->arch.labels)
        CHECK_OK(tg_pass_labels_backward(p, weights, &err));
    else
        CHECK_OK(tg_pass_backward(p, NULL, NULL, weights, &err));
    check_grads(name, m, g);
    free(want_states);
    free(weights);
    free(want);
    free(states);
    free(out);
    tg_pass_destroy(&p);
}

TEST(every_family_as_in_transformers) {
    static const char *const backends[] = {"cpu", "ref"};
    for (size_t k = 0; k < 2; k++) {
        tg_backend *be = NULL;
        REQUIRE_OK(tg_backend_open(&be, backends[k], 2, &err));
        for (size_t i = 0; i < N_NAMES; i++) {
            struct golden g = {0};
            tg_model *m = NULL;
            open_golden(&g, names[i]);
            CHECK_OK(
                tg_model_open(&m, be, g.folder, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
            if (m) check_model(names[i], &g, m, TG_PASS_TRAIN);
            if (m) check_model(names[i], &g, m, TG_PASS_RECOMPUTE);
            tg_model_destroy(&m);
            close_golden(&g);
        }
        tg_backend_close(&be);
    }
}

TEST(saved_and_opened_again_it_is_the_same_model) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < N_NAMES; i++) {
        struct golden g = {0};
        tg_model *m = NULL, *again = NULL;
        char folder[700];
        open_golden(&g, names[i]);
        REQUIRE_OK(tg_model_open(&m, be, g.folder, 0, 1, &err));
        for (int bare = 0; bare < 2;
             bare++) { /* without config.json's text, settings are written anew */
            snprintf(folder, sizeof folder, "%s/%s%d", tg_test_tmpdir(), names[i], bare);
            CHECK_OK(tg_model_save(m, folder, &err));
            CHECK_OK(tg_model_open(&again, be, folder, 0, 1, &err));
            if (again) {
                CHECK(!memcmp(&m->arch, &again->arch, sizeof m->arch));
                CHECK(!memcmp(m->data, again->data, m->params.total * sizeof(float)));
            }
            tg_model_destroy(&again);
            tg_free(m->config_text);
            m->config_text = NULL;
        }
        tg_model_destroy(&m);
        close_golden(&g);
    }
    tg_backend_close(&be);
}

/* Result of one text: alone, and packed with others in passes of any size. */
TEST(a_text_is_judged_the_same_whatever_is_beside_it) {
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    for (size_t i = 0; i < N_NAMES; i++) {
        struct golden g = {0};
        open_golden(&g, names[i]);
        const tg_batch *b = &g.batch;
        tg_texts texts = {b->n_seqs, b->tokens, b->offsets, b->types};
        float first[3][64], one[64], *states = floats(&g, "states");
        static const int sizes[] = {0, 1000};
        for (int k = 0; k < 2; k++) {
            tg_classifier *c = NULL;
            REQUIRE_OK(tg_classifier_open(&c, be, g.folder, sizes[k], &err));
            const int L = c->n_labels, C = c->width;
            if (L) {
                float *want = floats(&g, "labels");
                CHECK_OK(tg_classifier_score(c, &texts, first[0], &err));
                check_near(names[i], "labels", first[0], want, (size_t)(b->n_seqs * L), 2e-5);
                for (int s = 0; s < b->n_seqs; s++) {
                    int32_t offsets[] = {0, b->offsets[s + 1] - b->offsets[s]};
                    tg_texts text = {1, b->tokens + b->offsets[s], offsets,
                                     b->types + b->offsets[s]};
                    CHECK_OK(tg_classifier_score(c, &text, one, &err));
                    check_near(names[i], "alone", one, first[0] + s * L, (size_t)L, 1e-6);
                }
                free(want);
            } else {
                CHECK_EQ(tg_classifier_score(c, &texts, first[0], &err), TG_DATA);
                CHECK(strstr(err.msg, "no classification head") != NULL);
            }
            CHECK_OK(tg_classifier_embed(c, &texts, TG_POOL_MEAN, &first[0][0], &err));
            for (int s = 0; s < b->n_seqs; s++)
                for (int d = 0; d < C; d++) {
                    double sum = 0;
                    for (int r = b->offsets[s]; r < b->offsets[s + 1]; r++)
                        sum += (double)states[r * C + d];
                    CHECK_NEAR((double)(&first[0][0])[s * C + d],
                               sum / (b->offsets[s + 1] - b->offsets[s]), 2e-5);
                }
            tg_classifier_destroy(&c);
        }
        free(states);
        close_golden(&g);
    }
    tg_backend_close(&be);
}

TEST(labels_have_names_and_a_meaning) {
    static const struct {
        const char *name, *label;
        int n;
        tg_problem problem;
    } table[] = {{"bert", "LABEL_2", 3, TG_PROBLEM_SINGLE_LABEL},
                 {"roberta", "LABEL_0", 1, TG_PROBLEM_REGRESSION},
                 {"distilbert", "LABEL_3", 4, TG_PROBLEM_MULTI_LABEL},
                 {"minilm", NULL, 0, TG_PROBLEM_SINGLE_LABEL}};
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct golden g = {0};
        tg_classifier *c = NULL;
        open_golden(&g, table[i].name);
        REQUIRE_OK(tg_classifier_open(&c, be, g.folder, 0, &err));
        CHECK_EQ(c->n_labels, table[i].n);
        CHECK_EQ(c->problem, table[i].problem);
        if (c->n_labels) {
            CHECK_STR(c->labels[c->n_labels - 1], table[i].label);
            tg_texts texts = {g.batch.n_seqs, g.batch.tokens, g.batch.offsets, g.batch.types};
            float p[64], sum = 0;
            CHECK_OK(tg_classifier_probabilities(c, &texts, p, &err));
            for (int k = 0; k < c->n_labels; k++) sum += p[k];
            if (c->problem == TG_PROBLEM_SINGLE_LABEL) CHECK_NEAR((double)sum, 1.0, 1e-6);
            if (c->problem == TG_PROBLEM_MULTI_LABEL) CHECK(p[0] > 0 && p[0] < 1);
        }
        tg_classifier_destroy(&c);
        close_golden(&g);
    }
    tg_backend_close(&be);
}

TEST(texts_that_do_not_fit_are_refused) {
    tg_backend *be = NULL;
    tg_classifier *c = NULL;
    struct golden g = {0};
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    open_golden(&g, "roberta");
    REQUIRE_OK(tg_classifier_open(&c, be, g.folder, 0, &err));
    CHECK_EQ(c->max_length, 24); /* 26 rows, of which the first two belong to no position */
    int32_t tokens[40] = {3}, types[40] = {0}, offsets[] = {0, 25};
    float out[8];
    tg_texts texts = {1, tokens, offsets, types};
    CHECK_EQ(tg_classifier_score(c, &texts, out, &err), TG_DATA);
    CHECK(strstr(err.msg, "25 tokens") != NULL);
    offsets[1] = 0;
    CHECK_EQ(tg_classifier_score(c, &texts, out, &err), TG_DATA);
    offsets[1] = 4;
    tokens[2] = 29;
    CHECK_EQ(tg_classifier_score(c, &texts, out, &err), TG_DATA);
    tokens[2] = 2;
    types[1] = 1; /* it has one type */
    CHECK_EQ(tg_classifier_score(c, &texts, out, &err), TG_DATA);
    CHECK(strstr(err.msg, "type 1") != NULL);
    tg_classifier_destroy(&c);
    close_golden(&g);
    CHECK_EQ(tg_classifier_open(&c, be, tg_test_path("golden/families/opt"), 0, &err), TG_DATA);
    CHECK(strstr(err.msg, "no encoder") != NULL);
    tg_backend_close(&be);
}

/* A golden folder with its tensors under other names (old: as files from TensorFlow and of pretraining have them), and config.json changed. */
static const char *variant(const char *name, const char *drop, const char *extra, bool old,
                           const char *architecture) {
    static char folder[700];
    char path[800];
    struct golden g = {0};
    tg_safetensors in;
    tg_st_write list[100];
    size_t n = 0;
    open_golden(&g, name);
    snprintf(folder, sizeof folder, "%s/variant", tg_test_tmpdir());
    CHECK_OK(tg_dir_remove(folder, &err));
    CHECK_OK(tg_dir_create(folder, &err));
    snprintf(path, sizeof path, "%s/model.safetensors", g.folder);
    CHECK_OK(tg_safetensors_open(&in, path, &err));
    for (size_t i = 0; i < in.n; i++) {
        const tg_st_tensor *t = &in.tensors[i];
        if (drop && !strncmp(t->name, drop, strlen(drop))) continue;
        char *new_name = calloc(1, 200), *norm = strstr(t->name, "LayerNorm.");
        strcpy(new_name, t->name);
        if (old && norm)
            strcpy(new_name + (norm - t->name) + 10, strstr(norm, "weight") ? "gamma" : "beta");
        list[n] =
            (tg_st_write){.name = new_name, .dtype = t->dtype, .ndim = t->ndim, .data = t->data};
        memcpy(list[n++].shape, t->shape, sizeof t->shape);
    }
    static const float one[1] = {1};
    if (extra)
        list[n++] =
            (tg_st_write){.name = extra, .dtype = TG_F32, .ndim = 1, .shape = {1}, .data = one};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_OK(tg_safetensors_write(path, list, n, NULL, &err));
    snprintf(path, sizeof path, "%s/config.json", g.folder);
    json_t *o = json_load_file(path, 0, NULL);
    json_object_set_new(o, "architectures", json_pack("[s]", architecture));
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK(!json_dump_file(o, path, 0));
    json_decref(o);
    for (size_t i = 0; i < n; i++)
        if (list[i].name != extra) free((void *)(uintptr_t)list[i].name);
    tg_safetensors_close(&in);
    close_golden(&g);
    return folder;
}

TEST(files_of_other_origin_open_and_lost_heads_are_named) {
    static const struct {
        const char *name, *drop, *extra, *architecture, *says; /* NULL: opens */
        bool old;
    } table[] = {
        {"bert", NULL, NULL, "BertForSequenceClassification", NULL, true},
        {"bert", NULL, "bert.embeddings.position_ids", "BertForSequenceClassification", NULL,
         false},
        {"bert", NULL, "cls.predictions.bias", "BertForSequenceClassification", NULL, true},
        {"bert", NULL, "cls.predictions.transform.LayerNorm.gamma", "BertForSequenceClassification",
         NULL, true},
        {"bert", "classifier", NULL, "BertForMaskedLM", NULL, false},
        {"bert", "classifier", NULL, "BertModel", NULL, false},
        {"roberta", "classifier", "lm_head.dense.weight", "RobertaForMaskedLM", NULL, false},
        {"distilbert", "classifier", NULL, "DistilBertForSequenceClassification",
         "\"classifier.weight\" is missing", false},
        {"distilbert", "pre_classifier", NULL, "DistilBertForSequenceClassification",
         "\"pre_classifier.weight\" is missing", false},
        {"bert", "classifier", NULL, "BertForSequenceClassification",
         "\"classifier.weight\" is missing (expected shape (3, 16))", false},
        {"bert", "bert.pooler", NULL, "BertForSequenceClassification",
         "\"bert.pooler.dense.weight\" is missing", false},
        {"bert", NULL, "something.else", "BertForSequenceClassification",
         "\"something.else\" of shape (1) is not part of a bert model", false},
        {"bert", NULL, NULL, "BertModel", "\"classifier.", false},
    };
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *folder = variant(table[i].name, table[i].drop, table[i].extra, table[i].old,
                                     table[i].architecture);
        tg_model *m = NULL;
        tg_status st = tg_model_open(&m, be, folder, 0, 1, &err);
        bool right = table[i].says ? st == TG_DATA && strstr(err.msg, table[i].says) : st == TG_OK;
        tg_check(right, __FILE__, __LINE__, "case %zu: %s: %s", i, tg_status_name(st), err.msg);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

/* A class for pre-training or masked words does not say whether there is a pooler: the files do. */
TEST(a_pooler_that_is_stored_is_kept) {
    static const struct {
        const char *name, *drop, *architecture;
        bool pooler;
    } table[] = {
        {"bert", "classifier", "BertForPreTraining", true},
        {"bert", "classifier", "BertForMaskedLM", true},
        {"bert", "classifier", "BertModel", true},
        {"albert", "classifier", "AlbertForPreTraining", true},
        {"minilm", NULL, "BertForMaskedLM", true},
        {"minilm", "pooler", "BertForMaskedLM", false},
        {"roberta", "classifier", "RobertaForMaskedLM", false},
    };
    tg_backend *be = NULL;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        tg_model *m = NULL;
        CHECK_OK(tg_model_open(
            &m, be, variant(table[i].name, table[i].drop, NULL, false, table[i].architecture), 0, 1,
            &err));
        if (m) tg_check(m->arch.pooler == table[i].pooler, __FILE__, __LINE__, "case %zu", i);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

TEST(what_is_not_built_is_refused_by_name) {
    static const struct {
        const char *name, *key, *value;
        tg_status status;
    } cases[] = {
        {"bert", "position_embedding_type", "\"relative_key\"", TG_UNSUPPORTED},
        {"bert", "is_decoder", "true", TG_UNSUPPORTED},
        {"bert", "hidden_act", "\"mish\"", TG_UNSUPPORTED},
        {"albert", "inner_group_num", "0", TG_DATA},
        {"albert", "num_hidden_layers", "1", TG_DATA},
        {"roberta", "pad_token_id", "null", TG_DATA},
        {"roberta", "max_position_embeddings", "2", TG_DATA},
        {"bert", "id2label", "[1]", TG_DATA},
        {"distilbert", "n_layers", "\"6\"", TG_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[800], folder[700];
        struct golden g = {0};
        open_golden(&g, cases[i].name);
        snprintf(path, sizeof path, "%s/config.json", g.folder);
        json_t *o = json_load_file(path, 0, NULL);
        json_object_set_new(o, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        snprintf(folder, sizeof folder, "%s/refused", tg_test_tmpdir());
        CHECK_OK(tg_dir_create(folder, &err));
        snprintf(path, sizeof path, "%s/config.json", folder);
        CHECK(!json_dump_file(o, path, 0));
        json_decref(o);
        tg_arch arch;
        tg_status st = tg_arch_load(&arch, folder, &err);
        tg_check(st == cases[i].status && strstr(err.msg, cases[i].key), __FILE__, __LINE__,
                 "%s %s: %s: %s", cases[i].name, cases[i].key, tg_status_name(st), err.msg);
        close_golden(&g);
    }
}

/* Of two layers the lower one and the embeddings get no gradient, the others what they get when all is trained. */
TEST(frozen_layers_leave_the_others_their_gradients) {
    tg_backend *be = NULL;
    tg_model *all = NULL, *some = NULL;
    struct golden g = {0};
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    open_golden(&g, "bert");
    REQUIRE_OK(tg_model_open(&all, be, g.folder, TG_MODEL_TRAINABLE, 1, &err));
    REQUIRE_OK(tg_model_open(&some, be, g.folder, TG_MODEL_TRAIN_LAST(1), 1, &err));
    float logits[64], *weights = floats(&g, "dlabels");
    for (int k = 0; k < 2; k++) {
        tg_model *m = k ? some : all;
        tg_pass *p = NULL;
        tg_pass_caps caps = {.tokens = g.batch.n_tokens, .seqs = g.batch.n_seqs};
        REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_TRAIN, &err));
        CHECK_OK(tg_pass_labels(p, &g.batch, logits, &err));
        CHECK_OK(tg_pass_labels_backward(p, weights, &err));
        tg_pass_destroy(&p);
    }
    for (size_t i = 0; i < all->params.n; i++) {
        const tg_param *p = &all->params.list[i];
        bool frozen = p->layer == 0 || strstr(p->name, "embeddings") != NULL;
        float *a = malloc(p->count * sizeof *a), *b = malloc(p->count * sizeof *b);
        CHECK_OK(tg_model_get_grad(all, p->name, a, p->count, &err));
        tg_status st = tg_model_get_grad(some, p->name, b, p->count, &err);
        tg_check((st != TG_OK) == frozen, __FILE__, __LINE__, "%s", p->name);
        if (st == TG_OK) CHECK(!memcmp(a, b, p->count * sizeof *a));
        free(a);
        free(b);
    }
    free(weights);
    tg_model_destroy(&all);
    tg_model_destroy(&some);
    close_golden(&g);
    open_golden(&g, "albert");
    CHECK_EQ(tg_model_open(&all, be, g.folder, TG_MODEL_TRAIN_LAST(1), 1, &err), TG_UNSUPPORTED);
    CHECK(strstr(err.msg, "share their parameters") != NULL);
    close_golden(&g);
    tg_backend_close(&be);
}

TEST(out_of_memory_is_reported) {
    tg_backend *be = NULL;
    struct golden g = {0};
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    open_golden(&g, "albert");
    for (int64_t n = 0;; n++) {
        tg_classifier *c = NULL;
        tg_alloc_fail_after(n);
        tg_status st = tg_classifier_open(&c, be, g.folder, 0, &err);
        tg_alloc_fail_after(-1);
        tg_classifier_destroy(&c);
        if (st == TG_OK) break;
        if (!CHECK(st == TG_NOMEM)) break;
    }
    close_golden(&g);
    tg_backend_close(&be);
}

TEST_MAIN
