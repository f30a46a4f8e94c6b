"""Rewrite any array x by an identity, an expression that returns x bit for bit."""

from __future__ import annotations

from fuzz.rewrites.site import Place, Rewrite, is_array, literal, parameter
from hlo.module import Computation, Instruction
from hlo.types import PRED, S32, ArrayShape, Layout, TupleShape

_SCALAR = ArrayShape(S32)


def _reversed(place: Place) -> str:
    """reverse(reverse(x))."""
    chosen = tuple(d for d in range(place.shape.rank) if place.rng.random() < 0.5)
    once = place.add("reverse", place.shape, place.value.name, dimensions=chosen)
    return place.add("reverse", place.shape, once, dimensions=chosen)


def _transposed(place: Place) -> str:
    """transpose(transpose(x)) by the inverse permutation."""
    order = list(range(place.shape.rank))
    place.rng.shuffle(order)
    dims = tuple(place.shape.dims[d] for d in order)
    middle = ArrayShape(place.shape.element_type, dims)
    once = place.add("transpose", middle, place.value.name, dimensions=tuple(order))
    back = tuple(order.index(d) for d in range(len(order)))
    return place.add("transpose", place.shape, once, dimensions=back)


def _reshaped(place: Place) -> str:
    """reshape(reshape(x)), flattened or with an extra dimension of size 1."""
    dims = place.rng.choice([(place.shape.elements,), (1, *place.shape.dims)])
    middle = ArrayShape(place.shape.element_type, dims)
    return place.add("reshape", place.shape, place.add("reshape", middle, place.value.name))


def _copied(place: Place) -> str:
    """copy(x), behind an opt-barrier or not."""
    once = place.add(place.rng.choice(["copy", "opt-barrier"]), place.shape, place.value.name)
    return place.add("copy", place.shape, once)


def _cut(place: Place) -> str:
    """concatenate(slice(x), slice(x)) of two parts, one of which may be empty."""
    if not place.shape.rank:
        return _reshaped(place)
    along = place.rng.randrange(place.shape.rank)
    at = place.rng.randint(0, place.shape.dims[along])
    parts = []
    for start, limit in ((0, at), (at, place.shape.dims[along])):
        ranges = [(0, size, 1) for size in place.shape.dims]
        ranges[along] = (start, limit, 1)
        dims = tuple(b - a for a, b, _ in ranges)
        shape = ArrayShape(place.shape.element_type, dims)
        parts.append(place.add("slice", shape, place.value.name, slice=tuple(ranges)))
    return place.add("concatenate", place.shape, *parts, dimensions=(along,))


def _selected(place: Place) -> str:
    """select(p, x, x) for any p."""
    mask = place.constant(place.rng.random() < 0.5, PRED)
    shape = ArrayShape(PRED, place.shape.dims)
    spread = place.add("broadcast", shape, mask, dimensions=())
    return place.add("select", place.shape, spread, place.value.name, place.value.name)


def _branched(place: Place) -> str:
    """conditional with two branches that return their operand."""
    one, other = (place.around("branch", place.shape) for _ in range(2))
    # -1 and 2 are out of range, which means the last branch.
    chosen = place.constant(place.rng.randint(-1, 2), S32)
    given = (chosen, place.value.name, place.value.name)
    return place.add("conditional", place.shape, *given, branch_computations=(one, other))


def _called(place: Place) -> str:
    """call of a computation that returns its parameter."""
    callee = place.around("called", place.shape)
    return place.add("call", place.shape, place.value.name, to_apply=callee)


def _in_tuple(place: Place) -> str:
    """get-tuple-element(tuple(x, x))."""
    both = TupleShape((place.shape, place.shape))
    made = place.add("tuple", both, place.value.name, place.value.name)
    return place.add("get-tuple-element", place.shape, made, index=place.rng.randrange(2))


