"""What the checks of models share: comparing tensors and gradients, running the program under test, opening its folders, counting cases."""
import os
import subprocess
import tempfile
import traceback

import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging

BUILD = os.environ.get("BUILD", "build")


def tame(model, scale=5.0):
    """Keeps outputs of order one whatever the width."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 2 and p.requires_grad:
                p.mul_(min(1.0, scale / p.shape[-1] ** 0.5))


def compare(what, got, want, tolerance, failures):
    worst = (got.reshape(want.shape) - want).abs().max().item() if want.numel() else 0.0
    if not worst <= tolerance:
        failures.append(f"{what}: differs by {worst:.3g}, allowed {tolerance:.3g}")


def compare_gradients(got, want, failures, share=1e-3, kinds=("mixed.",)):
    """Relative to the largest entry; a gradient that is nothing but rounding has no relative size and is judged by the largest of its kind."""
    for kind in kinds:
        largest = max(v.abs().max().item() for k, v in want.items() if k.startswith(kind))
        for name, grad in want.items():
            if name.startswith(kind):
                compare(name, got[name], grad, share * max(grad.abs().max().item(), 1e-3 * largest), failures)


def run_tool(tool, folder, given, scratch, backends, saved, compare_outputs, failures):
    """build/tests/<tool> on the tensors of `given`; its last answer, or None. compare_outputs(got, found) adds what is wrong to found."""
    batch, out, got = os.path.join(scratch, "batch.safetensors"), os.path.join(scratch, "result.safetensors"), None
    save_file(given, batch)
    for backend in backends:
        done = subprocess.run([os.path.join(BUILD, "tests", tool), folder, batch, out, "--backend", backend, "--save", saved], capture_output=True, text=True)
        if done.returncode:
            failures.append(f"{backend}: exit {done.returncode}: {done.stderr.strip()}")
            continue
        found, got = [], load_file(out)
        compare_outputs(got, found)
        failures += [f"{backend}: {f}" for f in found]
    return got


def reopen(kind, folder, failures, unused=frozenset()):
    """transformers opens our folder, and finds what it looks for."""
    again, info = kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    again = again.float().eval()
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if set(info.get(problem) or []) - unused:
            failures.append(f"saved folder: {problem}: {info[problem]}")
    with torch.no_grad():  # torch's products depend on where in a mapped file a tensor lies; its own copies are aligned
        for p in again.parameters():
            p.data = p.data.clone()
    return again


def compare_bits(model, again, failures, unused=frozenset()):
    everything = lambda m: dict(list(m.named_parameters()) + list(m.named_buffers()))
    ours = everything(again)
    for name, p in everything(model).items():
        if name not in unused and (name not in ours or not torch.equal(p, ours[name])):
            failures.append(f"saved folder: {name} is not the same bits")


def compare_results(model, again, inputs, failures):
    """inputs: what each call of the models is given; their first results are the same bits."""
    with torch.no_grad():
        for given in inputs:
            if not torch.equal(model(**given)[0], again(**given)[0]):
                failures.append("saved folder: results are not the same bits")


def run_cases(cases, run_case):
    """run_case(family, seed, scratch) gives (settings, failures), or None when it cannot be had here; FAMILY and SEED choose."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    passed = failed = 0
    first = int(os.environ.get("SEED", 100))
    print(f"SEED={first}")
    with tempfile.TemporaryDirectory() as scratch:
        for family, count in cases.items():
            if family not in os.environ.get("FAMILY", family).split():
                continue
            for seed in range(first, first + count):
                try:
                    done = run_case(family, seed, scratch)
                except Exception:
                    done = {}, [traceback.format_exc()]
                if done is None:
                    continue
                settings, failures = done
                passed, failed = passed + (not failures), failed + bool(failures)
                if failures:
                    print(f"not ok FAMILY={family} SEED={seed} CASES=1: {settings}")
                    print("".join(f"    {f}\n" for f in failures[:12]), end="")
    print(f"{passed} passed, {failed} failed")
    return failed > 0
