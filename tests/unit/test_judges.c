/* Rewards and metrics that ask a model: against what bert-score and transformers computed (tests/oracle/gen_judges.py); the same bits alone, in any
 * company, from any thread; models are shared; what is refused. */
#include "common/base/alloc.h"
#include "env-server/judge/bert_score.h"
#include "env-server/judge/bert_score_models.h"
#include "env-server/judge/judgement.h"
#include "tests/support/scoring.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_ROWS = 32 };
static const double TOLERANCE = 1e-5;
static tg_error err;

struct golden {
    json_t *root;
    tg_arena arena;
    tg_metric_item items[MAX_ROWS];
    size_t n;
};

static void open_golden(struct golden *g) {
    *g = (struct golden){.root =
                             json_load_file(tg_test_path("golden/judges/expected.json"), 0, NULL)};
    const json_t *rows = json_object_get(g->root, "rows");
    CHECK(json_array_size(rows) > 3 && json_array_size(rows) <= MAX_ROWS);
    for (; g->n < json_array_size(rows); g->n++)
        g->items[g->n] = scoring_item(json_array_get(rows, g->n), &g->arena);
}

static void close_golden(struct golden *g) {
    json_decref(g->root);
    tg_arena_fini(&g->arena);
}

/* root[model][key], or root[model] */
static const json_t *expected(const struct golden *g, const char *model, const char *key) {
    const json_t *m = json_object_get(g->root, model);
    return key ? json_object_get(m, key) : m;
}

static const char *folder_of(const char *model) {
    static char path[8][700];
    static int at;
    char *p = path[at++ % 8], below[100];
    snprintf(below, sizeof below, "golden/judges/%s", model);
    snprintf(p, 700, "%s", tg_test_path(below));
    return p;
}

static const tg_metric_value *metric(const struct golden *g, const char *id, json_t *args,
                                     const char *key, tg_metric_out *out) {
    CHECK_OK(scoring_metric(id, args, false, g->items, g->n, out, &err));
    json_decref(args);
    const tg_metric_value *v = scoring_value(out, key);
    CHECK(v && v->n_samples == g->n);
    return v && v->n_samples == g->n ? v : NULL;
}

static void reward(const struct golden *g, const char *id, json_t *args, double *values) {
    tg_reward_value out[MAX_ROWS];
    bool done[MAX_ROWS];
    for (size_t i = 0; i < g->n; i++) done[i] = i != 2;
    CHECK_OK(scoring_reward(id, args, false, g->items, g->n, done, out, &err));
    json_decref(args);
    CHECK_EQ(out[2].value, 0); /* not finished */
    for (size_t i = 0; i < g->n; i++) {
        CHECK_EQ(out[i].status, TG_REWARD_OK);
        values[i] = out[i].value;
    }
}

TEST(bert_score_is_the_packages) {
    static const char *const models[] = {"bert", "roberta"};
    static const char *const keys[] = {"semantic/bert_score_precision",
                                       "semantic/bert_score_recall", "semantic/bert_score"};
    struct golden g;
    open_golden(&g);
    for (int m = 0; m < 2; m++) {
        int layers = (int)json_integer_value(expected(&g, models[m], "layers"));
        const json_t *scores = expected(&g, models[m], "scores");
        double rewards[MAX_ROWS];
        reward(&g, "bert_score",
               json_pack("{s:s, s:i}", "model_name", folder_of(models[m]), "num_layers", layers),
               rewards);
        for (int k = 0; k < 3; k++) {
            tg_metric_out out = {.arena = &g.arena};
            const tg_metric_value *v = metric(
                &g, "bert_score",
                json_pack("{s:s, s:i}", "model_name", folder_of(models[m]), "num_layers", layers),
                keys[k], &out);
            for (size_t i = 0; v && i < g.n; i++) {
                double want =
                    json_number_value(json_array_get(json_array_get(scores, i), (size_t)k));
                CHECK_NEAR(v->samples[i], want, TOLERANCE);
                if (k == 2 && i != 2) CHECK_NEAR(rewards[i], want, TOLERANCE);
            }
        }
    }
    close_golden(&g);
}

