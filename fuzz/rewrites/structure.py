"""Rewrite the structure: inline, outline, peel loops, duplicate values, add dead code."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.rewrites.site import Place, Rewrite, is_array, is_computed, parameter
from hlo.module import Computation, Instruction
from hlo.opcodes import CALLS, having
from hlo.types import PRED, ArrayShape
from hlo.walk import called

_MOST_OUTLINED = 6
_CALLS = having(CALLS)


def _is_call(place: Place) -> bool:
    return place.value.opcode in _CALLS and is_computed(place)


def _inlined(place: Place) -> str:
    """Inline a call."""
    (name,) = called(place.value)
    return _copied(place, place.module.computation(name), place.value.operands)


def _copied(place: Place, computation: Computation, operands: tuple[str, ...]) -> str:
    """Copy a computation's instructions to the site; return the name of the result."""
    given = zip(computation.parameters, operands, strict=True)
    renamed = {inner.name: outer for inner, outer in given}
    for instruction in computation.instructions:
        if instruction.opcode != "parameter":
            inside = tuple(renamed[name] for name in instruction.operands)
            renamed[instruction.name] = place.put(_moved(instruction)._replace(operands=inside))
    return renamed[computation.root]


def _moved(instruction: Instruction) -> Instruction:
    """Make an instruction of another computation, which has no instructions of the names that its
    annotations have."""
    annotations = {k: v for k, v in instruction.annotations.items() if k != "control-predecessors"}
    return instruction._replace(annotations=annotations)


def _is_outlined(place: Place) -> bool:
    return is_array(place) and place.value.opcode != "constant" and is_computed(place)


def _outlined(place: Place) -> str:
    """Outline the instructions that compute the value into a computation, and call it."""
    inside = {place.value.name}
    border = [*place.value.operands]
    while border and len(inside) < _MOST_OUTLINED and place.rng.random() < 0.8:
        name = border.pop(place.rng.randrange(len(border)))
        if is_computed(_at(place, name)):
            inside.add(name)
            border += place.defined[name].operands
    # In the entry's order, operands before users. They also stay in the entry, where others may use
    # them.
    chosen = [_moved(i) for i in place.defined.values() if i.name in inside]
    outer = dict.fromkeys(o for i in chosen for o in i.operands if o not in inside)
    given = [parameter(n, place.defined[o].shape, o) for n, o in enumerate(outer)]
    callee = Computation(place.names.fresh("outlined"), (*given, *chosen), place.value.name)
    place.define(callee)
    return place.add("call", place.value.shape, *outer, to_apply=callee.name)


def _at(place: Place, name: str) -> Place:
    return Place(place.module, place.defined, place.defined[name], place.rng, place.names)


def _is_loop(place: Place) -> bool:
    return place.value.opcode == "while" and is_computed(place)


def _peeled(place: Place) -> str:
    """Peel off the first iteration of a loop, guarded by its condition."""
    loop = place.value
    condition, body = (str(loop.attributes[name]) for name in ("condition", "body"))
    (init,) = loop.operands
    begins = place.add("call", ArrayShape(PRED), init, to_apply=condition)
    kept = place.around("kept", loop.shape)
    either = {"true_computation": body, "false_computation": kept}
    first = place.add("conditional", loop.shape, begins, init, init, **either)
    return place.put(loop._replace(operands=(first,)))


def _duplicated(place: Place) -> str:
    """Compute the value twice and divide its users."""
    place.share()
    return place.put(place.value)


def _with_dead_code(others: dict[str, Rewrite]) -> Callable[[Place], str]:
    """Apply another rewrite, and leave its result unused."""

    def of(place: Place) -> str:
        others[place.rng.choice(sorted(others))].rewritten(place)
        return place.value.name

    return of


def rewrites(others: dict[str, Rewrite]) -> dict[str, Rewrite]:
    """Return the structural rewrites; ``others`` are those of any array, for dead code."""
    return {
        "inline": Rewrite(_is_call, _inlined),
        "outline": Rewrite(_is_outlined, _outlined),
        "peel": Rewrite(_is_loop, _peeled),
        "duplicate": Rewrite(is_computed, _duplicated),
        "dead code": Rewrite(is_array, _with_dead_code(others)),
    }
