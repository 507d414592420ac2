"""Message classes straight from textgen.proto, which is shipped with this package.

The schema uses a small part of the proto3 language (enums, flat messages, scalar and message fields), so it is read here and handed to
protobuf's runtime. There is no generated file: nothing to commit, nothing that must match the installed protobuf version, and no
compiler needed at install time. tests/python/test_schema.py compares the result with protoc's.
"""
import os
import re

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {name: getattr(_FIELD, "TYPE_" + name.upper())
            for name in ("double", "float", "int64", "uint64", "int32", "uint32", "bool", "string", "bytes")}
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[A-Za-z_][\w.]*|\d+|[{}=;]', re.S)


class _Reader:
    def __init__(self, text):
        self.tokens = [t for t in _TOKEN.findall(text) if not t.startswith(("//", "/*"))]
        self.at = 0

    def next(self, expected=None):
        if self.at == len(self.tokens):
            raise ValueError("textgen.proto: unexpected end")
        token = self.tokens[self.at]
        self.at += 1
        if expected is not None and token != expected:
            raise ValueError(f"textgen.proto: expected {expected!r}, found {token!r}")
        return token

    def done(self):
        return self.at == len(self.tokens)


def _read_enum(r, enum):
    enum.name = r.next()
    r.next("{")
    name = r.next()
    while name != "}":
        r.next("=")
        enum.value.add(name=name, number=int(r.next()))
        r.next(";")
        name = r.next()


def _read_message(r, message, enums, package):
    message.name = r.next()
    r.next("{")
    word = r.next()
    while word != "}":
        label = _FIELD.LABEL_REPEATED if word == "repeated" else _FIELD.LABEL_OPTIONAL
        kind = r.next() if word == "repeated" else word
        field = message.field.add(name=r.next(), label=label)
        r.next("=")
        field.number = int(r.next())
        r.next(";")
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type = _FIELD.TYPE_ENUM if kind in enums else _FIELD.TYPE_MESSAGE
            field.type_name = f".{package}.{kind}"
        word = r.next()


def parse(text):
    """FileDescriptorProto of a schema's text."""
    file = descriptor_pb2.FileDescriptorProto(name="proto/textgen.proto", syntax="proto3")
    enums = set(re.findall(r"^\s*enum\s+(\w+)", text, re.M))
    r = _Reader(text)
    while not r.done():
        word = r.next()
        if word == "syntax":
            r.next("=")
            r.next('"proto3"')
            r.next(";")
        elif word == "package":
            file.package = r.next()
            r.next(";")
        elif word == "enum":
            _read_enum(r, file.enum_type.add())
        elif word == "message":
            _read_message(r, file.message_type.add(), enums, file.package)
        else:
            raise ValueError(f"textgen.proto: unexpected {word!r}")
    return file


def load(path=None):
    """{name: class or {value name: number}} of every message and enum."""
    with open(path or os.path.join(os.path.dirname(__file__), "textgen.proto"), encoding="utf-8") as f:
        file = parse(f.read())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{m.name}")) for m in file.message_type}
    classes.update({e.name: {v.name: v.number for v in e.value} for e in file.enum_type})
    return classes
