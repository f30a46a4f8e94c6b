"""Read and print the attributes of a module's first line.

Layouts and aliasing are parsed to values; flags, counts and what XLA's passes leave for each other
are checked and kept as text. Source: ``ParseHloModule`` of XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hlo.attributes import EntryLayout, HeaderAttribute
from hlo.text.aliasing import read_donors, read_header_aliases, show_donors, show_header_aliases
from hlo.text.patterns import pattern
from hlo.text.shapes import ShapeReader
from hlo.text.suggestion import suggestion
from hlo.types import TupleShape

_BOOLEAN = r"true|false"
_BRACES = r"\{.*\}", "{…}"
_NUMBER = r"-?\d++", "an integer"
_TRUTH = _BOOLEAN, "true or false"
_TRUTHS = rf"{_BOOLEAN}|\{{\s*+(?:(?:{_BOOLEAN})\s*+,?+\s*+)*+\}}", "{true, false, …}"
_TEXTS = {
    "is_scheduled": _TRUTH,
    "replica_count": _NUMBER,
    "num_partitions": _NUMBER,
    "alias_passthrough_params": _TRUTH,
    "frontend_attributes": _BRACES,
    "allow_spmd_sharding_propagation_to_parameters": _TRUTHS,
    "allow_spmd_sharding_propagation_to_output": _TRUTHS,
    "origin_recovery_table": _BRACES,
    "debug_attributes": _BRACES,
}
_COMPILED = {name: pattern(text, re.A | re.S) for name, (text, _) in _TEXTS.items()}


def _entry_layout(text: str, shapes: ShapeReader) -> EntryLayout:
    """Read ``{(f32[2]{0}, …)->f32[]}``."""
    braces = text.startswith("{") and text.endswith("}")
    given, arrow, result = text[1:-1].partition("->")
    parameters = shapes.read(given.strip()) if given.lstrip().startswith("(") else None
    if not braces or not arrow or not isinstance(parameters, TupleShape):
        raise ValueError("expected {(shape, …)->shape}")
    return EntryLayout(parameters.elements, shapes.read(result.strip()))


_READ: dict[str, Callable[[str, ShapeReader], HeaderAttribute]] = {
    "input_output_alias": lambda text, _: read_header_aliases(text),
    "buffer_donor": lambda text, _: read_donors(text),
    "entry_computation_layout": _entry_layout,
}
_SHOW: dict[str, Callable[[Any], str]] = {
    "input_output_alias": show_header_aliases,
    "buffer_donor": show_donors,
}


def read_header(name: str, code: str, text: str, shapes: ShapeReader) -> HeaderAttribute:
    """Read the value of a module's attribute; raise ValueError if it is malformed. ``code`` is its
    text without comments, ``text`` with them."""
    read, wanted = _READ.get(name), _COMPILED.get(name)
    if read is not None:
        try:
            return read(code, shapes)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if wanted is None:
        known = (*_TEXTS, *_READ)
        hint = suggestion(name, known) or f"; allowed: {', '.join(sorted(known))}"
        raise ValueError(f"unexpected attribute {name!r} of a module{hint}")
    if not wanted.fullmatch(code):
        raise ValueError(f"{name}: expected {_TEXTS[name][1]}")
    return text


def show_header(name: str, value: HeaderAttribute) -> str:
    """Write an attribute of a module as text."""
    return _SHOW.get(name, str)(value)
