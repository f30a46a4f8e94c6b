"""Many drawn programs through both columns at once: the C compiler is started once for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import hlo
import interp
from backend_c.native.executable import Executable
from fuzz.compilers.combined_programs import compiled
from fuzz.compilers.quick_compilers import thorough
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import single_op
from fuzz.draw.values import arguments
from hlo.bit_equality import Difference, differences
from hlo.module import Module

Case = tuple[Module, tuple[Any, ...]]


def drawn(makers: Sequence[Callable[[Choices], Module]], count: int) -> list[list[Case]]:
    """``count`` programs of each maker, with arguments: the same at every run."""

    def case(make: Callable[[Choices], Module], choices: Choices) -> Case:
        module = make(choices)
        return module, arguments(choices, module)

    return [examples(partial(case, make), count, n) for n, make in enumerate(makers)]


def single_ops(opcodes: Sequence[str]) -> list[Callable[[Choices], Module]]:
    return [partial(single_op, opcode=opcode) for opcode in opcodes]


def outcomes(cases: Sequence[Case]) -> Iterator[list[Difference]]:
    """Yield for each program where the interpreter and the C backend differ."""
    executables = compiled([module for module, _ in cases], thorough(os.environ))
    for (module, arrays), executable in zip(cases, executables, strict=True):
        assert isinstance(executable, Executable), executable
        yield differences(interp.evaluate(module, *arrays), executable(*arrays))


def assert_agree(opcodes: Sequence[str], opcode: str, count: int) -> None:
    """The columns give the same bits for ``count`` drawn programs of one instruction of ``opcode``,
    which is one of those that are drawn and compiled together."""
    of_opcode = _outcomes(tuple(opcodes), count)[opcode]
    assert of_opcode, f"nothing was drawn for {opcode}"
    for (module, arrays), found in of_opcode:
        assert not found, f"{hlo.format(module)}\n{arrays}\n{found[0]}"


@cache
def _outcomes(
    opcodes: tuple[str, ...], count: int
) -> Mapping[str, list[tuple[Case, list[Difference]]]]:
    cases = drawn(single_ops(opcodes), count)
    found = outcomes([case for of_one in cases for case in of_one])
    return {
        opcode: list(zip(of_one, islice(found, len(of_one)), strict=True))
        for opcode, of_one in zip(opcodes, cases, strict=True)
    }


def groups(opcodes: Sequence[str], size: int) -> list[tuple[tuple[str, ...], str]]:
    """Each opcode with the group of those that it is drawn and compiled with."""
    parts = [tuple(opcodes[start : start + size]) for start in range(0, len(opcodes), size)]
    return [(part, opcode) for part in parts for opcode in part]
