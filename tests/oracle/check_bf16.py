"""Training with products in bf16 beside torch's autocast: how far log-probs and gradients are from those in f64.

Ours may be as far as torch's (FACTOR times): torch also rounds the results of products, ours stay f32. Three kinds of models: random ones of
random sizes, the trained built-in one on text, and one of GPT-2's width (LAYERS, default 3, and VOCAB, default 4000, of its 12 and 50257).
CASES (default 8) and SEED come from the environment. Needs build/tests/model-eval.
"""
import copy
import os
import random
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, GPT2LMHeadModel

from check_families import LISTS
from gen_gpt2 import evaluate, random_batch, random_model, save
from model_check import BUILD, run_cases, tame

FACTOR = 1.0
TINY = os.path.join("configs", "models", "tiny")


def random_case(r, seed):
    heads = r.choice([2, 4, 8])
    model, head = random_model(seed, n_layer=r.choice([1, 2, 4]), n_head=heads, n_embd=heads * r.choice([8, 16, 24]), n_positions=64,
                               vocab_size=r.choice([64, 257, 1000]), tie_word_embeddings=r.random() < 0.7, bos_token_id=0, eos_token_id=1)
    tame(model, 3.0)
    lengths = [r.randint(8, 64) for _ in range(3)]
    return model, head, random_batch(seed, model.config.vocab_size, lengths, [r.randint(1, n // 2) for n in lengths])


def trained_case(r, seed):
    model = GPT2LMHeadModel.from_pretrained(TINY, attn_implementation="eager").float().eval()
    torch.manual_seed(seed)
    head = (torch.randn(1, model.config.n_embd) * 0.3).requires_grad_(True)
    words = open("README.md", encoding="utf-8").read().split()
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    batch = [], [0], [], []
    for _ in range(4):
        at = r.randrange(len(words) - 60)
        ids = tokenizer(" ".join(words[at:at + 60])).input_ids[:48]
        batch[2].extend(range(len(batch[0]), len(batch[0]) + len(ids) - 1))
        batch[3].extend(ids[1:])
        batch[0].extend(ids[:-1])
        batch[1].append(len(batch[0]))
    return model, head, batch


def wide_case(r, seed):
    vocab = int(os.environ.get("VOCAB", 4000))
    model, head = random_model(seed, n_layer=int(os.environ.get("LAYERS", 3)), n_head=12, n_embd=768, n_positions=64, vocab_size=vocab,
                               bos_token_id=0, eos_token_id=1)
    with torch.no_grad():  # as transformers begins, twice as large: a fresh model's distributions are nearly flat
        for name, p in model.named_parameters():
            p.mul_(0.04 / 0.15) if p.dim() == 2 else None
    return model, head, random_batch(seed, vocab, [32, 24], [1, 1])


def autocast(model, head, batch, weights):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return evaluate(model, head, batch, weights)


def exact(model, head, batch, weights):
    return evaluate(copy.deepcopy(model).double(), head.detach().double().requires_grad_(True), batch, weights.double())


def ours(folder, given, scratch, compute):
    batch, out = os.path.join(scratch, "batch.safetensors"), os.path.join(scratch, "result.safetensors")
    save_file(given, batch)
    subprocess.run([os.path.join(BUILD, "tests", "model-eval"), folder, batch, out, "--compute", compute], check=True)
    return load_file(out)


def distance(got, want, prefix):
    """Of all tensors of that kind together, relative; of log-probs root mean square."""
    names = [n for n in want if n.startswith(prefix)]
    off = sum((got[n].double().reshape(want[n].shape) - want[n]).square().sum().item() for n in names)
    size = sum(want[n].square().sum().item() for n in names)
    return (off / (sum(want[n].numel() for n in names) if prefix == "logp" else size)) ** 0.5


def run_case(family, seed, scratch):
    r = random.Random(seed)
    model, head, batch = {"random": random_case, "trained": trained_case, "wide": wide_case}[family](r, seed)
    folder = os.path.join(scratch, "model")
    save(model, head, folder)
    weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed))
    want = exact(model, head, batch, weights)
    theirs = autocast(model, head, batch, weights)
    given = {k: theirs[k] for k in ("tokens", "offsets", "act_row", "act_token")}
    given.update(dlogp=weights[0].clone(), dentropy=weights[1].clone(), dvalue=weights[2].clone())
    assert set(given) == set(LISTS)
    mine, full = ours(folder, given, scratch, "bf16"), ours(folder, given, scratch, "f32")
    failures, said = [], []
    for kind, what in (("logp", "log-probs"), ("grad.", "gradient of the loss"), ("mixed.", "gradient of a mixture")):
        a, b, c = distance(mine, want, kind), distance(theirs, want, kind), distance(full, want, kind)
        said.append(f"{what} {a:.2e} (torch {b:.2e}, f32 {c:.1e})")
        if not a <= FACTOR * b:
            failures.append(f"{what}: off by {a:.3g}, torch's autocast by {b:.3g}")
        if not c < 0.1 * a:
            failures.append(f"{what}: bf16 is off by {a:.3g} and f32 by {c:.3g}: nothing was rounded")
    print(f"{family} {seed}: " + "; ".join(said))
    return dict(layers=model.config.n_layer, width=model.config.n_embd, vocab=model.config.vocab_size), failures


if __name__ == "__main__":
    n = int(os.environ.get("CASES", 8))
    sys.exit(run_cases({"random": n, "trained": (n + 3) // 4, "wide": 1}, run_case))
