"""Formulas for complex functions are within what fast numerics promise of every operand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.passes import PIPELINES, run
from hlo.passes.complex_functions.expansion import FORMULAS, complex_functions
from hlo.types import C64, ELEMENT_TYPES, ElementType
from hlo.values import Array
from interp.envelope.budget import FAST
from interp.envelope.judgement import Judge
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED

ROWS = [(t, opcode) for t, formulas in FORMULAS.items() for opcode in formulas]
IDS = [f"{opcode}-{t}" for t, opcode in ROWS]
# Zeros, poles and branch points, what overflows, what is far from what squares are.
_COMPONENTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.pi / 2, -np.pi, 1e-30, 1e-300, -1e-310, 1e30,
               -1e300, 20.5, -88.0, 89.5, 300.0, 709.5, -745.0, 1 + 2**-20, 1 - 2**-23, np.inf,
               -np.inf, np.nan)  # fmt: skip


def _operands(element_type: ElementType, count: int = 200) -> Array:
    """Return the grid of components above, and numbers of many magnitudes: around the unit circle,
    beside the poles on both axes, and beside -1."""
    generator = np.random.default_rng(7)

    def signed(low: float, high: float) -> Array:
        sizes = 10.0 ** generator.uniform(low, high, count)
        return np.asarray(sizes * generator.choice([-1, 1], count))

    angles = generator.uniform(-np.pi, np.pi, count)
    radii = 1 + signed(-16, -1)
    poles = generator.integers(-5, 5, count) * np.pi / 2 + signed(-12, 0)
    widest = 38 if element_type is C64 else 307
    grid = np.meshgrid(_COMPONENTS, _COMPONENTS)
    parts = [
        (grid[0].ravel(), grid[1].ravel()),
        (signed(-6, 2.5), signed(-6, 2.5)),
        (radii * np.cos(angles), radii * np.sin(angles)),
        (signed(-12, 0), poles),
        (poles, signed(-12, 0)),
        (-1 + signed(-12, 0), signed(-12, 0)),
        (signed(-widest, widest), signed(-widest, widest)),
    ]
    real, imag = (np.concatenate([pair[k] for pair in parts]) for k in (0, 1))
    result = np.empty(real.size, element_type.numpy)
    with np.errstate(over="ignore"):
        result.real, result.imag = real, imag
    return result


def _beside_poles(y: Array) -> Array:
    """Return abscissas for atan2: any, real multiples of y, and y i or -y i nearly."""
    generator = np.random.default_rng(9)
    any_ = generator.permutation(y)
    with np.errstate(all="ignore"):
        multiples = y * generator.choice([-2.0, -1.0, 0.5, 1.0], y.size)
        errors = 1 + generator.normal(size=y.size) * 10.0 ** generator.uniform(-16, 0, y.size)
        poles = y * generator.choice([1j, -1j], y.size) * errors
    which = generator.integers(0, 4, y.size)
    return np.asarray(np.select([which == 0, which == 1], [multiples, poles], any_), y.dtype)


def _program(element_type: ElementType, opcode: str) -> tuple[Module, tuple[Array, ...]]:
    """Return a program of one instruction, and operands: exponents are whole half of the time."""
    first = _operands(element_type)
    operands = [first]
    if opcode == "atan2":
        operands.append(_beside_poles(first))
    if opcode == "power":
        generator = np.random.default_rng(8)
        exponents = generator.permutation(first)
        exponents[::2] = generator.integers(-3, 4, exponents[::2].size)
        operands.append(exponents)
    shape = f"{element_type}[{first.size}]"
    names = [f"p{k}" for k in range(len(operands))]
    lines = [f"  {name} = {shape} parameter({k})" for k, name in enumerate(names)]
    lines.append(f"  ROOT r = {shape} {opcode}({', '.join(names)})")
    return hlo.parse("\n".join(["HloModule m", "ENTRY e {", *lines, "}"])), tuple(operands)


def _judged(module: Module, operands: tuple[Array, ...], found: Array) -> dict[str, int]:
    exact = np.asarray(interp.evaluate(module, *operands))
    judge = Judge(module, operands, [("", exact)], peer=FAST)
    return dict(judge.judged([found], lambda other: None).counts)


@pytest.mark.parametrize(("element_type", "opcode"), ROWS, ids=IDS)
def test_a_formula_is_within_its_bound(element_type: ElementType, opcode: str) -> None:
    module, operands = _program(element_type, opcode)
    exact = module.entry.root_instruction.shape
    changed = complex_functions(module)
    hlo.verify(changed)
    assert opcode not in {i.opcode for i in changed.entry.instructions if i.shape == exact}
    counts = _judged(module, operands, np.asarray(interp.evaluate(changed, *operands)))
    assert not counts[OUTSIDE]
    assert counts[UNDETERMINED] < 0.05 * operands[0].size
    if element_type is C64:  # f64 leaves next to nothing for rounding to f32
        assert counts[EQUAL] > 0.9 * operands[0].size


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("element_type", "opcode"), ROWS, ids=IDS)
def test_so_is_the_c(element_type: ElementType, opcode: str) -> None:
    module, operands = _program(element_type, opcode)
    found = np.asarray(backend_c.compile(module, numerics="fast")(*operands))
    assert not _judged(module, operands, found)[OUTSIDE]


@pytest.mark.parametrize(("element_type", "opcode"), ROWS, ids=IDS)
def test_zeros_keep_their_signs(element_type: ElementType, opcode: str) -> None:
    zeros = (complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0))
    z = np.array(list(zeros), element_type.numpy)
    if opcode in ("atan2", "power", "rsqrt"):  # of zeros NaN, 1, and infinity and any NaN
        pytest.skip("no zero is a component of a zero's result")
    module = hlo.parse(
        f"HloModule m\nENTRY e {{\n  z = {element_type}[4] parameter(0)\n"
        f"  ROOT r = {element_type}[4] {opcode}(z)\n}}"
    )
    found = interp.evaluate(complex_functions(module), z)
    exact = np.asarray(interp.evaluate(module, z))
    for name in ("real", "imag"):
        parts = (getattr(np.asarray(one), name) for one in (found, exact))
        one, other = (np.where(part == 0, part, 1.0) for part in parts)
        assert not differences(one, other)


def test_only_fast_pipelines_have_formulas() -> None:
    having = {name for name, passes in PIPELINES.items() if "complex_functions" in passes}
    assert having == {name for name in PIPELINES if "fast" in name}
    module, _ = _program(ELEMENT_TYPES["c128"], "log")
    assert "log" in {
        i.opcode for c in run(module, "backend_c").computations for i in c.instructions
    }


def test_bounded_arrays_keep_the_instruction() -> None:
    module = hlo.parse(
        "HloModule m\nENTRY e {\n  z = c64[<=4] parameter(0)\n  ROOT r = c64[<=4] log(z)\n}"
    )
    assert complex_functions(module) == module
