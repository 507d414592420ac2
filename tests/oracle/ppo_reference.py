"""stable-baselines3's own PPO code on small problems: the reference of gen_ppo.py and check_ppo.py.

PPO.train and RolloutBuffer.compute_returns_and_advantage run unmodified; only the policy (what evaluate_actions returns) is ours.
"""
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import Logger

F32 = np.float32


def f32(rng, n, scale=1.0, shift=0.0):
    return (rng.standard_normal(n) * scale + shift).astype(F32)


def gae(reward, value, start, last_value, last_done, gamma, lam):
    buf = RolloutBuffer(len(reward), spaces.Box(-1, 1, (1,)), spaces.Discrete(2), device="cpu", gae_lambda=lam, gamma=gamma)
    buf.rewards[:, 0], buf.values[:, 0], buf.episode_starts[:, 0] = reward, value, start
    buf.compute_returns_and_advantage(th.tensor([last_value]), np.array([last_done]))
    return buf.advantages[:, 0], buf.returns[:, 0]


class ListBuffer:
    """What PPO.train reads of a rollout buffer, with the order of rows given instead of drawn."""

    def __init__(self, data, permutations):
        self.data, self.permutations, self.epoch = data, list(permutations), 0
        self.values, self.returns = data["value_old"], data["ret"]

    def get(self, batch_size):
        batch_size = batch_size or len(self.permutations[0])
        from types import SimpleNamespace
        perm, self.epoch, d = self.permutations[self.epoch], self.epoch + 1, self.data
        for at in range(0, len(perm), batch_size):
            rows = perm[at:at + batch_size]
            t = lambda k: th.tensor(d[k][rows])
            yield SimpleNamespace(observations=th.tensor(rows), actions=th.tensor(d["action"][rows], dtype=th.float32),
                                  advantages=t("adv"), returns=t("ret"), old_values=t("value_old"), old_log_prob=t("logp_old"))


class Recorder(Logger):
    def __init__(self):
        super().__init__(folder=None, output_formats=[])


def sb3_train(policy, data, permutations, n_actions, *, n_epochs, batch_size, clip_range, clip_range_vf, ent_coef, vf_coef,
              max_grad_norm, target_kl, normalize_advantage, learning_rate):
    """PPO.train() on `policy` (evaluate_actions, parameters, optimizer); returns what it logged."""
    algo = PPO.__new__(PPO)
    algo.policy, algo.rollout_buffer = policy, ListBuffer(data, permutations)
    algo.n_epochs, algo.batch_size = n_epochs, batch_size
    algo.clip_range = lambda _: clip_range
    algo.clip_range_vf = None if clip_range_vf is None else (lambda _: clip_range_vf)
    algo.ent_coef, algo.vf_coef, algo.max_grad_norm, algo.target_kl = ent_coef, vf_coef, max_grad_norm, target_kl
    algo.normalize_advantage, algo.verbose = normalize_advantage, 0
    algo.lr_schedule, algo._current_progress_remaining, algo._n_updates = (lambda _: learning_rate), 1.0, 0
    algo.action_space, algo._logger = spaces.Discrete(n_actions), Recorder()
    algo.train()
    return dict(algo._logger.name_to_value)


def sb3_a2c(policy, data, *, ent_coef, vf_coef, normalize_advantage):
    """A2C.train() on `policy`, one step on all rows; returns what it logged."""
    algo = A2C.__new__(A2C)
    algo.policy, algo.rollout_buffer = policy, ListBuffer(data, [np.arange(len(data["adv"]))])
    algo.ent_coef, algo.vf_coef, algo.max_grad_norm, algo.normalize_advantage = ent_coef, vf_coef, 1e30, normalize_advantage
    algo.lr_schedule, algo._current_progress_remaining, algo._n_updates = (lambda _: 1.0), 1.0, 0
    algo.action_space, algo._logger = spaces.Discrete(2), Recorder()
    algo.train()
    return dict(algo._logger.name_to_value)


class Table(th.nn.Module):
    """A 'policy' that is a table: its outputs are its parameters, so their gradients are those of the loss."""

    def __init__(self, logp, entropy, value, step):
        super().__init__()
        p = lambda x: th.nn.Parameter(th.tensor(x))
        self.logp, self.entropy, self.value = p(logp), p(entropy), p(value)
        self.optimizer, self.grads = self, None
        self.param_groups = [{"lr": 0.0}]
        self.do_step = step

    def set_training_mode(self, mode):
        pass

    def evaluate_actions(self, rows, actions):
        return self.value[rows], self.logp[rows], self.entropy[rows]

    def zero_grad(self, *a, **k):
        for p in self.parameters():
            p.grad = None

    def step(self):
        self.do_step(self)


