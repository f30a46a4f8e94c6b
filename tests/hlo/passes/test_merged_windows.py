"""Windows along a dimension and the few elements behind it give the same bits along one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from window_programs import window_program

import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes.windows.merged_windows import merged_windows


def _module(dims: tuple[int, ...], window: str, operation: str = "add") -> Module:
    """Return the program of a reduce-window; its shape is what the verifier infers."""
    return window_program(dims, _result(dims, window), window, operation)


def _result(dims: tuple[int, ...], window: str) -> str:
    """Compute the extents of a result, as XLA's shape inference does."""
    given_ = dict(part.split("=") for part in window.split())
    rank = len(dims)

    def of(name: str, otherwise: str) -> list[str]:
        return given_.get(name, "x".join([otherwise] * rank)).split("x")

    found = []
    for extent, size, stride, pad, base, holes in zip(
        dims, of("size", "1"), of("stride", "1"), of("pad", "0_0"), of("lhs_dilate", "1"),
        of("rhs_dilate", "1"), strict=True,
    ):  # fmt: skip
        low, high = map(int, pad.split("_"))
        padded = (max(extent - 1, 0) * int(base) + 1 if extent else 0) + low + high
        spread = (int(size) - 1) * int(holes) + 1
        found.append(0 if padded < spread else (padded - spread) // int(stride) + 1)
    return ",".join(map(str, found))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Module, bool]:
    """Draw windows with one to three dimensions behind them, and whether they are merged."""
    rank, behind = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    dims = [draw(st.integers(3, 9)) for _ in range(rank)]
    few = [draw(st.integers(1, 5)) for _ in range(behind)]
    integers = st.integers(1, 3)
    size = [draw(integers) for _ in range(rank - 1)] + [draw(st.integers(2, 3))]
    stride, holes, base = ([draw(integers) for _ in dims] for _ in range(3))
    pad = [f"{draw(st.integers(0, 2))}_{draw(st.integers(0, 2))}" for _ in dims]
    fields = {"size": size, "stride": stride, "rhs_dilate": holes, "lhs_dilate": base}
    parts = [f"{k}={'x'.join(map(str, [*v, *[1] * behind]))}" for k, v in fields.items()]
    parts.insert(2, f"pad={'x'.join([*pad, *['0_0'] * behind])}")
    total = int(np.prod(few))
    is_merged = total < 16 and (total == 1 or stride[-1] == base[-1] == 1)
    return _module((*dims, *few), " ".join(parts), draw(st.sampled_from(("add", "maximum")))), (
        is_merged
    )


@settings(max_examples=60, deadline=None)
@given(programs())
def test_merged_windows_give_the_same_bits(drawn: tuple[Module, bool]) -> None:
    module, is_merged = drawn
    note(hlo.format(module))
    hlo.verify(module)
    changed = merged_windows(module)
    hlo.verify(changed)
    assert (changed != module) == is_merged
    shape = module.entry.parameters[0].shape
    x = np.random.default_rng(4).normal(size=shape.dims).astype(np.float32)  # type: ignore[union-attr]
    assert not differences(interp.evaluate(module, x), interp.evaluate(changed, x))


@pytest.mark.parametrize(
    ("dims", "window"),
    [
        ((4, 8, 16), "size=1x3x1"),  # channels fill a vector
        ((4, 8, 3), "size=1x2x1 stride=1x2x1"),  # neighbours skip pixels
        ((4, 3, 8), "size=1x1x3"),  # nothing behind the windows
        ((4, 8, 3), "size=1x1x1"),
        ((4, 8, 0), "size=1x3x1"),
        ((20, 3), "size=20x1 pad=19_0x0_0"),  # a cumulative sum
    ],
)
def test_other_windows_stay(dims: tuple[int, ...], window: str) -> None:
    module = _module(dims, window)
    assert merged_windows(module) == module
