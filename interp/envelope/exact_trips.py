"""Count how many trips the loops of a program take when it is evaluated exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hlo.module import Computation, Instruction, Module
from hlo.walk import Callee, Op
from interp.evaluator import Evaluation, checked
from interp.values import Value

LoopName = tuple[str, str]  # of its computation, and its own there


def exact_trips(module: Module, arrays: Sequence[Any], seed: int = 0) -> Mapping[LoopName, int]:
    """Map each loop that the exact evaluation enters to its largest trip count over all its
    entries."""
    most: dict[LoopName, int] = {}

    def counting(computation: Computation, instruction: Instruction, op: Op) -> Op:
        if instruction.opcode != "while":
            return op
        name = computation.name, instruction.name

        def while_(
            init: Value, *, condition: Callee[Value], body: Callee[Value], **given: object
        ) -> Value:
            trips = 0

            def call(state: Value) -> Value:
                nonlocal trips
                trips += 1
                return body(state)

            result = op.function(init, condition=condition, body=replace(body, call=call), **given)
            most[name] = max(most.get(name, 0), trips)
            return result

        return replace(op, function=while_)

    evaluation = Evaluation(module, None, instead=counting)
    evaluation.result(checked(module.entry, arrays), seed)
    return most