TEST(bert_score_knows_its_models) {
    CHECK(!strcmp(tg_bert_score_model("EN"), "roberta-large"));
    CHECK(!strcmp(tg_bert_score_model("de"), "bert-base-multilingual-cased"));
    CHECK(!strcmp(tg_bert_score_model("a-very-long-name-of-a-language"),
                  "bert-base-multilingual-cased"));
    CHECK_EQ(tg_bert_score_layers("roberta-large"), 17);
    CHECK_EQ(tg_bert_score_layers("bert-base-multilingual-cased"), 9);
    CHECK_EQ(tg_bert_score_layers("models/mine"), 0);
}

/* A small model under a known name: bert-score's layer is beyond its last one. */
TEST(a_shallow_model_gives_its_last_layer) {
    struct golden g;
    open_golden(&g);
    char link[700], target[4096];
    snprintf(link, sizeof link, "%s/roberta-large", tg_test_tmpdir());
    CHECK(realpath(folder_of("roberta"), target) && !symlink(target, link));
    setenv("TEXTGEN_MODELS", tg_test_tmpdir(), 1);
    double named[MAX_ROWS], whole[MAX_ROWS];
    reward(&g, "bert_score", json_pack("{s:s}", "language", "en"), named);
    unsetenv("TEXTGEN_MODELS");
    json_t *config = json_load_file(tg_test_path("golden/judges/roberta/config.json"), 0, NULL);
    int layers = (int)json_integer_value(json_object_get(config, "num_hidden_layers"));
    reward(&g, "bert_score",
           json_pack("{s:s, s:i}", "model_name", folder_of("roberta"), "num_layers", layers),
           whole);
    for (size_t i = 0; i < g.n; i++) CHECK_EQ(named[i], whole[i]);
    json_decref(config);
    close_golden(&g);
}

TEST(probabilities_of_labels_are_transformers) {
    struct golden g;
    open_golden(&g);
    for (int label = -1; label < 4; label++) {
        tg_metric_out out = {.arena = &g.arena};
        double rewards[MAX_ROWS];
        json_t *args =
            json_pack("{s:s, s:i}", "model_name", folder_of("roberta"), "label_ix", label);
        reward(&g, "learned_reward", json_incref(args), rewards);
        const tg_metric_value *v =
            metric(&g, "learned_reward", args, "semantic/learned_automodel_metric", &out);
        for (size_t i = 0; v && i < g.n; i++) {
            const json_t *row = json_array_get(expected(&g, "roberta", "labels"), i);
            double want = json_number_value(json_array_get(row, (size_t)(label & 3)));
            CHECK_NEAR(v->samples[i], want, TOLERANCE);
            if (i != 2) CHECK_NEAR(rewards[i], want, TOLERANCE);
        }
    }
    close_golden(&g);
}

TEST(intents_that_are_met_count) {
    struct golden g;
    open_golden(&g);
    tg_metric_out out = {.arena = &g.arena};
    double rewards[MAX_ROWS], meteor[MAX_ROWS];
    const tg_metric_value *v =
        metric(&g, "intent_accuracy", json_pack("{s:s}", "model_name", folder_of("roberta")),
               "intent/accuracy", &out);
    reward(&g, "meteor", json_object(), meteor);
    reward(&g, "intent_accuracy",
           json_pack("{s:s, s:f, s:f}", "model_name", folder_of("roberta"), "intent_coeff", 0.75,
                     "auto_coeff", 0.5),
           rewards);
    for (size_t i = 0; v && i < g.n; i++) {
        const json_t *row = json_array_get(json_object_get(g.root, "rows"), i);
        json_int_t wanted = json_integer_value(
            json_array_get(json_object_get(json_object_get(row, "meta"), "intent"), 0));
        json_int_t found = json_integer_value(json_array_get(expected(&g, "roberta", "found"), i));
        CHECK_EQ(v->samples[i], found == wanted - 1 ? 1 : 0);
        if (i != 2) CHECK_NEAR(rewards[i], 0.5 * meteor[i] + 0.75 * v->samples[i], 1e-12);
    }
    close_golden(&g);
}

TEST(good_sentences_are_preferred) {
    struct golden g;
    open_golden(&g);
    double rewards[MAX_ROWS];
    reward(&g, "common_gen_preference_model",
           json_pack("{s:s, s:s, s:i, s:s}", "model_type", "11b", "device", "cpu", "batch_size", 5,
                     "model_name", folder_of("t5")),
           rewards);
    for (size_t i = 0; i < g.n; i++)
        if (i != 2)
            CHECK_NEAR(rewards[i], json_number_value(json_array_get(expected(&g, "t5", NULL), i)),
                       TOLERANCE);
    close_golden(&g);
}

