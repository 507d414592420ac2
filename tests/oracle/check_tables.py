"""Data files against other readers: random Parquet tables against pyarrow, separated text against Python's csv module, Python
literals against ast. Every cell must be equal.

N: Parquet tables (default 400), SEED, BUILD."""
import ast
import csv
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

BUILD = os.environ.get("BUILD", "build")
TOOL = os.path.join(BUILD, "tests", "table-eval")
N = int(os.environ.get("N", "400"))
rng = random.Random(int(os.environ.get("SEED", "1")))
passed = failed = 0


def note(ok, what):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        if failed < 20:
            print(what)


def run(*args, stdin=None):
    out = subprocess.run([TOOL, *args], input=stdin, capture_output=True, check=True)
    return [json.loads(line) for line in out.stdout.decode().split("\n")[:-1]]


WORDS = ["a", "", "der Hund", "naïve café", "日本語", "😀 ok", "x" * 300, "line\nbreak", 'quote "q"', "tab\t", "NA", "0", "\u2028"]


def text():
    return rng.choice(WORDS) if rng.random() < 0.7 else "".join(rng.choice("abcdefgh äöü,;'\"") for _ in range(rng.randrange(40)))


SCALARS = {
    "bool": (pa.bool_(), lambda: rng.random() < 0.5),
    "int8": (pa.int8(), lambda: rng.randrange(-128, 128)),
    "uint8": (pa.uint8(), lambda: rng.randrange(256)),
    "int16": (pa.int16(), lambda: rng.randrange(-2**15, 2**15)),
    "uint16": (pa.uint16(), lambda: rng.randrange(2**16)),
    "int32": (pa.int32(), lambda: rng.choice([0, 1, -1, 2**31 - 1, -2**31, rng.randrange(-2**31, 2**31)])),
    "uint32": (pa.uint32(), lambda: rng.choice([0, 2**32 - 1, rng.randrange(2**32)])),
    "int64": (pa.int64(), lambda: rng.choice([0, 7, 2**63 - 1, -2**63, rng.randrange(-2**63, 2**63)])),
    "uint64": (pa.uint64(), lambda: rng.choice([0, 2**63 - 1, rng.randrange(2**63)])),
    "float16": (pa.float16(), lambda: rng.choice([0.0, 1.5, -2.25, 65504.0, 6e-8, math.inf, math.nan])),
    "float": (pa.float32(), lambda: rng.choice([0.0, -1.5, math.nan, math.inf, rng.random() * 10 ** rng.randrange(-20, 20)])),
    "double": (pa.float64(), lambda: rng.choice([0.0, -1.5, math.nan, -math.inf, rng.random() * 10 ** rng.randrange(-200, 200)])),
    "string": (pa.string(), text),
    "large_string": (pa.large_string(), text),
    "fixed": (pa.binary(4), lambda: "".join(rng.choice("abcd") for _ in range(4)).encode()),
    "binary": (pa.binary(), lambda: text().encode()),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), lambda: rng.choice(["red", "green", "blue"])),
}


def random_type(depth=0):
    roll = rng.random()
    if depth < 3 and roll < 0.18:
        inner, make = random_type(depth + 1)
        return pa.list_(inner), lambda: [maybe(make) for _ in range(rng.choice([0, 0, 1, 2, 5, rng.randrange(60) if rng.random() < 0.1 else 1]))]
    if depth < 3 and roll < 0.3:
        fields = [(f"f{i}", *random_type(depth + 1)) for i in range(rng.randrange(1, 4))]
        kind = pa.struct([pa.field(n, t, nullable=rng.random() < 0.8) for n, t, _ in fields])
        nullable = {f.name: f.nullable for f in kind}
        return kind, lambda: {n: (maybe(m) if nullable[n] else m()) for n, _, m in fields}
    if depth < 2 and roll < 0.33:
        inner, make = random_type(depth + 1)
        return pa.map_(pa.string(), inner), lambda: [(f"k{i}", maybe(make)) for i in range(rng.randrange(4))]
    names = [n for n in SCALARS if depth == 0 or n != "dictionary"]
    return SCALARS[rng.choice(names)]


def maybe(make, p=0.15):
    return None if rng.random() < p else make()


