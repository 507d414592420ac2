"""Reward functions in Python, served to environment workers, learners and brokers.

    from textgen_gym import reward

    @reward("length", deterministic=True)
    def score(prompt, completion, references, meta):
        return len(completion.split()) / 10

    reward.serve("tcp://127.0.0.1:7700")            # or reward.serve(connect="tcp://learner:7701")

and in the config of the environment

    reward_fn: {id: remote, args: {fn: length, connect: "tcp://127.0.0.1:7700"}}

A function returns a number, or (number, {name: number}) with named parts for the logs. What it raises becomes FAILED with the message, what is not a
finite number INVALID; nothing is ever made up. `batched=True`: the function gets a list of items (prompt, completion, references, meta) and returns
a list of as many values. `ranked=True`: the same, and the items are all samples of one prompt. Functions run on threads (`concurrency` of them); heartbeats
are answered meanwhile, so slow is not dead.

From the command line, for any function of any module: python -m textgen_gym.reward judge:score --listen tcp://127.0.0.1:7700
"""
import argparse
import importlib
import json
import math
import numbers
import sys
import types
from dataclasses import dataclass, field

from .errors import TextGenError
from .wire import pb

OK, FAILED, TIMEOUT, INVALID = 1, 3, 4, 5  # RewardStatus
_NOTE = 1000  # characters of a message


@dataclass(frozen=True)
class Item:
    """A text to judge."""
    prompt: str
    completion: str
    references: list = field(default_factory=list)
    meta: object = None  # what the data says besides, decoded from JSON


class Function:
    """A function with what its callers must know of it. Calling it calls the function itself."""

    def __init__(self, function, name, version="1", deterministic=False, batched=False, ranked=False, max_batch=0, concurrency=0):
        if not name or len(name.encode()) > 256:
            raise ValueError("a reward function needs a name of at most 256 bytes")
        self.function, self.name, self.version = function, name, str(version)
        self.deterministic, self.batched, self.ranked = bool(deterministic), bool(batched), bool(ranked)
        self.max_batch, self.concurrency = int(max_batch), int(concurrency)
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def describe(self):
        return pb.RewardFn(name=self.name, version=self.version, deterministic=self.deterministic, max_batch=self.max_batch,
                           concurrency=self.concurrency)

    # -- judging --

    def score(self, request):
        """ScoreReply to a ScoreRequest. Never raises: what goes wrong is a status."""
        try:
            items = [Item(i.prompt, i.completion, list(i.references), json.loads(i.meta_json) if i.meta_json else None) for i in request.items]
        except ValueError as e:
            return self._all(request, FAILED, f"meta is not JSON: {e}")
        if self.ranked and not request.ranked and len(items) > 1:
            return self._all(request, INVALID, f"{self.name} ranks the samples of one prompt; the request is not for a group")
        if self.batched or self.ranked:
            return self._score_list(request, items)
        results = []
        for wire, item in zip(request.items, items):
            try:
                value = self.function(item.prompt, item.completion, item.references, item.meta)
            except Exception as e:
                results.append(_result(wire.id, FAILED, message=_reason(e)))
            else:
                results.append(_value(wire.id, value))
        return pb.ScoreReply(items=results)

    def _score_list(self, request, items):
        try:
            values = list(self.function(items))
        except Exception as e:
            return self._all(request, FAILED, _reason(e))
        if len(values) != len(items):
            return self._all(request, INVALID, f"{self.name} returned {len(values)} values for {len(items)} texts")
        return pb.ScoreReply(items=[_value(wire.id, value) for wire, value in zip(request.items, values)])

    @staticmethod
    def _all(request, status, message):
        return pb.ScoreReply(items=[_result(i.id, status, message=message) for i in request.items])


def _reason(e):
    return f"{type(e).__name__}: {e}".replace("\0", "\ufffd")[:_NOTE]


