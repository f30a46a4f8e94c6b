"""Print the canonical dialect: a text that depends on what a module computes, not on its names.

Instructions are called ``tmp_0``, ``tmp_1``, … in the order of use, operands have their shapes,
arrays have their layouts, computations are printed in place of their names, and annotations about
provenance are left out. Source: ``HloPrintOptions::Canonical`` of XLA's ``hlo_print_options.h``,
``MakeInstructionPostOrder`` of ``hlo_computation.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, DONE, PENDING, having
from hlo.text.codecs import CODECS
from hlo.text.literals import show_literal
from hlo.text.scanning import fields, plain_name, quoted
from hlo.types import ArrayShape, Layout, Shape, TupleShape
from hlo.walk import called

_DROPPED = frozenset(("metadata", "backend_config", "control-predecessors"))
_ORDER = ("sharding", "frontend_attributes", "statistics", "result_accuracy", "origin")
# The attribute that an opcode has in place of operands.
IN_PARENTHESES = {"parameter": "parameter_number", "constant": "literal"}
_GOING_ON = having(ASYNC) - {"async-start"}  # with the computation of an async-start
_TAKE = having(DONE) | {"async-update"}  # what is under way
_UNDER_WAY = having(PENDING)
_LONGEST = 2**28  # characters: bodies stand wherever they are called


def canonical_computations(module: Module, large_constants: bool) -> Iterator[str]:
    """Yield the text of each computation; raise Unsupported if nested bodies make it too long."""
    printer = _Printer(module, large_constants)
    scheduled = module.attributes.get("is_scheduled") == "true"
    for computation in _callees_first(module):
        entry = "ENTRY " if computation.name == module.entry_name else ""
        lines = printer.lines(computation, scheduled)
        thread = "".join(f", {name}={text}" for name, text in computation.annotations.items())
        yield f"{entry}{quoted(computation.name)} {{\n" + "\n".join(lines) + f"\n}}{thread}\n"


class _Printer:
    def __init__(self, module: Module, large_constants: bool) -> None:
        self._large = large_constants
        self._bodies: dict[str, list[str]] = {}  # callees stand before callers
        self._computations = {c.name: c for c in module.computations}
        # A state that was handed on does not say what it is of: that stands there by name, and with
        # whatever else calls it. So do computations that such states enter or leave: alone, without
        # their callers, they would mean nothing.
        self._named = set[str]()
        for computation in module.computations:
            carried = _carried(computation)
            if carried or _ends_under_way(computation):
                self._named.add(computation.name)
            self._named.update(str(i.attributes.get("calls", "")) for i in carried.values())
        self._length = 0

    def lines(self, computation: Computation, as_written: bool) -> list[str]:
        """Return the lines of the instructions, with the bodies that they call. Strings in them may
        have line breaks of their own, which no indentation may follow."""
        instructions = computation.instructions if as_written else _post_order(computation)
        names = {instruction.name: f"tmp_{n}" for n, instruction in enumerate(instructions)}
        shapes = {instruction.name: _laid_out(instruction.shape) for instruction in instructions}
        carried = _carried(computation)
        lines: list[str] = []
        for instruction in instructions:
            root = "ROOT " if instruction.name == computation.root else ""
            start = f"  {root}{names[instruction.name]} = {shapes[instruction.name]}"
            operands = [f"{shapes[name]} {names[name]}" for name in instruction.operands]
            inside = self._inside(instruction, operands)
            first = len(lines)
            lines.append(f"{start} {instruction.opcode}({inside})")
            self._add_tail(lines, instruction, instruction.name in carried)
            self._length += sum(map(len, lines[first:]))
            if self._length > _LONGEST:
                raise Unsupported(f"a canonical text of more than {_LONGEST} characters")
        return lines

    def _inside(self, instruction: Instruction, operands: list[str]) -> str:
        literal = instruction.attributes.get("literal")
        if instruction.opcode == "constant" and isinstance(literal, Literal):
            return show_literal(literal, self._large)
        if instruction.opcode == "parameter":
            return str(instruction.attributes["parameter_number"])
        return ", ".join(operands)

    def _add_tail(self, lines: list[str], instruction: Instruction, is_carried: bool) -> None:
        """Append attributes, then called computations, then annotations."""
        shown = IN_PARENTHESES.get(instruction.opcode)
        given = {name: v for name, v in instruction.attributes.items() if name != shown}
        if instruction.opcode in _GOING_ON and not is_carried:
            given.pop("calls", None)  # that of the async-start, and XLA compares the names
        own = [name for name in given if name not in COMPUTATION_ATTRIBUTES]
        lines[-1] += "".join(f", {name}={CODECS[name].show(given[name])}" for name in own)
        for name in given:
            if name in COMPUTATION_ATTRIBUTES:
                lines[-1] += f", {name}="
                self._add_called(lines, given[name])
        lines[-1] += "".join(f", {text}" for text in _annotations(instruction.annotations))

    def _add_called(self, lines: list[str], value: Attribute) -> None:
        if isinstance(value, str):
            lines += self._body(value)
            return
        assert isinstance(value, tuple)
        bodies = [self._body(str(name)) for name in value] or [["  "]]
        lines[-1] += "{"
        for body in bodies[:-1]:
            lines += body
            lines[-1] += ","
        lines += (*bodies[-1], "}")

    def _body(self, name: str) -> list[str]:
        """Return the lines of a called computation; its name alone if that stands by name."""
        if name in self._named:
            return [f"  {quoted(name)}"]
        known = self._bodies.get(name)
        if known is None:
            lines = self.lines(self._computations[name], False)
            known = self._bodies[name] = ["  {", *(f"  {line}" for line in lines), "  }"]
        self._length += sum(map(len, known))
        return known


def _carried(computation: Computation) -> dict[str, Instruction]:
    """Return, by name, the updates and dones of async states that another computation started."""
    found: dict[str, Instruction] = {}
    local: set[str] = set()  # what is under way, and was started here
    for instruction in computation.instructions:
        if instruction.opcode in _TAKE and instruction.operands[0] not in local:
            found[instruction.name] = instruction
        elif instruction.opcode in _UNDER_WAY:
            local.add(instruction.name)
    return found


def _ends_under_way(computation: Computation) -> bool:
    """Return whether a computation starts an async call or transfer that it does not end."""
    taken = {i.operands[0] for i in computation.instructions if i.opcode in _TAKE}
    started = (i.name for i in computation.instructions if i.opcode in _UNDER_WAY)
    return any(name not in taken for name in started)


def _callees_first(module: Module) -> list[Computation]:
    """Return the computations in post-order of the call graph."""
    known = {c.name: c for c in module.computations}
    callees = {
        name: [n for i in c.instructions for n in _calls(i) if n in known]
        for name, c in known.items()
    }
    inner = {name for names in callees.values() for name in names}
    starts = [name for name in known if name not in inner]
    return [known[name] for name in _finished(starts, {n: c[::-1] for n, c in callees.items()})]


def _calls(instruction: Instruction) -> tuple[str, ...]:
    """Return the computations that an instruction calls; of a while, the body first, as in XLA."""
    names = called(instruction)
    if instruction.opcode == "while" and len(names) == 2:
        condition, body = (str(instruction.attributes[key]) for key in ("condition", "body"))
        return body, condition
    return names


def _finished(starts: Iterable[str], before: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names in depth-first post-order, each after those ``before`` it; of these, the
    last comes first."""
    order: dict[str, None] = {}
    for start in starts:
        stack = [start]
        opened: set[str] = set()
        while stack:
            name = stack[-1]
            # Met again, so all that comes before it is done. A stack, as chains are longer than
            # Python's recursion.
            if name in order or name in opened:
                stack.pop()
                order.setdefault(name)
                continue
            opened.add(name)
            stack += [other for other in before[name] if other not in order]
    return list(order)


