"""The host plan says all that a run takes: places within memory, sizes that a GPU takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import has_c_compiler
from cuda_programs import CONTROL
from test_phases import ROWS

import backend_c
import hlo
import interp
from backend_c.cuda import phases
from backend_c.cuda.geometry import MOST_BLOCKS, MOST_THREADS
from backend_c.cuda.host_plan import (
    LIBRARY_BYTES,
    RANDOM_BYTES,
    CopyBytes,
    FillBytes,
    HostLoop,
    HostPlan,
    HostSwitch,
    LaunchKernel,
    MultiplyMatrices,
    host_plan,
    in_text_order,
    launches,
)
from backend_c.ir.settings import LIBRARY_SIDE
from backend_c.pipeline import lowered, settings_for
from backend_c.render.dialect import CUDA
from backend_c.render.translation_units import Place, render_plan
from fuzz.draw.choices import examples
from fuzz.draw.programs import program
from hlo.bit_equality import differences
from hlo.module import Module
from hlo_oracle.arguments import from_seed


def planned(module: Module, numerics: str = "exact") -> HostPlan:
    settings = replace(settings_for(numerics, CUDA), library_side=LIBRARY_SIDE)
    plan = phases.split(lowered(module, settings))
    return host_plan(plan, render_plan(plan, CUDA))


def end_of(host: HostPlan, place: Place) -> int:
    """The bytes that may be accessed from a place."""
    if place.block in ("arguments", "results"):
        shape = (host.arguments if place.block == "arguments" else host.results)[place.offset]
        return shape.elements * shape.element_type.numpy.itemsize
    size = len(host.constants) if place.block == "constants" else host.workspace_bytes
    return size - place.offset


def modules() -> list[Module]:
    """The two programs, and drawn ones."""
    return [*map(hlo.parse, (ROWS, CONTROL)), *examples(program, 40, "host plans")]


def test_every_place_is_within_its_memory() -> None:
    for module in modules():
        try:
            host = planned(module)
        except hlo.Unsupported:
            continue
        require_within(host)


def require_within(host: HostPlan) -> None:
    sizes = {"float": 4, "double": 8, "hlo_c64": 8, "hlo_c128": 16, "hlo_seed": RANDOM_BYTES}
    sizes |= {f"{sign}int{8 * n}_t": n for sign in ("", "u") for n in (1, 2, 4, 8)}
    for step in in_text_order(host.steps):
        match step:
            case LaunchKernel():
                for operand in step.operands:
                    size = sizes[operand.c_type]
                    assert operand.elements * size <= end_of(host, operand.place), operand
            case MultiplyMatrices():
                assert end_of(host, step.workspace) >= LIBRARY_BYTES
            case CopyBytes(source, target, size):
                assert size <= min(end_of(host, source), end_of(host, target))
            case FillBytes(target, _, size):
                assert size <= end_of(host, target)
            case HostLoop(_, _, predicate, _):
                assert end_of(host, predicate) >= 1
            case HostSwitch(_, selector, is_pred, _):
                assert end_of(host, selector) >= (1 if is_pred else 4)


@pytest.mark.parametrize("text", [ROWS, CONTROL])
def test_launches_are_numbered_and_fit_a_gpu(text: str) -> None:
    found = launches(planned(hlo.parse(text)))
    assert [step.number for step in found] == list(range(len(found)))
    for step in found:
        blocks, threads, shared = step.geometry
        assert 1 <= blocks <= MOST_BLOCKS and 1 <= threads <= MOST_THREADS and not shared
        assert threads <= step.most_threads
        assert threads == 1 if step.shape == "single" else threads % 32 == 0
        assert step.shape == "grid" or blocks == 1


def test_rows_have_a_block_each_and_elements_a_thread() -> None:
    text = "HloModule m\nENTRY e { x = f32[%d] parameter(0)\n ROOT y = f32[%d] negate(x) }"
    for elements in (1, 255, 257, 1000, 10**9):
        (step,) = launches(planned(hlo.parse(text % (elements, elements))))
        blocks, threads, _ = step.geometry
        iterations = elements if elements < 128 else elements // 4  # lines of four
        assert blocks == min(MOST_BLOCKS, math.ceil(iterations / threads))


def test_a_product_keeps_its_operands_as_long_as_the_library_may_need_them() -> None:
    """The operands of a product do not overlap its result in the workspace: a library may compute
    it in place of several launches with scratch arrays."""
    text = """HloModule m
ENTRY e { x = f32[128,8192] parameter(0)
          y = f32[8192,128] parameter(1)
          s = f32[128,8192] negate(x)
          d = f32[128,128] dot(s, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT p = f32[128,128] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    host = planned(hlo.parse(text), "fast")
    require_within(host)
    (product,) = (s for s in in_text_order(host.steps) if isinstance(s, MultiplyMatrices))
    assert product.number == 0 and product.origin.instruction == "d"
    assert len(product.launches) > 1  # the sums are long: parts of them
    assert product.lhs.block == product.result.block == "workspace"
    starts = sorted((product.lhs.offset, product.result.offset))
    assert starts[1] - starts[0] >= 128 * 128 * 4
    assert all(step in in_text_order(host.steps) for step in product.launches)


def test_control_flow_is_read_back_and_zeros_are_filled() -> None:
    steps = list(in_text_order(planned(hlo.parse(CONTROL)).steps))
    assert sum(isinstance(step, HostLoop) for step in steps) == 1
    assert [step.is_pred for step in steps if isinstance(step, HostSwitch)] == [False, True]
    assert [step.number for step in steps if isinstance(step, HostLoop | HostSwitch)] == [0, 1, 2]
    assert any(isinstance(step, FillBytes) and step.value == 0 for step in steps)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_the_planned_geometries_give_the_same_bits() -> None:
    x = np.linspace(-3, 3, 300, dtype=np.float32)
    module = hlo.parse(CONTROL)
    emulated = backend_c.emulate(module)
    for which, is_first in ((0, True), (1, False), (2, True), (7, False), (-1, True)):
        arguments = x, np.asarray(np.int32(which)), np.asarray(is_first)
        expected = interp.evaluate(module, *arguments, seed=9)
        assert not differences(expected, emulated(*arguments, schedule=None, seed=9))
    module = hlo.parse(ROWS)
    arguments = from_seed(module, 0)
    found = backend_c.emulate(module)(*arguments, schedule=None)
    assert not differences(interp.evaluate(module, *arguments), found)
