"""Restart the envelope at anchors: values inside a program that a peer is asked for.

Rounding errors grow from instruction to instruction until an envelope says little. A peer that also
returns intermediate values is judged step by step, each part of the program on the peer's own
values. The program with more results is another program, so this proves a result of the original
legal only if it is legal there, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import IDENTITY, MOVES, having
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape, TupleShape
from hlo.values import Array
from interp.envelope import defining_equations
from interp.envelope.budget import Budget
from interp.envelope.chains import unstored
from interp.envelope.complex_numbers import parts
from interp.envelope.defining_equations import is_factorisation
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    all_certain,
    between,
    finfo,
    is_nan,
    outward,
    point,
    where,
)
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.loop_states import element, states_name, stored_elements, trips_name
from interp.envelope.verdict import (
    EQUAL,
    KINDS,
    OUTSIDE,
    UNDETERMINED,
    Verdict,
    is_wide,
    kinds,
    summary,
)
from interp.exact.conversion import type_of
from interp.ops.elementwise import complex_

_WIDE = 2.0**-8  # of the numbers around: here an envelope starts anew
_RESULT = "with.anchors"
# What a compiler may do as a part of the instruction before. Of ``transpose(dot(a, b))`` it makes
# ``dot(b, a)``, unless the dot is asked for, too.
_LAYS_OUT = frozenset(("bitcast", "copy", "reshape", "transpose"))
_PART = _LAYS_OUT | {"get-tuple-element"}
# Products, and what only moves them: a sum of one of these may be contracted with the product.
_PRODUCTS = having(MOVES) | having(IDENTITY) | {"multiply", "negate", "get-tuple-element"}
# In loops or calls of their own, however often they are used: the value that is shown is the one
# that the peer goes on with. What is done element by element may be done again in each loop that
# needs it, each time with other roundings.
_MADE_ONCE = frozenset(
    (
        *("cholesky", "conditional", "convolution", "custom-call", "dot", "dynamic-reshape", "fft"),
        *("ragged-dot", "reduce-window", "rng", "scaled-dot", "scan", "scatter", "sort", "topk"),
        *("select-and-scatter", "set-dimension-size", "triangular-solve", "while"),
    )
)


@dataclass(frozen=True, slots=True)
class Step:
    """An anchor at which the peer's value is outside of what follows from the anchors before it."""

    instruction: Instruction
    verdict: Verdict
    actual: Array
    legal: Enclosure


class Plan(NamedTuple):
    """Name the values that a peer is asked for: the entry's instructions, and states of its loops,
    of which ``trips`` says how many there are."""

    names: tuple[str, ...]
    trips: Mapping[str, int]


def planned(module: Module, *arrays: Any, peer: Budget, seed: int = 0) -> Plan:
    """Choose the entry's instructions to anchor. A trial evaluation with midpoints as the peer's
    values finds numbers that are wide or leave a decision open; their operands are anchored, too (a
    sum of many nearly known operands is wide and says nothing of the steps to it). A value that is
    only laid out anew is anchored after that: so most compilers still see the same program."""
    loose: set[str] = set()
    exact: set[str] = set()
    names: dict[str, None] = {}
    instructions = {i.name: i for i in module.entry.instructions}
    ends = _laid_out(module.entry)
    given = _bounded(module).union(x.name for x in module.entry.parameters)

    def seen(instruction: Instruction, value: Value, operands: Sequence[Value]) -> Value:
        if instruction.name in given or not isinstance(value, Enclosure):
            return None
        (exact if value.is_point else loose).add(instruction.name)
        if value.is_point:
            return None
        if value.low.dtype.kind in "biu":
            if all_certain(value):
                return None
        elif not is_wide(value, middle(value), _WIDE).any():
            return None
        made = instruction
        while made.opcode == "get-tuple-element":
            made = instructions[made.operands[0]]
        asked = loose | exact if _unbounded(value).any() else loose
        wanted = [name for name in made.operands if name in asked] + [instruction.name]
        names.update((ends.get(name, name), None) for name in wanted)
        return None if instruction.name in ends else point(middle(value))

    loops = _Trips()
    enclose(module, *arrays, peer=peer, seed=seed, seen=seen, after_trip=loops)
    names.update(dict.fromkeys(_with_other_results(module.entry, names.keys())))
    trips = {name: n for name, n in loops.trips.items() if name in loops.wide}
    for loop in module.entry.instructions:
        if stored := stored_elements(module, loop, trips.get(loop.name, 0)):
            states = (states_name(loop.name, number) for number in stored)
            names.update(dict.fromkeys((trips_name(loop.name), *states)))
    return Plan(tuple(names), trips)