def _annotations(annotations: Mapping[str, str]) -> list[str]:
    kept = [name for name in annotations if name not in _DROPPED]
    kept.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    return [f"{name}={annotations[name]}" for name in kept]


def _laid_out(shape: Shape) -> Shape:
    """Return a shape with the row-major layout wherever it has none."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_laid_out, shape.elements)))
    if shape.layout is not None or not shape.rank:
        return shape
    layout = Layout(tuple(reversed(range(shape.rank))))
    return ArrayShape(shape.element_type, shape.dims, shape.dynamic, layout)


def _post_order(computation: Computation) -> list[Instruction]:
    """Return the instructions in post-order: operands before users, control predecessors before
    operands, starting from each unused instruction in the order of the text."""
    known = {instruction.name: instruction for instruction in computation.instructions}
    after = {name: [n for n in _before(i) if n in known] for name, i in known.items()}
    used = {name for names in after.values() for name in names}
    starts = [name for name in known if name not in used]
    return [known[name] for name in _finished(starts, after)]


def _before(instruction: Instruction) -> list[str]:
    """Return the names of an instruction's operands, last first, then its control predecessors."""
    text = instruction.annotations.get("control-predecessors", "{}")
    waited = map(plain_name, fields(text[1:-1]))
    return [*reversed(instruction.operands), *waited]
