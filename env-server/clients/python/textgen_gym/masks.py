"""Which tokens may be chosen now: for sb3-contrib's MaskablePPO and anyone who samples from logits."""
import numpy as np


class ActionMasks:
    """min_new_tokens: EOS is forbidden before so many tokens. allowed_tokens: nothing else may be chosen. bad_words_ids: ids, or lists of ids whose last one is
    forbidden where the others stand before it. Ids that only the model's padded vocabulary has are forbidden wherever masks are on."""

    def __init__(self, spec, min_new_tokens=0, allowed_tokens=None, bad_words_ids=()):
        v = spec.vocab_size
        self.eos = spec.eos_id if spec.has_eos else None
        self.min_new_tokens = int(min_new_tokens)
        if self.min_new_tokens > spec.max_episode_length:
            raise ValueError(f"min_new_tokens {min_new_tokens}: an episode has at most {spec.max_episode_length}")
        self.base = np.ones(v, bool)
        if allowed_tokens is not None:
            self.base[:] = False
            self.base[self._ids(allowed_tokens, v, "allowed_tokens")] = True
        known = spec.n_tokens or v
        self.base[known:] = False
        self.phrases = []
        for word in bad_words_ids:
            ids = self._ids(np.atleast_1d(word), v, "bad_words_ids")
            if len(ids) == 1:
                self.base[ids[0]] = False
            elif len(ids):
                self.phrases.append((ids[:-1], int(ids[-1])))
        short = self.base.copy()
        if self.eos is not None:
            short[self.eos] = False
        if not self.base.any() or (self.min_new_tokens and not short.any()):
            raise ValueError("these settings forbid every token")

    @staticmethod
    def _ids(ids, v, what):
        ids = np.asarray(list(ids), np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= v):
            raise ValueError(f"{what}: ids are 0 to {v - 1}")
        return ids

    def get(self, tokens, lengths):
        """bool (n, vocabulary) for rows of tokens so far."""
        n = len(lengths)
        mask = np.repeat(self.base[None], n, 0)
        if self.min_new_tokens and self.eos is not None:
            mask[np.asarray(lengths) < self.min_new_tokens, self.eos] = False
        for prefix, last in self.phrases:
            for i in range(n):
                t = int(lengths[i])
                if t >= len(prefix) and np.array_equal(tokens[i, t - len(prefix):t], prefix):
                    mask[i, last] = False
        empty = ~mask.any(1)
        mask[empty] = self.base  # every token is the end of a forbidden phrase: better one of them than none
        return mask
