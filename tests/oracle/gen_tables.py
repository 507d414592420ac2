"""Writes tests/golden/tables: small random Parquet files by pyarrow, and in a .jsonl beside each its rows."""
import json
import os

import check_tables

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tables")
os.makedirs(FOLDER, exist_ok=True)
check_tables.rng.seed(12)
for k in range(24):
    base = os.path.join(FOLDER, f"t{k:02}")
    table, _ = check_tables.random_table(base + ".parquet", [1, 5, 20, 40])
    with open(base + ".jsonl", "w") as f:
        for row in table.to_pylist():
            f.write(json.dumps(check_tables.plain(row), ensure_ascii=False) + "\n")
