"""The codec against Google's protobuf, on random messages of every type.

Ours to theirs: payloads of build/tests/proto-eval are parsed by protobuf and compared field by field.
Theirs to ours: messages filled at random by protobuf are decoded by proto-eval.
Damaged payloads: what protobuf refuses we refuse; what we accept it accepts, with the same content. We may refuse more
(proto/wire.h says what), never less.
"""
import json, os, random, struct, subprocess, sys, tempfile

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    print("skipped: no protobuf package")
    print("0 passed, 0 failed")
    sys.exit(0)

BUILD = os.environ.get("BUILD", "build")
EVAL = [os.path.join(BUILD, "tests", "proto-eval")]
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 31)))
N = int(os.environ.get("N", "1800"))
TYPES = {
    "HELLO": "Hello", "WELCOME": "Welcome", "OPEN_SLOTS": "OpenSlots", "SLOTS_OPENED": "SlotsOpened",
    "CLOSE_SLOTS": "CloseSlots", "RESET": "ResetBatch", "RESET_REPLY": "ResetReply", "STEP": "StepBatch",
    "STEP_REPLY": "StepReply", "SAMPLE_RANGE": "SampleRange", "SAMPLES": "Samples", "METRIC": "MetricRequest",
    "METRIC_REPLY": "MetricReply", "SCORE": "ScoreRequest", "SCORE_REPLY": "ScoreReply", "HEARTBEAT": "Heartbeat",
    "ERROR": "Error", "BYE": "Bye", "RESTORE": "RestoreBatch", "RESTORE_REPLY": "RestoreReply",
    "SNAPSHOT": "SnapshotRequest", "SNAPSHOT_REPLY": "SnapshotReply", "CANCEL": "Cancel",
}
IDS = {"prompt", "tokens", "context_start"}          # bytes fields that hold u32 ids
DOUBLES = {"rewards", "samples"}    # bytes fields that hold f64


