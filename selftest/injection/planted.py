"""A compiler with several bugs at once, each in every instruction of its opcodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hlo
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.peers.xla import Answer
from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape
from hlo.values import Array, arrays_of
from hlo.walk import Op
from interp.evaluator import Evaluation
from interp.values import Value, copied
from selftest.injection.bug import Bug, Call
from selftest.injection.catalogue import BUGS
from selftest.injection.peer import FUEL, NoBugError, wrong_value

_SECONDS = 20  # for one program

# Of each kind that campaigns report: an opcode that is always wrong, special values, conversions,
# approximations, elements left out, misplaced windows. No opcode has two.
PLANTED = (
    "compare: LT as LE",
    "clamp: no upper bound",
    "remainder: of the divisor's sign",
    "shift-left: amount modulo the width",
    "divide: x / x is one, also of zero",
    "maximum, minimum: NaN on the left is lost",
    "convert: float to integer rounds to nearest",
    "round-nearest-even computed as round-nearest-afz",
    "exponential: error of 1e-4",
    "tanh: error of 1e-4",
    "dot: last term counted twice",
    "reduce: last element left out",
    "slice: starts one later",
    "pad: low and high exchanged",
    "concatenate: rotated",
    "dynamic-slice: negative starts count from the end",
)


def bugs(names: Sequence[str] = PLANTED) -> tuple[Bug, ...]:
    """Look bugs up in the catalogue by name."""
    found = {bug.name: bug for bug in BUGS}
    return tuple(found[name] for name in names)


class Planted:
    """Evaluates programs with bugs, in this process, through the interface of a peer."""

    def __init__(self, planted: Sequence[Bug]) -> None:
        self._by_opcode = {opcode: bug for bug in planted for opcode in bug.opcodes}
        self.first: tuple[Module, Sequence[Array]] | None = None  # that it was asked for

    def forget(self) -> None:
        """Reset, so that the next program is the first."""
        self.first = None

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        """Evaluate one program; its parameters are arrays."""
        module = hlo.parse(text)
        self.first = self.first or (module, arrays)
        if not all(isinstance(p.shape, ArrayShape) for p in module.entry.parameters):
            return Answer(error="a parameter is a tuple")
        try:
            with time_limit(_SECONDS):
                return Answer(tuple(self.results(module, arrays)))
        except TooLongError:
            return Answer(crash=f"no answer in {_SECONDS} s")
        except Error as error:
            return Answer(error=str(error))

    def results(self, module: Module, values: Sequence[Value]) -> list[Array]:
        """Evaluate a module; return its result arrays. Raises Error where there is none."""
        arguments = tuple(map(copied, values))  # bugs may write into their operands
        return list(arrays_of(Evaluation(module, FUEL, instead=self._instead).result(arguments)))

    def _instead(self, computation: Computation, instruction: Instruction, op: Op) -> Op:
        bug = self._by_opcode.get(instruction.opcode)
        if bug is None:
            return op
        return Op(_or_right(bug, instruction, op.function), op.given, op.home)


def _or_right(
    bug: Bug, instruction: Instruction, function: Callable[..., object]
) -> Callable[..., object]:
    def called(*operands: Value, **attributes: Any) -> object:
        call = Call(function, tuple(map(copied, operands)), attributes, instruction)
        try:
            return wrong_value(bug, call)
        except NoBugError:
            return function(*operands, **attributes)

    return called
