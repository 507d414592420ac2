/* How a run generates: where texts end and how long they may be, by the config, the environment and the model. */
#include "learner/train/run_impl.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "learner/train/fit.h"
#include "proto/codec.h"

#include <inttypes.h>

int tg_run_room(const tg_arch *arch, int positions, int other) {
    return arch->kind == TG_KIND_SEQ2SEQ ? positions : positions - other;
}

/* Other kinds of positions have no end. */
static void warn_of_length(const tg_run *run) {
    const tg_arch *a = &run->arch;
    const int longest = a->kind == TG_KIND_SEQ2SEQ ? TG_MAX(run->max_prompt, run->max_new)
                                                   : run->max_prompt + run->max_new;
    if (a->rope.dims && longest > a->max_positions)
        tg_log_warn("train",
                    "texts of up to %d tokens: the model was trained with %d positions "
                    "(config.json), and has yet to learn what lies beyond them",
                    longest, a->max_positions);
}

static tg_status make_stops(tg_run *run, tg_gen_settings *gen, const char *path,
                            tg_stop_strings **stops, tg_error *err) {
    if (tg_node_is_null(gen->stop_strings)) return TG_OK;
    tg_status st = tg_stop_strings_create(stops, gen->stop_strings, path, run->tokenizer,
                                          run->arch.vocab_size, err);
    gen->stop_text = *stops;
    return st;
}

/* An episode ends where the environment ends it, which rewards what it ended; evaluations end by the same texts unless they have their
 * own. */
static tg_status settle_stops(tg_run *run, tg_error *err) {
    const tg_node *ours = tg_node_get(tg_node_get(run->opts.config->env, "args"), "stop_strings");
    tg_gen_settings *rollout = &run->rollout_gen, *eval = &run->eval_gen;
    if (!run->settings->supervised && (!tg_node_is_null(rollout->stop_strings) || rollout->n_stops))
        tg_log_warn("train", "generation_kwargs.stop_strings and stop_ids count in evaluation; "
                             "episodes end by env.args.stop_strings");
    rollout->stop_strings = ours;
    rollout->n_stops = 0;
    rollout->stops_in_result = true;
    const char *of_eval = "train_evaluation.generation_kwargs";
    if (tg_node_is_null(eval->stop_strings) && !tg_node_is_null(ours)) {
        eval->stop_strings = ours;
        eval->stops_in_result = true;
        of_eval = "env.args";
    }
    tg_status st = make_stops(run, rollout, "env.args", &run->rollout_stops, err);
    return st == TG_OK ? make_stops(run, eval, of_eval, &run->stops, err) : st;
}

tg_status tg_run_settle_generation(tg_run *run, tg_error *err) {
    const tg_env_spec *spec = run->spec;
    run->rollout_gen = run->settings->rollout_gen;
    run->eval_gen = run->settings->eval_gen;
    int32_t eos = spec->has_eos ? (int32_t)spec->eos_id : -1;
    run->rollout_gen.pad_id = run->eval_gen.pad_id = tg_tokenizer_pad(run->tokenizer);
    if (!run->eval_gen.own_eos) tg_gen_set_eos(&run->eval_gen, eos);
    tg_gen_set_eos(&run->rollout_gen, spec->terminate_on_eos ? eos : -1);
    tg_status st = settle_stops(run, err);
    if (st != TG_OK) return st;
    uint32_t longest = spec->max_prompt_length ? spec->max_prompt_length : UINT32_MAX;
    const tg_node *root = run->opts.config->root;
    run->positions = tg_fit_positions(root, &run->arch);
    run->max_prompt = (int)TG_MIN(longest, (uint32_t)run->positions);
    int64_t episode = spec->max_episode_length;
    if (!run->settings->supervised && (episode < 1 || episode > INT32_MAX))
        return tg_fail(err, TG_PROTOCOL,
                       "a worker says that episodes have at most %" PRId64
                       " tokens: its env.args.max_episode_length must be at least 1",
                       episode);
    st = tg_fit_episode(root, run->settings, episode, err);
    if (st != TG_OK) return st;
    run->max_new = (int)episode;
    if (run->eval_gen.max_new_tokens == INT64_MIN && !run->settings->supervised)
        run->eval_gen.max_new_tokens = episode;
    if (run->settings->supervised) run->max_new = (int)tg_gen_max_new(&run->eval_gen, 0);
    st = tg_fit_lengths(root, run->settings, &run->arch, run->max_prompt, run->max_new, err);
    if (st == TG_OK && run->settings->supervised) /* as RL4LMs: prompts give way */
        run->max_prompt =
            TG_MIN(run->max_prompt, tg_run_room(&run->arch, run->positions, run->max_new));
    if (st == TG_OK) warn_of_length(run);
    return st;
}
