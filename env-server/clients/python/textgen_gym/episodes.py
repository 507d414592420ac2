"""What the environments share: slots, observations, masks, infos and the policies on failures, for n episodes at a time."""
import numpy as np

from . import errors, observe
from .errors import EpisodeAborted, RewardUnavailable
from .masks import ActionMasks
from .slots import STOPS, Slots, make_keys, split_number


_COMPARES = ("the reward compares samples of one prompt, a single one has none: use TextGenVectorEnv or sb3.TextGenVecEnv with group_size=K")


class Episodes:
    """Options of all environments:

    address               ipc://PATH or tcp://HOST:PORT of a textgen-env or textgen-broker
    observation           "token" (input_ids, attention_mask, step) or "rl4lms" (its six arrays)
    split                 "train", "val" or "test": where prompts come from
    padding_side          "left" or "right"; default: the server's config
    on_reward_failure     "raise" (RewardUnavailable, EpisodeAborted) or "truncate": the episode ends with reward 0.0 and reward_valid False
    length_is_end         a reply cut at max_episode_length is terminated, not truncated: its reward was given, there is nothing to bootstrap from
    step_text             info["text"] at every step, not only at the end
    min_new_tokens, allowed_tokens, bad_words_ids   what action_masks() allows
    mask_in_info          info["action_mask"] at every step
    connect_timeout, reset_timeout, step_timeout    seconds: 10, 30, 30
    server_key, public_key, secret_key, key_file    CURVE keys
    group_size, min_valid only of vectors: see textgen_gym.groups
    """

    grouped = False

    def __init__(self, address, n, *, observation="token", split="train", padding_side=None, on_reward_failure="raise", length_is_end=False,
                 step_text=None, min_new_tokens=0, allowed_tokens=None, bad_words_ids=(), mask_in_info=False, connect_timeout=10.0, reset_timeout=30.0, step_timeout=30.0,
                 heartbeat_ms=1000, server_key=None, public_key=None, secret_key=None, key_file=None):
        if on_reward_failure not in ("raise", "truncate"):
            raise ValueError(f"on_reward_failure {on_reward_failure!r}: expected raise or truncate")
        self.slots = Slots(address, n, split=split, connect_timeout=connect_timeout, reset_timeout=reset_timeout, step_timeout=step_timeout,
                           heartbeat_ms=heartbeat_ms, keys=make_keys(server_key, public_key, secret_key, key_file))
        self.n = n
        self.spec = self.slots.spec
        self.truncate = on_reward_failure == "truncate"
        self.length_is_end = length_is_end
        self.observations = observe.make(observation, self.spec, n, padding_side)
        self.rl4lms = observation == "rl4lms"
        self.step_text = self.rl4lms if step_text is None else bool(step_text)
        self.masks = ActionMasks(self.spec, min_new_tokens, allowed_tokens, bad_words_ids)
        self.mask_in_info = mask_in_info
        self.returns = np.zeros(n)
        self.over = np.ones(n, bool)  # no episode, or one that has ended
        self.texts = [""] * n
        # RL4LMs's environment gives None or -inf as the reward of a step where it is computed later, or not at all.
        self.without_number = self.rl4lms and self.spec.compat and (self.spec.batched_reward or not self.spec.has_reward)
        self.all = list(range(n))
        self.rows = np.arange(n)

    def close(self):
        self.slots.close()

    # ---- reset ---------------------------------------------------------------------------------

    def reset(self, which, seeds, options=None):
        """New episodes; infos by slot."""
        split = sample = None
        if options:
            known = {"split", "sample"}
            unknown = set(options) - known
            if unknown:
                raise ValueError(f"reset option {sorted(unknown)[0]!r}: expected one of {sorted(known)}")
            split, sample = options.get("split"), options.get("sample")
            split = None if split is None else split_number(split)
        samples = None
        if sample is not None:
            samples = [sample] * len(which) if np.ndim(sample) == 0 else list(sample)
            if len(samples) != len(which):
                raise ValueError(f"options['sample']: {len(samples)} entries for {len(which)} environments")
        s = self.slots
        s.reset(which, seeds, split, samples)
        for i in which:
            self.observations.begin(i, s.prompt[i])
            self.texts[i] = ""
        rows = np.asarray(which)
        self.returns[rows] = 0.0
        self.over[rows] = False
        masks = self.action_masks(which) if self.mask_in_info else None
        return [self._reset_info(i, masks, k) for k, i in enumerate(which)]

    def _reset_info(self, i, masks, k):
        s = self.slots
        info = {"sample": int(s.sample[i]), "sample_id": s.sample_id[i], "prompt_text": s.prompt_text[i]}
        if masks is not None:
            info["action_mask"] = masks[k].astype(np.int8)
        return info

    # ---- step ----------------------------------------------------------------------------------

    def step(self, which, actions):
        """(rewards, terminated, truncated, failures): arrays in the order of `which`; failures is None or an exception to raise when all is noted.
        After it `ended(k, i)` gives the info of an ending episode."""
        rows = self.rows if which is self.all else np.asarray(which)
        self._check_running(which, rows)
        out = self.slots.step(which, actions, self.step_text)
        self.observations.push(rows, np.asarray(actions))
        return self._finish(which, rows, out)

    def _check_running(self, which, rows):
        if self.over[rows].any() and not self.spec.compat:
            i = next(i for i in which if self.over[i])
            why = "step before reset" if self.slots.episode[i] < 0 else "the episode has ended: reset it"
            raise errors.WrongState(f"environment {i}: {why}", errors.FAILED_STATE)
        if self.slots.episode[which[0]] < 0:
            raise errors.WrongState("step before reset", errors.FAILED_STATE)

    def _finish(self, which, rows, out):
        """What step() returns, from the results."""
        reward, terminated, truncated = out.reward, out.terminated, out.truncated
        failure = None
        if self.length_is_end and truncated.any():
            cut = truncated & out.valid
            terminated |= cut
            truncated &= ~cut
        if not out.valid.all():
            failure = self._failed(which, out)
        self.returns[rows] += reward
        self.over[rows] = terminated | truncated
        if self.step_text:
            self.before = [self.texts[i] for i in which]
            for k, i in enumerate(which):
                self.texts[i] = out.text[k]
        self.out = out
        return reward, terminated, truncated, failure

    def _failed(self, which, out):
        """Steps without a reward: what is raised, or None when they were turned into truncated episodes."""
        bad = np.flatnonzero(~out.valid)
        aborted = [int(k) for k in bad if out.code[k] == errors.EPISODE_ABORTED]
        first = aborted[0] if aborted else int(bad[0])
        out.reward[bad] = 0.0
        if self.truncate:
            for k in bad:
                out.truncated[k] = not out.terminated[k]
                out.components[k] = out.components[k] or {}
            return None
        slots = [which[k] for k in (aborted or bad)]
        cls = EpisodeAborted if aborted else RewardUnavailable
        why = _COMPARES if out.pending[first] and not self.grouped else out.message[first] or "it has no reward"
        return cls(f"{self.slots.connection.address}: {why}", out.code[first], slots)

    def step_info(self, k, i, mask=None):
        """The info of slot i, k-th of the last step."""
        out = self.out
        info = {}
        if mask is not None:
            info["action_mask"] = mask.astype(np.int8)
        if self.step_text:
            info["text"] = out.text[k]
            if self.rl4lms:
                info.update(output=out.text[k], prev_output=self.before[k], prompt_text=self.slots.prompt_text[i])
        if out.components[k] is not None:
            info.update(text=out.text[k], stop_reason=STOPS[out.stop[k]] or "reward", reward_valid=bool(out.valid[k]),
                        reward_components=out.components[k], episode_return=float(self.returns[i]), episode_length=int(self.slots.length[i]))
        return info

    def action_masks(self, which):
        s = self.slots
        rows = np.asarray(which)
        return self.masks.get(s.tokens[rows], s.length[rows])
