"""Makes tests/golden/families: a tiny random model of every decoder family and what transformers computes with it.

Each folder: config.json, model.safetensors, value_head.safetensors, and expected.safetensors as gen_gpt2.py describes it, without the
gradients of the loss. Run: python tests/oracle/gen_families.py
"""
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from gen_gpt2 import random_batch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "families")

PAD = 10  # in the texts of qwen2_pad: reading it gives its embedding no gradient
IDS = dict(bos_token_id=0, eos_token_id=1, pad_token_id=None)
LLAMA = dict(vocab_size=23, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=24, rms_norm_eps=1e-5, **IDS)
GOLDENS = {
    "gpt_neo": dict(vocab_size=23, hidden_size=16, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=2,
                    window_size=5, max_position_embeddings=24, **IDS),
    "gptj": dict(vocab_size=23, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, n_positions=24, n_inner=20, **IDS),
    "gpt_neox": dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
                     max_position_embeddings=24, rope_parameters=dict(rope_type="default", rope_theta=100.0,
                                                                      partial_rotary_factor=0.5), **IDS),
    "opt": dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20, word_embed_proj_dim=16,
                max_position_embeddings=24, **IDS),
    "bloom": dict(vocab_size=23, hidden_size=12, n_layer=2, n_head=3, **IDS),
    "llama": dict(LLAMA, attention_bias=True, mlp_bias=True,
                  rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
                                       original_max_position_embeddings=12)),
    "mistral": dict(LLAMA, num_key_value_heads=1, sliding_window=4, head_dim=6),
    "qwen2": dict(LLAMA, tie_word_embeddings=True, use_sliding_window=True, sliding_window=6, max_window_layers=1,
                  rope_parameters=dict(rope_type="yarn", rope_theta=50.0, factor=2.0, original_max_position_embeddings=12)),
    "qwen3": dict(LLAMA, hidden_size=12, head_dim=8),
    "gemma": dict(LLAMA, num_key_value_heads=1, head_dim=6),
    "gemma2": dict(LLAMA, head_dim=6, sliding_window=4, attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
                   query_pre_attn_scalar=5),
    "opt_350m": dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20, word_embed_proj_dim=6,
                     do_layer_norm_before=False, max_position_embeddings=24, **IDS),
    "gemma3_text": dict(LLAMA, num_hidden_layers=3, head_dim=6, sliding_window=4, query_pre_attn_scalar=5,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                        rope_parameters=dict(full_attention=dict(rope_type="linear", rope_theta=500.0, factor=2.0),
                                             sliding_attention=dict(rope_type="default", rope_theta=20.0))),
    "opt_plain": dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20, word_embed_proj_dim=16,
                      layer_norm_elementwise_affine=False, max_position_embeddings=24, **IDS),
    "bloom_stream": dict(vocab_size=23, hidden_size=12, n_layer=2, n_head=3, apply_residual_connection_post_layernorm=True, **IDS),
    "llama_long": dict(LLAMA, rope_parameters=dict(rope_type="longrope", rope_theta=100.0, short_factor=[1.5, 2.0], long_factor=[3.0, 5.0],
                                                   original_max_position_embeddings=20)),
    "qwen3_proportional": dict(LLAMA, hidden_size=12, head_dim=8, rope_parameters=dict(rope_type="proportional", rope_theta=50.0, factor=2.0,
                                                                                       partial_rotary_factor=0.7)),
    "opt_wide": dict(vocab_size=23, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20, word_embed_proj_dim=30,
                     max_position_embeddings=24, **IDS),
    "qwen2_pad": dict(LLAMA, tie_word_embeddings=True, pad_token_id=PAD),
    "gemma3_grown": dict(LLAMA, num_hidden_layers=2, head_dim=8, query_pre_attn_scalar=6, sliding_window=5, max_position_embeddings=6,
                         layer_types=["sliding_attention", "full_attention"],
                         rope_parameters=dict(full_attention=dict(rope_type="longrope", rope_theta=50.0, short_factor=[1.0, 1.5, 2.0, 2.5],
                                                                  long_factor=[1.5, 3.0, 5.0, 8.0], original_max_position_embeddings=5),
                                              sliding_attention=dict(rope_type="dynamic", rope_theta=20.0, factor=2.0))),
    "gpt_neox_odd": dict(vocab_size=23, hidden_size=28, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
                         max_position_embeddings=24, rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=2.0,
                                                                          partial_rotary_factor=0.4), **IDS),  # 5 of 14, in 3 pairs
}
FAMILIES = {"opt_350m": "opt", "opt_plain": "opt", "bloom_stream": "bloom", "llama_long": "llama", "qwen3_proportional": "qwen3",
            "opt_wide": "opt", "qwen2_pad": "qwen2", "gpt_neox_odd": "gpt_neox", "gemma3_grown": "gemma3_text"}  # where it is not the golden's name


