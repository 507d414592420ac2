#!/bin/bash
# Wrong configs, overrides, models, data and command lines. Each must end with the right sysexits code and exactly one line on stderr
# that says what is wrong; nothing crashes, and no run folder is left behind.
. tests/support/script.sh bad_input
env=$bin/textgen-env learner=$bin/textgen-learner
cd "$work" || exit 70
export TEXTGEN_LOG=warn HOME=$work HF_HOME=$work/hf LC_ALL=C.UTF-8
unset TEXTGEN_MODELS HF_HUB_CACHE

# bad NAME CODE PATTERN COMMAND…: CODE and PATTERN are regular expressions.
bad() {
    local name=$1 want=$2 pattern=$3 code why=
    shift 3
    timeout 60 "$@" >out 2>err </dev/null
    code=$?
    [[ $code =~ ^$want$ ]] || why="exit code $code, expected $want"
    [ "$(wc -l <err)" -eq 1 ] || why="$why; $(wc -l <err) lines on stderr, expected 1"
    grep -qE -- "$pattern" err || why="$why; stderr does not match: $pattern"
    for d in dir runs rl4lm_exps; do [ ! -e $d ] || { why="$why; $d was left behind"; rm -rf $d; }; done
    if [ -z "$why" ]; then ok; return; fi
    failed=$((failed + 1))
    echo "  $name: $why"
    head -n 5 err | sed 's/^/    | /'
}
# with NAME CODE PATTERN SED-SCRIPT: `textgen train` on the good config, changed.
with() { sed -E "$4" good.yml >c.yml; bad "$1" "$2" "$3" "$textgen" train c.yml --run-dir dir; }
# over NAME CODE PATTERN KEY=VALUE…: the good config with overrides.
over() { local n=$1 c=$2 p=$3; shift 3; bad "$n" "$c" "$p" "$textgen" train good.yml --run-dir dir "$@"; }

