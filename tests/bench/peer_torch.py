"""torch + transformers on the shapes our benchmarks use: GPT-2 of 124 M and T5-base with random weights, the head, matrix products.

  peer_torch.py --list | CASE… [--eager]
A name that ends in _bf16 runs under autocast (decoding: with bf16 weights), one in _avx2 without AVX-512. Each case prints a line and a JSON
object. It is timed eager and compiled (torch.compile; decoding with a static cache), with all CPUs or half of them as threads; the best
counts. Eager only, to save minutes: everything without AVX-512, T5 and the head in bf16, decoding in bf16 or by T5. TEXTGEN_BENCH_QUICK:
smaller shapes, once, eager."""
import contextlib
import json
import os
import re
import resource
import sys
import time
import warnings

ARGS = [a for a in sys.argv[1:] if not a.startswith("--")]
if any(a.endswith("_avx2") for a in ARGS):  # read when the libraries are loaded
    os.environ.update(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", DNNL_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2")
warnings.filterwarnings("ignore")
if ARGS:  # the list needs none of them
    import torch
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration
    transformers.logging.set_verbosity_error()
    TORCH = "torch " + torch.__version__.split("+")[0]
QUICK = os.environ.get("TEXTGEN_BENCH_QUICK", "0") not in ("", "0")
BATCH, LENGTH = 2 if QUICK else 8, 112  # forward and training step
SOURCE, TARGET = 64, 48                 # the same of T5
SLOTS, PROMPT, NEW = 16, 64, 8 if QUICK else 64  # decoding
HEAD_ROWS = 512 if QUICK else 4096


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def tune_threads(run):
    """Sets the faster number of threads: all CPUs, or half of them. Returns the times it took with that."""
    took = {}
    for n in sorted({os.cpu_count(), max(1, os.cpu_count() // 2)}, reverse=True):
        torch.set_num_threads(n)
        took[n] = [seconds_of(run) for _ in range(2 if n == os.cpu_count() else 1)]  # what is usual gets a second chance
    n = min(took, key=lambda n: min(took[n]))
    torch.set_num_threads(n)
    return took[n]


def best(run, tune=False, least=3, seconds=5):
    """Seconds of the fastest of several runs after one to warm up."""
    run()
    if QUICK:
        return seconds_of(run)
    start = time.perf_counter()
    times = tune_threads(run) if tune else []
    while len(times) < least or time.perf_counter() - start < seconds:
        times.append(seconds_of(run))
    return min(times)


def autocast(half):
    return torch.autocast("cpu", dtype=torch.bfloat16) if half else contextlib.nullcontext()


def gpt2(**options):
    return GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None, **options))


def t5():
    return T5ForConditionalGeneration(T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, dropout_rate=0,
                                               eos_token_id=None, pad_token_id=0, decoder_start_token_id=0))


def inputs(model):
    if model.config.is_encoder_decoder:
        return {"input_ids": torch.randint(1, 32000, (BATCH, SOURCE)), "labels": torch.randint(1, 32000, (BATCH, TARGET))}
    ids = torch.randint(0, 50257, (BATCH, LENGTH))
    return {"input_ids": ids, "labels": ids}


def forward(make, half=False):
    model = make().eval()
    batch = inputs(model)

    def run_with(f):
        def run():
            with torch.no_grad(), autocast(half):
                f(**batch).loss.item()
        return run
    return {"eager": run_with(model), "compile": run_with(torch.compile(model))}


def stepper(model, f, batch, half=False, clip=True):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def run():
        with autocast(half):
            loss = f(**batch).loss
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    return run


def train_step(make, half=False):
    model = make().train()
    batch = inputs(model)
    return {"eager": stepper(model, model, batch, half), "compile": stepper(model, torch.compile(model), batch, half)}


def decode(make, slots, half=False):
    model = make().eval()
    if half:
        model = model.to(torch.bfloat16)
    ids = torch.randint(1, 32000, (slots, PROMPT))
    plain = model.forward

    def run_with(f, **options):
        def run():
            model.forward = f
            with torch.no_grad():
                model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=NEW, max_new_tokens=NEW,
                               pad_token_id=0, **options)
        return run
    ways = {"eager": run_with(plain)}
    if not model.config.is_encoder_decoder and not half:
        ways["compile"] = run_with(torch.compile(plain, dynamic=False), cache_implementation="static")
    return ways


