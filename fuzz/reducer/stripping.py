"""Strip what does not matter for a failure: annotations, layouts, attributes, long names."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache

from fuzz.reducer.search import Case
from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute, Window, WindowDimension
from hlo.module import Computation, Instruction, Module
from hlo.types import without_layout
from hlo.walk import column, function_name, renamed

_PLAIN = WindowDimension(1)


def bare(case: Case) -> Iterator[Case]:
    """Propose the program without header, annotations and layouts: all at once, then one by one."""
    module = replace(case.module, preamble="", text="")
    steps = (_without_header, _without_annotations, _without_layouts)
    whole = module
    for step in steps:
        whole = step(whole)
    for changed in (whole, *(step(module) for step in steps)):
        if changed != case.module:
            yield Case(changed, case.arrays)


def _without_header(module: Module) -> Module:
    return replace(module, attributes={})


def _without_annotations(module: Module) -> Module:
    return _each(module, _unannotated)


# A custom call without them is another one.
_MEANT = ("backend_config", "frontend_attributes")


def _unannotated(instruction: Instruction) -> Instruction:
    kept = _MEANT if instruction.opcode in ("custom-call", "call", "fusion") else ()
    annotations = {k: v for k, v in instruction.annotations.items() if k in kept}
    return instruction._replace(annotations=annotations)


def _without_layouts(module: Module) -> Module:
    return _each(module, _unlaid_result)


def _unlaid_result(instruction: Instruction) -> Instruction:
    """Drop the layout of a result, but for custom calls: theirs says how memory is written."""
    if instruction.opcode == "custom-call":
        return instruction
    return instruction._replace(shape=without_layout(instruction.shape))


def _each(module: Module, change: object) -> Module:
    assert callable(change)
    computations = tuple(
        Computation(c.name, tuple(map(change, c.instructions)), c.root) for c in module.computations
    )
    return replace(module, computations=computations)


def simpler_attributes(case: Case) -> Iterator[Case]:
    """Propose the program without one optional attribute, or with a simpler window."""
    for c, computation in enumerate(case.module.computations):
        for n, instruction in enumerate(computation.instructions):
            for attributes in _simpler(instruction):
                new = instruction._replace(attributes=attributes)
                listed = (*computation.instructions[:n], new, *computation.instructions[n + 1 :])
                changed = replace(computation, instructions=listed)
                others = case.module.computations
                computations = (*others[:c], changed, *others[c + 1 :])
                yield Case(replace(case.module, computations=computations), case.arrays)


def _simpler(instruction: Instruction) -> Iterator[Mapping[str, Attribute]]:
    for name, value in instruction.attributes.items():
        if name in _optional(function_name(instruction.opcode)):
            yield {k: v for k, v in instruction.attributes.items() if k != name}
        if isinstance(value, Window):
            for window in _simpler_windows(value):
                yield {**instruction.attributes, name: window}


def _simpler_windows(window: Window) -> Iterator[Window]:
    for d, dimension in enumerate(window.dimensions):
        for part in fields(WindowDimension)[1:]:
            plain = getattr(_PLAIN, part.name)
            if getattr(dimension, part.name) != plain:
                simpler = replace(dimension, **{part.name: plain})
                yield Window((*window.dimensions[:d], simpler, *window.dimensions[d + 1 :]))


@cache
def _optional(name: str) -> frozenset[str]:
    op = column("hlo.ops").get(name)
    if op is None:
        return frozenset()
    parameters = inspect.signature(op.function).parameters.values()
    return frozenset(
        p.name
        for p in parameters
        if p.kind is p.KEYWORD_ONLY
        and p.default is not p.empty
        and p.name not in COMPUTATION_ATTRIBUTES
    )


def plain_names(case: Case) -> Iterator[Case]:
    """Rename instructions to their opcodes with numbers, and the module to ``reduced``."""
    computations = {
        c.name: "main" if c.name == case.module.entry_name else f"computation.{n}"
        for n, c in enumerate(case.module.computations)
    }
    changed = tuple(
        renamed(c, computations.__getitem__, _plain_names(c).__getitem__)
        for c in case.module.computations
    )
    module = Module("reduced", changed, "main", case.module.attributes)
    if module != case.module:
        yield Case(module, case.arrays)


def _plain_names(computation: Computation) -> dict[str, str]:
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "parameter":
            names[instruction.name] = f"p{instruction.attributes['parameter_number']}"
            continue
        stem = instruction.opcode.replace("-", "_")
        names[instruction.name] = f"{stem}.{counts[stem]}" if counts[stem] else stem
        counts[stem] += 1
    return names
