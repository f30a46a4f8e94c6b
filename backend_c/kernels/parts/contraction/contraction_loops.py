"""Write contractions in plain loops: integers, sums in double-double, exact sums."""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Address, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.reduction.exact_sum import Accumulator
from hlo.types import F64, PRED, ElementType

Types = tuple[ElementType, ElementType]
Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]


def masked(value: Expr, conditions: tuple[Expr, ...]) -> Expr:
    """Build a factor that is zero where one of its conditions does not hold."""
    zero = Constant(value.type, 0.0 if value.type.is_float else 0)
    for condition in conditions:
        value = apply("select", condition, value, zero, type=value.type)
    return value


def as_type(value: Expr, element_type: ElementType) -> Expr:
    """Build a conversion, unless the value has the type already."""
    return value if value.type is element_type else apply("convert", value, type=element_type)


def _zero(element_type: ElementType) -> Constant:
    return Constant(element_type, False if element_type is PRED else 0)


def integer_loops(factors: Factors, element_type: ElementType, write: Write, scope: Scope) -> None:
    """Write a contraction whose products and sums wrap in the result's type.

    The columns of a block are the lanes, so that right factors are read in vectors.
    """
    width = min(factors.n, 64)
    panels = -(-factors.n // width)
    dims = (factors.batch, factors.m, panels)
    with nest.outer(scope, dims, factors.k * width) as (b, m, panel):
        sums = scope.local(element_type, width)
        columns = ix.clamp(0, ix.subtract(factors.n, ix.multiply(panel, width)), width)
        with scope.loop(columns, "lanes") as lane:
            scope.store(sums, lane, _zero(element_type))
        with scope.loop(factors.k) as k:
            left = masked(*factors.lhs(b, m, k))
            left = scope.bind(as_type(left, element_type))
            with scope.loop(columns, "lanes") as lane:
                n = ix.add(ix.multiply(panel, width), lane)
                right = as_type(masked(*factors.rhs(b, n, k)), element_type)
                product = apply("multiply", left, right)
                total = apply("add", scope.load(sums, lane), product)
                scope.store(sums, lane, total)
        with scope.loop(columns, "lanes") as lane:
            n = ix.add(ix.multiply(panel, width), lane)
            write(factors.place(b, m, n), (scope.load(sums, lane),))


def exact_loops(
    factors: Factors, types: Types, element_type: ElementType, write: Write, scope: Scope
) -> None:
    """Write every sum in a superaccumulator: for types without faster loops (complex, 64-bit
    integers)."""
    dims = (factors.batch, factors.m, factors.n)
    with nest.outer(scope, dims, 64 * max(factors.k, 1)) as (b, m, n):
        result = exact_sum_of_products(factors, types, element_type, (b, m, n), scope)
        write(factors.place(b, m, n), (result,))


class DoubleDoubleLoops:
    """Write f64 sums in double-double, columns in lanes; sums in doubt again in a
    superaccumulator."""

    def __init__(self, factors: Factors, types: Types, write: Write, scope: Scope) -> None:
        self.factors, self.types, self.write, self.scope = factors, types, write, scope
        self.width = min(factors.n, 64)

    def emit(self) -> None:
        """Write all loops."""
        factors, scope = self.factors, self.scope
        panels = -(-factors.n // self.width)
        work = 8 * factors.k * self.width
        with nest.outer(scope, (factors.batch, factors.m, panels), work) as (b, m, panel):
            first = scope.bind(ix.multiply(panel, self.width))
            columns = ix.clamp(0, ix.subtract(factors.n, first), self.width)
            sums = self._added(b, m, first, columns)
            with scope.loop(columns, "independent") as lane:
                n = ix.add(first, lane)
                result = self._rounded(sums, lane, (b, m, n))
                self.write(factors.place(b, m, n), (result,))

    def _added(self, b: Expr, m: Expr, first: Expr, columns: Expr) -> tuple[Array, ...]:
        """Write the sums of a block of columns; return arrays of high and low parts and of
        magnitudes."""
        scope, factors = self.scope, self.factors
        sums = high, low, magnitudes = tuple(scope.local(F64, self.width) for _ in range(3))
        with scope.loop(columns, "lanes") as lane:
            for array in sums:
                scope.store(array, lane, Constant(F64, 0.0))
        with scope.loop(factors.k) as k:
            # Sums run along k in the outer loop and columns in the inner one: all lanes share the
            # left factor.
            left = scope.bind(as_type(masked(*factors.lhs(b, m, k)), F64))
            with scope.loop(columns, "lanes") as lane:
                n = ix.add(first, lane)
                right = scope.bind(as_type(masked(*factors.rhs(b, n, k)), F64))
                pair = Pointer(high, lane), Pointer(low, lane)
                scope.call("hlo_dd_add_product", *pair, left, right)
                # The f64 product, rounded, is good enough for the bound, which has room for that.
                magnitude = apply("abs", apply("multiply", left, right))
                scope.store(magnitudes, lane, apply("add", scope.load(magnitudes, lane), magnitude))
        return sums

    def _rounded(self, sums: tuple[Array, ...], lane: Expr, place: tuple[Expr, ...]) -> Expr:
        """Return a sum rounded once: by its bound, or added up again in a superaccumulator."""
        scope, (b, m, n) = self.scope, place
        result = scope.mutable(F64, Constant(F64, 0.0))
        loaded = [scope.load(array, lane) for array in sums]
        count = ix.constant(self.factors.k)
        is_decided = apply("dot-decided", *loaded, count, Address(result), type=PRED)
        with scope.when(apply("not", is_decided, type=PRED)):
            scope.assign(
                result, exact_sum_of_products(self.factors, self.types, F64, (b, m, n), scope)
            )
        return result


def exact_sum_of_products(
    factors: Factors,
    types: Types,
    element_type: ElementType,
    place: tuple[Expr, ...],
    scope: Scope,
) -> Expr:
    """Return the superaccumulator's sum over k of the products whose conditions hold, rounded
    once."""
    b, m, n = place
    accumulator = Accumulator(scope, element_type, factors=types)
    with scope.loop(factors.k) as k:
        left, counts = factors.lhs(b, m, k)
        # The left factor has all conditions there are: padding and groups are its own, and bounded
        # sizes of both factors are cut to the smaller one before (hlo/dynamic_sizes.py).
        right, _ = factors.rhs(b, n, k)
        accumulator.add_product(left, right, counts)
    return accumulator.rounded()
