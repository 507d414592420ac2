"""Every decoder family with random sizes and options against transformers: logits, every gradient, decoding, and the folder saved again.

CASES (default 3, for each family), FAMILY (default all) and SEED come from the environment. Needs build/tests/model-eval.
"""
import os
import random
import sys

import torch
from transformers import AutoModelForCausalLM

from gen_families import IDS, evaluate, random_batch, random_model, save
from model_check import compare, compare_bits, compare_gradients, compare_results, reopen, run_cases, run_tool, tame

LISTS = ("tokens", "offsets", "act_row", "act_token", "dlogp", "dentropy", "dvalue")


def rope(r, positions, head_dim, partial=None):
    """partial: of families that turn a part of each head."""
    kind = r.choice(["default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"])
    turned = int(head_dim * (partial or 1))
    if (kind == "dynamic" and turned == 2) or (kind == "yarn" and turned % 2):  # transformers divides by zero, or has too few ramps
        kind = "linear"
    out = dict(rope_type=kind, rope_theta=r.choice([100.0, 10000.0, 1e6]))
    if kind != "default" and (kind != "longrope" or r.random() < 0.5):
        out["factor"] = r.choice([2.0, 4.0, 8.0])
    if kind == "longrope":
        pairs = (turned + 1) // 2
        out.update(short_factor=[r.uniform(1, 3) for _ in range(pairs)], long_factor=[r.uniform(3, 9) for _ in range(pairs)],
                   original_max_position_embeddings=max(4, r.choice([positions, positions // 2])), **r.choice([{}, dict(attention_factor=1.2)]))
    if kind == "llama3":
        out.update(low_freq_factor=r.choice([1.0, 0.5]), high_freq_factor=r.choice([2.0, 4.0]),
                   original_max_position_embeddings=max(4, positions // 2))
    if kind == "yarn":
        out["original_max_position_embeddings"] = max(4, positions // 2)
        out.update(r.choice([{}, dict(attention_factor=0.9), dict(mscale=0.8, mscale_all_dim=0.5), dict(beta_fast=16.0, beta_slow=2.0),
                             dict(truncate=False)]))
    if kind == "proportional":
        partial = r.choice([0.25, 0.5, 0.9, 1.0])
    if partial:
        out["partial_rotary_factor"] = partial
    return out


def llama_like(r, family):
    heads, head_dim = r.choice([1, 2, 4, 6]), r.choice([4, 8, 10, 16])
    free = family in ("llama", "mistral", "qwen3", "gemma", "gemma2", "gemma3_text")
    positions = r.choice([12, 40, 70, 900])  # far ones show how frequencies were rounded
    if positions == 900:
        heads, head_dim = r.choice([1, 2]), r.choice([16, 80])
    s = dict(IDS, vocab_size=r.choice([7, 64, 301]), num_attention_heads=heads,
             hidden_size=r.choice([w for w in (12, 20, 32) if family not in ("llama", "gemma2", "gemma3_text") or w % heads == 0]) if free else heads * head_dim,
             num_key_value_heads=r.choice([k for k in (1, 2, 3, 6) if heads % k == 0]), intermediate_size=r.choice([9, 24, 48]),
             num_hidden_layers=r.choice([1, 2, 3]), max_position_embeddings=positions, rms_norm_eps=r.choice([1e-5, 1e-6]),
             tie_word_embeddings=r.random() < 0.5, rope_parameters=rope(r, positions, head_dim))
    if free:
        s["head_dim"] = head_dim
    if family in ("llama", "qwen3", "gemma", "gemma2", "gemma3_text"):
        s["attention_bias"] = r.random() < 0.4
    if family == "llama":
        s["mlp_bias"] = r.random() < 0.4
        s["hidden_act"] = r.choice(["silu", "gelu", "relu"])
    if family in ("mistral", "gemma2", "gemma3_text"):
        s["sliding_window"] = r.choice([None, 1, 3, 17]) if family == "mistral" else r.choice([1, 3, 17])
    if family in ("qwen2", "qwen3"):
        s.update(use_sliding_window=r.random() < 0.6, sliding_window=r.choice([2, 9]), max_window_layers=r.choice([0, 1, 2]))
    if family == "gemma3_text":
        s.update(r.choice([dict(sliding_window_pattern=r.choice([1, 2, 3])), {},
                           dict(layer_types=[r.choice(["sliding_attention", "full_attention"]) for _ in range(s["num_hidden_layers"])])]))
        both = (s["rope_parameters"], rope(r, positions, head_dim))
        for angles in both:  # not looked for in types of layers
            angles.pop("truncate", None)
        s["rope_parameters"] = r.choice([None, dict(zip(("full_attention", "sliding_attention"), both))])
    if family in ("gemma2", "gemma3_text"):
        s.update(attn_logit_softcapping=r.choice([None, 1.0, 50.0]), final_logit_softcapping=r.choice([None, 2.0, 30.0]),
                 query_pre_attn_scalar=r.choice([4, 30]) if positions < 900 else head_dim)  # sharper ones sum up more rounding over far rows
    return s


def random_settings(r, family):
    heads, positions, layers = r.choice([1, 2, 3, 5]), r.choice([9, 40, 70]), r.choice([1, 2, 3])
    head_dim = r.choice([4, 8, 12])
    width, vocab, tied = heads * head_dim, r.choice([7, 64, 301]), r.random() < 0.5
    common = dict(IDS, vocab_size=vocab, tie_word_embeddings=tied)
    if family == "gpt_neo":
        kinds = [r.choice(["global", "local"]) for _ in range(layers)]
        return dict(common, hidden_size=width, num_layers=layers, num_heads=heads, attention_types=[[kinds, 1]],
                    window_size=r.choice([1, 4, 30]), intermediate_size=r.choice([None, 30]), max_position_embeddings=positions,
                    activation_function=r.choice(["gelu_new", "gelu", "relu"]))
    if family == "gptj":
        return dict(common, n_embd=width, n_layer=layers, n_head=heads, rotary_dim=r.choice([2, 4]), n_positions=positions,
                    n_inner=r.choice([None, 30]))
    if family == "gpt_neox":
        return dict(common, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=30,
                    max_position_embeddings=positions, use_parallel_residual=r.random() < 0.6, attention_bias=r.random() < 0.7,
                    hidden_act=r.choice(["gelu", "gelu_new", "gelu_fast"]),
                    rope_parameters=rope(r, positions, head_dim, r.choice([0.25, 0.5, 0.9, 1.0])))
    if family == "opt":
        return dict(common, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, ffn_dim=30,
                    word_embed_proj_dim=r.choice([width, width, max(1, width // 2), 3, 4 * width + 5]), do_layer_norm_before=r.random() < 0.6,
                    _remove_final_layer_norm=r.random() < 0.2, max_position_embeddings=positions, enable_bias=r.random() < 0.7,
                    activation_function=r.choice(["relu", "gelu"]), layer_norm_elementwise_affine=r.random() < 0.7)
    if family == "bloom":
        return dict(common, hidden_size=width, n_layer=layers, n_head=heads, apply_residual_connection_post_layernorm=r.random() < 0.4)
    return llama_like(r, family)


def rope_objects(settings):
    angles = settings.get("rope_parameters") or {}
    return [a for a in (angles, *angles.values()) if isinstance(a, dict)]


def trained_length(settings):
    ends = [a["original_max_position_embeddings"] for a in rope_objects(settings) if a.get("rope_type") == "longrope"]
    return min([settings.get("max_position_embeddings", settings.get("n_positions", 60))] + ends)


def longest_text(r, family, settings):
    """How many tokens, and whether the text then turns from its first token on as no shorter one does: a decoder with a cache cannot."""
    trained = trained_length(settings)
    if family in ("gpt_neo", "gptj", "opt") or r.random() < 0.6:  # those keep a row for each position
        return trained, False
    return trained + r.randint(1, 2 * trained), any(a.get("rope_type") in ("dynamic", "longrope") for a in rope_objects(settings))


def compare_decoded(got, want, failures, taken):
    """The decoder beside the pass: every token's log-prob; taken: those of the actions, and all within rounding of logits that are large."""
    decoded, packed = torch.log_softmax(got["decoded"], -1), torch.log_softmax(got["logits"], -1)
    if taken:
        compare("decoded log-probs, relative", decoded / (1 + packed.abs()), packed / (1 + packed.abs()), 1e-5, failures)
        decoded, packed = (x[want["act_row"]].gather(1, want["act_token"][:, None]) for x in (decoded, packed))
    compare("decoded log-probs", decoded, packed, 1e-5, failures)


def compare_outputs(got, want, failures, taken=False, tolerance=2e-5, decoded=True):
    for name in ("logits", "logp", "entropy", "value"):
        compare(name, got[name], want[name], tolerance, failures)
    if decoded:
        compare_decoded(got, want, failures, taken)
    compare_gradients(got, want, failures)


def compare_saved(model, folder, batch, failures):
    """The same bits in, the same bits out."""
    again = reopen(AutoModelForCausalLM, folder, failures)
    compare_results(model, again, [dict(input_ids=torch.tensor([batch[0][begin:end]])) for begin, end in zip(batch[1], batch[1][1:])], failures)
    compare_bits(model, again, failures)  # behind it: models keep the angles of the last long text


def run_case(family, seed, scratch):
    r = random.Random(f"{family} {seed}")
    settings = random_settings(r, family)
    # reading it gives its embedding no gradient in some families; -1 is the last one's, and no padding otherwise
    settings["pad_token_id"] = r.choice([None, 2, settings["vocab_size"] - 1, -1])
    model, head = random_model(family, seed, settings)
    tame(model)
    folder, saved = os.path.join(scratch, f"{family}{seed}"), os.path.join(scratch, f"{family}{seed}.out")
    save(model, head, folder)
    longest, varies = longest_text(r, family, settings)
    lengths = [r.randint(1, longest) for _ in range(r.randint(0, 3))] + [longest]
    if varies:  # transformers keeps the angles of the longest text it has seen
        lengths = [longest]
    batch = random_batch(seed, settings["vocab_size"], lengths, [r.randint(1, n) for n in lengths])
    if settings["pad_token_id"] is not None:
        for i in range(0, len(batch[0]), r.choice([2, 5])):
            batch[0][i] = settings["pad_token_id"] % settings["vocab_size"]
    weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed))
    want = evaluate(model, head, batch, weights)
    failures = []
    backends = ("cpu", "ref") if sum(lengths) * settings["vocab_size"] < 10000 else ("cpu",)
    run_tool("model-eval", folder, {k: want[k] for k in LISTS}, scratch, backends, saved, lambda got, found: compare_outputs(got, want, found, decoded=not varies), failures)
    if os.path.isdir(saved):
        compare_saved(model, saved, batch, failures)
    return settings, failures


FAMILIES = ["gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2",
            "gemma3_text"]


if __name__ == "__main__":
    sys.exit(run_cases({family: int(os.environ.get("CASES", 3)) for family in FAMILIES}, run_case))
