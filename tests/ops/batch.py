"""Many drawn programs through both columns at once: the C compiler is started once for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
import interp
from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.module import Computation, Instruction, Module
from hlo.types import TupleShape
from hlo_tools.verdict import differences

Case = tuple[Module, tuple[Any, ...]]


def drawn(strategy: st.SearchStrategy[Module], count: int) -> list[Case]:
    """``count`` programs with arguments: the same at every run."""
    cases: list[Case] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy.flatmap(lambda module: st.tuples(st.just(module), fuzz.arguments(module))))
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    return cases


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


def compiled_results(cases: Iterable[Case]) -> tuple[Any, ...]:
    """What the C backend gives for each."""
    modules, arguments = zip(*cases, strict=True)
    executable = backend_c.compile(merged(modules), numerics="exact")
    result = executable(*(array for given in arguments for array in given))
    assert isinstance(result, tuple)
    return result


def assert_agree(cases: Sequence[Case]) -> None:
    """The interpreter and the C backend give the same bits for every one."""
    results = compiled_results(cases)
    for (module, arguments), result in zip(cases, results, strict=True):
        found = differences(interp.evaluate(module, *arguments), result)
        assert not found, f"{hlo.format(module)}\n{arguments}\n{found[0]}"
