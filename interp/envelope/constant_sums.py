"""Admit that a compiler adds up the constants of a chain of sums first.

``(x + c) + d`` may be computed as ``x + (c + d)`` (XLA: ``algebraic_simplifier.cc``), also where
``x + c`` cancels without any rounding: the rounding of ``c + d``, at most u (|c| + |d|), is then
far larger than all others. So each sum with a constant that another one follows, or goes before,
admits an absolute error of 2 u |c|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType

import numpy as np

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import CALLS, EFFECT, ELEMENTWISE, MOVES, STATEFUL, SUM, having, of_family
from hlo.types import ArrayShape
from hlo.walk import called
from interp.envelope import budget
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.elementwise_chains import absolutely_wider, wider
from interp.envelope.enclosure import Enclosure, finfo

Sums = Mapping[str, tuple[int, ...]]  # the numbers of constant operands, by the name of the sum

NONE: Sums = MappingProxyType({})
_SUMS, _CALLS = having(SUM), having(CALLS)
# What a compiler computes of constants, and what it moves a sum through.
_FOLDED = (of_family(ELEMENTWISE) | having(MOVES)) - having(EFFECT) - having(STATEFUL)
_HANDS_ON = having(MOVES) | {"convert", "negate", "get-tuple-element", "tuple"}


def constant_values(module: Module) -> dict[str, frozenset[str]]:
    """Collect, by computation, the names of the values that are computed from constants alone."""
    constants: dict[str, set[int]] = {}  # numbers of parameters, by computation
    found: dict[str, frozenset[str]] = {}
    for computation in reversed(module.computations):  # callers go before what they call
        known = _constants(computation, constants.get(computation.name, set()))
        for instruction in computation.instructions:
            if instruction.opcode in _CALLS:
                given = {n for n, name in enumerate(instruction.operands) if name in known}
                for name in called(instruction):
                    constants.setdefault(name, set()).update(given)
        found[computation.name] = frozenset(known)
    return found


def sums_of_constants(module: Module, constants: Mapping[str, frozenset[str]]) -> dict[str, Sums]:
    """Find the sums with a constant whose neighbour in a chain may be another such sum; for each
    computation, the sum's name and the numbers of its constant operands. ``constants`` are the
    :func:`constant_values`."""
    return {
        computation.name: _meeting(
            computation, constants[computation.name], computation is module.entry
        )
        for computation in module.computations
    }


def constants_of(computation: Computation) -> frozenset[str]:
    """Collect the names of the values that a computation makes of its own constants alone."""
    return frozenset(_constants(computation, set()))


def _constants(computation: Computation, parameters: set[int]) -> set[str]:
    """Collect the names of values computed from constants alone, given which parameters are."""
    known = {p.name for n, p in enumerate(computation.parameters) if n in parameters}
    for i in computation.instructions:
        is_folded = i.opcode in _FOLDED and i.operands and known.issuperset(i.operands)
        if i.opcode == "constant" or is_folded:
            known.add(i.name)
    return known


def _meeting(computation: Computation, constants: frozenset[str], is_entry: bool) -> Sums:
    """Find the sums with a constant that may stand next to another one: that read, through moves,
    such a sum or another computation's value, or whose value is read by one."""
    given = {i.name for i in computation.instructions if i.opcode == "constant"}
    own = {
        i.name: at for i in computation.instructions if (at := _constants_of(i, constants, given))
    }
    after = set() if is_entry else {p.name for p in computation.parameters}
    follows, goes_on = set(), set()
    for i in computation.instructions:
        if i.name in own and not after.isdisjoint(i.operands):
            follows.add(i.name)
        is_handed_on = i.opcode in _HANDS_ON and not after.isdisjoint(i.operands)
        if i.name in own or is_handed_on or called(i):
            after.add(i.name)
    before = set() if is_entry else {computation.root_instruction.name}
    for i in reversed(computation.instructions):
        if i.name in own and i.name in before:
            goes_on.add(i.name)
        if i.name in own or (i.opcode in _HANDS_ON and i.name in before) or called(i):
            before.update(i.operands)
    return {name: own[name] for name in follows | goes_on} or NONE


def _constants_of(
    instruction: Instruction, constants: frozenset[str], given: set[str]
) -> tuple[int, ...]:
    """Return the numbers of a sum's constant operands. If both are computed from constants it is
    the one that is a constant instruction, and if both are the second: (a + b) + c may be
    a + (b + c) for constants, too. If neither is, either may be the one that is added up first."""
    shape = instruction.shape
    if instruction.opcode not in _SUMS or not isinstance(shape, ArrayShape):
        return ()
    if not shape.element_type.is_inexact:
        return ()
    which = [n for n, name in enumerate(instruction.operands) if name in constants]
    instructions = [n for n in which if instruction.operands[n] in given]
    return tuple(instructions[-1:] if instructions else which)


def admitted(result: Enclosure, constants: Sequence[Enclosure]) -> Enclosure:
    """Widen the result of a sum by 2 u |c|, the rounding of a constant added to another one first;
    of several c the greatest."""
    if not budget.current().rewrites:
        return result
    if result.element_type.is_complex:
        real, imaginary = zip(*map(parts, constants), strict=True)
        return joined(*map(admitted, parts(result), (real, imaginary)))
    most = reduce(np.maximum, (constant.magnitudes() for constant in constants))
    # eps is 2 u; what is not finite has no rounding.
    error = np.where(np.isfinite(most), most, 0) * float(finfo(result.low.dtype).eps)
    return wider(absolutely_wider(result, error))