# A right model: GPT-2 of one layer with weights that are all zero, and a tokenizer that fits.
make_model() {
    local d=$1 name dims n d1 at=0 header='{"__metadata__":{"format":"pt"}' length
    mkdir -p "$d" && cp "$root"/tests/golden/env/tokenizer/* "$d"
    echo '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 32,' \
        '"vocab_size": 265, "bos_token_id": 264, "eos_token_id": 264, "activation_function": "gelu_new"}' >"$d/config.json"
    while read -r name dims; do
        n=4
        for d1 in ${dims//,/ }; do n=$((n * d1)); done
        header+=",\"transformer.$name\":{\"dtype\":\"F32\",\"shape\":[$dims],\"data_offsets\":[$at,$((at + n))]}"
        at=$((at + n))
    done <<'TENSORS'
wte.weight 265,8
wpe.weight 32,8
h.0.ln_1.weight 8
h.0.ln_1.bias 8
h.0.attn.c_attn.weight 8,24
h.0.attn.c_attn.bias 24
h.0.attn.c_proj.weight 8,8
h.0.attn.c_proj.bias 8
h.0.ln_2.weight 8
h.0.ln_2.bias 8
h.0.mlp.c_fc.weight 8,32
h.0.mlp.c_fc.bias 32
h.0.mlp.c_proj.weight 32,8
h.0.mlp.c_proj.bias 8
ln_f.weight 8
ln_f.bias 8
TENSORS
    header+='}'
    length=$(printf '%016x' ${#header})
    {
        for i in 14 12 10 8 6 4 2 0; do printf '%b' "\\x${length:i:2}"; done
        printf '%s' "$header"
        head -c "$at" /dev/zero
    } >"$d/model.safetensors"
}
model=$work/model
make_model "$model"

cat >good.yml <<YML
tokenizer:
  model_name: $model
reward_fn:
  id: increasing_numbers
  args:
    min_tokens: 20
datapool:
  id: dummy_pool
  args:
    prompt: "<|endoftext|>"
    n_samples: 4
env:
  n_envs: 2
  args:
    max_prompt_length: 5
    max_episode_length: 8
    terminate_on_eos: True
alg:
  id: ppo
  args:
    n_steps: 8
    batch_size: 16
    learning_rate: 1e-4
    n_epochs: 1
  kl_div:
    coeff: 0.02
    target_kl: 2
  policy:
    id: causal_lm_actor_critic_policy
    args:
      model_name: $model
      generation_kwargs:
        do_sample: True
        max_new_tokens: 8
train_evaluation:
  eval_batch_size: 4
  n_iters: 1
  eval_every: 1
  save_every: 1
  metrics:
    - id: increasing_numbers
      args:
        min_tokens: 20
YML

# The table would prove nothing if the unchanged config were refused too.
if "$textgen" check good.yml >out 2>err; then ok; else failed=$((failed + 1)); echo "  the good config is refused:"; cat err; fi

# ---- options without effect: right, but one line each, from one of the processes that read the config -------------------------------
cat >sup.yml <<YML
tokenizer: {model_name: $model}
datapool: {id: dummy_pool, args: {prompt: a, n_samples: 4}}
reward_fn: {id: increasing_numbers, args: {min_tokens: 20}}
env: {n_envs: 2, args: {max_prompt_length: 5, max_episode_length: 8}}
alg:
  id: supervised
  model_name: $model
  training_args:
    save_strategy: epoch
    seed: null
train_evaluation: {eval_batch_size: 4, metrics: [{id: increasing_numbers, args: {min_tokens: 20}}]}
YML
bad "no effect: of transformers" 0 '^note: sup.yml:9: alg.training_args.save_strategy has no effect: By steps' "$textgen" check --schema-only sup.yml
bad "a mean that never moves" 78 'command line: alg.training_args.adam_beta2: expected a number from 0 to less than 1, found 1' "$textgen" check --schema-only sup.yml alg.training_args.adam_beta2=1
bad "no effect: of RL4LMs" 0 '^note: command line: alg.args.verbose has no effect: TEXTGEN_LOG' "$textgen" check --schema-only good.yml alg.args.verbose=2 alg.args.device=auto
bad "no effect: of a data pool" 0 'datapool.args.tokenizer_id has no effect: the run.s tokenizer' "$textgen" check --schema-only good.yml datapool='{id: tldr, args: {tokenizer_id: x}}'
bad "no effect: of a policy" 0 'alg.policy.args.apply_model_parallel has no effect: all layers are on one device' "$textgen" check --schema-only good.yml alg.policy.args.apply_model_parallel=False alg.args.use_sde=False
bad "no effect: of a metric" 0 'train_evaluation.metrics.0.args.force has no effect: nothing warns' "$textgen" check --schema-only good.yml 'train_evaluation.metrics=[{id: sacre_bleu, args: {force: True}}]'
bad "no effect: of a reward" 0 'reward_fn.args.force has no effect: nothing warns' "$textgen" check --schema-only good.yml 'reward_fn={id: sacre_bleu, args: {force: True}}'
sed -E 's/^    n_steps: 8/    verbose: 1\n&/' good.yml >c.yml
sed 's/^tokenizer:.*/tokenizer: {model_name: '"${model//\//\\/}"', max_length: 5}/; /save_strategy/d' sup.yml >s.yml
bad "no effect: of RL4LMs on supervised texts" 0 '^note: s.yml:1: tokenizer.max_length: has no effect on the texts that are trained on' "$textgen" check --schema-only s.yml
"$textgen" train c.yml --run-dir dir >out 2>&1 || { failed=$((failed + 1)); tail -n 3 out; }
if [ "$(grep -c 'c.yml:[0-9]*: alg.args.verbose has no effect' out)" = 1 ]; then ok; else failed=$((failed + 1)); echo "  train does not say once that an option has no effect"; fi
rm -rf dir

# ---- config files ------------------------------------------------------------------------------
bad "no such config" 66 'nowhere.yml: no such file' "$textgen" train nowhere.yml --run-dir dir
bad "a folder as config" 66 'is not a file' "$textgen" train "$work" --run-dir dir
: >empty.yml; bad "empty config" 78 'empty.yml:1: .*expected a config with the sections' "$textgen" train empty.yml --run-dir dir
with "broken YAML" 78 'c.yml:[0-9]+: not valid YAML' 's/^  id: ppo/  id: [ppo/'
with "tab for indentation" 78 'c.yml:[0-9]+: not valid YAML' 's/^  n_envs/\t n_envs/'
head -c 3000 /dev/urandom >c.yml; bad "random bytes" 78 'c.yml' "$textgen" train c.yml --run-dir dir
with "duplicate key" 78 'c.yml:[0-9]+: the key "seed" is already on line' '$a seed: 1\nseed: 2'
with "alias bomb" 78 'more than 100000 values' '$a x: \&a [1,1,1,1,1,1,1,1,1,1]\ny: \&b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nz: \&c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nu: \&d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nv: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]'
with "unknown section" 78 'trainevaluation: unknown key, did you mean "train_evaluation"' 's/^train_evaluation:/trainevaluation:/'
with "missing section" 78 'the section "datapool" is missing' '/^datapool/,/n_samples/d'
with "section of the wrong type" 78 'c.yml:12: env: expected a section' 's/^env:/env: 5/;/n_envs/,/terminate/d'
with "unknown reward" 78 'c.yml:[0-9]+: reward_fn.id: .*increasing_numbers' 's/id: increasing_numbers$/id: increasing_number/;'
with "reward without its model" 66 'bleurt .*"bleurt-base-128" was not found' '0,/id: increasing_numbers/s//id: bleurt/;0,/min_tokens.*/s/^    min_tokens.*//'
with "missing reward option" 78 'reward_fn.args.min_tokens: is required' '0,/^    min_tokens.*/s//    {}/'
with "unknown data pool" 78 'datapool.id: .*dummy_pool' 's/dummy_pool/dumy_pool/'
with "unknown environment key" 78 'c.yml:[0-9]+: env.args.max_prompt_len: unknown key, did you mean "max_prompt_length"' 's/max_prompt_length/max_prompt_len/'
with "unknown algorithm" 78 'alg.id: .*ppo' 's/id: ppo/id: pqo/'
with "masking algorithm, plain policy" 78 'alg.policy.id: nlpo masks actions: use maskable_causal' 's/id: ppo/id: nlpo/'
with "unknown algorithm option" 78 'c.yml:[0-9]+: alg.args.n_epoch: unknown key, did you mean "n_epochs"' 's/n_epochs/n_epoch/'
with "unknown policy" 78 'alg.policy.id: .*causal_lm_actor_critic_policy' 's/causal_lm_actor/causal_lm_acter/'
with "unknown metric" 78 'train_evaluation.metrics' 's/    - id: increasing_numbers/    - id: nothing/'
with "missing required key" 78 'train_evaluation.n_iters' '/n_iters/d'
with "text for a number" 78 'c.yml:[0-9]+: alg.args.learning_rate: expected a number' 's/learning_rate: 1e-4/learning_rate: fast/'

# ---- overrides ---------------------------------------------------------------------------------
over "override of an unknown key" 78 'command line: .*alg.args.n_epoch: unknown key, did you mean "n_epochs"' alg.args.n_epoch=2
over "override out of range" 78 'command line: alg.args.clip_range: expected' alg.args.clip_range=-1
over "override of the wrong type" 78 'command line: env.n_envs: expected a whole number.*found many' env.n_envs=many
over "override through a value" 78 'command line: alg.id: "ppo" is a value' alg.id.x=2
over "override that is not YAML" 78 'not valid YAML' 'alg.args.n_epochs=[1,'
over "override with a key twice" 78 'the key "n_epochs" is already on line' 'alg.args={n_epochs: 1, n_epochs: 2}'
over "override of a size" 78 'command line: learner.memory_limit: expected a size .* found much' learner.memory_limit=much
over "negative seed" 78 'command line: seed: expected a whole number' --seed -4
over "no prompts" 78 'datapool.args.n_samples' datapool.args.n_samples=0
over "zero-length episodes" 78 'env.args.max_episode_length' env.args.max_episode_length=0
over "more memory than allowed" 78 'memory' learner.memory_limit=1K
over "unknown compat" 78 'compat: expected one of rl4lms' compat=trlx

# ---- what does not go together -----------------------------------------------------------------
with "more layers than there are" 78 'c.yml:[0-9]+: alg.policy.args.num_layers_unfrozen: expected at most 1, which are the model.s layers, found 99' 's/^( *)generation_kwargs:/\1num_layers_unfrozen: 99\n&/'
over "more layers, from the command line" 78 'command line: alg.policy.args.num_layers_unfrozen: expected at most 1' alg.policy.args.num_layers_unfrozen=2
bad "more layers, supervised" 78 'command line: alg.num_layers_unfrozen: expected at most 1.* found 3' "$textgen" train sup.yml --run-dir dir alg.num_layers_unfrozen=3 alg.training_args=null
mkdir words; echo '{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
  "decoder": null, "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2}, "unk_token": "a"}}' >words/tokenizer.json
over "nothing is left to train" 78 'num_layers_unfrozen: 0 leaves nothing to train: a bart model has no norm behind its last layer; expected 1 to' \
    alg.policy.id=seq2seq_lm_actor_critic_policy alg.policy.args.model_name="$root/tests/golden/families/bart" tokenizer.model_name="$work/words" \
    env.args.terminate_on_eos=false alg.policy.args.num_layers_unfrozen=0
"$textgen" check good.yml alg.policy.args.num_layers_unfrozen=0 >out 2>err
if grep -q 'note: command line: alg.policy.args.num_layers_unfrozen: 16 of [0-9]* parameters are trained (0 of 1 layers: only the norm' err; then ok; else failed=$((failed + 1)); echo "  check does not say what is trained"; head -n 3 err; fi
with "prompts longer than the positions" 78 'c.yml:15: env.args.max_prompt_length: prompts of up to 25 tokens and 8 new ones do not fit the model.s 32 positions: lower it to at most 24' 's/max_prompt_length: 5/max_prompt_length: 25/'
with "episodes longer than the positions" 78 'c.yml:16: env.args.max_episode_length: 32 new tokens and a prompt are more than the model.s 32 positions' 's/(max_episode_length|max_new_tokens): 8/\1: 32/'
with "prompts of any length" 78 'c.yml:12: env.args.max_prompt_length: .*as this key is not there.*set it to at most 24' '/max_prompt_length/d'
bad "answers longer than the positions" 78 'command line: alg.generation_kwargs.max_new_tokens: 32 leaves no room for a prompt in the model.s 32 positions' "$textgen" train sup.yml --run-dir dir alg.generation_kwargs='{max_new_tokens: 32}' alg.training_args=null
bad "answers longer than the positions, by default" 78 'sup.yml:[0-9]+: alg.generation_kwargs.max_new_tokens: 20 leaves no room .* 16 positions' \
    "$textgen" train sup.yml --run-dir dir alg.training_args=null alg.model_name=null alg.model_config='{n_layer: 1, n_head: 1, n_embd: 8, n_positions: 16}'
with "rollouts shorter than episodes" 78 'c.yml:34: alg.policy.args.generation_kwargs.max_new_tokens: is 7, env.args.max_episode_length 8' 's/max_new_tokens: 8/max_new_tokens: 7/'
sed 's/"vocab_size": 265/"vocab_size": 200/' "$model/config.json" >few.json; mkdir narrow; cp "$model"/* narrow; mv few.json narrow/config.json
over "tokens of another model" 78 'command line: alg.policy.args.generation_kwargs.bad_words_ids: expected token ids of the model, 0 to 264, found 265' 'alg.policy.args.generation_kwargs={max_new_tokens: 8, bad_words_ids: [[265]]}'
with "tokens of another model, in evaluation" 78 'c.yml:[0-9]+: train_evaluation.generation_kwargs.stop_ids: expected token ids .* found 300' 's/^( *)n_iters: 1/&\n\1generation_kwargs: {stop_ids: [[300]]}/'
with "a tokenizer of another model" 78 'c.yml:2: tokenizer.model_name: this tokenizer has 265 tokens and .* only 200.*name the tokenizer of alg.policy.args.model_name' "/policy:/,\$s#model_name: .*#model_name: $work/narrow#"

# ---- model folders -----------------------------------------------------------------------------
broken() { rm -rf m; cp -r "$model" m; } # then change it
policy() { over "$1" "$2" "$3" alg.policy.args.model_name="$work/m"; }
over "model not found" 66 'command line: alg.policy.args.model_name: model "no/such-model" was not found; looked in' alg.policy.args.model_name=no/such-model
over "tokenizer not found" 66 'model "no/such-tokenizer" was not found; looked in' tokenizer.model_name=no/such-tokenizer
rm -rf m; mkdir m; policy "empty model folder" 66 "$work/m/config.json"
broken; echo '{"model_type": "gpt2",' >m/config.json; policy "broken config.json" 65 'm/config.json'
broken; sed -i 's/"model_type": *"gpt2"/"model_type": "gpt9"/' m/config.json; policy "unknown model_type" '(65|78)' 'gpt9'
broken; sed -i 's/"n_layer": *[0-9]*/"n_layer": 99/' m/config.json; policy "missing tensor" 65 'm/model.safetensors: .*h\.[0-9]+'
broken; sed -i 's/"n_positions": *[0-9]*/"n_positions": 17/' m/config.json; policy "misshapen tensor" 65 'm/model.safetensors: .*wpe'
broken; truncate -s -100 m/model.safetensors; policy "truncated weights" 65 'm/model.safetensors'
broken; head -c 5 "$model/model.safetensors" >m/model.safetensors; policy "weights of five bytes" 65 'm/model.safetensors'
broken; printf '\0\0\300\177' | dd of=m/model.safetensors bs=1 seek=$(($(stat -c %s m/model.safetensors) - 8)) conv=notrunc 2>/dev/null # NaN
policy "weights that are no numbers" 65 'command line: alg.policy.args.model_name: .*m/model.safetensors: tensor "transformer.ln_f.bias": element 6 is NaN; expected finite numbers'
bad "generate: weights that are no numbers" 65 'm/model.safetensors: tensor "transformer.ln_f.bias": element 6 is NaN' "$textgen" generate --model m
rm -rf m; cp -r "$root/tests/golden/families/marian" m; sed -i 's/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 16777216/' m/config.json
bad "positions without end" 65 'm/config.json: max_position_embeddings: a table of 16777216 positions and 12 numbers each .* expected at most 5592405 positions' "$textgen" generate --model m
broken; rm m/model.safetensors; policy "no weights" 66 'm'
broken; head -c 300 "$model/tokenizer.json" >m/tokenizer.json; over "broken tokenizer" 65 'm/tokenizer.json' tokenizer.model_name="$work/m"
broken; rm m/tokenizer*; rm -f m/vocab.json m/merges.txt; over "no tokenizer" 66 'command line: tokenizer.model_name: .*m. holds none of .*: copy the files' tokenizer.model_name="$work/m"

# ---- data --------------------------------------------------------------------------------------
pool() { over "$1" "$2" "$3" datapool.id=jsonl "datapool.args={path: $work/$4}"; }
pool "no data file" 66 'nothere.jsonl' nothere.jsonl
: >d.jsonl; pool "empty data file" 65 'd.jsonl' d.jsonl
printf '{"prompt": "a"}\n{"prompt": \n' >d.jsonl; pool "broken line" 65 'd.jsonl:2' d.jsonl
printf '{"prompt": "a"}\n{"text": "b"}\n' >d.jsonl; pool "missing field" 65 'd.jsonl:2: .*prompt' d.jsonl
printf '{"prompt": "a"}\n[1]\n' >d.jsonl; pool "a line that is no object" 65 'd.jsonl:2' d.jsonl
printf '{"prompt": "a\xff"}\n' >d.jsonl; pool "not UTF-8" 65 'd.jsonl:1' d.jsonl
bad "score: no such file" 66 'nothere.jsonl' "$textgen" score --metric dates --jsonl nothere.jsonl
printf '{"prediction": "2026-11-16"}\n{"text": "b"}\n' >d.jsonl
bad "score: missing field" 65 'd.jsonl:2: .*prediction' "$textgen" score --metric dates --jsonl d.jsonl
bad "score: unknown metric" '(64|78)' 'datez.*dates' "$textgen" score --metric datez --jsonl d.jsonl

# ---- command lines -----------------------------------------------------------------------------
bad "no config to evaluate" 64 'an argument is missing; usage: textgen eval' "$textgen" eval
bad "no command" 64 'a command is missing' "$textgen"
bad "unknown command" 64 'unknown command "trian", did you mean "train"' "$textgen" trian good.yml
bad "no config" 64 'a config is missing' "$textgen" train
bad "two configs" 64 'unexpected argument' "$textgen" train good.yml good.yml
bad "unknown option" 64 'unknown option --worker, did you mean --workers' "$textgen" train good.yml --worker 2
bad "option without value" 64 '--workers needs a value' "$textgen" train good.yml --workers
bad "option of the wrong type" 64 '--workers: expected a whole number' "$textgen" train good.yml --workers two
bad "resume without a run" 66 'no run to resume' "$textgen" train good.yml --resume --run-dir dir
bad "run folder is a file" 64 'is a file, not a run folder' "$textgen" train good.yml --run-dir good.yml
bad "run folder without a name" 64 'run-dir: expected a folder, found an empty text' "$textgen" train good.yml --run-dir ''
bad "run folder cannot be made" 74 'cannot create folder' "$textgen" train good.yml --run-dir /proc/no/such
bad "list: unknown kind" 64 'unknown kind "rewrad", did you mean "reward"' "$textgen" list rewrad
bad "check: nothing to check" 64 'an argument is missing' "$textgen" check
bad "generate: no model" 64 'model' "$textgen" generate
bad "generate: model not found" 66 '"no/such" was not found' "$textgen" generate --model no/such
bad "generate: unknown setting" 78 'do_sampl: unknown key, did you mean "do_sample"' "$textgen" generate --model "$model" do_sampl=true
bad "generate: setting out of range" 78 'top_k: expected a whole number from 0' "$textgen" generate --model "$model" top_k=-3
bad "data: unknown split" 64 '--split: expected train, val or test' "$textgen" data good.yml --split trian
bad "logprob: unknown option" 64 'unknown option --jsnl, did you mean --jsonl' "$textgen" logprob --model "$model" --jsnl
bad "tokenize: no tokenizer" 66 'nothere' "$textgen" tokenize --tokenizer nothere
bad "report: no such run" 66 '^textgen report: nowhere: is no folder' "$textgen" report nowhere
bad "score: nothing to compute" 64 '^textgen score: nothing to compute' "$textgen" score
bad "data: no samples" 64 '^textgen data: --limit: expected a number of samples, found -1' "$textgen" data good.yml --limit -1
rm -rf m; cp -r "$model" m; truncate -s 4G m/model.safetensors
[ "$BUILD" != build ] || # a sanitizer maps more than that by itself
    bad "weights larger than the memory there may be" 71 'm/model.safetensors: cannot map: Cannot allocate memory' bash -c "ulimit -v 2000000; exec '$textgen' generate --model m"
bad "worker: no address" 64 'bind|connect' "$env" --config good.yml
bad "worker: bad address" '(64|78)' 'nonsense' "$env" --config good.yml --connect nonsense://x
bad "learner: no run folder" 64 'run-dir' "$learner" train --config good.yml

finish
