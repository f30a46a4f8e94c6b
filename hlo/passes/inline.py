"""Inline every ``call``, ``fusion`` and asynchronous call.

A single rank never waits, so the computation of an ``async-start`` is inlined where its last
operand is given and its whole result requested. Starts whose state leaves the computation, in a
tuple or through a loop, are left. In computations that are applied element by element, scalar
conditionals become selects between their branches (XLA: ``ConditionalToSelect``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hlo.async_states import is_whole
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, CALLS, having
from hlo.passes.bound_changes import explicit_bounds
from hlo.passes.choices import applied_by_element, branches, is_choice
from hlo.passes.rewriting import Names, each, integer
from hlo.text.source_locations import has_source
from hlo.types import PRED, S32, ArrayShape
from hlo.walk import called

_INLINED = having(CALLS)
_SPLICED = _INLINED | {"async-start"}

# Calls can double a program at every level of nesting, so n levels of text make 2**n instructions
# (hostile input). The largest real program known has 2 million once inlined.
MOST_INSTRUCTIONS = 1 << 22


def inline(module: Module) -> Module:
    """Inline all calls. What is left are the ``async-start`` instructions whose state leaves their
    computation: each wraps a computation of one instruction.

    Inlined instructions are named ``callee.name``. Annotations that order instructions by name
    (control-predecessors) are dropped, as names change. Raises Unsupported if a computation would
    exceed ``MOST_INSTRUCTIONS``.
    """
    module = explicit_bounds(module)
    _check_size(module)
    done: dict[str, Computation] = {}
    inlined_names: set[str] = set()  # names that inlining gave: they are not prefixed again
    by_element = applied_by_element(module)

    chains = {c.name: _local_chains(c) for c in module.computations}
    wrapped = _wrapped(module, chains)

    def inlined(computation: Computation) -> Computation:
        if computation.name in wrapped:
            done[computation.name] = computation
            return computation
        own = chains[computation.name]
        body = _Body(computation, done, inlined_names, by_element, own)
        for instruction in computation.instructions:
            body.take(instruction)
        done[computation.name] = body.done()
        return done[computation.name]

    return each(module, inlined)


def inline_if_small(module: Module) -> Module:
    """Inline all calls, as :func:`inline` does; leave those of a module that it would refuse."""
    try:
        return inline(module)
    except Unsupported:
        return module


def _wrapped(module: Module, chains: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the names of the computations that asynchronous calls which are not inlined wrap."""
    return frozenset(
        name
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "async-start" and instruction.name not in chains[computation.name]
        for name in called(instruction)
    )


def _check_size(module: Module) -> None:
    """Count the instructions that inlining will make; raise Unsupported if they are too many."""
    sizes: dict[str, int] = {}
    for computation in module.computations:
        size = 0
        for instruction in computation.instructions:
            inner = called(instruction) if instruction.opcode in _SPLICED else ()
            size += sum(sizes[name] for name in inner) if inner else 1
        if size > MOST_INSTRUCTIONS:
            raise Unsupported(
                f"%{computation.name} has {size} instructions once its calls are inlined;"
                f" at most {MOST_INSTRUCTIONS} are taken"
            )
        sizes[computation.name] = size


_ASYNC = having(ASYNC)


def _local_chains(computation: Computation) -> frozenset[str]:
    """Return the names of async-start, -update and -done instructions of chains that do not escape:
    no other instruction, nor the computation's root, takes their state."""
    starts: dict[str, str] = {}  # of each state
    members: dict[str, str] = {}
    escaping = set()
    for instruction in computation.instructions:
        name, operands = instruction.name, instruction.operands
        if instruction.opcode == "async-start":
            starts[name] = members[name] = name
        elif instruction.opcode in _ASYNC and operands[0] in starts:
            members[name] = starts[operands[0]]
            if instruction.opcode == "async-update":
                starts[name] = members[name]
            operands = operands[1:]
        escaping |= {starts[operand] for operand in operands if operand in starts}
    escaping.add(starts.get(computation.root, ""))
    return frozenset(name for name, start in members.items() if start not in escaping)


@dataclass(frozen=True, slots=True)
class _Started:
    """Hold an asynchronous call: callee, operands so far, and the result's name once inlined."""

    callee: Computation
    operands: tuple[str, ...]
    result: str = ""