def load_schema():
    with tempfile.NamedTemporaryFile(suffix=".pb") as f:
        subprocess.run(["protoc", "--descriptor_set_out=" + f.name, "proto/textgen.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    return {t: message_factory.GetMessageClass(pool.FindMessageTypeByName("textgen.v1." + n)) for t, n in TYPES.items()}


def repeated(f):
    return f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED


def bits(x):
    return struct.pack(">d", x if x != 0 else 0.0).hex()  # -0.0 is a default for some encoders


def content(m, top=None):
    """The JSON that proto-eval prints for this message."""
    out = {}
    for f in m.DESCRIPTOR.fields:
        v = getattr(m, f.name)
        if top == "OPEN_SLOTS" and f.name == "n":
            continue  # redundant: the length of slots
        if repeated(f):
            out[f.name] = [one(f, x) for x in v]
        elif f.type == f.TYPE_MESSAGE:
            limits = f.message_type.name == "Limits"  # absent reads as zeros
            out[f.name] = content(v) if limits or m.HasField(f.name) else None
        else:
            out[f.name] = one(f, v)
    if m.DESCRIPTOR.name == "Generation" and not m.has_text:
        out["text"] = ""
    return out


def one(f, v):
    if f.type == f.TYPE_MESSAGE:
        return content(v)
    if f.type == f.TYPE_DOUBLE:
        return bits(v)
    if f.type == f.TYPE_BYTES:
        if f.name in IDS:
            return list(struct.unpack("<%dI" % (len(v) // 4), v))
        if f.name in DOUBLES:
            return [struct.pack(">d", x).hex() for x in struct.unpack("<%dd" % (len(v) // 8), v)]
        return v.hex()
    if f.name == "split" and v == 0:
        return 1  # train by default
    return v


def normal(x):
    """-0.0 in scalar doubles, as bits() does; blobs keep their bits in lists."""
    if isinstance(x, dict):
        return {k: ("0" * 16 if v == "8" + "0" * 15 else normal(v)) for k, v in x.items()}
    return [normal(v) for v in x] if isinstance(x, list) else x


def text(r):
    return "".join(r.choice("aZ \n\"\\éß漢字😀\U0010ffff€") for _ in range(r.randrange(20)))


def fill(r, m, depth=0):
    for f in m.DESCRIPTOR.fields:
        if repeated(f):
            for _ in range(r.randrange(6)):
                if f.type == f.TYPE_MESSAGE:
                    fill(r, getattr(m, f.name).add(), depth + 1)
                else:
                    getattr(m, f.name).append(value(r, f))
        elif f.type == f.TYPE_MESSAGE:
            if r.random() < 0.5:
                sub = getattr(m, f.name)
                sub.SetInParent()
                fill(r, sub, depth + 1)
        else:
            setattr(m, f.name, value(r, f))
    if m.DESCRIPTOR.name == "Hello":
        m.peer_uuid, m.role = r.randbytes(16), r.randrange(1, 5)
    if m.DESCRIPTOR.name == "OpenSlots":
        m.n = r.choice([0, len(m.slots)])
    if m.DESCRIPTOR.name == "StepResult":
        m.n_applied = len(m.rewards) // 8
    if m.DESCRIPTOR.name in ("RestoreItem", "SlotState"):
        m.rewards = struct.pack("<%dd" % (n := len(m.tokens) // 4), *(r.gauss(0, 1) for _ in range(n)))
    return m


def value(r, f):
    if f.type == f.TYPE_STRING:
        return text(r)
    if f.type == f.TYPE_BOOL:
        return r.random() < 0.5
    if f.type == f.TYPE_DOUBLE:
        return r.choice([0.0, 1.0, -1.5, float("inf"), r.gauss(0, 1), 5e-324])
    if f.type == f.TYPE_ENUM:
        return r.choice([v.number for v in f.enum_type.values])
    if f.type == f.TYPE_BYTES:
        if f.name in IDS:
            return struct.pack("<%dI" % (n := r.randrange(9)), *(r.randrange(1 << 31) for _ in range(n)))
        if f.name in DOUBLES:
            return struct.pack("<%dd" % (n := r.randrange(9)), *(r.gauss(0, 1) for _ in range(n)))
        return r.randbytes(16)
    return r.getrandbits(r.randrange(1, 65 if f.type == f.TYPE_UINT64 else 33))


def decode_all(lines):
    out = subprocess.run(EVAL + ["decode"], input="".join(l + "\n" for l in lines), capture_output=True, text=True, check=True)
    return out.stdout.splitlines()


passed = failed = 0


def check(ok, what):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok and failed <= 10:
        print("FAILED", what[:2000])


def main():
    classes, r = load_schema(), random.Random(SEED)
    print("seed", SEED)
    ours = subprocess.run(EVAL + ["random", str(SEED), str(N)], capture_output=True, text=True, check=True).stdout
    payloads = []
    for line in ours.splitlines():
        t, h, j = line.split(" ", 2)
        raw = bytes.fromhex(h)
        payloads.append((t, raw))
        want, got = json.loads(j), content(classes[t].FromString(raw), t)
        check(normal(want) == normal(got), f"ours to theirs: {t} {h}\n  {want}\n  {got}")

    made = []
    for i in range(N):
        t = list(TYPES)[i % len(TYPES)]
        made.append((t, fill(r, classes[t]())))
    answers = decode_all(f"{t} {m.SerializeToString().hex()}" for t, m in made)
    check(len(answers) == len(made), "one answer for each message")
    for (t, m), a in zip(made, answers):
        ok = not a.startswith("error ") and normal(json.loads(a)) == normal(content(m, t))
        check(ok, f"theirs to ours: {t} {m.SerializeToString().hex()}\n  {a}\n  {content(m, t)}")

    damaged = []
    for t, raw in payloads + [(t, m.SerializeToString()) for t, m in made]:
        b = bytearray(raw)
        for _ in range(r.randrange(1, 4)):
            if b:
                b[r.randrange(len(b))] = r.randrange(256)
        damaged.append((t, bytes(b[:r.randrange(len(b) + 1)] if r.random() < 0.2 else b)))
    stricter = both = neither = 0
    for (t, raw), a in zip(damaged, decode_all(f"{t} {raw.hex()}" for t, raw in damaged)):
        try:
            m = classes[t].FromString(raw)
        except Exception:  # DecodeError
            m = None
        if a.startswith("error "):
            stricter, neither = stricter + (m is not None), neither + (m is None)
            check(True, "")
            continue
        both += 1
        ok = m is not None and normal(json.loads(a)) == normal(content(m, t))
        check(ok, f"damaged: {t} {raw.hex()}\n  {a}\n  {m and content(m, t)}")
    print(f"damaged payloads: both accept {both}, both refuse {neither}, only we refuse {stricter}")


main()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
