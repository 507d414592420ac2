"""Makes recordings of one training iteration in the layout that replay-updates reads: transformers' GPT-2 as policy, critic and reference, an update of
stable-baselines3 or sb3-contrib (sb3_updates.py), one of torch's optimizers. Used by check_ppo.py with random settings."""
import json
import os

import numpy as np
import torch as th
from safetensors.torch import save_file
from stable_baselines3.common.distributions import CategoricalDistribution
from transformers import GPT2Config, GPT2LMHeadModel

import ppo_reference as ref
import sb3_updates

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

    def __init__(self, policy, value, head, optimizer):
        super().__init__()
        self.policy_model, self.value_model, self.value_head = policy, value, head
        self.states, self.actions = [], []
        decay = [p for n, p in self.named_tensors() if "bias" not in n]
        plain = [p for n, p in self.named_tensors() if "bias" in n]
        kind = getattr(th.optim, optimizer["class"].split(".")[-1])
        args = {k: v for k, v in optimizer["groups"][0].items() if k != "weight_decay"}
        wd = optimizer["groups"][0]["weight_decay"]
        self.optimizer = kind([{"params": decay, "weight_decay": wd}, {"params": plain, "weight_decay": 0.0}], lr=1.0, foreach=False, **args)
        self.seen, self.steps, self.first_grad = [], [], None
        step = self.optimizer.step
        self.optimizer.step = lambda: (self.steps.append(getattr(self, "norms", None)), step())

    def named_tensors(self):
        for prefix, m in (("policy.", self.policy_model), ("value.", self.value_model)):
            for n, p in m.named_parameters():
                yield prefix + n, p
        yield "value_head.weight", self.value_head

    def parameters(self, recurse=True):  # called by clip_grad_norm_, before clipping
        grads = {n: p.grad for n, p in self.named_tensors()}
        self.norms = [float(grads[n].norm()) for n in grads]
        if self.first_grad is None:
            self.first_grad = {n: g.clone() for n, g in grads.items()}
        return iter([p for _, p in self.named_tensors()])

    def set_training_mode(self, mode):
        pass

    def run(self, net, rows):
        """Logits or hidden states at the last token of each state."""
        seqs = [self.states[r] for r in rows]
        longest = max(map(len, seqs))
        ids = th.tensor([s + [0] * (longest - len(s)) for s in seqs])
        out = net(ids)
        return (out.logits if hasattr(out, "logits") else out.last_hidden_state)[th.arange(len(seqs)), [len(s) - 1 for s in seqs]]

    def get_distribution(self, rows):
        dist = CategoricalDistribution(self.policy_model.config.vocab_size)
        return dist.proba_distribution(self.run(self.policy_model, rows.tolist()))

    def predict_values(self, rows):
        return self.run(self.value_model.transformer, rows.tolist()) @ self.value_head[0]

    def outputs(self, rows):
        dist = self.get_distribution(rows)
        return self.predict_values(rows), dist.log_prob(th.tensor([self.actions[r] for r in rows.tolist()])), dist.entropy()

    def evaluate_actions(self, rows, actions):
        value, logp, entropy = self.outputs(rows)
        self.seen.append((rows.numpy(), logp.detach().numpy(), value.detach().numpy(), entropy.detach().numpy()))
        return value, logp, entropy


def draw_rollout(rng):
    """Random settings of what comes before the update, and the shape of the case."""
    more = {"gamma": float(rng.choice([0.9, 0.99, 1.0])), "gae_lambda": float(rng.choice([0.8, 0.95, 1.0])), "norm_reward": bool(rng.integers(2)),
            "kl_coeff": float(rng.choice([0.02, 0.3])), "kl_target": [None, 0.05, 1.0][rng.integers(3)]}
    shape = {"rows": int(rng.integers(20, 60)), "vocab": int(rng.choice([17, 90])), "prompt": int(rng.choice([1, 4, 9])), "episode": int(rng.choice([3, 8, 14]))}
    return more, shape