TEST(perplexity_is_counted_by_windows) {
    struct golden g;
    open_golden(&g);
    const char *stride;
    json_t *value;
    json_t *all = json_object_get(g.root, "gpt2");
    CHECK(json_object_size(all) == 3);
    json_object_foreach(all, stride, value) {
        tg_metric_out out = {.arena = &g.arena};
        json_t *args =
            json_pack("{s:s, s:i}", "model_name", folder_of("gpt2"), "stride", atoi(stride));
        CHECK_OK(scoring_metric("causal_perplexity", args, false, g.items, g.n, &out, &err));
        const tg_metric_value *v = scoring_value(&out, "fluency_metrics/perplexity");
        CHECK(v && v->has_corpus);
        if (v)
            CHECK_NEAR(v->corpus, json_number_value(value), TOLERANCE * json_number_value(value));
        json_decref(args);
    }
    close_golden(&g);
}

/* ---- any company, any thread ------------------------------------------------------------------- */

struct all_values {
    double learned[MAX_ROWS], answer[MAX_ROWS];
    tg_bert_score_value bert[MAX_ROWS];
};

struct asked {
    const struct golden *g;
    tg_learned learned;
    tg_preference preference;
    tg_bert_score bert;
};

static void open_all(struct asked *a, const struct golden *g, tg_judges *judges) {
    const tg_open_context ctx = {.judges = judges};
    const tg_bert_score_options o = {
        .model_name = folder_of("bert"), .num_layers = 1, .add_prefix_space = true};
    *a = (struct asked){.g = g};
    CHECK_OK(tg_learned_open(&a->learned, &ctx, "test", folder_of("roberta"), 1, true, &err));
    CHECK_OK(tg_preference_open(&a->preference, &ctx, "test", folder_of("t5"), &err));
    CHECK_OK(tg_bert_score_open(&a->bert, &ctx, &o, &err));
}

static void close_all(struct asked *a) {
    tg_learned_close(&a->learned);
    tg_preference_close(&a->preference);
    tg_bert_score_close(&a->bert);
}

/* `piece` texts at a time. */
static bool ask(const struct asked *a, size_t piece, struct all_values *v) {
    tg_error why;
    bool ok = true;
    for (size_t at = 0; at < a->g->n; at += piece) {
        size_t n = a->g->n - at < piece ? a->g->n - at : piece;
        const tg_metric_item *items = a->g->items + at;
        ok = ok && tg_learned_values(&a->learned, items, n, v->learned + at, &why) == TG_OK &&
             tg_preference_values(&a->preference, items, n, v->answer + at, &why) == TG_OK &&
             tg_bert_score_values(&a->bert, items, n, v->bert + at, &why) == TG_OK;
    }
    return ok;
}

struct thread {
    const struct asked *a;
    size_t piece;
    struct all_values v;
    bool ok;
};

static void *run_thread(void *arg) {
    struct thread *t = arg;
    t->ok = ask(t->a, t->piece, &t->v);
    return NULL;
}

TEST(the_same_bits_in_any_company_from_any_thread) {
    struct golden g;
    open_golden(&g);
    struct all_values whole;
    memset(&whole, 0, sizeof whole);
    for (int threads = 1; threads <= 3; threads++) {
        tg_judges *judges;
        struct asked a;
        REQUIRE_OK(tg_judges_create(&judges, threads, &err));
        open_all(&a, &g, judges);
        if (threads == 1) CHECK(ask(&a, g.n, &whole));
        struct thread t[4];
        pthread_t ids[4];
        memset(t, 0, sizeof t);
        for (size_t k = 0; k < 4; k++) {
            t[k].a = &a, t[k].piece = k ? k : g.n;
            CHECK_EQ(pthread_create(&ids[k], NULL, run_thread, &t[k]), 0);
        }
        for (size_t k = 0; k < 4; k++) {
            pthread_join(ids[k], NULL);
            CHECK(t[k].ok);
            CHECK(!memcmp(&t[k].v, &whole, sizeof whole));
        }
        close_all(&a);
        tg_judges_destroy(&judges);
    }
    close_golden(&g);
}