def random_model(family, seed, settings, scale=0.15):
    """A model whose every tensor is random and large enough to matter."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **settings)
    for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop", "resid_dropout", "embed_dropout", "attention_dropout", "hidden_dropout",
                 "dropout", "layerdrop"):
        if hasattr(config, name):
            setattr(config, name, 0.0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    around = 0.0 if family.startswith("gemma") else 1.0
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = p.dim() == 1 and name.endswith("weight")
            p.copy_(torch.randn_like(p) * scale + (around if norm else 0.0))
    width = getattr(config, "hidden_size", model.get_input_embeddings().weight.shape[1])
    return model, (torch.randn(1, width) * 0.3).requires_grad_(True)


def states(model, ids):
    """What heads read; OPT with narrow embeddings makes its last hidden state narrow too, behind that."""
    project, wide = getattr(getattr(model.base_model, "decoder", None), "project_out", None), []
    hook = project.register_forward_pre_hook(lambda module, args: wide.append(args[0])) if project is not None else None
    out = model.base_model(ids, use_cache=False).last_hidden_state[0]
    if hook:
        hook.remove()
        return wide[0].reshape(-1, wide[0].shape[-1])
    return out


def forward(model, head, batch):
    """Each sequence by itself: what packing must reproduce."""
    tokens, offsets, act_row, act_token = batch
    logits, hidden = [], []
    for begin, end in zip(offsets, offsets[1:]):
        ids = torch.tensor([tokens[begin:end]])
        logits.append(model(ids, use_cache=False).logits[0])
        hidden.append(states(model, ids))
    logits, hidden = torch.cat(logits), torch.cat(hidden)
    rows = torch.tensor(act_row, dtype=torch.long)
    logprobs = torch.log_softmax(logits[rows], -1)
    logp = logprobs.gather(1, torch.tensor(act_token, dtype=torch.long)[:, None])[:, 0]
    return logits, logp, -(logprobs.exp() * logprobs).sum(-1), (hidden[rows] @ head.T)[:, 0]


def file_name(model, name):
    """What save_pretrained calls a parameter."""
    return name.replace("lm_head.", "embed_out.") if model.config.model_type == "gpt_neox" else name


def evaluate(model, head, batch, weights):
    logits, logp, entropy, value = forward(model, head, batch)
    dlogp, dentropy, dvalue = weights
    model.zero_grad()
    head.grad = None
    (dlogp * logp + dentropy * entropy + dvalue * value).sum().backward()
    out = {"logits": logits, "logp": logp, "entropy": entropy, "value": value, "loss": -logp.mean().reshape(1),
           "dlogp": dlogp, "dentropy": dentropy, "dvalue": dvalue}
    out.update({f"mixed.{file_name(model, k)}": p.grad.clone() for k, p in model.named_parameters()})
    out["mixed.value_head.weight"] = head.grad.clone()
    for name, values in zip(("tokens", "offsets", "act_row", "act_token"), batch):
        out[name] = torch.tensor(values, dtype=torch.int64)
    return {k: v.detach().contiguous() for k, v in out.items()}


@torch.no_grad()
def decode(model, logits, batch):
    """The same token by token behind the first half of each text, where that differs: a text grows, the keys it has keep their angles."""
    tokens, offsets = batch[:2]
    out = logits.clone()
    for begin, end in zip(offsets, offsets[1:]):
        half, cache = begin + (end - begin + 1) // 2, None
        for first, last in [(begin, half)] + [(t, t + 1) for t in range(half, end)]:
            step = model(torch.tensor([tokens[first:last]]), past_key_values=cache, use_cache=True)
            cache, out[last - 1] = step.past_key_values, step.logits[0, -1]
    return out


def save(model, head, folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.generation_config.pad_token_id = None  # below 0 it cannot be saved
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "generation_config.json"))
    save_file({"value_head.weight": head.detach()}, os.path.join(folder, "value_head.safetensors"))


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for seed, (family, settings) in enumerate(GOLDENS.items()):
        model, head = random_model(FAMILIES.get(family, family), seed + 1, settings)
        batch = random_batch(seed + 10, settings["vocab_size"], [7, 1, 20], [3, 1, 6])
        weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed + 20))
        folder = os.path.join(ROOT, family)
        save(model, head, folder)
        expected = evaluate(model, head, batch, weights)
        if family == "gemma3_grown":
            expected["decoded"] = decode(model, expected["logits"], batch)
        save_file(expected, os.path.join(folder, "expected.safetensors"))
        for file in os.listdir(folder):
            os.chmod(os.path.join(folder, file), 0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
