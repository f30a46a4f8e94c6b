"""Convolutions of integers have the interpreter's bits, by products of narrow types."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Call, every
from backend_c.pipeline import lowered, settings_for
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed

# Input, filter, result, and the attributes.
_PLAIN = "dim_labels=b01f_01io->b01f"
_FORMS = {
    "padded": ("s8[2,9,11,20]", "s8[3,3,20,24]", "s32[2,9,11,24]",
               f"window={{size=3x3 pad=1_1x1_1}}, {_PLAIN}"),
    "wide rows": ("u8[1,3,130,8]", "s8[3,3,8,70]", "s32[1,3,130,70]",
                  f"window={{size=3x3 pad=1_1x1_1}}, {_PLAIN}"),
    "strides": ("s8[2,13,12,5]", "u8[3,2,5,300]", "s16[2,5,6,300]",
                f"window={{size=3x2 stride=2x2 pad=0_0x0_1 rhs_dilate=2x1}}, {_PLAIN}"),
    "no padding": ("u8[2,8,9,16]", "u8[2,2,16,16]", "u32[2,7,8,16]",
                   f"window={{size=2x2}}, {_PLAIN}"),
    "holes": ("s16[1,6,7,6]", "s8[3,3,6,9]", "s32[1,12,14,9]",
              f"window={{size=3x3 pad=2_1x2_1 lhs_dilate=2x2}}, {_PLAIN}"),
    "groups": ("s8[2,8,8,24]", "s8[3,3,8,15]", "s32[2,8,8,15]",
               f"window={{size=3x3 pad=1_1x1_1}}, {_PLAIN}, feature_group_count=3"),
    "batch groups": ("s8[6,8,9,8]", "s8[3,3,8,12]", "s32[3,6,7,12]",
                     f"window={{size=3x3}}, {_PLAIN}, batch_group_count=2"),
    "features first": ("s8[3,16,10,9]", "s8[18,16,3,3]", "s32[3,18,10,9]",
                       "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
    "line": ("s8[4,50,12]", "s8[5,12,16]", "s8[4,50,16]",
             "window={size=5 pad=2_2 rhs_reversal=1}, dim_labels=b0f_0io->b0f"),
    "images in rows": ("s8[20,5,5,6]", "s8[3,3,6,8]", "s32[20,3,3,8]",
                       f"window={{size=3x3}}, {_PLAIN}"),
    "depthwise": ("s8[2,9,8,40]", "s8[3,3,1,80]", "s32[2,9,8,80]",
                  f"window={{size=3x3 pad=1_1x1_1}}, {_PLAIN}, feature_group_count=40"),
    "depthwise bytes": ("u8[2,9,8,40]", "s16[3,3,1,40]", "u8[2,4,4,40]",
                        f"window={{size=3x3 stride=2x2 pad=1_0x0_1}}, {_PLAIN}, "
                        "feature_group_count=40"),
}  # fmt: skip
_PRODUCTS = [name for name in _FORMS if not name.startswith("depthwise")]


def _module(names: list[str]) -> str:
    """Write one module with a convolution for each form."""
    lines, shapes = [], []
    for n, name in enumerate(names):
        lhs, rhs, result, attributes = _FORMS[name]
        lines += [
            f"x{n} = {lhs} parameter({2 * n})",
            f"w{n} = {rhs} parameter({2 * n + 1})",
            f"r{n} = {result} convolution(x{n}, w{n}), {attributes}",
        ]
        shapes.append(result)
    results = ", ".join(f"r{n}" for n in range(len(names)))
    body = "\n  ".join([*lines, f"ROOT t = ({', '.join(shapes)}) tuple({results})"])
    return f"HloModule m\nENTRY e {{\n  {body}\n}}\n"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("numerics", ["fast", "exact"])
def test_results_are_those_of_the_interpreter(numerics: str) -> None:
    module = hlo.parse(_module([*_FORMS]))
    arrays = [np.asarray(array) for array in from_seed(module, 5)]
    expected = interp.evaluate(module, *arrays)
    executable = backend_c.compile(module, numerics=numerics)
    for threads in (1, 2):
        assert not differences(expected, executable.in_threads(threads)(*arrays))


@pytest.mark.parametrize("numerics", ["fast", "exact"])
@pytest.mark.parametrize("name", _PRODUCTS)
def test_products_are_of_narrow_types(name: str, numerics: str) -> None:
    plan = lowered(hlo.parse(_module([name])), settings_for(numerics))
    (kernel,) = plan.kernels
    calls = {s.function for s in every(kernel.body) if isinstance(s, Call)}
    assert any(one.startswith(("hlo_gemm_bytes", "hlo_gemm_s16")) for one in calls)
