#!/usr/bin/env python3
"""tests/golden/judges: small random models with what bert-score and transformers compute from them for a few texts. Runs without our binaries."""
import json
import os
import random
import shutil

import torch
from transformers.utils import logging

import check_judges as judges

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "judges")


def main():
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    rng = random.Random("judges golden")
    made = judges.tokenizers(rng)
    rows = judges.texts(rng, 10)
    rows[0]["prediction"] = ""
    out = {"rows": rows}
    folder = {name: os.path.join(OUT, name) for name in ("bert", "roberta", "t5", "gpt2")}

    model, tokenizer = judges.make_folder(rng, "bert", made["BERT uncased"], folder["bert"])
    layers = model.config.num_hidden_layers - 1
    out["bert"] = {"layers": layers, "scores": judges.bert_scores(folder["bert"], tokenizer, layers, rows, False)}

    model, tokenizer = judges.make_folder(rng, "roberta", made["RoBERTa"], folder["roberta"], num_labels=4)
    tokenizer.truncation_side = "left"
    labels = judges.logits_of(model, tokenizer, [(r["prompt"] + r["prediction"],) for r in rows])
    tokenizer.truncation_side = "right"
    last = [[u for u in r["prompt"].split("<EOU>") if u != ""][-1:] for r in rows]
    found = judges.logits_of(model, tokenizer, [((u[0] if u else "") + r["prediction"],) for u, r in zip(last, rows)]).argmax(1).tolist()
    out["roberta"] = {"layers": 2, "scores": judges.bert_scores(folder["roberta"], tokenizer, 2, rows, True),
                      "labels": torch.softmax(labels, 1).tolist(), "found": found}

    model, tokenizer = judges.make_t5(rng, made["T5, Flan"], folder["t5"])
    out["t5"] = [judges.good_or_bad(model, tokenizer, r["prediction"]) for r in rows]

    model, tokenizer = judges.make_gpt2(rng, made["GPT-2"], folder["gpt2"])
    ids = tokenizer("\n\n".join(x for r in rows for x in r["references"])).input_ids
    out["gpt2"] = {str(stride): judges.perplexity(model, ids, stride) for stride in (7, 16, model.config.n_positions)}
    with open(os.path.join(OUT, "expected.json"), "w") as f:
        json.dump(out, f, ensure_ascii=False, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
