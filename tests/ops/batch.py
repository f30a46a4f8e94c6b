"""Many drawn programs through both columns at once: the C compiler is started once for all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from backend_c.executable import Executable
from fuzz.c_compilers import thorough
from fuzz.together import compiled
from hlo.module import Module
from hlo.results import Difference, differences

Case = tuple[Module, tuple[Any, ...]]


def drawn(strategies: Sequence[st.SearchStrategy[Module]], count: int) -> list[list[Case]]:
    """``count`` programs of each strategy, with arguments: the same at every run."""
    examples: list[tuple[Case, ...]] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*map(_with_arguments, strategies)))
    def collect(cases: tuple[Case, ...]) -> None:
        examples.append(cases)

    collect()
    return [list(cases) for cases in zip(*examples, strict=True)]


def _with_arguments(strategy: st.SearchStrategy[Module]) -> st.SearchStrategy[Case]:
    return strategy.flatmap(lambda module: st.tuples(st.just(module), fuzz.arguments(module)))


def outcomes(cases: Sequence[Case]) -> Iterator[list[Difference]]:
    """Of each program, where the interpreter and the C backend differ on it."""
    executables = compiled([module for module, _ in cases], thorough(os.environ))
    for (module, arguments), executable in zip(cases, executables, strict=True):
        assert isinstance(executable, Executable), executable
        yield differences(interp.evaluate(module, *arguments), executable(*arguments))


def assert_agree(opcodes: Sequence[str], opcode: str, count: int) -> None:
    """The columns give the same bits for ``count`` drawn programs of one instruction of ``opcode``,
    which is one of those that are drawn and compiled together."""
    of_opcode = _outcomes(tuple(opcodes), count)[opcode]
    assert of_opcode, f"nothing was drawn for {opcode}"
    for (module, arguments), found in of_opcode:
        assert not found, f"{hlo.format(module)}\n{arguments}\n{found[0]}"


@cache
def _outcomes(
    opcodes: tuple[str, ...], count: int
) -> Mapping[str, list[tuple[Case, list[Difference]]]]:
    cases = drawn([fuzz.single_op(opcode) for opcode in opcodes], count)
    found = outcomes([case for of_one in cases for case in of_one])
    return {
        opcode: list(zip(of_one, islice(found, len(of_one)), strict=True))
        for opcode, of_one in zip(opcodes, cases, strict=True)
    }


def groups(opcodes: Sequence[str], size: int) -> list[tuple[tuple[str, ...], str]]:
    """Each opcode with the group of those that it is drawn and compiled with."""
    parts = [tuple(opcodes[start : start + size]) for start in range(0, len(opcodes), size)]
    return [(part, opcode) for part in parts for opcode in part]
