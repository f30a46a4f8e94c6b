"""Find computations and loops whose values are all integers or pred: their only legal result is
the exact one."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hlo.dynamic_sizes import has_bounds
from hlo.errors import Unsupported
from hlo.module import Computation, Module
from hlo.opcodes import ELEMENTWISE, MOVES, having, of_family
from hlo.types import Shape, leaves
from hlo.walk import Callee
from interp.values import Value

MOST_TURNS = 1 << 22  # of a loop that is followed: hours, of an exact one a minute

# Whatever a compiler does, these give one result on certain whole numbers. Not a power, which may
# divide by zero; not folds, whose order is open; not what calls other computations.
_ELEMENTWISE = of_family(ELEMENTWISE) - {"power"}
_DECIDED = (
    _ELEMENTWISE | having(MOVES) | {"constant", "get-tuple-element", "iota", "parameter", "tuple"}
)
_WHOLE = ("pred", "signed", "unsigned")


def exact_computations(module: Module) -> frozenset[str]:
    """Find the computations that have only integers and pred and only instructions of a single
    legal result."""
    return frozenset(c.name for c in module.computations if _is_exact(c))


def exact_loops(module: Module) -> frozenset[tuple[str, str]]:
    """Find the loops, as (computation, instruction), whose condition and body are exact."""
    exact = exact_computations(module)
    return frozenset(
        (computation.name, loop.name)
        for computation in module.computations
        for loop in computation.instructions
        if loop.opcode == "while"
        and exact.issuperset((loop.attributes["condition"], loop.attributes["body"]))
    )


def exact_instructions(computation: Computation) -> frozenset[str]:
    """Find the elementwise instructions of a computation that have only integers and pred, and on
    certain ones a single legal result."""
    whole = {i.name for i in computation.instructions if _is_whole(i.shape)}
    return frozenset(
        i.name
        for i in computation.instructions
        if i.opcode in _ELEMENTWISE and i.name in whole and whole.issuperset(i.operands)
    )


def _is_exact(computation: Computation) -> bool:
    return all(
        instruction.opcode in _DECIDED and _is_whole(instruction.shape)
        for instruction in computation.instructions
    )


def _is_whole(shape: Shape) -> bool:
    """Test for integers and pred of static sizes alone."""
    if has_bounds(shape):
        return False
    return all(leaf.element_type.kind in _WHOLE for leaf in leaves(shape))


def limited(attributes: dict[str, object]) -> dict[str, object]:
    """Limit a loop to ``MOST_TURNS`` calls of its body, then Unsupported is raised: with a bound
    that a compiler got wrong it may never end. Attributes without a ``body`` are returned as they
    are."""
    body = attributes.get("body")
    if not isinstance(body, Callee):
        return attributes
    enter, turns = body.call, itertools.count()

    def call(*state: Value) -> Value:
        if next(turns) >= MOST_TURNS:
            raise too_long()
        return enter(*state)

    return {**attributes, "body": replace(body, call=call)}


def too_long() -> Unsupported:
    """Make the error of a loop that exceeds ``MOST_TURNS`` trips."""
    return Unsupported(f"a loop of more than {MOST_TURNS} turns is not enclosed")
