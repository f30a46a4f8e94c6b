"""Execute :mod:`hlo.elementary`'s sequences on symbolic values, to emit C: one line per operation.

Common subexpressions are merged as they are written, and lines that no result depends on are
dropped, so the compiler has less to do.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.elementary.machine import Machine

_DOUBLE, _WORD, _PRED = "double", "uint64_t", "hlo_pred"
_FLOAT, _HALF_WORD = "float", "uint32_t"
_PARTS = {"hlo_c64": "float", "hlo_c128": "double"}
_INDENT = "    "
_NAME = re.compile(r"\b[dfuh]\d+\b")


def function_text(
    name: str, qualifier: str, arity: int, sequence: Callable[..., Value], kind: str = _DOUBLE
) -> str:
    """Render ``qualifier kind name(kind x, …)`` with the operations of ``sequence(*x)``."""
    printer = _Printer()
    parameters = ["x", "y"][:arity]
    result = sequence(*(Value(printer, parameter, kind) for parameter in parameters))
    head = f"{qualifier} {kind} {name}({', '.join(f'{kind} {p}' for p in parameters)}) {{"
    lines = [f"{_INDENT}{line}" for line in _live_lines(printer.lines, f"return {result.text};")]
    return "\n".join([head, *lines, "}", ""])


def complex_function_text(
    name: str,
    qualifier: str,
    whole: str,
    arity: int,
    sequence: Callable[..., tuple[Value, ...]],
) -> str:
    """Render ``qualifier whole name(whole x, …)`` with the operations of ``sequence(*components)``.

    With one component (abs), the result is a part of the type ``whole``.
    """
    printer = _Printer()
    parameters = ["x", "y"][:arity]
    components = [f"(double){p}.{part}" for p in parameters for part in ("re", "im")]
    results = sequence(*(printer.bind(_DOUBLE, component) for component in components))
    part = _PARTS[whole]
    texts = ", ".join(f"({part}){result.text}" for result in results)
    result_type = part if len(results) == 1 else whole
    value = texts if len(results) == 1 else f"{whole.replace('hlo_', 'hlo_make_')}({texts})"
    head = f"{qualifier} {result_type} {name}({', '.join(f'{whole} {p}' for p in parameters)}) {{"
    lines = [f"{_INDENT}{line}" for line in _live_lines(printer.lines, f"return {value};")]
    return "\n".join([head, *lines, "}", ""])


def _live_lines(lines: list[str], last: str) -> list[str]:
    """Return the lines that the last one depends on, and it (dead code elimination)."""
    used = set(_NAME.findall(last))
    kept = [last]
    for line in reversed(lines):
        _, _, name, _, expression = line.split(" ", 4)  # const type name = expression;
        if name in used:
            used.update(_NAME.findall(expression))
            kept.append(line)
    return kept[::-1]


class _Printer:
    """Emit single-assignment lines; equal expressions share a variable (value numbering)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values: dict[str, str] = {}

    def bind(self, kind: str, expression: str) -> Value:
        """Return the variable that holds an expression, emitting its definition if it is new."""
        if expression not in self._values:
            name = f"{kind[0]}{len(self.lines)}"
            self.lines.append(f"const {kind} {name} = {expression};")
            self._values[expression] = name
        return Value(self, self._values[expression], kind)


@dataclass(frozen=True, eq=False)
class Value:
    """Represent an operand in C: a double, a float, a word as wide as either, or a condition."""

    printer: _Printer
    text: str
    kind: str

    def _infix(self, symbol: str, other: Any, kind: str, *, swapped: bool = False) -> Value:
        texts = [self.text, _text(other, self.kind)]
        if swapped:
            texts.reverse()
        return self.printer.bind(kind, f"{texts[0]} {symbol} {texts[1]}")

    def __add__(self, other: Any) -> Value:
        return self._infix("+", other, self.kind)

    def __radd__(self, other: Any) -> Value:
        return self._infix("+", other, self.kind, swapped=True)

    def __sub__(self, other: Any) -> Value:
        return self._infix("-", other, self.kind)

    def __rsub__(self, other: Any) -> Value:
        return self._infix("-", other, self.kind, swapped=True)

    def __mul__(self, other: Any) -> Value:
        return self._infix("*", other, self.kind)

    def __rmul__(self, other: Any) -> Value:
        return self._infix("*", other, self.kind, swapped=True)

    def __truediv__(self, other: Any) -> Value:
        return self._infix("/", other, self.kind)

    def __rtruediv__(self, other: Any) -> Value:
        return self._infix("/", other, self.kind, swapped=True)

    def __neg__(self) -> Value:
        return self.printer.bind(self.kind, f"-{self.text}")

    def __lt__(self, other: Any) -> Value:
        return self._infix("<", other, _PRED)

    def __le__(self, other: Any) -> Value:
        return self._infix("<=", other, _PRED)

    def __gt__(self, other: Any) -> Value:
        return self._infix(">", other, _PRED)

    def __ge__(self, other: Any) -> Value:
        return self._infix(">=", other, _PRED)

    def __and__(self, other: Any) -> Value:
        return self._infix("&", other, self.kind)

    def __or__(self, other: Any) -> Value:
        return self._infix("|", other, self.kind)

    def __xor__(self, other: Any) -> Value:
        return self._infix("^", other, self.kind)

    def __invert__(self) -> Value:
        return self.printer.bind(
            self.kind, f"!{self.text}" if self.kind == _PRED else f"~{self.text}"
        )

    def __lshift__(self, other: int) -> Value:
        return self._infix("<<", other, self.kind)

    def __rshift__(self, other: int) -> Value:
        return self._infix(">>", other, self.kind)


