"""Arrays within others: parts of concatenations, slices, and results where operands were."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

import hlo
import interp
from backend_c.lower.buffers import allocate_tightly, peak
from backend_c.lower.plan import Buffer, Copy, Launch, Plan, View, in_order
from backend_c.lower.views import is_dense, overlap, span, strides, window
from backend_c.pipeline import compiled, lowered, settings_for
from backend_c.render.dialect import EMBEDDED
from hlo.bit_equality import differences
from hlo.types import U8, ArrayShape
from hlo_oracle import arguments

_SCALAR = settings_for("exact", EMBEDDED)
_CONVOLUTION = "window={size=1x1}, dim_labels=b01f_o01i->b01f"


def _module(*lines: str) -> hlo.Module:
    return hlo.parse("HloModule m\nENTRY e {\n " + "\n ".join(lines) + "\n}")


def _bytes(module: hlo.Module) -> int:
    """Return the bytes of a workspace, which are those of its bound."""
    plan = lowered(module, _SCALAR)
    assert allocate_tightly(plan).bytes == peak(plan).bytes
    return peak(plan).bytes


def _require_bits(module: hlo.Module) -> None:
    """Require the interpreter's bits of a module as it is lowered for microcontrollers."""
    values = arguments.from_seed(module, 0)
    found = compiled(module, _SCALAR)(*values)
    assert not differences(interp.evaluate(module, *values), found)


@st.composite
def _windows(draw: st.DrawFn) -> tuple[Buffer, list[Buffer]]:
    """Draw an array and windows of it."""
    plan = Plan()
    dims = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    base = plan.buffer(ArrayShape(U8, tuple(dims)))
    found = []
    for _ in range(2):
        starts = [draw(st.integers(0, dim - 1)) for dim in dims]
        sizes = [draw(st.integers(0, dim - first)) for dim, first in zip(dims, starts)]
        shape = ArrayShape(U8, tuple(sizes))
        found.append(plan.buffer(shape, None, window(base, starts)))
    return base, found


def _places(buffer: Buffer) -> set[int]:
    first = 0 if buffer.view is None else buffer.view.start
    steps = strides(buffer.memory_dims)
    return {
        first + int(np.dot(index, steps)) if index else first
        for index in np.ndindex(*buffer.shape.dims)
    }


@given(_windows())
def test_windows_overlap_where_they_share_an_element(drawn: tuple[Buffer, list[Buffer]]) -> None:
    base, (one, other) = drawn
    here, there = _places(one), _places(other)
    assert overlap(one, other) == overlap(other, one) == bool(here & there)
    assert overlap(base, one) or not here
    assert is_dense(one.shape, one.memory_dims) == (len(here) in (0, span(one)))
    if here:
        assert max(here) - min(here) + 1 == span(one)


def test_reshaped_views_overlap_where_they_may() -> None:
    plan = Plan()
    base = plan.buffer(ArrayShape(U8, (8, 6)))
    rows = ArrayShape(U8, (8, 3))
    early, late, across = (plan.buffer(rows, None, View(base, n, (8, 3))) for n in (0, 24, 1))
    assert not overlap(early, late) and overlap(early, across) and overlap(across, late)


_BRANCHES = (
    "x = s8[1,4,4,3] parameter(0)",
    "v = s8[5,1,1,3] parameter(1)",
    "w = s8[7,1,1,3] parameter(2)",
    f"a = s8[1,4,4,5] convolution(x, v), {_CONVOLUTION}",
    f"b = s8[1,4,4,7] convolution(x, w), {_CONVOLUTION}",
    "both = s8[1,4,4,12] concatenate(a, b), dimensions={3}",
    "u = s8[2,1,1,12] parameter(3)",
    f"ROOT c = s8[1,4,4,2] convolution(both, u), {_CONVOLUTION}",
)


def test_parts_are_written_where_the_result_is() -> None:
    module = _module(*_BRANCHES)
    plan = lowered(module, _SCALAR)
    assert _bytes(module) == 16 * 12
    assert len([step for step in plan.steps if isinstance(step, Launch)]) == 3
    assert not [step for _, step in in_order(plan.steps) if isinstance(step, Copy)]


