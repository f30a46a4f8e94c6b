"""Parse and verify the smallest program of a cell; ParseError or VerifyError if the language has
none."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hlo
import interp
from backend_c.native.executable import Executable
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan as render_plan
from fuzz.compilers.combined_programs import compiled
from fuzz.compilers.quick_compilers import thorough
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.opcodes import OPCODES
from hlo.ops.element_types import TAKES
from hlo.types import C64, C128, ELEMENT_TYPES, F32, F64, ElementType, TupleShape
from hlo_oracle.arguments import from_seed

MEASURED = Path(__file__).with_name("op_types.txt")
_PROGRAMS = Path(__file__).with_name("op_programs.txt")
_PARTS, _WHOLES = {C64: F32, C128: F64}, {F32: C64, F64: C128}
_TYPED = re.compile(r"\b([TRCU])(?=\[)")
_EACH = re.compile(r"\b([XY])(\[\d*\])")
_PLACE = re.compile(r"^\d+(?::\d+)?: (?:%\w+ = [\w-]+: )?")
_TOGETHER = 120  # cells in one program
COLUMNS = "interp", "backend_c"
DONE = "the same bits"  # what is measured of a cell that is done


class Cell(NamedTuple):
    """An op on an element type: of its first operand, or of its result if it has no operand."""

    opcode: str
    element_type: ElementType


def cells(opcode: str) -> list[Cell]:
    """List the cells of an opcode, for the types of data that the verifier accepts."""
    taken = TAKES[opcode].types
    return [Cell(opcode, t) for t in ELEMENT_TYPES.values() if t in taken and t.is_array]


@cache
def _templates() -> tuple[Mapping[str, tuple[str, str]], Mapping[str, str]]:
    """Parse op_programs.txt: operands and instructions by opcode, bodies of computations by
    name."""
    programs, computations = re.split(
        r"\[programs\]\n|\n\[computations\]\n", _PROGRAMS.read_text()
    )[1:]
    found = {}
    for line in filter(None, programs.splitlines()):
        opcodes, operands, instructions = (part.strip() for part in line.split("|"))
        found.update(dict.fromkeys(opcodes.split(), (operands, instructions)))
    named = (line.partition(" ") for line in computations.splitlines())
    return found, {name: body for name, _, body in named}


def _of_kind(rows: Mapping[str, Any], name: str, kind: str) -> Any:
    return rows.get(f"{name}:{kind}", rows.get(name))


def _for_each(template: str, cell: Cell) -> list[str]:
    """Make an instruction for each possible result type, and a tuple of them."""
    source = cell.element_type
    made: list[str] = []
    shapes: list[str] = []
    match = _EACH.search(template)
    assert match is not None
    for _, t in cells(cell.opcode):
        as_wide = t.bits == source.bits and t.is_complex == source.is_complex
        if as_wide if match[1] == "Y" else t.is_complex or not source.is_complex:
            shapes.append(f"{t}{match[2]}")
            made.append(f"e{len(made)} = {_EACH.sub(shapes[-1], template)}")
    names = ", ".join(f"e{number}" for number in range(len(made)))
    return [*made, f"r = ({', '.join(shapes)}) tuple({names})"]


def text(cell: Cell) -> str:
    """Write the smallest program of a cell."""
    programs, computations = _templates()
    opcode, kind = cell.opcode, cell.element_type.kind
    operands, template = _of_kind(programs, opcode, kind)
    lines = [
        f"{'abcde'[number]} = {shape} parameter({number})"
        for number, shape in enumerate(operands.split())
    ]
    if _EACH.search(template):
        lines += _for_each(template, cell)
    else:
        made = template.replace("$", opcode).split("; ")
        lines += [f"{name} = {line}" for name, line in zip("pqrstu", made, strict=False)]
    lines[-1] = f"ROOT {lines[-1]}"
    names = dict.fromkeys(name.partition(":")[0] for name in computations)
    bodies = [
        f"{name} {_of_kind(computations, name, kind)}".replace("; ", "\n  ")
        for name in names
        if re.search(rf"[={{ ]{name}(?=[,;}}]|$)", template)
    ]
    entry = "\n  ".join(["ENTRY main {", *lines])
    whole = "\n\n".join(["HloModule cell", *bodies, f"{entry}\n}}\n"])
    letters = {
        "T": str(cell.element_type),
        "R": str(_PARTS.get(cell.element_type, cell.element_type)),
        "C": str(_WHOLES.get(cell.element_type, cell.element_type)),
        "U": f"u{cell.element_type.bits}",
    }
    return _TYPED.sub(lambda match: letters[match[1]], whole)


def module(cell: Cell) -> Module:
    """Return the smallest program of a cell, verified; what the language has no such program for,
    raises ParseError or VerifyError."""
    made = hlo.parse(text(cell))
    hlo.verify(made)
    return made


def evaluated(made: Module, arguments: Sequence[Any]) -> Any:
    """Evaluate by the interpreter; infeeds are drawn with seed 1."""
    shapes = [i.shape for i in made.entry.instructions if i.opcode == "infeed"]
    items = [
        from_seed(hlo.parse(f"HloModule m\nENTRY e {{ ROOT a = {s.elements[0]} parameter(0) }}"), 1)
        for s in shapes
        if isinstance(s, TupleShape)
    ]
    return interp.evaluate(made, *arguments, infeed=[item for (item,) in items], outfeed=[])


def by_interpreter(cell: Cell) -> str:
    """Evaluate a cell; return the reason of a refusal, empty if it is supported."""
    try:
        made = module(cell)
        evaluated(made, from_seed(made, 0))
    except hlo.Error as error:
        return _reason(error, cell)
    return ""


def by_generator(cell: Cell) -> str:
    """Generate a cell's C without compiling it; return the reason of a refusal, empty if it is
    supported."""
    try:
        render_plan(lowered(module(cell)), OPENMP)
    except hlo.Error as error:
        return _reason(error, cell)
    return ""


def _reason(error: hlo.Error, cell: Cell) -> str:
    """Return the first line of an error, without its place, and with T for the element type."""
    line = _PLACE.sub("", str(error).splitlines()[0])
    return re.sub(rf"\b{cell.element_type}\b", "T", line)


def _differing(group: Sequence[Cell]) -> Iterator[tuple[Cell, str]]:
    """List the cells on which interpreter and C differ; all are compiled as one program."""
    made = [module(cell) for cell in group]
    for cell, one, executable in zip(
        group, made, compiled(made, thorough(os.environ)), strict=True
    ):
        assert isinstance(executable, Executable), executable
        arguments = from_seed(one, 0)
        if found := differences(evaluated(one, arguments), executable(*arguments)):
            yield cell, f"other bits: {found[0]}"


def measured(opcodes: Sequence[str]) -> Iterator[str]:
    """Yield the lines of op_types.txt for the given opcodes."""
    every = [cell for opcode in opcodes for cell in cells(opcode)]
    columns = {"interp": {c: by_interpreter(c) for c in every}}
    columns["backend_c"] = {c: by_generator(c) for c in every}
    both = [c for c in every if not any(column[c] for column in columns.values())]
    for start in range(0, len(both), _TOGETHER):
        columns["backend_c"].update(_differing(both[start : start + _TOGETHER]))
        print(f"\r{start} of {len(both)} cells compiled", end="", file=sys.stderr)
    for opcode in opcodes:
        for name, column in columns.items():
            reasons: dict[str, list[str]] = {}
            for cell in cells(opcode):
                reason = column[cell] or DONE
                reasons.setdefault(reason, []).append(str(cell.element_type))
            for reason, types in reasons.items():
                yield f"{opcode} | {name} | {' '.join(types)} | {reason}"


def main() -> None:
    """Measure the given opcodes, or all, and write op_types.txt."""
    opcodes = sorted(sys.argv[1:] or OPCODES)
    head = "# python -m selftest.op_tables.op_types: opcode | column | element types | what it does"
    before = MEASURED.read_text().splitlines()[1:] if MEASURED.exists() else []
    kept = [line for line in before if line.split(" | ")[0] not in opcodes]
    lines = sorted([*kept, *measured(opcodes)], key=lambda line: line.split(" | ")[0])  # stable
    MEASURED.write_text("\n".join([head, *lines, ""]))


if __name__ == "__main__":
    main()
