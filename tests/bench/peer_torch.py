"""torch + transformers on the shapes our benchmarks use: GPT-2 of 124 M and T5-base with random weights, f32, all cores.

  peer_torch.py --list | CASE [--eager]
Each case prints a line and a JSON object. A model case is timed eager and compiled (torch.compile), the better one counts."""
import json
import os
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

BATCH, LENGTH = 8, 112          # forward and training step
SOURCE, TARGET = 64, 48         # the same of T5
SLOTS, PROMPT, NEW = 16, 64, 64  # decoding


def best(run, least=3, seconds=6.0):
    """Seconds of the fastest of several runs after one to warm up."""
    run()
    times, start = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - start < seconds:
        t = time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
    return min(times)


def gpt2():
    return GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None))


def t5():
    return T5ForConditionalGeneration(T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, dropout_rate=0,
                                               eos_token_id=None, pad_token_id=0, decoder_start_token_id=0))


def inputs(model):
    if model.config.is_encoder_decoder:
        return {"input_ids": torch.randint(1, 32000, (BATCH, SOURCE)), "labels": torch.randint(1, 32000, (BATCH, TARGET))}
    ids = torch.randint(0, 50257, (BATCH, LENGTH))
    return {"input_ids": ids, "labels": ids}


def forward(make):
    model = make().eval()
    batch = inputs(model)

    def run_with(f):
        def run():
            with torch.no_grad():
                f(**batch).loss.item()
        return run
    return {"eager": run_with(model), "compile": run_with(torch.compile(model))}


def train_step(make):
    model = make().train()
    batch = inputs(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def run_with(f):
        def run():
            f(**batch).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
        return run
    return {"eager": run_with(model), "compile": run_with(torch.compile(model))}


def decode(make, slots):
    model = make().eval()
    ids = torch.randint(1, 32000, (slots, PROMPT))

    def run():
        with torch.no_grad():
            model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=NEW, max_new_tokens=NEW,
                           pad_token_id=0)
    return {"eager": run}


def head(backward):
    hidden = torch.randn(4096, 768, requires_grad=backward)
    weight = torch.randn(50257, 768, requires_grad=backward)
    tokens = torch.randint(0, 50257, (4096,))

    def run():
        with torch.set_grad_enabled(backward):
            logp = torch.log_softmax(hidden @ weight.T, -1)
            chosen = logp.gather(1, tokens[:, None]).squeeze(1)
            entropy = -(logp.exp() * logp).sum(-1)
            if backward:
                hidden.grad = weight.grad = None
                (chosen.sum() - 0.01 * entropy.sum()).backward()
    return {"eager": run}


def gemm(m, n, k):
    a, b = torch.randn(m, k), torch.randn(k, n)
    return {"eager": lambda: torch.mm(a, b)}


CASES = {
    "gpt2-124m/forward": lambda: forward(gpt2),
    "gpt2-124m/train_step": lambda: train_step(gpt2),
    "gpt2-124m/decode_b16": lambda: decode(gpt2, SLOTS),
    "gpt2-124m/decode_b1": lambda: decode(gpt2, 1),
    "t5-base/forward": lambda: forward(t5),
    "t5-base/train_step": lambda: train_step(t5),
    "t5-base/decode_b16": lambda: decode(t5, SLOTS),
    "head/logp_entropy_4k_50k": lambda: head(False),
    "head/logp_entropy_backward_4k_50k": lambda: head(True),
    "gemm/4096x768x768": lambda: gemm(4096, 768, 768),
    "gemm/4096x3072x768": lambda: gemm(4096, 3072, 768),
    "gemm/4096x768x3072": lambda: gemm(4096, 768, 3072),
    "gemm/16x3072x768": lambda: gemm(16, 3072, 768),
}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return 0
    name = sys.argv[1]
    if name not in CASES:
        print(f"peer_torch.py: no case {name}; --list shows them", file=sys.stderr)
        return 64
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    took, peak = {}, 0
    for way, run in CASES[name]().items():
        if way == "compile" and "--eager" in sys.argv:
            continue
        try:
            took[way] = best(run)
        except Exception as error:  # torch.compile needs a C++ compiler
            print(f"{name}: {way} cannot run: {str(error).splitlines()[0]}")
        if way == "eager":
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    way = min(took, key=took.get)
    print(f"{name:36} {took[way] * 1e3:10.1f} ms ({way}; " + ", ".join(f"{w} {t * 1e3:.1f}" for w, t in took.items()) +
          f")  peak {peak / 1e3:.2f} GB")
    who = f"torch {torch.__version__.split('+')[0]}" + ("" if way == "eager" else " compiled")
    print(json.dumps({"bench": name, "who": who, "transformers": transformers.__version__, "seconds": took[way], "peak_mb": peak}))
    return 0


sys.exit(main())
