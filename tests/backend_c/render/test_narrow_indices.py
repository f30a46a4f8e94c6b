"""Indices of embedded kernels have 32 bits where that is enough, and 64 where it may not be."""

import pytest

import backend_c
import hlo

SMALL = "x = f32[100,70] parameter(0)\n ROOT y = f32[100,70] negate(x)"
PROGRAMS = {
    "small": (SMALL, True),
    "as large as goes": (SMALL.replace("100,70", "2147483647"), True),
    "too large": (SMALL.replace("100,70", "2147483648"), False),
    "an index of 32 bits": (
        "x = f32[100] parameter(0)\n i = s32[] parameter(1)\n"
        "ROOT y = f32[7] dynamic-slice(x, i), dynamic_slice_sizes={7}",
        True,
    ),
    "an index without sign": (
        "x = f32[100] parameter(0)\n i = u32[] parameter(1)\n"
        "ROOT y = f32[7] dynamic-slice(x, i), dynamic_slice_sizes={7}",
        False,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_width_of_indices(name: str) -> None:
    body, is_narrow = PROGRAMS[name]
    files = backend_c.emit(hlo.parse(f"HloModule m\nENTRY e {{ {body} }}"), "embedded", "exact")
    kernel = files["module.c"].decode().split(" kernel_0(")[1].split("\n}")[0]
    assert ("int64_t" not in kernel) is is_narrow
