"""Verify a module: the constraints of every op, and those between instructions and computations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from functools import cache

from hlo import ranks
from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.dynamic_sizes import declares_bounds
from hlo.errors import ArgumentError, VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import EXCHANGES, having
from hlo.ops.constraints import Violation
from hlo.summary import counted
from hlo.types import UNBOUNDED, Shape, compatible, leaves, same_bounds
from hlo.verification.annotations import annotation_faults, is_ruled
from hlo.verification.async_chains import LINKS, Agreements, Fault, chain_faults
from hlo.verification.carried_states import carried_faults
from hlo.verification.entry_layout import entry_faults
from hlo.verification.exclusive_callees import OWNERS, owner_faults
from hlo.verification.execution_threads import IN_PLACE, execution_threads, thread_faults
from hlo.verification.explanation import Place, details
from hlo.verification.group_sizes import participant_faults
from hlo.walk import ANNOTATIONS, Callee, Op, call, called, column, function_name

# Deeper nests of calls than any compiler makes would exhaust the stack of whoever evaluates them.
_MAXIMUM_DEPTH = 100
_MAXIMUM_RANK = 64  # of NumPy's arrays
_EXCHANGES = having(EXCHANGES)
_DRIVER = ("shape", "operand_shape", "operand_shapes", *ANNOTATIONS)


def verify(module: Module) -> None:
    """Raise VerifyError for the first instruction that violates a constraint, in text order (within
    a computation, chains of start and done come last; the header comes last of all).

    Each computation is checked once, after its callees. Labels are C1, C2, … of the op's function
    in ``hlo/ops``, or name a general rule: names, operands, attributes, calls, parameters, layout,
    shape, rank, size, bounds, chain, channel, groups, thread, composite, control-predecessors.
    """
    checker = _Checker(module)
    for computation in module.computations:
        checker.computation(computation)
    if not any(c.name == module.entry_name for c in module.computations):
        raise VerifyError(f"the entry computation {module.entry_name!r} is not in the module")
    checker.carried()
    for attribute, message in entry_faults(module):
        raise VerifyError(f"HloModule {module.name}, {attribute}: {message}")


@cache
def _ops() -> Mapping[str, Op]:
    return column("hlo.ops")


@cache
def _schema(name: str) -> tuple[frozenset[str], frozenset[str], int, int | None]:
    """Return an op's attributes, the required ones among them, and its least and largest number of
    operands (None if it is variadic), as its signature in ``hlo/ops`` has them."""
    parameters = inspect.signature(_ops()[name].function).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in _DRIVER]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return (
        frozenset(p.name for p in keywords),
        frozenset(p.name for p in keywords if p.default is p.empty),
        len(positional),
        None if variadic else len(positional),
    )


class _Checker:
    """Check computations in order, callees first."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._depths: dict[str, int] = {}
        self._callees: dict[str, Callee[Shape]] = {}
        self._computations = {c.name: c for c in module.computations}
        self._agreements = Agreements()
        self._threads = execution_threads(module)
        self._possible: set[int] = set()  # ids of shapes
        self._alike: set[tuple[object, ...]] = set()  # of instructions that were checked
        self._here: Computation | None = None  # which is being checked
        try:
            self._ranks = ranks.declared(module)
        except ArgumentError as error:
            raise VerifyError(f"HloModule {module.name}: {error}") from None

    def computation(self, computation: Computation) -> None:
        shapes: dict[str, Shape] = {}
        depth, chained, self._here = 0, False, computation
        self._parameters(computation)
        for instruction in computation.instructions:
            if instruction.name in shapes:
                raise self._error(instruction, "names", "the name is taken by one above it")
            for name in called(instruction):
                depth = max(depth, self._depth(name, instruction))
            try:
                self._instruction(instruction, shapes)
            except Violation as violation:
                raise self._error(instruction, violation.label, violation.message) from None
            for fault in self._faults(instruction, shapes, computation):
                raise self._error(*fault)
            shapes[instruction.name] = instruction.shape
            chained = chained or instruction.opcode in LINKS
        if chained:
            may_end = computation.name != self._module.entry_name
            for fault in chain_faults(computation, self._computations, may_end=may_end):
                raise self._error(*fault)
        if computation.root not in shapes:
            raise VerifyError(
                f"computation {computation.name}: its root {computation.root!r} is not in it"
            )
        if computation.name in self._depths:
            raise VerifyError(f"computation {computation.name} is defined twice")
        self._depths[computation.name] = depth + 1

    def carried(self) -> None:
        self._here = None  # faults may be in any of them
        for fault in carried_faults(self._module):
            raise self._error(*fault)

    def _faults(
        self, instruction: Instruction, shapes: Mapping[str, Shape], where: Computation
    ) -> Iterator[Fault]:
        """Yield violations of the rules that are not in the op's own function."""
        opcode = instruction.opcode
        if is_ruled(instruction):
            yield from annotation_faults(instruction, shapes)
        if opcode in _EXCHANGES:
            yield from participant_faults(instruction, shapes, *self._ranks)
        yield from self._agreements.faults(instruction)
        if opcode in IN_PLACE:
            yield from thread_faults(instruction, self._threads[where.name], self._threads)
        if opcode in OWNERS:
            computation = self._computations[str(instruction.attributes["calls"])]
            yield from owner_faults(instruction, computation, self._module.entry_name)

    def _depth(self, name: str, instruction: Instruction) -> int:
        """Return a callee's call depth; raise VerifyError if it is undefined above or too deep."""
        if name not in self._computations:
            raise self._error(instruction, "calls", f"there is no computation {name!r}")
        if name not in self._depths:
            message = (
                f"computation {name!r} must be defined before it is called, and never by itself"
            )
            raise self._error(instruction, "calls", message)
        if self._depths[name] >= _MAXIMUM_DEPTH:
            raise self._error(instruction, "calls", f"calls nest deeper than {_MAXIMUM_DEPTH}")
        return self._depths[name]

    def _parameters(self, computation: Computation) -> None:
        found = [i for i in computation.instructions if i.opcode == "parameter"]
        taken: set[int] = set()
        for instruction in found:
            number = instruction.attributes.get("parameter_number")
            if not isinstance(number, int) or set(instruction.attributes) != {"parameter_number"}:
                message = f"a number is all that it takes, not {', '.join(instruction.attributes)}"
                raise self._error(instruction, "parameters", message)
            if number in taken:
                raise self._error(instruction, "parameters", f"parameter({number}) twice")
            if not 0 <= number < len(found):
                message = (
                    f"parameter({number}) of {counted(len(found), 'parameter')}: numbers start at 0"
                )
                raise self._error(instruction, "parameters", message)
            taken.add(number)

    def _instruction(self, instruction: Instruction, shapes: Mapping[str, Shape]) -> None:
        """Check an instruction against its op, once for all with identical opcode, shapes and
        attributes: most instructions of a model repeat, and a parser shares these objects."""
        for operand in instruction.operands:
            if operand not in shapes:
                raise Violation("operands", f"there is no {operand!r} above")
        operands = [shapes[operand] for operand in instruction.operands]
        # The module keeps these objects, so no others have their ids.
        parts = (instruction.shape, instruction.attributes, *operands)
        texts = [instruction.annotations.get(name) for name in ANNOTATIONS]
        alike = (instruction.opcode, *texts, *map(id, parts))
        if alike not in self._alike:
            self._one(instruction, operands)
            self._alike.add(alike)

    def _one(self, instruction: Instruction, operands: list[Shape]) -> None:
        if id(instruction.shape) not in self._possible:
            _possible(instruction.shape)
            self._possible.add(id(instruction.shape))
        if instruction.opcode == "parameter":
            return
        name = function_name(instruction.opcode)
        op = _ops().get(name)
        if op is None:
            raise Violation("opcode", f"there is no opcode {instruction.opcode!r}")
        _arity(name, instruction)
        given = {
            attribute: self._value(attribute, value)
            for attribute, value in instruction.attributes.items()
        }
        if isinstance(given.get("calls"), tuple):
            raise Violation("calls", "calls= names one computation here")
        inferred = call(op, instruction, operands, given, operands)
        fits = same_bounds if declares_bounds(instruction.opcode) else compatible
        if not fits(inferred, instruction.shape):
            raise Violation("shape", f"the result is {inferred}, declared {instruction.shape}")

    def _value(self, attribute: str, value: object) -> object:
        if attribute not in COMPUTATION_ATTRIBUTES:
            return value
        if isinstance(value, tuple):
            return tuple(map(self._callee, value))
        assert isinstance(value, str)
        return self._callee(value)

    def _callee(self, name: str) -> Callee[Shape]:
        """Return a computation reduced to its parameters and its root, all that ops may look at. It
        is made once: else many calls of a long computation would take quadratic time."""
        known = self._callees.get(name)
        if known is None:
            computation = self._computations[name]
            root = computation.root_instruction
            ends = tuple(i for i in computation.parameters if i.name != root.name)
            ends = (*ends, root)
            known = Callee(Computation(name, ends, root.name), lambda *arguments: root.shape)
            self._callees[name] = known
        return known

    def _error(self, instruction: Instruction, label: str, message: str) -> VerifyError:
        line = ""
        if instruction.offset >= 0 and self._module.text:
            line = f"{self._module.text.count(chr(10), 0, instruction.offset) + 1}: "
        said = f"{line}%{instruction.name} = {instruction.opcode}, {label}: {message}"
        op = _ops().get(function_name(instruction.opcode))
        place = Place(self._module, self._here, instruction)
        return VerifyError(said, details(place, label, op))


