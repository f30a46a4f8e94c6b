"""Contractions in fast mode: within the error of plain summation, the same bits with any threads.

The bound is that of Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1, for sums
in any order: |error| <= gamma_k * sum |a| |b|, gamma_k = k u / (1 - k u); and what a product loses
that is below the normal range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Call, every
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import compiled, lowered, settings_for
from hlo.bit_equality import differences
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_LETTERS = "abcdefghijkl"
# Of the sums and of the result's type: the unit roundoff, and half of the smallest number.
_ROUNDING = {
    "f64": (2.0**-53, 0.0),
    "f32": (2.0**-24, 2.0**-150),
    "f16": (2.0**-11, 2.0**-25),
    "bf16": (2.0**-8, 2.0**-134),
}
_SUMS = {"f64": "f64", "c128": "f64"}  # all others have sums of f32
_COMPLEX = {"c64": "f32", "c128": "f64"}


@dataclass(frozen=True)
class Dot:
    """A dot as einsum's letters for its operands and its result, and what they stand for."""

    lhs: str
    rhs: str
    result: str
    extents: dict[str, int]
    operand_type: str
    result_type: str

    def parameters(self, first: int) -> list[str]:
        """Return the lines of its two operands."""
        return [
            f"p{first + n} = {self.operand_type}[{self.dims(letters)}] parameter({first + n})"
            for n, letters in enumerate((self.lhs, self.rhs))
        ]

    def dims(self, letters: str) -> str:
        """Return extents as HLO writes them."""
        return ",".join(str(self.extents[letter]) for letter in letters)

    def instruction(self, number: int) -> str:
        """Return the instruction on its operands."""
        batch = [c for c in self.result if c in self.lhs and c in self.rhs]
        contracted = [c for c in self.lhs if c in self.rhs and c not in batch]
        attributes = []
        for side, letters in (("lhs", self.lhs), ("rhs", self.rhs)):
            for name, chosen in (("batch", batch), ("contracting", contracted)):
                places = ",".join(str(letters.index(c)) for c in chosen)
                attributes.append(f"{side}_{name}_dims={{{places}}}")
        operands = f"p{2 * number}, p{2 * number + 1}"
        shape = f"{self.result_type}[{self.dims(self.result)}]"
        return f"r{number} = {shape} dot({operands}), {', '.join(attributes)}"

    def operands(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw operands of the type."""
        numpy_type = ELEMENT_TYPES[self.operand_type].numpy
        drawn = []
        for letters in (self.lhs, self.rhs):
            values = rng.standard_normal([self.extents[c] for c in letters])
            if self.operand_type in _COMPLEX:
                values = values + 1j * rng.standard_normal(values.shape)
            drawn.append(values.astype(numpy_type))
        return drawn

    def assert_within_bound(self, operands: Sequence[np.ndarray], result: np.ndarray) -> None:
        """Assert that a result is no worse than plain summation in the sums' type."""
        if self.operand_type not in _COMPLEX:
            self._assert_parts(((operands[0], operands[1]),), result)
            return
        (a, b), (c, d) = ((operand.real, operand.imag) for operand in operands)
        self._assert_parts(((a, c), (-b, d)), result.real)
        self._assert_parts(((a, d), (b, c)), result.imag)

    def _assert_parts(
        self, products: Sequence[tuple[np.ndarray, np.ndarray]], result: np.ndarray
    ) -> None:
        """Assert the bound for one sum of products of real numbers."""
        spec = f"{self.lhs},{self.rhs}->{self.result}"
        wide = [tuple(factor.astype(np.longdouble) for factor in pair) for pair in products]
        expected = sum(np.einsum(spec, *pair) for pair in wide)
        magnitude = sum(np.einsum(spec, *map(abs, pair)) for pair in wide)
        terms = math.prod(
            self.extents[c] for c in self.lhs if c in self.rhs and c not in self.result
        )
        k = len(products) * terms
        unit, smallest = _ROUNDING[_SUMS.get(self.operand_type, "f32")]
        # The expected sum has an error of its own.
        own = 2 * k * float(np.finfo(np.longdouble).eps)
        error = magnitude * (k * unit / (1 - k * unit) + own) + k * smallest
        result_type = _COMPLEX.get(self.result_type, self.result_type)
        relative, smallest = _ROUNDING[result_type]
        rounding = (abs(expected) + error) * relative + smallest
        is_same = result_type == _SUMS.get(self.operand_type, "f32")
        assert result.shape == expected.shape
        assert (
            abs(result.astype(np.longdouble) - expected) <= error + rounding * (not is_same)
        ).all()


@st.composite
def dots(draw: st.DrawFn) -> Dot:
    """Draw a dot: dimensions of each kind, in any order in the operands."""
    counts = [draw(st.integers(0, most)) for most in (1, 2, 2, 2)]
    letters = iter(_LETTERS)
    batch, rows, columns, steps = ("".join(next(letters) for _ in range(n)) for n in counts)
    large = st.sampled_from((1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 31, 33, 64, 65, 85, 100))
    extents = {c: draw(st.integers(0, 3) if c in batch else large) for c in batch + steps}
    extents |= {c: draw(large) for c in rows + columns}
    while math.prod(extents.values()) > 400_000:
        longest = max(extents, key=lambda c: extents[c])
        extents[longest] //= 3
    lhs = "".join(draw(st.permutations(batch + rows + steps)))
    rhs = "".join(draw(st.permutations(batch + columns + steps)))
    # The result's order of free dimensions is that of the operands.
    rows = "".join(c for c in lhs if c in rows)
    columns = "".join(c for c in rhs if c in columns)
    operand_type = draw(st.sampled_from(("f32", "f32", "bf16", "f16", "f64", "c64", "c128")))
    narrow = operand_type in ("bf16", "f16")
    result_type = "f32" if narrow and draw(st.booleans()) else operand_type
    return Dot(lhs, rhs, batch + rows + columns, extents, operand_type, result_type)


def module_of(cases: Sequence[Dot]) -> str:
    """Return one module with all dots, which takes one compilation."""
    lines = [line for n, case in enumerate(cases) for line in case.parameters(2 * n)]
    lines += [case.instruction(n) for n, case in enumerate(cases)]
    shapes = ", ".join(f"{c.result_type}[{c.dims(c.result)}]" for c in cases)
    names = ", ".join(f"r{n}" for n in range(len(cases)))
    body = "\n  ".join([*lines, f"ROOT t = ({shapes}) tuple({names})"])
    return f"HloModule m\nENTRY e {{\n  {body}\n}}\n"


def check(cases: Sequence[Dot]) -> None:
    """Assert the bound for each dot, and equal bits with 1, 2 and 3 threads and in a second run."""
    module = hlo.parse(module_of(cases))
    rng = np.random.default_rng(5)
    operands = [case.operands(rng) for case in cases]
    flat = [array for pair in operands for array in pair]
    executable = backend_c.compile(module, numerics="fast")
    runs = [executable.in_threads(threads)(*flat) for threads in (1, 2, 3, 3)]
    for case, pair, *results in zip(cases, operands, *runs, strict=True):
        case.assert_within_bound(pair, results[0])
        assert len({result.tobytes() for result in results}) == 1


@settings(max_examples=3)
@given(st.lists(dots(), min_size=6, max_size=12))
def test_no_worse_than_plain_sums(cases: list[Dot]) -> None:
    check(cases)


def _product(m: int, n: int, k: int, lhs: str = "ac", rhs: str = "cb") -> Dot:
    return Dot(lhs, rhs, "ab", {"a": m, "b": n, "c": k}, "f32", "f32")


_FEW_RESULTS = (
    *(_product(m, n, k) for m, n in ((1, 1), (3, 4)) for k in (9, 300, 4096, 5000)),
    _product(2, 3, 300, "ca"),
    Dot("zac", "zbc", "zab", {"z": 40, "a": 1, "b": 2, "c": 96}, "f32", "f32"),
    Dot("zc", "zc", "z", {"z": 50, "c": 77}, "bf16", "bf16"),
    Dot("c", "c", "", {"c": 2048}, "f64", "f64"),
)
# Right factors have steps side by side, and few rows share them.
_FEW_ROWS = (
    *(_product(m, n, k, rhs="bc") for m, n, k in ((5, 70, 256), (32, 6, 1100), (7, 67, 2300))),
    Dot("zac", "zbc", "zab", {"z": 3, "a": 8, "b": 65, "c": 300}, "f64", "f64"),
)
_EDGES = (
    *_FEW_RESULTS,
    *_FEW_ROWS,
    *(_product(m, 33, 300) for m in (1, 13, 14, 15, 84, 85, 200)),
    *(_product(15, n, 300) for n in (1, 31, 32, 64, 257)),
    *(_product(m, n, 300) for m, n in ((1, 1), (13, 257), (14, 32), (84, 64), (200, 31))),
    *(_product(m, n, 300) for m in (8, 16, 30) for n in (5, 16, 48)),
    *(_product(m, n, 4096, "ca") for m, n in ((16, 16), (5, 40), (100, 70))),  # in parts
    _product(20, 30, 3 * 1031),
    *(_product(m, n, k) for m in (7, 66) for n in (2, 3, 7, 10) for k in (3, 7, 15, 20, 32)),
    *(
        _product(66, n, 17, lhs, rhs)
        for n in (3, 10)
        for lhs in ("ac", "ca")
        for rhs in ("bc", "cb")
    ),
    Dot("ac", "cb", "ab", {"a": 66, "b": 10, "c": 9}, "f64", "f64"),
    Dot("zac", "zcb", "zab", {"z": 3, "a": 40, "b": 5, "c": 19}, "f16", "f16"),
    *(_product(100, 70, 700, lhs, rhs) for lhs in ("ac", "ca") for rhs in ("bc", "cb")),
    Dot("zac", "zcb", "zab", {"z": 40, "a": 8, "b": 8, "c": 8}, "f32", "f32"),
    Dot("zca", "zcb", "zab", {"z": 3, "a": 70, "b": 15, "c": 31}, "bf16", "f32"),
    Dot("zac", "zbc", "zab", {"z": 4, "a": 50, "b": 40, "c": 30}, "bf16", "bf16"),
    Dot("zac", "zbc", "zab", {"z": 17, "a": 100, "b": 70, "c": 130}, "bf16", "f32"),
    Dot("zac", "zbc", "zab", {"z": 2, "a": 90, "b": 70, "c": 300}, "f64", "f64"),
    Dot("ac", "cb", "ab", {"a": 30, "b": 40, "c": 150}, "c64", "c64"),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "compiler",
    ("gcc", "gcc -march=haswell", "gcc -march=x86-64", "clang", "gcc -DHLO_PORTABLE"),
)
def test_edges_of_tiles(compiler: str, choose_compiler: Callable[[str], None]) -> None:
    choose_compiler(compiler)
    check(_EDGES)


@pytest.mark.parametrize("case", _FEW_RESULTS, ids=str)
def test_factors_of_few_results_are_not_packed(case: Dot) -> None:
    plan = lowered(hlo.parse(module_of([case])), settings_for("fast"))
    assert not any(isinstance(s, Call) for kernel in plan.kernels for s in every(kernel.body))


def _calls(case: Dot) -> set[str]:
    plan = lowered(hlo.parse(module_of([case])), settings_for("fast"))
    calls = [s for kernel in plan.kernels for s in every(kernel.body) if isinstance(s, Call)]
    return {call.function for call in calls}


@pytest.mark.parametrize("case", _FEW_ROWS, ids=str)
def test_lines_that_few_rows_share_are_not_packed(case: Dot) -> None:
    assert _calls(case) == {f"hlo_gemm_{case.result_type}_lines"}


@pytest.mark.parametrize(
    "case",
    [_product(33, 70, 300, rhs="bc"), _product(8, 70, 255, rhs="bc"), _product(8, 65, 300, "ca")],
    ids=str,
)
def test_others_are(case: Dot) -> None:
    assert any("_lines" not in call for call in _calls(case))


def test_padding_meets_no_infinity() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1,3,3,1] parameter(0)
  w = f32[3,3,1,1] parameter(1)
  ROOT r = f32[1,3,3,1] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
