#!/bin/bash
# textgen generate: options in every form, results as JSON lines, text lines, and lines that are refused.
. tests/support/script.sh generate
models=$PWD/tests/golden/families tiny=$PWD/configs/models/tiny
export TEXTGEN_LOG=warn LC_ALL=C.UTF-8
tell() { failed=$((failed + 1)); echo "  $*"; }
run() { echo "$1" | "$textgen" generate --jsonl "${@:2}" 2>&1; }
# same NAME A B
same() { if [ -n "$2" ] && [ "$2" = "$3" ]; then ok; else tell "$1: \"$2\" is not \"$3\""; fi; }
# says NAME CODE PATTERN LINE ARGS…
says() {
    local out code
    out=$(echo "$4" | "$textgen" generate --jsonl "${@:5}" 2>&1)
    code=$?
    if [ "$code" = "$2" ] && grep -qE -- "$3" <<<"$out"; then ok; return; fi
    tell "$1: exit $code, expected $2; \"$out\" should match $3"
}

line='{"prompt": "The box"}'
want=$(run "$line" --model "$tiny" num_beams=3 max_new_tokens=6 length_penalty=0.5)
same "flags are settings" "$(run "$line" --model "$tiny" --num-beams 3 --max_new_tokens=6 --length-penalty 0.5)" "$want"
same "so is a text" "$(run "$line" --model "$tiny" --kwargs '{num_beams: 3, max_new_tokens: 6, length_penalty: 0.5}')" "$want"
kwargs=$(mktemp) && echo '{"num_beams": 3, "max_new_tokens": 6}' >"$kwargs"
same "and a file" "$(run "$line" --model "$tiny" --kwargs "@$kwargs" length_penalty=0.5)" "$want"
same "what changes no token is accepted" "$(run "$line" --model "$tiny" --num-beams 3 --max_new_tokens=6 --length-penalty 0.5 use_cache=false output_scores=true)" "$want"
same "key=value wins" "$(run "$line" --model "$tiny" --kwargs '{num_beams: 7, max_new_tokens: 6}' --num-beams 5 num_beams=3 length_penalty=0.5)" "$want"
rm -f "$kwargs"
says "a beam has a score" 0 '"step_score": \[-.*"score": -[0-9.]+, "end": "length"' "$line" --model "$tiny" num_beams=2 max_new_tokens=3
says "a sample has both log-probs" 0 '"logprob": \[-.*"sample_logprob": \[-' "$line" --model "$tiny" do_sample=true max_new_tokens=3
says "however small a score is" 0 '"ids": \[([0-9]+, ){99}[0-9]+\].*"score": -[0-9]{10,}' "$line" --model "$tiny" num_beams=3 eos_token_id=null max_new_tokens=100 length_penalty=-5
says "fewer texts than results" 0 '"ids": \[9\].*"end": "length"}, {"ids": \[\].*"score": -1000000000.0, "end": "none"' '{"ids": [5, 6]}' --model "$models/t5" num_beams=2 num_return_sequences=2 max_new_tokens=1 forced_eos_token_id=9
says "several results are a list" 0 '^\[\{.*\}, \{.*\}\]$' "$line" --model "$tiny" do_sample=true num_return_sequences=2 max_new_tokens=3
says "a stop string ends it" 0 '"text": ".*has".*"end": "stop"' "$line" --model "$tiny" stop_strings=has max_new_tokens=9
says "white space is text where it is typed" 0 '"text": " has 9 b[^ ]*", .*"end": "stop"' "$line" --model "$tiny" --do-sample false --stop-strings ' b' --max-new-tokens 9
says "also alone" 0 '"ids": \[[0-9]+\], .*"end": "stop"' "$line" --model "$tiny" --do-sample false --stop-strings ' ' --max-new-tokens 9
says "around a list it is not" 0 '"text": ".*has".*"end": "stop"' "$line" --model "$tiny" --stop-strings ' ["has"] ' --max-new-tokens 9
says "an encoder-decoder's source" 0 '"ids": \[9' '{"ids": [5, 6, 7, 1]}' --model "$models/t5" max_new_tokens=4 forced_bos_token_id=9
says "what is not built is named" 78 'command line: generation_kwargs.constraints: constrained beam search is known .*; null goes without it' "$line" --model "$tiny" 'constraints=[1]'
says "groups must share the beams" 78 'num_beam_groups: 2 groups cannot share 3 beams' "$line" --model "$tiny" num_beams=3 num_beam_groups=2
says "greedy search has one result" 78 'num_return_sequences: greedy' "$line" --model "$tiny" num_return_sequences=2
says "stop strings need a tokenizer" 78 'stop_strings: needs a tokenizer' '{"ids": [5]}' --model "$models/llama" stop_strings=x
says "what was found" 78 'eos_token_id: expected a token id, a list of them, or null for none, found -1' '{"ids": [5]}' --model "$models/llama" eos_token_id=-1
says "also where it is nothing" 78 'bad_words_ids: expected a list of lists .*, found an empty list' '{"ids": [5]}' --model "$models/llama" 'bad_words_ids=[]'
says "an answer's first token" 78 'decoder_start_token_id: expected a token id of the model, 0 to 22, found 99' '{"ids": [5]}' --model "$models/t5" decoder_start_token_id=99
says "an empty prompt's first token" 65 'line 1: the prompt is empty, and bos_token_id, .*, is 99: the model has tokens 0 to 22' '{"ids": []}' --model "$models/llama" bos_token_id=99
says "which is missing" 65 'line 1: the prompt is empty, and the model has no bos_token_id' '{"ids": []}' --model "$models/t5"
says "a prompt that is too long" 65 'do not fit the 24' "{\"ids\": [$(printf '5,%.0s' {1..24}) 5]}" --model "$models/gpt_neo" max_new_tokens=2
says "whatever room others need" 65 'line 1: 131 prompt tokens .* do not fit the 128' "{\"ids\": [$(printf '5,%.0s' {1..130}) 5]}" --model "$tiny" max_new_tokens=2
says "longer than it was trained with" 0 'WARN.*texts of up to 26 tokens: the model was trained with 24 positions' "{\"ids\": [$(printf '5,%.0s' {1..24}) 5]}" --model "$models/llama" max_new_tokens=2
says "where nothing was trained by position" 0 '^[^W]*"end": "length"' "{\"ids\": [$(printf '5,%.0s' {1..2050}) 5]}" --model "$models/bloom" max_new_tokens=2
says "tokens of another model" 78 'bad_words_ids: .* 0 to 22, found 23' '{"ids": [5]}' --model "$models/llama" 'bad_words_ids=[[5], [3, 23]]'
says "temperature 0 is no matter of a greedy search" 0 '"end": "length"' '{"ids": [5]}' --model "$models/llama" temperature=0 max_new_tokens=2
says "but of a sample" 78 'temperature: expected a number from .* found 0' '{"ids": [5]}' --model "$models/llama" temperature=0 do_sample=true
says "threads below 0" 64 'threads: expected .* found -2' '{"ids": [5]}' --model "$models/llama" --threads -2
TEXTGEN_CPU_ISA=sse says "kernels that are not there" 0 "TEXTGEN_CPU_ISA is 'sse', and this processor has .*plain: taking" '{"ids": [5]}' --model "$models/llama" max_new_tokens=2
says "room for many results of each prompt" 65 'line 1: .*not a token id' '{"ids": [-1]}' --model "$models/llama" do_sample=true num_return_sequences=1000000 max_new_tokens=1
says "every token forbidden" 65 'every token is forbidden at token 1.*generation_kwargs forbid too many' '{"ids": [5]}' --model "$models/llama" "suppress_tokens=[$(seq -s, 0 22)]"

