"""A compiler with a bug: the interpreter with one opcode evaluated wrongly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hlo
import interp
from fuzz.peers.xla import Answer
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.values import Value, arrays_of
from hlo.walk import Op, column
from interp.evaluator import Evaluation

Wrong = Callable[[np.ndarray], np.ndarray]
_FUEL = 100_000


def planted(name: str, wrong: Wrong) -> Callable[[Module, tuple[Any, ...]], Value]:
    """Evaluate as the interpreter does, but ``wrong`` of what the function ``name`` gives."""

    def run(module: Module, arrays: tuple[Any, ...]) -> Value:
        ops = column("interp.ops")
        right = ops[name]

        def function(*operands: object, **given: object) -> object:
            result = right.function(*operands, **given)
            return result if isinstance(result, tuple) else wrong(np.asarray(result))

        other = {**ops, name: Op(function, right.given, right.home)}
        return Evaluation(module, _FUEL, ops=other).result(arrays)

    return run


def answering(name: str, wrong: Wrong) -> Callable[[str, Sequence[np.ndarray]], Answer]:
    """Provide the interpreter with a bug as a peer, which is given texts: see ``planted``."""
    compiled = planted(name, wrong)

    def run(text: str, arrays: Sequence[np.ndarray]) -> Answer:
        return Answer(tuple(arrays_of(compiled(hlo.parse(text), tuple(arrays)))))

    return run


def shows(name: str, wrong: Wrong) -> Callable[[Module, tuple[Any, ...]], bool]:
    """Whether the bug makes a difference to a program's result."""
    run = planted(name, wrong)

    def is_interesting(module: Module, arrays: tuple[Any, ...]) -> bool:
        right = interp.evaluate(module, *arrays, fuel=_FUEL)
        return bool(differences(right, run(module, arrays)))

    return is_interesting


def large(instructions: int, seed: int, rare: str) -> str:
    """A program of so many instructions on f32[4,4], with the line ``rare`` of %x and %y once, on
    which the result depends."""
    draw = random.Random(seed)
    lines = [f"  v{n} = f32[4,4] parameter({n})" for n in range(3)]
    recent = ["v0", "v1", "v2"]
    place = draw.randrange(instructions // 4, instructions * 3 // 4)
    for n in range(3, instructions - 1):
        text = rare if n == place else draw.choice(_LINES)
        x, y = draw.choice((recent[-1], draw.choice(recent))), draw.choice(recent)
        lines.append(f"  v{n} = f32[4,4] {text.format(x=x, y=y)}")
        recent = [*recent[-30:], f"v{n}"]
    lines.append(f"  ROOT r = f32[4,4] add({recent[-1]}, v{place})")
    return "HloModule large\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


_LINES = (
    "add({x}, {y})",
    "subtract({x}, {y})",
    "tanh({x})",
    "sine({x})",
    "transpose({x}), dimensions={{1,0}}",
    "maximum({x}, {y})",
    "negate({x})",
    "logistic({x})",
    "reverse({x}), dimensions={{0}}",
)