class _Body:
    """Rebuild one computation with the calls in it inlined."""

    def __init__(
        self,
        computation: Computation,
        done: dict[str, Computation],
        inlined_names: set[str],
        by_element: frozenset[str],
        local_chains: frozenset[str],
    ) -> None:
        self._is_by_element = computation.name in by_element
        self._computation, self._done, self._inlined_names = computation, done, inlined_names
        self._names = Names(i.name for i in computation.instructions)
        self._instructions: list[Instruction] = []
        self._replaced: dict[str, str] = {}
        self._started: dict[str, _Started] = {}
        self._local_chains = local_chains

    def take(self, instruction: Instruction) -> None:
        """Append an instruction, or in its place those of the computation that it calls."""
        operands = tuple(self._replaced.get(name, name) for name in instruction.operands)
        if instruction.opcode in _INLINED:
            (callee,) = called(instruction)
            source = instruction.annotations.get("metadata", "")
            self._replaced[instruction.name] = self._splice(self._done[callee], operands, source)
        elif instruction.name in self._local_chains:
            self._take_async(instruction, operands)
        elif self._is_by_element and is_choice(instruction, self._done):
            self._take_branches(instruction, operands)
        else:
            self._add(instruction, instruction.name, operands)

    def _take_branches(self, instruction: Instruction, operands: tuple[str, ...]) -> None:
        """If-convert a conditional: append all branches, and a chain of selects between them."""
        selector, *passed = operands
        results = [
            self._splice(self._done[name], (operand,))
            for name, operand in zip(branches(instruction), passed, strict=True)
        ]
        chosen = results.pop()  # the last one also of numbers that are out of range
        of_pred = "true_computation" in instruction.attributes
        for number in reversed(range(len(results))):
            pred = selector if of_pred else self._is_number(selector, number)
            name = self._names.fresh(f"{instruction.name}.choice")
            given = pred, results[number], chosen
            self._instructions.append(Instruction(name, instruction.shape, "select", given))
            chosen = name
        self._replaced[instruction.name] = chosen

    def _is_number(self, selector: str, number: int) -> str:
        """Append ``selector == number``; return its name."""
        shape = ArrayShape(S32)
        literal = Literal(shape, np.array(number, np.int32))
        constant, equal = self._names.fresh("branch"), self._names.fresh("is_branch")
        self._instructions += (
            Instruction(constant, shape, "constant", (), {"literal": literal}),
            Instruction(
                equal, ArrayShape(PRED), "compare", (selector, constant), {"direction": "EQ"}
            ),
        )
        return equal

    def _take_async(self, instruction: Instruction, operands: tuple[str, ...]) -> None:
        """Collect an asynchronous call's operands over start and updates, then inline it."""
        if instruction.opcode == "async-start":
            (name,) = called(instruction)
            started = _Started(self._done[name], operands)
        else:
            before = self._started[instruction.operands[0]]
            started = replace(before, operands=(*before.operands, *operands[1:]))
        is_done = bool(started.result) or instruction.opcode == "async-done"
        # Operands and results may be split over the start and its updates: the first state that has
        # all of both is where the callee can run.
        if not is_done and is_whole(instruction.shape, started.callee):
            started = replace(started, result=self._splice(started.callee, started.operands))
        self._started[instruction.name] = started
        if instruction.opcode == "async-done":
            self._replaced[instruction.name] = started.result

    def _add(self, instruction: Instruction, name: str, operands: tuple[str, ...]) -> None:
        """Append an instruction under another name, without control-predecessors."""
        annotations = instruction.annotations
        if "control-predecessors" in annotations:
            kept = {k: v for k, v in annotations.items() if k != "control-predecessors"}
            instruction = instruction._replace(annotations=kept)
        self._instructions.append(instruction._replace(name=name, operands=operands))

    def _splice(self, callee: Computation, arguments: tuple[str, ...], source: str = "") -> str:
        """Append the callee's instructions, renamed; return the name of its result.

        Those without a source location in their metadata inherit that of the call, if it has one (a
        function that JAX compiles once for all its callers has none).
        """
        renamed: dict[str, str] = {}
        inherits = has_source(source)
        for instruction in callee.instructions:
            if instruction.opcode == "parameter":
                renamed[instruction.name] = arguments[integer(instruction, "parameter_number")]
                continue
            old = instruction.name
            # Prefixed once only: names of instructions inlined over several levels would grow with
            # the depth.
            name = self._names.fresh(old if old in self._inlined_names else f"{callee.name}.{old}")
            self._inlined_names.add(name)
            renamed[old] = name
            if inherits and not has_source(instruction.annotations.get("metadata", "")):
                kept = {**instruction.annotations, "metadata": source}
                instruction = instruction._replace(annotations=kept)
            self._add(instruction, name, tuple(renamed[o] for o in instruction.operands))
        return renamed[callee.root]

    def done(self) -> Computation:
        """Return the computation with all calls inlined."""
        root = self._replaced.get(self._computation.root, self._computation.root)
        # Without its execution thread: what ran on another one is part of this one now.
        return Computation(self._computation.name, tuple(self._instructions), root)
