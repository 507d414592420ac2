"""Writes tests/golden/pools: tiny data sets in every layout that a data pool reads, and in cases.jsonl the samples that each pool
must give from them. The samples are made here from the rows, by the definitions of RL4LMs's and TRIL's pools and of the hub's
loading scripts, not by the code under test. Run with the Python of tests/oracle (pyarrow, numpy)."""
import csv
import gzip
import hashlib
import json
import os
import shutil

import numpy as np
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


# ---- imdb --------------------------------------------------------------------------------------
def imdb():
    def review(i, label):
        words = ["good" if label else "bad", "film", f"number{i}", "<br", "/>", "über", "the  double", "end."]
        return " ".join(words[: 1 + (i * 7) % 8])

    rows = {}
    for split in ("train", "test"):
        rows[split] = []
        for label, folder in ((0, "neg"), (1, "pos")):
            for i in range(12 if split == "train" else 6):
                text = review(i, label)
                rows[split].append({"text": text, "label": label})
                write(f"aclImdb/{split}/{folder}/{i}_{1 + i % 4 + 5 * label}.txt", text)
    parquet("imdb-parquet/plain_text/train-00000-of-00002.parquet", rows["train"][:10], compression="snappy")
    parquet("imdb-parquet/plain_text/train-00001-of-00002.parquet", rows["train"][10:], compression="snappy")
    parquet("imdb-parquet/plain_text/test-00000-of-00001.parquet", rows["test"], compression="snappy")
    table_csv("imdb-csv/train.csv", rows["train"])
    table_csv("imdb-csv/test.csv", [{"review": r["text"], "sentiment": "positive" if r["label"] else "negative"} for r in rows["test"]])

    def part(split, seed):
        source = rows["test" if split == "test" else "train"]
        order = np.random.default_rng(seed).permutation(len(source))
        shuffled = [source[i] for i in order]
        cut = int(len(shuffled) * 0.8)
        return {"train": shuffled[:cut], "val": shuffled[cut:], "test": shuffled[:5000]}[split]

    def halves(text):
        w = text.split(" ")
        return " ".join(w[: int(len(w) * 0.5)]), " ".join(w[int(len(w) * 0.5):])

    for folder in ("aclImdb", "imdb-parquet", "imdb-csv", "."):
        for split in ("train", "val", "test"):
            if folder == "." and split != "val":
                continue
            for seed in (42, 3):
                case("imdb", folder, split,
                     [sample(f"{split}_{i}", halves(r["text"])[0], [r["text"]]) for i, r in enumerate(part(split, seed))], seed=99, **{"args_seed": seed})
        case("imdb", folder, "train", [sample(f"train_{i}", halves(r["text"])[0], [r["text"]]) for i, r in enumerate(part("train", 5))], seed=5)
    for split in ("train", "val", "test"):
        for ratio in (1.0, 0.3):
            out = [sample(f"{split}_{i}", halves(r["text"])[0], [halves(r["text"])[1]], {"reference": r["text"]})
                   for i, r in enumerate(part(split, 11)) if split != "train" or r["label"] == 1]
            if split == "train":
                out = out[: int(len(out) * ratio)]
            case("imdb_seq2seq", "aclImdb", split, out, seed=11, positive_ratio=ratio)
    out = [sample(f"val_{i}", halves(r["text"])[0], [halves(r["text"])[1]], {"reference": r["text"]})
           for i, r in enumerate(part("val", 11)) if r["label"] == 1]
    case("imdb_seq2seq", "aclImdb", "val", out, seed=11, positive="all")
    # unseeded shuffles of `datasets`: words of numpy's global state, which has moved on by two for each
    numpy_seed = 4
    state = np.random.RandomState(numpy_seed)
    for k, split in enumerate(("train", "val", "test")):
        words = state.get_state()
        seed = int(words[1][0 if words[2] == 624 else words[2]])
        out = [sample(f"{split}_{i}", halves(r["text"])[0], [halves(r["text"])[1]], {"reference": r["text"]})
               for i, r in enumerate(part(split, seed)) if split != "train" or r["label"] == 1]
        case("imdb_seq2seq", "aclImdb", split, out, seed=numpy_seed, compat=True)
        state.random_sample()
    error("imdb", "nowhere", "train", "aclImdb/train/{neg,pos}", "NOINPUT")
    error("imdb", "aclImdb", "val", "takes val from the training reviews", "CONFIG", val="x.jsonl")


