"""Bugs of loops, branches and scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.values import Value
from selftest.injection.bug import Call, Family, operand

_control = Family("control flow")


def _one_more(call: Call) -> Value:
    return call.attributes["body"](call())


def _one_less(call: Call) -> Value:
    """Leave out a loop's last trip."""
    (before,) = call.operands
    value, condition, body = before, call.attributes["condition"], call.attributes["body"]
    while condition(value):
        before, value = value, body(value)
    return before


def _first_unasked(call: Call) -> Value:
    """Execute the body once before the first test of the condition, as do … while does."""
    return call(call.attributes["body"](*call.operands))


def _body(change: Any) -> Any:
    """Make the bug of another body: a function of its operand and result, both tuples."""

    def wrong(call: Call) -> Value:
        body = call.attributes["body"]
        if not isinstance(call.operands[0], tuple) or len(call.operands[0]) < 2:
            return None

        def other(value: Value) -> Value:
            return change(value, body(value))

        return call(body=Callee(body.computation, other))

    return wrong


def _stale(before: Any, after: Any) -> Any:
    """Return a trip's result with the last element of its operand: the element is never updated."""
    return (*after[:-1], before[-1])


def _carried_late(call: Call) -> Value:
    """Pass to each trip the last element of the state as of two trips before."""
    body = call.attributes["body"]
    if not isinstance(call.operands[0], tuple) or len(call.operands[0]) < 2:
        return None
    kept = [call.operands[0][-1]]

    def other(value: Value) -> Value:
        late = (*value[:-1], kept[0])
        kept[0] = value[-1]
        return body(late)

    return call(body=Callee(body.computation, other))


def _exchanged(call: Call) -> Value:
    """Exchange two results of the same shape."""
    right = call()
    if not isinstance(right, tuple):
        return None
    for one in range(len(right)):
        for other in range(one):
            a, b = right[one], right[other]
            same = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
            if same and (a.shape, a.dtype) == (b.shape, b.dtype):
                order = list(range(len(right)))
                order[one], order[other] = other, one
                return tuple(right[n] for n in order)
    return None


def _selector(change: Any) -> Any:
    """Make the bug of choosing another branch by index."""

    def wrong(call: Call) -> Value:
        selector = call.operands[0]
        if selector.dtype == np.bool_:
            return None
        count = len(call.attributes["branch_computations"])
        other = np.asarray(change(int(selector), count)).astype(selector.dtype)
        return call(other, *call.operands[1:])

    return wrong


def _inverted(selector: Array) -> Array | None:
    return ~selector if selector.dtype == np.bool_ else None


def _other_operand(call: Call) -> Value:
    if len(call.operands) < 3:
        return None
    shapes = [p.computation.parameters[0].shape for p in call.attributes.get(
        "branch_computations", ())]  # fmt: skip
    return call.to(0, 2, 1, *range(3, len(call.operands))) if len(set(shapes)) == 1 else None


def _scan(change: Any) -> Any:
    """Make the bug of another step: a function of its operands and results."""

    def wrong(call: Call) -> Value:
        to_apply = call.attributes["to_apply"]
        carries = call.attributes["num_carries"]
        if not carries:
            return None

        def other(*operands: Value) -> Value:
            return change(operands, to_apply(*operands), carries)

        return call(to_apply=Callee(to_apply.computation, other))

    return wrong


def _restarted(call: Call) -> Value:
    """Begin every step with the initial carries."""
    to_apply, carries = call.attributes["to_apply"], call.attributes["num_carries"]
    if not carries:
        return None
    first = call.operands[len(call.operands) - carries :]

    def other(*operands: Value) -> Value:
        return to_apply(*operands[: len(operands) - carries], *first)

    return call(to_apply=Callee(to_apply.computation, other))


def _cut(call: Call) -> Value:
    """Leave out the last step: its outputs repeat those of the step before."""
    right, carries = call(), call.attributes["num_carries"]
    (axis,) = call.attributes["dimensions"]
    outputs = right[: len(right) - carries]
    if not outputs or outputs[0].shape[axis] < 2:
        return None
    size = outputs[0].shape[axis]
    order = [*range(size - 1), size - 2]
    return (*(x.take(order, axis) for x in outputs), *right[len(outputs) :])


BUGS = (
    _control("while", "while: one turn too many", _one_more),
    _control("while", "while: one turn too few", _one_less),
    _control("while", "while: the body before the first condition", _first_unasked),
    _control("while", "while: not at all", lambda c: c.operands[0]),
    _control("while", "while: last element never updated", _body(_stale)),
    _control("while", "while: last element a turn late", _carried_late),
    _control("while", "while: two results exchanged", _exchanged),
    _control("while", "while: the initial value of the last element returned", lambda c: (
        *c()[:-1], c.operands[0][-1]) if isinstance(c.operands[0], tuple) and c.operands[0]
        else None),
    _control("conditional", "conditional: predicate inverted", operand(0, _inverted)),
    _control("conditional", "conditional: branch index one too many", _selector(
        lambda n, count: n + 1)),
    _control("conditional", "conditional: branch index one too few", _selector(
        lambda n, count: n - 1)),
    _control("conditional", "conditional: out of range takes the first branch", _selector(
        lambda n, count: n if 0 <= n < count else 0)),
    _control("conditional", "conditional: index clamped at zero", _selector(
        lambda n, count: max(n, 0))),
    _control("conditional", "conditional: always the first branch", _selector(
        lambda n, count: 0)),
    _control("conditional", "conditional: operands exchanged", _other_operand),
    _control("scan", "scan: in the other direction", lambda c: c(
        is_reverse=not c.attributes.get("is_reverse", False))),
    _control("scan", "scan: every step begins anew", _restarted),
    _control("scan", "scan: last step left out", _cut),
    _control("scan", "scan: carry not updated", _scan(lambda before, after, n: (
        *after[: len(after) - n], *before[len(before) - n :]))),
    _control("scan", "scan: last slice first", lambda c: c(*(
        np.roll(x, 1, c.attributes["dimensions"]) for x in
        c.operands[: len(c.operands) - c.attributes["num_carries"]]),
        *c.operands[len(c.operands) - c.attributes["num_carries"] :])),
    _control("map", "map: operands in reverse", lambda c: c(*c.operands[::-1])
             if len({x.dtype for x in c.operands}) == 1 else None),
    _control("map", "map: first operand for all", lambda c: c(
        *[c.operands[0]] * len(c.operands)) if len({x.dtype for x in c.operands}) == 1
        else None),
)  # fmt: skip