def test_a_chain_of_concatenations_is_one_array() -> None:
    """A chain of concatenations, where each layer reads all features before it and adds its own
    (DenseNet), takes the memory of the last array alone."""
    lines, features = ["x = s8[1,4,4,3] parameter(0)"], 4
    lines += ["w = s8[4,1,1,3] parameter(1)", f"c0 = s8[1,4,4,4] convolution(x, w), {_CONVOLUTION}"]
    for n in range(3):
        lines += [
            f"w{n} = s8[2,1,1,{features}] parameter({n + 2})",
            f"h{n} = s8[1,4,4,2] convolution(c{n}, w{n}), {_CONVOLUTION}",
            f"c{n + 1} = s8[1,4,4,{features + 2}] concatenate(c{n}, h{n}), dimensions={{3}}",
        ]
        features += 2
    lines += [
        f"v = s8[1,1,1,{features}] parameter(5)",
        f"ROOT r = s8[1,4,4,1] convolution(c3, v), {_CONVOLUTION}",
    ]
    assert _bytes(_module(*lines)) == 16 * features


def test_what_views_keep_alive_is_copied() -> None:
    """One element of a large array is needed until the end: a view of it would keep all."""
    module = _module(
        "x = s8[1,100] parameter(0)",
        "w = s8[100,100] parameter(1)",
        "a = s8[1,100] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "first = s8[1,2] slice(a), slice={[0:1], [0:2]}",
        "b = s8[1,100] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "c = s8[1,100] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "d = s8[1,100] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "v = s8[100,2] slice(w), slice={[0:100], [0:2]}",
        "e = s8[1,2] dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "ROOT r = s8[1,1] dot(first, e), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    )
    assert _bytes(module) <= 202


