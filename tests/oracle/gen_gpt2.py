"""Makes tests/golden/gpt2: a tiny random GPT-2 and what transformers computes with it.

Two models: `plain` (tied head, four times wide MLP) and `odd` (untied head, own MLP width, scores scaled by layer).
Each folder: config.json, model.safetensors, value_head.safetensors, and expected.safetensors with
  tokens, offsets, act_row, act_token              a packed batch (i64)
  logits (tokens, V); logp, entropy, value (actions)
  loss                                             mean of -logp
  grad.<name>                                      of the loss
  dlogp, dentropy, dvalue; mixed.<name>            of sum(dlogp logp + dentropy entropy + dvalue value)
Run: python tests/oracle/gen_gpt2.py
"""
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "gpt2")

KEEP = ["activation_function", "bos_token_id", "eos_token_id", "layer_norm_epsilon", "model_type", "n_embd", "n_head",
        "n_inner", "n_layer", "n_positions", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
        "tie_word_embeddings", "vocab_size", "architectures"]


def random_model(seed, **settings):
    """A model whose every tensor is random and large enough to matter (transformers' own biases are zero)."""
    torch.manual_seed(seed)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **settings)
    config._attn_implementation = "eager"
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.15 + (1.0 if "ln_" in name and name.endswith("weight") else 0.0))
    head = (torch.randn(1, config.n_embd) * 0.3).requires_grad_(True)
    return model, head


def random_batch(seed, vocab, lengths, prompts):
    g = torch.Generator().manual_seed(seed)
    tokens, offsets, act_row, act_token = [], [0], [], []
    for length, prompt in zip(lengths, prompts):
        sequence = torch.randint(0, vocab, (length + 1,), generator=g).tolist()
        start = offsets[-1]
        tokens += sequence[:length]
        act_row += [start + i for i in range(prompt - 1, length)]
        act_token += [sequence[i + 1] for i in range(prompt - 1, length)]
        offsets.append(start + length)
    return tokens, offsets, act_row, act_token


def forward(model, head, batch):
    """Each sequence by itself: what packing must reproduce."""
    tokens, offsets, act_row, act_token = batch
    logits, hidden = [], []
    for begin, end in zip(offsets, offsets[1:]):
        ids = torch.tensor([tokens[begin:end]])
        state = model.transformer(ids).last_hidden_state[0]
        hidden.append(state)
        logits.append(model.lm_head(state))
    logits, hidden = torch.cat(logits), torch.cat(hidden)
    rows = torch.tensor(act_row, dtype=torch.long)
    logprobs = torch.log_softmax(logits[rows], -1)
    logp = logprobs.gather(1, torch.tensor(act_token, dtype=torch.long)[:, None])[:, 0]
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    value = (hidden[rows] @ head.T)[:, 0]
    return logits, logp, entropy, value


def gradients(model, head, objective):
    model.zero_grad()
    head.grad = None
    objective.backward(retain_graph=True)
    out = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    out["value_head.weight"] = torch.zeros_like(head) if head.grad is None else head.grad.clone()
    return out


def evaluate(model, head, batch, weights):
    logits, logp, entropy, value = forward(model, head, batch)
    loss = -logp.mean()
    grad = gradients(model, head, loss)
    dlogp, dentropy, dvalue = weights
    mixed = gradients(model, head, (dlogp * logp + dentropy * entropy + dvalue * value).sum())
    out = {"logits": logits, "logp": logp, "entropy": entropy, "value": value, "loss": loss.reshape(1),
           "dlogp": dlogp, "dentropy": dentropy, "dvalue": dvalue}
    out.update({f"grad.{k}": v for k, v in grad.items()})
    out.update({f"mixed.{k}": v for k, v in mixed.items()})
    for name, values in zip(("tokens", "offsets", "act_row", "act_token"), batch):
        out[name] = torch.tensor(values, dtype=torch.int64)
    return {k: v.detach().contiguous() for k, v in out.items()}


def write_config(model, folder):
    config = {k: v for k, v in json.loads(model.config.to_json_string(use_diff=False)).items() if k in KEEP}
    config["architectures"] = ["GPT2LMHeadModel"]
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)
        f.write("\n")


def save(model, head, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_config(model, folder)
    tensors = {k: v.detach().contiguous() for k, v in model.named_parameters()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    save_file({"value_head.weight": head.detach()}, os.path.join(folder, "value_head.safetensors"))


def main():
    cases = {
        "plain": (dict(n_layer=2, n_head=3, n_embd=24, vocab_size=61, n_positions=24, bos_token_id=60, eos_token_id=60),
                  [9, 1, 17, 24], [4, 1, 8, 20]),
        "odd": (dict(n_layer=3, n_head=2, n_embd=20, n_inner=28, vocab_size=37, n_positions=16, bos_token_id=0,
                     eos_token_id=1, tie_word_embeddings=False, scale_attn_by_inverse_layer_idx=True,
                     layer_norm_epsilon=1e-3), [16, 5], [2, 5]),
    }
    for seed, (name, (settings, lengths, prompts)) in enumerate(cases.items()):
        model, head = random_model(seed + 1, **settings)
        batch = random_batch(seed + 10, settings["vocab_size"], lengths, prompts)
        n = len(batch[2])
        weights = torch.randn(3, n, generator=torch.Generator().manual_seed(seed + 20))
        folder = os.path.join(ROOT, name)
        save(model, head, folder)
        save_file(evaluate(model, head, batch, weights), os.path.join(folder, "expected.safetensors"))
        for file in os.listdir(folder):
            os.chmod(os.path.join(folder, file), 0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
