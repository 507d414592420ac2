"""AsyncClient: the server from asyncio, any number of calls at a time.

    async with AsyncClient("ipc:///run/env.sock") as client:
        slots = await client.open(8)
        prompts = await client.reset(slots, seeds=range(8))
        results = await client.step(slots, tokens)          # one token or a run of tokens for each
        values = await client.score(prompts_, texts)

Like the other clients it keeps its session alive, dials again, resumes, and restores its episodes on a restarted server.
"""
import asyncio
import os
import time
import weakref
from dataclasses import dataclass, field

import numpy as np
import zmq
import zmq.asyncio

from . import errors, recovery, wire
from .connection import SOFTWARE, Connection, _DIAL_FIRST, _DIAL_MOST, _BEATS, _REMOTE_SILENCE
from .errors import TextGenProtocolError, TextGenTimeout, TextGenUnavailable
from .slots import REWARD_OK, STOPS, make_keys, split_number, wire_seed
from .wire import pb

_LOST = object()


@dataclass
class Prompt:
    """What a reset gives."""
    slot: int
    episode: int
    sample: int
    sample_id: str
    text: str
    tokens: np.ndarray


@dataclass
class Step:
    """What a step gives. rewards: one for each token that was used, NaN where there is none (then reward_valid is False)."""
    slot: int
    n_applied: int
    rewards: np.ndarray
    reward_valid: bool
    terminated: bool
    truncated: bool
    stop_reason: object
    text: str
    components: dict
    message: str


@dataclass
class _Episode:
    episode: int = -1
    seed: int = 0
    split: int = 1
    sample: int = 0
    reset_digest: int = 0
    digest: int = 0
    live: bool = False
    lost: str = ""
    tokens: list = field(default_factory=list)
    rewards: list = field(default_factory=list)

    def log(self, slot):
        return recovery.Log(slot, self.episode, self.seed, self.split, self.sample, np.asarray(self.tokens, "<u4").tobytes(),
                            np.asarray(self.rewards, "<f8").tobytes(), self.reset_digest, self.digest)


