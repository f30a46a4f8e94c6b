"""Remove transposes that only reductions read, through elementwise chains between them.

    reduce(transpose(x), dimensions={1})        is reduce(x, dimensions={0})
    reduce(exp(transpose(x) * c), …)            is reduce(exp(x * c), …) over other dimensions
    slice(transpose(x)) of one row              is a reshape of slice(x)

Each fold has the same elements in the same order; or it is one that any order gives the same bits.
A transpose stays, with all that is computed of it, where anything else reads one of these values:
the others would then be computed, or read across memory, a second time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.rewriting import Rebuilt, array, integers, slices
from hlo.types import ArrayShape
from hlo.walk import called, monoid

_ELEMENTWISE = of_family(ELEMENTWISE)
# Float sums are exact and rounded once (docs/numerics.md), or in any order of their own.
_IN_ANY_ORDER = frozenset(("add", "maximum", "minimum", "and", "or"))
_T = TypeVar("_T")
_Order = tuple[int, ...]  # of the dimensions of a transposed array, in those of its operand


def transposed_reductions(module: Module, computation: Computation) -> Computation:
    """Reduce what is transposed in one computation along other dimensions, before that."""
    orders = _removed(module, computation)
    if not orders:
        return computation
    rebuilt = _Untransposed(computation, orders)
    for instruction in computation.instructions:
        rebuilt.rewrite(instruction)
    return rebuilt.done()


def _removed(module: Module, computation: Computation) -> dict[str, _Order]:
    """Return the order of each transposed value that nothing but reductions of it, and slices
    without a transpose, needs: transposes, and elementwise instructions of them."""
    by_name = {i.name: i for i in computation.instructions}
    users: dict[str, list[Instruction]] = defaultdict(list)
    found: dict[str, _Order] = {}
    for instruction in computation.instructions:
        for name in dict.fromkeys(instruction.operands):
            users[name].append(instruction)
        order = _order(instruction, by_name, found)
        if order is not None:
            found[instruction.name] = order
    found.pop(computation.root, None)

    def is_needed(name: str) -> bool:
        """Return whether a user takes a value as it is."""
        taken = (_takes_other_order(module, one, name, found[name], by_name) for one in users[name])
        return not users[name] or not all(
            is_taken or one.name in found for one, is_taken in zip(users[name], taken, strict=True)
        )

    # What is needed as it is needs its operands so, and so do the others that read these.
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        if name in found and (is_needed(name) or _reads_needed(by_name[name], by_name, found)):
            del found[name]
            waiting += [one for one in by_name[name].operands if one in found]
            waiting += [one.name for one in users[name] if one.name in found]
    return found


def _order(
    instruction: Instruction, by_name: Mapping[str, Instruction], found: Mapping[str, _Order]
) -> _Order | None:
    """Return the order of a transpose, or of an elementwise instruction of values in one order and
    of broadcasts; None for others."""
    shapes = [instruction.shape, *(by_name[name].shape for name in instruction.operands)]
    if any(map(has_bounds, shapes)):
        return None
    if instruction.opcode == "transpose":
        return integers(instruction, "dimensions")
    if instruction.opcode not in _ELEMENTWISE or any(called(instruction)):
        return None
    operands = [by_name[name] for name in instruction.operands]
    orders = {found[one.name] for one in operands if one.name in found}
    if len(orders) != 1:
        return None
    (order,) = orders
    is_movable = all(one.name in found or _has_any_order(one, order) for one in operands)
    return order if is_movable else None


def _has_any_order(operand: Instruction, order: _Order) -> bool:
    """Return whether an operand is a scalar or a broadcast, which costs nothing in another order
    (but for its own operand's dimensions, which stay in theirs)."""
    moved = [order[d] for d in integers(operand, "dimensions")]
    is_broadcast = operand.opcode == "broadcast" and moved == sorted(moved)
    return is_broadcast or not array(operand.shape).rank


def _reads_needed(
    instruction: Instruction, by_name: Mapping[str, Instruction], found: Mapping[str, _Order]
) -> bool:
    """Return whether an elementwise instruction reads a transposed value that is needed as it is:
    then it has no reason not to read that."""
    if instruction.opcode == "transpose":
        return False
    operands = [by_name[name] for name in instruction.operands if name not in found]
    return any(one.opcode != "broadcast" and array(one.shape).rank for one in operands)


def _takes_other_order(
    module: Module,
    user: Instruction,
    name: str,
    order: _Order,
    by_name: Mapping[str, Instruction],
) -> bool:
    """Return whether a user is a reduction that may run along other dimensions, or a slice whose
    elements no transpose moves."""
    if user.operands.count(name) != 1 or user.operands[0] != name:
        return False
    if user.opcode == "slice":
        dims = _moved(array(user.shape).dims, order)
        long = [d for d in order if dims[d] != 1]
        return long == sorted(long)
    if user.opcode != "reduce" or not isinstance(user.shape, ArrayShape):
        return False
    reduced = [order[d] for d in sorted(integers(user, "dimensions"))]
    combined = module.computation(str(user.attributes["to_apply"]))
    is_bounded = has_bounds(by_name[name].shape)
    return not is_bounded and (reduced == sorted(reduced) or monoid(combined) in _IN_ANY_ORDER)


class _Untransposed(Rebuilt):
    """Rebuild a computation with values of another order beside those that are transposed."""

    def __init__(self, computation: Computation, orders: dict[str, _Order]) -> None:
        super().__init__(computation)
        self._orders = orders
        self._originals: dict[tuple[str, _Order], str] = {}

    def rewrite(self, instruction: Instruction) -> None:
        """Add an instruction, of operands that are not transposed where it can take them; those
        that are transposed are left for nobody."""
        order = self._orders.get(instruction.name)
        first = self._orders.get(instruction.operands[0]) if instruction.operands else None
        if order is not None and instruction.opcode != "transpose":
            shape = _ordered(array(instruction.shape), order)
            operands = tuple(self._original(name, order) for name in instruction.operands)
            self._beside(instruction, order, shape, operands)
        if first is not None and instruction.opcode == "reduce":
            instruction = self._reduce(instruction, first)
        elif first is not None and instruction.opcode == "slice":
            instruction = self._slice(instruction, first)
        self.add(instruction)

    def _beside(
        self, instruction: Instruction, order: _Order, shape: ArrayShape, operands: tuple[str, ...]
    ) -> str:
        """Add an instruction of other operands beside one; return its name."""
        name = self.names.fresh(f"{instruction.name}.before")
        self._originals[instruction.name, order] = name
        return self.add(instruction._replace(name=name, shape=shape, operands=operands))

    def _original(self, name: str, order: _Order) -> str:
        """Return the value whose transpose an operand is; of a scalar that itself."""
        inner = self.definitions[name]
        if inner.opcode == "transpose":
            return inner.operands[0]
        if not array(inner.shape).rank or (name, order) in self._originals:
            return self._originals.get((name, order), name)
        assert inner.opcode == "broadcast", inner
        dimensions = tuple(order[d] for d in integers(inner, "dimensions"))
        moved = inner._replace(attributes={"dimensions": dimensions})
        return self._beside(moved, order, _ordered(array(inner.shape), order), inner.operands)

    def _reduce(self, reduce: Instruction, order: _Order) -> Instruction:
        """Return a reduction of what is not transposed yet, or the transpose of its result."""
        reduced = integers(reduce, "dimensions")
        operand = self._original(reduce.operands[0], order)
        kept = [order[d] for d in range(len(order)) if d not in reduced]
        dims = tuple(array(self.definitions[operand].shape).dims[d] for d in sorted(kept))
        others = tuple(sorted(order[d] for d in reduced))
        before = reduce._replace(
            shape=ArrayShape(array(reduce.shape).element_type, dims),
            operands=(operand, *reduce.operands[1:]),
            attributes={**reduce.attributes, "dimensions": others},
        )
        if kept == sorted(kept):
            return before
        return self._transpose(reduce, before, tuple(map(sorted(kept).index, kept)))

    def _slice(self, instruction: Instruction, order: _Order) -> Instruction:
        """Return the transpose of a slice of what is not transposed yet."""
        window = tuple(_moved(slices(instruction, "slice"), order))
        before = instruction._replace(
            shape=_ordered(array(instruction.shape), order),
            operands=(self._original(instruction.operands[0], order),),
            attributes={"slice": window},
        )
        return self._transpose(instruction, before, order)

    def _transpose(self, result: Instruction, before: Instruction, order: _Order) -> Instruction:
        """Add an instruction; return its transpose in place of ``result``."""
        name = self.add(before._replace(name=self.names.fresh(f"{result.name}.before")))
        return result._replace(
            opcode="transpose", operands=(name,), attributes={"dimensions": order}
        )


def _moved(values: Sequence[_T], order: _Order) -> list[_T]:
    """Return what belongs to each dimension of a transposed array, by those of its operand."""
    return [value for _, value in sorted(zip(order, values, strict=True), key=lambda one: one[0])]


def _ordered(shape: ArrayShape, order: _Order) -> ArrayShape:
    """Return the shape of what is transposed to another."""
    return ArrayShape(shape.element_type, tuple(_moved(shape.dims, order)))
