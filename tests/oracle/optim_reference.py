"""Optimizer problems with the answers of torch.optim; for 8-bit Adam, of a numpy program written from the description in
common/nn/quant8.h and common/nn/op/adam8.h."""
import numpy as np
import torch

F32 = np.float32
BLOCK = 256


def book(signed):
    """All (value, lower end of its part) of a code book, ascending, in double."""
    values, edges = [], []
    for i in range(7):
        n = 2 ** (i if signed else i + 1)
        for k in range(n):
            values.append((0.1 + 0.9 * (k + 0.5) / n) * 10.0 ** (i - 6))
            edges.append((0.1 + 0.9 * k / n) * 10.0 ** (i - 6))
    return np.array(values), np.array(edges)


def quantise(x, signed):
    """What x is after a round trip through 8 bits, block by block."""
    values, edges = book(signed)
    out = np.zeros_like(x)
    for first in range(0, len(x), BLOCK):
        part = x[first:first + BLOCK].astype(np.float64)
        top = np.max(np.abs(part))
        if top == 0:
            continue
        y = np.abs(part) / top
        at = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, None)
        q = values[at]
        if signed:
            q = np.where(y < 0.275e-6, 0, q)
        else:
            q = np.where(y > 0, q, 0)
        q = np.where(y >= 1, 1.0, q)
        if signed:
            # the largest magnitude has a code of its own only where it is positive
            q = np.where((y >= 1) & (part < 0), values[-1], q)
            q = q * np.sign(part)
        out[first:first + BLOCK] = (q * top).astype(F32)
    return out


def adam8(param, grads, o):
    p, m, v = param.astype(np.float64), np.zeros_like(param), np.zeros_like(param)
    b1, b2 = o["betas"]
    for t, g in enumerate(grads, 1):
        g = g.astype(np.float64)
        m1, v1 = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p * (1 - o["lr"] * o["weight_decay"])
        p -= o["lr"] / (1 - b1 ** t) * m1 / (np.sqrt(v1) / np.sqrt(1 - b2 ** t) + o["eps"])
        m, v = quantise(m1.astype(F32), True), quantise(v1.astype(F32), False)
    return p, [m, v]


STATE = {"adam": ["exp_avg", "exp_avg_sq"], "adamw": ["exp_avg", "exp_avg_sq"], "sgd": ["momentum_buffer"],
         "rmsprop": ["square_avg", "momentum_buffer", "grad_avg"]}


def torch_step(kind, p, o):
    common = {"lr": o["lr"], "weight_decay": o["weight_decay"], "foreach": False}
    if kind == "sgd":
        return torch.optim.SGD([p], momentum=o["momentum"], dampening=o["dampening"], nesterov=o["nesterov"], **common)
    if kind == "rmsprop":
        return torch.optim.RMSprop([p], alpha=o["alpha"], eps=o["eps"], momentum=o["momentum"], centered=o["centered"], **common)
    return (torch.optim.Adam if kind == "adam" else torch.optim.AdamW)([p], betas=tuple(o["betas"]), eps=o["eps"], **common)


def case(rng, kind, n, steps, backend="ref"):
    param = rng.standard_normal(n).astype(F32)
    grads = [(rng.standard_normal(n) * 10.0 ** rng.integers(-3, 2)).astype(F32) for _ in range(steps)]
    o = {"lr": float(rng.choice([1e-3, 1e-4, 0.05])), "betas": [0.9, float(rng.choice([0.95, 0.999]))],
         "eps": float(rng.choice([1e-8, 1e-5])), "weight_decay": float(rng.choice([0, 1e-6, 0.1])),
         "alpha": float(rng.choice([0.99, 0.9])), "momentum": float(rng.choice([0, 0.9])), "dampening": 0.0,
         "centered": bool(rng.integers(2)), "nesterov": False, "max_grad_norm": float(rng.choice([0, 0.5, 5.0]))}
    if kind == "sgd" and o["momentum"]:
        o["nesterov"] = bool(rng.integers(2))
        o["dampening"] = 0.0 if o["nesterov"] else float(rng.choice([0, 0.3]))
    request = {"op": "optim", "kind": kind, "backend": backend, "param": param, "grads": grads, **o}
    if kind == "adamw_8bit":
        if o["max_grad_norm"]:
            grads = [g * F32(min(1.0, o["max_grad_norm"] / (float(np.sqrt(np.sum(g.astype(np.float64) ** 2))) + 1e-6))) for g in grads]
        p, state = adam8(param, grads, o)
        return request, {"param": p, "state": state}
    p = torch.nn.Parameter(torch.tensor(param))
    opt = torch_step(kind, p, o)
    for g in grads:
        p.grad = torch.tensor(g)
        if o["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_([p], o["max_grad_norm"])
        opt.step()
    state = [opt.state[p][k].numpy() for k in STATE[kind] if opt.state[p].get(k) is not None]
    return request, {"param": p.detach().numpy(), "state": state}