def test_a_residual_is_where_its_sum_will_be() -> None:
    module = _module(
        "x = s8[1,100] parameter(0)",
        "w = s8[100,100] parameter(1)",
        "a = s8[1,100] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "b = s8[1,100] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "c = s8[1,100] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "sum = s8[1,100] add(a, c)",
        "ROOT r = s8[1,100] dot(sum, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    assert _bytes(module) == 200


def test_what_is_read_elsewhere_is_not_overwritten() -> None:
    """A reversed operand is read at other places than the result is written at."""
    for opcode, most in (("negate(a)", 100), ("reverse(a), dimensions={1}", 200)):
        module = _module(
            "x = s8[1,100] parameter(0)",
            "w = s8[100,100] parameter(1)",
            "a = s8[1,100] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "n = s8[1,100] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            f"b = s8[1,100] {opcode}",
            "c = (s8[1,100], s8[1,100]) tuple(n, b)",
            "d = s8[1,100] get-tuple-element(c), index=1",
            "ROOT r = s8[1,100] dot(d, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        )
        assert _bytes(module) <= most


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_branches_keep_their_bits() -> None:
    _require_bits(_module(*_BRANCHES))


class _Drawn:
    """Draw a program of products, concatenations, slices, reshapes, maps and updates in place."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)
        self.lines = ["x = s8[4,6] parameter(0)", "i = s32[] parameter(1)", "z = s32[] constant(0)"]
        self.values = {"x": (4, 6)}
        kinds = (self._dot, self._dot, self._concatenate, self._concatenate, self._slice,
                 self._reshape, self._map, self._add, self._update)  # fmt: skip
        for _ in range(24):
            self._choose.choice(kinds)(*self._choose.choice([*self.values.items()][-6:]))

    def _emit(self, dims: tuple[int, int], text: str) -> None:
        name = f"v{len(self.values)}"
        self.lines.append(f"{name} = s8[{dims[0]},{dims[1]}] {text}")
        self.values[name] = dims

    def _other(self, fits: Callable[[tuple[int, int]], bool]) -> tuple[str, tuple[int, int]]:
        return self._choose.choice([(n, d) for n, d in self.values.items() if fits(d)])

    def _dot(self, name: str, dims: tuple[int, int]) -> None:
        other, (rows, _) = self._other(lambda d: d[1] == dims[1])
        labels = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
        if dims[0] * rows <= 64:
            self._emit((dims[0], rows), f"dot({name}, {other}), {labels}")

    def _concatenate(self, name: str, dims: tuple[int, int]) -> None:
        d = self._choose.randrange(2)
        count = self._choose.randint(1, 2)
        parts = [(name, dims)]
        parts += [self._other(lambda o: o[1 - d] == dims[1 - d]) for _ in range(count)]
        total = sum(part[d] for _, part in parts)
        if total <= 16:
            names = ", ".join(part for part, _ in parts)
            both = (total, dims[1]) if d == 0 else (dims[0], total)
            self._emit(both, f"concatenate({names}), dimensions={{{d}}}")

    def _slice(self, name: str, dims: tuple[int, int]) -> None:
        (a, b), (c, d) = (sorted(self._choose.sample(range(dim + 1), 2)) for dim in dims)
        self._emit((b - a, d - c), f"slice({name}), slice={{[{a}:{b}], [{c}:{d}]}}")

    def _reshape(self, name: str, dims: tuple[int, int]) -> None:
        self._emit((dims[1], dims[0]), f"reshape({name})")

    def _map(self, name: str, dims: tuple[int, int]) -> None:
        texts = (f"negate({name})", f"reverse({name}), dimensions={{1}}")
        self._emit(dims, self._choose.choice(texts))

    def _add(self, name: str, dims: tuple[int, int]) -> None:
        other, _ = self._other(lambda d: d == dims)
        self._emit(dims, f"add({name}, {other})")

    def _update(self, name: str, dims: tuple[int, int]) -> None:
        part, _ = self._other(lambda d: d[0] <= dims[0] and d[1] <= dims[1])
        self._emit(dims, f"dynamic-update-slice({name}, {part}, i, z)")

    def module(self) -> hlo.Module:
        last = [*self.values.items()][-3:]
        shapes = ", ".join(f"s8[{a},{b}]" for _, (a, b) in last)
        names = ", ".join(name for name, _ in last)
        return _module(*self.lines, f"ROOT r = ({shapes}) tuple({names})")


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("seed", range(8))
def test_drawn_programs_keep_their_bits(seed: int) -> None:
    _require_bits(_Drawn(seed).module())


_ROWS_ONTO_OTHERS = _module(
    "x = f32[40,12] parameter(0)",
    "y = f32[40,12] sine(x)",
    "rows = f32[3,12] slice(y), slice={[1:4], [0:12]}",
    "turned = f32[3,12] reverse(rows), dimensions={0}",
    "zero = s32[] constant(0)",
    "two = s32[] constant(2)",
    "ROOT n = f32[40,12] dynamic-update-slice(y, turned, two, zero)",
)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("has_lanes", (True, False))
def test_what_an_update_reads_is_not_what_it_overwrites(has_lanes: bool) -> None:
    """A view of the array that is updated is an operand, too."""
    settings = settings_for("exact") if has_lanes else _SCALAR
    values = arguments.from_seed(_ROWS_ONTO_OTHERS, 0)
    found = compiled(_ROWS_ONTO_OTHERS, settings)(*values)
    assert not differences(interp.evaluate(_ROWS_ONTO_OTHERS, *values), found)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_reshape_is_no_copy_where_loops_have_lanes() -> None:
    module = _module(
        "x = f32[96,96] parameter(0)",
        "y = f32[96,96] parameter(1)",
        "a = f32[9216] reshape(x)",
        "b = f32[9216] reshape(y)",
        "ROOT r = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    )
    assert [type(step) for step in lowered(module).steps] == [Launch]
    values = arguments.from_seed(module, 0)
    found = compiled(module, settings_for("exact"))(*values)
    assert not differences(interp.evaluate(module, *values), found)
