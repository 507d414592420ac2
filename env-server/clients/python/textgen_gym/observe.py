"""Observations of n episodes, built in numpy from prompts and tokens.

A row of a *wide* array holds what comes before the first token, right-aligned in a window, and then room for every later token. The
observation after t tokens is the window that starts at t: a step writes one number for each row, and a batch of observations is one gather.
Masks need no writing at all, since every place behind the first window is a token.
"""
import numpy as np
from gymnasium import spaces
from numpy.lib.stride_tricks import sliding_window_view


class _Wide:
    """n windows that move right by one with every token."""

    def __init__(self, n, window, more, dtype, fill, behind):
        self.window, self.dtype, self.fill, self.behind = window, dtype, fill, behind
        self.data = np.full((n, window + more), fill, dtype)
        self.data[:, window:] = behind
        self.rows = np.arange(n)
        self._view()

    def _view(self):
        self.windows = sliding_window_view(self.data, self.window, axis=1)

    def begin(self, i, values):
        """The first window of row i: values, right-aligned."""
        row = self.data[i]
        row[:self.window - len(values)] = self.fill
        row[self.window - len(values):self.window] = values

    def write(self, rows, at, values):
        if self.window + int(at.max(initial=0)) >= self.data.shape[1]:  # past the end, in compat only
            more = np.full((len(self.data), self.window), self.behind, self.dtype)
            self.data = np.concatenate([self.data, more], 1)
            self._view()
        self.data[rows, self.window + at] = values

    def get(self, rows, at):
        if self.window + int(at.max(initial=0)) > self.data.shape[1]:
            more = np.full((len(self.data), self.window), self.behind, self.dtype)
            self.data = np.concatenate([self.data, more], 1)
            self._view()
        return self.windows[rows, at]

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "windows"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._view()


class TokenObservations:
    """input_ids (int64) and attention_mask (int8) of prompt and tokens, padded to max_prompt_length + max_episode_length; step (int64)."""

    def __init__(self, spec, n, padding_side):
        self.prompt_length, self.episode_length = spec.max_prompt_length, spec.max_episode_length
        self.total = self.prompt_length + self.episode_length
        self.left = padding_side == "left"
        self.pad = spec.pad_id
        v = spec.vocab_size
        self.space = spaces.Dict({
            "attention_mask": spaces.Box(0, 1, (self.total,), np.int8),
            "input_ids": spaces.Box(0, max(v - 1, 1), (self.total,), np.int64),
            "step": spaces.Box(0, self.episode_length, (1,), np.int64),
        })
        more = self.episode_length if self.left else 0
        self.ids = _Wide(n, self.total, more, np.int64, self.pad, self.pad)
        self.mask = _Wide(n, self.total, more, np.int8, 0, 1)
        self.used = np.zeros(n, np.int64)  # tokens of the prompt
        self.at = np.zeros(n, np.int64)

    def begin(self, i, prompt):
        self.at[i] = 0
        self.used[i] = len(prompt)
        if self.left:
            self.ids.begin(i, prompt)
            self.mask.begin(i, np.ones(len(prompt), np.int8))
        else:
            self.ids.data[i] = self.pad
            self.ids.data[i, :len(prompt)] = prompt
            self.mask.data[i] = 0
            self.mask.data[i, :len(prompt)] = 1

    def push(self, rows, tokens):
        at = self.at[rows]
        if self.left:
            self.ids.write(rows, at, tokens)
        else:
            place = np.minimum(self.used[rows] + at, self.total - 1)
            self.ids.data[rows, place] = tokens
            self.mask.data[rows, place] = 1
        self.at[rows] += 1

    def get(self, rows):
        """A batch of fresh arrays."""
        at = self.at[rows]
        shift = at if self.left else np.zeros_like(at)
        return {"attention_mask": self.mask.get(rows, shift), "input_ids": self.ids.get(rows, shift),
                "step": np.minimum(at, self.episode_length)[:, None]}