@dataclass(slots=True)
class _Trips:
    """Count the trips of loops, and find those whose state becomes wide."""

    trips: dict[str, int] = field(default_factory=dict)
    wide: set[str] = field(default_factory=set)

    def __call__(self, loop: Instruction, trip: int, state: Value) -> Value:
        self.trips[loop.name] = trip + 1
        return tuple(self._narrowed(loop, x) for x in state) if isinstance(state, tuple) else None

    def _narrowed(self, loop: Instruction, value: Value) -> Value:
        if not isinstance(value, Enclosure) or value.is_point or value.low.dtype.kind in "biu":
            return value
        if not is_wide(value, middle(value), _WIDE).any():
            return value
        self.wide.add(loop.name)
        return point(middle(value))


def _with_other_results(entry: Computation, names: Collection[str]) -> Iterator[str]:
    """Yield all results of the factorisations of which some are asked for: an equation defines them
    together."""
    taken = {i.operands[0] for i in entry.instructions if i.name in names and i.operands}
    for call, results in _factorisations(entry).items():
        if call in taken:
            yield from results


def _factorisations(entry: Computation) -> dict[str, list[str]]:
    """Map each factorisation to the instructions that take its results, in their order."""
    found: dict[str, list[str]] = {}
    for instruction in entry.instructions:
        if instruction.opcode == "custom-call":
            if is_factorisation(str(instruction.attributes["custom_call_target"])):
                is_tuple = isinstance(instruction.shape, TupleShape)
                found[instruction.name] = [] if is_tuple else [instruction.name]
        elif instruction.opcode == "get-tuple-element" and instruction.operands[0] in found:
            parts_ = found[instruction.operands[0]]
            if instruction.attributes["index"] == len(parts_):
                parts_.append(instruction.name)
    return found


def with_all_results(module: Module) -> Module:
    """Take all results of each factorisation, in order: unused ones say whether the others are
    right."""
    instructions: list[Instruction] = []
    for instruction in module.entry.instructions:
        instructions.append(instruction)
        if instruction.opcode != "custom-call" or not isinstance(instruction.shape, TupleShape):
            continue
        if is_factorisation(str(instruction.attributes["custom_call_target"])):
            instructions += [
                element(f"{instruction.name}.with.{number}", shape, instruction.name, number)
                for number, shape in enumerate(instruction.shape.elements)
            ]
    return with_entry(module, replace(module.entry, instructions=tuple(instructions)))


def _laid_out(computation: Computation) -> dict[str, str]:
    """Map a value to the last of the transposes and reshapes that are its only users."""
    users: dict[str, list[Instruction]] = {}
    for instruction in computation.instructions:
        for name in instruction.operands:
            users.setdefault(name, []).append(instruction)
    ends: dict[str, str] = {}
    for instruction in reversed(computation.instructions):
        match users.get(instruction.name):
            case [user] if user.opcode in _LAYS_OUT:
                ends[instruction.name] = ends.get(user.name, user.name)
    return ends


def _bounded(module: Module) -> frozenset[str]:
    """Names of values with bounded dimensions, or computed from such. A compiler returns the whole
    buffer, with undefined elements beyond the actual size."""
    found: set[str] = set()
    for instruction in module.entry.instructions:
        if has_bounds(instruction.shape) or not found.isdisjoint(instruction.operands):
            found.add(instruction.name)
    return frozenset(found)


