#!/bin/bash
# Hugging Face's tokenizers on the files that bench_tokenizer left, one thread and two, beside our figures of the same run.
# Needs the packages of tests/oracle; exit 77 without them.
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 77
folder=${BUILD:-build}/bench/tokenizer
[ -e "$folder/text.txt" ] || exit 77
for threads in 1 2; do
    RAYON_NUM_THREADS=$threads TOKENIZERS_PARALLELISM=true "$python" tests/bench/peer_tokenizers.py "$folder" $threads || exit 70
done
