"""Recognise the format of a file: HLO text, StableHLO, a proto of XLA, or no program.

For a file that is no HLO program the error says what it is, and how to get one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from hlo.errors import Error
from hlo.text.patterns import pattern
from hlo_oracle.loading import wire_format

MOST_BYTES = 1 << 31  # bytes of a file, after decompression
_BLOCK = 1 << 10  # the first bytes that are read of a gzip member; the blocks double
_GZIP = b"\x1f\x8b"
_BYTECODE = b"ML\xefR"  # of MLIR
_HEAD = 1 << 16  # bytes in which a text says what it is


class Kind(Enum):
    """The formats of programs."""

    HLO = auto()
    STABLEHLO = auto()  # text or bytecode of MLIR
    PROTO = auto()  # HloModuleProto, HloProto or HloSnapshot


class Recognised(NamedTuple):
    """A program's decompressed bytes and their format; HLO text is decoded."""

    kind: Kind
    data: bytes
    text: str = ""


def recognised(data: bytes) -> Recognised:
    """Determine the format of a program; raises Error for unknown bytes."""
    data = _decompressed(data)
    if data.startswith(_BYTECODE):
        return Recognised(Kind.STABLEHLO, data)
    for magic, what in _MAGIC.items():
        if data.startswith(magic):
            raise Error(what)
    text = _decoded(data)
    if text is None:
        if module_proto(data) is not None:
            return Recognised(Kind.PROTO, data)
        exported = _exported(data)
        if exported is not None:
            return Recognised(Kind.STABLEHLO, exported)
        raise Error(_binary(data))
    return _text(text)


def _decompressed(data: bytes) -> bytes:
    """Decompress all gzip members of a file; return other bytes unchanged."""
    if not data.startswith(_GZIP):
        return data
    found, begin, given = bytearray(), 0, memoryview(data)
    while data.startswith(_GZIP, begin):
        unpacker = zlib.decompressobj(wbits=31)  # of gzip
        size = _BLOCK
        while not unpacker.eof:
            # zlib copies what it is given after a member's end: only a part of the file, then.
            block = given[begin : begin + size]
            if not block:
                raise Error("a damaged gzip file: it ends too early")
            try:
                # One byte beyond the limit shows that there is more, and no more memory is taken.
                found += unpacker.decompress(block, MOST_BYTES + 1 - len(found))
            except zlib.error as error:
                raise Error(f"a damaged gzip file ({error})") from error
            if len(found) > MOST_BYTES:
                raise Error(f"more than {MOST_BYTES} bytes when it is decompressed")
            begin, size = begin + len(block) - len(unpacker.unused_data), 2 * size
    return bytes(found)


def _exported(data: bytes) -> bytes | None:
    """Extract the StableHLO bytecode of a function serialised by ``jax.export``; None for other
    bytes.

    That is a table of FlatBuffers, in which the bytes of a vector follow their number, of 32 bits
    (https://flatbuffers.dev/internals).
    """
    if data.count(_BYTECODE) != 1:
        return None
    begin = data.index(_BYTECODE)
    size = int.from_bytes(data[max(begin - 4, 0) : begin], "little")
    return data[begin : begin + size] if 0 < size <= len(data) - begin else None


_BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


# What no text has, of the first 32 characters: not white space, nor the escape of terminals.
_CONTROLS = [bytes((byte,)) for byte in (*range(9), *range(14, 27), *range(28, 32))]


