"""Read and print constants. Source of the grammar: XLA's ``ParseDenseLiteral``, ``literal.cc``."""

from __future__ import annotations

import math
import re

from hlo.literal import Literal
from hlo.text.numbers import NumberError, read_numbers, show_numbers
from hlo.text.patterns import pattern
from hlo.text.scanning import Unbalanced, closing, parts, without_comments
from hlo.types import ArrayShape, ElementType, Shape, TupleShape
from hlo.values import Array

_DECIMAL = r"-?(?:\d++(?:\.\d*+)?+(?:[eE][+\-]?\d++)?+|nan(?:\(0x[0-9a-fA-F]{1,16}+\))?+|inf)"
# What a number of a kind looks like, and what it is called in errors.
_SPELLINGS = {
    "pred": (r"(?:true|false|-?\d{1,40}+)", "true, false or an integer"),
    "signed": (r"-?\d{1,40}+", "an integer"),
    "unsigned": (r"-?\d{1,40}+", "an integer"),
    "float": (_DECIMAL, "a number"),
    "complex": (rf"\(\s*+{_DECIMAL}\s*+,\s*+{_DECIMAL}\s*+\)", "a complex number (re, im)"),
}
_NUMBERS = {kind: pattern(spelling, re.A) for kind, (spelling, _) in _SPELLINGS.items()}
_SEQUENCES = {
    kind: pattern(rf"[\s,{{}}]*+(?:{spelling}(?:[\s,{{}}]++|\Z))*+", re.A)
    for kind, (spelling, _) in _SPELLINGS.items()
}
_ROW = pattern(r"\{([^{}]*+)\}")
_BETWEEN_ROWS = pattern(r"[\s,]++")
_AROUND = str.maketrans(",{}", "   ")
_ELIDED = pattern(r"\s*+\{\s*+\.\.\.\s*+\}\s*+")
_FEW = 10  # XLA prints longer constants as {...} unless asked
_DIMENSIONS = 64  # of NumPy's arrays
_BYTES = 2**63  # NumPy counts them so where a dimension is 0, too
_SKELETON = 2**20  # more braces around nothing are not written


