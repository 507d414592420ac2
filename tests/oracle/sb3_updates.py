"""Whole updates by stable-baselines3's PPO and A2C and sb3-contrib's TRPO, with random settings: train() runs unmodified on networks of ours (update_recording.py),
and what passes through it is kept. DRAW[algorithm](rng) gives settings and optimizer, RUN[algorithm](nets, data, rng, n_actions, settings) the `update` part of a
recording and the tensors beside it, by file name."""
import contextlib
import copy
from unittest import mock

import numpy as np
import torch as th
from gymnasium import spaces
from sb3_contrib import TRPO
from stable_baselines3 import A2C, PPO

import ppo_reference as ref

F32 = np.float32
ADAMW = {"class": "torch.optim.AdamW", "groups": [{"weight_decay": 1e-6, "betas": [0.9, 0.999], "eps": 1e-8}]}


def train(kind, nets, data, permutations, n_actions, o):
    """kind.train() with the settings o as its attributes; returns what it logged."""
    algo = kind.__new__(kind)
    schedule = lambda key: None if o.get(key) is None else (lambda _: o[key])
    for key, value in o.items():
        setattr(algo, key, value)
    algo.clip_range, algo.clip_range_vf, algo.lr_schedule = schedule("clip_range"), schedule("clip_range_vf"), schedule("learning_rate")
    algo.policy, algo.rollout_buffer = nets, ref.ListBuffer(data, permutations)
    algo._current_progress_remaining, algo._n_updates, algo.verbose = 1.0, 0, 0
    algo.action_space, algo._logger = spaces.Discrete(n_actions), ref.Recorder()
    algo.train()
    return dict(algo._logger.name_to_value)


# ---- PPO and A2C: steps on minibatches ----


def draw_ppo(rng):
    o = {"n_epochs": int(rng.integers(1, 4)), "batch_size": int(rng.choice([2, 5, 8, 17, 20, 64])), "clip_range": float(rng.choice([0.05, 0.2])),
         "clip_range_vf": [None, 0.05, 0.2][rng.integers(3)], "ent_coef": float(rng.choice([0.0, 0.01, 0.1])), "vf_coef": float(rng.choice([0.1, 0.5, 1.0])),
         "max_grad_norm": float(rng.choice([0.3, 0.5, 100.0])), "target_kl": [None, None, 1e-4, 0.02][rng.integers(4)],
         "normalize_advantage": bool(rng.integers(2)), "learning_rate": float(rng.choice([1e-4, 3e-4]))}
    return o, ADAMW


def draw_a2c(rng):
    o = {"ent_coef": float(rng.choice([0.0, 0.01, 0.1])), "vf_coef": float(rng.choice([0.1, 0.5, 1.0])), "max_grad_norm": float(rng.choice([0.3, 0.5, 100.0])),
         "normalize_advantage": bool(rng.integers(2)), "learning_rate": float(rng.choice([1e-4, 7e-4])), "use_rms_prop": bool(rng.integers(4) > 0),
         "rms_prop_eps": float(rng.choice([1e-5, 1e-3]))}
    rms = {"class": "torch.optim.RMSprop", "groups": [{"weight_decay": 1e-6, "alpha": 0.99, "eps": o["rms_prop_eps"]}]}
    return o, rms if o["use_rms_prop"] else ADAMW


def minibatch(o, data, rows, lp, v, h, norms):
    """What one minibatch of PPO or A2C amounts to, from what the networks answered."""
    a = data["adv"][rows]
    if o["normalize_advantage"] and len(a) > 1:
        a = (a - a.mean()) / (a.std(ddof=1) + F32(1e-8))
    out = {"log_prob": lp, "values": v, "entropy": h, "advantages_used": a, "entropy_loss": -h.mean(),
           "grad_norm_before_clip": float(np.sqrt(np.sum(np.square(norms)))), "grad_norm_per_tensor_before_clip": norms, "lr": o["learning_rate"]}
    if "clip_range" in o:
        d, eps, old = lp - data["logp_old"][rows], o["clip_range"], data["value_old"][rows]
        ratio = np.exp(d)
        vp = v if o["clip_range_vf"] is None else old + np.clip(v - old, -o["clip_range_vf"], o["clip_range_vf"])
        out.update({"ratio": ratio, "policy_loss": -np.minimum(a * ratio, a * np.clip(ratio, 1 - eps, 1 + eps)).mean(), "approx_kl": (ratio - 1 - d).mean(),
                    "clip_fraction": float((abs(ratio - 1) > eps).mean())})
    else:
        out["policy_loss"], vp = -(a * lp).mean(), v
    out["value_loss"] = ((data["ret"][rows] - vp) ** 2).mean()
    out["loss"] = out["policy_loss"] + o["ent_coef"] * out["entropy_loss"] + o["vf_coef"] * out["value_loss"]
    return out


