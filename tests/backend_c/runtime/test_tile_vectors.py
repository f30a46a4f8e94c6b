"""Tiles have the same bits in vectors of every width, fused or not, from every compiler."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from c_driver import Driver, edge_floats, same
from conftest import require_compiler

from backend_c.native.toolchain import RUNTIME, Compiler, find_compiler, takes
from fuzz.compilers.processors import own_features

_PROTOTYPES = """
int lanes(void);
void tile(const double *lhs, const float *rhs, int64_t k, double *totals);
"""
# In brackets the header is the text itself, not the declarations of what is linked.
_SOURCE = """
#include <hlo_tile_vector.h>
PROTOTYPES
int lanes(void) { return HLO_TILE_LANES; }
void tile(const double *lhs, const float *rhs, int64_t k, double *totals) {
    hlo_tile(lhs, rhs, k, totals);
}
"""


@dataclass(frozen=True, slots=True)
class Width:
    """Flags that make vectors of so many doubles, on a processor with these instructions."""

    flags: tuple[str, ...]
    lanes: int
    needs: frozenset[str] = frozenset()


_WIDTHS = {
    "portable": Width(("-DHLO_PORTABLE",), 1),
    "SSE2": Width(("-march=x86-64",), 2),
    "AVX": Width(("-march=x86-64", "-mavx"), 4, frozenset({"avx"})),
    "AVX2": Width(("-march=x86-64", "-mavx2"), 4, frozenset({"avx2"})),
    "AVX2 and FMA": Width(("-march=x86-64", "-mavx2", "-mfma"), 4, frozenset({"avx2", "fma"})),
    "AVX-512": Width(("-march=x86-64", "-mavx512f"), 8, frozenset({"avx512f"})),
}
_BUILDS = [(name, width) for name in ("gcc", "clang") for width in _WIDTHS]
_ROWS, _COLUMNS = 8, 16
_STEPS = (0, 1, 2, 7, 8, 9, 127, 128, 129, 300)  # of 128 each block takes in turn, 8 unrolled


def _built(name: str, width: Width) -> Compiler:
    """The compiler with these flags instead of -march=native; skips what cannot be built or run."""
    require_compiler(name)
    compiler = find_compiler({**os.environ, "HLO_CC": name})
    machine = [flag for flag in width.flags if flag.startswith("-m")]
    if machine and not takes(compiler.command, machine):
        pytest.skip(f"{name} does not make code for this processor")
    if not width.needs <= own_features():
        pytest.skip(f"the processor has no {', '.join(sorted(width.needs))}")
    flags = (flag for flag in compiler.flags if flag != "-march=native")
    return replace(compiler, flags=(*flags, *width.flags))


@pytest.fixture(scope="module", params=[*_BUILDS, ("tcc", "portable")], ids=" ".join)
def built(request: pytest.FixtureRequest) -> tuple[Driver, int]:
    """The functions of _SOURCE, and the number of lanes that they should have."""
    name, title = request.param
    width = _WIDTHS[title]
    return Driver(_SOURCE, _PROTOTYPES, _built(name, width)), width.lanes


def _factors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    edges = edge_floats(np.float32, 2000)
    finite = edges[np.isfinite(edges)]
    info = np.finfo(np.float32)
    ends = np.array([info.max, info.tiny, info.smallest_subnormal, 0, 1], np.float32)
    return {
        "normal": rng.standard_normal(2000).astype(np.float32),
        "of every exponent": finite,
        "the ends of the range": np.concatenate([ends, -ends]),
        "not finite": edges,
    }


def _added_in_order(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The product of lhs[8, k] and rhs[k, 16], one step after the other, each rounded twice."""
    totals = np.zeros((_ROWS, _COLUMNS))
    with np.errstate(all="ignore"):
        for left, right in zip(lhs.T.astype(np.float64), rhs.astype(np.float64), strict=True):
            totals = totals + np.outer(left, right)
    return totals


@pytest.mark.parametrize("kind", _factors())
def test_the_bits_of_sums_in_the_order_of_k(built: tuple[Driver, int], kind: str) -> None:
    c, _ = built
    rng, values = np.random.default_rng(3), _factors()[kind]
    for k in _STEPS:
        lhs, rhs = rng.choice(values, (_ROWS, k)), rng.choice(values, (k, _COLUMNS))
        totals = np.full((_ROWS, _COLUMNS), 1e300)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            panel = lhs.T.astype(np.float64).copy()
        c.call("tile", panel, rhs.copy(), k, totals)
        assert same(totals, _added_in_order(lhs, rhs)).all(), k


def test_vectors_are_as_wide_as_the_processors(built: tuple[Driver, int]) -> None:
    c, lanes = built
    assert c.call("lanes") == lanes


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_additions_are_fused_though_contraction_is_off(name: str, tmp_path: Path) -> None:
    """It takes 1.3 times as long otherwise, and no bit would tell."""
    compiler = _built(name, replace(_WIDTHS["AVX2 and FMA"], needs=frozenset()))
    assert "-ffp-contract=off" in compiler.flags
    unit, assembly = tmp_path / "unit.c", tmp_path / "unit.s"
    unit.write_text(_SOURCE.replace("PROTOTYPES", f"#include <stdint.h>\n{_PROTOTYPES}"))
    command = [*compiler.command, *compiler.flags, f"-I{RUNTIME}", "-S", unit, "-o", assembly]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = assembly.read_text()
    assert "vfmadd" in text
    assert "vmulpd" not in text
