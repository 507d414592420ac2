"""GPT-2 of random sizes against transformers: logits, loss, every gradient, decoding, and the folder saved again.

CASES (default 24) and SEED come from the environment. Needs build/tests/model-eval.
"""
import os
import random
import subprocess
import sys
import tempfile
import traceback

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from gen_gpt2 import evaluate, random_batch, random_model, save

TOOL = os.path.join(os.environ.get("BUILD", "build"), "tests", "model-eval")


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


def compare(what, got, want, tolerance, failures):
    if got.shape != want.shape:
        got = got.reshape(want.shape)
    worst = (got - want).abs().max().item() if want.numel() else 0.0
    if not worst <= tolerance:
        failures.append(f"{what}: differs by {worst:.3g}, allowed {tolerance:.3g}")


def compare_outputs(got, want, failures):
    compare("logits", got["logits"], want["logits"], 1e-5, failures)
    for name in ("logp", "entropy", "value"):
        compare(name, got[name], want[name], 1e-5, failures)
    compare("loss", -got["logp"].mean().reshape(1), want["loss"], 1e-5, failures)
    compare("decoded log-probs", torch.log_softmax(got["decoded"], -1), torch.log_softmax(got["logits"], -1), 1e-5, failures)
    for name, grad in want.items():
        if name.startswith(("grad.", "mixed.")):
            # a gradient that is nothing but rounding has no relative size: judge it by the largest of its kind
            top = max(grad.abs().max().item(), 1e-3 * largest(want, name.split(".")[0]))
            compare(name, got[name], grad, 1e-4 * top, failures)


def largest(tensors, kind):
    return max(v.abs().max().item() for k, v in tensors.items() if k.startswith(kind + "."))


def compare_saved(model, folder, batch, failures):
    """transformers opens our folder: the same bits in, the same bits out."""
    again, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    again = again.float().eval()
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(kind):
            failures.append(f"saved folder: {kind}: {info[kind]}")
    with torch.no_grad():  # torch's products depend on where in a mapped file a tensor lies; its own copies are aligned
        for p in again.parameters():
            p.data = p.data.clone()
    ours = dict(again.named_parameters())
    for name, p in model.named_parameters():
        if name not in ours or not torch.equal(p, ours[name]):
            failures.append(f"saved folder: {name} is not the same bits")
    tokens, offsets = batch[0], batch[1]
    for begin, end in zip(offsets, offsets[1:]):
        ids = torch.tensor([tokens[begin:end]])
        if not torch.equal(model(ids).logits, again(ids).logits):
            failures.append("saved folder: logits are not the same bits")
    if again.config.tie_word_embeddings != model.config.tie_word_embeddings:
        failures.append("saved folder: tie_word_embeddings changed")


def run_case(seed, scratch):
    r = random.Random(seed)
    settings = random_settings(r)
    how = r.choice(["plain", "pretrained", "bare", "f16", "bf16", "sharded"])
    model, head = random_model(seed, **settings)
    with torch.no_grad():  # keep logits of order one whatever the width
        for name, p in model.named_parameters():
            if p.dim() == 2:
                p.mul_(min(1.0, 6.0 / p.shape[-1] ** 0.5))
    folder, saved = os.path.join(scratch, f"in{seed}"), os.path.join(scratch, f"out{seed}")
    store(model, head, folder, how)
    longest = settings["n_positions"]
    lengths = [r.randint(1, longest) for _ in range(r.randint(1, 6))] + [longest]
    prompts = [r.randint(1, length) for length in lengths]
    batch = random_batch(seed, settings["vocab_size"], lengths, prompts)
    weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed))
    want = evaluate(model, head, batch, weights)
    given = os.path.join(scratch, "batch.safetensors")
    save_file({k: want[k] for k in ("tokens", "offsets", "act_row", "act_token", "dlogp", "dentropy", "dvalue")}, given)
    failures = []
    for backend in ("cpu", "ref") if sum(lengths) * settings["vocab_size"] * settings["n_embd"] < 2e7 else ("cpu",):
        out = os.path.join(scratch, "result.safetensors")
        done = subprocess.run([TOOL, folder, given, out, "--backend", backend, "--save", saved], capture_output=True, text=True)
        if done.returncode:
            failures.append(f"{backend}: exit {done.returncode}: {done.stderr.strip()}")
            continue
        found = []
        compare_outputs(load_file(out), want, found)
        failures += [f"{backend}: {f}" for f in found]
    if os.path.isdir(saved):
        compare_saved(model, saved, batch, failures)
    return settings, how, failures


def main():
    logging.disable_progress_bar()
    torch.set_num_threads(2)
    passed = failed = 0
    first = int(os.environ.get("SEED", 100))
    print(f"SEED={first}")
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first, first + int(os.environ.get("CASES", 24))):
            try:
                settings, how, failures = run_case(seed, scratch)
            except Exception:
                settings, how, failures = {}, "?", [traceback.format_exc()]
            if failures:
                failed += 1
                print(f"not ok SEED={seed} CASES=1 stored {how}: {settings}")
                print("".join(f"    {f}\n" for f in failures), end="")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
