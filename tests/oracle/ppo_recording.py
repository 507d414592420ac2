"""Makes recordings of one training iteration in the layout that replay-updates reads: transformers' GPT-2 as policy, critic and reference,
stable-baselines3's PPO.train as the update, torch's AdamW as the optimizer. Used by check_ppo.py with random settings."""
import json
import os

import numpy as np
import torch as th
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

import ppo_reference as ref

F32 = np.float32
th.set_num_threads(1)  # tiny models: threads only wait for each other


def make_model(config, noise, seed, base=None):
    th.manual_seed(seed)
    m = GPT2LMHeadModel(config).eval()
    with th.no_grad():
        if base is not None:
            m.load_state_dict(base.state_dict())
        for p in m.parameters():
            p.add_(th.randn_like(p) * noise)
    return m


class Networks(th.nn.Module):
    """policy, critic and head as stable-baselines3 calls them; keeps what passed by."""

    def __init__(self, policy, value, head, states, actions, lr):
        super().__init__()
        self.policy_model, self.value_model, self.head = policy, value, head
        self.states, self.actions = states, actions
        named = [(n, p) for n, p in self.named_tensors()]
        decay = [p for n, p in named if "bias" not in n]
        plain = [p for n, p in named if "bias" in n]
        self.optimizer = th.optim.AdamW([{"params": decay, "weight_decay": 1e-6}, {"params": plain, "weight_decay": 0.0}], lr=lr, foreach=False)
        self.seen, self.steps, self.first_grad = [], [], None
        step = self.optimizer.step
        self.optimizer.step = lambda: (self.steps.append(self.norms), step())

    def named_tensors(self):
        for prefix, m in (("policy.", self.policy_model), ("value.", self.value_model)):
            for n, p in m.named_parameters():
                yield prefix + n, p
        yield "value_head.weight", self.head

    def parameters(self, recurse=True):  # called by clip_grad_norm_, before clipping
        grads = {n: p.grad for n, p in self.named_tensors()}
        self.norms = [float(grads[n].norm()) for n in grads]
        if self.first_grad is None:
            self.first_grad = {n: g.clone() for n, g in grads.items()}
        return iter([p for _, p in self.named_tensors()])

    def set_training_mode(self, mode):
        pass

    def outputs(self, rows):
        seqs = [self.states[r] for r in rows]
        longest = max(map(len, seqs))
        ids = th.tensor([s + [0] * (longest - len(s)) for s in seqs])
        at = th.tensor([len(s) - 1 for s in seqs])
        pick = th.arange(len(seqs))
        logits = self.policy_model(ids).logits[pick, at]
        hidden = self.value_model.transformer(ids).last_hidden_state[pick, at]
        dist = th.distributions.Categorical(logits=logits)
        return hidden @ self.head[0], dist.log_prob(th.tensor([self.actions[r] for r in rows])), dist.entropy()

    def evaluate_actions(self, rows, actions):
        value, logp, entropy = self.outputs(rows.tolist())
        self.seen.append((rows.numpy(), logp.detach().numpy(), value.detach().numpy(), entropy.detach().numpy()))
        return value, logp, entropy


def draw(rng):
    """Random settings of one case."""
    o = {"n_epochs": int(rng.integers(1, 4)), "batch_size": int(rng.choice([2, 5, 8, 17, 20, 64])), "clip_range": float(rng.choice([0.05, 0.2])),
         "clip_range_vf": [None, 0.05, 0.2][rng.integers(3)], "ent_coef": float(rng.choice([0.0, 0.01, 0.1])), "vf_coef": float(rng.choice([0.1, 0.5, 1.0])),
         "max_grad_norm": float(rng.choice([0.3, 0.5, 100.0])), "target_kl": [None, None, 1e-4, 0.02][rng.integers(4)],
         "normalize_advantage": bool(rng.integers(2)), "learning_rate": float(rng.choice([1e-4, 3e-4]))}
    more = {"gamma": float(rng.choice([0.9, 0.99, 1.0])), "gae_lambda": float(rng.choice([0.8, 0.95, 1.0])), "norm_reward": bool(rng.integers(2)),
            "kl_coeff": float(rng.choice([0.02, 0.3])), "kl_target": [None, 0.05, 1.0][rng.integers(3)]}
    shape = {"rows": int(rng.integers(20, 60)), "vocab": int(rng.choice([17, 90])), "prompt": int(rng.choice([1, 4, 9])), "episode": int(rng.choice([3, 8, 14]))}
    # A state of one token gives queries and keys no gradient; in a small minibatch of such states AdamW would move them by rounding alone.
    if o["batch_size"] <= 8:
        shape["prompt"] = max(shape["prompt"], 4)
    shape["shortest"] = 2 if o["batch_size"] <= 8 else 1
    return o, more, shape