class LiteralError(ValueError):
    """An error in the text of a constant, at offset ``position``."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


# Reading


def read_literal(shape: Shape, text: str) -> Literal:
    """Read a constant of a shape; ``{...}`` gives an elided one, whose value is None."""
    if "/" in text:
        try:
            text = without_comments(text)
        except Unbalanced as error:
            raise LiteralError(str(error), error.position) from None
    if isinstance(shape, TupleShape):
        return _read_tuple(shape, text)
    if not shape.element_type.is_array:
        raise LiteralError(f"a constant cannot be of type {shape.element_type}")
    if shape.is_dynamic:
        raise LiteralError(f"a constant cannot have bounded dimensions: {shape}")
    if shape.rank > _DIMENSIONS:
        raise LiteralError(f"a constant cannot have more than {_DIMENSIONS} dimensions")
    if _ELIDED.fullmatch(text):
        if not shape.rank:
            raise LiteralError("{...} does not stand for a scalar")
        return Literal(shape, None)
    if math.prod(filter(None, shape.dims)) * shape.element_type.numpy.itemsize >= _BYTES:
        raise LiteralError(f"{shape} has more bytes than 64 bits count")
    number = None if shape.dims else _NUMBERS[shape.element_type.kind].fullmatch(text)
    value = _read_array(shape, text) if number is None else _read_scalar(shape, text)
    value.flags.writeable = False
    return Literal(shape, value)


def _read_tuple(shape: TupleShape, text: str) -> Literal:
    start = len(text) - len(text.lstrip())
    if not text.startswith("(", start):
        raise LiteralError("expected ( of a tuple constant", start)
    try:
        end = closing(text, start)
    except Unbalanced as error:
        raise LiteralError(str(error), error.position) from None
    if text[end + 1 :].strip():
        raise LiteralError("expected nothing behind a tuple constant", end + 1)
    fields = parts(text, start + 1, end)
    if len(fields) != len(shape.elements):
        raise LiteralError(_count(len(shape.elements), "", shape, len(fields)), start)
    values = []
    for (first, last), element in zip(fields, shape.elements, strict=True):
        try:
            values.append(read_literal(element, text[first:last]))
        except LiteralError as error:
            raise LiteralError(str(error), first + error.position) from None
    return Literal(shape, tuple(values))


def _read_scalar(shape: ArrayShape, text: str) -> Array:
    """Read a text that is a single number."""
    tokens = _NUMBERS["float"].findall(text) if shape.is_complex else [text]
    try:
        return read_numbers(shape.element_type, tokens).reshape(())
    except NumberError as error:
        raise LiteralError(str(error), _place(shape.element_type, text, error.place)) from None


def _read_array(shape: ArrayShape, text: str) -> Array:
    kind = shape.element_type.kind
    sequence = _SEQUENCES[kind].match(text)
    assert sequence is not None
    if sequence.end() < len(text):
        raise LiteralError(f"expected {_SPELLINGS[kind][1]}", sequence.end())
    tokens: list[str] = []
    pairs = shape.is_complex
    for start, row in _rows(shape, text):
        before = len(tokens)
        tokens += _NUMBERS["float"].findall(row) if pairs else row.translate(_AROUND).split()
        _check_row(shape, tokens, before, start)
    try:
        return read_numbers(shape.element_type, tokens).reshape(shape.dims)
    except NumberError as error:
        place = _place(shape.element_type, text, error.place)
        raise LiteralError(str(error), place) from None


def _rows(shape: ArrayShape, text: str) -> list[tuple[int, str]]:
    """Return the innermost rows, each with its offset; raise LiteralError if the braces do not
    match the dims."""
    if not shape.rank:
        if "{" in text or "}" in text:
            raise LiteralError(f"expected no braces for {shape}")
        return [(0, text)]
    rows = [(match.start(), match[1]) for match in _ROW.finditer(text)]
    outline = _BETWEEN_ROWS.sub("", _ROW.sub("#", text))
    # Limited by the text's length, as f32[1000000000,1] would take a gigabyte of braces. Braces
    # around nothing are a row of the text, too.
    expected = _outline(shape.dims[:-1], "#", len(text)).replace("{}", "#")
    # {} stands for any array without elements: show_literal writes f32[2097152,0] so.
    if (expected and outline == expected) or (outline == "#" and not shape.elements):
        return rows
    levels = "{" * shape.rank + "…" + "}" * shape.rank
    sizes = "x".join(map(str, shape.dims))
    hint = "" if "{" in text else "; broadcast a scalar constant to have one value everywhere"
    raise LiteralError(f"expected braces {levels} around {sizes} elements for {shape}{hint}")


def _outline(dims: tuple[int, ...], row: str, limit: int) -> str:
    """Return the braces of an array around its rows; "" if they are longer than ``limit``."""
    if 0 in dims:
        dims = dims[: dims.index(0) + 1]  # what is inside of nothing takes no space
    for dim in reversed(dims):
        if len(row) * dim > limit:
            return ""
        row = "{" + row * dim + "}"
    return row


def _check_row(shape: ArrayShape, tokens: list[str], before: int, start: int) -> None:
    found = (len(tokens) - before) // (2 if shape.is_complex else 1)
    wanted = (shape.dims[-1] if shape.rank else 1) if shape.elements else 0
    if found != wanted:
        in_row = " in each row" if shape.rank > 1 else ""
        raise LiteralError(_count(wanted, in_row, shape, found), start)


def _count(wanted: int, where: str, shape: Shape, found: int) -> str:
    # Without separators of thousands: these are numbers of the text.
    return f"expected {wanted} element{'s' * (wanted != 1)}{where} for {shape}, found {found}"


def _place(element_type: ElementType, text: str, number: int) -> int:
    """Return the offset of the number with this index (complex numbers are two)."""
    spelling = _NUMBERS["float" if element_type.is_complex else element_type.kind]
    return next(m.start() for n, m in enumerate(spelling.finditer(text)) if n == number)


# Printing


def show_literal(literal: Literal, large: bool = True) -> str:
    """Format a constant so that it reads back to the same bits; ``{...}`` for more than ten
    elements unless ``large``."""
    if isinstance(literal.value, tuple):
        return "(" + ", ".join(show_literal(part, large) for part in literal.value) + ")"
    shape = literal.shape
    if not isinstance(shape, ArrayShape):
        return "()"
    if literal.value is None or (shape.elements > _FEW and not large):
        return "{...}"
    if not shape.elements:
        return _outline(shape.dims[:-1], "{}", _SKELETON) or "{}"
    return _show(literal.value, shape)


def _show(value: Array, shape: ArrayShape) -> str:
    texts = show_numbers(shape.element_type, value.reshape(-1), not shape.rank)
    for dim in reversed(shape.dims):
        texts = ["{" + ", ".join(texts[n : n + dim]) + "}" for n in range(0, len(texts), dim)]
    return texts[0]
