#!/bin/bash
# Every task, algorithm and policy of RL4LMs's 44 configs trains, is evaluated with the metrics that they name, and is saved: on small random models
# under the names that they use, and a few samples of each data set in its native layout.
#
#   RL4LMS_CONFIGS=DIR tests/integration/rl4lms_configs.sh      the config files themselves, all *.yml below DIR, as they are
#
# Without it the same settings in our own words. Only sizes are overridden on the command line.
. tests/support/script.sh rl4lms
"$root/tests/support/rl4lms_world.sh" "$work/world" || { echo "0 passed, 1 failed"; exit 1; }
export TEXTGEN_MODELS=$work/world/models TEXTGEN_DATA=$work/world/data
cd "$work" || exit 70

# ---- configs ------------------------------------------------------------------------------------------------------------------------------
text_metrics='meteor rouge bleu bert_score:language=en diversity'
metric() { # id, id:key=value,key=value
    local args=${1#*:}
    if [ "$args" = "$1" ]; then echo "    - id: $1"; else printf '    - id: %s\n      args: {%s}\n' "${1%%:*}" "$(echo "$args" | sed 's/=/: /g; s/,/, /g')"; fi
}
metrics() { echo "  metrics:"; for m in "$@"; do metric "$m"; done; }

# on_policy NAME ALGORITHM FAMILY MODEL REWARD POOL PROMPT NEW EVALUATION METRIC…
on_policy() {
    local name=$1 algorithm=$2 family=$3 model=$4 reward=$5 pool=$6 prompt=$7 new=$8 evaluation=$9; shift 9
    local start='' masks='' tuned='batch_size: 64, learning_rate: 0.000002, n_epochs: 5, ent_coef: 0.0'
    case $family in t5) start=', context_start_token: 0' ;; bart) start=', context_start_token: 2' ;; blenderbot) start=', context_start_token: 1' ;; esac
    local policy=seq2seq_lm_actor_critic_policy tokenizer=$model
    case $family in gpt2) policy=causal_lm_actor_critic_policy tokenizer=gpt2 ;; t5) tokenizer=t5-base ;; esac
    [ $algorithm = nlpo ] && policy=maskable_$policy masks=', min_tokens_to_keep: 100, top_mask: 0.9, mask_type: "learned_top_p", target_update_iterations: 20'
    [ $algorithm = a2c ] && tuned='learning_rate: 0.000002, ent_coef: 0.0'
    [ $algorithm = trpo ] && tuned='learning_rate: 0.000002'
    mkdir -p "configs/${name%/*}"
    {
        echo "tokenizer: {model_name: $tokenizer, padding_side: left, truncation_side: left, pad_token_as_eos_token: False}"
        echo "reward_fn: $reward"
        echo "datapool: $pool"
        echo "env: {n_envs: 10, args: {max_prompt_length: $prompt, max_episode_length: $new, terminate_on_eos: True, prompt_truncation_side: \"right\"$start}}"
        echo "alg: {id: $algorithm, args: {n_steps: 128, verbose: 1, $tuned}, kl_div: {coeff: 0.1, target_kl: 0.2}, policy: {id: $policy, args: {model_name: $model, apply_model_parallel: True, prompt_truncation_side: \"right\"$masks, generation_kwargs: {do_sample: True, top_k: 50, min_length: 5, max_new_tokens: $new}}}}"
        echo "train_evaluation:"
        echo "  eval_batch_size: 100"
        echo "  n_iters: 100"
        echo "  eval_every: 10"
        echo "  save_every: 1"
        metrics "$@"
        [ -z "$evaluation" ] || echo "  generation_kwargs: {$evaluation}"
    } >"configs/$name.yml"
}