def ppo_case(rng, n):
    data = {"logp_old": f32(rng, n, 1, -3), "value_old": f32(rng, n), "adv": f32(rng, n, rng.choice([0.3, 1, 5])), "ret": f32(rng, n),
            "action": np.zeros(n, F32)}
    now = {"logp": (data["logp_old"] + f32(rng, n, 0.3)).astype(F32), "entropy": f32(rng, n, 0.3, 3),
           "value": (data["value_old"] + f32(rng, n, 0.3)).astype(F32)}
    opts = {"clip_range": float(rng.choice([0.1, 0.2, 0.5])), "clip_range_vf": [None, 0.05, 0.3][rng.integers(3)],
            "ent_coef": float(rng.choice([0.0, 0.01, 0.3])), "vf_coef": float(rng.choice([0.1, 0.5, 1.0])),
            "normalize_advantage": bool(rng.integers(2))}
    got = {}

    def keep(table):  # called where the optimizer would step; nothing was clipped (max_grad_norm is huge)
        got.update({"dlogp": table.logp.grad, "dentropy": table.entropy.grad, "dvalue": table.value.grad})

    table = Table(now["logp"], now["entropy"], now["value"], keep)
    logged = sb3_train(table, data, [np.arange(n)], 2, n_epochs=1, batch_size=n, max_grad_norm=1e30, target_kl=None, learning_rate=1.0,
                       **opts)
    want = {k: (np.zeros(n) if v is None else v.numpy()) for k, v in got.items()}
    names = {"policy_gradient_loss": "policy_loss"}
    for k in ("policy_gradient_loss", "value_loss", "entropy_loss", "loss", "approx_kl", "clip_fraction", "explained_variance"):
        want[names.get(k, k)] = float(logged["train/" + k])
    request = {"op": "ppo", **{k: data[k] for k in ("logp_old", "value_old", "adv", "ret")}, **now, **opts}
    return request, want


def a2c_case(rng, n):
    data = {"logp_old": f32(rng, n, 1, -3), "value_old": f32(rng, n), "adv": f32(rng, n, rng.choice([0.3, 1, 5])), "ret": f32(rng, n),
            "action": np.zeros(n, F32)}
    now = {"logp": (data["logp_old"] + f32(rng, n, 0.3)).astype(F32), "entropy": f32(rng, n, 0.3, 3), "value": f32(rng, n)}
    opts = {"ent_coef": float(rng.choice([0.0, 0.01, 0.3])), "vf_coef": float(rng.choice([0.1, 0.5, 1.0])),
            "normalize_advantage": bool(rng.integers(2)) and n > 1}
    got = {}
    table = Table(now["logp"], now["entropy"], now["value"],
                  lambda t: got.update({"dlogp": t.logp.grad, "dentropy": t.entropy.grad, "dvalue": t.value.grad}))
    logged = sb3_a2c(table, data, **opts)
    want = {k: (np.zeros(n) if v is None else v.numpy()) for k, v in got.items()}
    for theirs, ours in (("policy_loss", "policy_loss"), ("value_loss", "value_loss"), ("entropy_loss", "entropy_loss"),
                         ("explained_variance", "explained_variance")):
        want[ours] = float(logged["train/" + theirs])
    return {"op": "a2c", **{k: data[k] for k in ("logp_old", "value_old", "adv", "ret")}, **now, **opts}, want


def cg_case(rng, n):
    """sb3-contrib's solver for TRPO's direction, from the same starting point."""
    from sb3_contrib.common.utils import conjugate_gradient_solver
    root = rng.standard_normal((n, n)) / np.sqrt(n)
    matrix, b, noise = (root @ root.T + 0.3 * np.eye(n)).astype(F32), f32(rng, n), f32(rng, n)
    steps, randn_like = int(rng.integers(1, 9)), th.randn_like
    th.randn_like = lambda _: th.tensor(noise)
    try:
        x = conjugate_gradient_solver(lambda v, **_: th.tensor(matrix) @ v, th.tensor(b), max_iter=steps)
    finally:
        th.randn_like = randn_like
    return {"op": "cg", "matrix": matrix, "b": b, "x": (F32(1e-4) * noise).astype(F32), "max_steps": steps}, {"x": x.numpy()}


def gae_case(rng, n):
    start = (rng.random(n) < 0.15).astype(F32)
    start[0] = 1
    r = {"reward": f32(rng, n), "value": f32(rng, n), "start": start, "last_value": float(F32(rng.standard_normal())),
         "last_done": bool(rng.integers(2)), "gamma": float(rng.choice([0.9, 0.99, 1.0])), "gae_lambda": float(rng.choice([0.0, 0.95, 1.0]))}
    adv, ret = gae(r["reward"], r["value"], start, r["last_value"], r["last_done"], r["gamma"], r["gae_lambda"])
    return {"op": "gae", **r}, {"advantages": adv, "returns": ret}


def adamw_case(rng, n, steps, backend="ref"):
    param, grads = f32(rng, n), [f32(rng, n, 10.0 ** rng.integers(-4, 2)) for _ in range(steps)]
    o = {"lr": float(rng.choice([1e-3, 1e-4, 0.1])), "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": float(rng.choice([0, 1e-6, 0.1])),
         "max_grad_norm": float(rng.choice([0, 0.5, 5.0]))}
    p = th.nn.Parameter(th.tensor(param))
    opt = th.optim.AdamW([p], lr=o["lr"], betas=tuple(o["betas"]), eps=o["eps"], weight_decay=o["weight_decay"], foreach=False)
    norms = []
    for g in grads:
        p.grad = th.tensor(g)
        norms.append(float(th.nn.utils.clip_grad_norm_([p], o["max_grad_norm"] or float("inf"))))
        opt.step()
    return {"op": "adamw", "backend": backend, "param": param, "grads": grads, **o}, {"param": p.detach().numpy(), "norms": np.array(norms)}


def plain(x):
    """JSON of numpy values: f32 as the shortest decimal that reads back to it, NaN as null."""
    if isinstance(x, float) and x != x:
        return None
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return [float(str(v)) if x.dtype == F32 else float(v) for v in x.reshape(-1)]
    if isinstance(x, np.generic):
        return float(str(x)) if x.dtype == F32 else x.item()
    return x