# ---- commongen ---------------------------------------------------------------------------------
def commongen():
    native = {
        "train": [{"concept_set": "ski#mountain#skier", "scene": ["Skier skis down the mountain", "A skier is \"skiing\"."]},
                  {"concept_set": "dog#run", "scene": ["A dog runs.", "", "Dogs run – fast."], "reason": ["x"]},
                  {"concept_set": "one", "scene": []}],
        "val": [{"concept_set": "field#look#stand", "scene": ["The player stood in the field.", "I stood and looked."], "reason": []}],
        "test": [{"concept_set": "drill#field#run#team"}, {"concept_set": "größe#maß"}],
    }
    jsonl("commongen/commongen.train.jsonl", native["train"])
    jsonl("commongen/commongen.dev.jsonl", native["val"])
    jsonl("commongen/commongen.test_noref.jsonl", native["test"])
    rows = {"train": [], "val": [], "test": []}
    for split, items in native.items():
        for item in items:
            concepts = item["concept_set"].split("#")
            if split == "train":
                rows[split] += [{"concepts": concepts, "target": s, "references": []} for s in item["scene"]]
            else:
                scenes = item.get("scene", []) if split == "val" else []
                rows[split].append({"concepts": concepts, "target": scenes[0] if scenes else "", "references": scenes})
    hub = {"train": "train", "val": "validation", "test": "test"}
    for split, name in hub.items():
        jsonl(f"commongen-hf/{name}.jsonl", rows[split])
        table_csv(f"commongen-csv/{name}.csv", rows[split])  # lists as Python writes them
        parquet(f"commongen-parquet/data/{name}-00000-of-00001.parquet", rows[split], data_page_version="2.0", compression="zstd")
    for args in ({}, {"concept_separator_token": ", ", "concept_end_token": ".", "prefix": "generate a sentence with: "}):
        sep, end, prefix = args.get("concept_separator_token", " "), args.get("concept_end_token", " "), args.get("prefix", "summarize: ")
        for folder in ("commongen", "commongen-hf", "commongen-csv", "commongen-parquet"):
            for split in rows:
                case("commongen", folder, split,
                     [sample(f"{split}_{i}", prefix + sep.join(r["concepts"]) + end, [r["target"] or "empty reference"], {"concepts": r["concepts"]})
                      for i, r in enumerate(rows[split])], **args)
    for split in ("train", "val"):
        groups = {}
        for i, r in enumerate(rows[split]):
            key = tuple(r["concepts"])
            groups.setdefault(key, (i, []))[1].extend(r["references"] or [r["target"] or "empty reference"])
        case("commongen", "commongen-hf", split,
             [sample(f"{split}_{i}", "summarize: " + " ".join(k) + " ", refs, {"concepts": list(k)}) for k, (i, refs) in groups.items()], group=True)