# groups name the first end token whichever it was: with the log-prob of what they name
out=$(run '{"ids": [5, 6]}' --model "$models/gpt_neo" num_beams=4 num_beam_groups=2 diversity_penalty=0.5 early_stopping=true 'eos_token_id=[1, 4]' max_new_tokens=8)
ids=$(sed -E 's/^\{"ids": \[([^]]*)\].*/\1/' <<<"$out")
same "an end token that stands for others" "${ids##*, }" 1
last() { grep -oE '"logprob": \[[^]]*' <<<"$1" | grep -oE -- '-[0-9]+\.[0-9]{3}' | tail -n 1; }
same "and its log-prob" "$(last "$out")" "$(last "$(echo "{\"ids\": [5, 6, $ids]}" | "$textgen" logprob --model "$models/gpt_neo" --jsonl)")"

# where generation_config.json names no padding, groups that are done pad with the first end token, whatever config.json says
pads=$work/pads && cp -r "$models/pegasus" "$pads" && echo '{"decoder_start_token_id": 1}' >"$pads/generation_config.json"
groups=(--model "$pads" num_beams=6 num_beam_groups=2 diversity_penalty=1 max_new_tokens=10 early_stopping=true num_return_sequences=4 'eos_token_id=[10, 5, 17]')
out=$(run '{"ids": [4, 18, 2]}' "${groups[@]}" pad_token_id=10)
same "padding that the folder does not name" "$(run '{"ids": [4, 18, 2]}' "${groups[@]}")" "$out"
if [ "$(run '{"ids": [4, 18, 2]}' "${groups[@]}" pad_token_id=1)" != "$out" ]; then ok; else tell "this padding should matter"; fi

