"""Values in between that change the results when they are asked for are left out."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.observable_values import seldom_disturbing, undisturbed

_NAMES = {"add": [f"a{i}" for i in range(8)], "multiply": [f"m{i}" for i in range(8)]}


def test_all_but_what_disturbs() -> None:
    asked: list[tuple[str, ...]] = []

    def agrees(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return not {"m2", "m5"} & set(names)

    kept = undisturbed(_NAMES, agrees)
    assert set(kept) == {*_NAMES["add"], *_NAMES["multiply"]} - {"m2", "m5"}
    assert len(asked) == len(set(asked)) < 16


def test_what_is_kept_is_asked_for_again_with_all_others() -> None:
    few = seldom_disturbing(_NAMES)
    assert few == tuple(_NAMES["add"])
    asked: list[tuple[str, ...]] = []

    def agrees(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return "m3" not in names

    kept = undisturbed(_NAMES, agrees, few)
    assert set(kept) == {*few, *_NAMES["multiply"]} - {"m3"}
    assert all(names[: len(few)] == few and len(names) > len(few) for names in asked)


def test_what_is_inside_a_loop_that_disturbs_is_not_tried() -> None:
    inside = [f"loop/a{i}" for i in range(8)]
    groups = {"while": ["loop:states:1", "loop:trips"], "add": ["before", *inside]}
    asked: list[tuple[str, ...]] = []

    def agrees(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return "loop:trips" not in names

    assert undisturbed(groups, agrees) == ("before",)
    assert asked == [("loop:trips", "loop:states:1"), ("loop:trips",), ("before",)]


# The sums cancel in the elements that are returned, not in the others.
_PROGRAM = """HloModule m
ENTRY e {
  x = f32[2,64] parameter(0)
  g = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  h = f32[2,2] multiply(g, g)
  f = f32[1,1] slice(g), slice={[0:1], [1:2]}
  k = f32[1,1] slice(h), slice={[0:1], [1:2]}
  ROOT r = (f32[1,1], f32[1,1]) tuple(f, k)
}
"""
_X = np.linspace(1, 2, 32, dtype=np.float32)
_ROWS = np.stack([np.concatenate([_X, _X]), np.concatenate([_X, -_X])])
# What another order of additions may give.
_OTHERWISE = """
  e = f32[2,2] constant({{0,1e-6},{1e-6,0}})
  q = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  g = f32[2,2] add(q, e)
"""


def _compiler(program: Module) -> list[Array]:
    """Computes the dot otherwise where nobody asks for its square."""
    if "h" not in program.entry.root_instruction.operands[1:]:
        lines = hlo.format(program).splitlines()
        program = hlo.parse("\n".join(_OTHERWISE if " dot(" in line else line for line in lines))
    result = interp.evaluate(program, _ROWS)
    return [array for part in result for array in (part if isinstance(part, tuple) else (part,))]


@pytest.mark.parametrize(("trials", "undetermined"), [(0, 2), (8, 0)])
def test_results_are_judged_by_values_that_came_with_them(trials: int, undetermined: int) -> None:
    module = hlo.parse(_PROGRAM)
    exact = [("", array) for array in interp.evaluate(module, _ROWS)]
    judge = Judge(module, [_ROWS], exact, peer=XLA_CPU, trials=trials)
    found = judge.judged(_compiler(module), _compiler)
    assert not found.wrong and found.counts["outside"] == 0
    assert found.counts["undetermined"] == undetermined