# ---- totto -------------------------------------------------------------------------------------
def totto():
    def cell(v, header=False, cols=1):
        return {"value": v, "is_header": header, "column_span": cols, "row_span": 1}

    table = [[cell("Year", True), cell("Film", True, 2), cell("Role", True)],
             [cell("1999", True), cell("A"), cell("B & C"), cell("Zoë")],
             [cell("2001"), cell("wide", False, 2), cell("")]]
    steps = ("original_sentence", "sentence_after_deletion", "sentence_after_ambiguity", "final_sentence")

    def native(k, title, section, cells, refs, extra):
        item = {"table": table, "table_webpage_url": f"http://x/{k}", "table_page_title": title, "table_section_title": section,
                "table_section_text": "text", "highlighted_cells": cells, "example_id": 10**18 + k}
        if refs is not None:
            item["sentence_annotations"] = [{s: f"{s} {r}" for s in steps} for r in refs]
        item.update(extra)
        return item

    files = {
        "train": ("totto_train_data.jsonl", [native(0, "Title", "Section", [[1, 1], [2, 1]], ["one"], {}), native(1, "", "", [], ["two"], {})]),
        "val": ("totto_dev_data.jsonl", [native(2, "Tïtle", "", [[1, 3]], ["a", "b", "c"], {"overlap_subset": True}),
                                         native(3, "T", "S", [[2, 2], [0, 1]], ["d"], {"overlap_subset": False})]),
        "test": ("unlabeled_totto_test_data.jsonl", [native(4, "T", "S", [[1, 2]], None, {"overlap_subset": True})]),
    }

    def spans(row):
        out, at = [], 0
        for c in row:
            out.append((at, at + c["column_span"]))
            at += c["column_span"]
        return out

    def cell_text(r, c, mark):
        s, e = spans(table[r])[c]
        out = f"<{mark}> {table[r][c]['value']} "
        for above in range(r):
            for other, (os_, oe) in zip(table[above], spans(table[above])):
                if os_ < e and oe > s and other["is_header"]:
                    out += f"<col_header> {other['value']} </col_header> "
        for left in table[r][:c]:
            if left["is_header"]:
                out += f"<row_header> {left['value']} </row_header> "
        return out + f"</{mark}> "

    def text(item, full, titles):
        out = ""
        if titles and item["table_page_title"]:
            out += f"<page_title> {item['table_page_title']} </page_title> "
        if titles and item["table_section_title"]:
            out += f"<section_title> {item['table_section_title']} </section_title> "
        out += "<table> "
        if full:
            for r, row in enumerate(table):
                out += "<row> "
                for c in range(len(row)):
                    out += cell_text(r, c, "highlighted_cell" if [r, c] in item["highlighted_cells"] else "cell")
                out += "</row> "
        else:
            for r, c in item["highlighted_cells"]:
                out += cell_text(r, c, "cell")
        return out + "</table>"

    hub_names = {"train": "train", "val": "validation", "test": "test"}
    for split, (name, items) in files.items():
        jsonl(f"totto/totto_data/{name}", items)
        jsonl(f"totto-native/{name}", items)
        hub, expected = [], {False: [], True: []}
        for i, item in enumerate(items):
            annotations = item.get("sentence_annotations") or [{s: "none" for s in steps}]
            row = {"id": i, **{k: item[k] for k in ("table_page_title", "table_webpage_url", "table_section_title", "table_section_text", "table",
                                                    "highlighted_cells")}, "example_id": str(item["example_id"]),
                   "overlap_subset": str(item.get("overlap_subset", "none"))}
            hub.append({**row, "sentence_annotations": {s: [a[s] for a in annotations] for s in steps}})
            raw = {**row, "overlap_subset": row["overlap_subset"] == "True", "sentence_annotations": annotations[:1] if split == "test" else annotations}
            refs = [""] if split == "test" else [a["final_sentence"] for a in annotations]
            for full in (False, True):
                expected[full].append(sample(f"{split}_{i}", text(item, full, False) + text(item, full, True), refs, {"raw_table": raw}))
        parquet(f"totto-hf/{hub_names[split]}.parquet", hub, compression="gzip", data_page_size=64)
        for folder in ("totto-native", "totto-hf"):
            case("totto", folder, split, expected[False])
            case("totto", folder, split, expected[True], representation="fulltable")
    bad = native(9, "T", "S", [[1, 9]], ["x"], {})
    jsonl("totto-bad/train.jsonl", [files["train"][1][0], bad])
    error("totto", "totto-bad", "train", "train.jsonl:2: \"highlighted_cells\": entry 0 is not a cell", "DATA")


# ---- summaries ---------------------------------------------------------------------------------
END = (".", "!", "?", "...", "'", "`", '"', "\u2019", "\u201d", ")")


def story(text):
    article, highlights, on = [], [], False
    for line in (x.strip() for x in text.split("\n")):
        if not line:
            continue
        if line.startswith("@highlight"):
            on = True
            continue
        if not line.endswith(END) and "@highlight" not in line:
            line += " ."
        (highlights if on else article).append(line)
    return " ".join(article), "\n".join(highlights)


