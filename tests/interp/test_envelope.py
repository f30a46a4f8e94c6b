"""Envelopes: sound for every legal evaluation, tight enough to prove bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from hlo.module import Module
from hlo.types import ElementType
from hlo.walk import Callee, Op, column, function_name
from interp import random
from interp.conversion import type_of
from interp.envelope.budget import EXACT, ROUNDED, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import contains, outward
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, OUTSIDE, WITHIN, judged
from interp.evaluator import Evaluation
from interp.matrix_product import products_by

Array = np.ndarray[Any, Any]


def flat(value: Any) -> list[Any]:
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


class Peer:
    """A legal compiler: every operation errs by chance, within its budget."""

    def __init__(self, module: Module, budget: Budget, seed: int) -> None:
        self.rng, self.budget = np.random.default_rng(seed), budget
        self.evaluation = Evaluation(module, None)
        self.evaluation.ops = {
            name: Op(self._erring(name, op.function), op.given, op.home)
            for name, op in column("interp").items()
        }

    def __call__(self, module: Module, *arguments: Any) -> Any:
        rounding = products_by(self._product)
        with np.errstate(all="ignore"), random.seeded(0), rounding:
            return self.evaluation.run(self.evaluation.plan(module.entry), *arguments)

    def _erring(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        rounded = {function_name(opcode): opcode for opcode in ROUNDED}

        def op(*operands: Any, **attributes: Any) -> Any:
            if name == "reduce" and (total := self._reduced(*operands, **attributes)) is not None:
                return total
            if name in rounded:
                operands = tuple(map(self._flushed, operands))
            value = function(*operands, **attributes)
            if name in rounded and type_of(np.asarray(value)).is_float:
                return self._flushed(self._moved(rounded[name], np.asarray(value)))
            return value

        return op

    def _moved(self, opcode: str, value: Array) -> Array:
        error = self.budget.of(opcode, type_of(value))
        if not error:
            return value
        down, up = outward(value, value, int(error) or (1 if error else 0))
        chosen = self.rng.integers(0, 3, value.shape)
        # No library errs where the result is zero.
        errs = np.isfinite(value) & (value != 0)
        return np.where(errs, np.choose(chosen, [down, value, up]), value)

    def _flushed(self, value: Any) -> Any:
        element_type = type_of(np.asarray(value))
        if not self.budget.flushes or not element_type.is_float:
            return value
        tiny = np.finfo(np.float32).tiny if value.dtype == np.float32 else 0
        small = (np.abs(value) < tiny) & (self.rng.integers(0, 2, np.shape(value)) == 1)
        return np.where(small, value * value.dtype.type(0), value)

    def _reduced(self, *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Any]) -> Any:
        if len(operands) != 2 or to_apply.monoid != "add" or operands[0].dtype != np.float32:
            return None
        kept = [axis for axis in range(operands[0].ndim) if axis not in dimensions]
        rows = operands[0].transpose(*dimensions, *kept)
        rows = rows.reshape(-1, *(operands[0].shape[axis] for axis in kept))
        total = np.broadcast_to(operands[1], rows.shape[1:])
        for number in self.rng.permutation(len(rows)):
            total = total + rows[number]
        return total

    def _product(self, lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
        """Of f32 or c64, added in an order that chance gives, each term rounded."""
        dtype = element_type.numpy
        if not (lhs.dtype == rhs.dtype == dtype) or dtype not in (np.float32, np.complex64):
            return None
        total = np.zeros((len(lhs), lhs.shape[1], rhs.shape[2]), dtype)
        for k in self.rng.permutation(lhs.shape[2]):
            total = total + lhs[:, :, k, None] * rhs[:, k, None, :]
        return total


@pytest.mark.parametrize("budget", [UNKNOWN, XLA_CPU, EXACT], ids=lambda budget: budget.name)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_legal_result_is_outside(budget: Budget, data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    arguments = data.draw(fuzz.arguments(module))
    note(hlo.format(module))
    exact = flat(interp.evaluate(module, *arguments))
    legal = flat(enclose(module, *arguments, peer=budget).result)
    actual = flat(Peer(module, budget, len(exact))(module, *arguments))
    for one, other, enclosure in zip(exact, actual, legal, strict=True):
        verdict = judged(np.asarray(other), np.asarray(one), enclosure)
        assert verdict.worst != OUTSIDE, (verdict, enclosure, one, other)


PROGRAM = """HloModule program

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  x = f32[64,32] parameter(0)
  w = f32[32,16] parameter(1)
  d = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,16] tanh(d)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add
}
"""
BUGS = {
    "another function": ("tanh(d)", "logistic(d)"),
    "a term too many": ("zero = f32[] constant(0)", "zero = f32[] constant(0.01)"),
    "the wrong monoid": ("s = f32[] add(x, y)", "s = f32[] maximum(x, y)"),
    "a rounding too many": (
        "t = f32[64,16] tanh(d)",
        "b = bf16[64,16] convert(d)\n  c = f32[64,16] convert(b)\n  t = f32[64,16] tanh(c)",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_miscompile_is_outside(bug: str) -> None:
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(dims, np.float32) for dims in ((64, 32), (32, 16))]
    module = hlo.parse(PROGRAM)
    exact = interp.evaluate(module, *arguments)
    legal = enclose(module, *arguments, peer=XLA_CPU).result
    assert judged(exact, exact, legal).worst == EQUAL
    assert bool(contains(legal, exact).all())
    wrong = interp.evaluate(hlo.parse(PROGRAM.replace(*BUGS[bug])), *arguments)
    verdict = judged(np.asarray(wrong), exact, legal)
    assert verdict.worst == OUTSIDE and verdict.first_outside is not None


def test_another_order_of_additions_is_within() -> None:
    values = np.random.default_rng(0).standard_normal((32, 64), np.float32)
    module = hlo.parse(PROGRAM)
    weights = np.ones((32, 16), np.float32)
    exact = interp.evaluate(module, values.T.copy(), weights)
    legal = enclose(module, values.T.copy(), weights, peer=XLA_CPU).result
    total = np.zeros(64, np.float32)
    for row in values[::-1]:
        total = total + row
    other = np.tanh(total) * np.float32(16)
    assert judged(other, exact, legal).worst in (EQUAL, WITHIN)


def test_where_an_envelope_opens() -> None:
    """A quotient with a divisor that may be zero."""
    module = hlo.parse("""HloModule opens
ENTRY main {
  x = f32[2] parameter(0)
  y = f32[2] sine(x)
  z = f32[2] subtract(y, y)
  ROOT q = f32[2] divide(x, z)
}
""")
    found = enclose(module, np.array([1, 2], np.float32), peer=XLA_CPU)
    (opening,) = found.openings
    assert (opening.instruction, opening.opcode, opening.elements) == ("q", "divide", 2)