class CMachine:
    """Provide the operations of hlo.elementary's Machine, and of its DoubleMachine for the fast
    sequences, on C variables."""

    def select(self, condition: Any, on_true: Value | float, on_false: Value | float) -> Value:
        texts = [_text(value, _DOUBLE) for value in (on_true, on_false)]
        text = f"{condition.text} ? {texts[0]} : {texts[1]}"
        bound: Value = condition.printer.bind(_DOUBLE, text)
        return bound

    def equal(self, lhs: Value, rhs: Value | float) -> Value:
        return lhs._infix("==", rhs, _PRED)

    def absolute(self, x: Value) -> Value:
        return x.printer.bind(_DOUBLE, f"hlo_abs_f64({x.text})")

    def sqrt(self, x: Value) -> Value:
        return x.printer.bind(_DOUBLE, f"hlo_sqrt_f64({x.text})")

    def fused(self, a: Value, b: Value | float, c: Value | float) -> Value:
        texts = ", ".join(_text(value, _DOUBLE) for value in (a, b, c))
        return a.printer.bind(_DOUBLE, f"hlo_fused_f64({texts})")

    def product_error(self, a: Value, b: Value | float, product: Value) -> Value:
        texts = ", ".join(_text(value, _DOUBLE) for value in (a, b, product))
        return a.printer.bind(_DOUBLE, f"hlo_product_error_f64({texts})")

    def bits(self, x: Value) -> Value:
        return x.printer.bind(_WORD, f"hlo_bits_f64({x.text})")

    def from_bits(self, word: Any) -> Value:
        bound: Value = word.printer.bind(_DOUBLE, f"hlo_f64_from_bits({word.text})")
        return bound


class CFloatMachine:
    """Provide the operations of hlo.elementary.fast's FloatMachine on C variables."""

    wide: Machine[Any] = CMachine()

    def fused(self, a: Value, b: Value | float, c: Value | float) -> Value:
        texts = ", ".join(_text(value, _FLOAT) for value in (a, b, c))
        return a.printer.bind(_FLOAT, f"hlo_fused_f32({texts})")

    def select(self, condition: Any, on_true: Value | float, on_false: Value | float) -> Value:
        texts = [_text(value, _FLOAT) for value in (on_true, on_false)]
        text = f"{condition.text} ? {texts[0]} : {texts[1]}"
        bound: Value = condition.printer.bind(_FLOAT, text)
        return bound

    def equal(self, lhs: Value, rhs: Value | float) -> Value:
        return lhs._infix("==", rhs, _PRED)

    def absolute(self, x: Value) -> Value:
        return x.printer.bind(_FLOAT, f"hlo_abs_f32({x.text})")

    def sqrt(self, x: Value) -> Value:
        return x.printer.bind(_FLOAT, f"hlo_sqrt_f32({x.text})")

    def bits(self, x: Value) -> Value:
        return x.printer.bind(_HALF_WORD, f"hlo_bits_f32({x.text})")

    def from_bits(self, word: Any) -> Value:
        bound: Value = word.printer.bind(_FLOAT, f"hlo_f32_from_bits({word.text})")
        return bound

    def residual(self, a: Value, b: Value, c: Value | float) -> Value:
        texts = ", ".join(_text(value, _FLOAT) for value in (a, b, c))
        return a.printer.bind(_FLOAT, f"hlo_residual_f32({texts})")

    def widened(self, x: Value) -> Value:
        return x.printer.bind(_DOUBLE, f"(double){x.text}")

    def narrowed(self, x: Value) -> Value:
        return x.printer.bind(_FLOAT, f"(float){x.text}")

    def low_word(self, x: Value) -> Value:
        return x.printer.bind(_HALF_WORD, f"(uint32_t)hlo_bits_f64({x.text})")

    def quarter_turns(self, x: Value) -> tuple[Value, Value, Value]:
        turns = x.printer.bind(_WORD, f"hlo_quarter_turns_f32({x.text})")
        quadrant = x.printer.bind(_HALF_WORD, f"hlo_quadrant_of({turns.text})")
        parts = [
            x.printer.bind(_FLOAT, f"hlo_{part}_of_quadrant({turns.text})")
            for part in ("high", "low")
        ]
        return quadrant, parts[0], parts[1]


def _text(value: Value | float, kind: str) -> str:
    """Render an operand: a variable's name, or a number."""
    return value.text if isinstance(value, Value) else _number(value, kind)


def _number(value: float | int, kind: str) -> str:
    """Render a number exactly: the shortest decimal that reads back as the same, or its bits."""
    if kind in (_WORD, _HALF_WORD):
        mask = 2**64 - 1 if kind == _WORD else 2**32 - 1
        return f"{value}" if 0 <= value < 4096 else f"0x{int(value) & mask:x}u"
    if kind == _FLOAT:
        return _float_number(value)
    number = float(value)
    if not math.isfinite(number):
        word = struct.pack(">d", number).hex()
        return f"hlo_f64_from_bits(0x{word}u)"
    text = repr(number)
    return f"({text})" if text.startswith("-") else text


def _float_number(value: float) -> str:
    """Render a number rounded to f32, with the shortest decimal that reads back as the same."""
    number = np.float32(value)
    if not np.isfinite(number):
        return f"hlo_f32_from_bits(0x{int(number.view(np.uint32)):x}u)"
    text = str(number)
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"({text}f)" if text.startswith("-") else f"{text}f"
