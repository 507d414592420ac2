"""A reward worker's side of the wire: sessions, heartbeats, requests on threads, drain.

One thread has the socket and never computes; functions run on a pool. Listening, it welcomes any number of callers; dialling, it says Hello to one
(a broker, an environment worker) and dials again whenever that one is gone.
"""
import os
import queue
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import zmq

from . import wire
from .errors import TextGenError, TextGenProtocolError
from .reward import INVALID, TIMEOUT, Function
from .wire import pb

SOFTWARE = "textgen_gym.reward 0.1.0"
_TICK = 0.05  # seconds; how long one wait for the socket is, at most
_BEATS, _REMOTE_SILENCE = 3, 30.0
_DIAL_FIRST, _DIAL_MOST = 0.25, 4.0
_MAX_WAITING = 1024  # requests of all callers together; beyond: OVERLOADED
_CLIENT, _REWARD = 1, 4  # Role
_OVERLOADED, _FENCED, _NOT_FOUND, _DRAINING, _INTERNAL, _PROTOCOL = 11, 10, 5, 19, 21, 22
_VERSION, _DENIED, _UNAUTHENTICATED = 2, 4, 3


class _Session:
    def __init__(self, peer, number, heartbeat):
        self.peer, self.number, self.heartbeat = peer, number, heartbeat
        self.heard = self.beat = time.monotonic()
        self.uuid = b""


