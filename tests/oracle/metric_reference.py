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
    ("chrf", {}, chrf),
    ("chrf", {"word_order": 2}, chrf),
    ("chrf", {"lowercase": True, "whitespace": True, "beta": 3}, chrf),
    ("chrf", {"char_order": 10, "word_order": 1, "eps_smoothing": True}, chrf),
]


def settings():
    for metric, args, make in TABLE:
        yield metric, args, make(args)
