/* `alg` and `train_evaluation`: defaults, resolved form, and what wrong configs are told. */
#include "learner/train/optimizer_id.h"
#include "learner/train/run_impl.h"
#include "learner/train/settings.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>

#define PPO                                                                                        \
    "alg:\n"                                                                                       \
    "  id: ppo\n"                                                                                  \
    "  args: {n_steps: 16, batch_size: 8}\n"                                                       \
    "  kl_div: {coeff: 0.1, target_kl: 0.5}\n"                                                     \
    "  policy:\n"                                                                                  \
    "    id: causal_lm_actor_critic_policy\n"                                                      \
    "    args:\n"                                                                                  \
    "      model_name: some/model\n"                                                               \
    "      generation_kwargs: {do_sample: true, max_new_tokens: 12}\n"                             \
    "train_evaluation:\n"                                                                          \
    "  eval_batch_size: 4\n"                                                                       \
    "  n_iters: 3\n"                                                                               \
    "  eval_every: 2\n"                                                                            \
    "  metrics: [{id: meteor, args: {}}]\n"
#define SFT                                                                                        \
    "alg:\n"                                                                                       \
    "  id: supervised\n"                                                                           \
    "  model_type: causal\n"                                                                       \
    "  model_config: {n_layer: 2, n_head: 2, n_embd: 8}\n"                                         \
    "  generation_kwargs: {do_sample: true, max_new_tokens: 5, post_processing_fn: null}\n"        \
    "  training_args: {num_train_epochs: 2, logging_steps: 7, output_dir: x, fp16: true}\n"        \
    "train_evaluation: {eval_batch_size: 4, metrics: []}\n"

static tg_status read_text(tg_train_settings *s, tg_arena *a, const char *text,
                           const char *override_, bool schema_only, tg_error *err) {
    tg_node *root;
    tg_status st = tg_tree_parse(a, "c.yml", text, strlen(text), &root, err);
    if (st == TG_OK && override_) st = tg_tree_override(a, root, override_, err);
    return st == TG_OK ? tg_train_settings_read(s, root, schema_only, a, err) : st;
}

TEST(defaults_are_those_of_rl4lms) {
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err;
    REQUIRE_OK(read_text(&s, &a, PPO, NULL, false, &err));
    CHECK(!s.supervised);
    CHECK_STR(s.algo->name, "ppo");
    CHECK_NEAR(s.kl.coeff, 0.1, 0);
    CHECK_NEAR(s.kl.target_kl, 0.5, 0);
    CHECK(!s.kl.norm_reward);
    CHECK_NEAR(s.optim.weight_decay, 1e-6, 0);
    CHECK_NEAR(s.optim.beta2, 0.999, 0);
    CHECK_STR(s.optim.kind, "adamw");
    CHECK_EQ(s.critic, TG_CRITIC_SEPARATE);
    CHECK_EQ(s.eval.save_every, 20);
    CHECK_EQ(s.eval_gen.max_new_tokens, 12); /* evaluation generates as rollouts do */
    CHECK_EQ(s.rollout_gen.top_k, 50);
    tg_arena_fini(&a);
}