def summaries():
    texts = {f"http://news/{i}.html": f"(CNN) -- Story {i} begins\n\n  It \"goes on\"  \nand ends.\n\n@highlight\n\nFirst point {i}\n\n@highlight\n\nSecond\u201d\n"
             for i in range(6)}
    splits = {"train": [0, 3, 4], "val": [1], "test": [2, 5]}
    names = {}
    for i, (url, text) in enumerate(texts.items()):
        names[i] = hashlib.sha1(url.encode()).hexdigest()
        write(f"cnn/{'cnn' if i < 3 else 'dailymail'}/stories/{names[i]}.story", text)
    rows = {}
    for split, members in splits.items():
        write(f"cnn/url_lists/all_{split}.txt", "".join(list(texts)[i] + "\n" for i in members))
        order = sorted((i for i in members if i < 3), key=names.get) + sorted((i for i in members if i >= 3), key=names.get)
        rows[split] = [story(list(texts.values())[i]) for i in order]
        for i in members:
            write(f"cnn-split/{split}/{i}.story", list(texts.values())[i])
        table_csv(f"cnn-csv/{split}.csv", [{"id": str(i), "article": a, "highlights": h} for i, (a, h) in enumerate(rows[split])])
        by_number = [story(list(texts.values())[i]) for i in members]
        case("cnn_daily_mail", "cnn-split", split, [sample(f"{split}_{i}", a, [h]) for i, (a, h) in enumerate(by_number)])
        for folder in ("cnn", "cnn-csv"):
            case("cnn_daily_mail", folder, split, [sample(f"{split}_{i}", "Summarize: " + a + " TL;DR:", [h]) for i, (a, h) in enumerate(rows[split])],
                 prompt_prefix="Summarize: ", prompt_suffix=" TL;DR:")
    case("cnn_daily_mail", "cnn", "train", [sample("train_0", "( CNN ) -- Story", [rows["train"][0][1]])], truncate_article=5, max_size=1)
    case("cnn_daily_mail", "cnn", "train", [sample(f"train_{i}", "", [h]) for i, (a, h) in enumerate(rows["train"])], truncate_article=0, max_size=0)
    xsum = [{"document": f"Document {i}\nwith lines", "summary": f"Summary {i}", "id": str(i)} for i in range(3)]
    jsonl("xsum/train.jsonl", xsum)
    jsonl("xsum/validation.jsonl", [{"document": "d", "target": "t"}])
    case("xsum", "xsum", "train", [sample(f"train_{i}", r["document"] + "TL;DR:", [r["summary"]]) for i, r in enumerate(xsum)])
    case("xsum", "xsum", "val", [sample("val_0", "d!", ["t"])], prompt_suffix="!")
    error("xsum", "xsum", "test", "XSum, test split: not found", "NOINPUT")


# ---- narrative_qa ------------------------------------------------------------------------------
def narrative():
    qa = [("d1", "train", "Who is Bob?", "The BAKER's son ", "Bob"), ("d1", "train", "Why?", "it's late", " Because, of \"x\""),
          ("d2", "valid", "Where is it?", "NA", "In ÖSTERREICH"), ("d1", "test", "What\u2019s up?", "Nothing", "nothing")]
    summary = {"d1": " Bob is the baker's SON.\nHe is late.", "d2": "It is, in short, in Austria."}
    fields = ("document_id", "set", "question", "answer1", "answer2")
    table_csv("narrativeqa/qaps.csv", [{**dict(zip(fields, q)), "question_tokenized": "x"} for q in qa])
    table_csv("narrativeqa/third_party/wikipedia/summaries.csv",
              [{"document_id": d, "set": "train", "summary": s, "summary_tokenized": "x"} for d, s in summary.items()])
    hub = {"train": [], "valid": [], "test": []}
    for d, split, q, a1, a2 in qa:
        hub[split].append({"document": {"id": d, "summary": {"text": summary[d], "tokens": ["x"]}}, "question": {"text": q, "tokens": ["x"]},
                           "answers": [{"text": a1, "tokens": ["x"]}, {"text": a2, "tokens": []}]})
    for name, rows in hub.items():
        parquet(f"narrativeqa-hf/{name}.parquet", rows)

    def clean(text, compat):
        text = text.lower()
        return text if compat else text.replace("'", "")

    for split, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        groups = {}
        for d, s, q, a1, a2 in qa:
            if s == name:
                groups.setdefault(q + " \\n " + summary[d], []).extend([a1, a2])
        for compat in (False, True):
            if compat and split == "val":
                continue  # "NA" is a missing value there
            for folder in ("narrativeqa", "narrativeqa-hf"):
                case("narrative_qa", folder, split,
                     [sample(f"{split}_{i}", clean(p, compat), [clean(a, compat).strip() for a in answers])
                      for i, (p, answers) in enumerate(groups.items())], compat=compat)
    lines = [("Q one? \\n Text's A", "First"), ("Q two? \\n B", " two "), ("Q one? \\n Text's A", "First"), ("Q \"q\" \\n C", 'say "hi"'),
             ("q one? \\n text's a", "other"), ("N", "NA")]
    write("unifiedqa/train.tsv", "".join(f"{p}\t{a}\n" for p, a in lines[:3]) + '"Q ""q"" \\n C"\t"say ""hi"""\r\n\n' +
          "".join(f"{p}\t{a}\n" for p, a in lines[4:]))
    write("unifiedqa/dev.tsv", "A\tb\n")
    groups = {}
    for p, a in lines:
        groups.setdefault(p, []).append(a)
    case("narrative_qa", "unifiedqa", "train", [sample(f"train_{i}", clean(p, False), [clean(a, False).strip() for a in answers])
                                                for i, (p, answers) in enumerate(groups.items())])
    case("narrative_qa", "unifiedqa", "val", [sample("val_0", "a", ["b"])], compat=True)
    error("narrative_qa", "unifiedqa", "train", "train.tsv:7: the answer \"NA\" is a missing value", "DATA")
    CASES[-1]["compat"] = True
    write("unifiedqa-bad/train.tsv", "A\tb\nno answer\nC\td\n")
    error("narrative_qa", "unifiedqa-bad", "train", "train.tsv:2: 1 fields; expected 2", "DATA")
    case("narrative_qa", "unifiedqa-bad", "train", [sample("train_0", "a", ["b"]), sample("train_1", "c", ["d"])], on_bad_row="skip")


