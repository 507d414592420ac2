"""Throughput of Hugging Face's tokenizers: arguments are the folder of bench_tokenizer and the number of threads (set by RAYON_NUM_THREADS)."""
import json
import os
import sys
import time

import tokenizers

ROUNDS = 2
folder, threads = sys.argv[1], int(sys.argv[2])
with open(folder + "/text.txt", newline="\n", encoding="utf-8", errors="replace") as f:
    text = f.read()
lines = text.split("\n")
size = len(text.encode()) / 1e6
ours = {}
for line in open(os.environ["TEXTGEN_BENCH_JSON"]) if "TEXTGEN_BENCH_JSON" in os.environ else []:
    r = json.loads(line)
    if "mb_per_s" in r and r.get("who") == "textgen":
        ours[r["kind"], r["what"], r["threads"]] = r["mb_per_s"]


def report(kind, what, seconds, mb):
    rate = mb / seconds
    mine = ours.get((kind, what, threads))
    print(f"{kind:10} {what:16} {threads} thread{'s' if threads > 1 else ' '} {rate:9.2f} MB/s" + (f"   textgen {mine:8.1f}: {mine / rate:5.1f} times" if mine else ""))
    print("json " + json.dumps({"bench": f"tokenizer {kind}, {what}, threads: {threads} (1 MB)", "seconds": 1 / rate, "who": f"tokenizers {tokenizers.__version__}", "kind": kind, "what": what, "threads": threads, "mb_per_s": round(rate, 3)}))


def best(run):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
    return min(times), out


for kind in ("bpe", "bpe split", "unigram", "wordpiece"):
    if not os.path.exists(f"{folder}/{kind}/tokenizer.json"):
        continue
    t = tokenizers.Tokenizer.from_file(f"{folder}/{kind}/tokenizer.json")
    t.no_padding(), t.no_truncation()
    seconds, rows = best(lambda: t.encode_batch(lines))
    report(kind, "encode offsets", seconds, size)
    seconds, _ = best(lambda: t.encode_batch_fast(lines))
    report(kind, "encode", seconds, size)
    ids = [e.ids for e in rows]
    seconds, texts = best(lambda: t.decode_batch(ids))
    report(kind, "decode", seconds, sum(len(x.encode()) for x in texts) / 1e6)