def _arity(name: str, instruction: Instruction) -> None:
    """Raise Violation if the number of operands or the attributes do not fit the op's signature."""
    attributes, required, least, most = _schema(name)
    count = len(instruction.operands)
    if count < least or (most is not None and count > most):
        wanted = f"{'' if most is not None else 'at least '}{least} {'is' if least == 1 else 'are'}"
        raise Violation("operands", f"{counted(count, 'operand')}, {wanted} needed")
    for attribute in instruction.attributes:
        if attribute not in attributes:
            allowed = ", ".join(sorted(attributes)) or "none"
            raise Violation("attributes", f"unexpected {attribute}; allowed: {allowed}")
    missing = sorted(required - instruction.attributes.keys())
    if missing:
        raise Violation("attributes", f"{', '.join(missing)} missing")


def _possible(shape: Shape) -> None:
    """Raise Violation for a shape that no array can have: without bounds, of too many bytes or
    dimensions, or with a layout that does not permute its dimensions."""
    for leaf in leaves(shape):
        if UNBOUNDED in leaf.dims:
            raise Violation("bounds", f"{leaf}: no bound of a dimension; say <=N in place of ?")
        if leaf.rank and not leaf.element_type.is_array:
            raise Violation("rank", f"{leaf}: there are no arrays of {leaf.element_type}")
        if leaf.rank > _MAXIMUM_RANK:
            raise Violation("rank", f"{leaf.rank} dimensions: at most {_MAXIMUM_RANK} are possible")
        # NumPy's arrays of s4 and the like take a byte for each element.
        width = max(8, leaf.element_type.bits) // 8
        if math.prod(filter(None, leaf.dims)) * width >= 2**63:
            raise Violation("size", f"{leaf} has more bytes than 64 bits count")
        if leaf.layout is not None:
            order = leaf.layout.minor_to_major
            if sorted(order) != list(range(leaf.rank)):
                raise Violation("layout", f"{leaf}: the layout does not permute the dimensions")