# ---- translation -------------------------------------------------------------------------------
def translation():
    pairs = [("A dog.", "Ein Hund."), ("", "leer"), ("Two & three", "Zwei & drei"), (" spaced ", " Abstand ")]
    kept = [p for p in pairs if all(p)]
    write("wmt/train.en", "\n".join(p[0] for p in pairs) + "\n")
    write("wmt/train.de", "\r\n".join(p[1] for p in pairs) + "\r\n")
    write("wmt/val.en.gz", "".join(p[0] + "\n" for p in kept), packed=True)
    write("wmt/val.de.gz", "".join(p[1] + "\n" for p in kept), packed=True)

    def sgm(lines, kind):
        body = "".join(f'<seg id="{i}"> {x} </seg>\n' for i, x in enumerate(lines, 1))
        return f'<{kind} setid="x" srclang="any">\n<doc docid="1">\n<hl>\n{body}</hl></doc>\n</{kind}>\n'

    source, target = ["R&amp;D &lt;now&gt;", "Caf&#233; &quot;x&quot;", "plain &unknown; &"], ["F&amp;E &lt;jetzt&gt;", "Kaf&#xE9;", "schlicht"]
    plain_source, plain_target = ['R&D <now>', 'Café "x"', "plain &unknown; &"], ["F&E <jetzt>", "Kafé", "schlicht"]
    write("wmt/newstest2015-ende-src.en.sgm", sgm(source, "srcset"))
    write("wmt/newstest2015-ende-ref.de.sgm", sgm(target, "refset"))
    write("wmt/newstest2016-ende-src.en.sgm", sgm(source[:1], "srcset"))
    write("wmt/newstest2016-ende-ref.de.sgm", sgm(target[:1], "refset"))
    wmt = dict(wmt_id="wmt16", source_language="en", target_language="de")
    case("wmt16", "wmt", "train", [sample(f"train_{i}", "> " + s + " <", [t]) for i, (s, t) in enumerate(kept)], prompt_prefix="> ", prompt_suffix=" <", **wmt)
    # newstest2015 is wmt16's validation set; val.en.gz is named for it as well, and comes after it
    case("wmt16", "wmt", "val", [sample(f"val_{i}", s, [t]) for i, (s, t) in enumerate(list(zip(plain_source, plain_target)) + kept)], **wmt)
    case("wmt16", "wmt", "test", [sample("test_0", plain_source[0], [plain_target[0]])], **wmt)
    case("wmt16", "wmt", "test", [sample("test_0", source[0], [target[0]])], compat=True, **wmt)
    case("wmt16", "wmt", "train", [sample(f"train_{i}", t, [s]) for i, (s, t) in enumerate(kept)], wmt_id="wmt16", source_language="de", target_language="en")
    CASES.append({"pool": "wmt16", "split": "val", "args": {**wmt, "val": "wmt/val"}, "samples": [sample(f"val_{i}", s, [t]) for i, (s, t) in enumerate(kept)]})
    write("wmt-bad/train.en", "a\nb\n")
    write("wmt-bad/train.de", "a\n")
    error("wmt16", "wmt-bad", "train", "has 2 segments", "DATA", **wmt)
    tags = ['<doc docid="1" genre="lectures">', "<url>http://x</url>", "<title>Talk</title>"]
    talk = [("Thank you so much.", "Vielen Dank."), ("It's &amp; is", "Es ist &amp; war")]
    write("iwslt/de-en/train.tags.en-de.en", "\n".join(tags + [" " + p[0] + " " for p in talk] + ["</doc>"]) + "\n")
    write("iwslt/de-en/train.tags.en-de.de", "\n".join([" " + t for t in tags] + [p[1] for p in talk] + ["</doc>"]) + "\n")
    for name, lines in (("dev2010", talk), ("tst2010", talk[:1]), ("tst2011", talk[1:])):
        for k, lang in enumerate(("en", "de")):
            write(f"iwslt/de-en/IWSLT17.TED.{name}.en-de.{lang}.xml", '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n' + sgm([p[k] for p in lines], "srcset") + "</mteval>\n")
    fixed = [(s.replace("&amp;", "&"), t.replace("&amp;", "&")) for s, t in talk]
    for split in ("train", "val", "test"):
        case("iwslt2017en_de", "iwslt", split, [sample(f"{split}_{i}", s, [t]) for i, (s, t) in enumerate(fixed)])
        case("iwslt2017en_de", "iwslt", split, [sample(f"{split}_{i}", s, [t]) for i, (s, t) in enumerate(talk)], compat=True)
    rows = [{"translation": {"de": t, "en": s}} for s, t in kept]
    parquet("wmt14/train.parquet", rows)
    table_csv("wmt14/validation.csv", rows)  # structs as Python writes them
    jsonl("wmt14/test.jsonl", [{"en": s, "de": t} for s, t in kept])
    for split in ("train", "val", "test"):
        for pool in ("wmt14_processed_en_de", "wmt16newsonly"):
            case(pool, "wmt14", split, [sample(f"{split}_{i}", s, [t]) for i, (s, t) in enumerate(kept)])


