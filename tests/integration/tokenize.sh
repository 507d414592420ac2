#!/bin/bash
# textgen tokenize, detokenize, tokenizer train and gentext as scripts use them: pipes, bad lines, exit codes.
. tests/support/script.sh tokenize
gpt2=$PWD/tests/golden/tokenizer/gpt2-a
cd "$work" || exit 70
# code EXPECTED COMMAND…: the exit code, nothing on stdout, one line on stderr.
code() {
    local want=$1; shift
    "$@" >out 2>err </dev/null
    is "exit code of ${*##*/}" "$want" $?
    is "lines on stderr of ${*##*/}" 1 "$(wc -l <err)"
    is "stdout of ${*##*/}" "" "$(cat out)"
}
tok() { "$textgen" tokenize --tokenizer "$gpt2" "$@"; }
detok() { "$textgen" detokenize --tokenizer "$gpt2" "$@"; }

is "ids of a text" "65 273" "$(printf 'a b' | tok)"
is "no text, no ids" "" "$(tok </dev/null)"
printf 'Two lines,\n  déjà vu \xf0\x9f\x98\x80<|endoftext|>\n' >text
tok text >ids
is "there and back" "$(od -c text)" "$(detok ids | od -c)"
is "broken UTF-8" "$(printf 'a\xef\xbf\xbdb' | tok)" "$(printf 'a\xffb' | tok)"
is "ids in brackets" "a b" "$(echo '[65, 273]' | detok)"
is "special tokens are skipped" "ab" "$(echo 65 0 66 | detok --skip-special)"
is "clean-up" "a." "$(printf 'a .' | tok | detok --clean-up)"

is "a line for a line" '{"ids":[65,273],"tokens":["a","Ġb"],"offsets":[[0,1],[1,3]]}
{"ids":[],"tokens":[],"offsets":[]}
{"ids":[128,103],"tokens":["Ã","©"],"offsets":[[0,1],[0,1]]}' "$(printf '"a b"\n""\n{"text":"\\u00e9"}' | tok --jsonl)"
printf '"a"\n7\n{"tex\n\n"b"\n' | tok --jsonl >out 2>err
is "exit code with bad lines" 65 $?
is "a bad line has an error in its place" '{"ids":[65]|{"error": "line 2|{"error": "line 3|{"error": "line 4|{"ids":[66]' "$(sed -E 's/(line [0-9]).*/\1/; s/\].*/]/' out | paste -sd '|')"
is "texts of lists" '"a b"
""' "$(printf '[65, 273]\n{"ids":[]}\n' | detok --jsonl)"
printf '[65]\n[300]\n[-1]\n["a"]\n[1.5]\n3\n' | detok --jsonl >out 2>err
is "exit code with bad ids" 65 $?
is "bad ids have errors in their places" '"a"|error|error|error|error|error' "$(sed 's/^{"error".*/error/' out | paste -sd '|')"

code 64 "$textgen" tokenize
code 64 "$textgen" tokenize --tokenizer "$gpt2" --jsnol
code 66 "$textgen" tokenize --tokenizer "$work/none"
code 66 "$textgen" tokenize --tokenizer "$work"
code 66 "$textgen" tokenize --tokenizer "$gpt2" no-such-file
echo '{"version":"1.0","model":{"type":"CharLevel","vocab":{},"unk_token":"u"}}' >charlevel.json
code 78 "$textgen" tokenize --tokenizer charlevel.json
echo '{"version":"1.0","model":{"type":"WordLevel","vocab":{"a b":0,"<u>":1},"unk_token":"<u>"}}' >wordlevel.json
is "words of a vocabulary" "0|1" "$(printf 'a b' | "$textgen" tokenize --tokenizer wordlevel.json)|$(printf 'x' | "$textgen" tokenize --tokenizer wordlevel.json)"
is "tokens by name" "a
Ġb" "$(printf 'a b' | tok --pieces)"
is "tokens in colours" 2 "$(printf 'a b' | tok --colors | grep -o '48;5;' | wc -l)"
is "a pair, cut and padded" '{"ids":[65,66],"tokens":["a","b"],"offsets":[[0,1],[0,1]],"attention_mask":[1,1],"type_ids":[0,1],"special_tokens_mask":[0,0],"overflow":[]}
{"ids":[65,273],"tokens":["a","Ġb"],"offsets":[[0,1],[1,3]],"attention_mask":[1,1],"type_ids":[0,0],"special_tokens_mask":[0,0],"overflow":[{"ids":[281],"tokens":["Ġc"],"offsets":[[3,5]],"attention_mask":[1],"type_ids":[0],"special_tokens_mask":[0]}]}' \
    "$(printf '["a","b"]\n"a b c"\n' | tok --jsonl --masks --max-length 2 --overflow)"
