"""n episodes on one connection: resets, steps, the log from which they are rebuilt. All environments here are thin coats over it.

The log (sample, tokens, rewards, digests) is kept in arrays of n rows. When the server is lost, every running episode is restored from it on
whatever answers at the address, and its digest compared: an episode goes on with the same results, or it ends as EpisodeAborted.
"""
import hashlib
import os
import time

import numpy as np

from . import errors, recovery, wire
from .connection import Connection
from .errors import TextGenProtocolError, TextGenTimeout, TextGenUnavailable
from .keys import Keys
from .wire import pb

SPLITS = {"train": 1, "val": 2, "test": 3}
STOPS = {0: None, 1: "eos", 2: "length", 3: "stop_sequence", 4: "aborted"}
REWARD_OK, PENDING = 1, 2
_REWARD_CODES = (errors.REWARD_FAILED, errors.REWARD_TIMEOUT, errors.REWARD_INVALID)
_AGAIN = errors.RETRYABLE | {errors.DEADLINE_EXCEEDED}
_CHUNK = recovery.CHUNK


def wire_seed(seed):
    """Any non-negative int as 64 bits: small ones unchanged, larger ones hashed."""
    seed = int(seed)
    if seed < 0:
        raise ValueError(f"seed {seed}: expected a non-negative int")
    if seed < 1 << 64:
        return seed
    return int.from_bytes(hashlib.sha256(seed.to_bytes((seed.bit_length() + 7) // 8, "little")).digest()[:8], "little")


def split_number(split):
    try:
        return SPLITS[split]
    except (KeyError, TypeError):
        raise ValueError(f"split {split!r}: expected train, val or test") from None


class StepResults:
    """Of k slots, in the order asked for. reward is NaN where valid is False."""

    __slots__ = ("reward", "valid", "terminated", "truncated", "stop", "code", "text", "message", "components", "pending")

    def __init__(self, k):
        self.reward = np.full(k, np.nan)
        self.valid = np.zeros(k, bool)
        self.pending = np.zeros(k, bool)  # it compares: to be had when all samples of the prompt are there
        self.terminated = np.zeros(k, bool)
        self.truncated = np.zeros(k, bool)
        self.stop = [0] * k
        self.code = [0] * k
        self.text = [""] * k
        self.message = [""] * k
        self.components = [None] * k


class Slots:
    def __init__(self, address, n, *, split="train", connect_timeout=10.0, reset_timeout=30.0, step_timeout=30.0, heartbeat_ms=1000, keys=None):
        self.n = n
        self.split = split_number(split)
        self.reset_timeout, self.step_timeout = reset_timeout, step_timeout
        self.opened = False  # slots are opened with the first reset
        self.connection = Connection(address, connect_timeout=connect_timeout, heartbeat_ms=heartbeat_ms, keys=keys, owner=self)
        self.connection.ensure()
        self.spec = s = self.connection.spec
        if n > s.capacity:
            raise ValueError(f"{n} environments; the server has room for {s.capacity}")
        self.live = np.zeros(n, bool)  # has an episode that must survive
        self.lost = {}  # slot -> why it could not be rebuilt
        self.length = np.zeros(n, np.int64)
        self.tokens = np.zeros((n, s.max_episode_length), np.uint32)
        self.rewards = np.zeros((n, s.max_episode_length))
        self.seed = [0] * n
        self.episode = [-1] * n
        self.splits = [self.split] * n
        self.sample = [0] * n
        self.reset_digest = [0] * n
        self.digest = [0] * n
        self.prompt = [np.empty(0, np.uint32)] * n
        self.prompt_text = [""] * n
        self.sample_id = [""] * n

    def __getstate__(self):
        state = dict(self.__dict__)
        state["connection"] = None
        state["_options"] = self.connection.__reduce__()[1]
        return state

    def __setstate__(self, state):
        address, connect_timeout, heartbeat_ms, keys = state.pop("_options")
        self.__dict__.update(state)
        self.connection = Connection(address, connect_timeout=connect_timeout, heartbeat_ms=heartbeat_ms, keys=keys, owner=self)
        self.connection.spec = self.spec

    def close(self):
        self.connection.close()

    # ---- after a loss --------------------------------------------------------------------------

    def rebuild(self, connection, deadline):
        """Called by the connection when a new session has begun: opens the slots, brings the episodes back. Returns how many."""
        if not self.opened:
            return 0
        opened = self._exchange(connection, pb.OpenSlots(n=self.n, slots=range(self.n)), deadline)
        if len(opened.slots) < self.n:
            raise TextGenUnavailable(f"{connection.address}: room for {len(opened.slots)} of {self.n} environments", errors.OVERLOADED)
        live = [self._log(int(i)) for i in np.flatnonzero(self.live)]
        try:
            failed = self._recover(connection, live, True, deadline)
        except TextGenProtocolError:  # a server of before Restore
            failed = self._recover(connection, live, False, deadline)
        for i, why in failed.items():
            self._abandon(i, why)
        return len(live)

    def _recover(self, connection, live, can_restore, deadline):
        plan = recovery.recover(live, can_restore, self.spec.deterministic, lambda: self._left(deadline))
        answer = None
        try:
            while True:
                answer = self._collect(connection, plan.send(answer), deadline)
        except StopIteration as end:
            return end.value

    def _log(self, i):
        t = int(self.length[i])
        return recovery.Log(i, self.episode[i], self.seed[i], self.splits[i], self.sample[i], wire.tokens_to_bytes(self.tokens[i, :t]),
                            np.ascontiguousarray(self.rewards[i, :t], "<f8").tobytes(), self.reset_digest[i], self.digest[i])

    @staticmethod
    def _exchange(connection, message, deadline):
        while True:
            reply = connection.exchange(message, deadline)
            if type(reply) is not pb.Error:
                return reply
            if reply.code not in errors.RETRYABLE or time.monotonic() > deadline:
                raise errors.from_code(reply.code, f"{connection.address}: {reply.message}")
            connection.sleep(max(reply.retry_after_ms, 50) / 1000)

    def _collect(self, connection, request, deadline):
        """Results by slot; a batch may be answered in several replies."""
        found = {}
        reply = self._exchange(connection, request, deadline)
        while True:
            found.update((r.slot, r) for r in reply.items)
            if all(item.slot in found for item in request.items):
                return found
            reply = connection.rest(deadline)
            if type(reply) is pb.Error:
                raise errors.from_code(reply.code, f"{connection.address}: {reply.message}")

    def _abandon(self, i, why):
        self.live[i] = False
        self.lost[i] = why

    @staticmethod
    def _left(deadline):
        return max(1, int((deadline - time.monotonic()) * 950))

    # ---- reset ---------------------------------------------------------------------------------

    def reset(self, which, seeds, split=None, samples=None):
        """New episodes for the slots of `which`. seeds[k] None: the slot's next episode; else its first one with that seed (one that was never seeded
        gets entropy). samples[k]: that sample of the split instead of a drawn one."""
        which = [int(i) for i in which]
        again = []
        for k, i in enumerate(which):
            last = self.episode[i]
            if seeds[k] is not None:
                self.seed[i], self.episode[i] = wire_seed(seeds[k]), 0
            elif last < 0:
                self.seed[i], self.episode[i] = int.from_bytes(os.urandom(8), "little"), 0
            else:
                self.episode[i] = last + 1
            if self.episode[i] == last:
                again.append(i)  # same number, new episode: the slot must forget the old one
            self.splits[i] = self.split if split is None else split
            self.live[i] = False
            self.lost.pop(i, None)
        if not self.opened:
            self.opened = True
            self.connection._fresh = True  # opens the slots
            again = []
        before = (pb.CloseSlots(slots=again), pb.OpenSlots(n=len(again), slots=again)) if again else ()
        deadline = time.monotonic() + self.reset_timeout
        pending = dict(enumerate(which))
        for at in range(0, len(which), _CHUNK):
            part = {k: i for k, i in pending.items() if at <= k < at + _CHUNK}
            self._reset_some(part, samples, before, deadline)
            before = ()
        return self

    def _reset_some(self, pending, samples, before, deadline):
        while True:
            batch = pb.ResetBatch(want_text=True)
            for k, i in pending.items():
                item = batch.items.add(slot=i, episode=self.episode[i], seed=self.seed[i], split=self.splits[i])
                if samples is not None and samples[k] is not None:
                    item.has_sample, item.sample = True, int(samples[k])
            slots = {i: k for k, i in pending.items()}
            found = self._call(batch, slots, deadline, before)
            before = ()
            for i, r in found.items():
                if r.code == errors.OK:
                    self._begin(i, r)
                    pending.pop(slots[i])
                elif r.code not in _AGAIN:
                    raise errors.from_code(r.code, f"{self.connection.address}: reset: {r.message}")
            if not pending:
                return
            self._pause(deadline, "reset", r.message)

    def _begin(self, i, r):
        self.sample[i] = r.sample
        self.sample_id[i] = r.sample_id
        self.prompt_text[i] = r.prompt_text
        self.prompt[i] = wire.tokens_of(r.prompt)
        self.digest[i] = self.reset_digest[i] = r.state_digest
        self.length[i] = 0
        self.live[i] = True

    # ---- step ----------------------------------------------------------------------------------

    def step(self, which, actions, want_text=False):
        """One token for each slot of `which` (a list of ints; actions: as many ids). StepResults; the log is up to date after it. A step whose
        reward could not be had is made all the same: valid is False there. An episode that was lost for good ends truncated, with the code
        EPISODE_ABORTED."""
        k = len(which)
        ids = np.asarray(actions)
        if ids.shape != (k,):
            raise ValueError(f"expected {k} actions, found shape {ids.shape}")
        if k and (ids.min() < 0 or ids.max() >= self.spec.vocab_size):
            bad = int(ids[(ids < 0) | (ids >= self.spec.vocab_size)][0])
            raise errors.InvalidRequest(f"action {bad} is not in the vocabulary of {self.spec.vocab_size} tokens", errors.INVALID_ARGUMENT)
        ids = ids.astype("<u4")
        out = StepResults(k)
        deadline = time.monotonic() + self.step_timeout
        if k <= _CHUNK:
            self._step_some(which, ids, 0, out, want_text, deadline)
        else:
            for at in range(0, k, _CHUNK):
                self._step_some(which[at:at + _CHUNK], ids[at:at + _CHUNK], at, out, want_text, deadline)
        rows = np.asarray(which)
        if self.lost:
            kept = self.live[rows]
            rows, ids = rows[kept], ids[kept]
            reward = out.reward[kept]
        else:
            reward = out.reward
        at = self.length[rows]
        if at.size and at.max() >= self.tokens.shape[1]:  # compat: past the end
            self.tokens = np.concatenate([self.tokens, np.zeros_like(self.tokens)], 1)
            self.rewards = np.concatenate([self.rewards, np.zeros_like(self.rewards)], 1)
        self.tokens[rows, at] = ids
        self.rewards[rows, at] = reward
        self.length[rows] += 1
        return out

    def _step_some(self, which, ids, first, out, want_text, deadline):
        data = ids.tobytes()
        slots = {i: k for k, i in enumerate(which)}
        waiting = slots
        if self.lost:
            waiting = {i: k for i, k in slots.items() if i not in self.lost}
        lengths, episode = self.length, self.episode
        while waiting:
            batch = pb.StepBatch(deadline_ms=self._left(deadline), want_text=want_text)
            add = batch.items.add
            for i, k in waiting.items():
                add(slot=i, episode=episode[i], step=int(lengths[i]), tokens=data[4 * k:4 * k + 4])
            found = self._call(batch, waiting, deadline)
            again = {}
            for i, r in found.items():
                code = r.code
                if i in self.lost:
                    continue
                if code == 0 or code in _REWARD_CODES:
                    self._note(i, r, first + slots[i], out)
                elif code in _AGAIN:
                    again[i] = slots[i]
                    why = r.message
                elif code == errors.EPISODE_ABORTED:
                    self._abandon(i, r.message)
                else:
                    raise errors.from_code(code, f"{self.connection.address}: step: {r.message}")
            if again:
                self._pause(deadline, "step", why)
            waiting = again
        for i in self.lost:
            if i in slots:
                self._aborted(first + slots[i], self.lost[i], out)

    @staticmethod
    def _aborted(k, why, out):
        out.truncated[k] = True
        out.stop[k] = 4
        out.code[k] = errors.EPISODE_ABORTED
        out.message[k] = f"the episode was lost with its server and cannot go on: {why}; reset it"
        out.components[k] = {}

    def _note(self, i, r, k, out):
        status = r.reward_status
        if status == REWARD_OK:
            out.valid[k] = True
            out.reward[k] = np.frombuffer(r.rewards, "<f8")[-1]
        self.digest[i] = r.state_digest
        if r.stop:
            out.stop[k] = r.stop
            out.terminated[k] = r.terminated
            out.truncated[k] = r.truncated
            out.components[k] = {c.name: c.value for c in r.components}
            out.text[k] = r.text
        elif r.text:
            out.text[k] = r.text
        if status != REWARD_OK or r.code:
            out.code[k] = r.code or errors.REWARD_FAILED
            out.message[k] = r.message
            out.pending[k] = status == PENDING

    def _call(self, batch, slots, deadline, before=()):
        """{slot: result}, of every slot asked for."""
        found = {}

        def collect(reply):
            for r in reply.items:
                if r.slot in slots:
                    found[r.slot] = r
            return len(found) == len(slots)

        self.connection.call(batch, max(deadline - time.monotonic(), 0.001), before, collect)
        if len(found) != len(slots):
            raise TextGenProtocolError("an answer without the slots that were asked for")
        return found

    def _pause(self, deadline, what, why):
        if time.monotonic() + 0.05 > deadline:
            raise TextGenTimeout(f"{self.connection.address}: {what}: {why}", errors.DEADLINE_EXCEEDED)
        self.connection.stats["retries"] += 1
        self.connection.sleep(0.05)


def make_keys(server_key=None, public_key=None, secret_key=None, key_file=None):
    """Keys, or None where no option was given."""
    if server_key or public_key or secret_key or key_file:
        return Keys(server_key, public_key, secret_key, key_file)
    return None
