"""A compiler with a bug in one instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.values import Array, arrays_of
from hlo.walk import Op
from interp.envelope.budget import Budget
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, WITHIN, judged
from interp.evaluator import Evaluation, evaluate
from interp.exact.conversion import type_of
from interp.values import Value, as_arrays, conforms, copied
from selftest.injection.bug import Bug, Call

FUEL = 20_000  # instructions that are evaluated; a bug may make a loop endless
_MOST_SEEN = 8


class NoBugError(Exception):
    """Raised where a bug does not apply: to these types, or with these attributes."""


@dataclass(frozen=True, slots=True)
class Site:
    """The place of a bug: an instruction in a computation."""

    computation: Computation
    instruction: Instruction


@dataclass(slots=True)
class Injected:
    """A compiler with one bug at one site. NoBugError if the bug does not apply there; ``seen`` has
    the first evaluations of the site: operands and wrong result."""

    bug: Bug
    site: Site
    values: Sequence[Value]
    seed: int = 0
    seen: list[tuple[tuple[Value, ...], Value]] = field(default_factory=list)
    spilled: bool = False  # whether an operand was written to

    def __call__(self, module: Module) -> list[Array]:
        evaluation = Evaluation(module, FUEL, instead=self._instead)
        arguments = tuple(map(copied, self.values))  # bugs may write into their operands
        return list(arrays_of(evaluation.result(arguments, self.seed)))

    def _instead(self, computation: Computation, instruction: Instruction, op: Op) -> Op:
        site = self.site.instruction
        here = (computation.name, instruction.name)
        # A program that shows values in between may have given the name to another instruction.
        if here != (self.site.computation.name, site.name) or instruction.opcode != site.opcode:
            return op
        return Op(self._wrong(op.function), op.given, op.home)

    def _wrong(self, function: Callable[..., object]) -> Callable[..., Value]:
        def wrong(*operands: Value, **attributes: Any) -> Value:
            call = Call(function, operands, attributes, self.site.instruction)
            before = tuple(map(copied, operands)) if len(self.seen) < _MOST_SEEN else None
            value = wrong_value(self.bug, call)
            if before is not None:
                self.spilled |= not all(map(_is_kept, arrays_of(before), arrays_of(operands)))
                self.seen.append((before, copied(value)))
            return value

        return wrong


def wrong_value(bug: Bug, call: Call) -> Value:
    """Compute the wrong result of an instruction; NoBugError if the bug does not apply."""
    if not _is_of(bug.kinds, call.operands):
        raise NoBugError
    try:
        value = as_arrays(bug.wrong(call))
        fits = value is not None and conforms(value, call.instruction.shape)
    except (ValueError, IndexError, TypeError) as error:  # NumPy's, of shapes and types
        raise NoBugError from error
    if not fits:
        raise NoBugError
    return value


def _is_kept(before: Array, after: Array) -> bool:
    return before.tobytes() == after.tobytes()


def _is_of(kinds: str, operands: Sequence[Value]) -> bool:
    if not kinds or not operands:
        return not kinds
    return isinstance(operands[0], np.ndarray) and type_of(operands[0]).kind in kinds.split()


def alone(module: Module, site: Site) -> Module:
    """Extract one instruction as a program, with its operands as parameters."""
    shapes = {i.name: i.shape for i in site.computation.instructions}
    names = tuple(f"operand.{n}" for n in range(len(site.instruction.operands)))
    parameters = (
        Instruction(name, shapes[operand], "parameter", (), {"parameter_number": n})
        for n, (name, operand) in enumerate(zip(names, site.instruction.operands))
    )
    root = site.instruction._replace(operands=names)
    entry = Computation("the.instruction", (*parameters, root), root.name)
    above = module.computations[: module.computations.index(site.computation)]
    return Module("alone", (*above, entry), entry.name)


def is_allowed(module: Module, injected: Injected, budget: Budget) -> bool:
    """Test whether all wrong results seen are legal for their operands, so that in this program the
    bug is none."""
    program = alone(module, injected.site)
    for operands, wrong in injected.seen:
        if _is_other_order(injected.site.instruction, program, operands, wrong):
            continue
        try:
            legal = enclose(program, *operands, peer=budget, seed=injected.seed).result
            exact = evaluate(program, *operands, seed=injected.seed, fuel=FUEL)
        except Error:
            return False
        triples = zip(arrays_of(wrong), arrays_of(exact), arrays_of(legal), strict=True)
        for actual, right, bounds in triples:
            same = actual.shape == right.shape
            if not same or judged(actual, right, bounds).worst not in (EQUAL, WITHIN):
                return False
    return len(injected.seen) < _MOST_SEEN and not injected.spilled


def _is_other_order(
    instruction: Instruction, program: Module, operands: Sequence[Value], wrong: Value
) -> bool:
    """Test whether an unstable sort or top-k only ordered equal elements differently."""
    is_right = _ORDERS.get(instruction.opcode)
    stable = instruction.attributes.get("is_stable", instruction.opcode == "topk")
    return is_right is not None and not stable and is_right(instruction, program, operands, wrong)


def _is_sorted(
    instruction: Instruction, program: Module, operands: Sequence[Value], wrong: Value
) -> bool:
    """Test whether the result has the same rows, in sorted order."""
    rows = list(arrays_of(wrong))
    again = arrays_of(evaluate(program, *rows, fuel=FUEL))
    (axis,) = cast("tuple[int, ...]", instruction.attributes["dimensions"])
    same = (_in_order(list(arrays_of(tuple(x))), axis) for x in (operands, rows))
    return all(map(_is_kept, again, rows)) and next(same) == next(same)


def _are_greatest(
    instruction: Instruction, program: Module, operands: Sequence[Value], wrong: Value
) -> bool:
    """Test whether a top-k result has the right values, from distinct places."""
    values, places = arrays_of(wrong)
    right = next(arrays_of(evaluate(program, *operands, fuel=FUEL)))
    if not ((places >= 0) & (places < operands[0].shape[-1])).all():
        return False
    apart = (np.diff(np.sort(places, axis=-1), axis=-1) > 0).all()
    taken = np.take_along_axis(operands[0], places, -1)
    return _is_kept(right, values) and _is_kept(taken, values) and bool(apart)


_ORDERS = {"sort": _is_sorted, "topk": _are_greatest}


def _in_order(arrays: Sequence[Array], axis: int) -> list[list[bytes]]:
    """Sort the places along an axis by the bytes of all arrays' elements there, to compare them as
    sets."""
    columns = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in arrays]
    count, size = columns[0].shape
    return [
        sorted(b"".join(x[row, n].tobytes() for x in columns) for n in range(size))
        for row in range(count)
    ]
