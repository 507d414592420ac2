"""Writes tests/golden/pools: tiny data sets in every layout that a data pool reads, and in cases.jsonl the samples that each pool
must give from them. The samples are made here from the rows, by the definitions of RL4LMs's and TRIL's pools and of the hub's
loading scripts, not by the code under test. Run with the Python of tests/oracle (pyarrow, numpy)."""
import gzip
import os
import shutil

from pool_files import CASES, ROOT, case, error, jsonl, parquet, sample, table_csv, write
from pool_tables import commongen, imdb, totto
from pool_texts import dialogues, narrative, summaries, tldr, translation


# ---- any rows ----------------------------------------------------------------------------------
def generic():
    rows = [{"q": f"Question {i}?", "a": f"Answer, \"{i}\"", "lang": "de" if i % 3 == 0 else "en", "score": i / 4} for i in range(8)]
    for split in ("train", "validation"):
        jsonl(f"rows/{split}.jsonl", rows)
    jsonl("rows-jsonl/all.jsonl", rows)
    table_csv("rows-csv/all.csv", rows)
    table_csv("rows-tsv/all.tsv", rows, "\t")
    parquet("rows-parquet/all.parquet", rows, row_group_size=3)
    for pool in ("jsonl", "csv", "tsv", "parquet"):
        args = dict(prompt="q", references="a")
        path = f"rows-{pool}/all.{pool}"
        case(pool, path, "val", [sample(f"val_{i}", r["q"], [r["a"]]) for i, r in enumerate(rows)], **args)
        chosen = [r for r in rows if r["lang"] == "en" and r["score"] >= 0.5]
        case(pool, path, "train", [sample(f"train_{i}", f"{r['lang']}: {r['q']}", [f"A: {r['a']}"]) for i, r in enumerate(chosen)],
             template="{lang}: {q}", reference_template="A: {a}", filter=["lang == en", "score >= 0.5"])
        for k, split in enumerate(("train", "val", "test")):
            part = (rows[:4], rows[4:6], rows[6:7])[k]
            case(pool, path, split, [sample(f"{split}_{i}", r["q"], [r["a"]]) for i, r in enumerate(part)], ratios=[0.5, 0.25, 0.2], **args)
        error(pool, path, "train", "no field \"nothing\"", "DATA", prompt="nothing")
    case("jsonl", "rows", "val", [sample(f"val_{i}", r["q"], []) for i, r in enumerate(rows)], prompt="q")
    for i in (1, 2, 10):
        write(f"texts/train/{i}.txt", f"Text {i}\nof two lines\n")
    write("texts/val.txt", "one\ntwo\n")
    case("text", "texts", "train", [sample(f"train_{k}", f"Text {i}\nof two lines\n", []) for k, i in enumerate((1, 2, 10))])
    case("text", "texts", "val", [sample("val_0", "one", []), sample("val_1", "two", [])], unit="line")
    case("text", "texts/train", "test", [sample(f"test_{k}", f"{i}.txt: Text {i}\nof two lines\n", []) for k, i in enumerate((1, 2, 10))], template="{file}: {text}")
    write("arrow/dataset_dict.json", "{}")
    error("imdb", "arrow", "train", "load_from_disk", "UNSUPPORTED")
    write("rows-bad/train.csv", "q,a\n1,2\n3\n\"open,4\n")
    error("csv", "rows-bad/train.csv", "train", "train.csv:3: 1 fields; expected 2", "DATA", prompt="q")
    case("csv", "rows-bad/train.csv", "train", [sample("train_0", "1", [])], prompt="q", on_bad_row="skip")
    write("rows-bad/latin1.csv", "q,a\n")
    with open(os.path.join(ROOT, "rows-bad/latin1.csv"), "ab") as f:
        f.write("Käse,x\n".encode("latin-1"))
    error("csv", "rows-bad/latin1.csv", "train", "latin1.csv:2: field \"q\": not UTF-8", "DATA", prompt="q")
    write("rows-bad/empty.parquet", "")
    error("parquet", "rows-bad/empty.parquet", "train", "not a (whole) Parquet file", "DATA")
    with open(os.path.join(ROOT, "rows-bad/broken.csv.gz"), "wb") as f:
        f.write(gzip.compress(b"q,a\n1,2\n" * 100, mtime=0)[:-9])
    error("csv", "rows-bad/broken.csv.gz", "train", "not a whole gzip file", "DATA", prompt="q")


if __name__ == "__main__":
    shutil.rmtree(ROOT, ignore_errors=True)
    for make in (imdb, commongen, totto, summaries, narrative, translation, dialogues, tldr, generic):
        make()
    for c in CASES:
        seed = c["args"].pop("args_seed", None)
        if seed is not None:
            c["args"]["seed"] = seed
    jsonl("cases.jsonl", CASES)
    print(f"{len(CASES)} cases")
