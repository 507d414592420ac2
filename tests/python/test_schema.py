#!/usr/bin/env python3
"""The client's own reading of textgen.proto is protoc's; its checksum is CRC-32C; frames survive and bad ones are refused."""
import os
import subprocess
import sys
import tempfile

import numpy as np

import support
from google.protobuf import descriptor_pb2
from textgen_gym import TextGenProtocolError, pb, schema, wire


def test_schema_is_protocs():
    path = os.path.join(support.ROOT, "proto", "textgen.proto")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        subprocess.run(["protoc", f"--descriptor_set_out={out}", "-I", support.ROOT, path], check=True)
        with open(out, "rb") as f:
            theirs = descriptor_pb2.FileDescriptorSet.FromString(f.read()).file[0]
    with open(path, encoding="utf-8") as f:
        ours = schema.parse(f.read())
    for message in theirs.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


def test_crc():
    """Against the definition, bit by bit."""
    def crc(data):
        state = 0xFFFFFFFF
        for byte in data:
            state ^= byte
            for _ in range(8):
                state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
        return state ^ 0xFFFFFFFF
    assert wire.crc32c_numpy(b"123456789") == wire.crc32c(b"123456789") == 0xE3069283
    rng = np.random.default_rng(0)
    for n in [*range(70), 4095, 4096, 4097, 4098, 4099, 4100, 8192, 8193, 12345]:
        data = rng.bytes(n)
        assert wire.crc32c_numpy(data) == wire.crc32c(data) == crc(data), n


def test_frames():
    payload = pb.SampleRange(split=1, n=3).SerializeToString()
    frame = wire.encode(wire.SAMPLE_RANGE, payload, 7, 9)
    assert wire.decode(frame) == (wire.SAMPLE_RANGE, 0, 7, 9, payload)
    bad = [frame[:20], b"x" * 40, frame + b"x", frame[:-1] + bytes([frame[-1] ^ 1])]
    for data in bad:
        try:
            wire.decode(data)
            raise AssertionError(data)
        except TextGenProtocolError:
            pass
    try:
        wire.parse(wire.SAMPLE_RANGE, b"\xff\xff")
        raise AssertionError("not a message")
    except TextGenProtocolError:
        pass


if __name__ == "__main__":
    support.main(sys.modules[__name__])
