"""Arrays of a file become the arguments of a program, parts of tuples among them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import hlo
from hlo import archive
from hlo.values import arrays_of
from hlo_oracle.arguments import from_archive

TUPLES = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  t = (s32[], token[], (bf16[3], (f64[2])), ()) parameter(1)
  ROOT y = f32[3] parameter(2)
}
"""
MODULE = hlo.parse(TUPLES)
_ROW = np.arange(3)
_INNER = (_ROW.astype(ml_dtypes.bfloat16), (np.array([0.5, 7.0]),))
VALUES = (
    _ROW.astype(np.float32),
    (np.array(4, np.int32), None, _INNER, ()),
    _ROW.astype(np.float32) / 2,
)
NAMES = ("x", "t{0}", "t{2,0}", "t{2,1,0}", "y")


def same(one: object, other: object) -> bool:
    """Whether two values have the same structure, types and bits."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return one is other


@pytest.mark.parametrize("is_named", [False, True])
def test_arrays_of_tuples(tmp_path: Path, is_named: bool) -> None:
    """In order as campaigns write them, or by name in any order."""
    path = tmp_path / "arguments.npz"
    arrays = archive.numbered(VALUES)
    if is_named:
        arrays = [(name, array) for name, (_, array) in zip(NAMES, arrays, strict=True)][::-1]
    archive.write(path, arrays)
    (found,) = from_archive(MODULE, path)
    assert same(found, VALUES)


def test_another_number_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "arguments.npz"
    archive.write(path, archive.numbered(VALUES[1:]))
    with pytest.raises(hlo.ArgumentError, match=r"npz: 5 arguments are expected, 4 were given"):
        from_archive(MODULE, path)


def test_parts_of_tuples_are_cast(tmp_path: Path) -> None:
    path = tmp_path / "arguments.npz"
    wide = [np.asarray(a, np.float64) for a in arrays_of(VALUES)]
    wide[1] = wide[1].astype(np.int64)
    archive.write(path, zip(NAMES, wide, strict=True))
    with pytest.raises(hlo.ArgumentError, match=r"x is f64\[3\], and f32\[3\] is expected"):
        from_archive(MODULE, path)
    (found,) = from_archive(MODULE, path, cast=True)
    assert same(found, VALUES)


ADD = hlo.parse("""HloModule m
ENTRY e {
  x = f32[] parameter(0)
  p0 = f32[] parameter(1)
  ROOT z = f32[] subtract(x, p0)
}
""")


def test_names_match_all_or_none(tmp_path: Path) -> None:
    """A misspelt name does not have arrays taken in order; numbers are no names."""
    path, one, two = tmp_path / "arguments.npz", np.float32(1), np.float32(2)
    archive.write(path, [("p0", np.asarray(two)), ("X", np.asarray(one))])
    with pytest.raises(hlo.ArgumentError, match=r"npz: x is missing; there are p0, X"):
        from_archive(ADD, path)
    archive.write(path, archive.numbered((np.asarray(one), np.asarray(two))))
    assert from_archive(ADD, path) == ((one, two),)


@pytest.mark.parametrize("wide", [1e300, -1e39])
def test_a_number_does_not_become_infinite(wide: float, tmp_path: Path) -> None:
    path = tmp_path / "arguments.npz"
    archive.write(path, [("x", np.array(wide)), ("p0", np.array(np.inf))])
    with pytest.raises(hlo.ArgumentError, match=r"x: .* does not fit into f32"):
        from_archive(ADD, path, cast=True)
