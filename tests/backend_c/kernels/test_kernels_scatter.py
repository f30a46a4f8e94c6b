"""Scatters: windows, batches, bounds and combiners, against the interpreter."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_COMBINERS = {
    "add": "ROOT r = T[] add(a, b)",
    "maximum": "ROOT r = T[] maximum(a, b)",
    "assign": "ROOT r = T[] add(b, b)",
    "multiply": "ROOT r = T[] multiply(a, b)",
    "mixed": "m = T[] multiply(a, b)\n  ROOT r = T[] subtract(m, b)",
}


def _module(element_type: str, combiner: str, line: str) -> str:
    body = _COMBINERS[combiner].replace("T[]", f"{element_type}[]")
    return f"""HloModule m
c {{
  a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  {body}
}}
ENTRY e {{
  {line}, to_apply=c
}}
"""


_ROWS = """x = T[9,70] parameter(0)
  i = s32[40,1] parameter(1)
  u = T[40,70] parameter(2)
  ROOT s = T[9,70] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1"""


@pytest.mark.sampled(7)
@pytest.mark.parametrize("combiner", _COMBINERS)
@pytest.mark.parametrize("element_type", ["f32", "bf16", "f64", "s32", "u8", "c64"])
def test_rows(element_type: str, combiner: str) -> None:
    if element_type == "c64" and combiner == "maximum":
        return
    rng = np.random.default_rng(1)
    text = _module(element_type, combiner, _ROWS.replace("T[", f"{element_type}["))
    dtype = ELEMENT_TYPES[element_type].numpy
    x, u = (_values(rng, dims, dtype) for dims in ((9, 70), (40, 70)))
    i = rng.integers(-2, 11, (40, 1)).astype(np.int32)
    assert_same_bits(text, x, i, u)


def _values(
    rng: np.random.Generator, dims: tuple[int, ...], dtype: np.dtype[np.generic]
) -> np.ndarray:
    if dtype.kind == "c":
        return (rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, dims).astype(dtype)
    with np.errstate(invalid="ignore"):  # of types of four bits; ml_dtypes 0.7 tells of it
        return (rng.standard_normal(dims) * 10.0 ** rng.integers(-3, 4, dims)).astype(dtype)


def test_overlapping_windows() -> None:
    """Windows shorter than the operand meet one another in part, in an order that matters."""
    line = """x = f32[8,11] parameter(0)
  i = s64[2,30] parameter(1)
  u = f32[3,30,4] parameter(2)
  ROOT s = f32[8,11] scatter(x, i, u), update_window_dims={0,2}, inserted_window_dims={},
    scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"""
    rng = np.random.default_rng(2)
    x, u = (rng.standard_normal(dims).astype(np.float32) for dims in ((8, 11), (3, 30, 4)))
    i = rng.integers(-1, 9, (2, 30))
    for combiner in ("add", "mixed", "assign"):
        assert_same_bits(_module("f32", combiner, line), x, i, u)


def test_batching_dimensions_and_scalar_indices() -> None:
    line = """x = f32[3,5,7] parameter(0)
  i = u64[4,3] parameter(1)
  u = f32[4,3,7] parameter(2)
  ROOT s = f32[3,5,7] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1},
    scatter_dims_to_operand_dims={1}, index_vector_dim=2, input_batching_dims={0},
    scatter_indices_batching_dims={1}"""
    rng = np.random.default_rng(3)
    x, u = (rng.standard_normal(dims).astype(np.float32) for dims in ((3, 5, 7), (4, 3, 7)))
    i = rng.integers(0, 6, (4, 3)).astype(np.uint64)
    i[1, 1] = 2**64 - 1
    for combiner in ("add", "mixed"):
        assert_same_bits(_module("f32", combiner, line), x, i, u)


def test_special_values() -> None:
    """Zeros keep their sign, infinities of both signs cancel to NaN, huge sums cancel exactly."""
    text = _module("f32", "add", _ROWS.replace("T[", "f32["))
    x = np.full((9, 70), -0.0, np.float32)
    u = np.full((40, 70), -0.0, np.float32)
    u[::3, 10:20] = np.inf
    u[1::3, 15:30] = -np.inf
    u[:, 40:] = np.float32(3e38)
    u[1::2, 40:] = np.float32(-3e38)
    u[0, 50:] = np.float32(1e-45)
    i = (np.arange(40, dtype=np.int32) // 4 - 1).reshape(40, 1)
    assert_same_bits(text, x, i, u)


def test_several_operands() -> None:
    text = """HloModule m
