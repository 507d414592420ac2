"""The lexical metrics by their reference implementations, as one table: settings() gives (metric, args, scorer), where scorer(items)
lists (key, value of each item or None, corpus value or None)."""


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


TABLE = [
    ("rouge", {}, rouge),
    ("rouge", {"use_single_ref": False}, rouge),
]


def settings():
    for metric, args, make in TABLE:
        yield metric, args, make(args)
