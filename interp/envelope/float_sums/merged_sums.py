"""Find the sums that a compiler may merge with what reads them.

What bounds a sum by its own addends (:mod:`interp.envelope.float_sums.addends`) does not bound one
that starts from another number, or goes on with others: XLA turns ``A + scatter(0, places,
updates)`` to ``scatter(A, places, updates)`` and a reduce of a reduce to one over all elements
(``algebraic_simplifier.cc``), a product of a matrix and a vector may begin with the bias that is
added to it, and a factor of a product of matrices may be multiplied with one operand instead. So
sums that reach additions through moves, of products of matrices also those that reach
multiplications, keep the bound for all of their terms. Those that have one addend keep that of one:
A + x, x among the addends of a longer sum, and one product more err no more than this admits.
"""

from __future__ import annotations

from hlo.module import Computation, Module
from hlo.opcodes import CALLS, CONTRACTION, MOVES, OPAQUE, REDUCTION, SUM, having, of_family
from hlo.walk import called

_CALLS, _PRODUCTS = having(CALLS), of_family(CONTRACTION)
_FOLDS = of_family(REDUCTION) | {"scatter"}
_ADDS = having(SUM) | _PRODUCTS | _FOLDS | {"custom-call"}
_SCALES = frozenset(("multiply", "divide"))
# What hands a sum on, changed by no rounding that a compiler could not move.
_HANDS_ON = having(MOVES) | having(OPAQUE) | {"convert", "negate", "real", "imag", "complex"}


def merged(module: Module) -> dict[str, frozenset[str]]:
    """Find, by computation, the sums that may be merged with others."""
    # Whether the root of a computation may be added to something, or multiplied.
    roots: dict[str, tuple[bool, bool]] = {module.entry.name: (False, False)}
    found = {}
    for computation in reversed(module.computations):  # callers go before what they call
        added, scaled = _reached(computation, roots.get(computation.name, (True, True)))
        for i in computation.instructions:
            is_known = i.opcode in _CALLS
            for name in called(i):
                before = roots.get(name, (False, False))
                own = (i.name in added, i.name in scaled) if is_known else (True, True)
                roots[name] = before[0] or own[0], before[1] or own[1]
        sums = (i for i in computation.instructions if i.opcode in _FOLDS | _PRODUCTS)
        merges = (
            i.name for i in sums if i.name in added or (i.opcode in _PRODUCTS and i.name in scaled)
        )
        found[computation.name] = frozenset(merges)
    return found


def _reached(computation: Computation, root: tuple[bool, bool]) -> tuple[set[str], set[str]]:
    """Collect the values that reach additions, and those that reach multiplications, through
    moves; ``root``: whether that of the computation does."""
    added, scaled = ({computation.root_instruction.name} if is_set else set() for is_set in root)
    for i in reversed(computation.instructions):
        if i.opcode in _ADDS or called(i):
            added.update(i.operands)
        elif i.opcode in _SCALES:
            scaled.update(i.operands)
        elif i.opcode in _HANDS_ON:
            for reached in (added, scaled):
                if i.name in reached:
                    reached.update(i.operands)
    return added, scaled
