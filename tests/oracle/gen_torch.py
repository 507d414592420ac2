"""Writes tests/golden/torch: state dicts as torch.save writes them, each NAME.bin beside the same tensors as NAME.safetensors (read by
tests/unit/test_torch_file.c), hostile files (hostile_*.bin), and the seeds of tests/fuzz/corpus/torch."""
import collections
import io
import json
import os
import pickle
import shutil
import struct
import sys
import types
import zipfile

import torch
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "../golden/torch")
CORPUS = os.path.join(HERE, "../fuzz/corpus/torch")


def tensors():
    """One of every type, shape and way to share memory."""
    g = torch.Generator().manual_seed(1)
    base = torch.randn(6, 5, generator=g)
    return {
        "f32": torch.randn(3, 4, generator=g), "f16": torch.randn(2, 3, generator=g).half(),
        "bf16": torch.randn(7, generator=g).bfloat16(), "f64": torch.randn(2, 2, 2, generator=g).double(),
        "i64": torch.arange(5), "i32": torch.arange(3, dtype=torch.int32), "i16": torch.arange(3, dtype=torch.int16),
        "u8": torch.arange(4, dtype=torch.uint8), "i8": torch.arange(4, dtype=torch.int8), "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "whole": base, "same": base, "rows": base[2:4], "columns": base[:, 1:3],
        "turned": base.t(), "steps": base[::2, ::3], "permuted": torch.randn(2, 3, 4, generator=g).permute(2, 0, 1),
        "repeated": torch.randn(1, 3, generator=g).expand(4, 3), "one": base[3:4, 2:3], "position_ids": torch.arange(8).expand(1, -1),
        "parameter": torch.nn.Parameter(torch.randn(4, generator=g)),
    }


def noted():
    """Tensors and parameters to which somebody gave attributes, which torch.save keeps: other functions make these."""
    base = torch.arange(6.0).reshape(2, 3)
    out = {"tensor": base, "turned": base.t(), "parameter": torch.nn.Parameter(base + 1), "plain": base + 2}
    for name in ("tensor", "turned", "parameter"):
        out[name].split = [1, "rows", {"parts": None}]
    return out


class Python2Pickler(pickle._Pickler):
    """As Python 2 pickled: texts are bytes, and an OrderedDict is made of a list of its items."""

    def save_text(self, text):
        data = text.encode()
        self.write((b"U" + bytes([len(data)]) if len(data) < 256 else b"T" + struct.pack("<i", len(data))) + data)
        self.memoize(text)
    dispatch = {**pickle._Pickler.dispatch, str: save_text}

    def reducer_override(self, value):
        if type(value) is not collections.OrderedDict:
            return NotImplemented
        made = (type(value), ([list(item) for item in value.items()],))
        return made + (vars(value),) if vars(value) else made


def python2():
    """The module that torch.save is given."""
    module = types.ModuleType("python2")
    module.Pickler, module.dump = Python2Pickler, lambda value, file, protocol: Python2Pickler(file, protocol).dump(value)
    return module


def zip64(data):
    """The same archive with every size and offset in its 64-bit form."""
    out, central = io.BytesIO(), b""
    names = zipfile.ZipFile(io.BytesIO(data))
    for name in names.namelist():
        body, at, encoded = names.read(name), out.tell(), name.encode()
        out.write(struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(encoded), 20))
        out.write(encoded + struct.pack("<2H2Q", 1, 16, len(body), len(body)) + body)
        central += struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(encoded), 28, 0, 0, 0, 0,
                               0xFFFFFFFF)
        central += encoded + struct.pack("<2H3Q", 1, 24, len(body), len(body), at)
    begin, n = out.tell(), len(names.namelist())
    out.write(central)
    end = out.tell()
    out.write(struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, n, n, len(central), begin))
    out.write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
    out.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    return out.getvalue()


def saved(value, **how):
    buffer = io.BytesIO()
    torch.save(value, buffer, **how)
    return buffer.getvalue()


class Runs:
    """What an attacker puts into a weight file."""

    def __reduce__(self):
        return os.system, ("echo this must never run",)


