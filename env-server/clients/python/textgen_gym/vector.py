"""TextGenVectorEnv: n episodes at a time over one session; a step of all is one message."""
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from . import errors, groups


class TextGenVectorEnv(VectorEnv):
    """autoreset_mode: SAME_STEP (default: no forward pass of a model is wasted), NEXT_STEP or DISABLED (reset with
    options["reset_mask"]). group_size: environments that follow one another are samples of one prompt and end together (textgen_gym.groups).
    Other options: see textgen_gym.episodes.Episodes. Results equal those of gymnasium's SyncVectorEnv over TextGenEnvs
    with the same seeds."""

    def __init__(self, address, num_envs=1, *, autoreset_mode=AutoresetMode.SAME_STEP, render_mode=None, **options):
        super().__init__()
        self.autoreset_mode = AutoresetMode(autoreset_mode) if not isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        self.metadata = {"render_modes": ["ansi"], "render_fps": 4, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.episodes = e = groups.make(address, num_envs, **options)
        self.server_spec = e.spec
        self.single_observation_space = e.observations.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = spaces.Discrete(e.spec.vocab_size)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = np.zeros(num_envs, bool)

    # ---- reset ---------------------------------------------------------------------------------

    def reset(self, *, seed=None, options=None):
        n, e = self.num_envs, self.episodes
        if seed is None:
            seeds = [None] * n
            if (np.asarray(e.slots.episode) < 0).all():  # entropy, or what np_random was set to
                first = int(self.np_random.integers(1 << 62))
                seeds = [first + i for i in range(n)]
        elif isinstance(seed, (int, np.integer)):
            seeds = [int(seed) + i for i in range(n)]
            self._np_random, self._np_random_seed = np.random.Generator(np.random.PCG64(int(seed))), int(seed)
        else:
            seeds = list(seed)
            if len(seeds) != n:
                raise ValueError(f"{len(seeds)} seeds for {n} environments")
        options = dict(options) if options else {}
        mask = options.pop("reset_mask", None)
        which = e.all if mask is None else self._masked(mask)
        found = e.reset(which, [seeds[i] for i in which], options)
        infos = {}
        for k, i in enumerate(which):
            infos = self._add_info(infos, found[k], i)
        self._ended[which] = False
        return e.observations.get(e.rows), infos

    def _masked(self, mask):
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError("options['reset_mask']: expected a numpy array of bool")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"options['reset_mask']: expected shape ({self.num_envs},) and at least one True, found {mask}")
        return np.flatnonzero(mask).tolist()

    # ---- step ----------------------------------------------------------------------------------

    def step(self, actions):
        e, n = self.episodes, self.num_envs
        actions = np.asarray(actions)
        if actions.shape != (n,):
            raise ValueError(f"expected {n} actions, found shape {actions.shape}")
        infos = {}
        waiting = self._ended if self.autoreset_mode == AutoresetMode.NEXT_STEP and self._ended.any() else None
        if waiting is None:
            if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
                raise errors.WrongState(f"environments {np.flatnonzero(self._ended).tolist()} have ended: reset them with options['reset_mask']",
                                        errors.FAILED_STATE)
            rewards, terminated, truncated, failure = e.step(e.all, actions)
            stepped = e.all
        else:
            stepped = np.flatnonzero(~waiting).tolist()
            rewards, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
            failure = None
            if stepped:
                r, t, c, failure = e.step(stepped, actions[stepped])
                rewards[stepped], terminated[stepped], truncated[stepped] = r, t, c
        step_infos = self._step_infos(stepped)
        if waiting is not None:
            which = np.flatnonzero(waiting).tolist()
            for info, i in zip(e.reset(which, [None] * len(which)), which):
                step_infos[i] = info
        ended = terminated | truncated
        if failure is not None:
            self._ended = ended
            raise failure
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            which = np.flatnonzero(ended).tolist()
            final = e.observations.get(np.asarray(which))
            for k, (info, i) in enumerate(zip(e.reset(which, [None] * len(which)), which)):
                obs = {key: value[k] for key, value in final.items()}
                infos = self._add_info(infos, {"final_obs": obs, "final_info": step_infos.get(i, {})}, i)
                step_infos[i] = info
            ended = np.zeros(n, bool)
        for i in sorted(step_infos):
            infos = self._add_info(infos, step_infos[i], i)
        self._ended = ended
        return e.observations.get(e.rows), rewards, terminated, truncated, infos

    def _step_infos(self, stepped):
        """{env: info}, of those that have one."""
        e = self.episodes
        if not stepped:
            return {}
        masks = e.action_masks(stepped) if e.mask_in_info else None
        if e.step_text or masks is not None or e.grouped:
            return {i: e.step_info(k, i, None if masks is None else masks[k]) for k, i in enumerate(stepped)}
        components = e.out.components
        return {i: e.step_info(k, i) for k, i in enumerate(stepped) if components[k] is not None}

    def action_masks(self):
        """bool (num_envs, vocabulary)."""
        return self.episodes.action_masks(self.episodes.all)

    def render(self):
        if self.render_mode != "ansi":
            return None
        s = self.episodes.slots
        return tuple(f"{s.prompt_text[i]}|{' '.join(str(t) for t in s.tokens[i, :s.length[i]])}" for i in range(self.num_envs))

    def close_extras(self, **kwargs):
        self.episodes.close()
