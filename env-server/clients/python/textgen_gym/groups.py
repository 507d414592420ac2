"""Groups of samples of one prompt: environments that follow one another begin with the same prompt and end together.

A reward that compares samples (`ranked`) can only be had when all of a group are there. So a member that has ended waits: its actions are
ignored (info["waiting"] is True, the reward 0.0, the observation stays) until the last one has ended; then all of the group end in the same step, each with
its place. Rewards that compare nothing are given at each member's own last token.
"""
import os
import time

import numpy as np

from . import errors
from .episodes import Episodes
from .errors import TextGenError
from .slots import REWARD_OK, StepResults
from .wire import pb

_CODES = {3: errors.REWARD_FAILED, 4: errors.REWARD_TIMEOUT, 5: errors.REWARD_INVALID}  # of RewardStatus


def make(address, n, group_size=None, min_valid=2, **options):
    """Episodes, in groups where group_size says so."""
    if group_size is None:
        return Episodes(address, n, **options)
    return GroupedEpisodes(address, n, group_size, min_valid, **options)


class GroupedEpisodes(Episodes):
    """group_size: environments that form a group; n is a multiple of it. min_valid: a group with fewer members that can be ranked has no rewards."""

    grouped = True

    def __init__(self, address, n, group_size, min_valid=2, **options):
        if group_size < 2 or n % group_size:
            raise ValueError(f"group_size {group_size}: expected 2 or more, and a divisor of the {n} environments")
        if not 1 <= min_valid <= group_size:
            raise ValueError(f"min_valid {min_valid}: expected 1 to group_size ({group_size})")
        super().__init__(address, n, **options)
        self.size, self.min_valid = group_size, min_valid
        self.waiting = np.zeros(n, bool)  # ended, its group has not
        self.held = StepResults(n)  # how the waiting ones ended
        self.ignored = np.zeros(n, bool)  # by k: the last step's action was

    # ---- reset ---------------------------------------------------------------------------------

    def reset(self, which, seeds, options=None):
        """The first member's seed is the group's, so that all draw the same prompt."""
        which = [int(i) for i in which]
        firsts = {}
        for k, i in enumerate(which):
            firsts.setdefault(i // self.size, []).append(k)
        for group, members in firsts.items():
            if len(members) != self.size:
                raise ValueError(f"environments {group * self.size} to {(group + 1) * self.size - 1} are one group: reset all of it")
        if options and np.ndim(options.get("sample")) == 1:
            for members in firsts.values():
                if len({options["sample"][k] for k in members}) > 1:
                    raise ValueError("options['sample']: the members of a group have the same")
        seeds = list(seeds)
        for members in firsts.values():
            seed = seeds[members[0]]
            if seed is None and self.slots.episode[which[members[0]]] < 0:
                seed = int.from_bytes(os.urandom(8), "little")
            for k in members:
                seeds[k] = seed
        self.waiting[which] = False
        return super().reset(which, seeds, options)

    # ---- step ----------------------------------------------------------------------------------

    def step(self, which, actions):
        rows, actions = np.asarray(which), np.asarray(actions)
        self._check_running(which, rows)
        self.ignored = self.waiting[rows]
        places = np.flatnonzero(~self.ignored).tolist()  # of those that are stepped
        out = StepResults(len(which))
        out.valid[:], out.reward[:] = True, 0.0
        if places:
            some = [which[k] for k in places]
            found = self.slots.step(some, actions[places], self.step_text)
            self.observations.push(rows[places], actions[places])
            for k, i, x in zip(places, some, range(len(some))):
                self._take(k, i, x, found, out)
        for k in np.flatnonzero(self.ignored).tolist():
            out.text[k] = self.held.text[which[k]]
        self._end_groups(which, out)
        return self._finish(which, rows, out)

    def _take(self, k, i, x, found, out):
        """The x-th result, of environment i, which is the k-th of this step."""
        out.text[k] = found.text[x]
        ended = found.terminated[x] or found.truncated[x] or not found.valid[x]
        if found.valid[x]:
            out.reward[k] = found.reward[x]
        if not ended:
            return
        self.waiting[i] = True
        for name in StepResults.__slots__:
            getattr(self.held, name)[i] = getattr(found, name)[x]
        self.held.components[i] = found.components[x] or {}

    def _end_groups(self, which, out):
        place = {i: k for k, i in enumerate(which)}
        for group in sorted({i // self.size for i in which}):
            members = range(group * self.size, (group + 1) * self.size)
            if not self.waiting[members].all():
                continue
            self._rank([i for i in members if self.held.pending[i]])
            for i in members:
                self._release(i, place[i], out)

    def _release(self, i, k, out):
        held, given = self.held, out.reward[k]
        for name in StepResults.__slots__:
            getattr(out, name)[k] = getattr(held, name)[i]
        if not held.pending[i]:  # it has its reward, now or since its own last step
            out.reward[k] = given if held.valid[i] else np.nan
        if not (out.terminated[k] or out.truncated[k]):
            out.truncated[k] = True
        self.waiting[i] = False

    # ---- ranking -------------------------------------------------------------------------------

    def _rank(self, members):
        """Fills held.reward and held.valid of those whose reward is pending."""
        if not members:
            return
        if len(members) < self.min_valid:
            self._fail(members, errors.REWARD_FAILED, f"{len(members)} of its group can be ranked, {self.min_valid} are needed")
            return
        try:
            results = self._ask(members)
        except TextGenError as e:
            late = isinstance(e, TimeoutError)
            self._fail(members, errors.REWARD_TIMEOUT if late else errors.REWARD_FAILED, f"the group could not be ranked: {e}")
            return
        valid = [i for i, r in zip(members, results) if r.status == REWARD_OK]
        for i, r in zip(members, results):
            self.held.components[i] = {c.name: c.value for c in r.components}
            if r.status == REWARD_OK and len(valid) >= self.min_valid:
                self.held.reward[i], self.held.valid[i], self.held.code[i] = r.value, True, errors.OK
            else:
                self._fail([i], _CODES.get(r.status, errors.REWARD_FAILED), r.message or "too few of its group could be ranked")

    def _ask(self, members):
        s, first = self.slots, members[0]
        deadline = time.monotonic() + s.step_timeout
        found = s.connection.call(pb.SampleRange(split=s.splits[first], first=s.sample[first], n=1), s.step_timeout).items
        if len(found) != 1:
            raise errors.TextGenProtocolError(f"{s.connection.address}: no sample {s.sample[first]}")
        left = max(deadline - time.monotonic(), 0.001)
        request = pb.ScoreRequest(ranked=True, deadline_ms=max(1, int(left * 950)))
        for k, i in enumerate(members):
            request.items.add(id=k, prompt=found[0].prompt_text, completion=self.held.text[i], references=found[0].references,
                              meta_json=found[0].meta_json)
        results = sorted(s.connection.call(request, left).items, key=lambda r: r.id)
        if [r.id for r in results] != list(range(len(members))):
            raise errors.TextGenProtocolError(f"{s.connection.address}: {len(results)} of {len(members)} samples were ranked")
        return results

    def _fail(self, members, code, why):
        for i in members:
            self.held.valid[i], self.held.code[i], self.held.message[i] = False, code, why

    def step_info(self, k, i, mask=None):
        info = super().step_info(k, i, mask)
        info["waiting"] = bool(self.ignored[k])
        return info
