"""Folders as they lie around: base classes, names and buffers of old versions, every way torch.save has of writing a table, shards, links of the Hub's
cache. What `textgen logprob` and `textgen classify` make of each against what transformers makes of it, or that it is refused with the reason."""
import collections
import json
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

import check_configs
import gen_encoders
import gen_families
import gen_seq2seq
from model_check import BUILD, run_cases

LM = {"gpt2": check_configs.GPT2, "llama": check_configs.LLAMA, "gpt_neox": check_configs.NEOX,
      **{f: dict(gen_families.GOLDENS[f], vocab_size=61, max_position_embeddings=64) for f in ("opt", "bloom", "qwen2", "gemma")}}
S2S = {"t5": check_configs.T5, "mt5": check_configs.T5, "bart": check_configs.BART, "marian": check_configs.BART}
BERT = dict(gen_encoders.BERT, vocab_size=61, max_position_embeddings=66)
JUDGES = {"bert": BERT, "roberta": BERT, "albert": dict(BERT, embedding_size=8), "gpt2": check_configs.GPT2, "llama": check_configs.LLAMA,
          "gptj": dict(gen_families.GOLDENS["gptj"], vocab_size=61, n_positions=64)}
KINDS = {"lm": AutoModelForCausalLM, "s2s": AutoModelForSeq2SeqLM, "labels": AutoModelForSequenceClassification, "states": AutoModel}
T5_NAMES = ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"]
MASK = torch.ones(1, 1, 64, 64).tril()


class Folder:
    """A model of a family, and its folder."""

    def __init__(self, path, kind, family, seed, **more):
        self.path, self.kind = path, kind
        if kind == "lm":
            self.model = gen_families.random_model(family, seed, dict(LM[family], **more))[0]
        elif kind == "s2s":
            self.model = gen_seq2seq.random_model(family, seed, dict(S2S[family], **more))[0]
        else:
            labels = dict(num_labels=3) if kind == "labels" else {}
            self.model = gen_encoders.random_model(family, seed, dict(JUDGES[family], **labels, **more))[0]
        self.model.save_pretrained(path)
        self.tensors = load_file(self.file("model.safetensors"))

    def file(self, name):
        return os.path.join(self.path, name)

    def configure(self, **keys):
        with open(self.file("config.json")) as f:
            config = {k: v for k, v in {**json.load(f), **keys}.items() if v is not None}
        with open(self.file("config.json"), "w") as f:
            json.dump(config, f)

    def store(self, tensors):
        save_file({k: v.clone() for k, v in tensors.items()}, self.file("model.safetensors"))

    def pickle(self, tensors, name="pytorch_model.bin", **how):
        if os.path.exists(self.file("model.safetensors")):
            os.remove(self.file("model.safetensors"))
        torch.save(tensors, self.file(name), **how)


def old(f):
    f.pickle(f.model.state_dict(), _use_new_zipfile_serialization=False)


def each(change, **how):
    return lambda f: f.pickle(collections.OrderedDict((k, change(v)) for k, v in f.tensors.items()), **how)


def add(tensors):
    """A * in a name: in both layers."""
    names = {k.replace("*", str(i)): v for k, v in tensors.items() for i in range(2)}
    return lambda f: f.store({**f.tensors, **names})


def without(prefix):
    return lambda f: f.store({k.removeprefix(prefix): v for k, v in f.tensors.items()})


def with_attributes(f):
    table = {k: v.clone() for k, v in f.tensors.items()}
    for i, name in enumerate(table):
        table[name] = torch.nn.Parameter(table[name]) if i % 2 else table[name]
        table[name].partition_dim = -1
    f.pickle(table)


def shards(kind, **index):
    def write(f):
        names, where = list(f.tensors), {}
        os.remove(f.file("model.safetensors"))
        for i in range(3):
            part, name = {k: f.tensors[k] for k in names[i::3]}, f"part-{i}.{kind}"
            save_file(part, f.file(name)) if kind == "safetensors" else torch.save(part, f.file(name))
            where.update(dict.fromkeys(part, name))
        stem = "model.safetensors" if kind == "safetensors" else "pytorch_model.bin"
        with open(f.file(stem + ".index.json"), "w") as out:
            json.dump({"metadata": {"total_size": 1}, "weight_map": where, **index}, out)
    return write