def plain(v):
    if isinstance(v, bytes):
        return v.decode()
    if isinstance(v, float):
        return v if math.isfinite(v) else None
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, tuple):  # an entry of a map
        return {"key": plain(v[0]), "value": plain(v[1])}
    if isinstance(v, list):
        return [plain(x) for x in v]
    return v


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and float(a) == float(b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def encodings(schema):
    """Encodings that pyarrow allows for the flat columns."""
    out = {}
    for f in schema:
        if pa.types.is_int32(f.type) or pa.types.is_int64(f.type):
            out[f.name] = rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
        elif pa.types.is_string(f.type) or pa.types.is_binary(f.type):
            out[f.name] = rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
        elif pa.types.is_floating(f.type) and f.type != pa.float16():
            out[f.name] = rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"])
        elif pa.types.is_boolean(f.type):
            out[f.name] = rng.choice(["PLAIN", "RLE"])
    return out


def random_table(path, sizes):
    """Writes a random table; returns it with the options it was written with."""
    while True:
        n = rng.choice(sizes)
        columns, fields = [], []
        for c in range(rng.randrange(1, 6)):
            kind, make = random_type()
            nullable = rng.random() < 0.75
            p = rng.choice([0, 0.1, 0.9, 1]) if nullable else 0
            columns.append(pa.array([maybe(make, p) for _ in range(n)], type=kind))
            fields.append(pa.field(f"c{c}", kind, nullable=nullable))
        schema = pa.schema(fields)
        table = pa.Table.from_arrays(columns, schema=schema)
        options = dict(
            compression=rng.choice(["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"]),
            data_page_version=rng.choice(["1.0", "2.0"]),
            row_group_size=rng.choice([None, 1, 7, 50, 500]) or max(n, 1),
            data_page_size=rng.choice([None, 1, 64, 1000, 100000]),
            dictionary_pagesize_limit=rng.choice([None, 10, 200]),
            write_page_checksum=rng.random() < 0.3,
            write_batch_size=rng.choice([None, 1, 10, 100]),
            use_compliant_nested_type=rng.random() < 0.8,
            version=rng.choice(["1.0", "2.4", "2.6"]),
            write_statistics=rng.random() < 0.7,
        )
        if rng.random() < 0.4:
            options["use_dictionary"] = False
            options["column_encoding"] = encodings(schema) or None
        try:
            pq.write_table(table, path, **options)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError) as e:
            print("not written:", e)
            continue
        return table, options


def check_parquet(folder):
    path = os.path.join(folder, "t.parquet")
    for k in range(N):
        table, options = random_table(path, [0, 1, 2, 7, 30, 100, 100, 300, 2000 if k % 10 == 0 else 50])
        want = [plain(row) for row in table.to_pylist()]
        got = run(path)
        note(same(got, want), f"table {k}: {table.schema} {options}\n  got  {str(got)[:600]}\n  want {str(want)[:600]}")
        if want:
            name = rng.choice(table.schema.names)
            got = run("--columns", f"{name},other", path)
            note(same(got, [{name: row[name]} for row in want]), f"table {k}: column {name} alone")


def check_csv(folder):
    for k in range(N):
        separator, suffix = rng.choice([(",", "csv"), ("\t", "tsv")])
        width = rng.randrange(1, 5)
        names = [f"c{i}" for i in range(width)]
        rows = [[text() for _ in names] for _ in range(rng.randrange(0, 20))]
        rows = [r for r in rows if width > 1 or r[0].strip(" \t")]  # a blank line is no record
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
                            lineterminator=rng.choice(["\n", "\r\n"]))
        writer.writerow(names)
        writer.writerows(rows)
        path = os.path.join(folder, "t." + suffix)
        with open(path, "w", newline="") as f:
            f.write(out.getvalue())
        want = [dict(zip(names, r)) for r in csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=separator)][1:]
        want = [w for w in want if w]
        note(run(path) == want, f"csv {k}: {out.getvalue()!r}\n  got {run(path)}\n  want {want}")


def literal(depth=0):
    roll = rng.random()
    if depth < 3 and roll < 0.3:
        return [literal(depth + 1) for _ in range(rng.randrange(4))]
    if depth < 3 and roll < 0.5:
        return {text(): literal(depth + 1) for _ in range(rng.randrange(3))}
    return rng.choice([None, True, False, rng.randrange(-10**9, 10**9), rng.random() * 1e9, text(), text(), "it's", 'a "b" \'c\'', "\\n", "\x07\x7f"])


def check_literals():
    values = [literal() for _ in range(N * 5)]
    got = run("--literal", stdin="".join(repr(v) + "\n" for v in values).encode())
    for v, g in zip(values, got):
        note(same(g, ast.literal_eval(repr(v))), f"literal {v!r}: {g!r}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_parquet(folder)
        check_csv(folder)
    check_literals()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)
