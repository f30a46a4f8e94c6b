"""Bounded dimensions: every op at every actual size, in the interpreter and in C.

Three witnesses: the generated C has the same bits; the program with the actual sizes written as
static ones has, too; and XLA infers the same dimensions to be bounded.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded_programs import ADD, BOUND, ROWS, arguments, every_size, program, rows
from conftest import ROOT, has_c_compiler
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
import interp
from hlo.bit_equality import differences
from hlo.errors import ArgumentError, Unsupported, VerifyError
from hlo.module import Instruction, Module
from hlo.passes.dead_code import dead_code
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape, Shape, TupleShape, element_type_of

needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@pytest.mark.sampled(1)
@needs_c
@pytest.mark.parametrize("family", ROWS)
def test_c_has_the_same_bits(family: str) -> None:
    chosen = rows(family)
    module = hlo.parse(program(chosen))
    executable = backend_c.compile(module, numerics="exact", threads=1)
    for sizes in every_size():
        arrays = arguments(sizes)
        expected, actual = interp.evaluate(module, *arrays), executable(*arrays)
        for row, one, other in zip(chosen, expected, actual, strict=True):
            assert not differences(one, other), (row, sizes)


# ---- sizes as if they were static ----

# Their results are no shorter for shorter operands, or their computations have bounds of their own.
_WITHOUT_TWIN = {
    *("set-dimension-size", "dynamic-reshape", "custom-call"),
    *("while", "conditional", "call", "fusion"),
}


def _everything(module: Module) -> Module:
    """The module with all values of its entry as the result."""
    entry = module.entry
    values = [i for i in entry.instructions if i.name != entry.root]
    shape = TupleShape(tuple(i.shape for i in values))
    root = Instruction("everything", shape, "tuple", tuple(i.name for i in values))
    whole = replace(entry, instructions=(*entry.instructions, root), root=root.name)
    return with_entry(module, whole)


def _static_shape(value: Any) -> Shape:
    if isinstance(value, tuple):
        return TupleShape(tuple(map(_static_shape, value)))
    element_type = element_type_of(value.dtype)
    assert element_type is not None
    return ArrayShape(element_type, value.shape)


def _static_twin(module: Module, arrays: Sequence[np.ndarray]) -> Module:
    """The module in which every shape is as long as the value is for these arguments."""
    names = [i.name for i in module.entry.instructions if i.name != module.entry.root]
    values = dict(zip(names, interp.evaluate(_everything(module), *arrays), strict=True))

    def twin(instruction: Instruction) -> Instruction:
        operands = tuple(values[name] for name in instruction.operands)
        value = values.get(instruction.name, operands)
        attributes: dict[str, Any] = dict(instruction.attributes)
        if "slice" in attributes:
            attributes["slice"] = tuple(
                (min(start, size), max(min(limit, size), min(start, size)), stride)
                for (start, limit, stride), size in zip(attributes["slice"], operands[0].shape)
            )
        for name in ("slice_sizes", "dynamic_slice_sizes"):
            if name in attributes:
                attributes[name] = tuple(map(min, attributes[name], operands[0].shape))
        return instruction._replace(shape=_static_shape(value), attributes=attributes)

    entry = module.entry
    static = replace(entry, instructions=tuple(map(twin, entry.instructions)))
    return with_entry(module, static)


# Static operands, or parts of them, keep their sizes: the twin is a program at full size only.
_KEEP_SIZES = re.compile(r"\b(w|c4|g4|pb|iota)\b")
_TWINS = [
    row
    for family in ROWS
    for row in rows(family)
    if not _WITHOUT_TWIN & set(re.findall(r" ([a-z-]+)\(", row))
]


@pytest.mark.parametrize("row", _TWINS)
def test_sizes_as_if_they_were_static(row: str) -> None:
    module = dead_code(hlo.parse(program([row])))
    verified = 0
    for size in range(BOUND + 1):
        arrays = arguments((size, size, size, size, 1))
        twin = _static_twin(module, arrays)
        try:
            hlo.verify(twin)
        except VerifyError:
            continue
        verified += 1
        assert not differences(interp.evaluate(twin, *arrays), interp.evaluate(module, *arrays))
    bounded = "<=" in row or row.startswith(("f32[] ", "f32[3]", "f32[3,3]", "s32[]"))
    assert verified >= (3 if bounded and not _KEEP_SIZES.search(row) else 1)


@needs_c
@pytest.mark.parametrize("family", ["indexing", "movement"])
def test_embedded_has_the_same_bits(family: str, tmp_path: Path) -> None:
    """An embedded program gives the interpreter's bits, and the check that is emitted with it finds
    a difference."""
    module = hlo.parse(program(rows(family)))
    arrays = arguments((2, 3, 1, 4, 1))
    expected = interp.evaluate(module, *arrays)
    changed = (np.where(expected[0] == expected[0], 5, expected[0]), *expected[1:])
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    for recorded, status in ((expected, 0), (changed, 1)):
        files = backend_c.emit(module, "embedded", recorded=(arrays, recorded), numerics="exact")
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        subprocess.run([compiler, "-O1", *tmp_path.glob("*.c")], cwd=tmp_path, check=True)
        assert subprocess.run(["./a.out"], cwd=tmp_path, check=False).returncode == status


@needs_c
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_programs_made_bounded(data: st.DataObject) -> None:
    """Sizes are drawn, and set, in the entry and in what it calls."""
    module = data.draw(fuzz.loosened(data.draw(fuzz.modules(max_instructions=6))))
    note(hlo.format(module))
    hlo.verify(module)
    executable = backend_c.compile(module, numerics="exact", threads=1)
    for _ in range(4):
        arrays = data.draw(fuzz.arguments(module))
        assert not differences(interp.evaluate(module, *arrays), executable(*arrays))


# ---- definitions ----


def _both(text: str, *arrays: Any) -> Any:
    """The interpreter's result, which is that of the generated C."""
    module = hlo.parse(text)
    expected = interp.evaluate(module, *arrays)
    if has_c_compiler():
        executable = backend_c.compile(module, numerics="exact", threads=1)
        assert not differences(expected, executable(*arrays))
    return expected