class Worker:
    """See the module; made and run by textgen_gym.reward.serve."""

    def __init__(self, functions, *, listen=None, connect=None, concurrency=4, keys=None, heartbeat_ms=1000, ready=None):
        if (listen is None) == (connect is None):
            raise ValueError("give either an address to listen at, or connect=")
        if not functions:
            raise ValueError("there is no reward function: decorate one with @reward(name)")
        if not all(isinstance(f, Function) for f in functions):
            raise TypeError("functions must be decorated with @reward(name)")
        self.address = listen or connect
        if not self.address.startswith(("ipc://", "tcp://")):
            raise ValueError(f"address {self.address!r}: expected ipc://PATH or tcp://HOST:PORT")
        local = self.address.startswith(("ipc://", "tcp://127.", "tcp://localhost", "tcp://[::1]"))
        if listen and not local:
            raise ValueError(f"{listen}: other machines reach this address; let the worker dial instead (connect=), with keys")
        self.listening = listen is not None
        self.functions = {f.name: f for f in functions}
        self.concurrency, self.keys, self.heartbeat_ms, self.ready = max(1, concurrency), keys, heartbeat_ms, ready
        self.silence = 0.0 if local else _REMOTE_SILENCE
        self.sessions = {}  # by number
        self.socket = self.context = None
        self.results = queue.SimpleQueue()  # (session, seq, reply bytes)
        self.started = {}  # requests under way: their start
        self.completed = 0
        self.stopping = False
        self.failure = None
        self.uuid = os.urandom(16)
        self.backoff, self.redial_at, self.hello_at = _DIAL_FIRST, 0.0, None

    # -- life --

    def run(self):
        self.context = zmq.Context(1)
        self.wake_in, self.wake_out = self._pair()
        previous = self._catch_signals()
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="reward")
        self.pool = pool
        try:
            self._open()
            if self.listening:
                self._tell_ready()
            while not (self.stopping and not self.started):
                self._turn()
                if self.failure:
                    raise TextGenError(self.failure)
            self._answer()
            for session in list(self.sessions.values()):
                self._send(session, wire.BYE, pb.Bye(reason="the reward worker is shutting down"))
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            pool.shutdown(wait=False, cancel_futures=True)
            for socket in (self.socket, self.wake_in, self.wake_out):
                if socket is not None:
                    socket.close(1000)
            self.context.term()

    def stop(self):
        """Finishes what is under way and ends run(); from any thread or a signal."""
        self.stopping = True

    def _catch_signals(self):
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {n: signal.signal(n, lambda *_: self.stop()) for n in (signal.SIGTERM, signal.SIGINT)}

    def _pair(self):
        a, b = self.context.socket(zmq.PUSH), self.context.socket(zmq.PULL)
        b.bind("inproc://wake")
        a.connect("inproc://wake")
        self.wake_lock = threading.Lock()
        return a, b

    def _open(self):
        self.socket = socket = self.context.socket(zmq.ROUTER if self.listening else zmq.DEALER)
        socket.linger = 0
        socket.set(zmq.MAXMSGSIZE, 64 << 20)
        socket.set(zmq.IPV6, 1)
        if self.listening:
            socket.set(zmq.ROUTER_MANDATORY, 1)
            socket.bind(self.address)
            self.address = socket.get(zmq.LAST_ENDPOINT).decode().rstrip("\0")
            if self.address.startswith("ipc://"):
                os.chmod(self.address[6:], 0o600)
        else:
            socket.set(zmq.RECONNECT_IVL, 50)
            if self.keys:
                self.keys.apply(socket)
            socket.connect(self.address)
            self._say_hello()

    def _tell_ready(self):
        if self.ready:
            self.ready(self.address)
            self.ready = None

    # -- the loop --

    def _turn(self):
        poller = zmq.Poller()
        poller.register(self.wake_out, zmq.POLLIN)
        if self.socket is not None:
            poller.register(self.socket, zmq.POLLIN)
        events = dict(poller.poll(_TICK * 1000))
        while self.wake_out in events and self.wake_out.poll(0):
            self.wake_out.recv()
        self._answer()
        for _ in range(256):
            if self.socket is None or not self.socket.poll(0):
                break
            self._receive()
        self._keep()

    def _receive(self):
        parts = self.socket.recv_multipart()
        peer, frame = (parts[0], parts[1:]) if self.listening else (b"", parts)
        try:
            if len(frame) != 1:
                raise TextGenProtocolError("a message of several parts")
            kind, flags, number, seq, payload = wire.decode(frame[0])
            message = wire.parse(kind, payload)
        except TextGenProtocolError as e:
            self._send_error(_Session(peer, 0, 1), 0, _PROTOCOL, str(e))
            return
        self._message(peer, kind, number, seq, message)

    def _message(self, peer, kind, number, seq, message):
        if kind == wire.HELLO and self.listening:
            self._welcome(peer, message, seq)
            return
        if kind == wire.WELCOME and not self.listening:
            self._welcomed(message)
            return
        session = self.sessions.get(number)
        if session is None or session.peer != peer:
            if kind == wire.ERROR and not self.sessions:
                self._refused(message)
            elif kind not in (wire.ERROR, wire.BYE, wire.HEARTBEAT):
                self._send_error(_Session(peer, number, 1), seq, _FENCED, "this session is over: say Hello")
            return
        session.heard = time.monotonic()
        if kind == wire.SCORE:
            self._ask(session, seq, message)
        elif kind == wire.BYE:
            self._lose(session)
        elif kind == wire.ERROR:
            if message.code in (_FENCED, _DRAINING):
                self._lose(session)
        elif kind != wire.HEARTBEAT:
            self._send_error(session, seq, _PROTOCOL, "a reward worker takes ScoreRequest only")

    # -- sessions --

    def _welcome(self, peer, hello, seq):
        if hello.proto_major != wire.MAJOR:
            self._send_error(_Session(peer, 0, 1), seq, _VERSION, f"protocol version {hello.proto_major}; this side speaks {wire.MAJOR}")
            return
        for old in [s for s in self.sessions.values() if s.peer == peer or s.uuid == hello.peer_uuid]:
            del self.sessions[old.number]
        beat = min(self.heartbeat_ms, hello.heartbeat_ms or self.heartbeat_ms)
        session = _Session(peer, random.SystemRandom().getrandbits(62) | 1, max(beat, 1) / 1000)
        session.uuid = hello.peer_uuid
        self.sessions[session.number] = session
        welcome = pb.Welcome(proto_minor=min(hello.proto_minor, wire.MINOR), session=session.number, epoch=1, heartbeat_ms=beat, software=SOFTWARE,
                             limits=pb.Limits(max_message=64 << 20, max_slots=0, max_batch=4096, max_tokens=65536))
        if hello.proto_minor >= 1:
            welcome.functions.extend(f.describe() for f in self.functions.values())
            welcome.credits = _MAX_WAITING
        self._send(session, wire.WELCOME, welcome, seq, wire.REPLY)

    def _say_hello(self):
        hello = pb.Hello(proto_major=wire.MAJOR, proto_minor=wire.MINOR, software=SOFTWARE, role=_REWARD, peer_uuid=self.uuid,
                         heartbeat_ms=self.heartbeat_ms, functions=[f.describe() for f in self.functions.values()])
        self.hello_at = time.monotonic()
        self._send(_Session(b"", 0, 1), wire.HELLO, hello, 1)

    def _welcomed(self, welcome):
        self.sessions.clear()
        self.sessions[welcome.session] = _Session(b"", welcome.session, max(welcome.heartbeat_ms, 1) / 1000)
        self.backoff, self.hello_at = _DIAL_FIRST, None
        self._tell_ready()

    def _refused(self, error):
        if error.code in (_VERSION, _DENIED, _UNAUTHENTICATED):
            self.failure = f"refused by {self.address}: {error.message}"
        self.hello_at = None
        self._redial()

    def _lose(self, session):
        self.sessions.pop(session.number, None)
        if not self.listening:
            self._redial()

    def _redial(self):
        self.socket.close(0)
        self.socket = None
        self.redial_at = time.monotonic() + self.backoff * (0.5 + random.random() / 2)
        self.backoff = min(2 * self.backoff, _DIAL_MOST)

    def _keep(self):
        now = time.monotonic()
        if self.socket is None and now >= self.redial_at and not self.stopping:
            self.uuid = os.urandom(16)
            self._open()
        elif not self.listening and self.hello_at and now - self.hello_at > 10:
            self.hello_at = None
            self._redial()
        for session in list(self.sessions.values()):
            if now - session.heard > max(_BEATS * session.heartbeat, self.silence):
                self._lose(session)
            elif now - session.beat >= session.heartbeat:
                oldest = now - min(self.started.values()) if self.started else 0
                self._send(session, wire.HEARTBEAT,
                           pb.Heartbeat(in_flight=len(self.started), oldest_ms=int(oldest * 1000), completed=self.completed, draining=self.stopping))

    # -- requests --

    def _ask(self, session, seq, request):
        function = self.functions.get(request.fn)
        if function is None and not request.fn and len(self.functions) == 1:
            function = next(iter(self.functions.values()))
        if function is None:
            self._send_error(session, seq, _NOT_FOUND, f"there is no reward function {request.fn!r} here")
        elif self.stopping:
            self._send_error(session, seq, _DRAINING, "this reward worker is shutting down")
        elif len(self.started) >= _MAX_WAITING:
            self._send_error(session, seq, _OVERLOADED, f"{len(self.started)} requests are waiting", 100)
        else:
            self.started[(session.number, seq)] = time.monotonic()
            self.pool.submit(self._compute, session.number, seq, function, request, time.monotonic())

    def _compute(self, number, seq, function, request, since):
        """On a thread of the pool."""
        try:
            if request.deadline_ms and (time.monotonic() - since) * 1000 > request.deadline_ms:
                reply = Function._all(request, TIMEOUT, "the deadline passed while the request was waiting")
            else:
                reply = function.score(request)
            payload = reply.SerializeToString()
        except Exception as e:  # a bug here, or a text that protobuf refuses: still an answer
            payload = Function._all(request, INVALID, f"{type(e).__name__}"[:200]).SerializeToString()
        self.results.put((number, seq, payload))
        try:
            with self.wake_lock:
                self.wake_in.send(b"", zmq.DONTWAIT)
        except zmq.ZMQError:
            pass  # the loop looks by itself soon

    def _answer(self):
        while True:
            try:
                number, seq, payload = self.results.get_nowait()
            except queue.Empty:
                return
            self.started.pop((number, seq), None)
            self.completed += 1
            session = self.sessions.get(number)
            if session is not None:
                self._send_bytes(session, wire.SCORE_REPLY, payload, seq, wire.REPLY)

    # -- sending --

    def _send(self, session, kind, message, seq=0, flags=0):
        self._send_bytes(session, kind, message.SerializeToString(), seq, flags)

    def _send_error(self, session, seq, code, text, retry_after_ms=0):
        self._send(session, wire.ERROR, pb.Error(code=code, message=text[:1000], retryable=code == _OVERLOADED, retry_after_ms=retry_after_ms), seq,
                   wire.REPLY)

    def _send_bytes(self, session, kind, payload, seq, flags):
        frame = wire.encode(kind, payload, session.number, seq, flags)
        session.beat = time.monotonic()
        if self.socket is None:
            return
        try:
            self.socket.send_multipart([session.peer, frame] if self.listening else [frame], zmq.DONTWAIT)
        except zmq.ZMQError:
            if self.listening and session.number:  # gone, or it reads nothing: it will say Hello again
                self.sessions.pop(session.number, None)
