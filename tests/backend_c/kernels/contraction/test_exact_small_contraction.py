"""Exact products of small matrices in C: the interpreter's bits, and nothing packed."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.pipeline import compiled
from hlo.bit_equality import differences

_EPILOGUES = {
    "as they are": "",
    "by column": "b = {r}[{n}] parameter(2)\n  w = {s} broadcast(b), dimensions={{2}}\n"
    "  ROOT e = {s} subtract(w, p)",
    "by row": "b = {r}[{m}] parameter(2)\n  w = {s} broadcast(b), dimensions={{1}}\n"
    "  ROOT e = {s} multiply(p, w)",
}


def _products(
    sizes: tuple[int, int, int, int], types: tuple[str, str], epilogue: str = "as they are"
) -> hlo.Module:
    (b, m, n, k), (factors, result) = sizes, types
    shape = f"{result}[{b},{m},{n}]"
    after = _EPILOGUES[epilogue].format(r=result, s=shape, m=m, n=n)
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = {factors}[{b},{m},{k}] parameter(0)
  y = {factors}[{b},{k},{n}] parameter(1)
  {"" if after else "ROOT "}p = {shape} dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  {after}
}}
""")


def _numbers(module: hlo.Module, seed: int) -> list[np.ndarray]:
    """Draw arguments: of few values, whose sums cancel, are ties or zeros, or of many binades; with
    odd seeds an infinity and a NaN among them."""
    random, arrays = np.random.default_rng(seed), []
    for parameter in module.entry.parameters:
        dims = parameter.shape.dims  # type: ignore[union-attr]
        few = random.choice([1, -1, 1 + 2**-7, -(2.0**-6), 0, -0.0, 3, 2.0**-24], size=dims)
        many = random.standard_normal(dims) * 2.0 ** random.integers(-9, 9, dims)
        values = np.array(few if seed // 2 % 2 else many)
        if seed % 2:
            values.flat[random.integers(values.size, size=2)] = np.inf, np.nan
        dtype = parameter.shape.element_type.numpy  # type: ignore[union-attr]
        arrays.append(values.astype(dtype))
    return arrays


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=12)
@given(
    st.tuples(st.integers(1, 5), st.sampled_from([1, 2, 3, 7, 33, 140])),
    st.tuples(st.integers(1, 15), st.sampled_from([1, 2, 5, 8, 16, 17, 32])),
    st.sampled_from([("f32", "f32"), ("bf16", "f32"), ("bf16", "bf16"), ("f16", "f16")]),
    st.sampled_from(sorted(_EPILOGUES)),
    st.integers(0, 99),
)
def test_the_interpreters_bits(
    rows: tuple[int, int],
    columns: tuple[int, int],
    types: tuple[str, str],
    epilogue: str,
    seed: int,
) -> None:
    module = _products((*rows, *columns), types, epilogue)
    arrays = _numbers(module, seed)
    executable = compiled(module, Settings(grain=1), threads=2)
    assert not differences(interp.evaluate(module, *arrays), executable(*arrays))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_tie_that_f64_rounds_away() -> None:
    """1 + 2^-24 + 2^-60 is above the tie between two f32, its sum in f64 is on it."""
    module = _products((1, 8, 4, 3), ("f32", "f32"))
    x = np.broadcast_to(np.float32([1, 2.0**-24, 2.0**-60]), (1, 8, 3)).copy()
    y = np.ones((1, 3, 4), np.float32)
    assert np.all(
        np.asarray(backend_c.compile(module, numerics="exact")(x, y)) == np.float32(1 + 2.0**-23)
    )


@pytest.mark.parametrize(("sizes", "is_packed"), [((9, 8, 8, 8), False), ((9, 8, 16, 8), True)])
def test_nothing_is_packed_for_tiles_half_empty(
    sizes: tuple[int, int, int, int], is_packed: bool
) -> None:
    module = _products(sizes, ("f32", "f32"))
    emitted = backend_c.emit(module, numerics="exact")
    (source,) = (text for name, text in emitted.items() if name.endswith(".c"))
    assert (b"hlo_tile(" in source) is is_packed
