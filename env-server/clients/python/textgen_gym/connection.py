"""One session with a server: Hello and Welcome, heartbeats, redial, resume, deadlines.

    conn = Connection("ipc:///run/env.sock")
    reply = conn.call(pb.SampleRange(split=1, n=3), timeout=30)

A lock guards the socket. Who makes a call holds it and does everything itself (so a step costs one send and one receive, without a
change of thread); between calls one background thread of the process takes it for a moment and keeps the session alive: heartbeats
go out and are read while user code computes or the process idles, and a lost connection is dialled again.

When a connection is lost the same session is resumed by its token where the server still has it; on a restarted server, or another worker, a new
one begins and `owner.rebuild(connection, deadline)` brings the episodes back before the unanswered call is made again.

After a fork the child forgets the parent's session and opens its own; sockets, threads and locks never cross. Nothing is opened
before the first call.
"""
import atexit
import os
import random
import threading
import time
import weakref

import zmq

from . import errors, wire
from .errors import TextGenProtocolError, TextGenTimeout, TextGenUnavailable
from .keys import Keys  # noqa: F401  (part of this module's interface)
from .wire import pb

SOFTWARE = "textgen_gym 0.1.0"
_SLICE_MS = 50  # how long one wait for the socket is, at most
_BEATS = 3  # silent for so many heartbeats: lost
_REMOTE_SILENCE = 30.0  # on another machine at least this many seconds
_DIAL_FIRST, _DIAL_MOST = 0.5, 4.0  # seconds until Hello is tried again on a new socket
_SPIN = 0.0003 if (os.cpu_count() or 1) > 1 else 0.0  # seconds of looking for an answer before sleeping
_yield = getattr(os, "sched_yield", lambda: None)


class _Lost(Exception):
    """The session under way is over; internal."""


# ---- what a process shares: the context and the keeper's thread ---------------------------------

class _Process:
    def __init__(self):
        self.connections = weakref.WeakSet()
        self.fresh()

    def fresh(self):
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.context = None
        self.thread = None
        self.wake = threading.Event()
        self.closing = False

    def zmq(self):
        with self.lock:
            if self.context is None:
                self.context = zmq.Context(1)
                self.context.set(zmq.MAX_SOCKETS, 16384)
                self.context.set(zmq.BLOCKY, 0)
            return self.context

    def keep(self, connection):
        with self.lock:
            self.connections.add(connection)
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self.run, args=(self.pid,), name="textgen_gym-keeper", daemon=True)
                self.thread.start()
        self.wake.set()

    def run(self, pid):
        while not self.closing and os.getpid() == pid:
            with self.lock:
                connections = list(self.connections)
            pause = 0.25
            for c in connections:
                pause = min(pause, c._keep())
            del connections
            c = None
            self.wake.wait(max(pause, 0.01))
            self.wake.clear()

    def shutdown(self):
        if self.pid != os.getpid():
            return
        self.closing = True
        self.wake.set()
        for c in list(self.connections):
            c.close()


_process = _Process()


def _after_fork():
    connections = list(_process.connections)
    _process.fresh()
    for c in connections:
        c._forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_process.shutdown)


# ---- the session -------------------------------------------------------------------------------