def by_opcode(module: Module, names: Iterable[str]) -> dict[str, list[str]]:
    """Group names of entry instructions by opcode."""
    opcodes = {i.name: i.opcode for i in module.entry.instructions}
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(opcodes[name], []).append(name)
    return found


def middle(value: Enclosure) -> Array:
    """Take the midpoint of each interval: zero between infinities, the low end of integers."""
    if value.low.dtype.kind in "biu":
        return np.asarray(value.low)
    if value.low.dtype.kind == "c":
        return np.asarray(complex_(*map(middle, parts(value))))
    low, high = value.low.astype(np.float64), value.high.astype(np.float64)
    centre = np.where((low == -np.inf) & (high == np.inf), 0.0, low / 2 + high / 2)
    return np.asarray(centre.astype(value.low.dtype))


def beside_middle(actual: Array, legal: Enclosure) -> Array:
    """Give verdicts relative to the peer's own values, however far from the exact results. Open
    integers and unbounded numbers have no midpoint: any value is as good."""
    with np.errstate(all="ignore"):
        centre = middle(legal)
        found = kinds(actual, centre, legal)
        open_ = _unbounded(legal) & (found == KINDS.index(EQUAL))
        if not open_.any():
            return found
        open_ &= is_wide(legal, centre)
    return np.where(open_, np.int8(KINDS.index(UNDETERMINED)), found)


def _unbounded(value: Enclosure) -> Array:
    """Test where a decision is open, a number unbounded, or NaN possible."""
    if value.low.dtype.kind in "biu":
        return np.broadcast_to(np.True_, value.shape)
    wide = np.complex128 if value.low.dtype.kind == "c" else np.float64
    width = value.high.astype(wide) - value.low.astype(wide)
    return np.asarray(~np.isfinite(width) | value.nan)


def exposed(module: Module, names: tuple[str, ...]) -> Module:
    """Append the values of some instructions to the module's result tuple."""
    entry = module.entry
    shapes = {i.name: i.shape for i in entry.instructions}
    operands = (entry.root, *names)
    shape = TupleShape(tuple(shapes[name] for name in operands))
    root = Instruction(_RESULT, shape, "tuple", operands)
    whole = replace(entry, instructions=(*entry.instructions, root), root=_RESULT)
    return with_entry(module, whole)