# supervised NAME FAMILY TOKENIZER MODEL POOL GENERATION METRIC…
supervised() {
    local name=$1 family=$2 tokenizer=$3 model=$4 pool=$5 generation=$6; shift 6
    mkdir -p "configs/${name%/*}"
    {
        echo "tokenizer: {model_name: $tokenizer, padding_side: left, truncation_side: right, pad_token_as_eos_token: True, max_length: 128}"
        echo "datapool: $pool"
        echo "alg: {id: supervised, model_type: $family, model_name: $model, training_args: {per_device_train_batch_size: 8, logging_steps: 2000, num_train_epochs: 5, weight_decay: 0.1, lr_scheduler_type: cosine, learning_rate: 0.0001, save_total_limit: 1}, generation_kwargs: {$generation, post_processing_fn: null}}"
        echo "train_evaluation:"
        echo "  eval_batch_size: 64"
        metrics "$@"
    } >"configs/$name.yml"
}

make_configs() {
    local a new eval
    local cg='{id: commongen, args: {concept_separator_token: " ", concept_end_token: ".", prefix: "generate a sentence with: "}}'
    local captions="$text_metrics cider spice" beams='num_beams: 5, min_length: 5, max_new_tokens: 20'
    on_policy common_gen/t5_nlpo nlpo t5 t5-base '{id: meteor, args: {shaping_fn: common_gen_repeat_penalty}}' "$cg" 15 20 'do_sample: True, top_k: 0, temperature: 0.7, min_length: 8, max_new_tokens: 20' $text_metrics
    on_policy common_gen/t5_nlpo_on_supervised nlpo t5 rajkumarrrk/t5-common-gen '{id: meteor, args: {shaping_fn: common_gen_repeat_penalty}}' "$cg" 20 20 "$beams" $captions
    on_policy common_gen/t5_ppo ppo t5 t5-base '{id: meteor, args: {shaping_fn: common_gen_repeat_penalty}}' "$cg" 20 20 "$beams" $captions
    on_policy common_gen/t5_ppo_on_supervised ppo t5 rajkumarrrk/t5-common-gen '{id: common_gen_preference_model, args: {device: "cpu", batch_size: 5, model_type: "11b"}}' "$cg" 20 20 "$beams" $captions
    supervised common_gen/t5_supervised seq2seq t5-base t5-base "$cg" "$beams" $captions

    local dd='{id: "daily_dialog", args: {context_size: 5}}' dialog="intent_accuracy causal_perplexity:tokenizer_id=gpt2,stride=128,model_type=causal $text_metrics sacre_bleu:tokenize=intl"
    local sample='do_sample: True, top_k: 20, min_length: 2, max_new_tokens: 20'
    for a in nlpo ppo; do
        on_policy dialog/gpt2_$a $a gpt2 gpt2 '{id: "intent_accuracy", args: {intent_coeff: 0.75, auto_coeff: 0.25}}' "$dd" 128 20 "$sample" $dialog
        on_policy dialog/gpt2_${a}_on_supervised $a gpt2 rajkumarrrk/gpt2-fine-tuned-on-daily-dialog '{id: "intent_accuracy", args: {intent_coeff: 0.5, auto_coeff: 0.5}}' "$dd" 128 20 "$sample" $dialog
    done
    supervised dialog/gpt2_supervised causal gpt2 gpt2 "$dd" "$sample" $dialog

    local review='{id: learned_reward, args: {model_name: lvwerra/distilbert-imdb, label_ix: 1, include_prompt_for_eval: True}}' reviews='{id: imdb, args: {seed: 42}}'
    local sentiment='learned_reward:model_name=lvwerra/distilbert-imdb,label_ix=1,batch_size=100 diversity causal_perplexity:tokenizer_id=gpt2,stride=512,model_type=causal'
    for a in a2c nlpo ppo; do on_policy imdb_text_continuation/gpt2_$a $a gpt2 lvwerra/gpt2-imdb "$review" "$reviews" 64 48 '' $sentiment; done
    for a in nlpo ppo; do on_policy imdb_text_continuation/gpt2_${a}_on_supervised $a gpt2 rajkumarrrk/gpt2-fine-tuned-on-imdb-positive-reviews "$review" "$reviews" 64 48 '' $sentiment; done
    supervised imdb_text_continuation/gpt2_supervised causal gpt2 lvwerra/gpt2-imdb '{id: "imdb_seq2seq", args: {positive_ratio: 1.0}}' 'do_sample: True, top_k: 50, max_new_tokens: 48' \
        learned_reward:model_name=lvwerra/distilbert-imdb,label_ix=1,batch_size=100 causal_perplexity:tokenizer_id=gpt2,stride=512,model_type=causal,use_text_from_meta_data=True diversity

    local iw='{id: iwslt2017en_de, args: {prompt_prefix: "translate English to German: "}}' translation="meteor rouge bleu bert_score:language=de bleu sacre_bleu:tokenize=intl ter chrf diversity"
    for a in nlpo ppo; do
        on_policy iwslt2017/t5_$a $a t5 t5-base '{id: ter}' "$iw" 128 128 'num_beams: 4, length_penalty: 0.6, max_new_tokens: 128' $translation
        on_policy iwslt2017/t5_${a}_on_supervised $a t5 rajkumarrrk/t5-fine-tuned-on-iwslt2017en_de '{id: ter}' "$iw" 128 128 'num_beams: 4, length_penalty: 0.6, max_new_tokens: 128' $translation
    done
    supervised iwslt2017/t5_supervised seq2seq t5-base t5-base "$iw" 'num_beams: 4, length_penalty: 0.6, max_new_tokens: 128' meteor rouge bleu bert_score:language=en sacre_bleu:tokenize=intl ter chrf

    local lmax='max_n=4,limit_length=False,length_limit=100,length_limit_type="words",apply_avg=False,apply_best=False,alpha=0.5,weight_factor=1.2,stemming=True'
    local qa="meteor rouge:use_single_ref=False bleu bert_score:language=en rouge_l_max:$lmax diversity" answer="{id: rouge_l_max, args: {$(echo "$lmax" | sed 's/=/: /g; s/,/, /g')}}"
    for a in nlpo ppo; do
        on_policy narrative_qa/t5_$a $a t5 t5-base "$answer" '{id: narrative_qa}' 512 50 'num_beams: 4' $qa
        on_policy narrative_qa/t5_${a}_on_supervised $a t5 allenai/unifiedqa-t5-base "$answer" '{id: narrative_qa}' 512 50 'num_beams: 4, max_new_tokens: 50' $qa
    done

    local news='{id: cnn_daily_mail, args: {prompt_prefix: "Summarize: "}}'
    for a in nlpo ppo; do
        on_policy summarization/t5_$a $a t5 t5-base "$([ $a = ppo ] && echo '{id: rouge, args: {rouge_type: "rouge1"}}' || echo '{id: meteor}')" "$news" 512 100 'do_sample: True, top_k: 0, temperature: 0.7, min_length: 50, max_new_tokens: 100' $text_metrics
        on_policy summarization/t5_${a}_on_supervised $a t5 rajkumarrrk/t5-base-fine-tuned-on-cnn-dm '{id: meteor}' "$news" 512 100 'do_sample: True, top_k: 0, temperature: 0.7, min_length: 50, max_new_tokens: 100' $text_metrics
    done
    supervised summarization/t5_supervised seq2seq t5-base t5-base "$news" 'do_sample: True, top_k: 0, temperature: 0.7, min_length: 50, max_new_tokens: 100' $text_metrics

    local dates='{id: dummy_pool, args: {prompt: "<|endoftext|>", n_samples: 20}}' numbers='{id: increasing_numbers, args: {min_tokens: 20}}' synthetic=synthetic_generate_increasing_numbers
    on_policy synthetic_generate_dates/gpt2_ppo ppo gpt2 gpt2 '{id: sentences_with_dates}' "$dates" 5 30 '' dates
    for a in a2c nlpo ppo trpo; do on_policy $synthetic/gpt2_$a $a gpt2 gpt2 "$numbers" "$dates" 5 20 '' increasing_numbers:min_tokens=20; done
    for a in nlpo ppo; do on_policy $synthetic/t5_$a $a t5 t5-base "$numbers" '{id: dummy_pool, args: {prompt: "Write increasing numbers", n_samples: 20}}' 5 20 '' increasing_numbers:min_tokens=20; done
    on_policy $synthetic/bart_ppo ppo bart facebook/bart-base "$numbers" '{id: dummy_pool, args: {prompt: "numbers", n_samples: 20}}' 5 20 '' increasing_numbers:min_tokens=20
    on_policy $synthetic/blendorbot_ppo ppo blenderbot facebook/blenderbot-400M-distill "$numbers" '{id: dummy_pool, args: {prompt: "numbers", n_samples: 20}}' 5 20 '' increasing_numbers:min_tokens=20

    local tables='{id: totto, args: {representation: "subtable"}}' totto='meteor parent_totto rouge:use_single_ref=False bleu_totto bert_score:language=en diversity'
    for a in nlpo ppo; do
        on_policy totto/t5_$a $a t5 t5-base '{id: meteor}' "$tables" 512 50 'num_beams: 5, min_length: 10, max_new_tokens: 50' $totto
        on_policy totto/t5_${a}_on_supervised $a t5 rajkumarrrk/t5-base-fine-tuned-on-totto '{id: meteor}' "$tables" 512 50 'num_beams: 5, min_length: 10, max_new_tokens: 50' $totto
    done
    supervised totto/t5_supervised seq2seq t5-base t5-base "$tables" 'num_beams: 10, min_length: 10, max_new_tokens: 50' $totto
}

