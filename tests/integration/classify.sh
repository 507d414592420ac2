#!/bin/bash
# textgen classify on the recorded encoders: labels, pairs, ids, vectors; bad lines in their place; what is no classifier is refused.
. tests/support/script.sh classify
cd "$work" || exit 70
bad() { failed=$((failed + 1)); echo "  $1"; head -n 5 err out | sed 's/^/    | /'; }
is() { if [ "$2" = "$3" ]; then ok; else bad "$1: $2, expected $3"; fi; } # is WHAT GOT WANTED
refused() { "${@:4}" >out 2>err </dev/null; local code=$?; if [ $code -eq "$2" ] && grep -qE -- "$3" err; then ok; else bad "$1: exit $code"; fi; }

# 29 words, as many as the recorded models know
cp -r "$root/tests/golden/encoders/bert" model
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' {a..x} >model/vocab.txt
echo '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}' >model/tokenizer_config.json

printf 'a b c\na b\tc d\nA B C\n' | "$textgen" classify --model model >out 2>err
is "exit" $? 0
is "one line for each" "$(wc -l <out)" 3
is "lower case is the same text" "$(sed -n 1p out)" "$(sed -n 3p out)"
is "scores, logits and a label" "$(grep -cE '^\{"label": "LABEL_[0-2]", "scores": \{"LABEL_0": [0-9.e-]+, .*\}, "logits": \[.*\]\}$' out)" 3
cp out lines
printf '%s\n' '"a b c"' '{"text": "a b", "pair": "c d"}' '{"ids": [2, 5, 6, 7, 3]}' '{"ids": [2, 5, 6, 3, 7, 8, 3], "types": [0, 0, 0, 0, 1, 1, 1]}' |
    "$textgen" classify --model model --jsonl >out 2>err
is "as JSON" "$(sed -n 1,2p out)" "$(sed -n 1,2p lines)"
is "as ids" "$(sed -n 3p out)" "$(sed -n 1p lines)"
is "as ids with types" "$(sed -n 4p out)" "$(sed -n 2p lines)"
printf '%s\n' '"a"' 'nothing' '{"ids": [29]}' '{"ids": []}' '{"ids": [2], "types": [2]}' '{"text": 1}' '"b"' | "$textgen" classify --model model --jsonl >out 2>err
is "bad lines end with" $? 65
is "errors in their places" "$(grep -nc '"error"' out)$(sed -n '1p;7p' out | grep -c label)" 52
yes 'a b c d e f g h i j k l m n o p q r s t u v w x' | head -n 200 | "$textgen" classify --model model --threads 2 >out 2>err
is "long texts are cut, many fit" "$(sort -u out | wc -l) $(wc -l <out)" "1 200"
echo 'a b' | "$textgen" classify --model model --embed mean --normalize >out 2>err
is "a vector" "$(tr ',' '\n' <out | wc -l)" 16
echo '{"ids": [2, 5]}' | "$textgen" classify --model "$root/tests/golden/encoders/roberta" --jsonl >out 2>err
is "a regression has no label" "$(grep -c label\" out)$(grep -cE '^\{"scores": \{"LABEL_0": ' out)" 01
refused "no head" 65 'has no labels' "$textgen" classify --model "$root/tests/golden/encoders/minilm"
refused "no encoder" 65 'no encoder' "$textgen" classify --model textgen/tiny
refused "no model" 64 'model is missing' "$textgen" classify
refused "a wrong pooling" 64 'expected first, mean or max' "$textgen" classify --model model --embed median
refused "an encoder does not generate" 65 'writes no text' "$textgen" generate --model model
refused "nor has it log-probs" 65 'writes no text' "$textgen" logprob --model model --jsonl
finish
