"""Buffers that live at once do not overlap; where memory is scarce, no more than these is taken."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
from backend_c.lower.buffers import (
    ALIGNMENT,
    allocate,
    allocate_tightly,
    peak,
    workspace_lifetimes,
)
from backend_c.lower.plan import Launch, Plan
from backend_c.pipeline import lowered, settings_for
from backend_c.render.dialect import EMBEDDED
from hlo.types import U8, ArrayShape

_SCALAR = settings_for("exact", EMBEDDED)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_lives_at_once_is_apart(data: st.DataObject) -> None:
    plan = lowered(data.draw(fuzz.modules(max_instructions=8)), _SCALAR)
    lives = workspace_lifetimes(plan)
    for workspace in (allocate(plan), allocate_tightly(plan)):
        assert workspace.bytes >= peak(plan).bytes
        for one, (first, last) in lives.items():
            start = workspace.offsets[one]
            assert start % min(one.shape.element_type.numpy.itemsize, 8) == 0
            assert start + one.bytes <= workspace.bytes
            for other, (begin, end) in lives.items():
                if one is not other and first <= end and begin <= last and other.bytes:
                    there = workspace.offsets[other]
                    assert start + one.bytes <= there or there + other.bytes <= start


def _layers(*widths: int) -> hlo.Module:
    """Return dense layers of s8, each of so many features."""
    lines = [f"x0 = s8[1,{widths[0]}] parameter(0)"]
    for n, (before, width) in enumerate(zip(widths, widths[1:])):
        lines.append(f"w{n} = s8[{before},{width}] parameter({n + 1})")
        lines.append(
            f"x{n + 1} = s8[1,{width}] dot(x{n}, w{n}), lhs_contracting_dims={{1}},"
            " rhs_contracting_dims={0}"
        )
    lines[-1] = f"ROOT {lines[-1]}"
    return hlo.parse("HloModule m\nENTRY e {\n " + "\n ".join(lines) + "\n}")


def test_a_bottleneck_takes_what_is_alive() -> None:
    """Largest first, the 8 bytes in the middle find both places of 128 taken."""
    plan = lowered(_layers(9, 128, 128, 128, 128, 8, 128, 128, 128, 128, 9), _SCALAR)
    assert allocate_tightly(plan).bytes == peak(plan).bytes == 256


def test_ends_in_turn_take_what_is_alive() -> None:
    """Buffers placed in the order of their first steps take 26 bytes, as many as are alive; the
    largest first takes 29, whichever goes first."""
    lives = ((0, 2, 11), (1, 2, 11), (2, 4, 3), (3, 5, 11), (4, 6, 7), (5, 6, 8), (6, 6, 5))
    plan = Plan()
    buffers = [(life, plan.buffer(ArrayShape(U8, (life[2],)))) for life in lives]
    plan.steps = tuple(
        Launch(0, tuple(b for (*ends, _), b in buffers if step in ends), (), ())
        for step in range(7)
    )
    assert allocate_tightly(plan).bytes == peak(plan).bytes == 26


def test_pages_begin_in_different_sets_of_the_cache() -> None:
    plan = Plan()
    buffers = tuple(plan.buffer(ArrayShape(U8, (4096 * pages,))) for pages in (1, 4, 4, 2, 64, 1))
    plan.steps = (Launch(0, buffers, (), ()),)
    offsets = [allocate(plan).offsets[buffer] for buffer in buffers]
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    assert len({offset % 4096 for offset in offsets}) == len(buffers)


def test_too_large_a_workspace_is_told() -> None:
    module = _layers(9, 40, 60, 30, 9)
    assert backend_c.emit(module, "embedded", max_workspace=100)
    with pytest.raises(hlo.Unsupported, match="takes 100 bytes, more than 99: at %x2 of e 100 byt"):
        backend_c.emit(module, "embedded", max_workspace=99)
    with pytest.raises(hlo.ArgumentError, match="max_workspace='a': a number of bytes"):
        backend_c.emit(module, "embedded", max_workspace="a")  # type: ignore[arg-type]
    with pytest.raises(hlo.Unsupported, match="^max_workspace is for the target embedded"):
        backend_c.emit(module, "openmp", max_workspace=100)
