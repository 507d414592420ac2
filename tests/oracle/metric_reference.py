"""The lexical metrics by their reference implementations, as one table: settings() gives (metric, args, title, scorer), where
scorer(items) lists (key, value of each item or None, corpus value or None). None inside a list: the reference has no value."""
import collections
import logging
import math

logging.getLogger("sacrebleu").setLevel(logging.ERROR)


def rouge(args):
    from rouge_score import rouge_scorer
    types = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    scorer = rouge_scorer.RougeScorer(types, use_stemmer=True)

    def score(items):
        refs = [i["references"][:1] if args.get("use_single_ref", True) else i["references"] for i in items]
        all_scores = [scorer.score_multi(r, i["prediction"]) for r, i in zip(refs, items)]
        for t in types:
            f = [float(s[t].fmeasure) for s in all_scores]
            yield f"lexical/rouge_{t}", f, None
            yield f"lexical/rouge_{t}_mean", None, sum(f) / len(f)
    return score


def nmt_bleu(items):
    """tensorflow/nmt's compute_bleu (max_order 4, no smoothing), from its definition; None where it divides by zero."""
    match, possible, hyp_len, ref_len = [0] * 4, [0] * 4, 0, 0
    for item in items:
        hyp, refs = item["prediction"].split(), [r.split() for r in item["references"]]
        hyp_len, ref_len = hyp_len + len(hyp), ref_len + min(map(len, refs))
        for n in range(1, 5):
            grams = collections.Counter(tuple(hyp[i:i + n]) for i in range(len(hyp) - n + 1))
            best = collections.Counter()
            for r in refs:
                best |= collections.Counter(tuple(r[i:i + n]) for i in range(len(r) - n + 1))
            match[n - 1] += sum((grams & best).values())
            possible[n - 1] += max(0, len(hyp) - n + 1)
    if not hyp_len or not ref_len:
        return None
    precisions = [m / p if p else 0.0 for m, p in zip(match, possible)]
    mean = math.exp(sum(0.25 * math.log(p) for p in precisions)) if min(precisions) > 0 else 0.0
    ratio = hyp_len / ref_len
    return mean * (1.0 if ratio > 1.0 else math.exp(1 - 1.0 / ratio))


def bleu(args):
    return lambda items: [("lexical/bleu", [nmt_bleu([i]) for i in items], nmt_bleu(items))]


def google_bleu(args):
    from nltk.translate.gleu_score import corpus_gleu

    def gleu(items):
        return corpus_gleu([[r.split() for r in i["references"]] for i in items], [i["prediction"].split() for i in items])
    return lambda items: [("lexical/google_bleu", [float(gleu([i])) for i in items], float(gleu(items)))]


def sacre(key, make):
    """A metric of sacrebleu: sentence scores, and the corpus score with references padded by None."""
    def score(items):
        metric = make()
        most = max(len(i["references"]) for i in items)
        refs = [[i["references"][k] if k < len(i["references"]) else None for i in items] for k in range(most)]
        samples = [metric.sentence_score(i["prediction"], i["references"]).score / 100 for i in items]
        corpus = metric.corpus_score([i["prediction"] for i in items], refs).score / 100
        yield key, samples, corpus
    return score


def sacre_bleu(args):
    from sacrebleu.metrics import BLEU
    names = {"use_effective_order": "effective_order"}
    return sacre("lexical/sacrebleu", lambda: BLEU(**{names.get(k, k): v for k, v in args.items()}))


def chrf(args):
    from sacrebleu.metrics import CHRF
    return sacre("lexical/chrf", lambda: CHRF(**args))


def ter(args):
    from sacrebleu.metrics import TER
    return sacre("lexical/ter", lambda: TER(**args))


def rouge_l_max(args):
    """py-rouge, once per reference, the largest F. NLTK's word tokeniser is called without its sentence splitter, whose data may
    not be there: its input has no punctuation left, so it is one sentence."""
    import sys
    import types
    if "pkg_resources" not in sys.modules:  # gone from new setuptools; py-rouge asks it for its data files only
        import importlib.resources
        stand_in = types.ModuleType("pkg_resources")
        stand_in.resource_filename = lambda package, name: str(importlib.resources.files(package.split(".")[0]) / name)
        sys.modules["pkg_resources"] = stand_in
    import rouge as py_rouge
    from nltk.tokenize.destructive import NLTKWordTokenizer
    words = NLTKWordTokenizer()
    py_rouge.Rouge.tokenize_text = staticmethod(lambda text, language="english": words.tokenize(text))
    scorer = py_rouge.Rouge(metrics=["rouge-l"], **args)

    def score(items):
        f = [max(scorer.get_scores([i["prediction"]], [[r]])["rouge-l"]["f"] for r in i["references"]) for i in items]
        yield "lexical/rouge_l_max", f, sum(f) / len(f)
    return score