def record(folder, name, seed):
    rng = np.random.default_rng(seed)
    o, more, shape = draw(rng)
    heads = int(rng.choice([1, 2, 4]))
    config = GPT2Config(vocab_size=shape["vocab"], n_positions=32, n_embd=32, n_layer=int(rng.integers(1, 4)), n_head=heads, resid_pdrop=0,
                        embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0, initializer_range=0.2)
    model_folder = f"models/{name}"
    config.save_pretrained(os.path.join(folder, model_folder))
    base = make_model(config, 0.05, seed)
    nets = Networks(make_model(config, 0.04, seed + 1, base), make_model(config, 0.04, seed + 2, base), th.nn.Parameter(th.randn(1, 32) * 0.2), [], [],
                    o["learning_rate"])
    case = os.path.join(folder, name)
    os.makedirs(case, exist_ok=True)
    save = lambda d, f: save_file({k: v.detach().contiguous().clone() for k, v in d.items()}, os.path.join(case, f))
    initial = dict(nets.named_tensors())
    initial.update({"ref." + n: p for n, p in base.named_parameters()})
    save(initial, "initial.safetensors")

    # episodes: actions sampled from the policy, EOS (0) ends
    samples, episodes, total = [], [], 0
    while total < shape["rows"]:
        ids = rng.integers(1, shape["vocab"], rng.integers(shape["shortest"], shape["prompt"] + 4)).tolist()
        samples.append({"id": f"s{len(samples)}", "token_ids": ids})
        state, actions = ids[-shape["prompt"]:], []
        while len(actions) < shape["episode"]:
            with th.no_grad():
                p = th.softmax(nets.policy_model(th.tensor([state + actions])).logits[0, -1].double(), -1).numpy()
            actions.append(int(rng.choice(len(p), p=p / p.sum())))
            if actions[-1] == 0:
                break
        episodes.append((samples[-1]["id"], state, actions))
        total += len(actions)

    def score(m, states, actions):
        out = []
        for s, a in zip(states, actions):
            out.append(float(th.log_softmax(m(th.tensor([s])).logits[0, -1], -1)[a]))
        return np.array(out, F32)

    nets.states = [p + a[:k] for _, p, a in episodes for k in range(len(a))]
    nets.actions = [x for _, _, a in episodes for x in a]
    with th.no_grad():
        value, logp, entropy = (x.numpy() for x in nets.outputs(range(total)))
        ref_logp = score(base, nets.states, nets.actions)
    n, kl = shape["rows"], logp - ref_logp
    task = rng.choice([0.0, 0.5, 1.0, -0.25], total)
    kl_reward = -more["kl_coeff"] * kl.astype(np.float64)
    reward = (task + kl_reward)[:n].astype(F32)
    if more["norm_reward"]:
        reward = (reward - reward.mean()) / (reward.std() + F32(1e-8))
    start = np.array([k == 0 for _, _, a in episodes for k in range(len(a))], F32)
    done = total == n
    last_value = 0.0 if done else float(value[n])
    adv, ret = ref.gae(reward, value[:n], start[:n], last_value, done, more["gamma"], more["gae_lambda"])
    coeff_after = more["kl_coeff"]
    if more["kl_target"]:
        coeff_after *= 1 + 0.1 * float(np.clip((kl.mean() - more["kl_target"]) / more["kl_target"], -0.2, 0.2))
    ends = np.cumsum([len(a) for _, _, a in episodes])[:-1]
    info = {}
    for key, x in (("ep_rew", [p.sum() for p in np.split(task, ends)]), ("kl_div_mean", kl), ("ep_lens", [len(a) for _, _, a in episodes]),
                   ("ep_kl_rew", [p.sum() for p in np.split(kl_reward, ends)]), ("log_prob", logp), ("ref_log_prob", ref_logp), ("values", value)):
        info["rollout_info/" + key], info[f"rollout_info/{key}_std"] = float(np.mean(x)), float(np.std(x))

    data = {"logp_old": logp[:n].copy(), "value_old": value[:n].copy(), "adv": adv, "ret": ret, "action": np.array(nets.actions[:n], F32)}
    perms = [rng.permutation(n) for _ in range(o["n_epochs"])]
    logged = ref.sb3_train(nets, data, perms, shape["vocab"], **o)
    save(dict(nets.named_tensors()), "final.safetensors")
    if nets.first_grad:
        save(nets.first_grad, "grad_first_minibatch.safetensors")

    minibatches, per_epoch = [], -(-n // o["batch_size"])
    for i, norms in enumerate(nets.steps):
        rows, lp, v, h = nets.seen[i]
        a = data["adv"][rows]
        if o["normalize_advantage"] and len(a) > 1:
            a = (a - a.mean()) / (a.std(ddof=1) + F32(1e-8))
        d = lp - data["logp_old"][rows]
        ratio = np.exp(d)
        vp = v if o["clip_range_vf"] is None else data["value_old"][rows] + np.clip(v - data["value_old"][rows], -o["clip_range_vf"], o["clip_range_vf"])
        pl = -np.minimum(a * ratio, a * np.clip(ratio, 1 - o["clip_range"], 1 + o["clip_range"])).mean()
        vl, el = ((data["ret"][rows] - vp) ** 2).mean(), -h.mean()
        minibatches.append({"epoch": i // per_epoch, "batch": i % per_epoch, "log_prob": lp, "values": v, "entropy": h, "advantages_used": a, "ratio": ratio,
                            "policy_loss": pl, "value_loss": vl, "entropy_loss": el, "loss": pl + o["ent_coef"] * el + o["vf_coef"] * vl,
                            "approx_kl": (ratio - 1 - d).mean(), "clip_fraction": float((abs(ratio - 1) > o["clip_range"]).mean()),
                            "grad_norm_before_clip": float(np.sqrt(np.sum(np.square(norms)))), "grad_norm_per_tensor_before_clip": norms, "lr": o["learning_rate"]})

    steps, at = [], 0
    for sid, prompt, actions in episodes:
        rows = range(at, at + len(actions))
        width = shape["prompt"]
        steps.append({"sample_id": sid, "prompt_token_ids": [0] * (width - len(prompt)) + prompt, "prompt_attention_mask": [0] * (width - len(prompt)) + [1] * len(prompt),
                      "length": len(actions), "actions": actions,
                      "steps": [{"action": nets.actions[i], "log_prob": logp[i], "ref_log_prob": ref_logp[i], "entropy": entropy[i], "value": value[i], "kl_div": kl[i],
                                 "kl_reward": kl_reward[i], "task_reward": task[i], "total_reward": task[i] + kl_reward[i]} for i in rows]})
        at += len(actions)
    width = shape["prompt"] + shape["episode"]
    pad = lambda s, fill: [0] * (width - len(s)) + (s if fill is None else [fill] * len(s))
    rec = {"case": name, "algorithm": "ppo", "model": {"family": "gpt2", "folder": model_folder},
           "config": {"env": {"args": {"max_prompt_length": shape["prompt"], "max_episode_length": shape["episode"]}}}, "samples": samples,
           "hyperparameters": {**o, **more}, "optimizer": {"groups": [{"weight_decay": 1e-6, "betas": [0.9, 0.999], "eps": 1e-8}]},
           "rollout": {"kl_coeff_before": more["kl_coeff"], "kl_coeff_after": coeff_after, "info": info, "last_values": [last_value], "last_dones": done,
                       "batches": [{"episodes": steps}]},
           "buffer": {"observations": {"input_encoded_pt": [pad(s, None) for s in nets.states[:n]], "input_attention_mask_pt": [pad(s, 1) for s in nets.states[:n]]},
                      "actions": nets.actions[:n], "rewards": reward, "values": data["value_old"], "log_probs": data["logp_old"], "advantages": adv, "returns": ret,
                      "episode_starts": start[:n]},
           "update": {"tensors_with_gradient": [k for k, _ in nets.named_tensors()], "permutations": [p.tolist() for p in perms], "minibatches": minibatches,
                      "minibatches_evaluated": len(nets.seen),
                      "training_info": {"ppo/" + k: float(logged["train/" + k]) for k in ("entropy_loss", "policy_gradient_loss", "value_loss", "approx_kl", "explained_variance")}},
           "initial_weights_file": "initial.safetensors"}
    with open(os.path.join(case, "recording.json"), "w") as f:
        json.dump(ref.plain(rec), f)
    return {**o, **more, **shape}