class AsyncClient:
    def __init__(self, address, *, connect_timeout=10.0, reset_timeout=30.0, step_timeout=30.0, heartbeat_ms=1000, server_key=None, public_key=None,
                 secret_key=None, key_file=None):
        self.address = address
        self.connect_timeout, self.reset_timeout, self.step_timeout = connect_timeout, reset_timeout, step_timeout
        self.keys = make_keys(server_key, public_key, secret_key, key_file)
        self.heartbeat_ms = heartbeat_ms
        self.spec = None
        self.stats = {"calls": 0, "connects": 0, "resumes": 0, "rebuilds": 0, "retries": 0}
        self._probe = Connection(address)  # checks the address; never dialled
        self._uuid = os.urandom(16)
        self._socket = None
        self._session = self._resume = 0
        self._token = b""
        self._seq = 0
        self._waiting = {}
        self._up = False
        self._dialling = None  # a lock, made on the loop
        self._credits = None
        self._tasks = []
        self._episodes = {}
        self._closed = False

    async def __aenter__(self):
        await self._ensure(time.monotonic() + self.connect_timeout)
        return self

    async def __aexit__(self, *_):
        await self.close()

    # ---- the session ---------------------------------------------------------------------------

    def _drop(self):
        """The session is over; calls under way are made again on the next one."""
        self._up = False
        me = asyncio.current_task()
        for task in self._tasks:
            if task is not me:
                task.cancel()
        self._tasks = []
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.disable_monitor()
            socket.close(0)
        waiting, self._waiting = self._waiting, {}
        for queue in waiting.values():
            queue.put_nowait(_LOST)

    def _open_socket(self):
        socket = zmq.asyncio.Context.instance().socket(zmq.DEALER)
        socket.linger = 0
        socket.sndhwm = socket.rcvhwm = 0
        socket.set(zmq.IPV6, 1)
        socket.set(zmq.RECONNECT_IVL, 50)
        socket.set(zmq.MAXMSGSIZE, 64 << 20)
        if self.keys:
            self.keys.apply(socket)
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.connect(self.address)
        self._socket = socket
        return monitor

    async def _ensure(self, deadline):
        if self._up:
            return
        if self._dialling is None:
            self._dialling = asyncio.Lock()
        async with self._dialling:
            backoff, why = _DIAL_FIRST, "nothing listens there"
            while not self._up:
                if self._closed:
                    raise errors.WrongState("this client is closed")
                wait = min(backoff, deadline - time.monotonic())
                if wait <= 0:
                    raise TextGenUnavailable(f"{self.address}: no server answers ({why})")
                try:
                    welcome, found = await asyncio.wait_for(self._dial(), wait)
                    if welcome is None:
                        why = found
                        await asyncio.sleep(min(0.1, wait))
                        continue
                    if not welcome.resumed:
                        await self._rebuild(deadline)
                    self._up = True
                except asyncio.TimeoutError:
                    self._drop()
                backoff = min(backoff * 2, _DIAL_MOST)

    async def _dial(self):
        """Hello and Welcome. (None, why) where trying again may help."""
        self._drop()
        monitor = self._open_socket()
        self._seq += 1
        hello = pb.Hello(proto_major=wire.MAJOR, proto_minor=wire.MINOR, software=SOFTWARE, role=pb.Role["ROLE_CLIENT"], peer_uuid=self._uuid,
                         heartbeat_ms=self.heartbeat_ms)
        if self._token and self._resume:
            hello.resume_session, hello.resume_token = self._resume, self._token
        await self._socket.send(wire.encode(wire.HELLO, hello.SerializeToString(), 0, self._seq))
        kind, _, _, _, payload = wire.decode(await self._socket.recv())
        message = wire.parse(kind, payload)
        if kind == wire.ERROR:
            self._drop()
            if message.retryable or message.code in errors.RETRYABLE:
                return None, message.message
            raise errors.from_code(message.code, f"{self.address}: {message.message}")
        if kind != wire.WELCOME:
            raise TextGenProtocolError(f"{self.address}: expected Welcome, found {type(message).__name__}")
        self._welcomed(message, monitor)
        return message, ""

    def _welcomed(self, welcome, monitor):
        spec = wire.plain(welcome.spec)
        if self.spec is not None and (spec.config_digest, spec.tokenizer_digest) != (self.spec.config_digest, self.spec.tokenizer_digest):
            self._drop()
            raise errors.ConfigMismatch(f"{self.address}: the server came back with another config, tokenizer or data", errors.CONFIG_MISMATCH)
        self.spec = spec
        self._session = self._resume = welcome.session
        self._token = bytes(welcome.resume_token)
        self._credits = asyncio.Semaphore(max(welcome.credits or 64, 2) - 1)
        self.stats["resumes" if welcome.resumed else "connects"] += 1
        beat = max(welcome.heartbeat_ms or 1000, 10) / 1000
        local = self.address.startswith(("ipc://", "tcp://127.", "tcp://localhost", "tcp://[::1]"))
        silence = _BEATS * beat if local else max(_BEATS * beat, _REMOTE_SILENCE)
        self._heard = time.monotonic()
        me = weakref.ref(self)
        self._tasks = [asyncio.ensure_future(job) for job in (_read(me, self._socket), _beats(me, self._socket, self._session, beat, silence), _watch(me, monitor))]

    async def _rebuild(self, deadline):
        slots = sorted(self._episodes)
        if not slots:
            return
        opened = await self._exchange(pb.OpenSlots(n=len(slots), slots=slots), deadline)
        if opened is None:
            raise asyncio.TimeoutError
        if type(opened) is pb.Error:
            raise errors.from_code(opened.code, f"{self.address}: {opened.message}")
        if len(opened.slots) < len(slots):
            raise TextGenUnavailable(f"{self.address}: room for {len(opened.slots)} of {len(slots)} slots", errors.OVERLOADED)
        live = [e.log(i) for i, e in self._episodes.items() if e.live]
        try:
            failed = await self._recover(live, True, deadline)
        except TextGenProtocolError:  # a server of before Restore
            failed = await self._recover(live, False, deadline)
        for i, why in failed.items():
            self._episodes[i].live, self._episodes[i].lost = False, why
        self.stats["rebuilds"] += len(live)

    async def _recover(self, live, can_restore, deadline):
        plan = recovery.recover(live, can_restore, self.spec.deterministic, lambda: max(1, int((deadline - time.monotonic()) * 950)))
        answer = None
        try:
            while True:
                request = plan.send(answer)
                answer = {}
                reply = await self._exchange(request, deadline, self._collector(answer, {item.slot for item in request.items}))
                if reply is None:
                    raise asyncio.TimeoutError
                if type(reply) is pb.Error:
                    raise errors.from_code(reply.code, f"{self.address}: {reply.message}")
        except StopIteration as end:
            return end.value

    @staticmethod
    def _collector(found, slots):
        def collect(reply):
            for r in reply.items:
                if r.slot in slots:
                    found[r.slot] = r
            return len(found) == len(slots)
        return collect

    async def _exchange(self, message, deadline, collect=None):
        """One request on the session under way. None: the session was lost."""
        self._seq += 1
        seq, queue = self._seq, asyncio.Queue()
        self._waiting[seq] = queue
        try:
            await self._socket.send(wire.encode(wire.TYPES[type(message)], message.SerializeToString(), self._session, seq))
            while True:
                reply = await asyncio.wait_for(queue.get(), max(deadline - time.monotonic(), 0.001))
                if reply is _LOST:
                    return None
                if type(reply) is pb.Error or collect is None or collect(reply):
                    return reply
        finally:
            self._waiting.pop(seq, None)

    async def call(self, message, timeout=30.0, collect=None):
        """Sends the request and returns its (last) reply, through losses of connection and server, until the deadline."""
        deadline = time.monotonic() + timeout
        self.stats["calls"] += 1
        first = self.spec is None
        while True:
            try:
                await self._ensure(min(deadline, time.monotonic() + self.connect_timeout) if first else deadline)
                async with self._credits:
                    if not self._up:
                        continue
                    reply = await self._exchange(message, deadline, collect)
            except asyncio.TimeoutError:
                raise TextGenTimeout(f"{self.address}: {type(message).__name__}: no answer in time", errors.DEADLINE_EXCEEDED) from None
            except TextGenUnavailable as e:
                if first or time.monotonic() < deadline:
                    raise
                raise TextGenTimeout(str(e), errors.DEADLINE_EXCEEDED) from None
            if reply is None:
                self.stats["retries"] += 1
                continue
            if type(reply) is not pb.Error:
                return reply
            pause = max(reply.retry_after_ms, 50) / 1000
            if reply.code == errors.FENCED:
                self._drop()
            elif reply.code not in errors.RETRYABLE or time.monotonic() + pause > deadline:
                raise errors.from_code(reply.code, f"{self.address}: {reply.message}")
            self.stats["retries"] += 1
            await asyncio.sleep(pause)

    async def close(self):
        """Says good-bye. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._up and self._socket is not None:
            await self._socket.send(wire.encode(wire.BYE, pb.Bye(reason="closed").SerializeToString(), self._session))
            self._socket.linger = 200
            socket, self._socket = self._socket, None
            socket.disable_monitor()
            socket.close()
        self._drop()

    # ---- episodes ------------------------------------------------------------------------------

    async def open(self, n):
        """n new slots."""
        first = max(self._episodes, default=-1) + 1
        slots = list(range(first, first + n))
        self._episodes.update((i, _Episode()) for i in slots)
        try:
            reply = await self.call(pb.OpenSlots(n=n, slots=slots), self.reset_timeout)
        except BaseException:
            for i in slots:
                self._episodes.pop(i)
            raise
        if len(reply.slots) < n:
            raise TextGenUnavailable(f"{self.address}: room for {len(reply.slots)} of {n} slots", errors.OVERLOADED)
        return slots

    async def close_slots(self, slots):
        for i in slots:
            self._episodes.pop(i)
        if self._up:
            self._seq += 1
            await self._socket.send(wire.encode(wire.CLOSE_SLOTS, pb.CloseSlots(slots=slots).SerializeToString(), self._session, self._seq))

    async def reset(self, slots, seeds=None, split="train", samples=None):
        """New episodes: Prompts in the order of slots. seeds[k] None: the slot's next episode."""
        number = split_number(split)
        seeds = [None] * len(slots) if seeds is None else list(seeds)
        batch = pb.ResetBatch(want_text=True)
        again = []
        for k, i in enumerate(slots):
            e = self._episodes[i]
            last, e.live, e.lost = e.episode, False, ""
            if seeds[k] is not None:
                e.seed, e.episode = wire_seed(seeds[k]), 0
            elif last < 0:
                e.seed, e.episode = int.from_bytes(os.urandom(8), "little"), 0
            else:
                e.episode = last + 1
            if e.episode == last:
                again.append(i)
            e.split = number
            item = batch.items.add(slot=i, episode=e.episode, seed=e.seed, split=number)
            if samples is not None and samples[k] is not None:
                item.has_sample, item.sample = True, int(samples[k])
        if again and self._up:  # same number, new episode: the slot must forget the old one
            self._seq += 1
            await self._socket.send(wire.encode(wire.CLOSE_SLOTS, pb.CloseSlots(slots=again).SerializeToString(), self._session, self._seq))
            await self.call(pb.OpenSlots(n=len(again), slots=again), self.reset_timeout)
        found = await self._items(batch, self.reset_timeout, "reset")
        out = []
        for i in slots:
            r, e = found[i], self._episodes[i]
            if r.code != errors.OK:
                raise errors.from_code(r.code, f"{self.address}: reset: {r.message}")
            e.sample, e.digest, e.reset_digest, e.live = r.sample, r.state_digest, r.state_digest, True
            e.tokens, e.rewards = [], []
            out.append(Prompt(i, e.episode, r.sample, r.sample_id, r.prompt_text, wire.tokens_of(r.prompt)))
        return out

    async def step(self, slots, tokens, want_text=False):
        """One token or a run of tokens for each slot: Steps in the order of slots."""
        runs = [np.atleast_1d(np.asarray(t)).astype("<u4") for t in tokens]
        batch = pb.StepBatch(deadline_ms=max(1, int(self.step_timeout * 950)), want_text=want_text)
        for i, run in zip(slots, runs):
            e = self._episodes[i]
            if e.lost:
                raise errors.EpisodeAborted(f"slot {i}: {e.lost}; reset it", slots=(i,))
            batch.items.add(slot=i, episode=e.episode, step=len(e.tokens), tokens=run.tobytes())
        found = await self._items(batch, self.step_timeout, "step")
        out = []
        for i, run in zip(slots, runs):
            r, e = found[i], self._episodes[i]
            if e.lost or r.code == errors.EPISODE_ABORTED:
                raise errors.EpisodeAborted(f"slot {i}: {e.lost or r.message}; reset it", slots=(i,))
            if r.code not in (errors.OK, errors.REWARD_FAILED, errors.REWARD_TIMEOUT, errors.REWARD_INVALID):
                raise errors.from_code(r.code, f"{self.address}: step: {r.message}")
            rewards = wire.rewards_of(r.rewards)
            e.tokens.extend(run[:r.n_applied].tolist())
            e.rewards.extend(rewards.tolist() if len(rewards) == r.n_applied else [float("nan")] * r.n_applied)
            e.digest = r.state_digest
            out.append(Step(i, r.n_applied, rewards, r.reward_status == REWARD_OK, r.terminated, r.truncated, STOPS[r.stop], r.text,
                            {c.name: c.value for c in r.components}, r.message))
        return out

    async def _items(self, batch, timeout, what):
        """{slot: result}; items that only had to wait are asked for again."""
        deadline = time.monotonic() + timeout
        found = {}
        while True:
            some = {}
            waiting = {item.slot for item in batch.items}
            await self.call(batch, max(deadline - time.monotonic(), 0.001), self._collector(some, waiting))
            found.update(some)
            again = {i for i, r in some.items() if r.code in errors.RETRYABLE}
            if not again:
                return found
            if time.monotonic() + 0.05 > deadline:
                raise TextGenTimeout(f"{self.address}: {what}: {found[min(again)].message}", errors.DEADLINE_EXCEEDED)
            kept = [item for item in batch.items if item.slot in again]
            batch = type(batch)(items=kept, want_text=batch.want_text)
            await asyncio.sleep(0.05)

    # ---- questions -----------------------------------------------------------------------------

    async def samples(self, split="train", first=0, n=100):
        """Samples of a split: index, id, prompt_text, references, meta_json, prompt."""
        return list((await self.call(pb.SampleRange(split=split_number(split), first=first, n=n))).items)

    async def score(self, prompts, completions, references=None, meta_json=None, fn="", ranked=False, timeout=30.0):
        """Rewards of finished texts: ScoreResults (status, value, message, components), in order."""
        request = pb.ScoreRequest(fn=fn, deadline_ms=max(1, int(timeout * 950)), ranked=ranked)
        for k, (prompt, text) in enumerate(zip(prompts, completions)):
            request.items.add(id=k, prompt=prompt, completion=text, references=references[k] if references else (), meta_json=meta_json[k] if meta_json else "")
        reply = await self.call(request, timeout)
        return sorted(reply.items, key=lambda r: r.id)

    async def metrics(self, split, samples, texts=None, tokens=None, timeout=600.0):
        """{key: (corpus value or None, per-sample array or None)} of generations for these samples of a split."""
        request = pb.MetricRequest(split=split_number(split), deadline_ms=max(1, int(timeout * 950)))
        for k, sample in enumerate(samples):
            item = request.items.add(sample=int(sample))
            if texts is not None:
                item.text, item.has_text = texts[k], True
            else:
                item.tokens = wire.tokens_to_bytes(tokens[k])
        out = {}
        for v in (await self.call(request, timeout)).values:
            if v.error:
                raise errors.TextGenError(f"{self.address}: metric {v.key}: {v.error}")
            out[v.key] = (v.corpus if v.has_corpus else None, wire.rewards_of(v.samples) if v.samples else None)
        return out


# ---- tasks of a session; they hold no reference to the client -----------------------------------

async def _read(me, socket):
    while True:
        frame = await socket.recv()
        client = me()
        if client is None or client._socket is not socket:
            return
        try:
            kind, flags, session, seq, payload = wire.decode(frame)
            client._heard = time.monotonic()
            if kind == wire.BYE:
                client._drop()
                return
            message = wire.parse(kind, payload)
        except TextGenProtocolError:
            client._drop()
            return
        queue = client._waiting.get(seq)
        if flags & wire.REPLY and queue is not None:
            queue.put_nowait(message)
        elif kind == wire.ERROR and message.code == errors.FENCED:
            client._drop()
            return
        del client


async def _beats(me, socket, session, beat, silence):
    while True:
        await asyncio.sleep(beat / 2)
        client = me()
        if client is None or client._socket is not socket:
            return
        if time.monotonic() - client._heard > silence:
            client._drop()
            return
        await socket.send(wire.encode(wire.HEARTBEAT, pb.Heartbeat(in_flight=len(client._waiting)).SerializeToString(), session))
        del client


async def _watch(me, monitor):
    await monitor.recv_multipart()  # only one event was asked for
    client = me()
    if client is not None:
        client._drop()