def archive(pickle, storages=(), name="x"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(f"{name}/data.pkl", pickle)
        z.writestr(f"{name}/byteorder", "little")
        for key, body in storages:
            z.writestr(f"{name}/data/{key}", body)
    return out.getvalue()


def one_tensor(count, offset, shape, stride, kind=b"FloatStorage", name=b"w", key=b"0", marks=b"", more=b""):
    """The pickle of {"w": tensor} with those numbers, whatever they are; more: behind both, which are remembered as 0 and 1."""
    def number(v):
        return b"\x8a\x08" + struct.pack("<q", v)

    def numbers(list_):
        return b"(" + b"".join(number(v) for v in list_) + b"t"

    def text(t):
        return b"X" + struct.pack("<I", len(t)) + t
    storage = b"(" + text(b"storage") + b"ctorch\n" + kind + b"\n" + text(key) + text(b"cpu") + number(count) + b"tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(shape) + numbers(stride) + b"\x89N" + marks + b"tR"
    if more:
        return b"\x80\x02}(" + text(name) + b"q\0" + tensor + b"q\1" + more + b"u."
    return b"\x80\x02}" + text(name) + tensor + b"s."


def hostile():
    good = archive(one_tensor(6, 0, [2, 3], [3, 1]), [("0", bytes(24))])
    big = 1 << 40
    cases = {
        "runs": saved({"w": Runs()}), "runs_old": saved({"w": Runs()}, _use_new_zipfile_serialization=False),
        "not_a_table": saved([torch.zeros(2)]), "not_a_tensor": saved({"w": 3}),
        "huge_shape": archive(one_tensor(6, 0, [big, big], [1, 1]), [("0", bytes(24))]),
        "huge_storage": archive(one_tensor(big, 0, [big], [1]), [("0", bytes(24))]),
        "repeats_without_end": archive(one_tensor(6, 0, [big], [0]), [("0", bytes(24))]),
        "offset": archive(one_tensor(6, 1, [2, 3], [3, 1]), [("0", bytes(24))]),
        "stride": archive(one_tensor(6, 0, [2, 3], [4, 1]), [("0", bytes(24))]),
        "negative": archive(one_tensor(6, 5, [2], [-1]), [("0", bytes(24))]),
        "short_entry": archive(one_tensor(6, 0, [2, 3], [3, 1]), [("0", bytes(20))]),
        "no_storage": archive(one_tensor(6, 0, [2, 3], [3, 1])),
        "no_pickle": archive(b"").replace(b"data.pkl", b"data.pkx"),
        "wrong_type": archive(one_tensor(6, 0, [2, 3], [3, 1], b"ComplexFloatStorage"), [("0", bytes(48))]),
        "memo": archive(b"\x80\x02}r\xff\xff\xff\x7f."), "marks": archive(b"\x80\x02" + b"(" * 60000 + b"."),
        "nested": archive(b"\x80\x02" + b")" + b"\x85" * 60000 + b"."), "lists": archive(b"\x80\x02" + b"]" * 60000 + b"."),
        "long_text": archive(b"\x80\x02X\xff\xff\xff\x7fabc."), "inst": archive(b"(ios\nsystem\n."), "obj": archive(b"\x80\x02(cos\nsystem\no."),
        "ext": archive(b"\x80\x02\x82\x01."), "unknown": archive(b"\x80\x02\xee."), "no_stop": archive(b"\x80\x02}"),
        "empty_stack": archive(b"\x80\x02R."), "two_values": archive(b"\x80\x02}}."), "twice": archive(
            one_tensor(6, 0, [2, 3], [3, 1])[:-2] + b"s" + one_tensor(6, 0, [2, 3], [3, 1])[3:], [("0", bytes(24))]),
        "compressed": None, "overlap": None, "cut": good[:-30], "big_endian": good.replace(b"little", b"biggie"),
        "sized_beyond": good.replace(struct.pack("<2I", 24, 24), struct.pack("<2I", 1 << 30, 1 << 30)),
        "sparse": saved({"a": torch.ones(3), "w": torch.eye(2).to_sparse()}),
        "quantized_old": saved({"a": torch.ones(3), "w": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)},
                               _use_new_zipfile_serialization=False),
        "negated": saved({"w": torch._neg_view(torch.ones(3))}),
        "few_entries": good.replace(struct.pack("<2H", 3, 3), struct.pack("<2H", 2, 2)),
        "two_lines": archive(one_tensor(6, 1, [2, 3], [3, 1]).replace(b"\1\0\0\0w", b"\7\0\0\0w\nx\x1b[2J"), [("0", bytes(24))]),
        "long_name": archive(one_tensor(6, 0, [2, 3], [3, 1], name=b"w" * 2000), [("0", bytes(24))]),
        "names_again": archive(one_tensor(6, 0, [2, 3], [3, 1], name=b"w" * 900, more=b"h\0h\1" * 400), [("0", bytes(24))]),
        "names_twice": archive(one_tensor(6, 0, [2, 3], [3, 1], name=b"w" * 900, more=b"h\0h\1" * 9), [("0", bytes(24))]),
        "long_key": archive(one_tensor(6, 0, [2, 3], [3, 1], key=b"0" * 300), [("0", bytes(24))]),
        "many_marks": archive(one_tensor(6, 0, [2, 3], [3, 1], marks=b"}(" + b"".join(b"K%c\x89" % i for i in range(9)) + b"u"), [("0", bytes(24))]),
        "other_type": archive(b"\x80\x02}" + b"X\1\0\0\0w" + b"ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nOrderedDict\nctorch\nTensor\n)}tRs."),
        "old_cut": saved({"w": torch.zeros(100)}, _use_new_zipfile_serialization=False)[:-200],
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("x/data.pkl", b"\x80\x02}." + b" " * 200)
    cases["compressed"] = out.getvalue()
    two = bytearray(archive(one_tensor(6, 0, [2, 3], [3, 1]), [("0", bytes(24)), ("1", bytes(24))]))
    struct.pack_into("<2I", two, two.rfind(b"x/data/0") - 26, 60, 60)
    cases["overlap"] = bytes(two)
    out = io.BytesIO(good)
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("a/data.pkl", one_tensor(6, 0, [2, 3], [3, 1]))
        z.writestr("a/data/0", bytes(24))
    cases["two_tables"] = out.getvalue()
    return cases


def model_folders():
    """golden/families/opt again, as pytorch_model.bin and as shards of it."""
    source = os.path.join(HERE, "../golden/families/opt")
    table = load_file(os.path.join(source, "model.safetensors"))
    for name in ("opt_bin", "opt_shards"):
        os.makedirs(os.path.join(OUT, name))
        shutil.copy(os.path.join(source, "config.json"), os.path.join(OUT, name))
    write(OUT, "opt_bin/pytorch_model.bin", saved(table, _use_new_zipfile_serialization=False))
    names = sorted(table)
    shards = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
    for file, part in shards.items():
        # transposed in memory: the numbers have to be gathered
        write(OUT, "opt_shards/" + file, saved({k: table[k].t().contiguous().t() for k in part}))
    # a small file that would make a large model
    shapes = {"wte.weight": (16, 384), "wpe.weight": (16, 384), "ln_f.weight": (384,), "ln_f.bias": (384,)}
    layer = {"ln_1.weight": (384,), "ln_1.bias": (384,), "attn.c_attn.weight": (384, 1152), "attn.c_attn.bias": (1152,),
             "attn.c_proj.weight": (384, 384), "attn.c_proj.bias": (384,), "ln_2.weight": (384,), "ln_2.bias": (384,),
             "mlp.c_fc.weight": (384, 1536), "mlp.c_fc.bias": (1536,), "mlp.c_proj.weight": (1536, 384), "mlp.c_proj.bias": (384,)}
    shapes.update({f"h.{i}.{k}": v for i in range(4) for k, v in layer.items()})
    os.makedirs(os.path.join(OUT, "hostile_shared"))
    config = dict(model_type="gpt2", vocab_size=16, n_positions=16, n_layer=4, n_embd=384, n_head=12)
    write(OUT, "hostile_shared/config.json", json.dumps(config).encode())
    write(OUT, "hostile_shared/pytorch_model.bin", saved({k: torch.ones(1).expand(v) for k, v in shapes.items()}))
    index = {"metadata": {}, "weight_map": {k: file for file, part in shards.items() for k in part}}
    write(OUT, "opt_shards/pytorch_model.bin.index.json", json.dumps(index, indent=2).encode())


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def main():
    for folder in (OUT, CORPUS):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    linear = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    with torch.no_grad():
        for i, p in enumerate(linear.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape) + i)
    tables = {"zip": (tensors(), {}), "old": (tensors(), {"_use_new_zipfile_serialization": False}),
              "protocol4": (tensors(), {"pickle_protocol": 4}), "module": (linear.state_dict(), {}),
              "module_old": (linear.state_dict(), {"_use_new_zipfile_serialization": False}),
              "python2": (linear.state_dict(), {"pickle_module": python2()}),
              "python2_old": (collections.OrderedDict(tensors()), {"pickle_module": python2(), "_use_new_zipfile_serialization": False}),
              "ordered": (collections.OrderedDict(tensors()), {}), "none": ({}, {}),
              "noted": (noted(), {}), "noted_old": (noted(), {"_use_new_zipfile_serialization": False})}
    files = {name: saved(table, **how) for name, (table, how) in tables.items()}
    files["zip64"] = zip64(files["zip"])
    tables["zip64"] = tables["zip"]
    for name, data in files.items():
        write(OUT, name + ".bin", data)
        write(CORPUS, name, data)
        plain = {k: v.detach().clone().contiguous() for k, v in tables[name][0].items()}
        save_file(plain, os.path.join(OUT, name + ".safetensors"))
        os.chmod(os.path.join(OUT, name + ".safetensors"), 0o644)
    model_folders()
    for name, data in hostile().items():
        write(OUT, f"hostile_{name}.bin", data)
        if len(data) < 5000:
            write(CORPUS, f"hostile_{name}", data)
    for name in ("zip", "module"):
        z = zipfile.ZipFile(io.BytesIO(files[name]))
        write(CORPUS, f"pickle_{name}", z.read([n for n in z.namelist() if n.endswith("data.pkl")][0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