"""
    x, w = np.ones((1, 3, 3, 1), np.float32), np.ones((3, 3, 1, 1), np.float32)
    w[0, 0] = np.inf
    result = backend_c.compile(hlo.parse(text), numerics="fast")(x, w)[0, :, :, 0]
    # The tap is above and to the left: the first row and the first column do not meet it.
    assert result.tolist() == [[4, 6, 4], [6, np.inf, np.inf], [4, np.inf, np.inf]]


@pytest.mark.parametrize("dims", [(170, 1024, 600), (100, 2048, 300), (20, 1024, 96)])
@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("root", ["dot", "maximum"])
def test_rows_pages_apart(dims: tuple[int, int, int], element_type: str, root: str) -> None:
    """Such rows are copied for several strips of columns; sums of small integers are exact."""
    m, k, n = dims
    shape = f"{element_type}[{m},{n}]"
    dot = f"{shape} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = {element_type}[{m},{k}] parameter(0)
  y = {element_type}[{k},{n}] parameter(1)
  d = {dot}
  z = {element_type}[] constant(0)
  b = {shape} broadcast(z), dimensions={{}}
  r = {shape} maximum(d, b)
  ROOT t = {shape} copy({"d" if root == "dot" else "r"})
}}
""")
    rng = np.random.default_rng(0)
    kind = np.float32 if element_type == "f32" else np.float64
    x, y = (rng.integers(-9, 10, size).astype(kind) for size in ((m, k), (k, n)))
    expected = x.astype(np.float64) @ y.astype(np.float64)
    executable = backend_c.compile(module, numerics="fast")
    expected = expected if root == "dot" else np.maximum(expected, 0)
    assert np.array_equal(executable.in_threads(2)(x, y), expected)


