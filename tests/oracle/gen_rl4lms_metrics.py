"""Writes tests/golden/metrics/rl4lms.jsonl from a recording of RL4LMs's own metrics and rewards.

    gen_rl4lms_metrics.py DIR ID...     DIR holds metrics.json; IDs: metrics and rewards to take (default: all of this list)
"""
import json
import sys

import golden

IDS = sys.argv[2:] or ["meteor", "cider", "diversity", "parent_totto", "bleu_totto", "common_gen_repeat_penalty", "parent"]
m = json.load(open(sys.argv[1] + "/metrics.json"))
tuples = {t["id"]: t for t in m["tuples"]}


def item(id, label, prediction=None, references=None):
    t = tuples[id]
    o = {"prediction": t["prediction"] if prediction is None else prediction, "references": references or t["references"], "prompt": t["prompt"]}
    if t["meta"] and ("totto" in label or "parent" in label):
        o["meta"] = {"raw_table": m["tables"][t["meta"]["table"]]} if set(t["meta"]) == {"table"} else t["meta"]
    return o


def number(v):
    return float(v) if isinstance(v, str) else v


def values(v):
    if "error" in v:
        return None
    return {k: {"corpus": number(x["corpus"]), "samples": x["individual"]} for k, x in v.items()}


out = []
for p in m["per_sample"]:
    for label, v in p["metrics"].items():
        d = m["metric_definitions"][label]
        if d["id"] in IDS and values(v):
            if label != "diversity":  # the smaller window shows all it can show of one text
                out.append({"metric": d["id"], "args": d["args"], "compat": True, "items": [item(p["id"], d["id"])], "values": values(v)})
for name, c in m["corpora"].items():
    for label, v in c["metrics"].items():
        d = m["metric_definitions"].get(label)
        if not d or d["id"] not in IDS or not values(v) or (name == "repeated_prompt" and d["id"] == "cider"):
            continue
        predictions = c.get("predictions") or [None] * len(c["ids"])
        items = []
        for i, p in zip(c["ids"], predictions):
            refs = tuples[i]["references"]
            used = c["references_used"]
            if used.startswith("first "):
                refs = refs[: int(used[6:])]
            items.append(item(i, d["id"], p, refs))
        out.append({"metric": d["id"], "args": d["args"], "compat": True, "items": items, "values": values(v)})
for r in m["rewards"]:
    for label, v in r["done"].items():
        d = m["reward_definitions"][label]
        shaping = d["args"].get("shaping_fn")
        if d["id"] in IDS and (not shaping or shaping in IDS) and isinstance(v, (int, float)):
            out.append({"reward": d["id"], "args": d["args"], "compat": True, "items": [item(r["id"], d["id"] + str(shaping))], "values": [v]})
golden.write("rl4lms", out)
print(len(out), "cases")
