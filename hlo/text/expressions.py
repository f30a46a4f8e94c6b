"""Read instructions field by field: all that are not plain lines (:mod:`hlo.text.plain_lines`).

That includes nested operands ``add(f32[] multiply(a, b), c)``, tuple elements ``t#1#0``, omitted
shapes, async sugar, and every error message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from hlo.attributes import Attribute
from hlo.module import Computation, Instruction
from hlo.opcodes import GIVEN, OPCODES, having
from hlo.text.async_sugar import extended, fresh, started, wrapped_opcode
from hlo.text.attribute_lists import Tail, TailReader
from hlo.text.inference import NotInferred, inferred_shape
from hlo.text.literals import LiteralError, read_literal
from hlo.text.patterns import pattern
from hlo.text.scanning import NAME, Source, parts, plain_name
from hlo.text.shapes import SPACED_ARRAY, ShapeReader
from hlo.text.suggestion import suggestion
from hlo.types import Shape, TupleShape, compatible, same_bounds

# As in XLA's lexer, no space is needed between ROOT and %name, nor between %name and =; a bare
# name ends at white space, or with its colon.
_HEAD = pattern(
    rf"(ROOT(?:\s++|(?=%)))?+(?:(?=[%\"])({NAME})|({NAME})(?:(?<=:)|(?=\s)))\s*+=\s*+",
    re.ASCII,
)
_ARRAY_SHAPE = pattern(SPACED_ARRAY, re.ASCII)
_OPCODE = pattern(r"([a-z][a-z0-9\-]*+)\s*+\(", re.ASCII)
_OPERAND = pattern(rf"(?:(.*\S)(?:\s++|(?=%)))?({NAME})((?:#\d{{1,9}}+)*+)\Z", re.S | re.ASCII)
_PARAMETER = pattern(r"\s*+(\d{1,9}+)\s*+", re.ASCII)
_DEPTH = 60  # reading what is nested recurses
_ANONYMOUS = "_"
_GIVEN = having(GIVEN)


class Known(dict[str, Instruction]):
    """Map names to the instructions above in a computation. They are only added, so that what was
    counted once need not be counted again."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}  # where to go on counting fresh names
        self._counted = self._parameters = 0

    def parameter_count(self) -> int:
        """Count the parameters: those that were added since the last call."""
        added = islice(reversed(self.values()), len(self) - self._counted)
        self._parameters += sum(instruction.opcode == "parameter" for instruction in added)
        self._counted = len(self)
        return self._parameters