def meteor(args):
    """NLTK's, against the best reference."""
    import nltk_setup
    nltk = nltk_setup.use("3.10")
    from nltk.translate.meteor_score import single_meteor_score

    def score(items):
        hyps = [nltk.word_tokenize(i["prediction"]) for i in items]
        v = [max(float(single_meteor_score(nltk.word_tokenize(r), h)) for r in i["references"]) for i, h in zip(items, hyps)]
        yield "lexical/meteor", v, sum(v) / len(v)
    return score


def cider(args):
    """pycocoevalcap's CIDEr-D of the items as one corpus; 0 where no reference has a word (the original fails)."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    def score(items):
        scorer = CiderScorer()
        for i in items:
            scorer += (i["prediction"], i["references"])
        some = any(r.split() for i in items for r in i["references"])
        v = [float(x) for x in scorer.compute_score()[1]] if some else [0.0] * len(items)
        yield "lexical/cider", v, sum(v) / len(v)
    return score


def grams(words, n):
    return collections.Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))


def sari_of(source, text, references):
    """Hugging Face's sari, from its definition: 13a words in lower case, 0/0 = 1, keep's recall over counts."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    tokenizer = Tokenizer13a()
    split = lambda t: tokenizer(t.lower()).split(" ")
    s, c, rs = split(source), split(text), [split(r) for r in references]
    f1 = lambda p, r: 2 * p * r / (p + r) if p > 0 or r > 0 else 0
    keep = delete = add = 0
    for n in range(1, 5):
        k = len(rs)
        sg, cg, rg = grams(s, n), grams(c, n), sum((grams(r, n) for r in rs), collections.Counter())
        sk = collections.Counter({g: v * k for g, v in sg.items()})
        ck = collections.Counter({g: v * k for g, v in cg.items()})
        kept, wanted = sk & ck, sk & rg
        good = kept & rg
        p = sum(good[g] / kept[g] for g in good) / len(kept) if kept else 1
        r = sum(good.values()) / sum(wanted.values()) if wanted else 1
        keep += f1(p, r)
        gone = sk - ck
        right = gone - rg
        delete += sum(right[g] / gone[g] for g in right) / len(gone) if gone else 1
        new, asked = set(cg) - set(sg), set(rg) - set(sg)
        hit = len(new & set(rg))
        add += f1(hit / len(new) if new else 1, hit / len(asked) if asked else 1)
    return 100 * (keep / 4 + delete / 4 + add / 4) / 3


def sari(args):
    def score(items):
        v = [sari_of(i.get("prompt", ""), i["prediction"], i["references"]) for i in items]
        yield "lexical/sari", v, sum(v) / len(v)
    return score


def self_bleu(args):
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    smooth = SmoothingFunction().method1

    def score(items):
        words = [i["prediction"].split() for i in items]
        for n in (2, 3, 4):
            v = [float(sentence_bleu(words[:k] + words[k + 1:], w, weights=[1 / n] * n, smoothing_function=smooth)) for k, w in enumerate(words)]
            yield f"diversity_metrics/self_bleu-{n}", v, sum(v) / len(v)
    return score


def distinct(args):
    def share(texts, n):
        total = sum(max(0, len(w) - n + 1) for w in texts)
        return len(set().union(*(grams(w, n) for w in texts))) / total if total else 0.0

    def score(items):
        words = [i["prediction"].split() for i in items]
        for n in (1, 2, 3, 4):
            yield f"diversity_metrics/distinct-{n}", [share([w], n) for w in words], share(words, n)
    return score


def diversity(args):
    """gem-metrics's diversity, from its definition."""
    import statistics
    import string

    import nltk_setup
    nltk = nltk_setup.use("3.10")
    window = args.get("window_size", 100)

    def entropy(counts):
        total = sum(counts.values())
        return -sum(v / total * math.log2(v / total) for v in counts.values())

    def score(items):
        all_words = [[w.lower() for w in nltk.word_tokenize(i["prediction"])] for i in items]
        for suffix, texts in (("", all_words), ("-nopunct", [[w for w in t if w not in string.punctuation or len(w) != 1] for t in all_words])):
            flat = [w for t in texts for w in t]
            lengths = [len(t) for t in texts]
            parts = [len(set(flat[i:i + window])) / window for i in range(0, len(flat) - window + 1, window)]
            yield f"diversity_metrics/msttr-{window}{suffix.replace('-', '_')}", None, round(sum(parts) / len(parts), 5) if parts else None
            for name, v in (("total_length", sum(lengths)), ("mean_pred_length", statistics.fmean(lengths)), ("std_pred_length", statistics.pstdev(lengths)),
                            ("median_pred_length", statistics.median(lengths)), ("min_pred_length", min(lengths)), ("max_pred_length", max(lengths))):
                yield f"diversity_metrics/{name}{suffix}", None, v
            before = None
            for n in (1, 2, 3):
                counts = sum((grams(t, n) for t in texts), collections.Counter())
                total = sum(counts.values())
                if not total:
                    break
                for name, v in (("distinct", len(counts) / total), ("vocab_size", len(counts)), ("unique", sum(v == 1 for v in counts.values())),
                                ("entropy", entropy(counts))):
                    yield f"diversity_metrics/{name}-{n}{suffix}", None, v
                if before:
                    most = sum(before.values())
                    v = -sum(c / total * math.log2((c / total) / (before[g[:-1]] / most)) for g, c in counts.items())
                    yield f"diversity_metrics/cond_entropy-{n}{suffix}", None, v
                before = counts
    return score


