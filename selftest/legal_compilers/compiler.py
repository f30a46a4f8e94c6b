"""Simulate legal compilers at random: each instruction errs within its budget.

Sums come in any order, products go into sums unrounded, narrow values stay in f32, subnormals are
flushed, zeros and NaNs have either sign, constants that are added one after the other are added up
first. Whatever they give, no verdict may call it wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlo.elementary.double_double import two_product, two_sum
from hlo.module import Module
from hlo.opcodes import EFFECT, EXTREME, LINEAR_ALGEBRA, MOVES, SUM, having, of_family
from hlo.types import F32, F64
from hlo.values import Array
from hlo.walk import Op, column, function_name
from interp.envelope.budget import EXACT, Budget
from interp.envelope.ops.conversion import holds
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of
from interp.exact.matrix_products import products_by
from interp.values import Value, mapped
from selftest.legal_compilers.algorithms import Algorithms
from selftest.legal_compilers.errors import MODES, NAMES, Errors, without_subnormals
from selftest.legal_compilers.sums import Sums, fused

# These keep the excess precision of a value; a bitcast reads its bits.
_MOVES = frozenset(map(function_name, having(MOVES) - {"bitcast"} | {"abs", "negate"}))
# These do not round, but what is wider or flushed goes in.
_EXACT = frozenset(
    (
        *("ceil", "clamp", "compare", "floor", "is_finite", "maximum", "minimum", "sign"),
        *("round_nearest_afz", "round_nearest_even"),
    )
)
_LINEAR = frozenset(map(function_name, of_family(LINEAR_ALGEBRA)))
_EXTREMES, _SUMS = having(EXTREME), having(SUM)
_EFFECTS = frozenset(map(function_name, having(EFFECT)))
_CONTRACTED = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, slots=True)
class _Kept:
    """Other forms in which a compiler holds a value: in f32, as an unrounded product (a
    double-double), or as the terms of a sum. The value itself is kept here so that its ``id``, the
    key, stays unique."""

    value: Array
    wide: Array | None = None
    product: tuple[Array, Array] | None = None
    terms: tuple[Array, Array] | None = None


def _narrows(operand: Array, value: Array) -> bool:
    """Test whether a conversion rounds: the target type lacks numbers of the source type."""
    before, after = type_of(operand), type_of(value)
    return before.is_integer or (before.is_float and not holds(after, before))


class Perturbed:
    """A legal compiler; each call runs a program with other random choices."""

    def __init__(self, budget: Budget, seed: int, mode: str = MODES[0]) -> None:
        self._rng, self._budget = np.random.default_rng(seed), budget
        self._errors = Errors(self._rng, budget, mode)
        self._sums = Sums(self._rng, budget, self._in_full)
        self._algorithms = Algorithms(self._rng, self._sums, self._op)
        self._kept: dict[int, _Kept] = {}
        self._constants: dict[int, Array] = {}
        self._flushes_all = False
        self._ops = {
            name: Op(self._erring(name, op.function), op.given, op.home)
            for name, op in column("interp.ops").items()
        }

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        if self._budget is EXACT:
            return Evaluation(module, fuel).result(arguments, seed)
        self._kept.clear()
        self._constants.clear()
        self._flushes_all = self._budget.flushes and self._chance()
        with products_by(self._sums.product):
            return Evaluation(module, fuel, ops=self._ops).result(arguments, seed)

    def _chance(self) -> bool:
        return bool(self._rng.integers(0, 2))

    def _erring(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def op(*operands: Any, **attributes: Any) -> Any:
            value = self._made(name, function, operands, attributes)
            folded = operands and all(id(x) in self._constants for x in operands)
            if name == "constant" or (folded and name not in _EFFECTS):
                self._constants[id(value)] = value
            return value

        return op

    def _op(self, name: str, *operands: Any) -> Any:
        """Evaluate an op that another op is defined by."""
        return self._made(name, column("interp.ops")[name].function, operands, {})

    def _made(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        found = self._sums.of(name, operands, attributes)
        if found is not None:
            return self._errors.signed(found)
        found = self._algorithms.of(name, function, operands, attributes)
        if found is not None:
            compares = getattr(attributes.get("to_apply"), "monoid", None) in _EXTREMES
            return mapped(self._errors.signed, found) if compares or name in _LINEAR else found
        if name in _MOVES:
            return self._moved_wide(function, operands, attributes)
        if name in _EXACT:
            return self._exactly(name, function, operands, attributes)
        if name in ("dot", "convolution"):
            with self._sums.terms_of(name):
                return self._contracted(function, operands, attributes)
        if name not in NAMES:
            return function(*operands, **attributes)
        if name == "convert":
            return self._converted(function, operands, attributes)
        return self._rounded(name, function, operands, attributes)

    def _rounded(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        operands = tuple(map(self._errors.flushed, operands))
        one = self._fused(name, operands)
        if one is None:
            one = self._added_up(name, operands)
        if one is None and self._widens(*operands):
            result = np.asarray(function(*map(self._in_full, operands), **attributes))
            result = self._errors.finished(name, self._errors.moved(name, result))
            one = self._shown(result, operands[0].dtype)
        if one is not None:
            return one
        value = np.asarray(function(*operands, **attributes))
        if type_of(value).is_complex:
            return self._errors.finished(name, self._errors.moved_complex(name, value))
        if name == "multiply" and self._budget.contracts and value.dtype in _CONTRACTED:
            return self._product(value, operands)
        if not type_of(value).is_float:
            return value
        value = self._errors.finished(name, self._errors.moved(name, value))
        self._keep_terms(name, value, operands)
        return value

    def _converted(
        self, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        """Convert a value that may be held in f32; to a narrow type, hold the operand."""
        target = attributes["shape"].element_type
        if type_of(operands[0]) is target:
            return function(*operands, **attributes)
        wide = self._wide(operands[0])
        if wide is not None and target is F32:
            return wide
        operand = self._errors.flushed(operands[0] if wide is None else wide)
        value = np.asarray(function(operand, **attributes))
        if not target.is_float:
            return self._errors.flushed(value)
        if self._budget.keeps_wide and target.bits < 32 and operand.dtype == np.float32:
            self._kept[id(value)] = _Kept(value, wide=operand)
            return value
        moved = self._errors.moved("convert", value) if _narrows(operand, value) else value
        return self._errors.flushed(moved)

    # Wider than the type

    def _product(self, value: Array, operands: Sequence[Array]) -> Array:
        """Return the rounded product, and hold the unrounded one for a sum."""
        lhs, rhs = (x.astype(np.float64) for x in operands)
        product = lhs * rhs
        rest = np.zeros_like(product)
        if value.dtype == np.float64:
            rest = two_product(lhs, rhs).low
            shown = self._errors.finished("multiply", value)
        else:
            shown = self._errors.signed(value)
        kept = product, np.where(np.isfinite(rest), rest, 0.0)
        self._kept[id(shown)] = _Kept(shown, product=kept)
        return np.asarray(shown)

    def _wide(self, value: Any) -> Array | None:
        """Choose at random the held f32 value of a narrow one; None to use the narrow one."""
        kept = self._kept.get(id(value))
        return kept.wide if kept is not None and kept.wide is not None and self._chance() else None

    def _in_full(self, value: Any) -> Any:
        """Convert a narrow value to f32, at random to the held one; return others unchanged."""
        if getattr(value, "dtype", None) is None or not _is_narrow(value):
            return value
        wide = self._wide(value)
        return value.astype(np.float32) if wide is None else wide

    def _widens(self, *operands: Any) -> bool:
        """Decide at random whether a narrow operation is done in f32."""
        return self._budget.keeps_wide and all(map(_is_narrow, operands)) and self._chance()

    def _shown(self, result: Array, dtype: np.dtype[Any]) -> Array:
        """Round an f32 result to its narrow type, and hold the unrounded one."""
        value = np.asarray(result.astype(dtype))
        self._kept[id(value)] = _Kept(value, wide=result)
        return value

    def _exactly(
        self, name: str, function: Callable[..., Any], operands: Sequence[Array], attributes: Any
    ) -> Array:
        """Evaluate an op that does not round."""
        if not (type_of(operands[0]).is_float or type_of(operands[0]).is_complex):
            return np.asarray(function(*operands, **attributes))
        narrow = operands[0].dtype
        widens = self._widens(*operands)
        if widens:  # of one value that is given twice there is one form
            full = {id(x): self._in_full(x) for x in operands}
            operands = tuple(full[id(x)] for x in operands)
        in_total = attributes.get("type") == "TOTALORDER"
        if self._flushes_all and name != "is_finite" and not in_total:
            operands = tuple(
                without_subnormals(x) if self._budget.may_flush(type_of(x)) else x for x in operands
            )
        value = np.asarray(function(*operands, **attributes))
        if not type_of(value).is_float:
            return value
        value = value if name == "sign" else self._errors.signed(value)
        return self._shown(value, narrow) if widens else value

    def _contracted(
        self, function: Callable[..., Any], operands: Sequence[Array], attributes: Any
    ) -> Array:
        """Evaluate a dot or convolution with its factors and sums in f32 or, for f64, in f64."""
        shape = attributes["shape"]
        keeps = shape.element_type.is_float and shape.element_type is not F64
        if not self._widens(*operands) or not keeps:
            return np.asarray(self._errors.signed(np.asarray(function(*operands, **attributes))))
        wide = attributes | {"shape": replace(shape, element_type=F32)}
        result = np.asarray(self._errors.signed(function(*map(self._in_full, operands), **wide)))
        if shape.element_type is F32:
            return result
        return self._shown(result, shape.element_type.numpy)

    def _moved_wide(
        self, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        value = function(*operands, **attributes)
        wide = [getattr(self._kept.get(id(x)), "wide", None) for x in operands]
        if any(x is not None for x in wide) and isinstance(value, np.ndarray):
            full = [self._in_full(x) if y is None else y for x, y in zip(operands, wide)]
            self._kept[id(value)] = _Kept(value, wide=np.asarray(function(*full, **attributes)))
        return value

    def _fused(self, name: str, operands: Sequence[Array]) -> Array | None:
        """Evaluate a sum with an unrounded product (FMA), at random; None if it is to be an
        ordinary sum."""
        if name not in _SUMS or operands[0].dtype not in _CONTRACTED:
            return None
        for number in (0, 1):
            kept = self._kept.get(id(operands[number]))
            if kept is not None and kept.product is not None and self._chance():
                other = operands[1 - number].astype(np.float64)
                signs = (1.0, 1.0) if name == "add" else (1.0, -1.0)
                product, rest = (x * signs[number] for x in kept.product)
                other = other * signs[1 - number]
                if operands[0].dtype == np.float32:
                    return np.asarray(self._errors.finished(name, fused(product, other)))
                total, error = two_sum(product, other)
                whole = np.where(np.isfinite(error), total + (error + rest), total)
                return np.asarray(self._errors.finished(name, whole))
        return None

    # Constants, one after the other

    def _keep_terms(self, name: str, value: Array, operands: Sequence[Array]) -> None:
        sums = self._budget.rewrites and name in _SUMS
        if not sums or id(operands[1]) not in self._constants:
            return
        constant = operands[1] if name == "add" else -operands[1]
        self._kept[id(value)] = _Kept(value, terms=(operands[0], np.asarray(constant)))

    def _added_up(self, name: str, operands: Sequence[Array]) -> Array | None:
        """Evaluate (x + c) + d as x + (c + d), at random; None for other sums."""
        kept = self._kept.get(id(operands[0]))
        if name not in _SUMS or kept is None or kept.terms is None:
            return None
        if id(operands[1]) not in self._constants or not self._chance():
            return None
        sums = column("interp.ops")["add"].function, column("interp.ops")[name].function
        constant = sums[1](kept.terms[1], operands[1])
        value = np.asarray(sums[0](kept.terms[0], constant))
        return np.asarray(self._errors.finished(name, value))


def _is_narrow(value: Any) -> bool:
    """Test for a float of two bytes, which a compiler may keep in f32."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.itemsize == 2 and type_of(value).is_float
