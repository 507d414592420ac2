"""Makes tests/golden/encoders: a tiny random model of every encoder family, and of causal ones with labels, and what transformers computes.

Each folder: config.json, model.safetensors, and expected.safetensors with tokens, offsets, types; states (tokens, width); labels (texts,
labels) and dlabels, or without labels value (tokens), dvalue and value_head.safetensors; mixed.<name>: gradients of sum(dlabels labels) or
sum(dvalue value). Run: python tests/oracle/gen_encoders.py
"""
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
from transformers.utils import logging

from gen_families import states as causal_states

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "encoders")

BERT = dict(vocab_size=29, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, max_position_embeddings=24)
GOLDENS = {
    "bert": ("bert", dict(BERT, num_labels=3)),
    "minilm": ("bert", dict(BERT, num_hidden_layers=1)),
    "roberta": ("roberta", dict(BERT, num_labels=1, type_vocab_size=1, problem_type="regression", max_position_embeddings=26)),
    "xlm-roberta": ("xlm-roberta", dict(BERT, type_vocab_size=1, max_position_embeddings=26)),
    "distilbert": ("distilbert", dict(vocab_size=29, dim=16, n_layers=2, n_heads=2, hidden_dim=20, max_position_embeddings=24,
                                      num_labels=4, problem_type="multi_label_classification")),
    "albert": ("albert", dict(BERT, embedding_size=6, num_labels=2, num_hidden_layers=5, num_hidden_groups=2, hidden_act="gelu_new")),
    "gpt2-labels": ("gpt2", dict(vocab_size=29, n_embd=16, n_layer=2, n_head=2, n_positions=24, num_labels=1, pad_token_id=28,
                                 bos_token_id=0, eos_token_id=0)),
    "llama-labels": ("llama", dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
                                   num_key_value_heads=2, max_position_embeddings=24, num_labels=3, bos_token_id=0, eos_token_id=1)),
    "opt-labels": ("opt", dict(vocab_size=29, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20, word_embed_proj_dim=6,
                               do_layer_norm_before=False, max_position_embeddings=24, num_labels=2, pad_token_id=1)),
}
DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "classifier_dropout_prob", "dropout",
           "attention_dropout", "seq_classif_dropout", "qa_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop")


def random_model(family, seed, settings, scale=0.2):
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **settings)
    for name in DROPOUT:
        if hasattr(config, name):
            setattr(config, name, 0.0)
    kind = AutoModelForSequenceClassification if "num_labels" in settings else AutoModel
    model = kind.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = p.dim() == 1 and name.endswith("weight")
            around = 1.0 if norm and not family.startswith("gemma") else 0.0  # gemma adds 1 itself
            p.copy_(torch.randn_like(p) * scale + around)
    return model, (torch.randn(1, config.hidden_size) * 0.3).requires_grad_(True)


def random_batch(seed, model, lengths):
    """Texts without the pad token, whose embedding torch gives no gradient; half of the texts are pairs."""
    g = torch.Generator().manual_seed(seed)
    pad = model.config.pad_token_id or 0
    tokens, types, offsets = [], [], [0]
    for n in lengths:
        ids = torch.randint(0, model.config.vocab_size - 1, (n,), generator=g)
        tokens += (ids + (ids >= pad)).tolist()
        second = int(torch.randint(0, n + 1, (1,), generator=g))
        kinds = getattr(model.config, "type_vocab_size", 1)
        types += [0] * second + [kinds - 1] * (n - second)
        offsets.append(offsets[-1] + n)
    return tokens, types, offsets


def canonical(model, name):
    """Our name of a parameter: as in a model with a head."""
    prefix = model.base_model_prefix + "."
    return name if model.base_model is not model else prefix + name


def evaluate(model, head, batch, seed):
    tokens, types, offsets = batch
    states, labels = [], []
    has_types = getattr(model.config, "type_vocab_size", 0) > 0
    narrow = getattr(model.config, "word_embed_proj_dim", model.config.hidden_size) != model.config.hidden_size
    for begin, end in zip(offsets, offsets[1:]):
        given = dict(input_ids=torch.tensor([tokens[begin:end]]))
        if has_types:
            given["token_type_ids"] = torch.tensor([types[begin:end]])
        states.append(causal_states(model, given["input_ids"]) if narrow else model.base_model(**given).last_hidden_state[0])
        if model.base_model is not model:
            labels.append(model(**given).logits[0])
    states = torch.cat(states)
    g = torch.Generator().manual_seed(seed)
    model.zero_grad()
    head.grad = None
    if labels:
        labels = torch.stack(labels)
        out = {"states": states, "labels": labels, "dlabels": torch.randn(labels.shape, generator=g)}
        (out["dlabels"] * labels).sum().backward()
    else:
        value = states @ head.T
        out = {"states": states, "value": value, "dvalue": torch.randn(value.shape, generator=g)}
        (out["dvalue"] * value).sum().backward()
        out["mixed.value_head.weight"] = head.grad.clone()
    for name, p in model.named_parameters():
        out["mixed." + canonical(model, name)] = torch.zeros_like(p) if p.grad is None else p.grad.clone()
    for name, values in zip(("tokens", "types", "offsets"), (tokens, types, offsets)):
        out[name] = torch.tensor(values, dtype=torch.int64)
    return {k: v.detach().contiguous() for k, v in out.items()}


def save(model, head, folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    if model.base_model is model:
        save_file({"value_head.weight": head.detach()}, os.path.join(folder, "value_head.safetensors"))


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for seed, (name, (family, settings)) in enumerate(GOLDENS.items()):
        model, head = random_model(family, seed + 1, settings)
        batch = random_batch(seed + 10, model, [7, 1, 20])
        if name == "gpt2-labels":  # pads behind texts, which must not be what is judged
            for i in (6, 26, 27):
                batch[0][i] = settings["pad_token_id"]
        folder = os.path.join(ROOT, name)
        save(model, head, folder)
        save_file(evaluate(model, head, batch, seed), os.path.join(folder, "expected.safetensors"))
        for file in os.listdir(folder):
            os.chmod(os.path.join(folder, file), 0o644)
    return 0


if __name__ == "__main__":
    sys.exit(main())