def descend(kind, nets, data, rng, n_actions, o, logged_as):
    n = len(data["adv"])
    perms = [rng.permutation(n) for _ in range(o.get("n_epochs", 1))]
    logged = train(kind, nets, data, perms, n_actions, o)
    per_epoch = -(-n // o.get("batch_size", n))
    steps = [{"epoch": i // per_epoch, "batch": i % per_epoch, **minibatch(o, data, *nets.seen[i], norms)} for i, norms in enumerate(nets.steps)]
    update = {"tensors_with_gradient": [k for k, _ in nets.named_tensors()], "permutations": [p.tolist() for p in perms], "minibatches": steps,
              "minibatches_evaluated": len(nets.seen), "training_info": {"ppo/" + ours: float(logged["train/" + theirs]) for theirs, ours in logged_as.items()}}
    return update, {"grad_first_minibatch.safetensors": nets.first_grad} if nets.first_grad else {}


def run_ppo(nets, data, rng, n_actions, o):
    keys = ("entropy_loss", "policy_gradient_loss", "value_loss", "approx_kl", "explained_variance")
    return descend(PPO, nets, data, rng, n_actions, o, {k: k for k in keys})


def run_a2c(nets, data, rng, n_actions, o):
    return descend(A2C, nets, data, rng, n_actions, o, {"entropy_loss": "entropy_loss", "policy_loss": "policy_gradient_loss", "value_loss": "value_loss",
                                                        "explained_variance": "explained_variance"})


# ---- TRPO: one step of the policy, then the critic's ----


def draw_trpo(rng):
    o = {"learning_rate": float(rng.choice([1e-4, 1e-3])), "batch_size": int(rng.choice([5, 8, 17, 64])), "cg_max_steps": int(rng.choice([1, 4, 8, 15])),
         "cg_damping": float(rng.choice([0.01, 0.1, 1.0])), "line_search_shrinking_factor": float(rng.choice([0.3, 0.5, 0.8])),
         "line_search_max_iter": int(rng.choice([1, 2, 10])), "n_critic_updates": int(rng.integers(0, 4)), "normalize_advantage": bool(rng.integers(2)),
         "target_kl": float(rng.choice([0.001, 0.01, 0.1, 0.5])), "sub_sampling_factor": int(rng.choice([1, 1, 2, 3]))}
    optimizers = [ADAMW, {"class": "torch.optim.Adam", "groups": [{"weight_decay": 0.0, "betas": [0.9, 0.999], "eps": 1e-5}]},
                  {"class": "torch.optim.RMSprop", "groups": [{"weight_decay": 1e-6, "alpha": 0.99, "eps": 1e-5}]},
                  {"class": "torch.optim.SGD", "groups": [{"weight_decay": 1e-6, "momentum": 0.9}]}]
    optimizer = optimizers[rng.integers(len(optimizers))]
    if "RMSprop" in optimizer["class"]:  # its first steps are ten times the rate, whatever the gradient: rounding would decide about tiny ones
        o["learning_rate"] = 1e-4
    return o, optimizer


@contextlib.contextmanager
def overheard(kept, noise):
    """Keeps what TRPO.train gives its solver, gets from it, and the KL of every trial. noise: where the solver starts, drawn when None."""
    import sb3_contrib.trpo.trpo as module
    solve, kl, randn, product = module.conjugate_gradient_solver, module.kl_divergence, th.randn_like, TRPO.hessian_vector_product

    def solver(matvec, b, **kw):
        kept["objective_grad"] = b.clone()
        kept["search_direction"] = solve(matvec, b, **kw)
        kept["n_solving"] = len(kept["products"])
        return kept["search_direction"]

    def divergence(p, q):
        out = kl(p, q)
        kept["kl"].append(float(out.mean().detach()))
        return out

    def start(x):
        kept["cg_noise"] = randn(x) if noise is None else noise.to(x.dtype)
        return kept["cg_noise"].clone()

    def matvec(self, params, grad_kl, vector, retain_graph=True):
        out = product(self, params, grad_kl, vector, retain_graph)
        kept["products"].append((float(vector @ vector), float(vector @ out)))
        return out

    with mock.patch.multiple(module, conjugate_gradient_solver=solver, kl_divergence=divergence), mock.patch.object(th, "randn_like", start), \
            mock.patch.object(TRPO, "hessian_vector_product", matvec):
        yield


def trpo(nets, data, perms, n_actions, o, noise=None):
    """One TRPO.train(): what it kept, and (share of the step, objective, KL) of the policy before (0) and of every trial."""
    kept, dists, values = {"products": [], "kl": []}, [], []
    get_distribution, predict_values = nets.get_distribution, nets.predict_values
    nets.get_distribution = lambda rows: dists.append(get_distribution(rows)) or dists[-1]
    nets.predict_values = lambda rows: values.append((rows, predict_values(rows))) or values[-1][1]
    with overheard(kept, noise):
        kept["logged"] = train(TRPO, nets, data, perms, n_actions, o)
    rows = perms[0][::o["sub_sampling_factor"]]
    adv, old = th.tensor(data["adv"][rows]), th.tensor(data["logp_old"][rows])
    kept["adv"] = (adv - adv.mean()) / (adv.std() + 1e-8) if o["normalize_advantage"] else adv
    action = th.tensor(data["action"][rows]).long()
    objective = [float((kept["adv"] * th.exp(d.log_prob(action) - old)).mean()) for d in dists[1:]]  # the first one is the old policy
    share = [0] + [o["line_search_shrinking_factor"] ** i for i in range(len(objective) - 1)]
    kept["trials"] = np.array(list(zip(share, objective, kept["kl"])))
    kept["longest"] = float(np.sqrt(2 * o["target_kl"] / kept["products"][-1][1]))
    kept["products"] = np.array(kept["products"][:kept["n_solving"]])
    kept["values"], kept["final"] = values, th.cat([p.detach().reshape(-1) for p in nets.policy_model.parameters()])
    return kept


def spread(single, double):
    """How far sb3-contrib's own answers in single precision lie from those in double: what f32 leaves open. After ten or so steps the conjugate gradient
    has lost conjugacy to rounding, in any implementation."""
    n, trials = min(len(single["products"]), len(double["products"])), min(len(single["trials"]), len(double["trials"]))
    relative = lambda a, b: np.abs(a - b) / np.maximum(1e-3, np.abs(b))
    product = relative(single["products"][:n], double["products"][:n]).max(axis=1)
    of_trials = relative(single["trials"][:trials], double["trials"][:trials]).max(axis=0)
    direction = (single["search_direction"] - double["search_direction"]).abs().max() / double["search_direction"].abs().max()
    return {"products": product, "direction": float(direction), "longest": float(relative(single["longest"], double["longest"])), "objective": of_trials[1],
            "kl": of_trials[2], "final": float((single["final"] - double["final"]).abs().max())}


class Undecided(Exception):
    """A trial of the line search is so close to being accepted, or not, that rounding decides."""


def check_decided(o, trials, spread):
    margin = 2e-5 + 20 * max(spread["kl"], spread["objective"])
    for _, objective, kl in trials[1:]:
        if abs(kl - o["target_kl"]) < margin * o["target_kl"] or abs(objective - trials[0][1]) < margin * max(1, abs(objective)):
            raise Undecided


def run_trpo(nets, data, rng, n_actions, o):
    n = len(data["adv"])
    perms = [rng.permutation(n) for _ in range(1 + o["n_critic_updates"])]
    exact, exact_data = copy.deepcopy(nets).double(), {k: v.astype(np.float64) for k, v in data.items()}
    kept = trpo(nets, data, perms, n_actions, o)
    double = trpo(exact, exact_data, perms[:1], n_actions, {**o, "n_critic_updates": 0}, kept["cg_noise"])
    left_open = spread(kept, double)
    check_decided(o, kept["trials"], left_open)
    trials = [{"backtrack_coeff": share, "new_policy_objective": x, "kl": kl} for share, x, kl in kept["trials"][1:].tolist()]
    steps = [{"values": v.detach().numpy(), "value_loss": float(((v.detach() - th.tensor(data["ret"][r.numpy()])) ** 2).mean())} for r, v in kept["values"]]
    update = {"line_search": trials, "advantages_used": kept["adv"].numpy(), "policy_objective": float(kept["trials"][0][1]),
              "actor_params": ["policy." + name for name, _ in nets.policy_model.named_parameters()],
              "cg_matrix_products": [{"v_dot_v": a, "v_dot_Av": b} for a, b in kept["products"].tolist()], "line_search_max_step_size": kept["longest"],
              "permutations": [p.tolist() for p in perms], "minibatches": steps, "minibatches_evaluated": len(steps),
              "logger": {key: float(value) for key, value in kept["logged"].items()}, "spread": left_open}
    return update, {"trpo.safetensors": {key: kept[key] for key in ("cg_noise", "objective_grad", "search_direction")}}


DRAW = {"ppo": draw_ppo, "a2c": draw_a2c, "trpo": draw_trpo}
RUN = {"ppo": run_ppo, "a2c": run_a2c, "trpo": run_trpo}