c {
  a = f32[] parameter(0)
  k = s32[] parameter(1)
  b = f32[] parameter(2)
  l = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = f32[] select(p, a, b)
  n = s32[] select(p, k, l)
  ROOT t = (f32[], s32[]) tuple(v, n)
}
ENTRY e {
  x = f32[6] parameter(0)
  y = s32[6] parameter(1)
  i = s32[50,1] parameter(2)
  u = f32[50] parameter(3)
  v = s32[50] parameter(4)
  ROOT s = (f32[6], s32[6]) scatter(x, y, i, u, v), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c
}
"""
    rng = np.random.default_rng(4)
    x, u = rng.standard_normal(6).astype(np.float32), rng.integers(-3, 3, 50).astype(np.float32)
    y, v = np.arange(6, dtype=np.int32), np.arange(50, dtype=np.int32)
    assert_same_bits(text, x, y, rng.integers(0, 6, (50, 1)).astype(np.int32), u, v)


@pytest.mark.parametrize("updates", [0, 1])
def test_few_updates(updates: int) -> None:
    line = f"""x = f32[5] parameter(0)
  i = s32[{updates},1] parameter(1)
  u = f32[{updates}] parameter(2)
  ROOT s = f32[5] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1"""
    x = np.arange(5, dtype=np.float32)
    i, u = np.full((updates, 1), 3, np.int32), np.ones(updates, np.float32)
    assert_same_bits(_module("f32", "add", line), x, i, u)


# Large enough for threads to share: by rows that updates meet, by a window's dimension before and
# after those of the indices, by whole and by partial windows, by nothing.
_SHARED = (
    (
        "f32[50,70] f32[600,70]",
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}",
    ),
    (
        "f32[70,50] f32[70,600]",
        "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}",
    ),
    (
        "f32[90,7,9] f32[600,40,7,9]",
        "update_window_dims={1,2,3}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}",
    ),
    (
        "f32[70,50] f32[60,600]",
        "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}",
    ),
    (
        "f32[90] f32[600,60]",
        "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}",
    ),
    (
        "bf16[50,70] bf16[600,70]",
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}",
    ),
)


def _shared_module(body: str) -> tuple[str, list[tuple[np.dtype[np.generic], tuple[int, ...]]]]:
    """Return one program of all scatters by a computation, and its parameters."""
    computations, lines, parameters = [], ["i = s32[600,1] parameter(0)"], []
    for n, (shapes, attributes) in enumerate(_SHARED):
        operand, update = shapes.split()
        t = operand.split("[")[0]
        computations.append(
            f"c{n} {{\n a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n"
            f" {body.replace('T[]', f'{t}[]')}\n}}"
        )
        lines += [
            f"x{n} = {operand} parameter({2 * n + 1})",
            f"y{n} = {update} parameter({2 * n + 2})",
            f"r{n} = {operand} scatter(x{n}, i, y{n}), {attributes}, index_vector_dim=1,"
            f" to_apply=c{n}",
        ]
        for shape in (operand, update):
            dims = tuple(map(int, shape.split("[")[1][:-1].split(",")))
            parameters.append((ELEMENT_TYPES[t].numpy, dims))
    shapes = ", ".join(shapes.split()[0] for shapes, _ in _SHARED)
    lines.append(f"ROOT t = ({shapes}) tuple({', '.join(f'r{n}' for n in range(len(_SHARED)))})")
    return "\n".join(["HloModule m", *computations, "ENTRY e {", *lines, "}"]), parameters


def test_shared_by_threads() -> None:
    """The order of the updates of an element is that of the text, whoever folds them."""
    text, parameters = _shared_module("m = T[] multiply(a, b)\n ROOT r = T[] subtract(m, b)")
    rng = np.random.default_rng(6)
    arrays = [rng.integers(-4, 4, dims).astype(dtype) for dtype, dims in parameters]
    assert_same_bits(text, rng.integers(-3, 60, (600, 1)).astype(np.int32), *arrays)


_COUNTS = """x = T[50] parameter(0)
  i = s32[90000,1] parameter(1)
  u = T[90000] parameter(2)
  ROOT s = T[50] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1"""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("combiner", ["add", "maximum", "multiply", "assign", "mixed"])
@pytest.mark.parametrize("element_type", ["s32", "u8", "f32", "bf16", "s4"])
def test_many_updates_of_few_elements(element_type: str, combiner: str) -> None:
    """Many updates of few elements go to private copies where their order does not matter; updates
    out of bounds are dropped."""
    text = _module(element_type, combiner, _COUNTS.replace("T[", f"{element_type}["))
    rng = np.random.default_rng(8)
    dtype = ELEMENT_TYPES[element_type].numpy
    x, u = (_values(rng, dims, dtype) for dims in ((50,), (90000,)))
    if element_type in ("f32", "bf16"):
        u[::1000], u[1::1000] = np.nan, -0.0
    i = rng.integers(-2, 52, (90000, 1)).astype(np.int32)
    i[:100] = 7  # met by one part alone
    assert_same_bits(text, x, i, u)
    source = backend_c.emit(hlo.parse(text), numerics="exact")["unit_0.c"].decode()
    has_copies = combiner in ("add", "maximum", "multiply")
    if element_type in ("f32", "bf16"):
        has_copies = combiner == "maximum"
    assert ("i1 < 8" in source) == has_copies


def test_fast_sums_in_copies_are_the_same_with_any_threads() -> None:
    module = hlo.parse(_module("f32", "add", _COUNTS.replace("T[", "f32[")))
    rng = np.random.default_rng(9)
    x, u = (rng.standard_normal(dims).astype(np.float32) for dims in (50, 90000))
    i = rng.integers(-2, 52, (90000, 1)).astype(np.int32)
    results = [backend_c.compile(module, "fast", threads=n)(x, i, u) for n in (1, 2, 3)]
    assert len({result.tobytes() for result in results}) == 1
    exact = interp.evaluate(module, x, i, u)
    assert np.abs(results[0] - exact).max() < 2.0**-24 * 2000 * np.abs(u).max()


def test_fast_sums() -> None:
    """Fast scatters err as plain summation in f32 does, and have the same bits with any number of
    threads."""
    text, parameters = _shared_module("ROOT r = T[] add(a, b)")
    module = hlo.parse(text)
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(dims).astype(dtype) for dtype, dims in parameters]
    indices = rng.integers(-3, 60, (600, 1)).astype(np.int32)
    one, two = (backend_c.compile(module, "fast", threads=n)(indices, *arrays) for n in (1, 2))
    exact = interp.evaluate(module, indices, *arrays)
    sizes = interp.evaluate(module, indices, *map(np.abs, arrays))
    for first, second, sums, size in zip(one, two, exact, sizes, strict=True):
        assert first.tobytes() == second.tobytes()
        difference = np.abs(first.astype(np.float64) - sums.astype(np.float64))
        unit = 2.0**-24 if first.dtype == np.float32 else 2.0**-8
        # Each update of 600 meets a place once at most.
        assert (difference <= (600 * 2.0**-24 + unit) * size.astype(np.float64)).all()
