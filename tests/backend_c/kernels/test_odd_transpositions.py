"""Matrices of any size are transposed: in squares, the last of which overlap those before them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo

_SIZES = ((17, 33), (16, 31), (31, 16), (15, 100), (64, 65), (129, 257), (33, 1000))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element_type", ["u8", "s16", "f32", "f64", "c128"])
def test_every_element_is_in_its_place(element_type: str, threads: int) -> None:
    lines, arrays = [], []
    for n, (rows, columns) in enumerate(_SIZES):
        lines += [
            f"  x{n} = {element_type}[2,{rows},{columns}] parameter({n})",
            f"  y{n} = {element_type}[2,{columns},{rows}] transpose(x{n}), dimensions={{0,2,1}}",
        ]
        arrays.append(np.random.default_rng(n).integers(0, 128, (2, rows, columns)))
    shapes = ", ".join(f"{element_type}[2,{columns},{rows}]" for rows, columns in _SIZES)
    names = ", ".join(f"y{n}" for n in range(len(_SIZES)))
    root = f"  ROOT t = ({shapes}) tuple({names})"
    module = hlo.parse("\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"]))
    dtype = module.entry.parameters[0].shape.element_type.numpy  # type: ignore[union-attr]
    given = [array.astype(dtype) for array in arrays]
    for found, array in zip(backend_c.compile(module, threads=threads)(*given), given, strict=True):
        assert np.array_equal(found, array.transpose(0, 2, 1))
