"""Ops of both backends against torch, forward and backward, on random inputs: layer norm, gelu, attention, the log-prob and entropy head, AdamW.

Usage: check_ops.py [SEED]   (the build folder is $BUILD, default "build")
"""
import os
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

BUILD = os.environ.get("BUILD", "build")
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else int(time.time())
rng = np.random.default_rng(SEED)
passed = failed = 0


def normal(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def op_eval(backend, op, args, arrays, shapes):
    """Runs op-eval; returns arrays of the given shapes."""
    data = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    run = subprocess.run([f"{BUILD}/tests/op-eval", backend, op, *map(str, args)], input=data,
                         capture_output=True, check=True)
    flat, out, at = np.frombuffer(run.stdout, np.float32), [], 0
    for s in shapes:
        n = int(np.prod(s))
        out.append(flat[at:at + n].reshape(s))
        at += n
    assert at == flat.size
    return out


def check(what, got, want, tol):
    """Within tol of the largest value, or of 1."""
    global passed, failed
    want = want.detach().numpy() if isinstance(want, torch.Tensor) else want
    error = float(np.max(np.abs(got - want)) / max(1.0, float(np.max(np.abs(want)))))
    if error <= tol:
        passed += 1
    else:
        failed += 1
        print(f"not ok {what}: error {error:.3g}, tolerance {tol:g}")


def leaf(a):
    return torch.tensor(a, requires_grad=True)


def gelu(backend):
    n = int(rng.integers(1, 5000))
    x, dy = normal(n, scale=3), normal(n)
    y, dx = op_eval(backend, "gelu", [n], [x, dy], [(n,), (n,)])
    t = leaf(x)
    want = F.gelu(t, approximate="tanh")
    want.backward(torch.tensor(dy))
    check(f"{backend} gelu y", y, want, 1e-6)
    check(f"{backend} gelu dx", dx, t.grad, 2e-6)


def layernorm(backend):
    n, c = int(rng.integers(1, 60)), int(rng.integers(2, 300))
    x, g, b, dy = normal(n, c), normal(c), normal(c), normal(n, c)
    got = op_eval(backend, "layernorm", [n, c], [x, g, b, dy], [(n, c), (n, c), (c,), (c,)])
    tx, tg, tb = leaf(x), leaf(g), leaf(b)
    y = F.layer_norm(tx, (c,), tg, tb, 1e-5)
    y.backward(torch.tensor(dy))
    for name, a, w in zip(("y", "dx", "dgamma", "dbeta"), got, (y, tx.grad, tg.grad, tb.grad)):
        check(f"{backend} layernorm {name}", a, w, 5e-6)


def attention(backend):
    n, h, d = int(rng.integers(1, 300)), int(rng.integers(1, 5)), int(rng.integers(1, 70))
    qkv, dout = normal(n, 3 * h * d), normal(n, h * d)
    got = op_eval(backend, "attention", [n, h, d], [qkv, dout], [(n, h * d), (n, 3 * h * d)])
    t = leaf(qkv)
    q, k, v = (z.view(n, h, d).transpose(0, 1) for z in t.split(h * d, 1))
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0].transpose(0, 1).reshape(n, h * d)
    out.backward(torch.tensor(dout))
    check(f"{backend} attention out", got[0], out, 5e-6)
    check(f"{backend} attention dqkv", got[1], t.grad, 1e-5)


def head(backend):
    n, c, v = int(rng.integers(1, 80)), int(rng.integers(1, 100)), int(rng.integers(2, 3000))
    x, w, dl, de = normal(n, c), normal(v, c, scale=0.3), normal(n), normal(n)
    tokens = rng.integers(0, v, n).astype(np.int32)
    got = op_eval(backend, "head", [n, c, v], [x, w, tokens, dl, de], [(n,), (n,), (n, c), (v, c)])
    tx, tw = leaf(x), leaf(w)
    dist = torch.distributions.Categorical(logits=tx @ tw.T)
    logp, entropy = dist.log_prob(torch.tensor(tokens)), dist.entropy()
    (logp @ torch.tensor(dl) + entropy @ torch.tensor(de)).backward()
    for name, a, want in zip(("logp", "entropy", "dx", "dw"), got, (logp, entropy, tx.grad, tw.grad)):
        check(f"{backend} head {name}", a, want, 1e-5)


def adamw(backend):
    n, steps = int(rng.integers(1, 4000)), 12
    lr, b1, b2, eps, wd = 10 ** rng.uniform(-5, -2), 0.9, float(rng.choice([0.95, 0.999])), 1e-8, float(rng.choice([0, 0.01, 0.1]))
    p, grads = normal(n, scale=0.1), normal(steps, n)
    got = op_eval(backend, "adamw", [n, steps, lr, b1, b2, eps, wd], [p, grads], [(n,)] * 3)
    t = torch.nn.Parameter(torch.tensor(p))
    opt = torch.optim.AdamW([t], lr=lr, betas=(b1, b2), eps=eps, weight_decay=wd, foreach=False)
    for g in grads:
        t.grad = torch.tensor(g)
        opt.step()
    state = opt.state[t]
    # m and v are equal to the last bit where torch uses fused multiply-adds; its sqrt is not correctly rounded.
    check(f"{backend} adamw param", got[0], t, 3e-7 * steps * lr / 0.1 + 1e-7)
    check(f"{backend} adamw m", got[1], state["exp_avg"], 1e-7)
    check(f"{backend} adamw v", got[2], state["exp_avg_sq"], 1e-7)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    for _ in range(5):
        for backend in ("ref", "cpu"):
            for op in (gelu, layernorm, attention, head, adamw):
                op(backend)
    print(f"seed {SEED}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
