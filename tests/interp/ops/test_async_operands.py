"""Operands that an async-update brings: what was started is done when the last one is there."""

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences

ADD = """sum {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  ROOT r = f32[2] fusion(a, b, c), kind=kLoop, calls={
    p = f32[2] parameter(0)
    q = f32[2] parameter(1)
    r = f32[2] parameter(2)
    d = f32[2] subtract(p, q)
    ROOT e = f32[2] multiply(d, r) }
}
"""
ONE = "((f32[2]), f32[2], u32[])"
TWO = "((f32[2], f32[2]), f32[2], u32[])"
ALL = "((f32[2], f32[2], f32[2]), f32[2], u32[])"
NONE = "((), f32[2], u32[])"


def program(*steps: str) -> str:
    lines = "".join(f"  {step}\n" for step in steps)
    parameters = "".join(f"  {name} = f32[2] parameter({n})\n" for n, name in enumerate("xyz"))
    return f"{ADD}ENTRY e {{\n{parameters}{lines}}}\n"


WAYS = [
    [
        f"s = {ONE} async-start(x), calls=sum",
        f"u = {TWO} async-update(s, y), calls=sum",
        f"v = {TWO} async-update(u)",
        f"w = {ALL} async-update(v, z), calls=sum",
        "ROOT r = f32[2] async-done(w)",
    ],
    [
        f"s = {NONE} async-start(), calls=sum",
        f"u = {ALL} async-update(s, x, y, z), calls=sum",
        f"v = {ALL} async-update(u), calls=sum",
        "ROOT r = f32[2] async-done(v), calls=sum",
    ],
    [
        f"s = {TWO} async-start(x, y), calls=sum",
        f"u = {ALL} async-update(s, z)",
        "ROOT r = f32[2] async-done(u)",
    ],
    [
        f"s = {TWO} async-start(x, y), calls=sum",
        f"t = ({TWO}, f32[2]) tuple(s, x)",
        f"g = {TWO} get-tuple-element(t), index=0",
        f"u = {ALL} async-update(g, z), calls=sum",
        "ROOT r = f32[2] async-done(u)",
    ],
]


@pytest.mark.parametrize(
    "steps", WAYS, ids=["one by one", "all at once", "calls left out", "in a tuple"]
)
def test_operands_that_come_later(steps: list[str]) -> None:
    module = hlo.parse(program(*steps))
    assert hlo.parse(hlo.format(module)) == module
    arrays = [np.array(pair, np.float32) for pair in ((5, 7), (1, 2), (3, 4))]
    result = interp.evaluate(module, *arrays)
    assert result.tolist() == [12, 20]
    if has_c_compiler():
        executable = backend_c.compile(module, numerics="exact", threads=1)
        assert not differences(result, executable(*arrays))


WRONG = [
    (
        [f"s = {TWO} async-start(x, y), calls=sum", "ROOT r = f32[2] async-done(s)"],
        "2 of the 3 operands of sum are given when it is done",
    ),
    (
        [
            f"s = {TWO} async-start(x, y), calls=sum",
            f"t = ({TWO}, f32[2]) tuple(s, x)",
            f"g = {TWO} get-tuple-element(t), index=0",
            f"u = {ALL} async-update(g, z)",
            "ROOT r = f32[2] async-done(u)",
        ],
        "%u = async-update, C2: an update that adds to the state needs calls=",
    ),
    (
        [
            f"s = {ALL} async-start(x, y, z), calls=sum",
            f"u = {ALL.replace('(f', '(f32[2], f', 1)} async-update(s, z), calls=sum",
            "ROOT r = f32[2] async-done(u)",
        ],
        "%u = async-update, C2: sum has 3 parameters, 4 are passed",
    ),
    (
        [
            f"s = {TWO} async-start(x, y), calls=sum",
            "n = s32[] constant(1)",
            f"u = {TWO.replace(')', ', s32[])', 1)} async-update(s, n), calls=sum",
            "ROOT r = f32[2] async-done(u)",
        ],
        r"%u = async-update, C2: parameter 2 of sum is f32\[2\], s32\[\] is passed",
    ),
]


@pytest.mark.parametrize(("steps", "complaint"), WRONG)
def test_operands_that_do_not_fit(steps: list[str], complaint: str) -> None:
    with pytest.raises(hlo.VerifyError, match=complaint):
        hlo.verify(hlo.parse(program(*steps)))
