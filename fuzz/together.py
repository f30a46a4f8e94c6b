"""Many programs at once: the C compiler is started once for all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from backend_c.dialect import OPENMP
from backend_c.executable import Executable, load
from backend_c.nest import GRAIN
from backend_c.pipeline import lowered
from backend_c.plan import Plan
from backend_c.program import Program, programs
from backend_c.toolchain import Compiler, build_in
from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.types import TupleShape


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


def compiled(
    modules: Sequence[Module], compiler: Compiler, grain: int = GRAIN
) -> list[Executable | Error]:
    """Each module as an executable, or what the C backend has against it; the compiler is started
    once, and its files are gone when it is done. ``grain``: how much work a loop has at least that
    runs in threads. ToolchainError if the compiler fails."""
    found = [_plan(module, grain) for module in modules]
    plans = [plan for plan in found if isinstance(plan, Plan)]
    made = programs(plans, OPENMP)
    if not made:
        return [plan for plan in found if isinstance(plan, Error)]
    has_threads = "-fopenmp" in compiler.flags
    with tempfile.TemporaryDirectory(prefix="hlo-together-") as directory:
        path = build_in(directory, made[0].sources, compiler)
        library = load(path, closing=not has_threads)
    waiting = iter(made)
    return [
        plan if isinstance(plan, Error) else _executable(library, next(waiting), module)
        for module, plan in zip(modules, found, strict=True)
    ]


def _plan(module: Module, grain: int) -> Plan | Error:
    try:
        return lowered(module, grain)
    except Error as error:
        return error


def _executable(library: Any, made: Program, module: Module) -> Executable:
    parameters = [(p.name, p.shape) for p in module.entry.parameters]
    return Executable(library, made, parameters, module.entry.root_instruction.shape)