TEST(one_model_serves_all_who_ask_for_it) {
    tg_judges *judges;
    tg_judge *a, *b, *c;
    REQUIRE_OK(tg_judges_create(&judges, 1, &err));
    const tg_open_context ctx = {.judges = judges};
    CHECK_OK(tg_judge_open(
        &a, &ctx,
        (tg_judge_spec){
            .owner = "x", .name = folder_of("bert"), .kind = TG_JUDGE_STATES, .n_layers = 1},
        &err));
    CHECK_OK(tg_judge_open(
        &b, &ctx,
        (tg_judge_spec){
            .owner = "y", .name = folder_of("bert"), .kind = TG_JUDGE_STATES, .n_layers = 1},
        &err));
    CHECK_OK(tg_judge_open(
        &c, &ctx,
        (tg_judge_spec){
            .owner = "y", .name = folder_of("bert"), .kind = TG_JUDGE_STATES, .n_layers = 2},
        &err));
    CHECK(a == b && a != c);
    tg_judge_close(&a);
    tg_judge_close(&c);
    tg_judge_close(&b);
    tg_judges_destroy(&judges);
}

/* ---- what is refused --------------------------------------------------------------------------- */

static void refused(const char *id, bool is_reward, json_t *args, tg_status want,
                    const char *says) {
    tg_arena arena = {0};
    json_t *object = json_pack("{s:s, s:[]}", "prediction", "a text", "references");
    tg_metric_item item = scoring_item(object, &arena);
    tg_reward_value v;
    bool done = true;
    tg_metric_out out = {.arena = &arena};
    err = (tg_error){0};
    tg_status st = is_reward ? scoring_reward(id, args, false, &item, 1, &done, &v, &err)
                             : scoring_metric(id, args, false, &item, 1, &out, &err);
    if (!is_reward && st == TG_OK && out.n) { /* a metric's failure is a value with a reason */
        st = TG_DATA;
        snprintf(err.msg, sizeof err.msg, "%s", out.values[0].error);
    }
    tg_check(st == want && strstr(err.msg, says), __FILE__, __LINE__, "%s: %d %s", id, (int)st,
             err.msg);
    json_decref(args);
    json_decref(object);
    tg_arena_fini(&arena);
}

TEST(what_cannot_be_is_refused_by_name) {
    refused("bert_score", true, json_pack("{s:s, s:i}", "model_name", "no/such", "num_layers", 1),
            TG_NOINPUT, "README.md says how to get models");
    refused("bert_score", false, json_pack("{s:s}", "model_name", folder_of("bert")), TG_CONFIG,
            "num_layers");
    refused("bert_score", false,
            json_pack("{s:s, s:i}", "model_name", folder_of("bert"), "num_layers", 9), TG_CONFIG,
            "not 9");
    refused("bert_score", false,
            json_pack("{s:s, s:i}", "model_name", folder_of("t5"), "num_layers", 1), TG_UNSUPPORTED,
            "t5 model");
    refused("bert_score", false,
            json_pack("{s:s, s:i}", "model_name", folder_of("bert"), "num_layers", 1), TG_DATA,
            "no reference");
    refused("causal_perplexity", false, json_pack("{s:i}", "stride", 5), TG_CONFIG, "model_name");
    refused("causal_perplexity", false,
            json_pack("{s:s, s:i}", "model_name", folder_of("gpt2"), "stride", 5), TG_DATA,
            "tokens");
    refused("learned_reward", true,
            json_pack("{s:s, s:i}", "model_name", folder_of("roberta"), "label_ix", 4), TG_CONFIG,
            "labels 0 to 3, found 4");
    refused("learned_reward", true,
            json_pack("{s:s, s:i}", "model_name", folder_of("bert"), "label_ix", 0), TG_DATA,
            "has no labels");
    refused("intent_accuracy", true, json_pack("{s:s}", "model_name", folder_of("roberta")),
            TG_DATA, "\"intent\"");
    refused("bleurt", true, json_pack("{s:s}", "checkpoint", folder_of("roberta")), TG_DATA,
            "has 4 labels");
    refused("common_gen_preference_model", true,
            json_pack("{s:s, s:s}", "model_type", "11b", "model_name", folder_of("bert")), TG_DATA,
            "seq2seq");
}

TEST_MAIN
