"""Build one program while it is drawn: the interface between generators and the growing module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from fuzz.draw.choices import Choices, Wrapped
from fuzz.draw.readable import tidied
from fuzz.draw.shapes import ALL_TYPES, TYPES, Accepts, by_kind
from fuzz.draw.values import array
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape, ElementType, Shape, TupleShape

Generator = Callable[["Builder", ArrayShape], str]

# Constants are text in the program: longer ones only make reports unreadable.
MOST_CONSTANT_ELEMENTS = 8

# Values under way, each an operand of the one before: up to ten frames of Python's stack each.
_MOST_DEPTH = 64

_PATTERN = 5  # one value in so many comes from several instructions at once


# Shapes that a menu remembers: each keeps lists of a hundred generators and patterns, and campaigns
# draw any number of shapes.
_MOST_SHAPES = 4096


def _is_done(instruction: Instruction) -> bool:
    """Return whether a value may have arbitrary users: an async start belongs to its done."""
    # Values are arrays: of all starts only an all-reduce-start has the shape of one.
    return not instruction.opcode.endswith("-start")


class Menu:
    """Hold the generators that may be drawn: of single instructions by opcode, and of patterns."""

    def __init__(
        self,
        generators: Mapping[str, tuple[Generator, Accepts]],
        patterns: Mapping[str, tuple[Generator, Accepts]] | None = None,
    ) -> None:
        self.opcodes = generators.keys()
        self._generators, self._patterns = generators, patterns or {}
        self._fitting: dict[ArrayShape, tuple[list[Generator], list[tuple[str, Generator]]]] = {}

    def fitting(self, shape: ArrayShape) -> tuple[list[Generator], list[tuple[str, Generator]]]:
        """Return the instruction generators, and the patterns by name, that can produce this
        shape."""
        if shape not in self._fitting:
            one = [make for make, accepts in self._generators.values() if accepts(shape)]
            rows = self._patterns.items()
            several = [(name, make) for name, (make, accepts) in rows if accepts(shape)]
            if len(self._fitting) == _MOST_SHAPES:
                self._fitting.clear()
            self._fitting[shape] = one, several
        return self._fitting[shape]

    def generator(self, opcode: str, shape: ArrayShape) -> Generator | None:
        """Return the generator of an opcode if it is on the menu and can produce this shape, else
        None."""
        make, accepts = self._generators.get(opcode, (None, None))
        return make if accepts is not None and accepts(shape) else None


class Builder(Wrapped):
    """Add instructions to a computation; generators call each other through it.

    Every generator has the form ``generator(builder, shape) -> name``: it adds an instruction whose
    result, or one of whose results, has ``shape``, and returns the name of a value of that shape.
    Operands come from :meth:`value`, computations from :meth:`computation` and :meth:`binary`.
    """

    def __init__(
        self,
        choices: Choices,
        menu: Menu,
        types: Sequence[ElementType] = TYPES,
        budget: int = 12,
        *,
        constants: bool = True,
    ) -> None:
        super().__init__(choices)
        self._menu, self.types = menu, types
        self._budget, self._constants = budget, constants
        self._is_entry = True
        self._decided: dict[str, bool] = {}
        self._producers: list[str] = []
        self._called: str | None = None
        self._is_folded = False
        self._depth = 0
        self._instructions: list[Instruction] = []
        self._computations: dict[str, Computation] = {}

    @property
    def opcodes(self) -> Set[str]:
        """Return the opcodes that may be added."""
        return self._menu.opcodes

    def decided(self, what: str) -> bool:
        """Draw a decision for the whole program at its first use; return the same one later."""
        if what not in self._decided:
            self._decided[what] = self.boolean()
        return self._decided[what]

    def chained(self, opcodes: Sequence[str], shape: ArrayShape) -> str:
        """Add a chain of instructions, users first: each takes the result of the next opcode for
        its first operand that such an instruction can produce."""
        make = self._menu.generator(opcodes[0], shape)
        if make is None:
            return self.value(shape)
        outer, self._producers = self._producers, [*opcodes[1:]]
        name = make(self, shape)
        self._producers = outer
        return name

    def calling(self, opcode: str, called: str, shape: ArrayShape) -> str:
        """Add an instruction with this opcode, whose computations have one with the opcode
        ``called`` where it can produce what they compute."""
        make = self._menu.generator(opcode, shape)
        if make is None:
            return self.value(shape)
        outer, self._called = self._called, called
        name = make(self, shape)
        self._called = outer
        return name

    def called(self, shape: ArrayShape) -> Generator | None:
        """Take the generator that a computation shall have (:meth:`calling`), if it can produce
        this shape; None if there is none, or it was taken."""
        if self._called is None or self._is_entry:
            return None
        opcode, self._called = self._called, None
        return self._menu.generator(opcode, shape)

    def folded(self, opcode: str, shape: ArrayShape) -> str:
        """Add an instruction with this opcode on constants only, so that compilers can fold it."""
        make = self._menu.generator(opcode, shape)
        outer, self._is_folded = self._is_folded, True
        name = self.leaf(shape) if make is None else make(self, shape)
        self._is_folded = outer
        return name

    def value(self, shape: ArrayShape) -> str:
        """Return the name of a value of this shape: an existing one, or one made now."""
        self._depth += 1
        name = self.part(lambda: self._value(shape))
        self._depth -= 1
        return name

    def _value(self, shape: ArrayShape) -> str:
        if self._is_folded:
            return self.leaf(shape)
        if self._producers and (make := self._menu.generator(self._producers[0], shape)):
            del self._producers[0]
            return make(self, shape)
        there = [i.name for i in self._instructions if i.shape == shape and _is_done(i)]
        # Leaves of a computation are constants: with its budget spent it reuses values, else its
        # result would hardly depend on its parameters. The entry may have more parameters.
        spent = self._budget <= 0 or self._depth > _MOST_DEPTH
        if there and ((spent and not self._is_entry) or self.integer(0, 3) == 0):
            return self.choice(there)
        if spent or shape.element_type not in self.types:  # of others, only what an op must have
            return self.leaf(shape)
        self._budget -= 1
        one, several = self._menu.fitting(shape)
        if several and self.chance(_PATTERN):
            name, generator = self.choice(several)
            self.drew(name)
            return generator(self, shape)
        return self.choice([Builder.leaf, *one])(self, shape)

    def element_type(self, accepts: Callable[[ElementType], bool]) -> ElementType:
        """Draw an element type that ``accepts`` admits, of the program's types if one of them is
        admitted; each kind of types is as likely as another if there are unusual ones."""
        fitting = [t for t in self.types if accepts(t)] or [t for t in ALL_TYPES if accepts(t)]
        return by_kind(self, fitting)

    def other_types(self, accepts: Callable[[ElementType], bool]) -> Sequence[ElementType]:
        """List the types that ``accepts`` admits of those that values may be converted to: all,
        unless the program is of a choice of types; then these, and none but these."""
        is_any = set(TYPES) <= set(self.types)
        return [t for t in (ALL_TYPES if is_any else self.types) if accepts(t)]

    def leaf(self, shape: ArrayShape) -> str:
        """Add a parameter or, for small shapes, a constant; outside the entry always a constant."""
        # A computation has just the parameters that its caller passes.
        small = shape.elements <= MOST_CONSTANT_ELEMENTS
        is_constant = not self._is_entry or self._is_folded
        if is_constant and not small:
            scalar = self.leaf(ArrayShape(shape.element_type))
            return self.emit("broadcast", shape, scalar, dimensions=())
        if is_constant or (self._constants and small and self.boolean()):
            return self.constant(shape)
        return self._parameter(shape)

    def argument(self, shape: Shape) -> str:
        """Add a parameter of any shape: an array in some layout, or a tuple. Where there can be
        none, its arrays are leaves in no layout."""
        if self._is_entry and not self._is_folded:
            return self._parameter(shape)
        if isinstance(shape, TupleShape):
            return self.tuple(*map(self.argument, shape.elements))
        return self.leaf(replace(shape, layout=None))

    def constant(self, shape: ArrayShape) -> str:
        literal = Literal(shape, array(self, shape))
        return self.emit("constant", shape, literal=literal)

    def number(self, shape: ArrayShape, value: int) -> str:
        """Add a constant whose elements are all ``value``; the text has each of them."""
        literal = Literal(shape, np.full(shape.dims, value, shape.element_type.numpy))
        return self.emit("constant", shape, literal=literal)

    def _parameter(self, shape: Shape) -> str:
        number = sum(i.opcode == "parameter" for i in self._instructions)
        return self.emit("parameter", shape, parameter_number=number)

    def emit(self, opcode: str, shape: Shape, *operands: str, **attributes: Attribute) -> str:
        name = f"{opcode}.{len(self._instructions)}"
        self._instructions.append(Instruction(name, shape, opcode, operands, attributes))
        return name

    def annotate(self, name: str, **annotations: str) -> None:
        """Add annotations, given as raw text, to an instruction."""
        position = next(n for n, i in enumerate(self._instructions) if i.name == name)
        annotated = self._instructions[position]._replace(annotations=annotations)
        self._instructions[position] = annotated

    def unused(self, names: Sequence[str], root: str) -> list[str]:
        """Return those of ``names`` that have no user and are not the root."""
        taken = {operand for i in self._instructions for operand in i.operands} | {root}
        return [name for name in names if name not in taken]

    def shape(self, name: str) -> Shape:
        """Return a value's shape by its name."""
        return next(i.shape for i in self._instructions if i.name == name)

    def opcode(self, name: str) -> str:
        """Return the opcode that computes a value, by its name."""
        return next(i.opcode for i in self._instructions if i.name == name)

    def tuple(self, *names: str) -> str:
        shape = TupleShape(tuple(map(self.shape, names)))
        return self.emit("tuple", shape, *names)

    def computation(
        self, parameters: Sequence[Shape], result: Callable[[Builder, list[str]], str]
    ) -> str:
        """Draw a computation and return its name: ``result(inner, names)`` draws its root in the
        builder ``inner``, where ``names`` are its parameters. It gets half of the instructions that
        may still be added."""
        share = max(0, self._budget // 2)
        self._budget -= share
        inner = Builder(self._choices, self._menu, self.types, share)
        inner._is_entry, inner._computations = False, self._computations
        inner._decided, inner._called = self._decided, self._called
        inner._depth = self._depth
        names = [inner._parameter(shape) for shape in parameters]
        root = result(inner, names)
        # Added after those that it calls, which text has to define first.
        name = f"computation.{len(self._computations)}"
        self._computations[name] = Computation(name, tuple(inner._instructions), root)
        return name

    def computations(
        self, parameters: Sequence[Shape], result: Callable[[Builder, list[str]], str]
    ) -> Sequence[Computation]:
        """Draw a computation; return it after all that it calls."""
        self.computation(parameters, result)
        return [*self._computations.values()]

    def binary(self, opcode: str, element_type: ElementType) -> str:
        """Return the name of a computation that applies ``opcode`` to two scalars."""
        shape = ArrayShape(element_type)
        both = [
            Instruction(name, shape, "parameter", (), {"parameter_number": number})
            for number, name in enumerate(("x", "y"))
        ]
        root = Instruction("result", shape, opcode, ("x", "y"))
        name = f"{opcode}_{element_type}"
        computation = Computation(name, (*both, root), "result")
        return self._computations.setdefault(name, computation).name

    def module(self, results: Sequence[str]) -> Module:
        """Finish the program: its result is a tuple unless there is exactly one. Some programs keep
        dead code."""
        root = results[0] if len(results) == 1 else self.tuple(*results)
        module = self._module(Computation("main", tuple(self._instructions), root))
        return module if self.boolean() else tidied(module)

    def module_of(self, opcode: str) -> Module:
        """Finish the program with the last instruction of this opcode as its result."""
        last = [i for i in self._instructions if i.opcode == opcode][-1]
        until = self._instructions.index(last) + 1
        return self._module(Computation("main", tuple(self._instructions[:until]), last.name))

    def _module(self, entry: Computation) -> Module:
        return Module("drawn", (*self._computations.values(), entry), "main")
