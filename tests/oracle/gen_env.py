#!/usr/bin/env python3
"""Cuts the recordings of RL4LMs's own synthetic rewards and metrics down to what the unit tests read.

    gen_env.py RECORDINGS     # a folder with metrics.json and env.json, as RL4LMs 97df0bd produced them

Writes tests/golden/env/rewards.json: prediction, reward of increasing_numbers (min_tokens 20) and of
sentences_with_dates, and the corpus values of the two metrics for the named groups.
Writes tests/golden/env/outputs.json: decoded texts and rewards of the recorded episodes' last steps.
"""
import json
import os
import sys

recordings = sys.argv[1]
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "env")
metrics = json.load(open(os.path.join(recordings, "metrics.json")))
rewards = {r["id"]: r["done"] for r in metrics["rewards"]}
rows, seen = [], set()
for t in metrics["tuples"]:
    done = rewards.get(t["id"], {})
    if "increasing_numbers" not in done or t["prediction"] in seen:
        continue
    seen.add(t["prediction"])
    rows.append({"prediction": t["prediction"], "increasing_numbers": done["increasing_numbers"],
                 "sentences_with_dates": done["sentences_with_dates"]})
corpora = []
by_id = {t["id"]: t for t in metrics["tuples"]}
for name, c in metrics["corpora"].items():
    values = c.get("metrics", {})
    ids = c.get("ids") or c.get("tuples")
    if not ids or "increasing_numbers" not in values or "predictions" in c:
        continue
    key, date = "synthetic/increasing_numbers_in_text", "synthetic/dates_in_text"
    corpora.append({"name": name, "predictions": [by_id[i]["prediction"] for i in ids],
                    key: values["increasing_numbers"][key], date: values["dates"][date]})
json.dump({"rows": rows, "corpora": corpora}, open(os.path.join(here, "rewards.json"), "w"),
          ensure_ascii=False, indent=0)

env = json.load(open(os.path.join(recordings, "env.json")))
outputs, seen = [], set()
for c in env["configs"]:
    for e in c["episodes"]:
        s = e["steps"][-1]
        key = (c["reward"]["id"], json.dumps(c["reward"]["args"]), s["output"])
        if key in seen or not s["done"]:
            continue
        seen.add(key)
        outputs.append({"reward": c["reward"], "output": s["output"], "value": s["reward"]})
json.dump(outputs, open(os.path.join(here, "outputs.json"), "w"), ensure_ascii=False, indent=0)
print(len(rows), "rows,", len(corpora), "corpora,", len(outputs), "outputs")