printf '["a","b c d"]\n"a b c"\n' | tok --jsonl --max-length 2 --truncate only_second >out 2>err
is "exit code of a text that cannot be cut" 65 $?
is "its error stands in its place" '{"ids":[65,66]|{"error": "line 2' "$(sed -E 's/(line [0-9]).*/\1/; s/\].*/]/' out | paste -sd '|')"
code 64 "$textgen" tokenize --tokenizer "$gpt2" --truncate all
code 64 "$textgen" tokenize --tokenizer "$gpt2" --pad length
echo '{"version":' >broken.json
code 65 "$textgen" tokenize --tokenizer broken.json
echo 65 x >words
code 65 "$textgen" detokenize --tokenizer "$gpt2" words
echo 300 >large
code 65 "$textgen" detokenize --tokenizer "$gpt2" large

"$textgen" gentext --seed 3 --lines 300 --out corpus.jsonl
"$textgen" gentext --seed 3 --lines 300 >again.jsonl
is "the same seed, the same corpus" "$(cksum <corpus.jsonl)" "$(cksum <again.jsonl)"
is "a part of a corpus" "$(sed -n '101,110p' corpus.jsonl)" "$("$textgen" gentext --seed 3 --first 100 --lines 10)"
"$textgen" tokenizer train --out trained --vocab-size 400 --max-length 64 corpus.jsonl 2>err
is "training succeeds" 0 $?
"$textgen" tokenizer train --out trained2 --vocab-size 400 --max-length 64 corpus.jsonl 2>err
is "training is reproducible" "$(cat trained/* | cksum)" "$(cat trained2/* | cksum)"
is "files of a trained tokenizer" "merges.txt special_tokens_map.json tokenizer.json tokenizer_config.json vocab.json" "$(cd trained && echo *)"
gpt2=$work/trained
is "a trained tokenizer works" "The box has 4 red pens." "$(printf 'The box has 4 red pens.' | tok | detok)"
"$textgen" tokenizer train --kind unigram --out unigram --vocab-size 200 corpus.jsonl 2>err
is "unigram training succeeds" 0 $?
"$textgen" tokenizer train --kind unigram --out unigram2 --vocab-size 200 corpus.jsonl 2>err
is "unigram training is reproducible" "$(cat unigram/* | cksum)" "$(cat unigram2/* | cksum)"
is "a trained unigram tokenizer works" "The box has 4 red pens." "$(printf 'The box has 4 red pens.' | "$textgen" tokenize --tokenizer unigram | "$textgen" detokenize --tokenizer unigram --skip-special)"
code 64 "$textgen" tokenizer train --kind words --out x corpus.jsonl
code 78 "$textgen" tokenizer train --kind unigram --out x --vocab-size 10 corpus.jsonl
code 64 "$textgen" tokenizer train corpus.jsonl
code 64 "$textgen" tokenizer teach --out x corpus.jsonl
code 66 "$textgen" tokenizer train --out x no-such-file
code 78 "$textgen" tokenizer train --out x --vocab-size 10 corpus.jsonl
echo '{"txt": 1}' >odd.jsonl
code 65 "$textgen" tokenizer train --out x odd.jsonl
is "nothing was half-written" "" "$(ls -d x 2>/dev/null)"
code 64 "$textgen" gentext --lines -1

finish