def as_in_the_cache(f):
    blobs = f.path + ".blobs"
    os.makedirs(blobs)
    for name in os.listdir(f.path):
        blob = os.path.join(blobs, name.replace(".", "-"))
        os.rename(f.file(name), blob)
        os.symlink(os.path.relpath(blob, f.path), f.file(name))


def pickled_in_the_cache(f):
    f.pickle(f.tensors)
    as_in_the_cache(f)


def base(f):
    """Saved by the class without a head."""
    f.model.base_model.save_pretrained(f.path)


def tied_as(*names):
    """Embeddings that are one, stored by these of their names."""
    def write(f):
        table = {k: v for k, v in f.tensors.items() if k not in T5_NAMES}
        f.store({**table, **dict.fromkeys(names, f.tensors["shared.weight"])})
    return write


def named(f):
    """By config.json, beside others of the usual name."""
    os.rename(f.file("model.safetensors"), f.file("its.safetensors"))
    f.store({k: v * 2 for k, v in f.tensors.items()})
    f.configure(transformers_weights="its.safetensors")


def named_shards(f):
    shards("safetensors")(f)
    os.rename(f.file("model.safetensors.index.json"), f.file("its.safetensors.index.json"))
    f.store({k: v * 2 for k, v in f.tensors.items()})
    f.configure(transformers_weights="its.safetensors.index.json")


def pointer(f):
    with open(f.file("model.safetensors"), "w") as out:
        out.write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n")


# what: kind, family, what becomes of the folder, and the reason when it is refused
CASES = {
    "old-pickle": ("lm", "gpt2", old), "old-pickle-bart": ("s2s", "bart", old),
    "all-names-of-tied-tensors": ("s2s", "t5", lambda f: f.pickle(f.model.state_dict())),
    "transposed": ("lm", "llama", each(lambda v: v.t().contiguous().t() if v.dim() == 2 else v)),
    "steps": ("lm", "gpt2", each(lambda v: torch.stack([v, v * 2], -1)[..., 0])),
    "slices-old": ("labels", "bert", each(lambda v: torch.cat([v, v])[len(v):], _use_new_zipfile_serialization=False)),
    "doubles": ("lm", "opt", each(lambda v: v.double())), "halves": ("lm", "bloom", each(lambda v: v.half())),
    "attributes": ("lm", "gpt2", with_attributes),
    "shards": ("lm", "llama", shards("safetensors")), "shards-pickled": ("s2s", "marian", shards("bin")),
    "cache": ("lm", "gpt2", as_in_the_cache), "cache-pickled": ("labels", "roberta", pickled_in_the_cache),
    "two-formats": ("lm", "gpt2", lambda f: torch.save({k: v * 2 for k, v in f.tensors.items()}, f.file("pytorch_model.bin"))),
    "named": ("lm", "gpt2", named), "named-shards": ("s2s", "bart", named_shards),
    "named-outside": ("lm", "gpt2", lambda f: f.configure(transformers_weights="../x.safetensors"), "transformers_weights: expected the name"),
    "base-gpt2": ("lm", "gpt2", base), "base-bloom": ("lm", "bloom", base),
    "base-t5": ("s2s", "t5", base), "base-bart": ("s2s", "bart", base),
    "bare-names-gpt2": ("lm", "gpt2", without("transformer.")), "bare-names-neox": ("lm", "gpt_neox", without("gpt_neox.")),
    "bare-names-judge": ("labels", "llama", without("model.")), "bare-names-bert": ("labels", "bert", without("bert.")),
    "mask-gpt2": ("lm", "gpt2", add({"transformer.h.*.attn.bias": MASK.bool(), "transformer.h.*.attn.masked_bias": torch.tensor(-1e4)})),
    "mask-neox": ("lm", "gpt_neox", add({"gpt_neox.layers.*.attention.bias": MASK.byte()})),
    "angles-neox": ("lm", "gpt_neox", add({"gpt_neox.layers.*.attention.rotary_emb.inv_freq": torch.ones(2), "gpt_neox.rotary_emb.inv_freq": torch.ones(2)})),
    "angles-qwen2": ("lm", "qwen2", add({"model.layers.*.self_attn.rotary_emb.inv_freq": torch.ones(2)})),
    "second-head-gpt2": ("lm", "gpt2", add({"multiple_choice_head.summary.weight": torch.ones(1, 32),
                                            "multiple_choice_head.summary.bias": torch.ones(1)})),
    "version-opt": ("lm", "opt", add({"model.decoder.version": torch.tensor([3.0])})),
    "numbers-of-positions": ("labels", "bert", add({"bert.embeddings.position_ids": torch.arange(66)[None]})),
    "judge-with-its-old-head": ("labels", "gptj", add({"lm_head.weight": torch.ones(61, 16), "lm_head.bias": torch.ones(61)})),
    "more-labels-than-names": ("labels", "roberta", lambda f: f.configure(num_labels=3, id2label={"0": "a", "1": "b"}, label2id={"a": 0, "b": 1})),
    "fewer-labels-than-names": ("labels", "gpt2", lambda f: f.configure(num_labels=3, id2label={str(i): str(i) for i in range(5)}, label2id=None)),
    "gamma-beta": ("labels", "bert", lambda f: f.store({k.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
                                                       for k, v in f.tensors.items()})),
    "states-without-pooler": ("states", "bert", lambda f: f.store({k: v for k, v in f.tensors.items() if "pooler" not in k})),
    "t5-as-its-head": ("s2s", "t5", tied_as("lm_head.weight")), "mt5-as-its-decoder": ("s2s", "mt5", tied_as(T5_NAMES[2])),
    "mt5-as-all": ("s2s", "mt5", tied_as(*T5_NAMES)), "t5-as-two": ("s2s", "t5", tied_as(T5_NAMES[1], T5_NAMES[3])),
    "t5-two-tables": ("s2s", "t5", lambda f: f.store({**f.tensors, T5_NAMES[1]: f.tensors[T5_NAMES[0]] * 2}), "that both stacks read"),
    "untied-but-tied": ("lm", "gpt2", add({"lm_head.weight": torch.ones(61, 32)}), "config.json ties them"),
    "a-critic-of-others": ("lm", "gpt2", add({"v_head.summary.weight": torch.ones(1, 32)}), '"v_head.summary.weight" of shape'),
    "judge-unnamed": ("labels", "llama", lambda f: f.configure(architectures=None), "names no …ForSequenceClassification"),
    "judge-unnamed-roberta": ("labels", "roberta", lambda f: f.configure(architectures=None), "names no …ForSequenceClassification"),
    "wrapped": ("lm", "gpt2", lambda f: f.pickle({"state_dict": f.tensors}), "found a dict"),
    "pointer": ("lm", "gpt2", pointer, "git lfs pull"),
    "neox-other-heads": ("lm", "gpt_neox", lambda f: f.configure(head_dim=4), "head_dim: 4 for heads of 8"),
}


