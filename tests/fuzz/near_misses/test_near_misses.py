"""Near misses are valid programs that differ from an idiom by a few changes."""

import re

import pytest

import hlo
import interp
from fuzz.campaign.plan import Plan, cases
from fuzz.draw.choices import Seeded, examples
from fuzz.draw.readable import tidied
from fuzz.draw.values import arguments
from fuzz.near_misses.attribute_numbers import numbers, with_number
from fuzz.near_misses.changes import CHANGES, Change
from fuzz.near_misses.idioms import idioms
from fuzz.near_misses.programs import near_miss
from hlo.attributes import Window, WindowDimension
from hlo.errors import Error, OutOfFuel
from hlo.values import placed

_ARGMAX = """HloModule argmax

reducer {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  is_more = pred[] compare(a, b), direction=GT
  is_same = pred[] compare(a, b), direction=EQ
  is_before = pred[] compare(i, j), direction=LT
  is_first = pred[] and(is_same, is_before)
  is_it = pred[] or(is_more, is_first)
  x = f32[] select(is_it, a, b)
  n = s32[] select(is_it, i, j)
  ROOT r = (f32[], s32[]) tuple(x, n)
}

ENTRY e {
  p = f32[3,8] parameter(0)
  places = s32[3,8] iota(), iota_dimension=1
  least = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(p, places, least, zero), dimensions={1}, to_apply=reducer
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_near_miss_is_valid_and_runs(seed: int) -> None:
    models, same = {hlo.format(tidied(model)) for model in idioms()}, 0
    for number, module in enumerate(examples(lambda c: near_miss(c, idioms()), 10, seed)):
        hlo.verify(module)
        text = hlo.format(module)
        assert hlo.parse(text) == module
        same += text in models
        try:
            found = interp.evaluate(module, *arguments(Seeded(number), module), fuel=1 << 14)
        except OutOfFuel:
            continue  # a loop whose condition has changed
        assert list(placed(found))
    assert same <= 1  # a second change may undo the first


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_each_change_has_a_place_in_some_idiom(change: Change) -> None:
    for number in range(60):
        choices = Seeded(number)
        model = choices.choice(idioms())
        changed = change(choices, model)
        if changed is None or changed == model:
            continue
        try:
            hlo.verify(changed)
        except Error:
            continue
        return
    pytest.fail("nothing valid in 60 trials")


def test_a_program_is_nearly_the_given_one() -> None:
    """An argmax becomes the last place of equal elements, or that of the minimum, with other types,
    sizes and constants."""
    plan = Plan(1, ("printed",), 40, (_ARGMAX,))
    texts = [hlo.format(case.module) for n in range(5) for case in cases(plan, n)]
    assert len(set(texts)) > 150
    for part in ("direction=GE", "direction=GT", "bf16[3]", "copy(", "constant(1)"):
        assert any(part in text for text in texts), part
    sizes = {size for text in texts for size in re.findall(r"f32(\[\d+,\d+\])", text)}
    assert len(sizes) > 10


def test_what_a_chunk_draws_depends_on_the_given_programs_alone() -> None:
    plan = Plan(1, ("printed",), 5, (_ARGMAX,))
    assert [c.module for c in cases(plan, 3)] == [c.module for c in cases(plan, 3)]
    assert plan.facts != Plan(1, ("printed",), 5).facts
    assert "near" not in Plan(1, ("printed",)).facts
    assert _ARGMAX not in plan.facts.values()


def test_numbers_of_nested_attributes_are_replaced_one_by_one() -> None:
    window = Window((WindowDimension(3, 2, reversal=True), WindowDimension(1)))
    found = [*numbers(window)]
    assert found == [3, 2, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0]
    changed = with_number(window, 6, 0)
    assert changed == Window((WindowDimension(3, 2), WindowDimension(1)))
    assert with_number(((0, 5, 1), (1, 2, 1)), 4, 3) == ((0, 5, 1), (1, 3, 1))
    assert not numbers("name")
