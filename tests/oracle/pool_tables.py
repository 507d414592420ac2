"""Reviews, concepts and tables: the data sets of imdb, commongen and ToTTo for gen_pools.py."""
import numpy as np

from pool_files import case, error, jsonl, parquet, sample, table_csv, write


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
