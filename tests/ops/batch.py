"""Many drawn programs through both columns at once: the C compiler is started once for all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from backend_c.cache import default_directory, open_cache
from backend_c.dialect import OPENMP
from backend_c.executable import Executable
from backend_c.pipeline import lowered
from backend_c.program import program
from backend_c.toolchain import build, find_compiler
from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.types import TupleShape
from hlo_tools.verdict import Difference, differences

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


def merged(modules: Sequence[Module]) -> Module:
    """One program that does what several do: all their parameters, a tuple of all their results."""
    computations: list[Computation] = []
    entry: list[Instruction] = []
    roots: list[str] = []
    taken = 0
    for number, module in enumerate(modules):
        names = {c.name: f"c{number}.{c.name}" for c in module.computations}
        for computation in module.computations:
            renamed = _renamed(computation, names)
            if computation is not module.entry:
                computations.append(renamed)
                continue
            apart = _prefixed(renamed, f"i{number}.", taken)
            taken += len(computation.parameters)
            entry += apart.instructions
            roots.append(apart.root)
    shapes = {i.name: i.shape for i in entry}
    whole = TupleShape(tuple(shapes[root] for root in roots))
    entry.append(Instruction("results", whole, "tuple", tuple(roots)))
    computations.append(Computation("main", tuple(entry), "results"))
    return Module("merged", tuple(computations), "main")


def _renamed(computation: Computation, names: Mapping[str, str]) -> Computation:
    """A computation and its calls under new names."""

    def attribute(name: str, value: Any) -> Any:
        if name not in COMPUTATION_ATTRIBUTES:
            return value
        return names[value] if isinstance(value, str) else tuple(names[v] for v in value)

    instructions = tuple(
        i._replace(attributes={n: attribute(n, v) for n, v in i.attributes.items()})
        for i in computation.instructions
    )
    return replace(computation, name=names[computation.name], instructions=instructions)


def _prefixed(computation: Computation, prefix: str, taken: int) -> Computation:
    """Names with a prefix, and parameters after those taken."""

    def moved(instruction: Instruction) -> Instruction:
        attributes = dict(instruction.attributes)
        if instruction.opcode == "parameter":
            attributes["parameter_number"] = int(str(attributes["parameter_number"])) + taken
        return instruction._replace(
            name=prefix + instruction.name,
            operands=tuple(prefix + operand for operand in instruction.operands),
            attributes=attributes,
        )

    instructions = tuple(map(moved, computation.instructions))
    return replace(computation, instructions=instructions, root=prefix + computation.root)


def compiled(module: Module) -> Executable:
    """An executable that the C compiler made in a hurry: for programs of very many kernels."""
    made = program(lowered(module), OPENMP)
    compiler = find_compiler(os.environ)
    flags = tuple("-O0" if flag == "-O3" else flag for flag in compiler.flags)
    cache = open_cache(default_directory(os.environ))
    library = build(made.sources, replace(compiler, flags=flags), cache)
    parameters = [(p.name, p.shape) for p in module.entry.parameters]
    return Executable(library, made, parameters, module.entry.root_instruction.shape, None)


def outcomes(cases: Sequence[Case]) -> Iterator[list[Difference]]:
    """Of each program, where the interpreter and the C backend differ on it."""
    executable = compiled(merged([module for module, _ in cases]))
    results = executable(*(array for _, arguments in cases for array in arguments))
    for (module, arguments), result in zip(cases, results, strict=True):
        yield differences(interp.evaluate(module, *arguments), result)


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
    every = drawn([fuzz.single_op(opcode) for opcode in opcodes], count)
    cases = [list(filter(_is_implemented, of_one)) for of_one in every]
    found = outcomes([case for of_one in cases for case in of_one])
    return {
        opcode: list(zip(of_one, islice(found, len(of_one)), strict=True))
        for opcode, of_one in zip(opcodes, cases, strict=True)
    }


def _is_implemented(case: Case) -> bool:
    """Everything is, but for some functions of complex numbers."""
    module, arguments = case
    try:
        interp.evaluate(module, *arguments)
    except Unsupported as error:
        assert re.search(r"of c(64|128) is not implemented", str(error)), error
        return False
    return True


def groups(opcodes: Sequence[str], size: int) -> list[tuple[tuple[str, ...], str]]:
    """Each opcode with the group of those that it is drawn and compiled with."""
    parts = [tuple(opcodes[start : start + size]) for start in range(0, len(opcodes), size)]
    return [(part, opcode) for part in parts for opcode in part]