def _decoded(data: bytes) -> str | None:
    """Decode text, without its byte order mark; None for bytes that are no text.

    Invalid UTF-8, which may be in comments and names, is replaced.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    head = data[:_HEAD]
    for first, encoding in enumerate(("utf-16-be", "utf-16-le")):
        # Characters of ASCII, half of whose bytes are 0: no other bytes look so.
        if len(head) > 1 and not any(head[first::2]) and b"\0" not in head[1 - first :: 2]:
            return data.decode(encoding, errors="replace")
    if b"\0" in head or sum(map(head.count, _CONTROLS)) > len(head) // 64:
        return None
    return data.decode("utf-8", errors="replace")


def _text(text: str) -> Recognised:
    head = _without_comments(text[:_HEAD]) or _without_comments(text)
    if not head:
        raise Error("no program: the text is empty" if not text.strip() else "nothing but comments")
    if re.match(r"#\w+ = |module\b|func\.func\b|\"builtin\.module\"", head):
        return Recognised(Kind.STABLEHLO, text.encode("utf-8"))
    for begin, what in _TEXTS.items():
        if re.match(begin, head):
            raise Error(what)
    return Recognised(Kind.HLO, b"", text)


_COMMENTS = pattern(r"(?:\s++|//[^\n]*+(?:\n|\Z)|/\*(?:[^*]++|\*(?!/))*+\*/)*+", re.ASCII)


def _without_comments(text: str) -> str:
    """Strip leading white space and comments."""
    return _COMMENTS.sub("", text, count=1)


_PRINT_HLO = "print HLO with jax.jit(f).lower(x).as_text('hlo'), or give check(f, x) the function"
_MAGIC = {
    b"\x93NUMPY": "an array of NumPy (.npy), no program: arguments are given with --args FILE.npz",
    b"PK\x03\x04": "a zip archive (.npz, .keras, .pt2), no program: arrays are given with"
    " --args FILE.npz",
    b"\x89HDF": "an HDF5 file (weights), no program",
    b"\x7fELF": "machine code (ELF), no program: XLA_FLAGS=--xla_dump_to=DIR writes its HLO",
    b"BC\xc0\xde": "LLVM bitcode, which XLA makes of HLO: set XLA_FLAGS=--xla_dump_to=DIR and give"
    " the directory, or a file in it that ends in before_optimizations.txt",
}
_DUMP = "set XLA_FLAGS=--xla_dump_to=DIR and give the directory"
_TEXTS = {
    r"\{ ?lambda\b|let lambda\b": f"a jaxpr, from before HLO: {_PRINT_HLO}",
    r"; ModuleID|source_filename ?=|target (triple|datalayout)|define \w": "LLVM IR, which XLA"
    f" makes of HLO: {_DUMP}",
    r"\.version \d|\.target sm_|\.visible \.": f"PTX, which XLA makes of HLO for a GPU: {_DUMP}",
    r"(node|versions|library) \{\s*\w+(:| \{)": "a GraphDef of TensorFlow, from before HLO:"
    " f.experimental_get_compiler_ir(x)(stage='hlo') of a tf.function(jit_compile=True) gives HLO",
    r"(def |class |import |from |@)\w+[^\n=]*(:|import\b|\n|\Z)|\"\"\"": "Python, no program of"
    f" HLO: {_PRINT_HLO}",
    r"<!DOCTYPE|<html|<\?xml": "HTML or XML, no program: XLA's text dumps end in .txt",
    r"ir_version: ": "an ONNX model: convert it to StableHLO (onnx-mlir, or torch.onnx and JAX)",
    r"\{\s*\"": "JSON, no program: a recipe of arguments is given with --recipe",
}


def module_proto(data: bytes, depth: int = 2) -> bytes | None:
    """Extract the HloModuleProto of a message: itself, field 1 of an HloProto (or of an
    HloUnoptimizedSnapshot), field 1 of that field of an HloSnapshot; None if there is none."""
    try:
        found = wire_format.fields(data)
    except wire_format.NotAMessage:
        return None
    if _are_computations(found.get(3, [])) and _is_name(found.get(2, [])):
        return data
    inside = found.get(1, [])
    if depth and len(inside) == 1 and isinstance(inside[0], bytes):
        return module_proto(inside[0], depth - 1)
    return None


def _are_computations(values: list[int | bytes]) -> bool:
    """Test for HloComputationProtos: with a name (1) and instructions (2), which have opcodes."""
    for value in values:
        if not isinstance(value, bytes) or not wire_format.is_message(value):
            return False
        found = wire_format.fields(value)
        instructions = found.get(2, [])
        are_messages = all(isinstance(x, bytes) for x in instructions)
        if not _is_name(found.get(1, [])) or not instructions or not are_messages:
            return False
    return bool(values)


def _is_name(values: list[int | bytes]) -> bool:
    (value,) = values if len(values) == 1 else (b"",)
    return isinstance(value, bytes) and value.isascii() and value.decode("ascii").isprintable()


def _binary(data: bytes) -> str:
    """Describe bytes that are neither text nor a program, for the error message."""
    try:
        found = wire_format.fields(data)
    except wire_format.NotAMessage:
        return "neither text nor a proto of XLA: HLO is text, or the .pb of an XLA dump"
    return next(
        (what for test, what in _PROTOS.items() if test(found)),
        "a proto that has no HLO module: known are HloModuleProto, HloProto and HloSnapshot",
    )


def _is_onnx(found: wire_format.Fields) -> bool:
    return isinstance(found.get(1, [b""])[0], int) and {7, 8} <= {*found}


def _is_saved_model(found: wire_format.Fields) -> bool:
    """Test for a SavedModel: its version (1), and MetaGraphDefs (2)."""
    graphs = found.get(2, [0])
    return (
        {*found} <= {1, 2}
        and isinstance(found.get(1, [b""])[0], int)
        and all(isinstance(graph, bytes) and wire_format.is_message(graph) for graph in graphs)
    )


def _is_graph_def(found: wire_format.Fields) -> bool:
    return all(isinstance(x, bytes) and wire_format.is_message(x) for x in found.get(1, [0]))


def _is_memory_report(found: wire_format.Fields) -> bool:
    """Test for XLA's report of memory: messages (1) that begin with a number of bytes, where those
    of a GraphDef begin with a name."""
    parts = found.get(1, [0])
    return {*found} == {1} and all(
        isinstance(part, bytes)
        and wire_format.is_message(part)
        and isinstance(wire_format.fields(part).get(1, [b""])[0], int)
        for part in parts
    )


_PROTOS: dict[Callable[[wire_format.Fields], bool], str] = {
    _is_onnx: "an ONNX model, no HLO: convert it to StableHLO first",
    _is_memory_report: "XLA's report of the memory that a program takes, no program: the file"
    " beside it that ends in before_optimizations.txt, or .hlo.pb, is one",
    _is_saved_model: "a SavedModel of TensorFlow, from before HLO: of model ="
    " tf.saved_model.load(DIR) and f = model.signatures['serving_default']"
    " hlo_oracle.tensorflow.jit(f).text(x) is the HLO",
    _is_graph_def: "a GraphDef of TensorFlow, from before HLO: a tf.function(jit_compile=True) has"
    " experimental_get_compiler_ir(x)(stage='hlo')",
}
