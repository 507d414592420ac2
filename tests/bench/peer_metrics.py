"""The lexical metrics by their Python references on bench_metrics's pairs, a pair at a time as a reward is computed: one JSON line each,
seconds of CPU a pair; texts of WORDS words. sacrebleu remembers the words of texts it has seen; here, as in training, every text is new."""
import collections
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import metric_reference as reference  # noqa: E402
import nltk_setup  # noqa: E402
import sacrebleu  # noqa: E402

WORDS = int(os.environ.get("WORDS", "60"))
items = [json.loads(line) for line in sys.stdin][:int(os.environ.get("PAIRS", str(max(10, 6000 // WORDS))))]
hyps, refs = [i["prediction"] for i in items], [i["references"][0] for i in items]


def rouge():
    from rouge_score import rouge_scorer
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=True)
    return lambda: [scorer.score(r, h) for r, h in zip(refs, hyps)]


def counted(words):
    """N-grams counted one after another, as the published compute_bleu counts them."""
    counts = collections.Counter()
    for order in range(1, 5):
        for i in range(0, len(words) - order + 1):
            counts[tuple(words[i:i + order])] += 1
    return counts


def nmt(hyp, ref):
    matches, possible = [0] * 4, [0] * 4
    merged = collections.Counter()
    merged |= counted(ref)
    own = counted(hyp)
    overlap = own & merged
    for gram in overlap:
        matches[len(gram) - 1] += overlap[gram]
    for order in range(1, 5):
        possible[order - 1] += max(0, len(hyp) - order + 1)
    precisions = [m / p if p else 0.0 for m, p in zip(matches, possible)]
    mean = math.exp(sum(0.25 * math.log(p) for p in precisions)) if min(precisions) > 0 else 0
    ratio = len(hyp) / len(ref)
    return mean * (1.0 if ratio > 1.0 else math.exp(1 - 1.0 / ratio))


def bleu():
    return lambda: [nmt(h.split(), r.split()) for h, r in zip(hyps, refs)]


def google_bleu():
    from nltk.translate.gleu_score import sentence_gleu
    return lambda: [sentence_gleu([r.split()], h.split()) for h, r in zip(hyps, refs)]


def forget():
    for name, module in list(sys.modules.items()):
        for thing in vars(module).values() if name.startswith("sacrebleu.") else ():
            if isinstance(thing, type):
                getattr(getattr(thing, "__call__", None), "cache_clear", lambda: None)()


def sentence(metric):
    def run():
        forget()
        for h, r in zip(hyps, refs):
            metric.sentence_score(h, [r])
    return lambda: run


def rouge_l_max():
    score = reference.rouge_l_max({})
    return lambda: list(score(items))


def meteor():
    nltk = nltk_setup.use("3.10")
    from nltk.translate.meteor_score import single_meteor_score
    return lambda: [single_meteor_score(nltk.word_tokenize(r), nltk.word_tokenize(h)) for r, h in zip(refs, hyps)]


def cider():
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    def run():
        s = CiderScorer()
        for h, r in zip(hyps, refs):
            s += (h, [r])
        s.compute_score()
    return run


ROWS = {"meteor": ("nltk", meteor), "cider": ("pycocoevalcap", cider), "rouge 1/2/L/Lsum": ("rouge-score", rouge), "bleu": ("nmt", bleu),
        "google_bleu": ("nltk", google_bleu), "sacre_bleu 13a": ("sacrebleu", sentence(sacrebleu.BLEU(effective_order=True))),
        "sacre_bleu intl": ("sacrebleu", sentence(sacrebleu.BLEU(tokenize="intl", effective_order=True))), "chrF": ("sacrebleu", sentence(sacrebleu.CHRF())),
        "chrF++": ("sacrebleu", sentence(sacrebleu.CHRF(word_order=2))), "ter": ("sacrebleu", sentence(sacrebleu.TER())),
        "rouge_l_max": ("py-rouge", rouge_l_max)}
for name, (who, make) in ROWS.items():
    if (len(sys.argv) > 1 and name not in sys.argv[1:]) or (name == "ter" and WORDS > 100):  # some seconds a pair
        continue
    run = make()
    run()  # tables, caches of stems
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    print(f"{name:20} {who:14} {WORDS:6} words {best / len(items) * 1e6:12.1f} us a pair")
    title = "metric " + name + ("" if WORDS == 60 else f", {WORDS} words")
    print(json.dumps({"bench": title, "who": who, "seconds": best / len(items)}), flush=True)
