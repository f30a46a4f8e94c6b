"""Updates in place: of what is in memory, as results of other updates in place are."""

from __future__ import annotations

import pytest
from cost import python_calls

import hlo
from hlo.module import Computation
from hlo.passes import run
from hlo.passes.updates_in_place import ANY_PART, updates_in_place


def _chain(links: int, first: str = "copy(x)", size: int = 1000) -> str:
    """Return a program that updates three elements of an array so many times."""
    lines = "\n".join(
        f"a{n + 1} = f32[{size}] dynamic-update-slice(a{n}, u, i)" for n in range(links)
    )
    return f"""HloModule m
    ENTRY e {{ x = f32[{size}] parameter(0)
      u = f32[3] parameter(1)
      i = s32[] parameter(2)
      a0 = f32[{size}] {first}
      {lines}
      ROOT r = f32[{size}] copy(a{links}) }}"""


def _entry(text: str) -> Computation:
    return hlo.parse(text).entry


@pytest.mark.parametrize(
    ("text", "small_part", "count"),
    [
        (_chain(3), 4, 3),
        (_chain(3, "negate(x)"), 4, 0),  # they may join the loop that negates
        (_chain(3, size=75), 4, 0),  # the updates are too large a part
        (_chain(3, size=75), ANY_PART, 3),
    ],
)
def test_which_updates_are_in_place(text: str, small_part: int, count: int) -> None:
    assert updates_in_place(_entry(text), small_part) == {f"a{n + 1}" for n in range(count)}


def test_a_chain_longer_than_recursion_is_fused() -> None:
    module = run(hlo.parse(_chain(1100)), "backend_c")
    updates = [i for i in module.entry.instructions if i.opcode == "fusion"]
    aliased = [i for i in updates if "output_to_operand_aliasing" in i.attributes]
    assert len(aliased) >= 1100


def test_the_cost_is_linear_in_the_chain() -> None:
    small, large = (_entry(_chain(links)) for links in (100, 200))
    assert python_calls(lambda: updates_in_place(large)) < 3 * python_calls(
        lambda: updates_in_place(small)
    )
