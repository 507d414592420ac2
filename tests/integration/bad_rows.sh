#!/bin/bash
# Files that people really have: every reader names file and row of what is wrong, leaves bad rows out when it is told to, and says
# how many. What is only unusual (CRLF, a byte order mark, lines of a megabyte) is read.
. tests/support/script.sh bad_rows
textgen=$bin/textgen-env tables=$PWD/tests/golden/tables
sed '/^datapool:/,/^$/d' configs/increasing_numbers.yml >"$work/base.yml"
cd "$work" || exit 70
data() { # FILE MODE: ids on stdout, messages in err
    local kind=${1##*.} more=(datapool.args.prompt=p datapool.args.references=r)
    [ $kind = txt ] && kind=text more=(datapool.args.unit=line)
    "$textgen" data base.yml datapool.id=$kind datapool.args.train="$PWD/$1" "${more[@]}" datapool.args.on_bad_row=$2 --jsonl >out 2>all
    local code=$?
    grep -v "tokens are not counted" all >err
    return $code
}
# good FILE N: that many samples, nothing to complain about
good() {
    data "$1" fail
    is "$1" "0 $2 0" "$? $(wc -l <out) $(wc -l <err)"
}
# bad FILE PATTERN BAD OF: fatal with this message; of OF rows BAD are left out
bad() {
    data "$1" fail
    is "$1: exit code" 65 $?
    is "$1: message" yes "$(grep -qE "$1:? ?(row )?$2" err && [ "$(wc -l <err)" = 1 ] && echo yes || cat err)"
    data "$1" skip
    local code=$?
    if [ "$3" = "$4" ]; then
        is "$1: all bad" "65 yes" "$code $(grep -q "all rows were bad" err && echo yes || cat err)"
    else
        is "$1: skipping" "0 $(($4 - $3)) yes" "$code $(wc -l <out) $(grep -qE "$3 of $4 rows were bad and skipped.*$1:? ?(row )?$2" err && echo yes || cat err)"
    fi
}
# broken FILE PATTERN: of no use in either mode
broken() {
    for mode in fail skip; do
        data "$1" $mode
        is "$1: $mode" "65 yes" "$? $(grep -qE "$1.*$2" err && echo yes || cat err)"
    done
}
megabyte=$(printf 'word %.0s' {1..210000})
one='{"p": "a", "r": "b"}' two='{"p": "c", "r": "d"}'

printf '%s\r\n%s\r\n' "$one" "$two" >crlf.jsonl;                    good crlf.jsonl 2
printf '\xef\xbb\xbf%s\n\n  \n%s' "$one" "$two" >bom.jsonl;         good bom.jsonl 2
printf '%s\n{"p": "%s", "r": "b"}\n' "$one" "$megabyte" >long.jsonl; good long.jsonl 2
rows() { printf '%s\n%s\n%s\n' "$one" "$1" "$two"; }
rows '{"p": "a\u0000b", "r": "x"}' >nul.jsonl;        bad nul.jsonl '2: .*NUL' 1 3
printf '%s\n{"p": "a\0b", "r": "x"}\n' "$one" >zero.jsonl;  bad zero.jsonl '2: not JSON: control character 0x0' 1 2
rows $'{"p": "a\xff", "r": "x"}' >utf8.jsonl;         bad utf8.jsonl '2: not JSON: .*0xff' 1 3
rows '{"p": "\ud800", "r": "x"}' >half.jsonl;         bad half.jsonl '2: not JSON: invalid Unicode' 1 3
rows '{"p": "never ends, "r": "x"}' >quote.jsonl;     bad quote.jsonl '2: not JSON' 1 3
rows "{\"p\": \"$megabyte" >longbad.jsonl;            bad longbad.jsonl '2: not JSON: premature end' 1 3
rows '{"r": "x"}' >missing.jsonl;                     bad missing.jsonl '2: .*no field "p"; the row has: r' 1 3
rows '{"p": null, "r": "x"}' >null.jsonl;             bad null.jsonl '2: .*"p" is null' 1 3
rows '{"p": {"a": 1}, "r": 5}' >type.jsonl;           bad type.jsonl '2: "p" is not a text' 1 3
rows '[1, 2]' >list.jsonl;                            bad list.jsonl '2: ' 1 3
rows '{"p": "a", "r": "b"} x' >more.jsonl;            bad more.jsonl '2: not JSON: end of file expected' 1 3
rows "{\"p\": \"a\", \"r\": $(printf '[%.0s' {1..5000})" >deep.jsonl; bad deep.jsonl '2: not JSON: maximum parsing depth' 1 3
printf '%s\n%s' "$one" "${two:0:15}" >cut.jsonl;      bad cut.jsonl '2: not JSON: .*end of file' 1 2
: >empty.jsonl;                                       broken empty.jsonl 'no samples'

for kind in csv tsv; do
    s=,; [ $kind = tsv ] && s=$'\t'
    printf "p${s}r\r\na${s}b\r\nc${s}d\r\n" >crlf.$kind;           good crlf.$kind 2
    printf "p${s}r\ra${s}b\rc${s}d\r" >cr.$kind;                   good cr.$kind 2
    printf "\xef\xbb\xbfp${s}r\na${s}b\n\n" >bom.$kind;            good bom.$kind 1
    printf "p${s}r\n\"%s\n\"\"\"${s}b\n" "$megabyte" >long.$kind;  good long.$kind 1
    rows() { printf "p${s}r\na${s}b\n$1\nc${s}d\n"; }
    rows "a\0b${s}c" >nul.$kind;         bad nul.$kind '3: field "p": the text has a NUL' 1 3
    rows "a\xff${s}c" >utf8.$kind;       bad utf8.$kind '3: field "p": not UTF-8 \(byte 0xff\)' 1 3
    rows "only" >few.$kind;              bad few.$kind '3: 1 fields; expected 2' 1 3
    rows "a${s}b${s}c" >many.$kind;      bad many.$kind '3: 3 fields; expected 2' 1 3
    rows "\"never ends${s}b" >quote.$kind; bad quote.$kind '3: a double quote is not closed' 1 2
    printf "p${s}q\na${s}b\n" >missing.$kind; bad missing.$kind '2: .*no field "r"; the row has: p, q' 1 1
    printf "p${s}p${s}r\na${s}b${s}c\n" >twice.$kind; broken twice.$kind ':1: two columns are named "p"'
    : >empty.$kind;                      broken empty.$kind 'no header'
    printf "p${s}r\n" >head.$kind;       broken head.$kind 'no samples'
done

printf 'one\r\n\xc3\xa9\r\n' >crlf.txt;   good crlf.txt 2
printf '\xef\xbb\xbfone\n' >bom.txt;      good bom.txt 1
printf 'a\n%s\n' "$megabyte" >long.txt;   good long.txt 2
printf 'a\nb\0\nc\n' >nul.txt;            bad nul.txt '2: the text has a NUL' 1 3
printf 'a\nb\xff\nc\n' >utf8.txt;         bad utf8.txt '2: not UTF-8 \(byte 0xff\)' 1 3
: >empty.txt;                             broken empty.txt 'no samples'

whole=$(ls -S "$tables"/*.parquet | head -n 1) size=$(stat -c %s "$(ls -S "$tables"/*.parquet | head -n 1)")
head -c $((size / 2)) "$whole" >half.parquet;  broken half.parquet 'not a \(whole\) Parquet file'
head -c $((size - 1)) "$whole" >tail.parquet;  broken tail.parquet 'not a \(whole\) Parquet file'
head -c 3 "$whole" >three.parquet;             broken three.parquet 'not a \(whole\) Parquet file'
: >empty.parquet;                              broken empty.parquet 'not a \(whole\) Parquet file'
{ head -c $((size - 8)) "$whole"; printf '\xff\xff\xff\x7fPAR1'; } >footer.parquet
broken footer.parquet 'the footer is longer than the file'
cp "$whole" columns.parquet;                   broken columns.parquet 'row 1: .*no field "p"; the row has'

finish
