"""A machine of hlo.elementary that writes C: one statement per operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self


class _Text:
    """A named C variable; every operation on it appends a statement to ``body``."""

    c_type = ""

    def __init__(self, name: str, body: list[str]) -> None:
        self.name, self.body = name, body

    def made(self, expression: str) -> Self:
        name = f"v{len(self.body)}"
        self.body.append(f"const {self.c_type} {name} = {expression};")
        return type(self)(name, self.body)


def _literal(value: float) -> str:
    if math.isnan(value):
        return "(0.0 / 0.0)"
    if math.isinf(value):
        return "(1.0 / 0.0)" if value > 0 else "(-1.0 / 0.0)"
    return float(value).hex()


def _operand(other: _Text | float | int, c_type: str) -> str:
    if isinstance(other, _Text):
        return other.name
    return _literal(other) if c_type == "double" else f"(uint64_t){int(other) % 2**64}u"


def _binary(operator: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        pair = self.name, _operand(other, self.c_type)
        lhs, rhs = reversed(pair) if swapped else pair
        return self.made(f"{lhs} {operator} {rhs}")

    return operation


def _comparison(operator: str) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        text = f"{self.name} {operator} {_operand(other, 'double')}"
        return CCondition("", self.body).made(text)

    return operation


class CCondition(_Text):
    c_type = "int"
    __and__, __or__ = _binary("&"), _binary("|")

    def __invert__(self) -> CCondition:
        return self.made(f"!{self.name}")


class CWord(_Text):
    c_type = "uint64_t"
    __add__, __sub__ = _binary("+"), _binary("-")
    __and__, __or__, __xor__ = _binary("&"), _binary("|"), _binary("^")

    def __lshift__(self, count: int) -> CWord:
        return self.made(f"{self.name} << {count}")

    def __rshift__(self, count: int) -> CWord:
        return self.made(f"{self.name} >> {count}")


class CValue(_Text):
    c_type = "double"
    __add__, __radd__ = _binary("+"), _binary("+", swapped=True)
    __sub__, __rsub__ = _binary("-"), _binary("-", swapped=True)
    __mul__, __rmul__ = _binary("*"), _binary("*", swapped=True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", swapped=True)
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")

    def __neg__(self) -> CValue:
        return self.made(f"-{self.name}")


class CMachine:
    """The machine; ``bits_of`` and ``double_of`` are C functions of the including text."""

    def select(self, condition: Any, on_true: CValue | float, on_false: CValue | float) -> CValue:
        lhs, rhs = _operand(on_true, "double"), _operand(on_false, "double")
        return CValue("", condition.body).made(f"{condition.name} ? {lhs} : {rhs}")

    def equal(self, lhs: CValue, rhs: CValue | float) -> CCondition:
        text = f"{lhs.name} == {_operand(rhs, 'double')}"
        return CCondition("", lhs.body).made(text)

    def absolute(self, x: CValue) -> CValue:
        return x.made(f"__builtin_fabs({x.name})")

    def sqrt(self, x: CValue) -> CValue:
        return x.made(f"__builtin_sqrt({x.name})")

    def bits(self, x: CValue) -> CWord:
        return CWord("", x.body).made(f"bits_of({x.name})")

    def from_bits(self, word: Any) -> CValue:
        return CValue("", word.body).made(f"double_of({word.name})")


# Without PRE: it makes branches of selects between constants, and loops scalar.
FLAGS = (
    *("-O3", "-march=native", "-fopenmp", "-fno-tree-pre"),
    *("-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off"),
)

PROLOGUE = """#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline uint64_t bits_of(double x) { uint64_t w; memcpy(&w, &x, 8); return w; }
static inline double double_of(uint64_t w) { double x; memcpy(&x, &w, 8); return x; }
"""


def function_text(name: str, parameters: tuple[str, ...], sequence: Callable[..., CValue]) -> str:
    """``sequence(*operands, machine)`` as a static inline C function of doubles."""
    body: list[str] = []
    result = sequence(*(CValue(p, body) for p in parameters), CMachine())
    declared = ", ".join(f"double {p}" for p in parameters)
    lines = "".join(f"    {line}\n" for line in body)
    return (
        f"static inline __attribute__((always_inline)) double {name}({declared}) {{\n"
        f"{lines}    return {result.name};\n}}\n"
    )
