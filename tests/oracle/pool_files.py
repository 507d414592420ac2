"""What gen_pools.py writes its tiny data sets and cases with. ROOT is where; CASES is what each pool must give."""
import csv
import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "pools")
CASES = []


def write(path, text, packed=False):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = text.encode()
    with open(path, "wb") as f:
        f.write(gzip.compress(data, mtime=0) if packed else data)


def jsonl(path, rows):
    write(path, "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))


def table_csv(path, rows, separator=","):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys(), delimiter=separator)
        w.writeheader()
        w.writerows(rows)


def parquet(path, rows, **options):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, **options)


def case(pool, path, split, samples, compat=False, seed=0, **args):
    if path is not None:
        args["path"] = path
    CASES.append({"pool": pool, "split": split, "compat": compat, "seed": seed, "args": args, "samples": samples})


def error(pool, path, split, text, status, **args):
    if path is not None:
        args["path"] = path
    CASES.append({"pool": pool, "split": split, "args": args, "error": text, "status": status})


def sample(id, prompt, references, meta=None):
    return {"id": id, "prompt": prompt, "references": references, "meta": meta}
