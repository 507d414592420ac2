"""Articles, stories, translations and dialogues for gen_pools.py."""
import hashlib
import json

from pool_files import CASES, case, error, jsonl, parquet, sample, table_csv, write


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
