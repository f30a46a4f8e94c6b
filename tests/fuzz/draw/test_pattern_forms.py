"""A choice of types holds for patterns."""

import pytest

from fuzz.draw.builder import Builder
from fuzz.draw.choices import Choices, examples
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.conversions import PATTERNS as CONVERSIONS
from fuzz.draw.patterns.loops import PATTERNS as LOOPS
from fuzz.draw.programs import menu
from fuzz.draw.shapes import TYPES, shape
from hlo.module import Module
from hlo.types import F32, PRED, S32, ElementType, leaves


def _drawn(
    name: str, choices: Choices, types: tuple[ElementType, ...] = TYPES, budget: int = 1
) -> Module:
    pattern = PATTERNS[name]
    builder = Builder(choices, menu(), types, budget)
    return builder.module([pattern.generator(builder, shape(choices, types, pattern.accepts, 64))])


@pytest.mark.parametrize("name", [*CONVERSIONS, *LOOPS])
def test_a_choice_of_types_holds_for_patterns(name: str) -> None:
    """Patterns convert to no other types than the caller asks for, and count in none."""
    types = (F32, S32, PRED)
    for module in examples(lambda choices: _drawn(name, choices, types, 0), 40, name):
        shapes = [i.shape for c in module.computations for i in c.instructions]
        assert {leaf.element_type for shape in shapes for leaf in leaves(shape)} <= {*types}