@dataclass(slots=True)
class _Followed:
    """The findings of one evaluation on the peer's values."""

    values: Mapping[str, Array]
    peer: Budget
    trusted: frozenset[str] = frozenset()
    products: frozenset[str] = frozenset()
    factorisations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    outside: list[Step] = field(default_factory=list)

    def __call__(self, instruction: Instruction, value: Value, operands: Sequence[Value]) -> Value:
        """Take the peer's value over, where it is certainly legal."""
        factors = self._factored(instruction, value, operands)
        if factors is not None or not isinstance(value, Enclosure):
            return factors
        actual = self.values.get(instruction.name)
        if actual is None or actual.shape != value.shape:  # the room of a bounded array
            return None
        return self._taken(instruction, value, actual)

    def after_trip(self, loop: Instruction, trip: int, state: Value) -> Value:
        """Take over what the peer's loop carries after a trip. Unrolled, a loop may go on with it
        unrounded."""
        taken = self.values.get(trips_name(loop.name))
        if not isinstance(state, tuple) or taken is None or trip >= int(taken):
            return None
        after = list(state)
        for number, value in enumerate(state):
            stored = self.values.get(states_name(loop.name, number))
            if stored is not None and trip < len(stored) - 1:
                known = self._taken(loop, value, stored[trip])
                after[number] = value if known is None else unstored(known)
        return tuple(after)

    def _taken(self, instruction: Instruction, value: Enclosure, actual: Array) -> Value:
        found = beside_middle(actual, value)
        verdict = summary(found)
        if verdict.counts[OUTSIDE]:
            self.outside.append(Step(instruction, verdict, actual, value))
        if value.is_point:
            return None
        known = self._or_flushed(self._known(instruction, actual), value)
        if instruction.name in self.trusted or not verdict.counts[UNDETERMINED]:
            return known
        # What is wrong here is not blamed on what follows.
        unsure = is_wide(value, middle(value)) & (found != KINDS.index(OUTSIDE))
        return where(unsure, value, known)

    def _factored(self, instruction: Instruction, value: Value, operands: Sequence[Value]) -> Value:
        """Take a peer's factors over, if they fulfil the equation that defines them."""
        names = self.factorisations.get(instruction.name, ())
        actual = [self.values[name] for name in names if name in self.values]
        parts_ = (value,) if isinstance(value, Enclosure) else value
        if not names or len(actual) != len(parts_) or not all(map(all_certain, operands)):
            return None
        target = str(instruction.attributes["custom_call_target"])
        config = instruction.annotations.get("backend_config", "")
        matrices = [x.low for x in operands]
        is_legal = defining_equations.checked(target, matrices, actual, config)
        if is_legal is False:
            kinds_ = np.full(actual[0].shape, KINDS.index(OUTSIDE), np.int8)
            self.outside.append(Step(instruction, summary(kinds_), actual[0], parts_[0]))
        if is_legal is None:
            return None
        return point(actual[0]) if isinstance(value, Enclosure) else tuple(map(point, actual))

    def _known(self, instruction: Instruction, actual: Array) -> Enclosure:
        """Enclose what the peer goes on with: it may hold more bits than it returns, where a narrow
        value stays in f32 or a product goes unrounded into a sum."""
        element_type = type_of(actual)
        narrow = self.peer.keeps_wide and element_type.bits < 32
        product = self.peer.contracts and instruction.name in self.products
        if not element_type.is_float or not (narrow or product):
            return point(actual)
        return between(*outward(actual, actual, 1), is_nan(actual))

    def _or_flushed(self, known: Enclosure, value: Enclosure) -> Enclosure:
        """Admit a subnormal for a zero and a zero for a subnormal: the program with more results
        may flush elsewhere."""
        if not self.peer.flushes or not known.element_type.is_float:
            return known
        tiny = float(finfo(known.low.dtype).smallest_normal)
        small = (known.low < tiny) & (known.high > -tiny)
        if not small.any():
            return known
        ends = [x.astype(np.float64) for x in (known.low, known.high, value.low, value.high)]
        low = np.minimum(ends[0], np.clip(ends[2], -tiny, 0))
        high = np.maximum(ends[1], np.clip(ends[3], 0, tiny))
        dtype = known.low.dtype
        return where(small, between(low.astype(dtype), high.astype(dtype), known.nan), known)


def followed(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    is_proof: bool = True,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on the peer's values at the anchors; return the enclosure and the steps to
    anchors that are illegal. Without ``is_proof`` a value that proves nothing (random numbers, tied
    keys) is taken over, too, since no compiler computes it twice: what then is outside is wrong,
    what is inside may rest on an illegal value."""
    trusted = frozenset[str]() if is_proof else _made_once(module)
    way = _Followed(values, peer, trusted, _products(module), _factorisations(module.entry))
    found = enclose(module, *arrays, peer=peer, seed=seed, seen=way, after_trip=way.after_trip)
    return found, tuple(way.outside)


def _products(module: Module) -> frozenset[str]:
    """Find single products, also dots of one term, which compilers make multiplications."""
    shapes = {i.name: i.shape for i in module.entry.instructions}
    found = {i.name for i in module.entry.instructions if i.opcode in _PRODUCTS}
    for dot in module.entry.instructions:
        lhs = shapes[dot.operands[0]] if dot.opcode == "dot" else None
        if isinstance(lhs, ArrayShape):
            axes: Any = dot.attributes.get("lhs_contracting_dims", ())
            found.update([dot.name] if all(lhs.dims[axis] == 1 for axis in axes) else ())
    return frozenset(found)


def _made_once(module: Module) -> frozenset[str]:
    found: set[str] = set()
    for instruction in module.entry.instructions:
        is_part = instruction.opcode in _PART and instruction.operands[0] in found
        if is_part or instruction.opcode in _MADE_ONCE:
            found.add(instruction.name)
    return frozenset(found)
