"""Makes tests/golden/generate/cases.jsonl: what transformers generates with the recorded models (tests/golden/families, tests/golden/gpt2) under random
settings. One line for each: model, settings, prompts (a seq2seq model's sources) and for each prompt its results, [ids, score or null].
Run: python tests/oracle/gen_generate.py
"""
import json
import os
import random
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.utils import logging

from generate_cases import Old, has_old, random_settings, transformers_generate, vocabulary

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
CAUSAL = ["gpt2/plain", *(f"families/{f}" for f in ("gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "qwen3",
                                                    "gemma", "gemma2"))]
SEQ2SEQ = [f"families/{f}" for f in ("t5", "mt5", "bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small")]
OLD = {"gpt2/plain", "families/gpt_neo", "families/gptj", "families/opt", "families/bloom", "families/t5", "families/bart"}


def settled(results):
    """False where no one can say which is right: scores that nearly tie, or the dead beams of a search that had too few tokens."""
    scores = [s for _, s in results if s is not None]
    return all(abs(a - b) > 1e-4 for a, b in zip(scores, scores[1:])) and all(-1e6 < s < 1e6 for s in scores)


def case(r, name, folder, model, mode, old):
    """One line, or None when it would not be settled."""
    vocab = vocabulary(model)
    seq2seq = model.config.is_encoder_decoder
    s = random_settings(r, vocab, mode, seq2seq)
    prompts = [[r.randrange(3, vocab) for _ in range(r.choice([1, 2, 4, 8]))] for _ in range(3)]
    try:
        results = [old.generate(folder, p, s) if mode == "group" else transformers_generate(model, p, s) for p in prompts]
    except (ValueError, RuntimeError):
        return None  # settings that exclude each other
    if not all(settled(x) for x in results):
        return None
    return {"model": name, "settings": s, "prompts": prompts, "results": [[[ids, score] for ids, score in x] for x in results]}


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    if not has_old():
        sys.exit("gen_generate: group beam search needs the environment of the PPO benchmark (make bench installs it)")
    old = Old()
    r = random.Random(5)
    os.makedirs(os.path.join(ROOT, "generate"), exist_ok=True)
    with open(os.path.join(ROOT, "generate", "cases.jsonl"), "w") as out:
        for name in CAUSAL + SEQ2SEQ:
            folder = os.path.join(ROOT, name)
            kind = AutoModelForSeq2SeqLM if AutoConfig.from_pretrained(folder).is_encoder_decoder else AutoModelForCausalLM
            model = kind.from_pretrained(folder, dtype=torch.float32).eval()
            for mode in ["greedy"] * 3 + ["beam"] * 5 + ["group"] * (4 if name in OLD else 0):
                line = None
                while line is None:
                    line = case(r, name, folder, model, mode, old)
                out.write(json.dumps(line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