# ---- runs ---------------------------------------------------------------------------------------------------------------------------------
# The keys that a metric's id gives.
key_of() {
    case $1 in
    meteor | cider | spice | bleu | ter | chrf | rouge_l_max) echo "lexical/$1" ;; rouge) echo lexical/rouge_rougeL ;; sacre_bleu) echo lexical/sacrebleu ;;
    bert_score) echo semantic/bert_score ;; learned_reward) echo semantic/learned_automodel_metric ;; diversity) echo diversity_metrics/distinct-1 ;;
    intent_accuracy) echo intent/accuracy ;; causal_perplexity) echo fluency_metrics/perplexity ;; parent_totto) echo table_to_text/parent_overall_f_score ;;
    bleu_totto) echo table_to_text/bleu_overall ;; increasing_numbers) echo synthetic/increasing_numbers_in_text ;; dates) echo synthetic/dates_in_text ;; *) echo "no key is known of $1" ;;
    esac
}

# Ids below train_evaluation.metrics, comments left out.
metrics_of() { sed 's/#.*//' "$1" | sed -n '/^train_evaluation:/,$p' | sed -n 's/^ *- *id: *"\{0,1\}\([a-zA-Z_]*\).*/\1/p' | sort -u; }

small_args() {
    if grep -q 'id: supervised' "$1"; then
        echo alg.training_args.num_train_epochs=1 alg.training_args.per_device_train_batch_size=4
    else
        echo env.n_envs=4 alg.args.n_steps=12 train_evaluation.n_iters=2 train_evaluation.eval_every=1 train_evaluation.save_every=1
        grep -qE 'id: (ppo|nlpo)' "$1" && echo alg.args.batch_size=16 alg.args.n_epochs=1
    fi
}