def parent_of(prediction, references, cells, titles):
    """PARENT (orders to 4, smoothing 1e-5, the table's own lambda) of words; the best reference by F."""
    null = ["<", "null", ">"]  # what stands for a missing text, in 13a's words
    p = prediction.split() or null
    values = [v.split() for v in cells + titles if v.split()]
    table = {w for v in values for w in v}
    weight = lambda g: sum(w in table for w in g) / len(g)

    def lcs(a, b):
        row = [0] * (len(b) + 1)
        for x in a:
            before = 0
            for k, y in enumerate(b, 1):
                before, row[k] = row[k], before + 1 if x == y else max(row[k], row[k - 1])
        return row[-1]
    cover = lambda words: sum(lcs(v, words) / len(v) for v in values) / len(values)
    best = None
    for r in [references[k].split() if k < len(references) else null for k in range(3)]:
        precisions, recalls = [], []
        for n in range(1, 5):
            cp, cr = grams(p, n), grams(r, n)
            total = sum(cp.values())
            hit = sum(c * (q + (1 - q) * weight(g)) for g, c in cp.items() for q in [min(1.0, cr[g] / c)])
            precisions.append(hit / total if total else 0.0)
            wanted = sum(c * weight(g) for g, c in cr.items())
            got = sum(c * weight(g) * min(1.0, cp[g] / c) for g, c in cr.items())
            recalls.append(got / wanted if wanted else 1.0)
        for k in range(1, 4):
            precisions[k] = precisions[k] or 1e-5
            recalls[k] = recalls[k] or 1e-5
        mean = lambda x: math.exp(sum(0.25 * math.log(v) for v in x))
        precision = mean(precisions) if precisions[0] else 0.0
        recall_r = mean(recalls) if recalls[0] else 1e-5
        recall_t = cover(p) or 1e-5
        lam = 1 - cover(r)
        recall = math.exp((1 - lam) * math.log(recall_r) + lam * math.log(recall_t))
        f = 2 * precision * recall / (precision + recall + 1e-8)
        if best is None or f > best[2]:
            best = (precision, recall, f)
    return best


def parent_totto(args):
    def score(items):
        v = [parent_of(i["prediction"], i["references"], *i["table"]) for i in items]
        mean = lambda k: sum(x[k] for x in v) / len(v)
        yield "table_to_text/parent_overall_f_score", [x[2] for x in v], mean(2)
        yield "table_to_text/parent_overall/precision", None, mean(0)
        yield "table_to_text/parent_overall/recall", None, mean(1)
    return score


PY_ROUGE = {"max_n": 4, "limit_length": True, "length_limit": 100, "length_limit_type": "words", "apply_avg": True,
            "apply_best": True, "alpha": 0.5, "weight_factor": 1.2, "stemming": True}
TABLE = [
    ("rouge", {}, rouge),
    ("rouge", {"use_single_ref": False}, rouge),
    ("bleu", {}, bleu),
    ("google_bleu", {}, google_bleu),
    ("sacre_bleu", {}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "intl"}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "none", "smooth_method": "none"}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "char", "smooth_method": "floor"}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "zh", "smooth_method": "add-k"}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "13a", "lowercase": True, "use_effective_order": True}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "zh", "smooth_method": "floor", "smooth_value": 0.5, "use_effective_order": True}, sacre_bleu),
    ("sacre_bleu", {"tokenize": "intl", "smooth_method": "add-k", "smooth_value": 2, "lowercase": True}, sacre_bleu),
    ("ter", {}, ter),
    ("ter", {"normalized": True, "case_sensitive": True}, ter),
    ("ter", {"normalized": True, "no_punct": True, "asian_support": True}, ter),
    ("ter", {"no_punct": True}, ter),
    ("rouge_l_max", {}, rouge_l_max),
    ("rouge_l_max", PY_ROUGE, rouge_l_max),
    ("rouge_l_max", {"limit_length": False, "stemming": False, "alpha": 0.2}, rouge_l_max),
    ("rouge_l_max", {"length_limit": 20, "weight_factor": 0.7}, rouge_l_max),
    ("meteor", {}, meteor),
    ("cider", {}, cider),
    ("sari", {}, sari),
    ("self_bleu", {"tokenize": "none"}, self_bleu),
    ("distinct", {"tokenize": "none"}, distinct),
    ("diversity", {}, diversity),
    ("diversity", {"window_size": 7}, diversity),
    ("parent_totto", {}, parent_totto),
    ("chrf", {}, chrf),
    ("chrf", {"word_order": 2}, chrf),
    ("chrf", {"lowercase": True, "whitespace": True, "beta": 3}, chrf),
    ("chrf", {"char_order": 10, "word_order": 1, "eps_smoothing": True}, chrf),
]


def settings():
    for metric, args, make in TABLE:
        yield metric, args, make(args)