TEST(products_are_rounded_when_asked_for) {
    static const struct {
        const char *text, *override_;
        bool rounded;
    } cases[] = {{PPO, NULL, false},
                 {PPO, "alg.policy.args.compute_dtype=f32", false},
                 {PPO, "alg.policy.args.compute_dtype=bf16", true},
                 {SFT, NULL, false},
                 {SFT, "alg.training_args.bf16=true", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arena a = {0};
        tg_train_settings s;
        tg_error err;
        REQUIRE_OK(read_text(&s, &a, cases[i].text, cases[i].override_, false, &err));
        CHECK_EQ(s.train, TG_MODEL_TRAINABLE | (cases[i].rounded ? TG_MODEL_ROUNDED : 0u));
        tg_arena_fini(&a);
    }
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err;
    CHECK_EQ(read_text(&s, &a, PPO, "alg.policy.args.compute_dtype=f16", false, &err), TG_CONFIG);
    tg_arena_fini(&a);
}

static void check_fixed_point(const char *text) {
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err;
    tg_buf once = {0}, twice = {0};
    CHECK_OK(read_text(&s, &a, text, NULL, false, &err));
    tg_train_settings_json(&s, &once);
    REQUIRE(once.data != NULL);
    CHECK_OK(read_text(&s, &a, once.data, NULL, false, &err));
    tg_train_settings_json(&s, &twice);
    CHECK_STR(once.data, twice.data);
    CHECK(strstr(once.data, "metrics") == NULL);
    tg_buf_fini(&once);
    tg_buf_fini(&twice);
    tg_arena_fini(&a);
}

TEST(the_resolved_form_reads_back_to_itself) {
    check_fixed_point(PPO);
    check_fixed_point(SFT);
}

TEST(supervised_reads_training_arguments) {
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err;
    REQUIRE_OK(read_text(&s, &a, SFT, NULL, false, &err));
    CHECK(s.supervised);
    CHECK_NEAR(s.sup.args.num_train_epochs, 2, 0);
    CHECK_NEAR(s.sup.args.learning_rate, 5e-5, 0);
    CHECK_NEAR(s.sup.args.max_grad_norm, 1, 0);
    CHECK_STR(s.sup.args.lr_scheduler_type, "linear");
    CHECK_EQ(s.sup.args.logging_steps, 7);
    CHECK_EQ(s.sup.fresh.n_inner, 32);
    CHECK(s.sup.model_name == NULL);
    tg_arena_fini(&a);
}

static const struct {
    const char *text, *override_, *expected;
    tg_status status;
} bad[] = {
    {PPO, "alg.id=pp0", "ppo", TG_CONFIG},
    {PPO, "alg.policy.id=causal_lm_actor_critic_polcy", "causal_lm_actor_critic_policy", TG_CONFIG},
    {PPO, "alg.policy.args.model_nme=x", "model_name", TG_CONFIG},
    {PPO, "alg.policy.args.critic=both", "separate", TG_CONFIG},
    {PPO, "alg.args.n_stepz=3", "n_steps", TG_CONFIG},
    {PPO, "alg.args.gamma=1.5", "gamma", TG_CONFIG},
    {PPO, "alg.kl_div.coef=3", "coeff", TG_CONFIG},
    {PPO, "alg.kl_div=null", "kl_div", TG_CONFIG},
    {PPO, "alg.policy=null", "policy", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_class=AdamX", "AdamW", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_kwargs={betas: [0.9]}", "betas", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_kwargs={betas: [0.9, 1.0]}", "betas", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_kwargs={eps: 0}", "expected a number from 1e-37 to 1",
     TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: adamw_8bit, args: {eps: 1e-60}}", "eps", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: rmsprop, args: {eps: 0.0}}", "eps", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_kwargs={amsgrad: true}", "amsgrad", TG_UNSUPPORTED},
    {SFT, "alg.training_args.adam_epsilon=0", "adam_epsilon", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer_class=Adagrad", "AdamW", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: sgdd}", "sgdd", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: sgd, args: {momentun: 0.5}}", "momentum", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: sgd, args: {nesterov: true}}", "nesterov", TG_CONFIG},
    {PPO, "alg.policy.args.optimizer={id: rmsprop, args: {alpha: 2}}", "alpha", TG_CONFIG},
    {PPO, "alg.id=nlpo", "maskable_causal_lm_actor_critic_policy", TG_CONFIG},
    {PPO,
     "alg.policy={id: maskable_causal_lm_actor_critic_policy, args: {model_name: x, top_mask: "
     "[20]}}",
     "top_mask: expected a number", TG_CONFIG},
    {PPO,
     "alg={id: trpo, kl_div: {coeff: 0.1}, policy: {id: causal_lm_actor_critic_policy, args: "
     "{model_name: x, critic: shared}}}",
     "critic: separate", TG_CONFIG},
    {PPO, "alg.policy.args.generation_kwargs.constraints=[1]", "constraints", TG_UNSUPPORTED},
    {PPO, "alg.policy.args.generation_kwargs.num_return_sequences=2", "compare_sample", TG_CONFIG},
    {PPO, "train_evaluation.generation_kwargs={num_beams: 3, num_return_sequences: 2}",
     "compare_sample", TG_CONFIG},
    {SFT, "alg.generation_kwargs={do_sample: true, num_return_sequences: 2}", "compare_sample",
     TG_CONFIG},
    {PPO, "train_evaluation.n_iters=0", "n_iters", TG_CONFIG},
    {PPO, "train_evaluation.eval_evry=1", "eval_every", TG_CONFIG},
    {PPO, "train_evaluation=null", "train_evaluation", TG_CONFIG},
    {SFT, "alg.model_config=null", "model_name", TG_CONFIG},
    {SFT, "alg.model_name=x", "model_config", TG_CONFIG},
    {SFT, "alg.model_config.n_head=3", "n_embd", TG_CONFIG},
    {SFT, "alg.training_args.lr_scheduler_type=square", "cosine", TG_CONFIG},
    {SFT, "alg.training_args.learning_rat=1", "learning_rate", TG_CONFIG},
};

