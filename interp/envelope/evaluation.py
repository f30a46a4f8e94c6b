"""Enclose every legal result of a module: the interpreter's walk, over enclosures.

An op either has a rule of its own (a function in ``interp/envelope/ops``), or only moves elements,
or is known by its values alone: then uncertain operands admit anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hlo.dynamic_sizes import has_bounds
from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import EXCHANGES, MOVES, OPAQUE, SAME_SCALAR, STRUCTURAL, having
from hlo.types import ArrayShape, Shape
from hlo.values import Array
from hlo.verification.verify import verify
from hlo.walk import Op, call, column, follow, function_name, keywords
from interp.envelope import (
    bounded_enclosures,
    budget,
    constant_sums,
    elementwise_chains,
    enclosed_values,
)
from interp.envelope.blocks import in_blocks, is_uniform
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Budget
from interp.envelope.enclosed_values import Opening, opening, spread, unknown
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    all_certain,
    moved,
    point,
)
from interp.envelope.exact_loops import limited
from interp.envelope.interval_rules import moved_in_f32, opened_where_nan
from interp.envelope.memoisation.memo import Known, Memo
from interp.envelope.memoisation.module_facts import ModuleFacts
from interp.envelope.memoisation.repeated_constants import RepeatedConstants
from interp.envelope.moves import any_of, at_each_choice, is_batch, keeps_type, of_masks
from interp.envelope.ops import collective
from interp.envelope.rewritten_products import ConstantFactors, admitted_of_masks
from interp.envelope.watching import Watched, Watcher
from interp.ops import random
from interp.planner import is_scalar

_MOVES = having(MOVES)
# How many leading operands are data (-1: all), where not the first alone; the others are indices.
_MOVED = {"concatenate": -1, "dynamic-update-slice": 2, "pad": 2}
_SAME_SCALAR = having(SAME_SCALAR)
_HANDS_ON = having(STRUCTURAL) & having(OPAQUE)  # tuples and their elements
_OPAQUE = having(OPAQUE)  # the interpreter's functions of these take enclosures as they are
# A single rank receives its own operand; ragged-all-to-all has operands that are offsets and sizes.
_EXCHANGES = having(EXCHANGES) - {"ragged-all-to-all"}
_MOST_CALLS = 1 << 12  # of a computation that is not elementwise, for as many elements


@dataclass(frozen=True, slots=True)
class Enclosed:
    """The enclosure of a module's result, the instructions where it opened, and how many were
    followed: those of loops, folds and calls each time."""

    result: Value
    openings: tuple[Opening, ...]
    followed: int


def enclose(
    module: Module,
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    watcher: Watcher | None = None,
    memo: Memo | None = None,
) -> Enclosed:
    """Enclose every result of the entry computation that is legal under a peer's budget. A watcher
    sees the values of the entry, its loops and branches, and may replace them for their users.
    ``memo`` keeps what further evaluations need again. Raises Unsupported for an instruction that
    has no enclosure."""
    if memo is None:
        verify(module)
    else:
        memo.begin()
    evaluation = Enclosing(module, watcher, memo)
    with np.errstate(all="ignore"), random.seeded(seed), budget.using(peer):
        result = evaluation.run(module.entry, *map(enclosed_values.points, arrays))
    return Enclosed(result, tuple(evaluation.openings), evaluation.followed)


class Enclosing:
    """The state of one evaluation over enclosures."""

    def __init__(
        self, module: Module, watcher: Watcher | None = None, memo: Memo | None = None
    ) -> None:
        self._watched = Watched(module, watcher)
        self.openings: list[Opening] = []
        self.followed = 0
        self._module, self._memo = module, memo
        self._facts = ModuleFacts(module) if memo is None else memo.facts(module)
        self._constant_factors = ConstantFactors(module, self._facts.constants)
        self._of_constants = RepeatedConstants(module)
        self._exact = self._facts.exact
        self._rules = column("interp.envelope.ops")
        self._ops = column("interp.ops")
        # Those of bits make new values of them.
        self._moves = {x for x in _MOVES if function_name(x) not in self._rules} - {"bitcast"}
        elementwise = (n for n, op in self._ops.items() if op.home == "interp.ops.elementwise")
        self._elementwise = frozenset(elementwise)

    def run(self, computation: Computation, *arguments: Value) -> Value:
        """Enclose a computation's result, given enclosures of its arguments."""
        schedule = self._facts.schedule(computation)
        if self._exact.is_bounded:
            parameters = (parameter.shape for parameter in computation.parameters)
            arguments = tuple(map(bounded_enclosures.filled, arguments, parameters))
        return follow(schedule, arguments, partial(self.apply, computation))

    def apply(
        self, computation: Computation, instruction: Instruction, operands: list[Value]
    ) -> Value:
        """Enclose one instruction, given enclosures of its operands."""
        self.followed += 1
        is_here = self._watched.is_here(computation)
        declared = self._facts.declared(computation)
        sizes = declared[instruction.name].sizes
        if sizes is not None:
            bounded_enclosures.require_certain_sizes(instruction, operands)
            operands = bounded_enclosures.agreed(sizes, operands)
        elif instruction.opcode in _HANDS_ON:  # as it is, which has been finished and noted
            handed_on = self._ops[function_name(instruction.opcode)].function
            result = handed_on(*operands, **instruction.attributes)
            known = self._watched.seen(instruction, result, operands) if is_here else None
            return result if known is None else known
        if is_here and instruction.opcode == "conditional":
            operands = [self._watched.selector(instruction, operands[0]), *operands[1:]]
        result = self._of_constants.value(computation, instruction)
        if result is None:
            result = self._known(computation, instruction, operands, declared[instruction.name])
            self._of_constants.keep(computation, instruction, result)
        known = self._watched.seen(instruction, result, operands) if is_here else None
        if not isinstance(result, Enclosure):
            return result if known is None else known
        if known is not None:
            is_inner = instruction.name in self._facts.inner[computation.name]
            effective = partial(elementwise_chains.in_effect, instruction.opcode, operands, result)
            result = effective(known) if is_inner else known
        constants = self._facts.constant_sums[computation.name].get(instruction.name)
        if constants is None:
            return result
        with budget.using(self._budget(computation, instruction)):
            return constant_sums.admitted(result, [operands[number] for number in constants])

    def _known(
        self,
        computation: Computation,
        instruction: Instruction,
        operands: list[Value],
        declared: bounded_enclosures.Declared,
    ) -> Value:
        """Enclose one instruction, or return what the memo has."""
        peer, memo = self._budget(computation, instruction), self._memo
        given = self._facts, computation, instruction, peer, operands
        key = None if memo is None else memo.key(*given)
        if memo is None or key is None:
            return self._computed(computation, instruction, operands, declared, peer)
        known = memo.value(key)
        if known is None:
            before, opened = self.followed, len(self.openings)
            value = self._computed(computation, instruction, operands, declared, peer)
            inside = self.followed - before
            memo.keep(key, Known(value, inside, self.openings[opened:]))
            return value
        self.followed += known.followed
        self.openings += known.openings
        return known.value

    def _computed(
        self,
        computation: Computation,
        instruction: Instruction,
        operands: list[Value],
        declared: bounded_enclosures.Declared,
        peer: Budget,
    ) -> Value:
        """Enclose one instruction, and what rewrites of its products may give."""
        with budget.using(peer):
            result = self._result(computation, instruction, operands, declared.shapes)
            if isinstance(result, Enclosure):
                chains = self._constant_factors
                result = chains.admitted(computation, instruction, operands, result)
                names = self._facts.masks[computation.name]
                result = admitted_of_masks(instruction, names, operands, result)
        if declared.sizes is not None:
            result = bounded_enclosures.filled(result, instruction.shape)
        if isinstance(result, Enclosure):
            result = enclosed_values.once_if_open(opened_where_nan(result))
        # What is moved and open was so before: uncertain places give one hull, broadcast.
        is_moved = declared.sizes is None and instruction.opcode in self._moves
        if not is_moved or is_uniform(result):
            self.openings += opening(computation, instruction, operands, result)
        return result

    def _budget(self, computation: Computation, instruction: Instruction) -> Budget:
        """Choose the budget of an instruction. One whose value only becomes a result is rounded to
        its type, so excess precision and contraction are no permissions of it."""
        peer = budget.current()
        if peer is not budget.EXACT and instruction.name in self._facts.merged[computation.name]:
            return peer.of_merged
        is_stored = computation is self._module.entry and instruction.name in self._facts.stored
        if peer is budget.EXACT or not is_stored:
            return peer
        return peer.of_stored

    def _result(
        self,
        computation: Computation,
        instruction: Instruction,
        operands: list[Value],
        shapes: Sequence[Shape],
    ) -> Value:
        name = function_name(instruction.opcode)
        rule = self._rules.get(name)
        if rule is not None and not self._is_exact_loop(computation, instruction, operands):
            if name in self._elementwise and operands:
                return self._by_elements(rule, computation, instruction, operands, shapes)
            given = self._keywords(computation, instruction)
            return call(rule, instruction, operands, given, shapes)
        op = self._ops.get(name)
        if op is None:
            raise Unsupported(f"%{instruction.name}: {instruction.opcode} has no enclosure")
        if instruction.opcode in _OPAQUE:
            given = keywords(self._module, instruction, self._enter)
            return enclosed_values.points(call(op, instruction, operands, given, shapes))
        if instruction.opcode == "bitcast" and is_batch(shapes, operands[0]):
            op = self._ops["bitcast_convert"]  # of scalars there are no layouts
        if instruction.opcode in _MOVES and keeps_type(instruction, shapes):
            count = _MOVED.get(instruction.opcode, 1)
            return self._moved(op, instruction, operands, shapes, count)
        if instruction.opcode in _EXCHANGES:
            given = keywords(self._module, instruction, self._exact.enter)
            return collective.received(op, instruction, operands, given, shapes)
        return self._lifted(op, instruction, operands, shapes)

    def _by_elements(
        self,
        rule: Op,
        computation: Computation,
        instruction: Instruction,
        operands: list[Enclosure],
        shapes: Sequence[Shape],
    ) -> Enclosure:
        """Enclose an elementwise instruction block by block; of certain integers it is exact."""
        given = instruction.attributes  # which name no computation
        is_whole = instruction.name in self._facts.whole[computation.name]
        if is_whole and all(x.is_point for x in operands):
            op = self._ops[function_name(instruction.opcode)]
            return point(call(op, instruction, [x.low for x in operands], given, shapes))

        def elementwise(*values: Enclosure) -> Enclosure:
            return call(rule, instruction, values, given, shapes)

        is_inner = instruction.name in self._facts.inner[computation.name]
        inside = partial(elementwise_chains.inside, instruction.opcode)
        return in_blocks(inside(elementwise) if is_inner else elementwise, operands)

    def _is_exact_loop(
        self, computation: Computation, instruction: Instruction, operands: list[Value]
    ) -> bool:
        """Test for an integer loop that the interpreter may run, in a twentieth of the time."""
        if (computation.name, instruction.name) not in self._facts.exact_loops:
            return False
        if self._watched.looks_into(computation, instruction):
            return False
        return all(map(enclosed_values.certain, operands))

    def _keywords(self, computation: Computation, instruction: Instruction) -> dict[str, object]:
        """Return an instruction's attributes; callees of loops and conditionals are wrapped for the
        watcher."""
        given = keywords(self._module, instruction, self._enter)
        if instruction.opcode in ("while", "conditional") and self._watched.is_here(computation):
            is_loop = instruction.opcode == "while"
            watched = self._watched.loop if is_loop else self._watched.conditional
            return watched(instruction, given)
        return given

    def _enter(self, computation: Computation) -> Callable[..., Value]:
        """Make a callable of a computation; one of integers alone is the interpreter's on certain
        arguments, unless the watcher sees its values, and so is one of single elements where
        nothing is rounded otherwise."""
        is_exact = computation.name in self._facts.exact_computations
        exactly = self._exact.enter(computation)

        def is_literal() -> bool:
            if is_exact or budget.current() is not budget.EXACT:
                return is_exact
            return self._exact.plan(computation).is_elementwise

        def run(*arguments: Value) -> Value:
            certain = is_literal() and all(map(enclosed_values.certain, arguments))
            if not certain or self._watched.is_here(computation):
                return self.run(computation, *arguments)
            self.followed += 1
            return enclosed_values.points(exactly(*map(enclosed_values.lows, arguments)))

        def entered(*arguments: Value) -> Value:
            if not is_scalar(computation) or not any(x.shape for x in arguments):
                return run(*arguments)
            dims = np.broadcast_shapes(*(x.shape for x in arguments))
            if not self._exact.plan(computation).is_elementwise:
                return self._each(computation, arguments, dims)
            return spread(run(*arguments), dims)

        return entered

    def _each(
        self, computation: Computation, arguments: tuple[Value, ...], dims: tuple[int, ...]
    ) -> Value:
        """Apply a computation of scalars to each element in turn; of too many elements admit
        anything."""
        if not 0 < math.prod(dims) <= _MOST_CALLS:
            shape = computation.root_instruction.shape
            return spread(enclosed_values.anything_of(shape), dims)
        whole = [spread(argument, dims) for argument in arguments]
        found = [
            self.run(computation, *(moved(lambda x, at=index: np.asarray(x[at]), x) for x in whole))
            for index in np.ndindex(*dims)
        ]
        return enclosed_values.stacked(found, dims)

    def _moved(
        self,
        op: Op,
        instruction: Instruction,
        operands: list[Value],
        shapes: Sequence[Shape],
        count: int,
    ) -> Value:
        """Apply an op to the ends of its data; with uncertain indices each element may be any of
        them."""
        if instruction.opcode in _SAME_SCALAR and is_batch(shapes, operands[0]):
            return operands[0]
        data, indices = (operands[:count], operands[count:]) if count > 0 else (operands, [])
        places = [x.low for x in indices]

        def move(*arrays: Array, places: Sequence[Array] = places) -> Array:
            given = keywords(self._module, instruction, self._exact.enter)
            return np.asarray(call(op, instruction, [*arrays, *places], given, shapes))

        if not all(map(all_certain, indices)):
            assert isinstance(instruction.shape, ArrayShape)
            if has_bounds(instruction.shape):
                return any_of(data, move(*(x.low for x in data)).shape)

            def moved_to(places: Sequence[Array]) -> Enclosure:
                return moved_in_f32(moved(partial(move, places=places), *data))

            found = at_each_choice(instruction, data[0], indices, moved_to)
            return any_of(data, instruction.shape.dims) if found is None else found
        if instruction.opcode == "bitcast":
            return moved(of_masks(move, data[0].low.dtype), *data)
        return moved_in_f32(moved(move, *data))

    def _lifted(
        self, op: Op, instruction: Instruction, operands: list[Value], shapes: Sequence[Shape]
    ) -> Value:
        """Apply an op that has no rule: the exact result for certain operands, else anything."""
        given = limited(keywords(self._module, instruction, self._exact.enter))
        # Any NaN is as good as any other, so the integers that are made of its bits are open.
        open_ = instruction.opcode == "bitcast" and any(is_ever(x.nan) for x in operands)
        opens = not all(map(enclosed_values.certain, operands)) or (
            open_ and budget.current() is not budget.EXACT
        )
        if opens and not has_bounds(instruction.shape):
            return enclosed_values.anything_of(instruction.shape)
        value = enclosed_values.points(
            call(op, instruction, [enclosed_values.lows(x) for x in operands], given, shapes)
        )
        return unknown(value) if opens else value