class ExpressionReader:
    """Read the instructions of one source.

    ``known`` maps names to the instructions above in the computation; anonymous ones (nested
    operands) are added to it. ``computations`` are the computations above.
    """

    def __init__(
        self,
        source: Source,
        shapes: ShapeReader,
        tails: TailReader,
        computations: dict[str, Computation],
    ) -> None:
        self._source, self._shapes, self._tails = source, shapes, tails
        self._computations = computations
        self._given: dict[tuple[str, str], Mapping[str, Attribute]] = {}
        self._unwritten: set[str] = set()  # computations that async sugar stands for
        # Of the names of computations without one: those like it in the text, and how far counted.
        self._declared: dict[str, frozenset[str]] = {}
        self._numbers: dict[str, int] = {}
        self._depth = 0
        self._undefined_are_parameters = False

    def take_undefined_for_parameters(self) -> None:
        """Declare undefined operands as parameters from now on, instead of raising."""
        self._undefined_are_parameters = True

    def read(self, position: int, known: Known) -> tuple[bool, Instruction, int]:
        """Read an instruction; return whether it is the root, it, and the position behind it."""
        head = _HEAD.match(self._source.code, position)
        if head is None:
            message = "expected an instruction: name = shape opcode(operands)"
            self._source.fail(message, position)
        name = plain_name(head[2] or head[3])
        made, end = self.definition(name, head.end(), known)
        return head[1] is not None, made._replace(offset=position), self._source.skip(end)

    def definition(
        self, name: str, start: int, known: Known, nested: int = 0
    ) -> tuple[Instruction, int]:
        """Read ``shape opcode(operands), attributes``; return the instruction and where it ends. A
        nested one ends at position ``nested`` and has no attributes."""
        source = self._source
        shape, place = self._shape_or_none(start)
        match = _OPCODE.match(source.code, place)
        if match is None:
            source.fail("expected an opcode and (", place)
        opcode, first, last = match[1], match.end(), source.closing(match.end() - 1)
        if opcode not in OPCODES and wrapped_opcode(opcode) is None:
            source.fail(f"unknown opcode {opcode!r}{suggestion(opcode, OPCODES)}", place)
        given: Mapping[str, Attribute] = {}
        operands: tuple[str, ...] = ()
        if opcode in _GIVEN:
            if shape is None:
                source.fail(f"expected a shape: {opcode} needs one", start)
            given = self.given(opcode, shape, source.code[start:place].strip(), first, last)
        else:
            operands = self._operands(first, last, known)
        tail = Tail({}, {}, last + 1) if nested else self._tails.read(last + 1)
        if nested and source.code[last + 1 : nested].strip():
            source.fail("expected , or ) after a nested operand", last + 1)
        for unexpected in tail.attributes if given else ():
            source.fail(f"unexpected attribute {unexpected!r} of a {opcode}", last)
        attributes = given or tail.attributes
        shapes = [known[operand].shape for operand in operands]
        if shape is None:
            shape = self._inferred(opcode, shapes, attributes, place)
        made = Instruction(name, shape, opcode, operands, attributes, tail.annotations, start)
        if opcode not in OPCODES:
            made = self._desugared(made, shapes, known, place)
        return self._with_calls(made, known), tail.end

    def shape(self, position: int) -> tuple[Shape, int]:
        """Read the shape at a position; return it, and where it ends."""
        shape, end = self._shape_if_any(position)
        if shape is None:
            self._source.fail("expected a shape", position)
        return shape, end

    def _shape_if_any(self, position: int) -> tuple[Shape | None, int]:
        code = self._source.code
        if code.startswith("(", position):
            end = self._source.closing(position) + 1
        else:
            match = _ARRAY_SHAPE.match(code, position)
            if match is None:
                return None, position
            end = match.end()
        return self._read_shape(code[position:end], position), end

    def _shape_or_none(self, position: int) -> tuple[Shape | None, int]:
        """Read the shape before an opcode; return it (None if omitted) and where the opcode is."""
        shape, end = self._shape_if_any(position)
        if shape is None and _OPCODE.match(self._source.code, position) is None:
            self._source.fail("expected a shape", position)
        return shape, self._source.skip(end)

    def _read_shape(self, text: str, position: int) -> Shape:
        try:
            return self._shapes.read(text)
        except ValueError as error:
            self._source.fail(str(error), position)

    def _inferred(
        self, opcode: str, operands: list[Shape], attributes: Mapping[str, Attribute], place: int
    ) -> Shape:
        try:
            if opcode not in OPCODES:
                raise NotInferred(f"expected a shape: {opcode} needs one")
            return inferred_shape(opcode, operands, attributes, self._computations)
        except NotInferred as error:
            self._source.fail(str(error), place)

    def given(
        self, opcode: str, shape: Shape, shape_text: str, start: int, end: int
    ) -> Mapping[str, Attribute]:
        """Read the parentheses of a constant (its literal) or a parameter (its number)."""
        text = self._source.code[start:end]
        key = opcode if opcode == "parameter" else shape_text, text
        found = self._given.get(key)
        if found is None:
            read = self._number if opcode == "parameter" else self._literal
            found = self._given[key] = read(shape, text, start)
        return found

    def _number(self, shape: Shape, text: str, start: int) -> Mapping[str, Attribute]:
        match = _PARAMETER.fullmatch(text)
        if match is None:
            self._source.fail("expected the number of a parameter", start)
        return {"parameter_number": int(match[1])}

    def _literal(self, shape: Shape, text: str, start: int) -> Mapping[str, Attribute]:
        try:
            return {"literal": read_literal(shape, text)}
        except LiteralError as error:
            self._source.fail(str(error), start + error.position)

    # Operands

    def _operands(self, start: int, end: int, known: Known) -> tuple[str, ...]:
        fields = parts(self._source.code, start, end)
        # Between commas nothing need be: XLA skips what is empty.
        return tuple([self._operand(*field, known) for field in fields if field[0] != field[1]])

    def _operand(self, first: int, last: int, known: Known) -> str:
        """Read an operand and return its name; a nested instruction is added to ``known``."""
        source = self._source
        if source.code.endswith(")", first, last):
            return self._nested(first, last, known)
        match = _OPERAND.match(source.code[first:last])
        if match is None:
            source.fail("expected an operand", first)
        name = plain_name(match[2])
        shape = self._read_shape(match[1], first) if match[1] else None
        if name not in known:
            self._undefined(name, shape, first + match.start(2), known)
        found = known[name]
        for index in match[3].split("#")[1:]:
            found = self._element(found, int(index), first, known)
        if shape is not None and not same_bounds(shape, found.shape):
            source.fail(f"operand {found.name!r} is {found.shape}, not {shape}", first)
        return found.name

    def _undefined(self, name: str, shape: Shape | None, place: int, known: Known) -> None:
        if not self._undefined_are_parameters:
            hint = suggestion(name, known)
            self._source.fail(f"operand {name!r} is not defined above{hint}", place)
        if shape is None:
            self._source.fail(f"operand {name!r} needs its shape in front of it", place)
        attributes = {"parameter_number": known.parameter_count()}
        known[name] = Instruction(name, shape, "parameter", attributes=attributes, offset=place)

    def _nested(self, first: int, last: int, known: Known) -> str:
        match = _OPCODE.search(self._source.code, first, last)
        if match is None:
            self._source.fail("expected an operand", first)
        self.deeper(first)
        made, _ = self.definition(_ANONYMOUS, first, known, nested=last)
        self._depth -= 1
        return self._anonymous(made, known)

    def _anonymous(self, made: Instruction, known: Known) -> str:
        name = fresh(f"{made.opcode}.anon", known.__contains__, known.numbers)
        known[name] = made._replace(name=name)
        return name

    def _element(self, found: Instruction, index: int, place: int, known: Known) -> Instruction:
        shape = found.shape
        if not isinstance(shape, TupleShape) or index >= len(shape.elements):
            self._source.fail(f"#{index}: {found.name!r} is {shape}", place)
        element = Instruction(
            _ANONYMOUS,
            shape.elements[index],
            "get-tuple-element",
            (found.name,),
            {"index": index},
            offset=place,
        )
        return known[self._anonymous(element, known)]

    def deeper(self, place: int) -> None:
        """Enter a nested level, which :meth:`shallower` leaves; raise ParseError beyond _DEPTH."""
        self._depth += 1
        if self._depth > _DEPTH:
            self._source.fail(f"nested deeper than {_DEPTH}", place)

    def shallower(self) -> None:
        self._depth -= 1

    # Async sugar

    def _desugared(
        self, made: Instruction, operands: list[Shape], known: Known, place: int
    ) -> Instruction:
        named = wrapped_opcode(made.opcode)
        assert named is not None
        phase, wrapped = named
        if phase == "async-start":
            name = self.fresh_computation("async_wrapped")
            try:
                computation, start = started(made, operands, name)
            except ValueError as error:
                self._source.fail(str(error), place)
            self._computations[name] = computation
            self._unwritten.add(name)
            return start
        calls = self._called(made.operands[0], known) if made.operands else None
        found = None if calls is None else self._computations[calls].root_instruction.opcode
        if calls is None or found != wrapped:
            what = f"an async {found}" if found else "none"
            message = f"{made.opcode} takes what {wrapped}-start gives: the operand is {what}"
            self._source.fail(message, place)
        if calls in self._unwritten:
            known_so_far = self._computations[calls]
            self._computations[calls] = extended(known_so_far, operands[1:], made.shape, phase)
        return made._replace(opcode=phase)

    def _called(self, name: str, known: Known) -> str | None:
        """Return the computation that an async chain calls, from its start; None if unknown."""
        operand = known[name]
        while operand.opcode == "async-update" and operand.operands:
            operand = known[operand.operands[0]]
        called = operand.attributes.get("calls") if operand.opcode == "async-start" else None
        return called if isinstance(called, str) else None

    def _with_calls(self, made: Instruction, known: Known) -> Instruction:
        """Add ``calls`` to an async-update that extends the state, which evaluation then needs."""
        if made.opcode != "async-update" or not made.operands or "calls" in made.attributes:
            return made
        calls = self._called(made.operands[0], known)
        if calls is None or compatible(made.shape, known[made.operands[0]].shape):
            return made
        return made._replace(attributes={**made.attributes, "calls": calls})

    def fresh_computation(self, name: str) -> str:
        """Return a name, taken nowhere in the text, for a computation that has none."""
        taken = self._declared.get(name)
        if taken is None:
            declared = pattern(rf"(?<![\w.\-])({re.escape(name)}(?:\.\d++)?+):?+\s*+(?=[({{])")
            # Later ones, too.
            taken = self._declared[name] = frozenset(declared.findall(self._source.code))
        return fresh(name, lambda n: n in self._computations or n in taken, self._numbers)
