#!/bin/bash
# textgen logprob on encoder-decoder models: numbers of transformers on the golden models, and lines that are refused.
. tests/support/script.sh logprob
models=$PWD/tests/golden/families
export TEXTGEN_LOG=warn LC_ALL=C.UTF-8

# near NAME MODEL LINE NUMBERS: the line's numbers, log-probs and then entropies, within 1e-5.
near() {
    local out
    out=$(echo "$3" | "$textgen" logprob --model "$models/$2" --jsonl 2>&1)
    if printf '%s\n%s\n' "$out" "$4" | awk '{
            gsub(/[^-0-9.e ]/, " "); gsub(/ [e]+ /, " "); n[NR] = split($0, x)
            for (i = 1; i <= n[NR]; i++) v[NR, i] = x[i] }
        END { if (n[1] == 0 || n[1] != n[2]) exit 1
            for (i = 1; i <= n[1]; i++) { d = v[1, i] - v[2, i]; if (d > 1e-5 || d < -1e-5) exit 1 } }'; then
        ok
    else
        failed=$((failed + 1))
        echo "  $1: found $out, expected $4"
    fi
}
# says NAME CODE PATTERN MODEL LINE
says() {
    local out code
    out=$(echo "$5" | "$textgen" logprob --model "$4" --jsonl 2>&1)
    code=$?
    if [ "$code" = "$2" ] && grep -qE -- "$3" <<<"$out"; then ok; return; fi
    failed=$((failed + 1))
    echo "  $1: exit $code, expected $2; \"$out\" should match $3"
}

near t5 t5 '{"input_ids": [5, 6, 7, 1], "ids": [9, 3, 22, 1]}' \
    '-3.064749 -3.114481 -3.180193 -3.026122 3.124855 3.128372 3.127952 3.129124'
near bart bart '{"input_ids": [0, 5, 6, 7, 2], "ids": [0, 9, 3, 2]}' \
    '-3.757773 -2.857212 -3.375947 -3.754012 3.004532 2.866489 2.970062 2.980147'
near 'marian, two vocabularies' marian '{"input_ids": [5, 6, 22], "ids": [18, 0, 4]}' \
    '-3.124305 -2.35358 -2.620664 2.774277 2.736612 2.754206'
says 'no ids at all' 0 '"logprob": \[\], "entropy": \[\]' "$models/t5" '{"input_ids": [5], "ids": []}'
says 'no source' 65 'expected either .*input_ids' "$models/t5" '{"ids": [5]}'
says 'an empty source' 65 'the source is empty' "$models/t5" '{"input_ids": [], "ids": [5]}'
says 'an id of the other vocabulary' 65 'not a token id \(0 to 18\)' "$models/marian" '{"input_ids": [22], "ids": [22]}'
says 'a source that is too long' 65 'only 24 positions' "$models/bart" "{\"input_ids\": [$(printf '5,%.0s' {1..24}) 5], \"ids\": [5]}"
long=$(printf '5,%.0s' {1..23})
says 'an answer as long as there are positions' 0 '"logprob": \[-' "$models/bart" "{\"input_ids\": [5], \"ids\": [$long 5]}"
says 'an answer that is too long' 65 'only 24 positions' "$models/bart" "{\"input_ids\": [5], \"ids\": [$long 5, 5]}"
says 'all that fits to generate' 0 '"logprob": \[null, -' "$models/gpt_neo" "{\"ids\": [$long 5, 5]}"
says 'a text that is too long' 65 '26 tokens, but the model has only 24 positions' "$models/gpt_neo" "{\"ids\": [$long 5, 5, 5]}"
says 'text without a tokenizer' 65 'needs a tokenizer' "$models/t5" '{"input_text": "a", "text": "b"}'
says 'a causal model has no source' 65 'this one is causal' "$models/llama" '{"input_ids": [5], "ids": [5]}'
says 'an encoder has no next token' 65 'is an encoder' "$PWD/tests/golden/encoders/bert" '{"ids": [5]}'
finish
