"""TextGenEnv: one episode at a time, as a gymnasium.Env."""
import gymnasium
from gymnasium import spaces

from .episodes import Episodes


class TextGenEnv(gymnasium.Env):
    """gymnasium.make("textgen_gym:TextGen-v0", address="ipc:///run/env.sock"). An action is a token id; options: see textgen_gym.episodes.Episodes.

    reset(seed=s) starts the first episode of stream s; reset() the stream's next one. options: {"split": …, "sample": index}.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(self, address, *, render_mode=None, **options):
        self.render_mode = render_mode
        self.episodes = Episodes(address, 1, **options)
        self.server_spec = self.episodes.spec
        self.observation_space = self.episodes.observations.space
        self.action_space = spaces.Discrete(self.server_spec.vocab_size)

    def _observe(self):
        return {key: value[0] for key, value in self.episodes.observations.get([0]).items()}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is None and self.episodes.slots.episode[0] < 0:
            seed = int(self.np_random.integers(1 << 63))
        infos = self.episodes.reset([0], [seed], options)
        return self._observe(), infos[0]

    def step(self, action):
        e = self.episodes
        reward, terminated, truncated, failure = e.step([0], [int(action)])
        if failure is not None:
            raise failure
        info = e.step_info(0, 0, e.action_masks([0])[0] if e.mask_in_info else None)
        value = float(reward[0])
        if e.without_number:
            value = float("-inf") if e.spec.batched_reward else None
        return self._observe(), value, bool(terminated[0]), bool(truncated[0]), info

    def action_masks(self):
        """bool (vocabulary,): what may be chosen now; sb3-contrib's MaskablePPO asks for it."""
        return self.episodes.action_masks([0])[0]

    @property
    def last_call(self):
        """Counters of the connection: calls, connects, resumes, rebuilds, retries."""
        return dict(self.episodes.slots.connection.stats)

    def render(self):
        if self.render_mode == "ansi":
            s = self.episodes.slots
            return f"{s.prompt_text[0]}|{' '.join(str(t) for t in s.tokens[0, :s.length[0]])}"
        return None

    def close(self):
        if getattr(self, "episodes", None) is not None:
            self.episodes.close()