def theirs(folder, ids, source):
    model = KINDS[folder.kind].from_pretrained(folder.path, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        if folder.kind in ("lm", "s2s"):
            return check_configs.log_probs(model, ids, source)
        out = model(torch.tensor([ids]))
        return out.logits[0] if folder.kind == "labels" else out.last_hidden_state[0].mean(0)


def ours(folder, ids, source):
    """The numbers, or None and what was said."""
    text = folder.kind in ("lm", "s2s")
    command = ["logprob" if text else "classify", "--model", folder.path, "--jsonl"] + ["--embed", "mean"] * (folder.kind == "states")
    line = json.dumps(dict(ids=ids, input_ids=source) if folder.kind == "s2s" else dict(ids=ids))
    done = subprocess.run([os.path.join(BUILD, "textgen"), *command], input=line + "\n", capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr + done.stdout
    out = json.loads(done.stdout)
    return torch.tensor([x for x in out["logprob"] if x is not None] if text else out["logits" if folder.kind == "labels" else "embedding"]), ""


def run_case(what, seed, scratch):
    kind, family, change, *reason = CASES[what]
    folder = Folder(os.path.join(scratch, what), kind, family, seed)
    change(folder)
    g = torch.Generator().manual_seed(seed)
    ids, source = (torch.randint(3, 61, (n,), generator=g).tolist() for n in (40, 20))
    got, said = ours(folder, ids, source if kind == "s2s" else None)
    if reason:
        return {}, [] if got is None and reason[0] in said else [f"not refused as \"{reason[0]}\": {said}"]
    if got is None:
        return {}, [said]
    worst = (got - theirs(folder, ids, source if kind == "s2s" else None)).abs().max().item()
    return {}, [] if worst <= 2e-5 else [f"differs by {worst:.3g}"]


if __name__ == "__main__":
    sys.exit(run_cases({what: 1 for what in CASES}, run_case))
