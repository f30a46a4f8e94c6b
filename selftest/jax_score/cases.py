"""List the cases: JAX's harnesses of its primitives, its records of operations, tables of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from jax import lax
from jax._src import test_util
from jax._src.internal_test_util import lax_test_util, test_harnesses

from selftest.jax_score import calls

Arrays = Callable[[np.random.RandomState], Sequence[Any]]
_RECORDS: Any = lax_test_util  # without types
_SHAPES: list[Any] = [[(3,)] * 3, [(3, 4), (3, 1), (1, 4)], [(2, 3, 4), (2, 1, 4), (2, 1, 4)]]


@dataclass(frozen=True, slots=True)
class Case:
    """A function, made on demand, with arguments drawn from a seed; ``tolerance`` as in JAX's
    tests: a number, one per type, or JAX's default. ``skipped`` is why JAX does not run it on
    CPUs."""

    group: str
    name: str
    function: Callable[[], Callable[..., Any]]
    arguments: Arrays
    tolerance: Any = None
    skipped: str = ""


def cases() -> Iterator[Case]:
    """Yield all cases for the types that JAX has now (``jax_enable_x64``)."""
    return chain(_harnesses(), _records(), _reductions(), map(_called, calls.calls()))


def _tolerances() -> dict[str, Any]:
    """Return JAX's tolerances by operation."""
    records = _RECORDS.lax_ops()
    return {record.op: record.tol for record in records if record.tol is not None}


def _harnesses() -> Iterator[Case]:
    known = _tolerances()
    for harness in test_harnesses.all_harnesses:
        limits = [
            limit.description
            for limit in harness.jax_unimplemented
            if limit.filter(device="cpu", dtype=harness.dtype)
        ]
        yield Case(
            f"lax.{harness.group_name}",
            harness.name,
            _given(harness.dyn_fun),
            harness.dyn_args_maker,
            known.get(harness.group_name),
            skipped="; ".join(limits),
        )


def _records() -> Iterator[Case]:
    """Yield each operation of lax for all types and shapes, as JAX's tests of lax do."""
    for record in _RECORDS.lax_ops():
        operation = getattr(lax, record.op)
        for dtype, shapes in product(dict.fromkeys(record.dtypes), _SHAPES):
            given = tuple(shapes[: record.nargs])
            if record.op in _WITHOUT_BROADCASTING:
                given = given[:1] * record.nargs
            name = f"{np.dtype(dtype).name} {'×'.join(map(_dims, given))} of the records"
            draw = partial(_drawn, record.rng_factory, given, dtype)
            yield Case(f"lax.{record.op}", name, _given(operation), draw, record.tol)


_WITHOUT_BROADCASTING = {"betainc", "igamma", "igammac"}


def _reductions() -> Iterator[Case]:
    """Yield the named reductions of lax for all types."""
    for record in _RECORDS.lax_named_reduce_ops():
        for dtype, axes in product(dict.fromkeys(record.dtypes), [(0,), (1,), (0, 2), ()]):
            name = f"{np.dtype(dtype).name} axes={axes}"
            draw = partial(_drawn, test_util.rand_small, [(2, 3, 4)], dtype)
            operation = partial(record.op, axes=axes)
            yield Case(f"lax.{record.op.__name__}", name, _given(operation), draw)


def _given(operation: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    return lambda: operation


def _drawn(
    factory: Callable[..., Any], shapes: Sequence[Any], dtype: Any, rng: np.random.RandomState
) -> list[Any]:
    make = factory(rng)
    return [make(shape, dtype) for shape in shapes]


def _dims(shape: Sequence[int]) -> str:
    return str(list(shape)).replace(" ", "")


def _called(call: calls.Call) -> Case:
    return Case(call.group, call.name, call.function, call.arguments, call.tolerance)
