"""Compile many programs as one, so that the C compiler starts once."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backend_c.ir.settings import Settings
from backend_c.lower.plan import Plan
from backend_c.native.executable import Executable
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.toolchain import Compiler, build_in
from backend_c.pipeline import planned
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import Program, render_plans
from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.types import TupleShape
from hlo.walk import renamed

_EXACT = Settings()


def merged(modules: Sequence[Module]) -> Module:
    """Merge several programs: the parameters of all, and a tuple of the results of all."""
    computations: list[Computation] = []
    entry: list[Instruction] = []
    roots: list[str] = []
    taken = 0
    for number, module in enumerate(modules):
        names = {c.name: f"c{number}.{c.name}" for c in module.computations}
        prefix = f"i{number}.".__add__
        for computation in map(_without_constraint, module.computations):
            if computation.name != module.entry_name:
                computations.append(renamed(computation, names.__getitem__))
                continue
            apart = renamed(_numbered(computation, taken), names.__getitem__, prefix)
            taken += len(computation.parameters)
            entry += apart.instructions
            roots.append(apart.root)
    shapes = {i.name: i.shape for i in entry}
    whole = TupleShape(tuple(shapes[root] for root in roots))
    entry.append(Instruction("results", whole, "tuple", tuple(roots)))
    computations.append(Computation("main", tuple(entry), "results"))
    return Module("merged", tuple(computations), "main")


def _without_constraint(computation: Computation) -> Computation:
    """Drop ``constrain_layout``: all-reduces of one program must agree on it, those of several need
    not; it changes no value."""

    def changed(instruction: Instruction) -> Instruction:
        given = {n: v for n, v in instruction.attributes.items() if n != "constrain_layout"}
        return instruction._replace(attributes=given)

    return replace(computation, instructions=tuple(map(changed, computation.instructions)))


def _numbered(computation: Computation, taken: int) -> Computation:
    """Renumber parameters to follow those already taken."""

    def changed(instruction: Instruction) -> Instruction:
        if instruction.opcode != "parameter":
            return instruction
        number = int(str(instruction.attributes["parameter_number"])) + taken
        return instruction._replace(attributes={"parameter_number": number})

    return replace(computation, instructions=tuple(map(changed, computation.instructions)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold valid modules as C in one translation unit, or the error of lowering them."""

    modules: Sequence[Module]
    found: Sequence[Program | Error]

    def executables(self, compiler: Compiler) -> list[Executable | Error]:
        """Compile, and load each module. The compiler's files are deleted at the end; the library
        stays open as long as an executable refers to it. Raises ToolchainError if the compiler
        fails."""
        sources = next((one.sources for one in self.found if isinstance(one, Program)), None)
        library = None if sources is None else _loaded(sources, compiler)
        return [
            one if isinstance(one, Error) else _executable(library, one, module)
            for one, module in zip(self.found, self.modules, strict=True)
        ]


def compiled(
    modules: Sequence[Module], compiler: Compiler, settings: Settings = _EXACT
) -> list[Executable | Error]:
    """Compile each valid module to an executable, in one run of the compiler (:class:`Batch`)."""
    return lowered_together(modules, settings).executables(compiler)


def lowered_together(modules: Sequence[Module], settings: Settings = _EXACT) -> Batch:
    """Lower valid modules to C in one translation unit."""
    found = [_plan(module, settings) for module in modules]
    made = iter(render_plans([plan for plan in found if isinstance(plan, Plan)], OPENMP))
    return Batch(modules, [next(made) if isinstance(plan, Plan) else plan for plan in found])


def _loaded(sources: Mapping[str, str], compiler: Compiler) -> LoadedLibrary:
    with tempfile.TemporaryDirectory(prefix="hlo-together-") as directory:
        return LoadedLibrary(build_in(directory, sources, compiler))


def _plan(module: Module, settings: Settings) -> Plan | Error:
    try:
        return planned(module, settings)
    except Error as error:
        return error


def _executable(library: Any, made: Program, module: Module) -> Executable:
    parameters = [(p.name, p.shape) for p in module.entry.parameters]
    return Executable(library, made, parameters, module.entry.root_instruction.shape)
