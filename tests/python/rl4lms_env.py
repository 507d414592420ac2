"""An environment with the shape of RL4LMs's: the same arrays, texts and work at every step, in torch with a tokenizer of transformers.

It is the reference of tests/python/test_shapes.py and the peer of tests/bench/peer_gym.sh. Written from the
behaviour that RL4LMs's recordings and its README state; gymnasium's interface in place of gym's.
"""
import copy

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

KEYS = ("prompt_or_input_encoded_pt", "prompt_or_input_attention_mask_pt", "context_encoded_pt", "context_attention_mask_pt", "input_encoded_pt",
        "input_attention_mask_pt")


def join(prompt, prompt_mask, context, context_mask, pad):
    """Both without their padding, left-padded to the sum of their lengths."""
    tokens = torch.cat((prompt[:, prompt_mask.flatten().bool().tolist()], context[:, context_mask.flatten().bool().tolist()]), dim=1)
    size = prompt.shape[1] + context.shape[1]
    out = torch.full((1, size), pad)
    mask = torch.zeros((1, size)).int()
    out[:, size - tokens.shape[1]:] = tokens
    mask[:, size - tokens.shape[1]:] = 1
    return out, mask


def clean_up(text):
    """What tokenizers did after decoding by default when RL4LMs was written."""
    for a, b in ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")):
        text = text.replace(a, b)
    return text


class ShapedEnv(gymnasium.Env):
    """samples: (prompt, references, meta) tuples; reward(text, done) or None."""

    def __init__(self, tokenizer, samples, reward, max_prompt_length, max_episode_length, terminate_on_eos=False, truncation_side="left",
                 padding_side="left", start_token=None, n_actions=None):
        self.tokenizer, self.samples, self.reward = tokenizer, samples, reward
        self.P, self.T = max_prompt_length, max_episode_length
        self.terminate_on_eos, self.truncation_side, self.start_token = terminate_on_eos, truncation_side, start_token
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        tokenizer.padding_side = padding_side
        high = len(tokenizer)
        sizes = (self.P, self.P, self.T, self.T, self.P + self.T, self.P + self.T)
        self.observation_space = spaces.Dict({k: spaces.Box(0, 1 if "mask" in k else high, (n,), np.int64) for k, n in zip(KEYS, sizes)})
        self.action_space = spaces.Discrete(n_actions or high)

    def _encode(self, text, length):
        out = self.tokenizer(text, padding="max_length", max_length=length, truncation=True, return_tensors="pt", return_attention_mask=True)
        return out["input_ids"].long(), out["attention_mask"].long()

    def _observe(self):
        self.input, self.input_mask = join(self.prompt, self.prompt_mask, self.context, self.context_mask, self.tokenizer.pad_token_id)
        arrays = (self.prompt, self.prompt_mask, self.context, self.context_mask, self.input, self.input_mask)
        return {key: array.numpy().flatten() for key, array in zip(KEYS, arrays)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        k = (options or {}).get("sample")
        if k is None:
            k = int(self.np_random.integers(len(self.samples)))
        self.sample = self.samples[k]
        side = self.tokenizer.truncation_side
        self.tokenizer.truncation_side = self.truncation_side
        self.prompt, self.prompt_mask = self._encode(self.sample[0], self.P)
        self.tokenizer.truncation_side = side
        if self.start_token is None:
            self.context, self.context_mask = self._encode("", self.T)
        else:
            self.context = torch.ones(1, self.T, dtype=torch.int32) * self.tokenizer.pad_token_id
            self.context_mask = torch.zeros(1, self.T, dtype=torch.int32)
            self.context[:, -1], self.context_mask[:, -1] = self.start_token, 1
        self.text, self.history, self.t = "", [], 0
        return self._observe(), {}

    def step(self, action):
        self.t += 1
        before = self.text
        self.history = copy.deepcopy(self.history)
        self.history.append(self.tokenizer.convert_ids_to_tokens(int(action)))
        self.context, self.context_mask = copy.deepcopy(self.context), copy.deepcopy(self.context_mask)
        self.context[:, :-1] = self.context[:, 1:].clone()
        self.context_mask[:, :-1] = self.context_mask[:, 1:].clone()
        self.context[:, -1], self.context_mask[:, -1] = int(action), 1
        self.text = clean_up(self.tokenizer.decode(self.context.flatten(), skip_special_tokens=True, clean_up_tokenization_spaces=False))
        ended = bool(self.terminate_on_eos and action == self.tokenizer.eos_token_id)
        cut = self.t == self.T and not ended
        reward = None if self.reward is None else self.reward(self.text, ended or cut)
        info = {"output": self.text, "action_history": self.history, "reference_text": self.sample[1], "prompt_text": self.sample[0], "prev_output": before,
                "meta_info": self.sample[2]}
        return self._observe(), reward, ended, cut, info


def increasing_numbers(min_tokens):
    """How many of a text's numbers rise strictly, counted from its first one, by its words."""
    def reward(text, done):
        if not done:
            return 0
        words = text.strip().split()
        previous, n = float("-inf"), 0
        for word in words:
            try:
                value = float(word)
            except ValueError:
                continue
            if not value > previous:
                break
            previous, n = value, n + 1
        return n / max(len(words), min_tokens / 2)
    return reward
