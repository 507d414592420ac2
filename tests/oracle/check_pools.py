"""Data pools on the real samples that lie in TEXTGEN_ASSETS (or the first argument): aclImdb, CommonGen, ToTTo, NarrativeQA,
DailyDialog, IWSLT, Multi30k and CRD3 in their native layouts. `textgen data` must give the samples that the definitions of the
pools and of the hub's loaders give, computed here. Without such a folder it says so and passes."""
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

BUILD = os.environ.get("BUILD", "build")
ASSETS = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TEXTGEN_ASSETS", "")
DATA = os.path.join(ASSETS, "data")
passed = failed = 0


def textgen(pool, split, args):
    config = {"tokenizer": {"model_name": "textgen/tiny"}, "reward_fn": {"id": "increasing_numbers", "args": {"min_tokens": 4}},
              "datapool": {"id": pool, "args": args}, "env": {"args": {"max_prompt_length": 20, "max_episode_length": 20}},
              "alg": {"id": "ppo"}, "train_evaluation": {}}
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
        json.dump(config, f)
        f.flush()
        out = subprocess.run([os.path.join(BUILD, "textgen"), "data", f.name, "--split", split, "--limit", "1000000", "--jsonl"], capture_output=True)
    if out.returncode:
        return out.stderr.decode()
    return [json.loads(x) for x in out.stdout.decode().split("\n")[:-1]]


def check(pool, split, args, want):
    global passed, failed
    got = textgen(pool, split, args)
    keys = ("id", "prompt", "references", "meta")
    want = [dict(zip(keys, w)) for w in want]
    if got == want:
        passed += 1
        print(f"{pool} {split} {os.path.relpath(args['path'], DATA)}: {len(want)} samples")
    else:
        failed += 1
        first = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), "count") if isinstance(got, list) else "-"
        print(f"{pool} {split} {args}: differs at {first}: {str(got if isinstance(got, str) else got[:1])[:500]} | {str(want[:1])[:500]}")


def imdb(root):
    rows = {}
    for split in ("train", "test"):
        rows[split] = []
        for label, folder in enumerate(("neg", "pos")):
            d = os.path.join(root, split, folder)
            names = sorted(os.listdir(d), key=lambda n: [int(x) for x in re.findall(r"\d+", n)]) if os.path.isdir(d) else []
            rows[split] += [(open(os.path.join(d, n), newline="").read(), label) for n in names]
    for seed in (42, 1):
        for split in ("train", "val", "test"):
            source = rows["test" if split == "test" else "train"]
            if not source:
                continue
            source = [source[i] for i in np.random.default_rng(seed).permutation(len(source))]
            cut = int(len(source) * 0.8)
            part = {"train": source[:cut], "val": source[cut:], "test": source[:5000]}[split]
            out = []
            for i, (text, _) in enumerate(part):
                words = text.split(" ")
                out.append((f"{split}_{i}", " ".join(words[: int(len(words) * 0.5)]), [text], None))
            check("imdb", split, {"path": root, "seed": seed}, out)


def jsonl(path):
    return [json.loads(x) for x in open(path)]


def commongen(root):
    for split, name in (("val", "commongen.dev.jsonl"), ("test", "commongen.test_noref.jsonl")):
        out = []
        for i, r in enumerate(jsonl(os.path.join(root, name))):
            concepts = r["concept_set"].split("#")
            target = r["scene"][0] if split == "val" else "empty reference"
            out.append((f"{split}_{i}", "summarize: " + " ".join(concepts) + " ", [target], {"concepts": concepts}))
        check("commongen", split, {"path": root}, out)


def totto(root, names):
    steps = ("original_sentence", "sentence_after_deletion", "sentence_after_ambiguity", "final_sentence")

    def table_text(item, titles):
        table, out = item["table"], ""
        if titles and item["table_page_title"]:
            out += f"<page_title> {item['table_page_title']} </page_title> "
        if titles and item["table_section_title"]:
            out += f"<section_title> {item['table_section_title']} </section_title> "
        out += "<table> "
        for r, c in item["highlighted_cells"]:
            begin = sum(x["column_span"] for x in table[r][:c])
            end = begin + table[r][c]["column_span"]
            out += f"<cell> {table[r][c]['value']} "
            for row in table[:r]:
                at = 0
                for x in row:
                    if at < end and at + x["column_span"] > begin and x["is_header"]:
                        out += f"<col_header> {x['value']} </col_header> "
                    at += x["column_span"]
            out += "".join(f"<row_header> {x['value']} </row_header> " for x in table[r][:c] if x["is_header"]) + "</cell> "
        return out + "</table>"

    for split, name in names.items():
        out = []
        for i, item in enumerate(jsonl(os.path.join(root, name))):
            annotations = [{s: a[s] for s in steps} for a in item.get("sentence_annotations") or [dict.fromkeys(steps, "none")]]
            raw = {k: item[k] for k in ("table_page_title", "table_webpage_url", "table_section_title", "table_section_text", "table", "highlighted_cells")}
            raw.update(id=i, example_id=str(item["example_id"]), overlap_subset=str(item.get("overlap_subset", "none")) == "True",
                       sentence_annotations=annotations[:1] if split == "test" else annotations)
            refs = [""] if split == "test" else [a["final_sentence"] for a in annotations]
            out.append((f"{split}_{i}", table_text(item, False) + table_text(item, True), refs, {"raw_table": raw}))
        check("totto", split, {"path": root}, out)


