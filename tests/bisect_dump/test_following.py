"""One stage on the values of another: what is enclosed, what is taken over, what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from bisect_dump.shared_values import Program, Values
from bisect_dump.side_by_side import SideBySide
from bisect_dump.value_numbers import Cones
from hlo.errors import Unsupported
from interp.envelope.budget import EXACT
from interp.envelope.enclosure import point
from interp.envelope.single_steps import EnclosedSteps
from interp.envelope.verdict import OUTSIDE, WITHIN, summary

X = np.linspace(0.1, 3, 50, dtype=np.float32)
BODY = """
  e = f32[50] exponential(QUOTIENT)
  t = f32[50] tanh(e)
  n = f32[50] LAST(t)
  ROOT r = (f32[50], f32[50]) tuple(n, x)
}
"""
DIVIDED = """HloModule m
ENTRY main {
  x = f32[50] parameter(0)
  three = f32[] constant(3)
  threes = f32[50] broadcast(three), dimensions={}
  q = f32[50] divide(x, threes)"""
MULTIPLIED = """HloModule m
ENTRY main {
  x = f32[50] parameter(0)
  third = f32[] constant(0.333333343)
  thirds = f32[50] broadcast(third), dimensions={}
  p = f32[50] multiply(x, thirds)"""


def side_by_side(before: str, after: str) -> SideBySide:
    values = Values()
    programs = Program(hlo.parse(before), 0), Program(hlo.parse(after), 0)
    given = (values.given(X),)
    return SideBySide(values, programs, (given, given), 0)


@pytest.fixture
def enclosed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The opcodes of what is enclosed, in order."""
    found: list[str] = []
    value = EnclosedSteps.value

    def noted(steps: EnclosedSteps, instruction: hlo.Instruction, operands: list[object]) -> object:
        found.append(instruction.opcode)
        return value(steps, instruction, operands)

    monkeypatch.setattr(EnclosedSteps, "value", noted)
    return found


def body(quotient: str, last: str = "negate") -> str:
    return BODY.replace("QUOTIENT", quotient).replace("LAST", last)


def test_only_what_a_pass_changed_is_enclosed(enclosed: list[str]) -> None:
    """The results are others in their last bits; all that follows from the quotient is equal to
    what the later stage makes of its product."""
    side = side_by_side(DIVIDED + body("q"), MULTIPLIED + body("p"))
    (marks,) = side.marks([0])
    found = summary(marks)
    assert found.counts[WITHIN] and found.worst == WITHIN
    assert enclosed.count("divide") == 1 and set(enclosed) <= {"divide", "broadcast", "constant"}


def test_what_is_not_legal_is_not_taken_over(enclosed: list[str]) -> None:
    side = side_by_side(DIVIDED + body("q"), MULTIPLIED + body("p", "floor"))
    (marks,) = side.marks([0])
    assert summary(marks).counts[OUTSIDE] == X.size
    culprit = side.culprit()
    assert culprit is not None and culprit.name == "n"
    assert set(enclosed) <= {"divide", "negate", "broadcast", "constant"}


def test_where_all_is_wrong_nothing_is_followed() -> None:
    """That would take as long as the envelope of the whole, and prove less."""
    lines = "".join(f"  a{n + 1} = f32[50] add(a{n}, x)\n" for n in range(300))
    text = f"HloModule m\nENTRY main {{\n  x = f32[50] parameter(0)\n  a0 = f32[50] OP(x)\n{lines}"
    text += "  ROOT r = f32[50] negate(a300)\n}\n"
    side = side_by_side(text.replace("OP", "negate"), text.replace("OP", "exponential"))
    with pytest.raises(Unsupported, match="not legal"):
        side.marks([0])
    culprit = side.culprit()
    assert culprit is not None and culprit.name == "a0"


def test_cones_of_custom_calls() -> None:
    """The digest of a custom call depends on its backend_config, too."""
    text = """HloModule m
ENTRY e {
  x = f32[2,2] parameter(0)
  ROOT c = (f32[2,2], s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi",
    backend_config={uplo = 76 : ui8}
}
"""
    cones = [Cones(hlo.parse(text.replace("76", n))).of("e") for n in ("76", "85", "76")]
    assert cones[0]["x"] == cones[1]["x"] and cones[0]["c"] != cones[1]["c"]
    assert cones[0] == cones[2]


def test_a_step_has_one_value_whatever_was_asked_before() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  r = f32[4] rng(a, b), distribution=rng_uniform
  ROOT s = u64[2] rng-get-and-update-state(), delta=3
}
""")
    steps = EnclosedSteps(module, peer=EXACT, seed=7)
    ends = [point(np.asarray(np.float32(number))) for number in (0, 1)]
    for name, operands in (("r", ends), ("s", [])):
        instruction = next(i for i in module.entry.instructions if i.name == name)
        first, second = (steps.value(instruction, operands).low for _ in range(2))
        np.testing.assert_array_equal(first, second)