# ---- dialogues ---------------------------------------------------------------------------------
def dialogues():
    lines = ["Hi , Jim . __eou__ Hello ! __eou__ How are you ? __eou__", "Grüß Gott . __eou__ Bye . __eou__"]
    acts, emotions = [[1, 3, 2], [4, 1]], [[0, 4, 0], [6, 0]]
    for split in ("train", "validation", "test"):
        write(f"dailydialog/{split}/dialogues_{split}.txt", "".join(x + "\n" for x in lines))
        write(f"dailydialog/{split}/dialogues_act_{split}.txt", "".join(" ".join(map(str, a)) + " \n" for a in acts))
        write(f"dailydialog/{split}/dialogues_emotion_{split}.txt", "".join(" ".join(map(str, e)) + " \n" for e in emotions))
    rows = [{"dialog": x.split("__eou__")[:-1], "act": a, "emotion": e} for x, a, e in zip(lines, acts, emotions)]
    for split in ("train", "validation", "test"):
        parquet(f"dailydialog-hf/{split}.parquet", rows, use_dictionary=False)
    for size in (0, 1, 2, 5):
        for folder in ("dailydialog", "dailydialog-hf"):
            for split in ("train", "val", "test"):
                out, number = [], 0
                for r in rows:
                    context = []
                    for u, e, a in zip(r["dialog"], r["emotion"], r["act"]):
                        if len(context) >= size:
                            out.append(sample(number, "<EOU>".join(context[-size:]) + " <EOU>", [u + "<EOU>"], {"emotion": [e], "intent": [a]}))
                        context.append(u)
                        number += 1
                if out:
                    case("daily_dialog", folder, split, out, context_size=size)
                else:
                    error("daily_dialog", folder, split, "no samples", "DATA", context_size=size)
    write("dailydialog-bad/dialogues_train.txt", "a __eou__\n")
    write("dailydialog-bad/dialogues_act_train.txt", "1 x\n")
    write("dailydialog-bad/dialogues_emotion_train.txt", "1\n")
    error("daily_dialog", "dailydialog-bad", "train", "dialogues_train.txt:1: \"x\" is not a whole number", "DATA", context_size=0)
    episodes = {f"C1E00{k}": {"TURNS": [{"NAMES": ["MATT", "SAM"][i % 2:] + ["X"], "UTTERANCES": [f"Line {i}", "of Zoë."][: 1 + i % 2], "NUMBER": i}
                                        for i in range(n)]} for k, n in ((1, 5), (2, 2), (3, 3))}
    for split, names in (("train", ["C1E001", "C1E002"]), ("val", ["C1E003"]), ("test", ["C1E003", "C1E001"])):
        write(f"crd3/CRD3-master/data/aligned data/{split}_files", "".join(n + "\n" for n in names))
        for size in (0, 1, 2, 9):
            out = []
            for e, name in enumerate(names):
                context = []
                for t, turn in enumerate(episodes[name]["TURNS"]):
                    text = " ".join(turn["UTTERANCES"])
                    if len(context) > 1:
                        out.append(sample(f"{split}_ep_{e}_turn_{t}", "\n".join(context[-size:]) + "\n" + turn["NAMES"][0] + ": ", [text]))
                    context.append(turn["NAMES"][0] + ": " + text)
            case("crd3", "crd3", split, out, max_context_size=size)
            case("crd3", "crd3/CRD3-master", split, out, max_context_size=size)
    for name, episode in episodes.items():
        write(f"crd3/CRD3-master/data/cleaned data/{name}.json", json.dumps(episode))
    write("crd3-aligned/data/aligned data/val_files", "C1E003\n")
    chunks = [{"CHUNK": "x", "ALIGNMENT": {}, "TURNS": episodes["C1E003"]["TURNS"][a:b]} for a, b in ((0, 2), (1, 3))]
    write("crd3-aligned/data/aligned data/c=2/C1E003_2_0.json", json.dumps(chunks))
    write("crd3-aligned/data/aligned data/c=2/C1E003_2_1.json", "[]")
    turns = episodes["C1E003"]["TURNS"]
    case("crd3", "crd3-aligned", "val",
         [sample("val_ep_0_turn_2", "\n".join(t["NAMES"][0] + ": " + " ".join(t["UTTERANCES"]) for t in turns[:2]) + "\n" + turns[2]["NAMES"][0] + ": ",
                 [" ".join(turns[2]["UTTERANCES"])])], max_context_size=5)
    write("crd3-bad/data/aligned data/train_files", "C9\n")
    error("crd3", "crd3-bad", "train", "C9.json: not found, though the split's list names it", "DATA", max_context_size=1)