check_run() { # NAME CONFIG
    local dir=runs/$1 key why=''
    [ -s "$dir/model/model.safetensors" ] && [ -s "$dir/model/tokenizer.json" ] || why+=' no model;'
    [ -n "$(ls "$dir/checkpoints" 2>/dev/null)" ] || grep -q 'id: supervised' "$2" || why+=' no checkpoint;'
    for id in $(metrics_of "$2"); do
        key=$(key_of "$id")
        [ "$(grep -cE "\"$key\": -?[0-9]" "$dir/val_split_metrics.jsonl")" -ge 2 ] || why+=" $key is not in every evaluation;"
    done
    [ -s "$dir/test_split_metrics.jsonl" ] || why+=' no test split;'
    grep -q 'has no value' "$dir/log.txt" && why+=" $(grep -m1 -o '[^ ]* has no value.*' "$dir/log.txt");"
    cat "$dir"/*.jsonl | grep -qiE '[:[] *-?(nan|inf)' && why+=' not finite;'
    if ! grep -q 'id: supervised' "$2"; then
        [ "$(grep -cE '"rollout_info/ep_rew": -?[0-9]' "$dir/rollout_info.jsonl")" = 2 ] || why+=' rewards;'
        [ "$(wc -l <"$dir/training_info.jsonl")" = 2 ] || why+=' updates;'
    fi
    if [ -z "$why" ]; then ok; else bad "$1:$why"; fi
}

run() { # CONFIG
    local name=${1#"$folder"/}; name=${name%.yml}
    "$textgen" check --schema-only "$1" >out 2>err || { bad "$name: check --schema-only: $(tail -n 1 err)"; return; }
    mkdir -p "runs/${name%/*}"
    # shellcheck disable=SC2046
    if timeout 300 "$textgen" train "$1" $(small_args "$1") train_evaluation.eval_batch_size=8 --seed 1 --workers 1 --run-dir "runs/$name" >out 2>err; then
        check_run "$name" "$1"
    else
        bad "$name: exit $?: $(tail -n 1 err)"
    fi
    rm -rf "runs/$name"
}

folder=${RL4LMS_CONFIGS:-configs}
[ -n "${RL4LMS_CONFIGS:-}" ] || make_configs
n=0
while IFS= read -r config; do
    n=$((n + 1))
    [[ $config = *${ONLY:-}* ]] && run "$config"
done < <(find "$folder" -name '*.yml' | sort)
[ $n = 44 ] || [ -n "${RL4LMS_CONFIGS:-}" ] || bad "$n configs, not 44"

# ---- workers and threads change nothing, nor does the company of a text --------------------------------------------------------------------
same() { # CONFIG
    for how in '1 1' '3 2'; do
        read -r workers threads <<<"$how"
        # shellcheck disable=SC2046
        "$textgen" train "$1" $(small_args "$1") env.judge_threads=$threads --seed 1 --workers "$workers" --run-dir "same-$workers" >out 2>err || bad "$1 with $workers workers: $(tail -n 1 err)"
    done
    for file in rollout_info.jsonl training_info.jsonl val_split_metrics.jsonl model/model.safetensors; do
        if cmp -s "same-1/$file" "same-3/$file"; then ok; else bad "$1: $file depends on the workers"; fi
    done
    rm -rf same-*
}
# The policy's perplexity by the learner is that of the same folder by a worker.
perplexity() { # WHAT ARGS
    "$textgen" train configs/imdb_text_continuation/gpt2_ppo.yml $(small_args configs/imdb_text_continuation/gpt2_ppo.yml) \
        "train_evaluation.metrics=[{id: causal_perplexity, args: {tokenizer_id: gpt2, stride: 512$2}}]" --seed 1 --workers 1 --run-dir "perplexity-$1" >out 2>err || bad "perplexity $1: $(tail -n 1 err)"
    head -n 1 "perplexity-$1/val_split_metrics.jsonl"
}
if [ -z "${ONLY:-}" ] && [ -z "${RL4LMS_CONFIGS:-}" ]; then
    policy=$(perplexity policy '') folder=$(perplexity folder ', model_name: lvwerra/gpt2-imdb')
    if [ -n "$policy" ] && [ "$policy" = "$folder" ]; then ok; else bad "perplexity: $policy, and by a worker $folder"; fi
    same configs/dialog/gpt2_ppo.yml
    same configs/common_gen/t5_ppo_on_supervised.yml
fi
finish
