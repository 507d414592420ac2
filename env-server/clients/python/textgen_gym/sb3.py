"""TextGenVecEnv: stable-baselines3's VecEnv, straight on the server. SB3 takes no gymnasium VectorEnv."""
import time

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from . import groups


class TextGenVecEnv(VecEnv):
    """Options: see textgen_gym.episodes.Episodes; group_size: see textgen_gym.groups. Always same-step: on done the observation is the next episode's, the last one of the
    ended episode is info["terminal_observation"], and info["TimeLimit.truncated"] tells a cut from an end."""

    def __init__(self, address, n_envs=1, *, render_mode=None, **options):
        self.render_mode = render_mode
        self.episodes = e = groups.make(address, n_envs, **options)
        self.server_spec = e.spec
        self.actions = None
        self._started = np.full(n_envs, time.monotonic())
        super().__init__(n_envs, e.observations.space, spaces.Discrete(e.spec.vocab_size))

    # ---- episodes ------------------------------------------------------------------------------

    def reset(self):
        e = self.episodes
        self.actions = None  # a step that was not waited for is not made
        seeds = list(self._seeds)
        options = [o for o in self._options if o]
        shared = {}
        if options:
            if any("sample" in o for o in self._options):
                shared["sample"] = [o.get("sample") for o in self._options]
            splits = {o.get("split") for o in self._options}
            if len(splits) > 1:
                raise ValueError("all environments reset to the same split")
            if splits - {None}:
                shared["split"] = splits.pop()
        self.reset_infos = e.reset(e.all, seeds, shared)
        self._started[:] = time.monotonic()
        self._reset_seeds()
        self._reset_options()
        return e.observations.get(e.rows)

    def step_async(self, actions):
        self.actions = np.asarray(actions).reshape(-1)

    def step_wait(self):
        e, n = self.episodes, self.num_envs
        actions, self.actions = self.actions, None
        if actions is None:
            raise RuntimeError("step_wait without step_async")
        reward, terminated, truncated, failure = e.step(e.all, actions)
        if failure is not None:
            raise failure
        masks = e.action_masks(e.all) if e.mask_in_info else None
        if e.step_text or masks is not None or e.grouped:
            infos = [e.step_info(i, i, None if masks is None else masks[i]) for i in range(n)]
        else:
            infos = [{} for _ in range(n)]
        dones = terminated | truncated
        if dones.any():
            which = np.flatnonzero(dones).tolist()
            final = e.observations.get(np.asarray(which))
            now = time.monotonic()
            for k, i in enumerate(which):
                info = infos[i] = e.step_info(i, i, None if masks is None else masks[i])
                info["terminal_observation"] = {key: value[k] for key, value in final.items()}
                info["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
                info["episode"] = {"r": info["episode_return"], "l": info["episode_length"], "t": now - self._started[i]}
                self._started[i] = now
            for i, info in zip(which, e.reset(which, [None] * len(which))):
                self.reset_infos[i] = info
        return e.observations.get(e.rows), reward.astype(np.float32), dones, infos

    def close(self):
        self.episodes.close()

    # ---- what SB3 asks of its environments -----------------------------------------------------

    def _own(self, indices, value):
        return [value for _ in self._get_indices(indices)]

    def get_attr(self, attr_name, indices=None):
        if attr_name == "action_masks":
            return [lambda i=i: self.episodes.action_masks([i])[0] for i in self._get_indices(indices)]
        if not hasattr(self, attr_name):
            raise AttributeError(f"TextGenVecEnv has no attribute {attr_name!r}")
        value = getattr(self, attr_name)
        count = len(list(self._get_indices(indices))) if hasattr(self, "num_envs") else self.episodes.n
        return [value] * count

    def set_attr(self, attr_name, value, indices=None):
        if indices is not None and len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError("the environments of a TextGenVecEnv share their attributes")
        setattr(self, attr_name, value)

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        if method_name == "action_masks":
            return list(self.episodes.action_masks(list(self._get_indices(indices))))
        method = getattr(self, method_name)
        return [method(*method_args, **method_kwargs) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class, indices=None):
        return self._own(indices, False)

    def action_masks(self):
        """bool (n_envs, vocabulary)."""
        return self.episodes.action_masks(self.episodes.all)

    def get_images(self):
        return [None] * self.num_envs
