"""Every encoder-decoder family with random sizes and options against transformers: logits, encoder states, every gradient, decoding, and the
folder saved again.

CASES (default 4, for each family), FAMILY (default all) and SEED come from the environment. Needs build/tests/model-eval.
"""
import os
import random
import subprocess
import sys
import tempfile
import traceback

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM
from transformers.utils import logging

from check_families import TOOL, compare, compare_outputs
from gen_families import save
from gen_gpt2 import random_batch
from gen_seq2seq import evaluate, random_model, random_sources

LISTS = ("tokens", "offsets", "act_row", "act_token", "src_tokens", "src_offsets", "dlogp", "dentropy", "dvalue")


def t5_settings(r):
    buckets = r.choice([4, 8, 16, 32])
    return dict(vocab_size=r.choice([7, 64, 301]), d_model=r.choice([12, 16, 20, 32]), d_kv=r.choice([4, 6, 8, 16]), d_ff=r.choice([9, 24, 48]),
                num_layers=r.choice([1, 2, 3]), num_decoder_layers=r.choice([None, 1, 2]), num_heads=r.choice([1, 2, 3, 5]),
                relative_attention_num_buckets=buckets, relative_attention_max_distance=r.choice([buckets // 2 + 1, 20, 50, 128]),
                layer_norm_epsilon=r.choice([1e-6, 1e-5]), decoder_start_token_id=0,
                feed_forward_proj=r.choice(["relu", "gated-gelu", "gated-silu", "gelu", "gelu_new", "gated-relu"]),
                tie_word_embeddings=r.random() < 0.6)


def bart_settings(r, family):
    heads, enc_heads = r.choice([1, 2, 3]), r.choice([1, 2, 3])
    vocab = r.choice([7, 64, 301])
    s = dict(vocab_size=vocab, d_model=6 * r.choice([2, 3, 5]), encoder_layers=r.choice([1, 2, 3]), decoder_layers=r.choice([1, 2, 3]),
             encoder_attention_heads=enc_heads, decoder_attention_heads=heads, encoder_ffn_dim=r.choice([9, 24, 48]),
             decoder_ffn_dim=r.choice([9, 24, 48]), max_position_embeddings=r.choice([9, 40, 70]), pad_token_id=1, bos_token_id=0,
             eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None, scale_embedding=r.random() < 0.5,
             activation_function=r.choice(["gelu", "relu", "silu", "gelu_new"]), tie_word_embeddings=r.random() < 0.7)
    if family == "marian" and r.random() < 0.4:
        s.update(share_encoder_decoder_embeddings=False, decoder_vocab_size=r.choice([vocab, vocab - 2, vocab + 5]))
    return s


def compare_saved(model, folder, want, failures):
    """transformers opens our folder: the same bits in, the same bits out."""
    again, info = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    again = again.float().eval()
    unused = {"model.shared.weight"} if "model.decoder.embed_tokens.weight" in load_file(os.path.join(folder, "model.safetensors")) else set()
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if set(info.get(kind) or []) - unused:
            failures.append(f"saved folder: {kind}: {info[kind]}")
    with torch.no_grad():  # torch's products depend on where in a mapped file a tensor lies; its own copies are aligned
        for p in again.parameters():
            p.data = p.data.clone()
    ours = dict(list(again.named_parameters()) + list(again.named_buffers()))
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if name not in unused and (name not in ours or not torch.equal(p, ours[name])):
            failures.append(f"saved folder: {name} is not the same bits")
    for i in range(len(want["offsets"]) - 1):
        ids = want["src_tokens"][want["src_offsets"][i]:want["src_offsets"][i + 1]][None]
        answer = want["tokens"][want["offsets"][i]:want["offsets"][i + 1]][None]
        with torch.no_grad():
            if not torch.equal(model(input_ids=ids, decoder_input_ids=answer).logits, again(input_ids=ids, decoder_input_ids=answer).logits):
                failures.append("saved folder: logits are not the same bits")


def compare_model(folder, saved, model, want, scratch, failures, backends, taken=False, tolerance=2e-5):
    given, out = os.path.join(scratch, "batch.safetensors"), os.path.join(scratch, "result.safetensors")
    save_file({k: want[k] for k in LISTS}, given)
    for backend in backends:
        done = subprocess.run([TOOL, folder, given, out, "--backend", backend, "--save", saved], capture_output=True, text=True)
        if done.returncode:
            failures.append(f"{backend}: exit {done.returncode}: {done.stderr.strip()}")
            continue
        found, got = [], load_file(out)
        compare("states", got["states"], want["states"], 2e-5, found)
        compare_outputs(got, want, found, taken, tolerance)
        failures += [f"{backend}: {f}" for f in found]
    if os.path.isdir(saved):
        compare_saved(model, saved, want, failures)


def run_case(family, seed, scratch):
    r = random.Random(f"{family} {seed}")
    t5 = family in ("t5", "mt5")
    settings = t5_settings(r) if t5 else bart_settings(r, family)
    model, head = random_model(family, seed, settings, own_head=t5 and r.random() < 0.5)
    with torch.no_grad():  # keep logits of order one whatever the width
        for p in model.parameters():
            if p.dim() == 2 and p.requires_grad:
                p.mul_(min(1.0, 5.0 / p.shape[-1] ** 0.5))
    folder, saved = os.path.join(scratch, f"{family}{seed}"), os.path.join(scratch, f"{family}{seed}.out")
    save(model, head, folder)
    longest = settings.get("max_position_embeddings", 80)
    lengths = [r.randint(1, longest) for _ in range(r.randint(0, 3))] + [longest]
    batch = tuple(random_batch(seed, model.lm_head.weight.shape[0], lengths, [r.randint(1, n) for n in lengths]))
    sources = random_sources(seed + 1, settings["vocab_size"], [r.choice([1, r.randint(1, longest), longest]) for _ in lengths])
    weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed))
    want = evaluate(model, head, batch, sources, weights)
    failures = []
    small = (sum(lengths) + len(sources[0])) * settings["vocab_size"] < 10000
    compare_model(folder, saved, model, want, scratch, failures, ("cpu", "ref") if small else ("cpu",))
    return settings, failures


FAMILIES = ["t5", "mt5", "bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small"]


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    passed = failed = 0
    first = int(os.environ.get("SEED", 100))
    print(f"SEED={first}")
    with tempfile.TemporaryDirectory() as scratch:
        for family in os.environ.get("FAMILY", " ".join(FAMILIES)).split():
            for seed in range(first, first + int(os.environ.get("CASES", 4))):
                try:
                    settings, failures = run_case(family, seed, scratch)
                except Exception:
                    settings, failures = {}, [traceback.format_exc()]
                if failures:
                    failed += 1
                    print(f"not ok FAMILY={family} SEED={seed} CASES=1: {settings}")
                    print("".join(f"    {f}\n" for f in failures[:12]), end="")
                else:
                    passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
