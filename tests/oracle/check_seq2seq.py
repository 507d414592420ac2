"""Every encoder-decoder family with random sizes and options against transformers: logits, encoder states, every gradient, decoding, and the
folder saved again.

CASES (default 4, for each family), FAMILY (default all) and SEED come from the environment. Needs build/tests/model-eval.
"""
import os
import random
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM

from check_families import compare_outputs
from gen_families import save
from gen_gpt2 import random_batch
from gen_seq2seq import evaluate, random_model, random_sources
from model_check import compare, compare_bits, compare_results, reopen, run_cases, run_tool, tame

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
    """The same bits in, the same bits out."""
    unused = {"model.shared.weight"} if "model.decoder.embed_tokens.weight" in load_file(os.path.join(folder, "model.safetensors")) else set()
    again = reopen(AutoModelForSeq2SeqLM, folder, failures, unused)
    compare_bits(model, again, failures, unused)
    rows = lambda key, offsets, i: want[key][want[offsets][i]:want[offsets][i + 1]][None]
    compare_results(model, again, [dict(input_ids=rows("src_tokens", "src_offsets", i), decoder_input_ids=rows("tokens", "offsets", i))
                                   for i in range(len(want["offsets"]) - 1)], failures)


def compare_model(folder, saved, model, want, scratch, failures, backends, taken=False, tolerance=2e-5):
    def compare_all(got, found):
        compare("states", got["states"], want["states"], 2e-5, found)
        compare_outputs(got, want, found, taken, tolerance)

    run_tool("model-eval", folder, {k: want[k] for k in LISTS}, scratch, backends, saved, compare_all, failures)
    if os.path.isdir(saved):
        compare_saved(model, saved, want, failures)


def run_case(family, seed, scratch):
    r = random.Random(f"{family} {seed}")
    t5 = family in ("t5", "mt5")
    settings = t5_settings(r) if t5 else bart_settings(r, family)
    model, head = random_model(family, seed, settings, own_head=t5 and r.random() < 0.5)
    tame(model)
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


if __name__ == "__main__":
    sys.exit(run_cases({family: int(os.environ.get("CASES", 4)) for family in FAMILIES}, run_case))
