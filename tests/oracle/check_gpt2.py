"""GPT-2 of random sizes against transformers: logits, loss, every gradient, decoding, and the folder saved again.

CASES (default 24) and SEED come from the environment. Needs build/tests/model-eval.
"""
import os
import random
import sys

import torch
from safetensors.torch import load_file, save_file

from check_families import LISTS, compare_saved
from gen_gpt2 import evaluate, random_batch, random_model, save
from model_check import compare, compare_gradients, run_cases, run_tool, tame


def random_settings(r):
    heads = r.choice([1, 2, 3, 4, 6, 8])
    width = heads * r.choice([2, 5, 8, 16, 24] if heads > 2 else [5, 8, 16, 24])
    return dict(
        n_layer=r.choice([1, 2, 3, 5]), n_head=heads, n_embd=width, n_positions=r.choice([8, 33, 64, 130]),
        vocab_size=r.choice([5, 64, 257, 1000]), n_inner=r.choice([None, None, width * 2, 7 * heads]),
        tie_word_embeddings=r.random() < 0.7, scale_attn_by_inverse_layer_idx=r.random() < 0.2,
        scale_attn_weights=r.random() < 0.85, layer_norm_epsilon=r.choice([1e-5, 1e-5, 1e-3]),
        activation_function=r.choice(["gelu_new", "gelu_pytorch_tanh"]), bos_token_id=0, eos_token_id=1)


def store(model, head, folder, how):
    """The layouts that are found in the wild; returns the model as its file holds it."""
    if how in ("f16", "bf16"):
        dtype = torch.float16 if how == "f16" else torch.bfloat16
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(p.to(dtype).float())
        save(model, head, folder)
        path = os.path.join(folder, "model.safetensors")
        save_file({k: v.to(dtype) for k, v in load_file(path).items()}, path)
    elif how == "pretrained":
        model.save_pretrained(folder)
        save_file({"value_head.weight": head.detach()}, os.path.join(folder, "value_head.safetensors"))
    elif how == "sharded":
        model.save_pretrained(folder, max_shard_size="10KB")
        save_file({"value_head.weight": head.detach()}, os.path.join(folder, "value_head.safetensors"))
    else:
        save(model, head, folder)
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        if how == "bare":  # as the first GPT-2 files: no prefix, the mask buffers, and the head stored too
            n = model.config.n_positions
            tensors = {k.removeprefix("transformer."): v for k, v in tensors.items()}
            for layer in range(model.config.n_layer):
                tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, n, n, dtype=torch.bool)
                tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
            tensors["lm_head.weight"] = model.lm_head.weight.detach().clone()
        save_file(tensors, path)


def compare_outputs(got, want, failures):
    compare("logits", got["logits"], want["logits"], 1e-5, failures)
    for name in ("logp", "entropy", "value"):
        compare(name, got[name], want[name], 1e-5, failures)
    compare("loss", -got["logp"].mean().reshape(1), want["loss"], 1e-5, failures)
    compare("decoded log-probs", torch.log_softmax(got["decoded"], -1), torch.log_softmax(got["logits"], -1), 1e-5, failures)
    compare_gradients(got, want, failures, 1e-4, ("grad.", "mixed."))


def run_case(family, seed, scratch):
    r = random.Random(seed)
    settings = random_settings(r)
    how = r.choice(["plain", "pretrained", "bare", "f16", "bf16", "sharded"])
    model, head = random_model(seed, **settings)
    tame(model, 6.0)
    folder, saved = os.path.join(scratch, f"in{seed}"), os.path.join(scratch, f"out{seed}")
    store(model, head, folder, how)
    longest = settings["n_positions"]
    lengths = [r.randint(1, longest) for _ in range(r.randint(1, 6))] + [longest]
    prompts = [r.randint(1, length) for length in lengths]
    batch = random_batch(seed, settings["vocab_size"], lengths, prompts)
    weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed))
    want = evaluate(model, head, batch, weights)
    failures = []
    backends = ("cpu", "ref") if sum(lengths) * settings["vocab_size"] * settings["n_embd"] < 2e7 else ("cpu",)
    run_tool("model-eval", folder, {k: want[k] for k in LISTS}, scratch, backends, saved, lambda got, found: compare_outputs(got, want, found), failures)
    if os.path.isdir(saved):
        compare_saved(model, saved, batch, failures)
    return dict(settings, stored=how), failures


if __name__ == "__main__":
    sys.exit(run_cases({"gpt2": int(os.environ.get("CASES", 24))}, run_case))