def _looped(place: Place) -> str:
    """while of a few iterations that carries x unchanged."""
    turns = place.rng.randint(0, 3)
    state = TupleShape((_SCALAR, place.shape))
    number, one = place.constant(0, S32), ArrayShape(PRED)
    given = parameter(0, state, "state")
    count = Instruction("count", _SCALAR, "get-tuple-element", ("state",), {"index": 0})
    kept = Instruction("kept", place.shape, "get-tuple-element", ("state",), {"index": 1})

    def scalar(name: str, value: int) -> Instruction:
        return Instruction(name, _SCALAR, "constant", (), {"literal": literal(value, S32)})

    less = Instruction("less", one, "compare", ("count", "most"), {"direction": "LT"})
    condition = Computation(
        place.names.fresh("condition"), (given, count, scalar("most", turns), less), "less"
    )
    more = Instruction("more", _SCALAR, "add", ("count", "step"))
    again = Instruction("again", state, "tuple", ("more", "kept"))
    body = Computation(
        place.names.fresh("body"), (given, count, kept, scalar("step", 1), more, again), "again"
    )
    place.define(condition, body)
    first = place.add("tuple", state, number, place.value.name)
    last = place.add("while", state, first, condition=condition.name, body=body.name)
    return place.add("get-tuple-element", place.shape, last, index=1)


def _padded(place: Place) -> str:
    """slice(pad(x)), which cuts the padding off again."""
    edges = [tuple(place.rng.randint(0, 2) for _ in range(3)) for _ in place.shape.dims]
    zero = place.constant(0, place.shape.element_type)
    dims, ranges = [], []
    for size, (low, high, between) in zip(place.shape.dims, edges, strict=True):
        inner = size + max(size - 1, 0) * between
        dims.append(low + inner + high)
        ranges.append((low, low + inner, between + 1) if size else (0, 0, 1))
    shape = ArrayShape(place.shape.element_type, tuple(dims))
    wide = place.add("pad", shape, place.value.name, zero, padding=tuple(edges))
    return place.add("slice", place.shape, wide, slice=tuple(ranges))


def _negated(place: Place) -> str:
    """negate(negate(x)) of numbers, not(not(x)) of preds."""
    if place.shape.element_type.name == "f8e8m0fnu":  # has no sign
        return _copied(place)
    opcode = "not" if place.shape.element_type is PRED else "negate"
    once = place.add(opcode, place.shape, place.value.name)
    return place.add(opcode, place.shape, once)


def _laid_out(place: Place) -> str:
    """Copy x to another layout, reinterpret that by a bitcast as a transpose, and transpose
    back."""
    if not place.shape.rank:  # has no order
        return _copied(place)
    order = list(range(place.shape.rank))
    place.rng.shuffle(order)
    element_type, dims = place.shape.element_type, place.shape.dims
    # f32[2,3] in the order (1, 0) has the elements in memory that f32[3,2], its transpose, has in
    # row-major order. Layouts are minor to major, so the order is reversed.
    other = ArrayShape(element_type, dims, layout=Layout(tuple(reversed(order))))
    once = place.add("copy", other, place.value.name)
    rows = Layout(tuple(reversed(range(place.shape.rank))))
    turned = ArrayShape(element_type, tuple(dims[d] for d in order), layout=rows)
    shown = place.add("bitcast", turned, once)
    back = tuple(order.index(d) for d in range(len(order)))
    return place.add("transpose", place.shape, shown, dimensions=back)


# A bitcast asks how its operand lies in memory, a custom call may.
_ASK = frozenset(("bitcast", "custom-call"))
# The results that get another layout: a few producers, enough to meet each kind of reader.
_LIE_ANYHOW = frozenset(("parameter", "add", "broadcast", "copy", "reverse", "select", "transpose"))


def _lies_anyhow(place: Place) -> bool:
    if place.value.opcode not in _LIE_ANYHOW or not is_array(place):
        return False
    users = (i for i in place.defined.values() if place.value.name in i.operands)
    return place.shape.rank > 1 and not any(user.opcode in _ASK for user in users)


def _with_layout(place: Place) -> str:
    """Copy a value to another layout."""
    order = list(range(place.shape.rank))
    place.rng.shuffle(order)
    shape = ArrayShape(place.shape.element_type, place.shape.dims, layout=Layout(tuple(order)))
    place.exchange(place.value._replace(shape=shape))
    return place.value.name


_ANY = {
    "reverse twice": _reversed,
    "transpose and back": _transposed,
    "reshape and back": _reshaped,
    "copy": _copied,
    "concatenate slices": _cut,
    "select either": _selected,
    "branches": _branched,
    "call": _called,
    "tuple": _in_tuple,
    "loop": _looped,
    "pad and slice": _padded,
    "negate twice": _negated,
    "layout": _laid_out,
}
ANYWHERE = {name: Rewrite(is_array, of) for name, of in _ANY.items()}
REWRITES = {**ANYWHERE, "lie otherwise": Rewrite(_lies_anyhow, _with_layout)}
