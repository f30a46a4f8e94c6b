"""Arrays of more dimensions than NumPy's functions take."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES

COMPUTATIONS = """
f { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT c = TYPE[] multiply(a, b) }
"""


def evaluated(body: str, name: str, dims: tuple[int, ...]) -> np.ndarray:
    t = f"{name}[{','.join(map(str, dims))}]"
    lines = f"x = {t} parameter(0)\n  ROOT y = {body}"
    text = f"HloModule m\n{COMPUTATIONS}ENTRY e {{\n  {lines}\n}}\n"
    text = text.replace("ARRAY", t).replace("TYPE", name)
    x = np.arange(1, 5).astype(ELEMENT_TYPES[name].numpy).reshape(dims)
    return interp.evaluate(hlo.parse(text), x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "c64", "f8e5m2"])
@pytest.mark.parametrize(
    "body",
    ["ARRAY multiply(x, x)", "ARRAY divide(x, x)", "ARRAY exponential(x)", "ARRAY negate(x)"]
    + ["ARRAY map(x, x), dimensions={DIMENSIONS}, to_apply=f"],
)
@pytest.mark.parametrize("rank", [33, 64])
def test_elements_are_those_of_a_vector(rank: int, body: str, name: str) -> None:
    if body.startswith("ARRAY exp") and name == "f8e5m2":
        name = "f16"
    dims = (2, *[1] * (rank - 2), 2)
    many, few = (
        evaluated(body.replace("DIMENSIONS", ",".join(map(str, range(len(d))))), name, d)
        for d in (dims, (4,))
    )
    assert many.shape == dims and many.tobytes() == few.tobytes()


@pytest.mark.parametrize(
    "body",
    [
        "(ARRAY, s32[DIMS,1]) topk(x), k=1, largest=true",
        "ARRAY sort(x), dimensions={0}, to_apply=less",
        "ARRAY reduce-window(x, one), window={size=ONES}, to_apply=f",
    ],
)
def test_other_instructions_are_computed_or_unsupported(body: str) -> None:
    dims = (4, *[1] * 63)
    ones = "x".join(["1"] * 64)
    less = (
        "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
        " ROOT c = pred[] compare(a, b), direction=LT }\n"
    )
    t = f"f32[{','.join(map(str, dims))}]"
    body = body.replace("s32[DIMS,1]", t.replace("f32", "s32"))
    body = body.replace("ARRAY", t).replace("ONES", ones)
    text = f"HloModule m\n{less}{COMPUTATIONS.replace('TYPE', 'f32')}ENTRY e {{\n"
    text += f"  x = {t} parameter(0)\n  one = f32[] constant(1)\n  ROOT y = {body}\n}}\n"
    x = np.arange(4, dtype=np.float32).reshape(dims)
    try:
        interp.evaluate(hlo.parse(text), x)
    except hlo.Unsupported as error:
        assert "of 64 dimensions" in str(error)
