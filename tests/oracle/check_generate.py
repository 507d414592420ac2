"""textgen generate and logprob against transformers: log-probs, entropies, greedy tokens under each penalty, and sampling frequencies."""
import json
import os
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

BUILD = os.environ.get("BUILD", "build")
FOLDER = "configs/models/tiny"
passed = failed = 0


def check(ok, what):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print("FAIL", what)


def run(command, lines, *args):
    done = subprocess.run([f"{BUILD}/textgen", command, "--model", FOLDER, "--jsonl", *args],
                          input="".join(json.dumps(l) + "\n" for l in lines), capture_output=True, text=True, check=True)
    return [json.loads(l) for l in done.stdout.splitlines()]


model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
generator = torch.Generator().manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
vocab = model.config.vocab_size


def random_ids(n):
    return torch.randint(vocab, (n,), generator=generator).tolist()


# log-probs and entropies, of random ids and of real text
texts = ["The box is red.", "3 17 4 29", "On Monday Leo went to the park on 2019-04-07.", "x"]
lines = [{"ids": random_ids(n)} for n in (1, 2, 5, 17, 64, 128)] + [{"text": t} for t in texts]
for line, got in zip(lines, run("logprob", lines)):
    ids = line.get("ids") or tokenizer(line["text"])["input_ids"]
    with torch.no_grad():
        logp = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    want = [logp[i, t].item() for i, t in enumerate(ids[1:])]
    entropy = [-(logp[i].exp() * logp[i]).sum().item() for i in range(len(ids) - 1)]
    check(got["logprob"][0] is None and len(got["logprob"]) == len(ids), f"shape of {line}")
    for name, mine, theirs in (("logprob", got["logprob"][1:], want), ("entropy", got["entropy"][1:], entropy)):
        # the reference runs in f32: log-probs of unlikely tokens are differences of large logits
        error = max([abs(a - b) for a, b in zip(mine, theirs)], default=0)
        check(error <= 2e-5, f"{name} of {line}: off by {error:.2e}")

# greedy tokens
settings = [{}, {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}, {"min_new_tokens": 15},
            {"min_length": 20}, {"repetition_penalty": 0.8, "no_repeat_ngram_size": 3}]
prompts = [random_ids(n) for n in (1, 3, 9, 30)] + [tokenizer(t)["input_ids"] for t in texts] + [[0]] * 2
for kwargs in settings:
    got = run("generate", [{"ids": p} for p in prompts], "max_new_tokens=24", *[f"{k}={v}" for k, v in kwargs.items()])
    for prompt, mine in zip(prompts, got):
        with torch.no_grad():
            theirs = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
                                    max_new_tokens=24, pad_token_id=0, eos_token_id=model.config.eos_token_id, **kwargs)[0, len(prompt):].tolist()
        check(mine["ids"] == theirs, f"greedy {kwargs} after {prompt}: {mine['ids']} != {theirs}")
        check(mine["text"] == tokenizer.decode(theirs, skip_special_tokens=True, clean_up_tokenization_spaces=False), f"text of {theirs}")

# sampling: chi-square of the first token over many samples, for each warper
n = 20000
for kwargs in ({}, {"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.8}, {"top_k": 40, "temperature": 1.5, "top_p": 0.9}):
    prompt = tokenizer("The box has")["input_ids"]
    args = {"top_k": 0, **kwargs}
    got = run("generate", [{"ids": prompt}], "do_sample=true", "max_new_tokens=1", f"num_return_sequences={n}",
              *[f"{k}={v}" for k, v in args.items()])[0]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1].double() / args.get("temperature", 1)
    if args["top_k"]:
        logits[logits < logits.topk(args["top_k"]).values[-1]] = -torch.inf
    if args.get("top_p", 1) < 1:
        order = logits.argsort(descending=True)
        cumulative = logits[order].softmax(-1).cumsum(-1)
        remove = cumulative > args["top_p"]
        remove[1:] = remove[:-1].clone()
        remove[0] = False
        logits[order[remove]] = -torch.inf
    p = logits.softmax(-1)
    counts = torch.zeros(vocab, dtype=torch.double)
    for g in got:
        counts[g["ids"][0]] += 1
    check(counts[p == 0].sum() == 0, f"{kwargs}: a forbidden token was drawn")
    big = p * n >= 5
    expected = torch.cat([p[big] * n, (p[~big].sum() * n).reshape(1)])
    observed = torch.cat([counts[big], counts[~big].sum().reshape(1)])
    keep = expected > 1
    chi2 = ((observed - expected) ** 2 / expected)[keep].sum().item()
    df = max(int(keep.sum()) - 1, 1)
    # mean df, deviation sqrt(2 df): 6 deviations
    check(chi2 < df + 6 * (2 * df) ** 0.5 + 5, f"{kwargs}: chi-square {chi2:.1f} with {df} degrees of freedom")

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