TEST(wrong_configs_are_told_what_to_write) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tg_arena a = {0};
        tg_train_settings s;
        tg_error err = {0};
        tg_status st = read_text(&s, &a, bad[i].text, bad[i].override_, false, &err);
        tg_check(st == bad[i].status && strstr(err.msg, bad[i].expected), __FILE__, __LINE__,
                 "%s: status %s, message: %s", bad[i].override_, tg_status_name(st), err.msg);
        CHECK(strchr(err.msg, '\n') == NULL);
        tg_arena_fini(&a);
    }
}

TEST(schema_only_accepts_what_is_not_built_and_names_it) {
    const char *known[] = {"alg.policy.args.generation_kwargs.constraints=[1]"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tg_arena a = {0};
        tg_train_settings s;
        tg_error err;
        CHECK_OK(read_text(&s, &a, PPO, known[i], true, &err));
        CHECK(strstr(s.missing, "constraints: constrained beam search is known"));
        tg_arena_fini(&a);
    }
}

TEST(schema_only_refuses_generation_settings_that_exclude_each_other) {
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err;
    const char *key = "alg.policy.args.generation_kwargs.num_beam_groups=3";
    CHECK_EQ(read_text(&s, &a, PPO, key, true, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "3 groups cannot share 1 beams evenly"));
    tg_arena_fini(&a);
}

TEST(an_evaluation_may_end_by_tokens_of_its_own) {
    tg_arena a = {0};
    tg_train_settings s, again;
    tg_error err = {0};
    REQUIRE_OK(
        read_text(&s, &a, PPO,
                  "train_evaluation.generation_kwargs={eos_token_id: [7, 9], max_length: 99, "
                  "max_new_tokens: 5}",
                  false, &err));
    CHECK(s.eval_gen.own_eos && s.eval_gen.n_eos == 2 && !s.rollout_gen.own_eos);
    /* what it is resolved to says the same, and nothing that would be refused */
    tg_buf text = {0};
    tg_train_settings_json(&s, &text);
    REQUIRE_OK(read_text(&again, &a, text.data, NULL, false, &err));
    CHECK(again.eval_gen.own_eos && again.eval_gen.n_eos == 2 && !again.rollout_gen.own_eos);
    CHECK_EQ(again.eval_gen.max_new_tokens, 5);
    tg_buf_fini(&text);
    tg_arena_fini(&a);
}