def test_complex_results_are_narrower_than_their_sums() -> None:
    """Sums of f64 become the parts of c64; those of small integers are exact."""
    types = ("c128", "c128"), ("c64", "f64"), ("c64", "s32"), ("s32", "s32")
    contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines, arrays = [], []
    for n, pair in enumerate(types):
        lines += [
            f"a{n} = {pair[0]}[2,3] parameter({2 * n})",
            f"b{n} = {pair[1]}[3,2] parameter({2 * n + 1})",
            f"d{n} = c64[2,2] dot(a{n}, b{n}), {contracted}",
            f"x{n} = {pair[0]}[2,3,1] reshape(a{n})",
            f"w{n} = {pair[1]}[3,1,2] reshape(b{n})",
            f"c{n} = c64[2,3,2] convolution(x{n}, w{n}), window={{size=3 pad=1_1}}, "
            "dim_labels=b0f_0io->b0f",
        ]
        for element_type, dims in zip(pair, ((2, 3), (3, 2)), strict=True):
            values = np.arange(6).reshape(dims) - 2
            numpy_type = ELEMENT_TYPES[element_type].numpy
            arrays.append(
                (values * (1 if element_type in ("f64", "s32") else 1 - 2j)).astype(numpy_type)
            )
    shapes = ", ".join("c64[2,2], c64[2,3,2]" for _ in types)
    names = ", ".join(f"d{n}, c{n}" for n in range(len(types)))
    body = "\n  ".join([*lines, f"ROOT t = ({shapes}) tuple({names})"])
    module = hlo.parse(f"HloModule m\nENTRY e {{\n  {body}\n}}\n")
    expected = interp.evaluate(module, *arrays)
    results = backend_c.compile(module, numerics="fast")(*arrays)
    for result, wanted in zip(results, expected, strict=True):
        assert np.array_equal(result, wanted)


