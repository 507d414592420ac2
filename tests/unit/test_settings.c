/* The environment's part of a config: every component and key that RL4LMs's task configs use is known,
 * with its defaults; what is wrong is said with its place. */
#include "env-server/env/settings.h"
#include "tests/support/tg_test.h"

#include <stdio.h>

static tg_error err;

static tg_status read_sections(const char *reward, const char *pool, const char *metrics,
                               const char *env, tg_run_config *config, tg_env_settings *settings) {
    char yaml[4096];
    snprintf(
        yaml, sizeof yaml,
        "tokenizer:\n  model_name: t5-base\n  padding_side: left\n  truncation_side: left\n  "
        "pad_token_as_eos_token: False\n"
        "reward_fn: %s\ndatapool: %s\nenv: %s\nalg: {id: ppo}\ntrain_evaluation: {metrics: %s}\n",
        reward, pool, env, metrics);
    tg_arena arena = {0};
    tg_node *root;
    memset(config, 0, sizeof *config);
    tg_status st = tg_tree_parse(&arena, "c.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK) st = tg_run_config_init(config, &arena, root, &err);
    return st == TG_OK ? tg_env_settings_read(settings, config, &err) : st;
}

#define REWARD "{id: sentences_with_dates}"
#define POOL "{id: dummy_pool, args: {prompt: x, n_samples: 50}}"
#define ENV                                                                                        \
    "{n_envs: 10, args: {max_prompt_length: 5, max_episode_length: 20, terminate_on_eos: True}}"

/* A section is usable exactly when its rows are built. */
static bool all_built(const tg_env_settings *s) {
    bool built = s->reward.entry->built && s->datapool.entry->built;
    for (size_t i = 0; i < s->n_metrics; i++) built &= s->metrics[i].entry->built;
    return built;
}

/* One section at a time is put into an otherwise plain config. */
static void check_known(const char *reward, const char *pool, const char *metrics) {
    tg_run_config config;
    tg_env_settings s;
    tg_status st = read_sections(reward ? reward : REWARD, pool ? pool : POOL,
                                 metrics ? metrics : "[]", ENV, &config, &s);
    const char *what = reward ? reward : pool ? pool : metrics;
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s: %s", what, err.msg);
    if (st != TG_OK) return;
    st = tg_env_settings_require_built(&s, &err);
    tg_check(st == (all_built(&s) ? TG_OK : TG_UNSUPPORTED), __FILE__, __LINE__, "%s: status %d",
             what, (int)st);
    tg_buf json = {0};
    tg_env_settings_json(&s, &json);
    tg_arena arena = {0};
    tg_node *again;
    CHECK_OK(tg_tree_parse(&arena, "resolved", json.data, json.len, &again, &err));
    tg_arena_fini(&arena);
    tg_buf_fini(&json);
    tg_run_config_fini(&config);
}

#define PY_ROUGE                                                                                   \
    "{max_n: 4, limit_length: True, length_limit: 100, length_limit_type: words, apply_avg: "      \
    "True, apply_best: %s, "                                                                       \
    "alpha: 0.5, weight_factor: 1.2, stemming: True}"

TEST(rewards_of_rl4lms) {
    char text[512];
    check_known("{id: increasing_numbers, args: {min_tokens: 20}}", NULL, NULL);
    check_known("{id: sentences_with_dates, args: {}}", NULL, NULL);
    static const char *const known[] = {
        ("{id: learned_reward, args: {model_name: lvwerra/distilbert-imdb, label_ix: 1, "
         "include_prompt_for_eval: True}}"),
        "{id: meteor, args: {shaping_fn: common_gen_repeat_penalty}}",
        "{id: rouge, args: {rouge_type: \"rouge1\", use_single_ref: False}}",
        "{id: rouge_combined}",
        "{id: bert_score}",
        "{id: bleu, args: {}}",
        "{id: bleurt, args: {checkpoint: x}}",
        "{id: sacre_bleu, args: {tokenize: intl}}",
        "{id: ter, args: {}}",
        "{id: chrf}",
        "{id: parent}",
        "{id: spider, args: {spice_coeff: 0.5, cider_coeff: 0.5}}",
        "{id: intent_accuracy, args: {shape: True, intent_coeff: 0.25, auto_coeff: 0.75}}",
        "{id: common_gen_preference_model, args: {model_type: 11b, device: cpu, batch_size: 5}}",
        "{id: common_gen_repeat_penalty}",
        "{id: common_gen_repeat_penalty_batched}",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_known(known[i], NULL, NULL);
    snprintf(text, sizeof text, "{id: rouge_l_max, args: " PY_ROUGE "}", "True");
    check_known(text, NULL, NULL);
}

TEST(pools_of_rl4lms) {
    check_known(NULL, POOL, NULL);
    static const char *const known[] = {
        "{id: imdb, args: {seed: 42}}",
        "{id: imdb, args: {}}",
        "{id: imdb_seq2seq, args: {positive_ratio: 1.0}}",
        "{id: commongen, args: {concept_separator_token: \" \", concept_end_token: \".\", prefix: "
        "\"generate a sentence with: \"}}",
        "{id: totto, args: {representation: \"subtable\"}}",
        "{id: cnn_daily_mail, args: {prompt_prefix: \"Summarize: \", prompt_suffix: \"\", "
        "truncate_article: 10, max_size: 5}}",
        "{id: narrative_qa, args: {}}",
        "{id: wmt16, args: {wmt_id: wmt16, source_language: en, target_language: de}}",
        "{id: wmt14_processed_en_de}",
        "{id: wmt16newsonly, args: {prompt_prefix: \"t: \"}}",
        "{id: iwslt2017en_de, args: {prompt_prefix: \"translate English to German: \"}}",
        "{id: crd3, args: {max_context_size: 5}}",
        "{id: daily_dialog, args: {context_size: 5}}",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_known(NULL, known[i], NULL);
}

TEST(metrics_of_rl4lms) {
    char text[512];
    check_known(NULL, NULL,
                "[{id: increasing_numbers, args: {min_tokens: 20}}, {id: dates, args: {}}]");
    static const char *const known[] = {
        "[{id: learned_reward, args: {model_name: m, label_ix: 1, batch_size: 100}}]",
        "[{id: meteor, args: {}}]",
        "[{id: rouge, args: {use_single_ref: False}}]",
        "[{id: rouge}]",
        "[{id: bert_score, args: {language: de}}]",
        "[{id: bleu, args: {}}]",
        "[{id: bleurt, args: {config_name: bleurt-large-512}}]",
        "[{id: sacre_bleu, args: {tokenize: \"intl\"}}]",
        "[{id: ter, args: {}}]",
        "[{id: chrf, args: {}}]",
        "[{id: cider}]",
        "[{id: spice}]",
        "[{id: diversity, args: {window_size: 5}}]",
        "[{id: summaCZS, args: {granularity: sentence, use_ent: True, use_con: False}}]",
        "[{id: summaCConv, args: {granularity: sentence}}]",
        ("[{id: causal_perplexity, args: {tokenizer_id: gpt2, stride: 512, model_type: causal, "
         "use_text_from_meta_data: True}}]"),
        "[{id: parent_totto, args: {}}]",
        "[{id: bleu_totto, args: {}}]",
        "[{id: intent_accuracy}]",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_known(NULL, NULL, known[i]);
    snprintf(text, sizeof text, "[{id: rouge_l_max, args: " PY_ROUGE "}]",
             "\"True,\""); /* as two shipped configs have it */
    check_known(NULL, NULL, text);
}

TEST(defaults) {
    tg_run_config config;
    tg_env_settings s;
    REQUIRE_OK(read_sections(REWARD, POOL, "[]", "{}", &config, &s));
    CHECK_EQ(s.n_envs, 1);
    CHECK_EQ(s.mdp.max_episode_length, 512);
    CHECK(s.mdp.max_prompt_length == INT64_MIN && s.mdp.context_start_token == INT64_MIN);
    CHECK(!s.mdp.terminate_on_eos && s.mdp.priority_scale == 0);
    CHECK_STR(s.mdp.prompt_truncation_side, "left");
    CHECK_EQ(s.n_metrics, 0);
    tg_run_config_fini(&config);
}

TEST(the_digest_is_of_what_decides_an_episode) {
    tg_run_config config;
    tg_env_settings s;
    uint64_t digests[4];
    const char *envs[] = {"{n_envs: 1, args: {max_episode_length: 5}}",
                          "{n_envs: 9, args: {max_episode_length: 5}}",
                          "{n_envs: 1, args: {max_episode_length: 6}}"};
    for (int i = 0; i < 4; i++) {
        REQUIRE_OK(read_sections(REWARD, i == 3 ? "{id: dummy_pool, args: {prompt: y}}" : POOL,
                                 "[]", envs[i % 3], &config, &s));
        digests[i] = tg_env_settings_digest(&s);
        tg_run_config_fini(&config);
    }
    CHECK(digests[0] == digests[1]);
    CHECK(digests[0] != digests[2] && digests[0] != digests[3]);
}

static void check_wrong(const char *reward, const char *pool, const char *metrics, const char *env,
                        const char *says) {
    tg_run_config config;
    tg_env_settings s;
    tg_status st = read_sections(reward ? reward : REWARD, pool ? pool : POOL,
                                 metrics ? metrics : "[]", env ? env : ENV, &config, &s);
    tg_check(st == TG_CONFIG, __FILE__, __LINE__, "%s: status %d", says, (int)st);
    tg_check(strstr(err.msg, says) && strstr(err.msg, "c.yml"), __FILE__, __LINE__,
             "\"%s\" does not say \"%s\"", err.msg, says);
    tg_run_config_fini(&config);
}

TEST(what_is_wrong_is_said_with_its_place) {
    check_wrong("{id: roug}", NULL, NULL, NULL, "did you mean 'rouge'");
    check_wrong("{id: rouge, args: {rouge_typ: rouge1}}", NULL, NULL, NULL,
                "reward_fn.args.rouge_typ");
    check_wrong("{id: rouge, args: {rouge_type: rouge9}}", NULL, NULL, NULL,
                "rouge1, rouge2, rougeL, rougeLsum");
    check_wrong("{args: {}}", NULL, NULL, NULL, "reward_fn.id");
    check_wrong("{id: increasing_numbers}", NULL, NULL, NULL, "min_tokens");
    check_wrong("{id: increasing_numbers, args: [20]}", NULL, NULL, NULL, "reward_fn.args");
    check_wrong("[x]", NULL, NULL, NULL, "reward_fn");
    check_wrong(NULL, "{id: xyzzyplugh}", NULL, NULL, "textgen list datapool");
    check_wrong(NULL, NULL, "[{id: dates}, {id: date}]", NULL, "train_evaluation.metrics.1.id");
    check_wrong(NULL, NULL, "[dates]", NULL, "train_evaluation.metrics.0");
    check_wrong(NULL, NULL, NULL, "{n_envs: 0}", "env.n_envs");
    check_wrong(NULL, NULL, NULL, "{n_env: 2}", "n_envs");
    check_wrong(NULL, NULL, NULL, "{args: {terminate_on_eos: maybe}}", "env.args.terminate_on_eos");
    check_wrong(NULL, NULL, NULL, "{args: {priority_scale: -1}}", "env.args.priority_scale");
}

TEST_MAIN