def head(backward, half=False):
    hidden = torch.randn(HEAD_ROWS, 768, requires_grad=backward)
    weight = torch.randn(50257, 768, requires_grad=backward)
    tokens = torch.randint(0, 50257, (HEAD_ROWS,))

    def values(hidden, weight, tokens):
        logp = torch.log_softmax(hidden @ weight.T, -1)
        return logp.gather(1, tokens[:, None]).squeeze(1), -(logp.exp() * logp).sum(-1)

    def run_with(f):
        def run():
            with torch.set_grad_enabled(backward):
                with autocast(half):
                    chosen, entropy = f(hidden, weight, tokens)
                if backward:
                    hidden.grad = weight.grad = None
                    (chosen.sum() - 0.01 * entropy.sum()).backward()
        return run
    return {"eager": run_with(values), "compile": run_with(torch.compile(values))}


def gemm(m, n, k, half=False):
    kind = torch.bfloat16 if half else torch.float32
    a, b = torch.randn(m, k).to(kind), torch.randn(k, n).to(kind)
    w = b.T.contiguous()
    onednn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return {TORCH + (" bf16" if half else " (MKL)"): lambda: torch.mm(a, b),
            f"oneDNN {onednn.group(1) if onednn else ''} (torch)": lambda: torch.ops.mkldnn._linear_pointwise(a, w, None, "none", [], "")}


def growth():
    """The steps of bench_growth, eager: (name, run)."""
    for what in ("tokens", "batch", "vocabulary", "layers"):
        shape = {"tokens": 128, "batch": 4, "vocabulary": 4000, "layers": 4}
        for _ in range(3):
            model = gpt2(n_embd=384, n_head=6, n_layer=shape["layers"], vocab_size=shape["vocabulary"]).train()
            ids = torch.randint(0, shape["vocabulary"], (shape["batch"], shape["tokens"]))
            yield f"growth/{what}_{shape[what]}", stepper(model, model, {"input_ids": ids, "labels": ids}, clip=False)
            shape[what] *= 2


CASES = {"growth": None}
for name, make in (("gpt2-124m", gpt2), ("t5-base", t5)):
    for end, half in (("", False), ("_avx2", False), ("_bf16", True)):
        CASES[f"{name}/forward{end}"] = lambda make=make, half=half: forward(make, half)
        CASES[f"{name}/train_step{end}"] = lambda make=make, half=half: train_step(make, half)
        for slots in (1, SLOTS):
            CASES[f"{name}/decode_b{slots}{end}"] = lambda make=make, half=half, slots=slots: decode(make, slots, half)
for backward in (False, True):
    for end, half in (("", False), ("_avx2", False), ("_bf16", True)):
        CASES[f"head/logp_entropy_{'backward_' * backward}4k_50k{end}"] = lambda backward=backward, half=half: head(backward, half)
for m, n, k in ((4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072), (16, 3072, 768)):
    for end, half in (("", False), ("_avx2", False), ("_bf16", True)):
        CASES[f"gemm/{m}x{n}x{k}{end}"] = lambda m=m, n=n, k=k, half=half: gemm(m, n, k, half)


def report(name, who, seconds, note, peak):
    print(f"{name:40} {who:28} {seconds * 1e3:10.1f} ms{note}" + (f"  peak {peak / 1e3:.2f} GB" if peak else ""))
    print(json.dumps({"bench": name, "who": who, "transformers": transformers.__version__, "threads": torch.get_num_threads(), "seconds": seconds,
                      "peak_mb": peak}), flush=True)


def run_case(name):
    took, peak, alone = {}, 0, name.startswith("gemm/")
    tuned = not name.endswith(("_bf16", "_avx2"))  # the best number of threads does not depend on it
    may_compile = tuned or (name.startswith("gpt2") and name.endswith("_bf16"))
    for way, run in CASES[name]().items():
        if way == "compile" and (QUICK or "--eager" in sys.argv or not may_compile):
            continue
        try:
            took[way] = best(run, seconds=1) if alone else best(run, tune=tuned and way == "eager", least=2 if "eager" in took else 3)
        except Exception as error:  # torch.compile needs a C++ compiler
            print(f"{name}: {way} cannot run: {(str(error).splitlines() or ['no reason given'])[0]}")
        if way == "eager":
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        if alone and way in took:
            report(name, way, took[way], "", 0)
    if alone or not took:
        return 0 if took else 1
    way = min(took, key=took.get)
    who = TORCH + (" bf16" if name.endswith("_bf16") else "") + ("" if way == "eager" else " compiled")
    report(name, who, took[way], " (" + ", ".join(f"{w} {t * 1e3:.1f}" for w, t in took.items()) + ")", peak)
    return 0


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in ARGS if name not in CASES]
    if unknown or not ARGS:
        print(f"peer_torch.py: no case {' '.join(unknown)}; --list shows them", file=sys.stderr)
        return 64
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    failed = 0
    for name in ARGS:
        if name == "growth":
            for title, run in growth():
                report(title, TORCH, best(run, seconds=1), "", 0)
        else:
            failed |= run_case(name)
    return failed


sys.exit(main())