class RL4LMsObservations:
    """RL4LMs's six arrays, with their types: prompt, context (the tokens so far, right-aligned in max_episode_length places) and input (both without their
    padding, left-padded). With `compat` the spaces have RL4LMs's bounds too."""

    KEYS = ("prompt_or_input_encoded_pt", "prompt_or_input_attention_mask_pt", "context_encoded_pt", "context_attention_mask_pt", "input_encoded_pt",
            "input_attention_mask_pt")

    def __init__(self, spec, n, padding_side):
        self.P, self.T = spec.max_prompt_length, spec.max_episode_length
        self.pad = spec.pad_id
        self.left = padding_side == "left"
        self.start = np.frombuffer(spec.context_start, "<u4").astype(np.int64)[-self.T:]
        given = spec.has_context_start
        kind = np.int32 if given else np.int64  # RL4LMs makes the one in numpy, the other in torch
        s = len(self.start)
        # The encoding of the empty text is padded like any other text; a given start token stands last.
        self.start_first = s > 0 and not given and not self.left
        high = spec.n_tokens if spec.compat else max(spec.vocab_size - 1, 1)
        P, T = self.P, self.T
        self.space = spaces.Dict({
            "prompt_or_input_encoded_pt": spaces.Box(0, high, (P,), np.int64),
            "prompt_or_input_attention_mask_pt": spaces.Box(0, 1, (P,), np.int64),
            "context_encoded_pt": spaces.Box(0, high, (T,), kind),
            "context_attention_mask_pt": spaces.Box(0, 1, (T,), kind),
            "input_encoded_pt": spaces.Box(0, high, (P + T,), np.int64),
            "input_attention_mask_pt": spaces.Box(0, 1, (P + T,), np.int32),
        })
        self.prompt = np.full((n, P), self.pad, np.int64)
        self.prompt_mask = np.zeros((n, P), np.int64)
        self.context = _Wide(n, T, T, kind, self.pad, self.pad)
        self.context_mask = _Wide(n, T, T, kind, 0, 1)
        self.input = _Wide(n, P + T, T, np.int64, self.pad, self.pad)
        self.input_mask = _Wide(n, P + T, T, np.int32, 0, 1)
        self.prompts = [np.empty(0, np.int64)] * n
        self.at = np.zeros(n, np.int64)
        # Between these lengths an input is the prompt, the start tokens and the tokens in a row: a window.
        self.window_from = s if self.start_first else 0
        self.window_to = T if self.start_first else T - s

    def begin(self, i, prompt):
        p = len(prompt)
        self.prompts[i] = prompt.astype(np.int64)
        self.at[i] = 0
        self.prompt[i], self.prompt_mask[i] = self.pad, 0
        where = slice(self.P - p, self.P) if self.left else slice(0, p)
        self.prompt[i, where], self.prompt_mask[i, where] = prompt, 1
        start = self.start
        marks = np.ones(len(start), np.int64)
        if self.start_first:
            fill = np.full(self.T - len(start), self.pad)
            self.context.begin(i, np.concatenate([start, fill]))
            self.context_mask.begin(i, np.concatenate([marks, np.zeros_like(fill)]))
            start = start[:0]
        else:
            self.context.begin(i, start)
            self.context_mask.begin(i, marks)
        self.input.begin(i, np.concatenate([self.prompts[i], start]))
        self.input_mask.begin(i, np.ones(p + len(start), np.int32))

    def push(self, rows, tokens):
        at = self.at[rows]
        self.context.write(rows, at, tokens)
        self.input.write(rows, at, tokens)
        self.at[rows] += 1

    def get(self, rows):
        """A batch of fresh arrays."""
        at = self.at[rows]
        obs = {
            "prompt_or_input_encoded_pt": self.prompt[rows],
            "prompt_or_input_attention_mask_pt": self.prompt_mask[rows],
            "context_encoded_pt": self.context.get(rows, at),
            "context_attention_mask_pt": self.context_mask.get(rows, at),
            "input_encoded_pt": self.input.get(rows, at),
            "input_attention_mask_pt": self.input_mask.get(rows, at),
        }
        odd = (at > self.window_to) | (at < self.window_from)
        if odd.any():
            rows = np.asarray(rows)
            for k in np.flatnonzero(odd):
                self._join(int(rows[k]), k, obs)
        return obs

    def _join(self, i, k, obs):
        """The input of row i where it is not a window: start tokens were pushed out, or stand before padding."""
        tokens = obs["context_encoded_pt"][k][obs["context_attention_mask_pt"][k] == 1]
        joined = np.concatenate([self.prompts[i], tokens])
        obs["input_encoded_pt"][k] = self.pad
        obs["input_attention_mask_pt"][k] = 0
        obs["input_encoded_pt"][k, len(obs["input_encoded_pt"][k]) - len(joined):] = joined
        obs["input_attention_mask_pt"][k, len(obs["input_attention_mask_pt"][k]) - len(joined):] = 1


KINDS = {"token": TokenObservations, "rl4lms": RL4LMsObservations}


def make(kind, spec, n, padding_side=None):
    if kind not in KINDS:
        raise ValueError(f"observation {kind!r}: expected token or rl4lms")
    if padding_side not in (None, "left", "right"):
        raise ValueError(f"padding_side {padding_side!r}: expected left or right")
    if padding_side is None:  # RL4LMs sets its tokenizer to left whatever was configured
        padding_side = "right" if spec.pad_right and not spec.compat else "left"
    return KINDS[kind](spec, n, padding_side)