_COPIED = """HloModule m
ENTRY e {
  x = c64[2,40,40,2] parameter(0)
  w = c64[3,5,2,9] parameter(1)
  complex = c64[2,40,40,9] convolution(x, w), window={size=3x5 pad=1_1x2_2},
    dim_labels=b01f_01io->b01f
  rows = bf16[1500,20] parameter(2)
  matrices = bf16[3,20,70] parameter(3)
  sizes = s32[3] parameter(4)
  ragged = f32[1500,70] ragged-dot(rows, matrices, sizes), lhs_contracting_dims={1},
    rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
  y = s8[20,30,90] parameter(5)
  z = s8[20,30,40] parameter(6)
  bytes = s32[20,90,40] dot(y, z), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (c64[2,40,40,9], f32[1500,70], s32[20,90,40]) tuple(complex, ragged, bytes)
}
"""


def test_left_factors_are_copied_in_blocks() -> None:
    """Results do not depend on whether each share of the threads copies its blocks in turn."""
    rng = np.random.default_rng(0)
    module = hlo.parse(_COPIED)
    arrays = []
    for parameter in module.entry.parameters:
        values = rng.integers(-9, 9, parameter.shape.dims)
        arrays.append(values.astype(parameter.shape.element_type.numpy))
    arrays[0] += 1j * rng.integers(-9, 9, arrays[0].shape)
    arrays[0][0, 3, 3, 0] = np.inf
    arrays[4] = np.array([700, 0, 790], np.int32)
    expected = interp.evaluate(module, *arrays)
    for most in (1, 10**9):
        settings = Settings(Numerics.FAST, grain=1, most_packed=most)
        for threads in (1, 3):
            results = compiled(module, settings, threads=threads)(*arrays)
            assert not differences(expected, results)


def test_complex_patches_are_copied_in_blocks() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = c64[1,512,512,4] parameter(0)
  w = c64[31,31,4,4] parameter(1)
  ROOT r = c64[1,512,512,4] convolution(x, w), window={size=31x31 pad=15_15x15_15},
    dim_labels=b01f_01io->b01f
}
""")
    plan = lowered(module, settings_for("fast"))
    assert sum(array.elements for kernel in plan.kernels for array in kernel.scratch) < 1 << 27
