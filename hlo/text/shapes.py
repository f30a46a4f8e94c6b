"""Read shapes: ``f32[2,<=3]{1,0:T(8,128)}``, ``(s32[], f32[2])``."""

from __future__ import annotations

import math
import re
from itertools import accumulate

from hlo.text.patterns import pattern
from hlo.text.scanning import Unbalanced, closing, fields
from hlo.types import ELEMENT_TYPES, UNBOUNDED, ArrayShape, Layout, Shape, TupleShape

# What the shape of an array looks like in most texts; with white space between its parts, what
# follows may be the { of a computation.
ARRAY = r"(?<!\w)[a-z]\w*+\[[^\[\]\n]*+\](?:\{[^}\n]*+\})?+"
SPACED_ARRAY = r"[a-z]\w*+\s*+\[[^\[\]]*+\](?:\s*+\{(?=\s*+[\d:])[^}]*+\}|\{[^}=]*+\})?+"
_FLAT = pattern(rf"\(\s*+(?:{ARRAY}\s*+(?:,\s*+(?!\))|(?=\))))*+\)", re.ASCII)  # a tuple of arrays
_ELEMENT = pattern(ARRAY, re.ASCII)
_ARRAY = pattern(r"([a-z]\w*+)\s*+\[([^\]]*+)\]\s*+(\{[^}]*+\})?", re.ASCII)
_DIMENSION = pattern(r"\s*+(?:(<=)?\s*+(\d{1,19}+)|\?)\s*+", re.ASCII)
_SIZES = pattern(r"(?:\d{1,19}+(?:,\d{1,19}+)*+)?+", re.ASCII)  # of a static shape, as printed
_ORDER = pattern(r"\s*+(?:\d{1,5}+\s*+(?:,\s*+\d{1,5}+\s*+)*+)?+", re.ASCII)
_INTEGERS = r"\d++(?:,\d++)*+"
_PARTS = "T(tile) L(n) #(type) *(type) E(bits) S(space) SC(dimension:indices) M(bytes)"
# D(), the kind of each dimension, is dropped: XLA drops it, too.
_SUFFIX = pattern(
    r"(D\([DCS+~,]*+\))?((?:T(?:\((?:[\d*]++(?:,[\d*]++)*+)?\))++)?+(?:L\(\d++\))?+(?:#\(\w++\))?+"
    rf"(?:\*\(\w++\))?+(?:E\(\d++\))?+(?:S\(-?\d++\))?+(?:SC\((?:\d++:{_INTEGERS},?+)*+\))?+"
    r"(?:P\(\w++\[[^()]*+\))?+(?:M\(\d++\))?+)",
    re.ASCII,
)
_ELEMENTS = 2**63  # XLA counts elements in 64 bits, too
_DEPTH = 64  # hashing and comparing a shape recurse


class ShapeReader:
    """Read shapes from text without comments; cache them by their text."""

    def __init__(self) -> None:
        self.known: dict[str, Shape] = {}
        self._layouts: dict[tuple[str, int], Layout] = {}  # by text and rank

    def read(self, text: str, depth: int = 0) -> Shape:
        """Read a shape; raise ValueError if the text is malformed."""
        known = self.known.get(text)
        if known is None:
            known = self._tuple(text, depth) if text.startswith("(") else self._array(text)
            self.known[text] = known
        return known

    def _tuple(self, text: str, depth: int) -> Shape:
        if _FLAT.fullmatch(text):
            return TupleShape(tuple(map(self.read, _ELEMENT.findall(text))))
        # Each level is looked through again: what is too deep must be seen at the first.
        if depth > _DEPTH or (depth == 0 and _nesting(text) > _DEPTH):
            raise ValueError(f"a tuple shape nested deeper than {_DEPTH}")
        try:
            end = closing(text, 0)
        except Unbalanced as error:
            raise ValueError(str(error)) from None
        if text[end + 1 :].strip():
            raise ValueError(f"unexpected {text[end + 1 :].strip()[:40]!r} after a tuple shape")
        return TupleShape(tuple(self.read(part, depth + 1) for part in fields(text[1:end])))

    def _array(self, text: str) -> ArrayShape:
        match = _ARRAY.fullmatch(text)
        if match is None:
            raise ValueError(f"expected a shape like f32[2,3], not {text[:40]!r}")
        name, sizes, layout_text = match.groups()
        element_type = ELEMENT_TYPES.get(name)
        if element_type is None:
            raise ValueError(f"unknown element type {name!r}")
        dims, dynamic = _static(sizes) if _SIZES.fullmatch(sizes) else _dimensions(sizes)
        # abs, as UNBOUNDED is -1; without zeros, as NumPy counts the other dimensions all the same.
        if math.prod(filter(None, map(abs, dims))) >= _ELEMENTS:
            raise ValueError(f"{text[:80]} has more elements than 64 bits count")
        layout = None
        if layout_text:
            key = layout_text, len(dims)
            layout = self._layouts.get(key)
            if layout is None:
                layout = self._layouts[key] = _layout(*key)
        if layout_text == "{}" and not dims:
            raise ValueError(f"a scalar has no layout {{}}: {text[:40]}")
        return ArrayShape(element_type, dims, dynamic, layout)


def _nesting(text: str) -> int:
    """Return the nesting depth of parentheses; 0 if there are too few to exceed the limit."""
    if text.count("(") <= _DEPTH:
        return 0
    steps = ((character == "(") - (character == ")") for character in text)
    return max(accumulate(steps))


def _static(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    return tuple(map(int, text.split(","))) if text else (), ()


def _dimensions(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return the sizes, and which of them are bounded: () if none is."""
    dims: list[int] = []
    dynamic: list[bool] = []
    for part in text.split(",") if text.strip() else ():
        dimension = _DIMENSION.fullmatch(part)
        if dimension is None:
            raise ValueError(f"expected a dimension, not {part.strip()[:40]!r}")
        dims.append(int(dimension[2]) if dimension[2] else UNBOUNDED)
        dynamic.append(dimension[1] is not None or not dimension[2])
    return tuple(dims), tuple(dynamic) if any(dynamic) else ()


def _layout(text: str, rank: int) -> Layout:
    order, _, suffix = text[1:-1].partition(":")
    if not _ORDER.fullmatch(order):
        raise ValueError(f"expected a layout like {{1,0}}, not {text[:40]!r}")
    minor_to_major = tuple(map(int, order.split(","))) if order.strip() else ()
    if sorted(minor_to_major) != list(range(rank)):
        raise ValueError(f"layout {text[:80]} does not permute {rank} dimensions")
    if not suffix:
        return Layout(minor_to_major)
    parts = _SUFFIX.fullmatch("".join(suffix.split()))
    if parts is None:
        raise ValueError(f"expected {_PARTS} in this order in a layout, not {suffix[:80]!r}")
    return Layout(minor_to_major, parts[2])
