"""Check that moved values keep their bits and stored values are rounded once, both also in a
program of some of the results alone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import BF16
from hlo.values import Array, arrays_of
from interp.envelope.budget import FAST, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.open_results import can_be_restricted, restricted
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN

MOVED = "HloModule m\nENTRY e {{ x = {type}[2] parameter(0)\n ROOT r = {type}[2] {op} }}"


def kinds(text: str, operand: Array, actual: Array, peer: Budget = XLA_CPU) -> dict[str, int]:
    """The verdict on a result that another compiler gives."""
    module = hlo.parse(text)
    exact = [("", np.asarray(interp.evaluate(module, operand)))]
    judge = Judge(module, (operand,), exact, peer=peer)
    return {k: n for k, n in judge.judged([actual], lambda module: None).counts.items() if n}


@pytest.mark.parametrize("actual", [(7, 1), (3, np.nan), (np.nan, np.nan)])
def test_a_complex_nan_keeps_its_other_part(actual: tuple[float, float]) -> None:
    text = MOVED.format(type="c64", op="reverse(x), dimensions={0}")
    operand = np.array([complex(1, 2), complex(np.nan, 3)], np.complex64)
    right = operand[::-1]
    wrong = right.copy()
    wrong[0] = complex(np.nan, actual[0]) if actual[0] == 7 else complex(*actual)
    assert kinds(text, operand, right) == {EQUAL: 2}
    assert kinds(text, operand, wrong) == {EQUAL: 1, OUTSIDE: 1}


def test_a_zero_that_is_moved_keeps_its_sign() -> None:
    text = MOVED.format(type="f32", op="reverse(x), dimensions={0}")
    operand = np.array([-0.0, 1], np.float32)
    assert kinds(text, operand, np.array([1, -0.0], np.float32)) == {EQUAL: 2}
    assert kinds(text, operand, np.array([1, 0.0], np.float32)) == {EQUAL: 1, OUTSIDE: 1}


def test_a_zero_that_is_computed_has_either_sign() -> None:
    text = MOVED.format(type="f32", op="multiply(x, x)")
    operand = np.array([-0.0, 1], np.float32)
    assert kinds(text, operand, np.array([-0.0, 1], np.float32)) == {EQUAL: 2}


@pytest.mark.parametrize("peer", [XLA_CPU, UNKNOWN], ids=lambda peer: peer.name)
def test_conversions_may_round_twice_but_not_truncate(peer: Budget) -> None:
    """1 + 2^-8 + 2^-40 is above the middle of two bf16, in f32 it is the middle."""
    text = "HloModule m\nENTRY e { x = f64[2] parameter(0)\n ROOT r = bf16[2] convert(x) }"
    operand = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 + 2.0**-9])
    once, twice = np.array([1 + 2.0**-7, 1 + 2.0**-7]), np.array([1, 1 + 2.0**-7])
    truncated = np.array([1.0, 1.0])
    assert kinds(text, operand, once.astype(BF16.numpy), peer) == {EQUAL: 2}
    assert kinds(text, operand, twice.astype(BF16.numpy), peer) == {EQUAL: 1, WITHIN: 1}
    assert kinds(text, operand, truncated.astype(BF16.numpy), peer) == {WITHIN: 1, OUTSIDE: 1}


@pytest.mark.parametrize("op", ["add(x, x)", "multiply(x, x)", "subtract(x, h)"])
@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_a_result_is_rounded_to_nearest(name: str, op: str) -> None:
    """Its neighbours are wrong: nothing goes on from it in which it might be kept wider."""
    half = f"h = {name}[2] constant({{0.3, 0.7}})\n ROOT"
    text = MOVED.format(type=name, op=op).replace("ROOT", half)
    operand = np.array([1.7, 3.3]).astype(hlo.types.ELEMENT_TYPES[name].numpy)
    right = np.asarray(interp.evaluate(hlo.parse(text), operand))
    above = np.nextafter(right, np.asarray(np.inf).astype(right.dtype))
    assert kinds(text, operand, above) == {OUTSIDE: 2}


_SMALL = "HloModule m\nENTRY e {{ x = {type}[3] parameter(0)\n {body}"


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_a_subnormal_is_flushed_or_not(name: str) -> None:
    """A subnormal result is legal as it is and as zero, and no number between is."""
    dtype = hlo.types.ELEMENT_TYPES[name].numpy
    operand = np.full(3, np.finfo(dtype).tiny / 4, dtype)
    text = _SMALL.format(type=name, body=f"ROOT r = {name}[3] add(x, x) }}")
    actual = np.array([0, operand[0] * 2, operand[0]], dtype)
    assert kinds(text, operand, actual) == {EQUAL: 1, WITHIN: 1, UNDETERMINED: 1}
    assert kinds(text, operand, actual, FAST) == {EQUAL: 1, OUTSIDE: 2}


def test_what_follows_from_a_flushed_number() -> None:
    """A root, and a comparison."""
    operand = np.full(3, 3e-39, np.float32)
    text = _SMALL.format(type="f32", body="ROOT r = f32[3] sqrt(x) }}".replace("}}", "}"))
    actual = np.array([0, np.sqrt(operand[0]), 2e-20], np.float32)
    assert kinds(text, operand, actual) == {EQUAL: 1, WITHIN: 1, UNDETERMINED: 1}
    text = _SMALL.format(
        type="f32",
        body="""y = f32[3] add(x, x)
 z = f32[3] subtract(x, x)
 ROOT r = pred[3] compare(y, z), direction=GT }""",
    )
    assert kinds(text, operand, np.array([True, True, False])) == {EQUAL: 2, WITHIN: 1}


# ``b`` is a result and part of a chain; ``c`` is stored alone; ``d`` is what goes into it, twice.
_RESULTS = """HloModule m
ENTRY e {
  x = bf16[9] parameter(0)
  y = f32[9] parameter(1)
  a = bf16[9] exponential(x)
  b = bf16[9] divide(a, x)
  c = bf16[9] multiply(b, x)
  w = f32[9] convert(c)
  d = f32[9] subtract(w, y)
  s = f32[9] sqrt(y)
  ROOT r = (bf16[9], f32[9], bf16[9], f32[9], f32[9]) tuple(b, d, c, d, s)
}
"""
_COUNT = 5


def _arguments() -> tuple[Array, Array]:
    module = hlo.parse(_RESULTS)
    x, y = (p.shape.element_type.numpy for p in module.entry.parameters)
    rng = np.random.default_rng(3)
    return rng.uniform(0.1, 3, 9).astype(x), rng.uniform(0, 2, 9).astype(y)


def _bytes(value: Enclosure) -> list[bytes]:
    return [part.tobytes() for part in (value.low, value.high, value.nan)]


@pytest.mark.parametrize("peer", [XLA_CPU, UNKNOWN], ids=lambda peer: peer.name)
def test_the_same_is_legal(peer: Budget) -> None:
    module, arguments = hlo.parse(_RESULTS), _arguments()
    whole = list(arrays_of(enclose(module, *arguments, peer=peer).result))
    for count in (1, 2, 4):
        for places in combinations(range(_COUNT), count):
            part = restricted(module, places)
            found = list(arrays_of(enclose(part, *arguments, peer=peer).result))
            assert [*map(_bytes, found)] == [_bytes(whole[place]) for place in places]


@pytest.mark.parametrize(
    "text",
    [
        "x = f32[2] parameter(0)\n  ROOT r = f32[2] negate(x)",
        "x = f32[2] parameter(0)\n  t = (f32[2]) tuple(x)\n  ROOT r = ((f32[2])) tuple(t)",
        "x = (f32[2], f32[2]) parameter(0)\n  ROOT r = (f32[2], f32[2]) copy(x)",
        "k = token[] after-all()\n  x = f32[2] parameter(0)\n"
        "  ROOT r = (f32[2], token[]) tuple(x, k)",
    ],
)
def test_other_results_stay_whole(text: str) -> None:
    module = hlo.parse(f"HloModule m\nENTRY e {{\n  {text}\n}}\n")
    assert not can_be_restricted(module)
    assert restricted(module, [0]) is module
