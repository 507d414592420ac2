"""Frames of the wire: header of 32 bytes, CRC-32C, payload. Messages are the attributes of `pb` (pb.StepBatch …)."""
import struct
import types

import numpy as np

from . import schema
from .errors import TextGenProtocolError

pb = types.SimpleNamespace(**schema.load())

MAGIC = 0x31475854  # "TXG1"
HEADER = struct.Struct("<IHHQQII")
REPLY = 1
MAJOR = 1
MINOR = 1 if hasattr(pb, "RestoreBatch") else 0

_NAMES = ("Hello", "Welcome", "OpenSlots", "SlotsOpened", "CloseSlots", "ResetBatch", "ResetReply", "StepBatch", "StepReply", "SampleRange", "Samples",
          "MetricRequest", "MetricReply", "ScoreRequest", "ScoreReply", "Heartbeat", "Error", "Bye", "RestoreBatch", "RestoreReply", "SnapshotRequest",
          "SnapshotReply", "Cancel")
(HELLO, WELCOME, OPEN_SLOTS, SLOTS_OPENED, CLOSE_SLOTS, RESET, RESET_REPLY, STEP, STEP_REPLY, SAMPLE_RANGE, SAMPLES, METRIC, METRIC_REPLY, SCORE,
 SCORE_REPLY, HEARTBEAT, ERROR, BYE, RESTORE, RESTORE_REPLY, SNAPSHOT, SNAPSHOT_REPLY, CANCEL) = range(1, len(_NAMES) + 1)
CLASSES = {i + 1: getattr(pb, name) for i, name in enumerate(_NAMES) if hasattr(pb, name)}
TYPES = {cls: number for number, cls in CLASSES.items()}

# ---- CRC-32C -----------------------------------------------------------------------------------
# The checksum is linear: every byte contributes a value that depends on the byte and its distance from the end, and the contributions
# are XORed. With those values in a table a checksum is one gather and one reduction in numpy; longer texts are cut into
# blocks, whose sums are carried over the bytes behind them. A few bytes are quicker without numpy. The google-crc32c package, where it
# is installed, is faster still.

_BLOCK = 4096
_FEW = 64


def _tables():
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(0x82F63B78), one >> 1)
    table = np.empty((_BLOCK, 256), np.uint32)  # [distance from the end, byte]
    row = one
    for distance in range(_BLOCK):
        table[distance] = row
        row = one[row & 0xFF] ^ (row >> 8)
    return table


class _Crc:
    def __init__(self):
        self.table = None

    def prepare(self):
        table = _tables()
        self.flat = table.reshape(-1)
        self.offsets = (np.arange(_BLOCK - 1, -1, -1, dtype=np.intp)) * 256  # of the bytes of a block, first to last
        self.advance = [[int(table[_BLOCK - 1 - i][b]) for b in range(256)] for i in range(4)]  # over one block of zeros
        self.zero = [0xFFFFFFFF]  # state after n zero bytes, from the initial one
        self.one = one = [int(v) for v in table[0]]
        state = 0xFFFFFFFF
        for _ in range(_BLOCK):
            state = one[state & 0xFF] ^ (state >> 8)
            self.zero.append(state)
        self.table = table

    def sums(self, data):
        """XOR of the contributions of data, at most a block (or rows of whole blocks)."""
        n = data.shape[-1]
        return np.bitwise_xor.reduce(self.flat.take(data + self.offsets[_BLOCK - n:]), axis=-1)

    def __call__(self, data):
        if self.table is None:
            self.prepare()
        if len(data) <= _FEW:
            state, one = 0xFFFFFFFF, self.one
            for byte in data:
                state = one[(state ^ byte) & 0xFF] ^ (state >> 8)
            return state ^ 0xFFFFFFFF
        data = np.frombuffer(data, np.uint8)
        tail = data.size % _BLOCK
        state = 0xFFFFFFFF
        if data.size > _BLOCK:
            a0, a1, a2, a3 = self.advance
            whole = data[:data.size - tail].reshape(-1, _BLOCK)
            for start in range(0, len(whole), 64):
                for s in self.sums(whole[start:start + 64]).tolist():
                    state = a0[state & 0xFF] ^ a1[state >> 8 & 0xFF] ^ a2[state >> 16 & 0xFF] ^ a3[state >> 24] ^ s
            if tail == 0:
                return state ^ 0xFFFFFFFF
            head = np.frombuffer(struct.pack("<I", state), np.uint8)
            last = data[data.size - tail:].copy()
            k = min(4, tail)
            last[:k] ^= head[:k]
            rest = state >> (8 * tail) if tail < 4 else 0
            return int(self.sums(last)) ^ rest ^ 0xFFFFFFFF
        return int(self.sums(data)) ^ self.zero[data.size] ^ 0xFFFFFFFF


crc32c_numpy = _Crc()

try:
    import google_crc32c
    if google_crc32c.implementation == "c":
        def crc32c(data):
            return google_crc32c.value(bytes(data))
    else:
        crc32c = crc32c_numpy
except ImportError:
    crc32c = crc32c_numpy


# ---- frames ------------------------------------------------------------------------------------

def encode(kind, payload, session=0, seq=0, flags=0):
    """One message as bytes."""
    return HEADER.pack(MAGIC, kind, flags, session, seq, len(payload), crc32c(payload)) + payload


def decode(frame):
    """(type, flags, session, seq, payload bytes). TextGenProtocolError: not a frame."""
    if len(frame) < 32:
        raise TextGenProtocolError(f"a frame of {len(frame)} bytes; 32 is the least")
    magic, kind, flags, session, seq, length, crc = HEADER.unpack_from(frame)
    payload = frame[32:]
    if magic != MAGIC:
        raise TextGenProtocolError(f"the frame begins with {magic:#x}, not with TXG1: another program listens at this address")
    if length != len(payload):
        raise TextGenProtocolError(f"the frame names {length} bytes of payload and has {len(payload)}")
    if crc != crc32c(payload):
        raise TextGenProtocolError("the checksum of a frame is wrong")
    return kind, flags, session, seq, payload


def parse(kind, payload):
    """The message of a payload."""
    cls = CLASSES.get(kind)
    if cls is None:
        raise TextGenProtocolError(f"message type {kind} is not known")
    try:
        return cls.FromString(payload)
    except Exception as e:
        raise TextGenProtocolError(f"{cls.DESCRIPTOR.name}: {e}") from None


def plain(message):
    """A flat message as an object of its own, which can be pickled."""
    values = {f.name: getattr(message, f.name) for f in message.DESCRIPTOR.fields}
    scalars = (int, float, bool, str, bytes)
    return types.SimpleNamespace(**{name: v if isinstance(v, scalars) else tuple(v) for name, v in values.items()})


def tokens_to_bytes(tokens):
    """Token ids as the wire wants them."""
    return np.ascontiguousarray(tokens, dtype="<u4").tobytes()


def tokens_of(data):
    return np.frombuffer(data, "<u4")


def rewards_of(data):
    return np.frombuffer(data, "<f8")
