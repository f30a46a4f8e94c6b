"""Budgets are sets of permissions: one more never narrows what is legal."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import hlo
import interp
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import program
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.types import BF16, ELEMENT_TYPES, F16, F32
from hlo.values import arrays_of
from interp.envelope.budget import REWRITTEN, UNKNOWN, XLA_CPU, XLA_GPU, XLA_TPU, Budget
from interp.envelope.enclosure import Enclosure, contains, is_nan
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE
from selftest.legal_compilers.literal import Literal

PERMISSIONS = ("keeps_wide", "contracts", "flushes", "flushes_narrow", "rewrites")
BARE = Budget("as written", elementary=0.0)


def drawn(number: int) -> Case:
    choices = Seeded(f"permissions {number}")
    module = program(choices, max_instructions=12, element_types=(F32, BF16, F16))
    return Case(module, arguments(choices, module))


def is_part(one: Enclosure, other: Enclosure) -> bool:
    """Whether all of one enclosure is legal in another."""
    if one.element_type.is_complex:
        return is_part_of(one.low.real, one.high.real, other.low.real, other.high.real)
    return is_part_of(one.low, one.high, other.low, other.high) and bool(
        (other.nan | ~one.nan).all()
    )


def is_part_of(low: np.ndarray, high: np.ndarray, least: np.ndarray, most: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):  # bf16 warns of NaN
        inside = np.asarray(low >= least) & np.asarray(high <= most)
        return bool((inside | is_nan(low) | is_nan(high)).all())


@pytest.mark.sampled(7)
@pytest.mark.parametrize("number", range(32), ids="case{}".format)
def test_one_more_permission_widens(number: int) -> None:
    case = drawn(number)
    sets = [frozenset(some) for n in range(4) for some in combinations(PERMISSIONS, n)]
    legal = {some: enclosed(case, some) for some in sets}
    for some in sets:
        for name in set(PERMISSIONS).difference(some):
            if (wider := legal.get(some | {name})) is not None:
                assert all(map(is_part, legal[some], wider)), (some, name)


def enclosed(case: Case, permissions: frozenset[str]) -> list[Enclosure]:
    """Enclose each array of a program's result, for a peer with some permissions."""
    peer = replace(BARE, **dict.fromkeys(permissions, True))
    return list(arrays_of(enclose(case.module, *case.arrays, peer=peer).result))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", range(48), ids="case{}".format)
def test_the_literal_evaluation_is_legal(number: int) -> None:
    """The literal evaluation, each instruction rounded in the type and order written, is legal
    under every budget."""
    case = drawn(32 + number)
    literal = list(arrays_of(Literal()(case.module, *case.arrays)))
    exact = [("", x) for x in arrays_of(interp.evaluate(case.module, *case.arrays))]
    for peer in (BARE, UNKNOWN, XLA_CPU, XLA_GPU, XLA_TPU, REWRITTEN):
        found = Judge(case.module, case.arrays, exact, peer=peer).judged(literal, lambda m: None)
        assert not found.counts[OUTSIDE], peer.name


def _dot(factors: str, result: str) -> str:
    """Write a dot of one term."""
    return f"""HloModule m
ENTRY e {{
  x = {factors}[] parameter(0)
  y = {factors}[] parameter(1)
  ROOT dot = {result}[] dot(x, y)
}}
"""


@pytest.mark.parametrize(("factors", "result"), [("f64", "c64"), ("f64", "f32"), ("bf16", "f16")])
def test_factors_that_the_result_has_not_are_multiplied_as_they_are(
    factors: str, result: str
) -> None:
    """Factors are multiplied in their own type, also by the literal evaluation: 2e89 in c64 would
    be infinite, and times zero NaN."""
    module, most = hlo.parse(_dot(factors, result)), {"f64": 2e89, "bf16": 2e38}[factors]
    dtype = ELEMENT_TYPES[factors].numpy
    for x in (0.0, 1 / most):
        values = (np.asarray(x, dtype), np.asarray(most, dtype))
        (literal,) = arrays_of(Literal()(module, *values))
        (legal,) = arrays_of(enclose(module, *values, peer=UNKNOWN).result)
        assert np.isfinite(literal) and contains(legal, literal).all()