class Connection:
    """See the module. All methods may be called from any thread; calls of one connection follow one another."""

    def __init__(self, address, *, connect_timeout=10.0, heartbeat_ms=1000, keys=None, owner=None):
        if not address.startswith(("ipc://", "tcp://")):
            raise ValueError(f"address {address!r}: expected ipc://PATH or tcp://HOST:PORT")
        self.address = address
        self.connect_timeout = connect_timeout
        self.heartbeat_ms = heartbeat_ms
        self.keys = keys
        self._owner = weakref.ref(owner) if owner is not None else None
        self.closed = False
        self.spec = None  # of the environment, from the last Welcome
        self.welcome = None
        self.stats = {"calls": 0, "connects": 0, "resumes": 0, "rebuilds": 0, "retries": 0}
        self._local = address.startswith(("ipc://", "tcp://127.", "tcp://localhost", "tcp://[::1]"))
        self._forget()

    def _forget(self):
        """A session of its own: at the start, and in a forked child."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._uuid = os.urandom(16)
        self._socket = self._monitor = None
        self._state = "down"  # down -> hello -> up
        self._session = 0
        self._token = b""
        self._resume = 0
        self._seq = 0
        self._fresh = False  # up, but the owner has not rebuilt its episodes yet
        self._heard = self._beat = self._dialled = 0.0
        self._backoff = _DIAL_FIRST
        self._refusal = None
        self._unanswered = 0
        self._quick = 0  # how sure it is that answers come within _SPIN
        self._why = "nothing listens there"

    def __reduce__(self):
        return _remake, (self.address, self.connect_timeout, self.heartbeat_ms, self.keys)

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass

    # -- socket --

    def _open_socket(self):
        self._close_socket()
        socket = _process.zmq().socket(zmq.DEALER)
        try:
            socket.linger = 0
            socket.rcvtimeo = _SLICE_MS
            socket.sndtimeo = 1000
            socket.sndhwm = socket.rcvhwm = 0  # credits bound what is under way
            socket.set(zmq.IPV6, 1)
            socket.set(zmq.RECONNECT_IVL, 50)
            socket.set(zmq.RECONNECT_IVL_MAX, 1000)
            socket.set(zmq.MAXMSGSIZE, 64 << 20)
            if self.keys:
                self.keys.apply(socket)
            self._monitor = socket.get_monitor_socket(
                zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            socket.connect(self.address)
        except zmq.ZMQError as e:
            self._socket = socket
            self._close_socket()
            raise TextGenUnavailable(f"{self.address}: {e}") from None
        self._socket = socket

    def _close_socket(self, linger=0):
        socket, monitor = self._socket, self._monitor
        self._socket = self._monitor = None
        if socket is None or self._pid != os.getpid():
            return
        try:
            socket.disable_monitor()
            monitor.close(0)
        finally:
            socket.close(linger)

    def _send(self, kind, payload, seq=0):
        try:
            self._socket.send(wire.encode(kind, payload, self._session, seq))
        except zmq.Again:
            raise _Lost("the socket takes nothing more") from None
        self._beat = time.monotonic()

    def _disconnected(self):
        """Whether the connection was lost since the last look."""
        lost = False
        while self._monitor is not None and self._monitor.poll(0):
            event = int.from_bytes(self._monitor.recv_multipart()[0][:2], "little")
            if event == zmq.EVENT_DISCONNECTED:
                lost = True
            else:
                self._why = "the security handshake failed: wrong or missing keys"
        return lost

    # -- dialling --

    def _dial(self):
        """Sends Hello on a new socket."""
        self._open_socket()
        self._state, self._session = "hello", 0
        self._dialled = time.monotonic()
        self._seq += 1
        self._hello_seq = self._seq
        hello = pb.Hello(proto_major=wire.MAJOR, proto_minor=wire.MINOR, software=SOFTWARE, role=pb.Role["ROLE_CLIENT"], peer_uuid=self._uuid,
                         heartbeat_ms=self.heartbeat_ms)
        if self._token and self._resume:
            hello.resume_session, hello.resume_token = self._resume, self._token
        self._send(wire.HELLO, hello.SerializeToString(), self._hello_seq)

    def _welcomed(self, welcome):
        spec = wire.plain(welcome.spec)
        if self.spec is not None and (spec.config_digest, spec.tokenizer_digest) != (self.spec.config_digest, self.spec.tokenizer_digest):
            self._down("the server has another config")
            self._refusal = errors.ConfigMismatch(
                f"{self.address}: the server came back with another config, tokenizer or data; make a new environment", errors.CONFIG_MISMATCH)
            return
        self.welcome, self.spec = welcome, spec
        self._session = welcome.session
        self._beat_every = max(welcome.heartbeat_ms or 1000, 10) / 1000
        silence = _BEATS * self._beat_every
        self._silence = silence if self._local else max(silence, _REMOTE_SILENCE)
        resumed = bool(getattr(welcome, "resumed", False))
        self._resume, self._token = welcome.session, bytes(getattr(welcome, "resume_token", b"")) or (self._token if resumed else b"")
        self.credits = getattr(welcome, "credits", 0) or 64
        self._fresh = not resumed
        self._state = "up"
        self._backoff = _DIAL_FIRST
        self._refusal = None
        self.stats["resumes" if resumed else "connects"] += 1

    def _down(self, why):
        self._close_socket()
        self._state, self._why, self._session = "down", why, 0
        self._dialled = -_DIAL_MOST  # at once

    def _redial_due(self):
        """In state hello or down: dials when it is time to."""
        now = time.monotonic()
        if self._state == "down" or now - self._dialled > self._backoff:
            if self._state == "hello":
                self._backoff = min(self._backoff * 2, _DIAL_MOST)
            self._dial()

    # -- reading --

    def _take(self, frame):
        """One frame. Returns (type, seq, payload) of a reply, else None after having dealt with it."""
        kind, flags, session, seq, payload = wire.decode(frame)
        self._heard = time.monotonic()
        if self._state == "hello":
            if kind == wire.WELCOME and seq == self._hello_seq:
                self._welcomed(wire.parse(kind, payload))
            elif kind == wire.ERROR and seq in (0, self._hello_seq):
                self._refused(wire.parse(kind, payload))
            return None
        if kind == wire.HEARTBEAT or session not in (0, self._session):
            return None
        if kind == wire.BYE:
            raise _Lost("the server said good-bye: " + wire.parse(kind, payload).reason)
        if kind == wire.ERROR:
            e = wire.parse(kind, payload)
            if e.code == errors.FENCED:
                raise _Lost("the server does not know this session any more")
        return (kind, seq, payload) if flags & wire.REPLY else None

    def _refused(self, e):
        message = f"{self.address}: {e.message}"
        if e.retryable or e.code in errors.RETRYABLE:
            self._why = e.message
            self._down(e.message)
            self._dialled = time.monotonic() + max(e.retry_after_ms, 100) / 1000 - self._backoff
            self._state = "hello"  # dialled again when the pause is over
        else:
            self._down(e.message)
            self._refusal = errors.from_code(e.code, message)

    def _receive(self):
        """The next reply, or None after at most a slice of time. Keeps the session alive meanwhile."""
        if self._socket is None:  # a pause between two tries
            time.sleep(_SLICE_MS / 1000)
            return None
        frame = self._look() if self._quick else None
        if frame is None:
            started = time.perf_counter()
            try:
                frame = self._socket.recv()
            except zmq.Again:
                self._alive()
                return None
            if time.perf_counter() - started < _SPIN:
                self._quick = min(self._quick + 1, 8)
        return self._take(frame)

    def _look(self):
        """Looks for an answer again and again for a moment, since being woken by the kernel costs more than the whole call. Only where answers come that
        quickly, and never in the way of another thread that could run."""
        end = time.perf_counter() + _SPIN
        while True:
            try:
                frame = self._socket.recv(zmq.NOBLOCK)
                self._quick = min(self._quick + 1, 8)
                return frame
            except zmq.Again:
                if time.perf_counter() > end:
                    self._quick = max(self._quick - 2, 0)
                    return None
                _yield()

    def _alive(self):
        """Sends a heartbeat when one is due; _Lost when the other side is gone."""
        now = time.monotonic()
        if self._disconnected() and self._state == "up":
            raise _Lost("the connection was lost")
        if self._state != "up":
            return
        if now - self._heard > self._silence:
            raise _Lost(f"the server was silent for {now - self._heard:.1f} s")
        if now - self._beat > self._beat_every / 2:
            self._send(wire.HEARTBEAT, pb.Heartbeat(in_flight=self._unanswered).SerializeToString())

    def _keep(self):
        """The keeper's visit. Returns seconds until it should come again."""
        if self.closed or not self._lock.acquire(blocking=False):
            return 0.25  # who holds it keeps the session alive
        try:
            if self.closed or self._pid != os.getpid() or (self._state == "down" and self._session == 0 and self._resume == 0):
                return 0.25  # nothing was opened yet
            try:
                if self._state != "up" and self._refusal is None:
                    self._redial_due()
                while self._socket is not None and self._socket.poll(0):
                    self._take(self._socket.recv())
                self._alive()
            except _Lost as e:
                self._down(str(e))
            except (TextGenProtocolError, TextGenUnavailable, zmq.ZMQError) as e:
                self._down(str(e))
            return self._beat_every / 3 if self._state == "up" else 0.1
        finally:
            self._lock.release()

    # -- calls --

    def ensure(self, timeout=None):
        """Connects where that is not done yet. TextGenUnavailable when nobody answers in time."""
        with self._lock:
            self._ensure(time.monotonic() + (self.connect_timeout if timeout is None else timeout))

    def _ensure(self, deadline):
        if self._state == "up" and not self._fresh:
            return
        if self.closed:
            raise errors.WrongState("this connection is closed")
        if self._pid != os.getpid():
            self._forget()
        _process.keep(self)
        while True:
            try:
                while self._state != "up":
                    if self._refusal is not None:
                        refusal, self._refusal = self._refusal, None
                        self._state = "down"
                        raise refusal
                    if time.monotonic() > deadline:
                        raise TextGenUnavailable(f"{self.address}: no server answers ({self._why})")
                    self._redial_due()
                    self._receive()
                if self._fresh:
                    owner = self._owner() if self._owner else None
                    if owner is not None:
                        self.stats["rebuilds"] += owner.rebuild(self, deadline)
                    self._fresh = False
                return
            except _Lost as e:
                self._down(str(e))

    def exchange(self, message, deadline):
        """One request on the session under way and its reply. For owners that rebuild; others use call()."""
        kind = wire.TYPES[type(message)]
        self._seq += 1
        seq = self._seq
        self._send(kind, message.SerializeToString(), seq)
        return self._await(seq, deadline, type(message).DESCRIPTOR.name)

    def rest(self, deadline):
        """A further reply to the last request."""
        return self._await(self._seq, deadline, "the rest of an answer")

    def tell(self, message):
        """A message without a reply, on the session under way."""
        self._seq += 1
        self._send(wire.TYPES[type(message)], message.SerializeToString(), self._seq)

    def _await(self, seq, deadline, what):
        self._unanswered = 1
        try:
            while True:
                reply = self._receive()
                if reply is not None and reply[1] == seq:
                    return wire.parse(reply[0], reply[2])
                if time.monotonic() > deadline:
                    raise TextGenTimeout(f"{self.address}: {what}: no answer in time", errors.DEADLINE_EXCEEDED)
        finally:
            self._unanswered = 0

    def call(self, message, timeout=30.0, before=(), collect=None):
        """Sends the request and returns its reply, through losses of the connection and of the server, until the deadline. `before`: messages
        whose replies do not matter that go ahead of it. collect(reply) is True when the answer, which may come in several replies, is complete.
        The request must be safe to repeat, as all of the protocol are."""
        started = time.monotonic()
        deadline = started + timeout
        self.stats["calls"] += 1
        if not self._lock.acquire(timeout=timeout + 1):
            raise TextGenTimeout(f"{self.address}: another call of this connection is still under way")
        try:
            while True:
                first = self.welcome is None
                try:
                    self._ensure(min(deadline, started + self.connect_timeout) if first else deadline)
                    for m in before:
                        self.tell(m)
                    reply = self.exchange(message, deadline)
                    while collect is not None and type(reply) is not pb.Error and not collect(reply):
                        reply = self.rest(deadline)
                except _Lost as e:
                    self.stats["retries"] += 1
                    self._down(str(e))
                    continue
                except TextGenUnavailable as e:
                    if first or time.monotonic() < deadline:
                        raise
                    raise TextGenTimeout(str(e), errors.DEADLINE_EXCEEDED) from None
                if type(reply) is not pb.Error:
                    return reply
                if reply.code not in errors.RETRYABLE:
                    raise errors.from_code(reply.code, f"{self.address}: {reply.message}")
                self.stats["retries"] += 1
                pause = max(reply.retry_after_ms, 50) / 1000 * random.uniform(0.5, 1.5)
                if time.monotonic() + pause > deadline:
                    raise errors.from_code(reply.code, f"{self.address}: {reply.message}")
                self.sleep(pause)
                if reply.code == errors.DRAINING:
                    self._down(reply.message)
        finally:
            self._lock.release()

    def sleep(self, seconds):
        """A pause that keeps the session alive."""
        until = time.monotonic() + seconds
        with self._lock:
            while time.monotonic() < until:
                self._receive() if self._socket is not None else time.sleep(min(0.05, seconds))

    def close(self):
        """Says good-bye. May be called again."""
        if self.closed:
            return
        self.closed = True
        if self._pid != os.getpid():
            self._socket = None
            return
        with self._lock:
            if self._socket is not None and self._state == "up":
                try:
                    self._send(wire.BYE, pb.Bye(reason="closed").SerializeToString())
                except Exception:
                    pass
            self._close_socket(linger=200)
            self._state = "down"
            self._resume = 0


def _remake(address, connect_timeout, heartbeat_ms, keys):
    return Connection(address, connect_timeout=connect_timeout, heartbeat_ms=heartbeat_ms, keys=keys)