def _numbers(count: int) -> np.ndarray:
    return np.arange(1, count + 1, dtype=np.float32)


_SUM = "ENTRY e { x = f32[<=5] parameter(0)\n y = f32[<=5] parameter(1)\n"


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        (3, 3, [2, 4, 6]),
        (1, 3, [2, 3, 4]),
        (3, 1, [2, 3, 4]),
        (1, 1, [2]),
        (2, 3, [2, 4]),
        (3, 2, [2, 4]),
        (0, 3, []),
        (1, 0, []),
        (0, 1, []),
    ],
)
def test_sizes_that_differ(lhs: int, rhs: int, expected: list[float]) -> None:
    """The sum of operands of different sizes has the smaller size, but size 1 is broadcast, as in
    jaxlib 0.10.2."""
    text = _SUM + "ROOT r = f32[<=5] add(x, y) }"
    assert interp.evaluate(hlo.parse(text), _numbers(lhs), _numbers(rhs)).tolist() == expected


@pytest.mark.parametrize(("size", "expected"), [(3, [2, 4, 6]), (1, [2]), (0, [])])
def test_a_static_operand_never_stretches_another(size: int, expected: list[float]) -> None:
    text = "ENTRY e { x = f32[<=5] parameter(0)\n y = f32[5] parameter(1)\n"
    module = hlo.parse(text + "ROOT r = f32[<=5] add(x, y) }")
    assert interp.evaluate(module, _numbers(size), _numbers(5)).tolist() == expected


_SIZED = """ENTRY e { x = f32[<=5] parameter(0)
  k = s32[] parameter(1)
  set = f32[<=5] set-dimension-size(x, k), dimensions={0}
  whole = f32[5] set-dimension-size(x, k), dimensions={0}
  shaped = f32[<=5] dynamic-reshape(x, k)
  padded = f32[5] parameter(2)
  sliced = f32[<=5] custom-call(padded, k), custom_call_target="SliceToDynamic"
  size = s32[] get-dimension-size(set), dimensions={0}
  ROOT t = (f32[<=5], f32[5], f32[<=5], f32[<=5], s32[])
    tuple(set, whole, shaped, sliced, size) }"""


@pytest.mark.parametrize("given", [-(2**31), -1, 0, 2, 4, 5, 6, 2**31 - 1])
def test_sizes_are_brought_within_the_bound(given: int) -> None:
    """A size is clamped to the bound, and elements beyond the size are zero."""
    found = _both(_SIZED, _numbers(3), np.int32(given), _numbers(5))
    size = min(max(given, 0), 5)
    shown = [*[1, 2, 3, 0, 0][:size]]
    assert [array.tolist() for array in found] == [
        shown, shown + [0] * (5 - size), shown, [1, 2, 3, 4, 5][:size], size
    ]  # fmt: skip