def _number(value):
    """The value as a float, NaN for what is none. A bool is not a number; a tensor of one element is."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _result(number, status, value=math.nan, message="", components=()):
    return pb.ScoreResult(id=number, status=status, value=value, message=message, components=components)


def _value(number, value):
    parts = {}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value, parts = value
    elif isinstance(value, Exception):
        return _result(number, FAILED, message=_reason(value))
    components = []
    for name, part in list(parts.items())[:64]:
        part = _number(part)
        components.append(pb.Component(name=str(name)[:64], value=part, status=OK if math.isfinite(part) else INVALID))
    x = _number(value)
    if not math.isfinite(x):
        shown = repr(value) if isinstance(value, numbers.Number) or value is None else type(value).__name__
        return _result(number, INVALID, message=f"the function returned {shown[:100]}, which is not a finite number", components=components)
    return _result(number, OK, x, components=components)


# ---- the decorator -----------------------------------------------------------------------------

_functions = {}


def register(name, **options):
    """A decorator that makes a function known by this name. Options: version, deterministic, batched, ranked, max_batch, concurrency."""
    def wrap(function):
        f = Function(function, name, **options)
        if name in _functions:
            raise ValueError(f"two reward functions are named {name!r}")
        _functions[name] = f
        return f
    return wrap


def serve(listen=None, *, connect=None, functions=None, concurrency=4, keys=None, heartbeat_ms=1000, ready=None):
    """Serves the functions until SIGTERM, SIGINT or a refusal that no second try changes; calls under way are finished first.

    listen: an address to bind (ipc://PATH, tcp://HOST:PORT), or connect: the address of a broker or of an environment worker that waits for reward workers.
    ready: called with the address once the functions can be asked for.
    """
    from .reward_worker import Worker
    chosen = list(functions.values() if isinstance(functions, dict) else functions if functions is not None else _functions.values())
    Worker(chosen, listen=listen, connect=connect, concurrency=concurrency, keys=keys, heartbeat_ms=heartbeat_ms, ready=ready).run()


class _Module(types.ModuleType):
    """`from textgen_gym import reward` gives this module, and calling it is the decorator."""

    def __call__(self, name, **options):
        return register(name, **options)


sys.modules[__name__].__class__ = _Module


# ---- command line ------------------------------------------------------------------------------

def _load(where, options):
    module, colon, name = where.partition(":")
    if not colon:
        raise SystemExit(f"{where}: expected module:function, as in judge:score")
    sys.path.insert(0, "")
    found = importlib.import_module(module)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise SystemExit(f"{where}: the module {module} has no {name}") from None
    return found if isinstance(found, Function) else Function(found, options.name or name, version=options.version, deterministic=options.deterministic,
                                                              batched=options.batched, ranked=options.ranked)


def main(argv=None):
    p = argparse.ArgumentParser(prog="python -m textgen_gym.reward", description="Serves reward functions.",
                                epilog="example: python -m textgen_gym.reward judge:score --connect tcp://learner:7701 --deterministic")
    p.add_argument("function", nargs="+", help="module:function; a decorated one keeps its own name and options")
    where = p.add_mutually_exclusive_group(required=True)
    where.add_argument("--listen", metavar="ADDRESS", help="wait for callers there: ipc://PATH or tcp://HOST:PORT")
    where.add_argument("--connect", metavar="ADDRESS", help="offer the functions to a broker or environment worker that listens there")
    p.add_argument("--name", help="name of the function (default: its own)")
    p.add_argument("--version", default="1", help="change it when values change (%(default)s)")
    p.add_argument("--deterministic", action="store_true", help="the same text always gets the same value")
    p.add_argument("--batched", action="store_true", help="the function takes a list of items")
    p.add_argument("--ranked", action="store_true", help="the function judges all samples of a prompt together")
    p.add_argument("--concurrency", type=int, default=4, metavar="N", help="calls at the same time (%(default)s)")
    p.add_argument("--key-file", help="own CURVE keys: NAME.key of `textgen keygen`")
    p.add_argument("--server-key", help="public key of the address that is connected to: 40 characters or NAME.pub")
    options = p.parse_args(argv)
    keys = None
    if options.key_file:
        from .connection import Keys
        keys = Keys(server_key=options.server_key, key_file=options.key_file)
    functions = [_load(where, options) for where in options.function]
    try:
        serve(options.listen, connect=options.connect, functions=functions, concurrency=options.concurrency, keys=keys,
              ready=lambda address: print(f"textgen_gym.reward ready {address} {' '.join(f.name for f in functions)}", flush=True))
    except TextGenError as e:
        raise SystemExit(f"textgen_gym.reward: {e}") from None


if __name__ == "__main__":
    # Run as a program this file is another module than textgen_gym.reward; the functions must be of the one that users import.
    from textgen_gym import reward as _real
    _real.main()
