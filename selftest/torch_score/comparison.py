"""Compare results as PyTorch's own tests compare, and judge those that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.testing._internal import common_device_type as device_types
from torch.testing._internal.common_utils import TestCase

from hlo.errors import Error
from hlo_oracle import function_check
from hlo_oracle.frontends.torch import functions
from selftest.scoring.pages import elements, verdicts
from selftest.torch_score.cases import Call

_TEST: Any = TestCase()  # without types
_MOST = 100_000  # elements of results that are judged, which takes a minute then


def difference(
    found: Sequence[Any],
    wanted: Sequence[Any],
    tolerance: tuple[float, float],
    unspecified: Collection[int] = (),
) -> tuple[str, bool]:
    """Describe how results differ in number, type, shape or values (empty if they do not), and
    whether only by values. These may differ by the default tolerance of their type, or by a wider
    one, absolute and relative. Of results whose numbers are ``unspecified`` they are not
    compared."""
    if len(found) != len(wanted):
        return f"{len(found)} results, where eager gives {len(wanted)}", False
    for n, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        kinds = [None if x is None else (x.dtype, tuple(x.shape)) for x in (mine, other)]
        if kinds[0] != kinds[1]:
            return f"result {n}: {kinds[0]}, where eager gives {kinds[1]}", False
        if other is None or n in unspecified:
            continue
        limits = torch.testing._comparison.default_tolerances(mine, other)
        rtol, atol = map(max, limits, tolerance)
        try:
            _TEST.assertEqual(mine, other, rtol=rtol, atol=atol)
        except AssertionError as error:
            return f"result {n}: {error}", True
    return "", False


def tolerance_of(operation: Any, dtype: Any) -> tuple[float, float]:
    """Return the widest relative and the widest absolute tolerance (``toleranceOverride``) that the
    record of an operation sets for an element type in a test on CPUs; 0 if it sets none."""
    none = device_types.tol(atol=0.0, rtol=0.0)
    found = [x.d.get(dtype, none) for x in _overrides(operation, dtype)]
    return max((x.rtol for x in found), default=0.0), max((x.atol for x in found), default=0.0)


def _overrides(operation: Any, dtype: Any) -> Iterator[Any]:
    for one in operation.decorators:
        found = getattr(one, "decorators", [one])
        if one not in found and not _applies(one, dtype):
            continue
        yield from (x for x in found if isinstance(x, device_types.toleranceOverride))


def _applies(one: Any, dtype: Any) -> bool:
    """Test for a decorator (DecorateInfo) of tests on CPUs, of a type."""
    is_of_cpus = one.device_type is None or "cpu" in one.device_type
    return is_of_cpus and (one.dtypes is None or dtype in one.dtypes)


def legality(call: Call, found: Sequence[Any], *, is_exact: bool) -> str:
    """Judge results of a call, unless they are the exact ones, and eager's."""
    count = sum(x.numel() for x in found)
    if count > _MOST:
        return verdicts([("hlo_oracle", f"not judged, {count:,} elements")])
    sides: list[tuple[str, str]] = []
    function = partial(call.results_of, call.function)
    for side, results, budget in (("hlo_oracle", found, "fast"), ("eager", None, None)):
        if is_exact and results is not None:
            continue
        try:
            traced = functions.lower(function, call.tensors, {})
            traced = traced if results is None else replace(traced, call=partial(tuple, results))
            verdict = function_check.of_tensors(traced, budget=budget)
        except Error as error:
            sides.append((side, f"not judged, {error}"))
        else:
            sides.append((side, elements(verdict)))
    return verdicts(sides)
