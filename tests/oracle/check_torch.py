"""Random state dicts, saved by torch in both formats: tensor-eval must read what torch.load reads, bit for bit. Then textgen export: what
transformers opens of the folders it writes are the source's numbers, rounded as torch rounds them. N files, seed SEED."""
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

N, SEED = int(os.environ.get("N", 60)), int(os.environ.get("SEED", 1))
TOOL = os.path.join(os.environ.get("BUILD", "build"), "tests/tensor-eval")
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8,
          torch.bool]


def fresh(rng):
    shape = [rng.choice([1, 2, 3, 5, 17]) for _ in range(rng.randrange(5))]
    if rng.random() < 0.05:
        shape.append(0)
    dtype = rng.choice(DTYPES)
    return (torch.randn(shape) * 50).to(dtype)


def view(rng, t):
    """Another tensor over the same storage."""
    for _ in range(rng.randrange(4)):
        if not t.dim():
            return t
        d = rng.randrange(t.dim())
        kind = rng.randrange(6)
        if kind == 0:
            t = t.transpose(d, rng.randrange(t.dim()))
        elif kind == 1 and t.shape[d]:
            begin = rng.randrange(t.shape[d])
            t = t.narrow(d, begin, rng.randrange(t.shape[d] - begin + 1))
        elif kind == 2:
            t = t[tuple([slice(None)] * d + [slice(None, None, 2)])]
        elif kind == 3 and t.shape[d]:
            t = t.select(d, rng.randrange(t.shape[d]))
        elif kind == 4 and t.is_contiguous():
            t = t.reshape(-1)
        elif kind == 5:
            t = t.unsqueeze(d).expand(*t.shape[:d], rng.choice([1, 3]), *t.shape[d:])
    return t


def table(rng):
    out, kept = {}, []
    for i in range(rng.randrange(1, 40)):
        t = rng.choice(kept) if kept and rng.random() < 0.3 else fresh(rng)
        kept.append(t)
        t = view(rng, t)
        if t.dtype.is_floating_point and rng.random() < 0.1 and t.is_contiguous():
            t = torch.nn.Parameter(t)
        out[f"layer.{i}.{'é' if rng.random() < 0.1 else 'weight'}"] = t
    return out


def bits(t):
    return torch.empty(t.numel(), dtype=t.dtype).copy_(t.detach().reshape(-1)).view(torch.uint8)


def exports(tmp):
    """A GPT-2 saved as pytorch_model.bin, exported in every type, whole and in shards. Yields a name and whether it is right."""
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = transformers.GPT2Config(vocab_size=61, n_positions=16, n_embd=24, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(SEED)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * torch.logspace(-9, 5, p.numel()).reshape(p.shape))
    source = os.path.join(tmp, "source")
    os.makedirs(source)
    config.save_pretrained(source)
    torch.save(model.state_dict(), os.path.join(source, "pytorch_model.bin"))
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        for size in ("5GB", "10KB"):
            out = os.path.join(tmp, name + size)
            run = subprocess.run([os.path.join(os.environ.get("BUILD", "build"), "textgen"), "export", source, out, "--dtype", name, "--shard-size", size],
                                 capture_output=True, text=True)
            if run.returncode:
                yield f"{name} {size}: {run.stderr}", False
                continue
            got = transformers.GPT2LMHeadModel.from_pretrained(out, dtype="auto").state_dict()
            want = model.state_dict()
            yield f"{name} {size}", all(got[k].dtype == dtype and torch.equal(bits(got[k]), bits(want[k].to(dtype))) for k in want)


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name, ok in exports(tmp):
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print(f"export {name}")
    with tempfile.TemporaryDirectory() as tmp:
        for i in range(N):
            rng = random.Random(SEED * 1000 + i)
            torch.manual_seed(SEED * 1000 + i)
            path, out = os.path.join(tmp, "x.bin"), os.path.join(tmp, "x.safetensors")
            how = {"_use_new_zipfile_serialization": rng.random() < 0.5, "pickle_protocol": rng.choice([2, 2, 4, 5])}
            torch.save(table(rng), path, **how)
            want = torch.load(path, weights_only=False)
            run = subprocess.run([TOOL, path, out], capture_output=True, text=True)
            why = run.stderr
            if not run.returncode:
                got = load_file(out)
                bad = [k for k in want if k not in got or got[k].dtype != want[k].dtype or got[k].shape != want[k].shape
                       or not torch.equal(bits(got[k]), bits(want[k]))]
                why = f"differ: {bad}" if bad or len(got) != len(want) else ""
            if why:
                failed += 1
                print(f"file {i} {how}: {why}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