def make_networks(folder, model_folder, shape, optimizer, rng, seed):
    # eager attention: the fused one has no second derivatives, which TRPO takes
    config = GPT2Config(vocab_size=shape["vocab"], n_positions=32, n_embd=32, n_layer=int(rng.integers(1, 4)), n_head=int(rng.choice([1, 2, 4])),
                        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0, initializer_range=0.2, attn_implementation="eager")
    config.save_pretrained(os.path.join(folder, model_folder))
    base = make_model(config, 0.05, seed)
    head = th.nn.Parameter(th.randn(1, 32) * 0.2)
    return base, Networks(make_model(config, 0.04, seed + 1, base), make_model(config, 0.04, seed + 2, base), head, optimizer)


def act(nets, shape, rng):
    """Prompts, and episodes of (sample, prompt, actions): sampled from the policy, EOS (0) ends."""
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
    return samples, episodes


def score(model, states, actions):
    out = [float(th.log_softmax(model(th.tensor([s])).logits[0, -1], -1)[a]) for s, a in zip(states, actions)]
    return np.array(out, F32)


def record(folder, name, seed, algorithm="ppo"):
    rng = np.random.default_rng(seed)
    o, optimizer = sb3_updates.DRAW[algorithm](rng)
    more, shape = draw_rollout(rng)
    # A state of one token gives queries and keys no gradient; in a small minibatch of such states AdamW would move them by rounding alone.
    small = o.get("batch_size", 64) <= 8
    if small:
        shape["prompt"] = max(shape["prompt"], 4)
    shape["shortest"] = 2 if small else 1
    model_folder = f"models/{name}"
    base, nets = make_networks(folder, model_folder, shape, optimizer, rng, seed)
    case = os.path.join(folder, name)
    os.makedirs(case, exist_ok=True)
    save = lambda d, f: save_file({k: v.detach().contiguous().clone() for k, v in d.items()}, os.path.join(case, f))
    initial = dict(nets.named_tensors())
    initial.update({"ref." + n: p for n, p in base.named_parameters()})
    save(initial, "initial.safetensors")

    samples, episodes = act(nets, shape, rng)
    nets.states = [p + a[:k] for _, p, a in episodes for k in range(len(a))]
    nets.actions = [x for _, _, a in episodes for x in a]
    total = len(nets.actions)
    with th.no_grad():
        value, logp, entropy = (x.numpy() for x in nets.outputs(th.arange(total)))
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
    try:
        update, vectors = sb3_updates.RUN[algorithm](nets, data, rng, shape["vocab"], o)
    except sb3_updates.Undecided:
        return record(folder, name, seed + 1, algorithm)
    save(dict(nets.named_tensors()), "final.safetensors")
    for file, tensors in vectors.items():
        save(tensors, file)

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
    rec = {"case": name, "algorithm": algorithm, "model": {"family": "gpt2", "folder": model_folder},
           "config": {"env": {"args": {"max_prompt_length": shape["prompt"], "max_episode_length": shape["episode"]}}}, "samples": samples,
           "hyperparameters": {**o, **more}, "optimizer": optimizer,
           "rollout": {"kl_coeff_before": more["kl_coeff"], "kl_coeff_after": coeff_after, "info": info, "last_values": [last_value], "last_dones": done,
                       "batches": [{"episodes": steps}]},
           "buffer": {"observations": {"input_encoded_pt": [pad(s, None) for s in nets.states[:n]], "input_attention_mask_pt": [pad(s, 1) for s in nets.states[:n]]},
                      "actions": nets.actions[:n], "rewards": reward, "values": data["value_old"], "log_probs": data["logp_old"], "advantages": adv, "returns": ret,
                      "episode_starts": start[:n]},
           "update": update,
           "initial_weights_file": "initial.safetensors"}
    with open(os.path.join(case, "recording.json"), "w") as f:
        json.dump(ref.plain(rec), f)
    return {**o, **more, **shape, "optimizer": optimizer["class"]}