/* RL4LMs's configs may have them; they run, and the user is told. */
TEST(what_the_environment_decides_is_said) {
    static const struct {
        const char *set, *note;
    } all[] = {
        {"alg.policy.args.generation_kwargs={max_length: 9}",
         "alg.policy.args.generation_kwargs.max_length has no effect: Texts"},
        {"alg.policy.args.generation_kwargs={eos_token_id: 7}",
         "alg.policy.args.generation_kwargs.eos_token_id has no effect: Episodes end"},
        {"train_evaluation.generation_kwargs={max_length: 9}",
         "train_evaluation.generation_kwargs.max_length has no effect"},
        {"train_evaluation.generation_kwargs={eos_token_id: 7}", NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tg_arena a = {0};
        tg_node *root;
        tg_train_settings s;
        tg_error err = {0};
        tg_buf notes = {0};
        REQUIRE_OK(tg_tree_parse(&a, "test.yml", PPO, strlen(PPO), &root, &err));
        REQUIRE_OK(tg_tree_override(&a, root, all[i].set, &err));
        REQUIRE_OK(tg_train_settings_read(&s, root, false, &a, &err));
        tg_train_settings_unused(&s, root, &notes);
        CHECK(all[i].note ? notes.data && strstr(notes.data, all[i].note) != NULL : !notes.data);
        tg_buf_fini(&notes);
        tg_arena_fini(&a);
    }
}

/* What a worker says comes from the network: lengths that are none would be divided by. */
TEST(episodes_without_a_length_are_refused) {
    static const uint32_t lengths[] = {0, 1u << 31, UINT32_MAX};
    tg_arena a = {0};
    tg_train_settings s;
    tg_error err = {0};
    tg_tokenizer *tokenizer = NULL;
    REQUIRE_OK(read_text(&s, &a, PPO, NULL, false, &err));
    REQUIRE_OK(tg_tokenizer_open(&tokenizer, tg_test_path("../configs/models/tiny"), &err));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tg_env_spec spec = {.max_prompt_length = 4, .max_episode_length = lengths[i]};
        tg_run_config config = {0};
        tg_run run = {.opts = {.config = &config},
                      .settings = &s,
                      .spec = &spec,
                      .tokenizer = tokenizer,
                      .arch = {.max_positions = 64, .vocab_size = 100}};
        CHECK_EQ(tg_run_settle_generation(&run, &err), TG_PROTOCOL);
        CHECK(strstr(err.msg, "max_episode_length") != NULL);
    }
    tg_tokenizer_destroy(&tokenizer);
    tg_arena_fini(&a);
}

TEST(optimizers_are_found_by_their_torch_names) {
    CHECK(tg_optimizer_id_find("AdamW") && tg_optimizer_id_find("torch.optim.adamw"));
    CHECK(tg_optimizer_id_find("adagrad") == NULL);
    CHECK_STR(tg_optimizer_id_find("bitsandbytes.optim.AdamW8bit")->kind, "adamw_8bit");
}

TEST(an_optimizer_section_is_read_resolved_and_read_back) {
    static const char *const text =
        "alg.policy.args.optimizer={id: rmsprop, args: {centered: true, momentum: 0.5}}";
    tg_arena a = {0};
    tg_train_settings s, again;
    tg_error err = {0};
    REQUIRE_OK(read_text(&s, &a, PPO, text, false, &err));
    CHECK_STR(s.optim.kind, "rmsprop");
    CHECK(s.optim.centered && !s.optim.nesterov);
    CHECK_NEAR(s.optim.alpha, 0.99, 0);
    CHECK_NEAR(s.optim.momentum, 0.5, 0);
    CHECK_NEAR(s.optim.weight_decay, 1e-6, 0); /* the policy's */
    CHECK_EQ(s.optim.decay, TG_DECAY_RL4LMS);
    tg_buf json = {0};
    tg_train_settings_json(&s, &json);
    REQUIRE_OK(read_text(&again, &a, json.data, NULL, false, &err));
    CHECK_STR(again.optim.kind, "rmsprop");
    CHECK(again.optim.centered);
    tg_buf twice = {0};
    tg_train_settings_json(&again, &twice);
    CHECK_STR(twice.data, json.data);
    tg_buf_fini(&json);
    tg_buf_fini(&twice);
    REQUIRE_OK(read_text(&s, &a, SFT, "alg.training_args.optim=adamw_bnb_8bit", false, &err));
    CHECK_STR(s.optim.kind, "adamw_8bit");
    CHECK_EQ(s.optim.decay, TG_DECAY_TRAINER);
    tg_arena_fini(&a);
}

TEST_MAIN
