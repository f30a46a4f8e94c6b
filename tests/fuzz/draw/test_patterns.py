"""Patterns are valid, survive printing, and run."""

import re

import numpy as np
import pytest

import hlo
import interp
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from fuzz.campaign.program_kinds import Kind
from fuzz.draw.builder import Builder
from fuzz.draw.choices import Choices, Seeded, examples
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.windows import cut_convolution
from fuzz.draw.programs import (
    conversions,
    elementwise_alone,
    folds,
    identities,
    menu,
    moving_alone,
    program,
    unusual,
)
from fuzz.draw.readable import tidied
from fuzz.draw.shapes import TYPES, UNUSUAL_TYPES, shape
from fuzz.draw.values import arguments
from hlo.literal import Literal
from hlo.module import Module
from hlo.types import F32, ArrayShape, ElementType, leaves
from hlo.values import placed


def _of(name: str, choices: Choices) -> Module:
    pattern = PATTERNS[name]
    builder = Builder(choices, menu(), TYPES, 1)
    return builder.module([pattern.generator(builder, shape(choices, TYPES, pattern.accepts))])


@pytest.mark.sampled(45)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_valid_and_runs(name: str) -> None:
    drawn = examples(lambda choices: _of(name, choices), 12, name)
    for number, module in enumerate(drawn):
        hlo.verify(module)
        assert hlo.parse(hlo.format(module)) == module
        assert list(placed(interp.evaluate(module, *arguments(Seeded(number), module))))
    opcodes = {i.opcode for module in drawn for c in module.computations for i in c.instructions}
    assert opcodes.issuperset(PATTERNS[name].opcodes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", [conversions, elementwise_alone, folds, identities, moving_alone, unusual]
)
def test_a_program_of_many_small_parts_is_valid_and_runs(kind: Kind) -> None:
    drawn = examples(kind, 60, kind.__name__)
    types = set[ElementType]()
    for number, module in enumerate(drawn):
        hlo.verify(module)
        assert hlo.parse(hlo.format(module)) == module
        assert list(placed(interp.evaluate(module, *arguments(Seeded(number), module))))
        types.update(t.element_type for i in module.entry.instructions for t in leaves(i.shape))
    assert types.intersection(TYPES) and types.intersection(UNUSUAL_TYPES)


def test_loops_of_exchanged_elements_are_divided_around_calls_and_gathers() -> None:
    found = set[str]()
    settings = threaded(Numerics.EXACT)
    for module in examples(lambda choices: _of("loop of exchanged elements", choices), 10, 0):
        for text in render_plan(lowered(module, settings), OPENMP).sources.values():
            _, _, kernels = text.partition("void kernel_")
            if " t0[" in kernels:  # a block of the state
                found.update(re.findall(r"_lanes\(x|for \(\w+ jg", kernels))
    assert len(found) == 2


def test_what_is_folded_has_no_arguments() -> None:
    for module in examples(folds, 40, 2):
        assert not module.entry.parameters


def test_a_choice_of_opcodes_holds_for_patterns() -> None:
    opcodes = ("add", "reshape", "transpose", "dot")
    for module in examples(lambda choices: program(choices, opcodes=opcodes), 50, 1):
        found = {i.opcode for i in module.entry.instructions}
        assert found <= {*opcodes, "parameter", "constant", "tuple", "broadcast"}


def test_what_is_dead_goes() -> None:
    text = """HloModule m

unused { ROOT x = f32[] parameter(0) }

used { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }

ENTRY e {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  dead = f32[] call(p), to_apply=unused
  ROOT r = f32[] call(q, q), to_apply=used
}
"""
    small = tidied(hlo.parse(text))
    hlo.verify(small)
    assert [c.name for c in small.computations] == ["computation.0", "e"]
    assert [i.name for i in small.entry.instructions] == ["parameter.0", "call.1"]
    assert len(small.computations[0].parameters) == 2
    assert interp.evaluate(small, F32.numpy.type(3)) == 3


def test_a_convolution_that_cuts_takes_as_many_places_as_it_says() -> None:
    """A drawn convolution that cuts its operand verifies, also with more negative padding than
    there is: of one place, by a kernel of one."""

    def drawn(choices: Choices) -> Module:
        builder = Builder(choices, menu(), TYPES, 1)
        return builder.module([cut_convolution(builder, ArrayShape(F32, (1, 1, 1)))])

    for module in examples(drawn, 300, "cut"):
        hlo.verify(module)


def test_chains_have_every_number_that_simplifications_match() -> None:
    numbers = set[float]()
    for module in examples(_chain, 60, "numbers"):
        for i in module.entry.instructions:
            if isinstance(literal := i.attributes.get("literal"), Literal):
                numbers.update(np.ravel(literal.value).tolist())
    assert numbers >= {0, 1, 2}


def _chain(choices: Choices) -> Module:
    builder = Builder(choices, menu(), TYPES, 0, constants=False)
    return builder.module([PATTERNS["chain"].generator(builder, ArrayShape(F32, (9,)))])
