"""Classify attribute values into the kinds that a fuzzer should have tried of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hlo.attributes import Window
from hlo.ops.elementwise import COMPARISONS
from hlo.types import ElementType

_SOME = ("none", "one", "several")

# Attributes whose values are words.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "direction": ("EQ", "NE", "LT", "LE", "GT", "GE"),
    "type": ("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "distribution": ("rng_uniform", "rng_normal"),
    "transpose_a": ("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "kind": ("kLoop", "kInput", "kOutput", "kCustom"),
}
_WINDOW = ("any", "strided", "padded", "cut", "base dilated", "window dilated", "reversed")
_PADDING = ("any", "more", "less", "between")


def _some(values: Sequence[object]) -> str:
    return _SOME[min(len(values), 2)]


def _windowed(window: Window) -> Iterator[str]:
    yield "any"
    for d in window.dimensions:
        holds = (
            *(d.stride > 1, max(d.padding_low, d.padding_high) > 0),
            *(min(d.padding_low, d.padding_high) < 0, d.base_dilation > 1),
            *(d.window_dilation > 1, d.reversal),
        )
        yield from (kind for kind, one in zip(_WINDOW[1:], holds, strict=True) if one)


def _padded(padding: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    yield "any"
    for low, high, interior in padding:
        holds = (max(low, high) > 0, min(low, high) < 0, interior > 0)
        yield from (kind for kind, one in zip(_PADDING[1:], holds, strict=True) if one)


def _stridden(windows: Sequence[tuple[int, int, int]]) -> str:
    return "strided" if any(stride > 1 for _, _, stride in windows) else "plain"


Kinds = tuple[tuple[str, ...], Callable[[Any], Iterable[str]]]


def _row(*kinds: str, of: Callable[[Any], str]) -> Kinds:
    return kinds, lambda value: [of(value)]


def _is(truth: object) -> str:
    return "given" if truth else "absent"


_BY_NAME: Mapping[str, Kinds] = {
    **{name: _row(*words, of=str) for name, words in _WORDS.items()},
    "padding": (_PADDING, _padded),
    "slice": _row("plain", "strided", of=_stridden),
}
_BY_TYPE: Mapping[str, Kinds] = {
    "bool": _row("False", "True", of=str),
    "tuple[int, ...]": _row(*_SOME, of=_some),
    "tuple[str, ...]": _row("absent", "given", of=_is),
    "tuple[Callee[Shape], ...]": _row(*_SOME, of=_some),
    "Callee[Shape] | None": _row("absent", "given", of=_is),
    "Window": (_WINDOW, _windowed),
}
_ANYTHING = _row("given", of=lambda value: "given")

# Attributes of opcodes that are never of other kinds than these.
_ONLY: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{
        (opcode, "dimensions"): ("one",)
        for opcode in (
            *("sort", "scan", "concatenate", "set-dimension-size", "get-dimension-size"),
            *("all-gather", "all-gather-start", "reduce-scatter"),
        )
    },
    ("all-to-all", "dimensions"): ("none", "one"),
    ("ragged-dot", "lhs_ragged_dims"): ("one",),
    ("ragged-dot", "rhs_group_dims"): ("none", "one"),
    ("fft", "fft_length"): ("one", "several"),
    ("custom-call", "window"): ("any",),
    ("reduce-precision", "exponent_bits"): ("more",),
    # windows are turned round for convolutions alone
    ("reduce-window", "window"): _WINDOW[:-1],
    ("select-and-scatter", "window"): _WINDOW[:-1],
}
_ORDERS = ("LT", "LE", "GT", "GE")


def possible(opcode: str, name: str, kind: str, element_type: ElementType) -> bool:
    """Test whether an attribute of this kind can occur with an opcode and element type."""
    only = _ONLY.get((opcode, name))
    if only is not None:
        return kind in only
    if opcode == "compare" and name == "direction":
        return kind not in _ORDERS or not element_type.is_complex
    if opcode == "compare" and name == "type":
        return element_type.kind in COMPARISONS.get(kind, (element_type.kind,))
    if opcode == "rng":
        return kind != "rng_normal" or element_type.is_float
    if opcode == "fft":
        return (kind == "RFFT") != element_type.is_complex
    return True


def kinds_of(name: str, parameter: inspect.Parameter) -> Kinds:
    """Return the kinds of an attribute's values, and a function that classifies a value."""
    default, annotation = parameter.default, str(parameter.annotation)
    required = default is parameter.empty
    if name in _BY_NAME or annotation in _BY_TYPE:
        return _BY_NAME.get(name) or _BY_TYPE[annotation]
    if annotation == "int" and required:
        return _row("0", "more", of=lambda value: "more" if value else "0")
    if not required:
        return _row("absent", "given", of=lambda value: _is(value != default))
    return _ANYTHING