# ---- TRIL's ------------------------------------------------------------------------------------
def tldr():
    rows = [{"prompt": f"SUBREDDIT: r/x\n\nPOST: text {i}  \n\nTL;DR: rest", "label": f" short {i}"} for i in range(3)]
    jsonl("tldr/train.jsonl", rows)
    jsonl("tldr/valid.jsonl", rows)
    out = [sample(i, f"SUBREDDIT: r/x\n\nPOST: text {i}\nTL;DR:", [r["label"]], {"reference": r["label"]}) for i, r in enumerate(rows)]
    case("tldr", "tldr", "train", out)
    case("tldr", "tldr", "val", out[:2], n_samples={"val": 2})
    pairs = [("a b c d e", "f g h i j"), ("same as this one here", "same as this one here"), ("too short", "f g h i j"), ("one two three four five six", "a  b  c  d  e")]
    jsonl("tldr-pairs/valid1.jsonl", [{"prompt": "p", "chosen": c, "rejected": r} for c, r in pairs])
    jsonl("tldr-pairs/valid2.jsonl", [{"prompt": "other", "chosen": "x", "rejected": "y"}])
    case("tldr_preference", "tldr-pairs", "val",
         [sample(i, "p", [c], {"chosen": c, "rejected": r}) for i, (c, r) in enumerate(pairs) if i in (0, 3)])


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