# what a folder asks for is said with its file
asks=$(mktemp -d) && cp "$models/llama/config.json" "$models/llama/model.safetensors" "$asks" && echo '{"penalty_alpha": 0.6}' >"$asks/generation_config.json"
says "a folder's setting" 78 '/generation_config.json:1: generation_kwargs.penalty_alpha: contrastive search' '{"ids": [5]}' --model "$asks"
says "which null turns off" 0 '"end": "length"' '{"ids": [5]}' --model "$asks" penalty_alpha=null
rm -rf "$asks"

# a line that finds no next token is the only one without a result
lines=$(printf '{"ids": [5]}\n{"ids": [%s]}\n{"ids": [6]}\n' "$(seq -s, 0 21)")
for options in '' 'num_beams=2' 'do_sample=true num_return_sequences=2'; do
    # shellcheck disable=SC2086
    out=$(run "$lines" --model "$models/llama" no_repeat_ngram_size=1 max_new_tokens=2 eos_token_id=50 $options)
    same "one line without a token, $options" "$(grep -n 'every token is forbidden' <<<"$out" | cut -c1-19)" '2:{"error": "line 2'
    same "others with theirs, $options" "$(grep -c '"end": "length"' <<<"$out")" 2
done

# prompts together and one by one: the same bytes
lines=$(for i in 3 8 11 5 7; do echo "{\"ids\": [$i, 4, $i, 9]}"; done)
for options in 'num_beams=3' 'do_sample=true' 'num_beams=4 num_beam_groups=2 diversity_penalty=0.5' ''; do
    # shellcheck disable=SC2086
    together=$(run "$lines" --model "$models/gpt_neo" max_new_tokens=7 $options)
    # shellcheck disable=SC2086
    [ "$options" = do_sample=true ] || same "one by one, $options" "$together" \
        "$(while read -r l; do run "$l" --model "$models/gpt_neo" max_new_tokens=7 $options; done <<<"$lines")"
    # shellcheck disable=SC2086
    same "with one thread, $options" "$together" "$(run "$lines" --model "$models/gpt_neo" max_new_tokens=7 $options --threads 1)"
done
same "plain text" "$(printf 'The box\nThe box\n' | "$textgen" generate --model "$tiny" --max-new-tokens 4 | sort -u | wc -l)" 1
finish
