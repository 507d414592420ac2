#!/bin/bash
# textgen score as scripts use it: text and JSON lines, several references, threads, files that do not fit together.
. tests/support/script.sh score
cd "$work" || exit 70
# refused CODE PATTERN ARGUMENT…: the exit code, and what the one line on stderr says.
refused() {
    local want=$1 pattern=$2; shift 2
    "$textgen" score "$@" >out 2>err </dev/null
    is "exit code of score $*" "$want" $?
    is "message of score $*" "yes" "$(grep -qE "$pattern" err && [ "$(wc -l <err)" = 1 ] && echo yes || cat err)"
}

printf 'the cat sat\n\nhello world\n' >p.txt
printf 'the cat sat down\nx\nhello world\n' >a.txt
printf 'the cat sat\ny\nhi world\r\n' >b.txt
printf '"the cat sat"\n""\n{"prediction": "hello world", "prompt": "greet"}\n' >p.jsonl
printf '["the cat sat down", "the cat sat"]\n["x", "y"]\n{"references": ["hello world", "hi world"]}\n\n' >r.jsonl
jq -cn --rawfile p p.txt --rawfile a a.txt --rawfile b b.txt \
    '[$p, $a, $b] | map(rtrimstr("\n") | split("\n") | map(rtrimstr("\r"))) | transpose[] | {prediction: .[0], references: .[1:]}' >all.jsonl 2>/dev/null ||
    cat >all.jsonl <<'EOF'
{"prediction": "the cat sat", "references": ["the cat sat down", "the cat sat"]}
{"prediction": "", "references": ["x", "y"]}
{"prediction": "hello world", "references": ["hello world", "hi world"]}
EOF

metrics=rouge,bleu,google_bleu,sacre_bleu,chrf,ter,meteor,cider,rouge_l_max,spice,spider,sari,self_bleu,distinct,length,diversity
"$textgen" score --metric $metrics --jsonl all.jsonl --json >one.json
is "there is something" yes "$([ -s one.json ] && echo yes)"
"$textgen" score --metric $metrics --pred p.txt --ref a.txt --ref b.txt --json >two.json
is "text files" "$(cat one.json)" "$(cat two.json)"
"$textgen" score --metric ${metrics/,sari/} --pred p.jsonl --ref r.jsonl --json >three.json
"$textgen" score --metric ${metrics/,sari/} --jsonl all.jsonl --json >one.json
is "JSON lines" "$(cat one.json)" "$(cat three.json)"
for i in $(seq 100); do cat all.jsonl; done >many.jsonl
"$textgen" score --metric $metrics --jsonl many.jsonl --json >many1.json
for n in 2 3 0; do
    "$textgen" score --metric $metrics --jsonl many.jsonl --threads $n --json >many.json
    is "$n threads" "$(cksum <many1.json)" "$(cksum <many.json)"
done
"$textgen" score --metric bleu,rouge --pred p.txt --ref a.txt --json file.json >table
is "a table" "lexical/bleu" "$(awk '/bleu/ {print $1}' table)"
is "and a file" "$("$textgen" score --metric bleu,rouge --pred p.txt --ref a.txt --json)" "$(cat file.json)"
is "predictions from stdin" "$(cat file.json)" "$("$textgen" score --metric bleu,rouge --pred - --ref a.txt --json <p.txt)"
printf 'a b c\n' >src.txt
is "prompts" "yes" "$(printf 'a b\n' | "$textgen" score --metric sari --pred - --ref src.txt --prompt src.txt | grep -q 'lexical/sari' && echo yes)"

printf 'one\n' >short.txt
printf '["a"]\n[1]\n["c"]\n' >bad.jsonl
printf '["a"]\n[]\n["c"]\n' >none.jsonl
printf '["a"]\n["b"\n["c"]\n' >broken.jsonl
refused 65 'p.txt has 3 lines and short.txt has 1' --metric bleu --pred p.txt --ref short.txt
refused 65 'bad.jsonl:2: .*expected a text' --metric bleu --pred p.txt --ref bad.jsonl
refused 65 'none.jsonl:2: .*at least one reference' --metric bleu --pred p.txt --ref none.jsonl
refused 65 'broken.jsonl:2: not JSON' --metric bleu --pred p.txt --ref broken.jsonl
refused 66 'nothere.txt' --metric bleu --pred nothere.txt --ref a.txt
refused 66 'nothere.txt' --metric bleu --pred p.txt --ref nothere.txt
refused 64 'give one of them' --metric bleu --pred p.txt --jsonl all.jsonl
refused 64 'belong to --pred' --metric bleu --ref a.txt
refused 64 'unexpected argument' --metric bleu --pred p.txt file.json
refused 64 'threads' --metric bleu --pred p.txt --ref a.txt --threads -2
refused 64 'rouge.*neither compat' --metric bleu --pred p.txt --ref a.txt rouge.use_single_ref=false
refused 74 'nodir' --metric bleu --pred p.txt --ref a.txt --json nodir/x.json
printf '\n\n' >blank.txt
printf 'x\ny\n' >two.txt
refused 65 'no value: lexical/bleu \(BLEU is not defined: the texts have no words\)' --metric bleu,chrf --pred blank.txt --ref two.txt
is "what has a value is there" "lexical/chrf" "$(awk '/chrf/ {print $1}' out)"
is "what has none says why" "yes" "$(grep -q 'lexical/bleu .*none .*no words' out && echo yes)"
refused 65 'no value: lexical/bleu \(n/a\)' --metric chrf,bleu --pred blank.txt --ref two.txt --json compat=rl4lms
is "null in JSON" "yes" "$(grep -q '"lexical/bleu": {"corpus": null' out && echo yes)"
refused 65 'no value: meteor \(.*no reference.*\), bleu' --metric meteor,bleu --pred blank.txt
"$textgen" score --metric diversity --pred p.txt >/dev/null 2>err
is "texts too short for a window have a value: not a number" "0 0" "$? $(wc -l <err)"
: >empty.txt
refused 65 'empty.txt: nothing to score' --metric bleu --pred empty.txt --ref a.txt
finish