def test_a_size_that_changes_in_a_loop() -> None:
    text = """
body { s = (f32[<=4], s32[]) parameter(0)
  x = f32[<=4] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  minus = s32[] constant(-1)
  less = s32[] add(n, minus)
  y = f32[<=4] add(x, x)
  z = f32[<=4] set-dimension-size(y, less), dimensions={0}
  ROOT t = (f32[<=4], s32[]) tuple(z, less) }
more { s = (f32[<=4], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  ROOT r = pred[] compare(n, one), direction=GT }
ENTRY e { x = f32[<=4] parameter(0)
  n = s32[] get-dimension-size(x), dimensions={0}
  s = (f32[<=4], s32[]) tuple(x, n)
  ROOT w = (f32[<=4], s32[]) while(s), condition=more, body=body }"""
    found, count = _both(text, _numbers(4))
    assert (found.tolist(), count) == ([8.0], 1)
    assert _both(text, _numbers(0))[0].tolist() == []


_CANNOT = [
    ("c64[4,<=6]", "c64[4,<=6] fft(a), fft_type=FFT, fft_length={6}", "fft_length"),
    ("f32[<=12]", "f32[<=3,<=4] reshape(a)", "inferred_dimension"),
    ("f32[<=6]", "s64[<=3] bitcast(a)", "width"),
    (
        "f32[2,8,3] f32[<=3,3,5]",
        "f32[2,<=6,5] convolution(a, b), window={size=3}, dim_labels=b0f_0io->b0f",
        "window",
    ),
    (
        "f32[5] s32[2,<=1] f32[2]",
        "f32[5] scatter(a, b, c), update_window_dims={}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        "index vectors",
    ),
    (
        "f32[2,<=4] f32[4,3] f32[2,2] f32[4,3]",
        "f32[2,3] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "blocks of several elements along bounded dimensions",
    ),
    (
        "f32[<=2] f32[2] s32[1] s32[1] s32[1] s32[1]",
        "f32[2] ragged-all-to-all(a, b, c, d, e, f), replica_groups={{0}}",
        "bounded dimensions",
    ),
]


@pytest.mark.parametrize(("operands", "call", "message"), _CANNOT)
def test_what_has_no_meaning(operands: str, call: str, message: str) -> None:
    names = "abcdef"[: operands.count("[")]
    shapes = zip(names, operands.split(), strict=True)
    given = "".join(f"  {n} = {s} parameter({names.index(n)})\n" for n, s in shapes)
    module = hlo.parse(f"{ADD}ENTRY e {{\n{given}  ROOT r = {call}\n}}\n")
    hlo.verify(module)
    dims = [parameter.shape for parameter in module.entry.parameters]
    arrays = [np.zeros(s.dims, s.element_type.numpy) for s in dims if isinstance(s, ArrayShape)]
    with pytest.raises(Unsupported, match=message):
        interp.evaluate(module, *arrays)
    with pytest.raises(Unsupported, match=message):
        backend_c.emit(module)


def test_arguments_stay_within_their_bounds() -> None:
    module = hlo.parse("ENTRY e { ROOT x = f32[<=2,3] parameter(0) }")
    for dims in ((3, 3), (2, 2), (2,), (2, 3, 1)):
        with pytest.raises(ArgumentError, match=r"f32\[<=2,3\]"):
            interp.evaluate(module, np.zeros(dims, np.float32))


def test_no_bound_is_no_program() -> None:
    text = "ENTRY e {\n  x = f32[?,<=3] parameter(0)\n  ROOT r = f32[?,<=3] negate(x)\n}\n"
    module = hlo.parse(text)
    assert "f32[?,<=3]" in hlo.format(module)
    assert hlo.parse(hlo.format(module)) == module
    for use in (hlo.verify, interp.evaluate, backend_c.compile):
        with pytest.raises(VerifyError, match="<=N in place of"):
            use(module)


@needs_c
def test_the_page_on_bounded_dimensions_is_true() -> None:
    text = (ROOT / "docs" / "dynamic_shapes.md").read_text()
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 7
    exec(compile("".join(found), "docs/dynamic_shapes.md", "exec"), {})
