"""Makes tests/golden/families/{t5,mt5,bart,...}: a tiny random model of every encoder-decoder family and what transformers computes with it.

Each folder: config.json, model.safetensors, value_head.safetensors, and expected.safetensors as gen_families.py describes it, with the sources
(src_tokens, src_offsets) and the encoder's states. Run: python tests/oracle/gen_seq2seq.py
"""
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForSeq2SeqLM
from transformers.utils import logging

from gen_families import ROOT, save
from gen_gpt2 import random_batch

T5 = dict(vocab_size=23, d_model=16, d_kv=6, d_ff=20, num_layers=2, num_decoder_layers=2, num_heads=2, relative_attention_num_buckets=8,
          relative_attention_max_distance=9, decoder_start_token_id=0)
BART = dict(vocab_size=23, d_model=12, encoder_layers=2, decoder_layers=1, encoder_attention_heads=3, decoder_attention_heads=2,
            encoder_ffn_dim=10, decoder_ffn_dim=14, max_position_embeddings=24, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            decoder_start_token_id=2, forced_eos_token_id=None)
GOLDENS = {
    "t5": T5,
    "mt5": dict(T5, feed_forward_proj="gated-gelu", num_decoder_layers=1),
    "bart": BART,
    "mbart": dict(BART, scale_embedding=True),
    "marian": dict(BART, activation_function="silu", share_encoder_decoder_embeddings=False, decoder_vocab_size=19),
    "pegasus": dict(BART, scale_embedding=True),
    "blenderbot": dict(BART, tie_word_embeddings=False),
    "blenderbot-small": BART,
}


def random_model(family, seed, settings, scale=0.15, own_head=False):
    """A model whose every tensor is random and large enough to matter; own_head: T5's later models have one whatever the config says."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **settings)
    for name in ("dropout", "dropout_rate", "attention_dropout", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop"):
        if hasattr(config, name):
            setattr(config, name, 0.0)
    model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.requires_grad:
                continue  # the waves of positions
            norm = p.dim() == 1 and name.endswith("weight")
            p.copy_(torch.randn_like(p) * scale + (1.0 if norm else 0.0))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(0, 0.3)
        if own_head:
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight) * scale)
    width = model.config.d_model
    return model, (torch.randn(1, width) * 0.3).requires_grad_(True)


def random_sources(seed, vocab, lengths):
    g = torch.Generator().manual_seed(seed)
    tokens, offsets = [], [0]
    for n in lengths:
        tokens += torch.randint(0, vocab, (n,), generator=g).tolist()
        offsets.append(len(tokens))
    return tokens, offsets


def forward(model, head, batch, sources):
    """Each pair by itself: what packing must reproduce."""
    tokens, offsets, act_row, act_token = batch
    src, src_offsets = sources
    logits, hidden, states = [], [], []
    for i in range(len(offsets) - 1):
        ids = torch.tensor([src[src_offsets[i]:src_offsets[i + 1]]])
        answer = torch.tensor([tokens[offsets[i]:offsets[i + 1]]])
        out = model(input_ids=ids, decoder_input_ids=answer, use_cache=False, output_hidden_states=True)
        logits.append(out.logits[0])
        hidden.append(out.decoder_hidden_states[-1][0])
        states.append(out.encoder_last_hidden_state[0])
    logits, hidden = torch.cat(logits), torch.cat(hidden)
    rows = torch.tensor(act_row, dtype=torch.long)
    logprobs = torch.log_softmax(logits[rows], -1)
    logp = logprobs.gather(1, torch.tensor(act_token, dtype=torch.long)[:, None])[:, 0]
    return logits, logp, -(logprobs.exp() * logprobs).sum(-1), (hidden[rows] @ head.T)[:, 0], torch.cat(states)


def evaluate(model, head, batch, sources, weights):
    logits, logp, entropy, value, states = forward(model, head, batch, sources)
    dlogp, dentropy, dvalue = weights
    model.zero_grad()
    head.grad = None
    (dlogp * logp + dentropy * entropy + dvalue * value).sum().backward()
    out = {"logits": logits, "logp": logp, "entropy": entropy, "value": value, "states": states, "loss": -logp.mean().reshape(1),
           "dlogp": dlogp, "dentropy": dentropy, "dvalue": dvalue}
    out.update({f"mixed.{k}": p.grad.clone() for k, p in model.named_parameters() if p.grad is not None})
    out["mixed.value_head.weight"] = head.grad.clone()
    for name, values in zip(("tokens", "offsets", "act_row", "act_token", "src_tokens", "src_offsets"), batch + tuple(sources)):
        out[name] = torch.tensor(values, dtype=torch.int64)
    return {k: v.detach().contiguous() for k, v in out.items()}


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for seed, (family, settings) in enumerate(GOLDENS.items()):
        model, head = random_model(family, seed + 1, settings, own_head=family == "mt5")
        batch = tuple(random_batch(seed + 10, model.lm_head.out_features, [7, 1, 20], [3, 1, 6]))
        sources = random_sources(seed + 30, settings["vocab_size"], [5, 24, 1])
        weights = torch.randn(3, len(batch[2]), generator=torch.Generator().manual_seed(seed + 20))
        folder = os.path.join(ROOT, family)
        save(model, head, folder)
        save_file(evaluate(model, head, batch, sources, weights), os.path.join(folder, "expected.safetensors"))
        for file in os.listdir(folder):
            os.chmod(os.path.join(folder, file), 0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
