"""Everything this package raises on purpose. A call ends with a result, with one of these, or at its deadline with TextGenTimeout."""


class TextGenError(Exception):
    """Base of all. `code` is the wire's code (an int, 0 where the client itself found the fault)."""

    def __init__(self, message, code=0):
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)


class TextGenTimeout(TextGenError, TimeoutError):
    """The deadline of a call passed. The call may have been executed: making the same one again is safe."""


class TextGenUnavailable(TextGenError, ConnectionError):
    """No server answers at the address, or it refuses new work for now."""


class TextGenProtocolError(TextGenError):
    """The other side speaks another protocol, or one of both has a bug."""


class TextGenAuthError(TextGenError, PermissionError):
    """The server does not accept this client's key, tenant or role."""


class ConfigMismatch(TextGenError):
    """The server that came back has another config, tokenizer or data: its episodes are not ours."""


class InvalidRequest(TextGenError, ValueError):
    """The server refused an argument: a token outside the vocabulary, a sample that does not exist."""


class WrongState(TextGenError, RuntimeError):
    """A step before reset, after the end, or with other tokens than the ones already made."""


class EpisodeAborted(TextGenError):
    """The episode cannot be rebuilt after a loss. Reset; `slots` says which."""

    def __init__(self, message, code=14, slots=()):
        super().__init__(message, code)
        self.slots = tuple(slots)

    def __reduce__(self):
        return type(self), (str(self), self.code, self.slots)


class RewardUnavailable(TextGenError):
    """The step is made, its reward could not be had. Never a made-up number; `slots` says which."""

    def __init__(self, message, code=15, slots=()):
        super().__init__(message, code)
        self.slots = tuple(slots)

    def __reduce__(self):
        return type(self), (str(self), self.code, self.slots)


# Codes of textgen.proto.
(OK, INVALID_ARGUMENT, UNSUPPORTED_VERSION, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND, FAILED_STATE, CONFLICT, STALE, GAP, FENCED, OVERLOADED,
 DEADLINE_EXCEEDED, WORKER_LOST, EPISODE_ABORTED, REWARD_FAILED, REWARD_TIMEOUT, REWARD_INVALID, TOO_LARGE, DRAINING, CONFIG_MISMATCH, INTERNAL,
 PROTOCOL) = range(23)

# The same request may be made again later; nothing was executed, or repeating is safe.
RETRYABLE = frozenset((OVERLOADED, WORKER_LOST, DRAINING))

_CLASSES = {
    INVALID_ARGUMENT: InvalidRequest,
    UNSUPPORTED_VERSION: TextGenProtocolError,
    UNAUTHENTICATED: TextGenAuthError,
    PERMISSION_DENIED: TextGenAuthError,
    NOT_FOUND: InvalidRequest,
    FAILED_STATE: WrongState,
    CONFLICT: WrongState,
    STALE: WrongState,
    GAP: WrongState,
    OVERLOADED: TextGenUnavailable,
    DEADLINE_EXCEEDED: TextGenTimeout,
    WORKER_LOST: TextGenUnavailable,
    EPISODE_ABORTED: EpisodeAborted,
    REWARD_FAILED: RewardUnavailable,
    REWARD_TIMEOUT: RewardUnavailable,
    REWARD_INVALID: RewardUnavailable,
    TOO_LARGE: InvalidRequest,
    DRAINING: TextGenUnavailable,
    CONFIG_MISMATCH: ConfigMismatch,
    PROTOCOL: TextGenProtocolError,
}


def from_code(code, message):
    """The exception for a code of the wire."""
    return _CLASSES.get(code, TextGenError)(message, code)