def narrative(root):
    summaries = {r["document_id"]: r["summary"] for r in csv.DictReader(open(os.path.join(root, "third_party/wikipedia/summaries.csv"), newline=""))}
    for split, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        groups = {}
        for r in csv.DictReader(open(os.path.join(root, "qaps.csv"), newline="")):
            if r["set"] == name:
                groups.setdefault(f"{r['question']} \\n {summaries[r['document_id']]}", []).extend([r["answer1"], r["answer2"]])
        clean = lambda t: t.lower().replace("'", "")  # noqa: E731
        check("narrative_qa", split, {"path": root},
              [(f"{split}_{i}", clean(p), [clean(a).strip() for a in answers], None) for i, (p, answers) in enumerate(groups.items())])


def dialogs(root):
    for split, name in (("train", "train"), ("val", "validation"), ("test", "test")):
        base = os.path.join(root, f"{name}.zip", name)
        read = lambda kind: open(os.path.join(base, f"dialogues_{kind}{name}.txt")).read().splitlines()  # noqa: E731
        for size in (2, 5):
            out, number = [], 0
            for text, act, emotion in zip(read(""), read("act_"), read("emotion_")):
                context = []
                for u, a, e in zip(text.split("__eou__")[:-1], map(int, act.split()), map(int, emotion.split())):
                    if len(context) >= size:
                        out.append((number, "<EOU>".join(context[-size:]) + " <EOU>", [u + "<EOU>"], {"emotion": [e], "intent": [a]}))
                    context.append(u)
                    number += 1
            check("daily_dialog", split, {"path": root, "context_size": size}, out)


def iwslt(root):
    folder = os.path.join(root, "en-de")
    names = {"train": ["train.tags.en-de.{}"], "val": ["IWSLT17.TED.dev2010.en-de.{}.xml"],
             "test": [f"IWSLT17.TED.tst{y}.en-de.{{}}.xml" for y in range(2010, 2016)]}
    for split, files in names.items():
        rows = []
        for name in files:
            with open(os.path.join(folder, name.format("en"))) as a, open(os.path.join(folder, name.format("de"))) as b:
                for s, t in zip(a, b):  # as the hub's loader reads them
                    s, t = s.strip(), t.strip()
                    if s.startswith("<"):
                        if not s.startswith("<seg"):
                            continue
                        s, t = (x.split(">")[1].split("<")[0].strip() for x in (s, t))
                    rows.append((s, t))
        check("iwslt2017en_de", split, {"path": root}, [(f"{split}_{i}", s, [t], None) for i, (s, t) in enumerate(rows)])


def multi30k(root):
    for split, name in (("val", "val"), ("test", "test_2016_flickr")):
        read = lambda lang: gzip.open(os.path.join(root, f"{name}.{lang}.gz"), "rt", newline="\n").read().split("\n")[:-1]  # noqa: E731
        rows = [(a, b) for a, b in zip(read("en"), read("de")) if a and b]
        check("wmt16", split, {"path": root, "wmt_id": "wmt16", "source_language": "en", "target_language": "de"},
              [(f"{split}_{i}", s, [t], None) for i, (s, t) in enumerate(rows)])


def crd3(root):
    aligned = os.path.join(root, "data", "aligned data")
    for split in ("train", "val", "test"):
        out = []
        for e, name in enumerate(x for x in open(os.path.join(aligned, f"{split}_files")).read().splitlines() if x):
            files = sorted(os.path.join(d, f) for d, _, fs in os.walk(aligned) for f in fs if f.startswith(name + "_"))
            turns = {}
            for chunk in json.load(open(files[0])):
                for t in chunk["TURNS"]:
                    turns.setdefault(t["NUMBER"], t)
            context = []
            for t, turn in enumerate(turns.values()):
                text = " ".join(turn["UTTERANCES"])
                if len(context) > 1:
                    out.append((f"{split}_ep_{e}_turn_{t}", "\n".join(context[-3:]) + "\n" + turn["NAMES"][0] + ": ", [text], None))
                context.append(turn["NAMES"][0] + ": " + text)
        check("crd3", split, {"path": root, "max_context_size": 3}, out)


if not os.path.isdir(DATA):
    print("skipped: TEXTGEN_ASSETS names no folder with data/\n1 passed, 0 failed")
    sys.exit(0)
with tempfile.TemporaryDirectory() as folder:
    for name in os.listdir(os.path.join(DATA, "aclImdb")):
        if name.endswith(".tar.gz"):
            tarfile.open(os.path.join(DATA, "aclImdb", name)).extractall(folder, filter="data")
            imdb(os.path.join(folder, "aclImdb"))
commongen(os.path.join(DATA, "commongen"))
totto(os.path.join(DATA, "totto-sample"), {"train": "train_sample.jsonl", "val": "dev_sample.jsonl"})
totto(os.path.join(DATA, "totto-hf-sample/dummy_data/totto_data.zip/totto_data"),
      {"train": "totto_train_data.jsonl", "val": "totto_dev_data.jsonl", "test": "unlabeled_totto_test_data.jsonl"})
narrative(os.path.join(DATA, "narrativeqa-hf-sample/dummy_data/master.zip/narrativeqa-master"))
dialogs(os.path.join(DATA, "dailydialog-hf-sample/dummy_data/ijcnlp_dailydialog"))
iwslt(os.path.join(DATA, "iwslt2017-en-de-hf-sample/dummy_data"))
multi30k(os.path.join(DATA, "multi30k-en-de"))
crd3(os.path.join(DATA, "crd3-hf-sample/dummy_data/CRD3-master"))
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
