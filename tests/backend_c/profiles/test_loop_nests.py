"""The loops that are read from rendered C are those of the loop IR, in every dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Array,
    Constant,
    Kernel,
    Loop,
    Statement,
    Store,
    Variable,
    inside,
)
from backend_c.pipeline import lowered, settings_for
from backend_c.profiles.loop_nests import loop_nests
from backend_c.render.dialect import CUDA, DIALECTS
from backend_c.render.statements import kernel_text
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.types import F32

TARGETS = sorted(DIALECTS)
few = settings(suppress_health_check=list(HealthCheck), max_examples=25)


def loops(statements: Sequence[Statement], depth: int = 0) -> Iterator[tuple[int, str]]:
    for statement in statements:
        is_loop = isinstance(statement, Loop)
        if isinstance(statement, Loop):
            yield depth, statement.variable.name
        yield from loops(inside(statement), depth + is_loop)


@few
@given(fuzz.modules(), st.sampled_from(TARGETS))
def test_loops_of_c_are_those_of_the_loop_ir(drawn: Module, target: str) -> None:
    dialect = DIALECTS[target]
    with suppress(Unsupported):
        for kernel in lowered(drawn, settings_for("fast", dialect)).kernels:
            text = kernel_text(kernel, "kernel_0", dialect)
            nests = loop_nests(text)
            assert [(n.depth, n.variable) for n in nests] == [*loops(kernel.body)]
            lines = text.split("\n")
            for n in nests:
                assert f" {n.variable} < {n.extent};" in lines[n.first]
                assert lines[n.last].strip() == "}"
                assert n.last < len(lines) - 2  # the kernel's own brace comes after


@few
@given(fuzz.modules(), st.sampled_from(TARGETS))
def test_a_listing_names_what_it_has(drawn: Module, target: str) -> None:
    with suppress(Unsupported):
        found = backend_c.listing(drawn, target)
        known = {(c.name, i.name) for c in found.before.computations for i in c.instructions}
        for step in found.steps:
            assert not step.function or f" {step.function}(" in found.texts[step.function]
            assert known.issuperset(step.computes)
            assert known.issuperset(step.arrays.values())
        assert set(found.texts) == {step.function for step in found.steps} - {""}


def test_the_loops_of_a_softmax_in_three_targets() -> None:
    module = hlo.parse((ROOT / "examples" / "attention.hlo").read_text())
    kinds = {}
    for target in TARGETS:
        found = backend_c.listing(module, target)
        (step,) = [one for one in found.steps if ("main.3", "exp.1") in one.computes]
        kinds[target] = [n.kind for n in loop_nests(found.texts[step.function])]
        # The division comes with the product.
        arrays = {name: of.instruction for name, of in step.arrays.items()}
        assert arrays == {"a0": "div.7", "r0": "div.11"}
        first = {of.instruction for of in found.steps[0].arrays.values()}
        assert first >= {"a_0_.1", "a_1_.1", found.steps[0].computes[-1].instruction}
    assert kinds["openmp"][0] == "threads" and "lanes" in kinds["openmp"]
    assert kinds["cuda"] == ["blocks", "threads", "threads", "threads"]
    assert set(kinds["embedded"]) == {"serial"}


def test_an_unknown_target_has_no_listing() -> None:
    with pytest.raises(Unsupported, match="target 'ptx'"):
        backend_c.listing(hlo.parse("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }"), "ptx")


def test_blocks_and_threads_share_a_grid_whatever_the_width_of_its_indices() -> None:
    """Indices are narrow where they can be, and the block size is known to some kernels."""
    small, large = ((1000, 100), (1 << 16, 1 << 16))
    kinds = {"parallel lanes": "blocks and threads", "parallel": "blocks", "lanes": "threads"}
    for rows, columns in (small, large):
        shape = f"f32[{rows},{columns}]"
        module = hlo.parse(f"""HloModule m
ENTRY e {{ x = {shape} parameter(0)
  y = {shape} exponential(x)
  ROOT z = {shape} add(x, y) }}""")
        (text,) = backend_c.listing(module, "cuda").texts.values()
        assert [nest.kind for nest in loop_nests(text)] == ["blocks and threads"]
    i = Variable(INDEX, "i", 0, 99)
    for kind, shared in kinds.items():
        loop = Loop(i, ix.constant(100), kind, (Store(Array("r0", F32, 100), i, _ONE),), threads=64)
        kernel = Kernel((), (Array("r0", F32, 100),), (), (loop,))
        assert [n.kind for n in loop_nests(kernel_text(kernel, "k", CUDA))] == [shared]


_ONE = Constant(F32, 1.0)
