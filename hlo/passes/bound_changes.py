"""Write a ``copy`` where a value is handed on with other bounds than it has.

A text may hand a bounded dimension on as a static one, or the other way round, through tuples,
calls and control flow (docs/dynamic_shapes.md). Afterwards all that hands values on has exactly
the shapes that it gets, and only a ``copy``, which computes like any other, changes bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.ops.constraints import one_or_tuple
from hlo.passes.rewriting import Names, Rebuilt, integer
from hlo.types import ArrayShape, Shape, TupleShape, bounded, compatible, is_bounded
from hlo.walk import call as call_op
from hlo.walk import called, column, function_name, keywords

_FIRST = ("add-dependency", "domain", "opt-barrier")
_INFERRED = (
    *("all-reduce", "all-to-all", "collective-broadcast", "collective-permute"),
    *("async-done", "get-tuple-element", "recv-done", "scan"),
)
_DONE = ("all-gather-done", "all-reduce-done", "collective-permute-done", "copy-done")
# Where results are in what a start gives, beside the operands; all-reduce-start gives no others.
_RESULTS = {"all-gather-start": 1, "collective-permute-start": 1, "copy-start": 0}


def explicit_bounds(module: Module) -> Module:
    """The module with the same results, and a ``copy`` at each change of bounds."""
    if not any(has_bounds(i.shape) for c in module.computations for i in c.instructions):
        return module
    return _Module(module).done()


class _Module:
    """The computations so far; those that are made stand before the one that calls them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names = Names(c.name for c in module.computations)
        self._computations: list[Computation] = []
        self.done_by_name: dict[str, Computation] = {}

    def done(self) -> Module:
        for computation in self.module.computations:
            self.add(_Body(self, computation).done())
        return replace(self.module, computations=tuple(self._computations))

    def add(self, computation: Computation) -> None:
        self._computations.append(computation)
        self.done_by_name[computation.name] = computation

    def adapted(self, name: str, operand: Shape, result: Shape) -> str:
        """A computation of one parameter, with other bounds of it and of its result."""
        callee = self.done_by_name[name]
        (taken,) = (p.shape for p in callee.parameters)
        given = callee.root_instruction.shape
        if compatible(taken, operand) and compatible(given, result):
            return name
        parameter = Instruction("operand", operand, "parameter", (), {"parameter_number": 0})
        empty = Computation(self._names.fresh(f"{name}.bounds"), (parameter,), parameter.name)
        body = _Body(self, empty)
        body.shapes[parameter.name] = operand
        body.rebuilt.add(parameter)
        passed = body.converted(parameter.name, taken)
        made = body.fresh("call", given, passed, to_apply=name)
        root = body.converted(made, result)
        self.add(replace(body.rebuilt.done(), root=root))
        return empty.name


class _Body:
    """One computation being rebuilt."""

    def __init__(self, owner: _Module, computation: Computation) -> None:
        self._owner, self._computation = owner, computation
        self.rebuilt = Rebuilt(computation)
        self.shapes: dict[str, Shape] = {}
        self._declared: dict[str, Shape] = {}  # of results of what a start is replaced by
        self._finished: set[str] = set()  # such results

    def done(self) -> Computation:
        for instruction in self._computation.instructions:
            resolved = self.rebuilt.resolved(instruction)
            rule = _RULES.get(instruction.opcode)
            made = resolved if rule is None else rule(self, resolved)
            self._add(made)
            declared = self._declared.get(made.name)
            name = self.converted(made.name, declared or instruction.shape)
            self._finished |= {name} if declared else set()
            if name != instruction.name:
                self.rebuilt.forward(instruction.name, name)
        return self.rebuilt.done()

    def _add(self, instruction: Instruction) -> str:
        self.shapes[instruction.name] = instruction.shape
        return self.rebuilt.add(instruction)

    def fresh(self, opcode: str, shape: Shape, *operands: str, **attributes: object) -> str:
        name = self.rebuilt.names.fresh(opcode)
        return self._add(Instruction(name, shape, opcode, operands, attributes))  # type: ignore[arg-type]

    def converted(self, name: str, wanted: Shape) -> str:
        """The value with the bounds of a shape."""
        shape = self.shapes[name]
        if compatible(shape, wanted):
            return name
        if isinstance(wanted, ArrayShape):
            return self.fresh("copy", wanted, name)
        assert isinstance(shape, TupleShape)
        parts = [
            self.converted(self.fresh("get-tuple-element", part, name, index=n), other)
            for n, (part, other) in enumerate(zip(shape.elements, wanted.elements, strict=True))
        ]
        shapes = TupleShape(tuple(map(self.shapes.__getitem__, parts)))
        return self.fresh("tuple", shapes, *parts)

    def given(self, instruction: Instruction) -> list[Shape]:
        return [self.shapes[name] for name in instruction.operands]

    # One rule for each way of handing on: the instruction with the shapes that it gets

    def tuple_(self, instruction: Instruction) -> Instruction:
        return instruction._replace(shape=TupleShape(tuple(self.given(instruction))))

    def first(self, instruction: Instruction) -> Instruction:
        return instruction._replace(shape=self.given(instruction)[0])

    def inferred(self, instruction: Instruction) -> Instruction:
        shapes = self.given(instruction)
        given = keywords(self._owner.module, instruction, _entered)
        op = column("hlo.ops")[function_name(instruction.opcode)]
        return instruction._replace(shape=call_op(op, instruction, shapes, given, shapes[0]))

    def started(self, instruction: Instruction) -> Instruction:
        """As it is, or, where bounds change, what it starts: no copy may stand between a start and
        what is done then."""
        opcode, shape = instruction.opcode.removesuffix("-start"), instruction.shape
        attributes = dict(instruction.attributes)
        attributes.pop("cross_program_prefetch_index", None)
        given = self.given(instruction)
        source = given[0] if "slice_sizes" in attributes else one_or_tuple(given)
        place = _RESULTS.get(instruction.opcode)
        declared, taken = shape, source
        if place is not None:
            assert isinstance(shape, TupleShape)
            declared, taken = shape.elements[place], shape.elements[1 - place]
        plain = instruction._replace(opcode=opcode, shape=declared, attributes=attributes)
        plain = plain if opcode == "all-gather" else self.inferred(plain)
        if compatible(plain.shape, declared) and compatible(taken, source):
            return instruction
        self._declared[instruction.name] = declared
        return plain

    def done_then(self, instruction: Instruction) -> Instruction:
        """What hands the result on, if it is there already."""
        if instruction.operands[0] not in self._finished:
            return self.inferred(instruction)
        (shape,) = self.given(instruction)
        return instruction._replace(opcode="opt-barrier", shape=shape, attributes={})

    def send(self, instruction: Instruction) -> Instruction:
        """Of what the text says that is sent."""
        assert isinstance(instruction.shape, TupleShape)
        data, token = instruction.operands
        return instruction._replace(
            operands=(self.converted(data, instruction.shape.elements[0]), token)
        )

    def call(self, instruction: Instruction) -> Instruction:
        (name,) = called(instruction)
        callee = self._owner.done_by_name[name]
        parameters = sorted(callee.parameters, key=lambda p: integer(p, "parameter_number"))
        operands = self._all_converted(instruction.operands, [p.shape for p in parameters])
        return instruction._replace(shape=callee.root_instruction.shape, operands=operands)

    def while_(self, instruction: Instruction) -> Instruction:
        """The state is bounded where it is before the first turn, or after a turn."""
        condition, body = (str(instruction.attributes[name]) for name in ("condition", "body"))
        after = self._owner.done_by_name[body].root_instruction.shape
        state = _either(self.given(instruction)[0], after)
        predicate = self._owner.done_by_name[condition].root_instruction.shape
        attributes = {
            **instruction.attributes,
            "condition": self._owner.adapted(condition, state, predicate),
            "body": self._owner.adapted(body, state, state),
        }
        operands = self._all_converted(instruction.operands, [state])
        return instruction._replace(shape=state, operands=operands, attributes=attributes)

    def conditional(self, instruction: Instruction) -> Instruction:
        shapes = self.given(instruction)[1:]
        attributes = dict(instruction.attributes)
        branches = iter(
            [
                self._owner.adapted(name, shape, instruction.shape)
                for name, shape in zip(called(instruction), shapes, strict=True)
            ]
        )
        for name in attributes:
            if name in ("true_computation", "false_computation"):
                attributes[name] = next(branches)
            elif name == "branch_computations":
                attributes[name] = tuple(branches)
        return instruction._replace(attributes=attributes)

    def _all_converted(self, names: Sequence[str], shapes: Sequence[Shape]) -> tuple[str, ...]:
        return tuple(map(self.converted, names, shapes))


def _entered(computation: Computation) -> Callable[..., Shape]:
    return lambda *arguments: computation.root_instruction.shape


def _either(one: Shape, other: Shape) -> Shape:
    """Bounded where one of both is."""
    if isinstance(one, TupleShape) and isinstance(other, TupleShape):
        return TupleShape(tuple(map(_either, one.elements, other.elements)))
    assert isinstance(one, ArrayShape) and isinstance(other, ArrayShape)
    if compatible(one, other):
        return one
    dynamic = tuple(is_bounded(one, d) or is_bounded(other, d) for d in range(one.rank))
    return replace(bounded(one.element_type, one.dims, dynamic), layout=one.layout)


_Rule = Callable[[_Body, Instruction], Instruction]
_RULES: dict[str, _Rule] = {
    "tuple": _Body.tuple_,
    "call": _Body.call,
    "fusion": _Body.call,
    "while": _Body.while_,
    "conditional": _Body.conditional,
    "send": _Body.send,
    **dict.fromkeys(_FIRST, _Body.first),
    **dict.fromkeys(_INFERRED, _Body.inferred),
    **dict.fromkeys(("all-reduce-start", *_RESULTS), _Body.started),
    **dict.fromkeys(_DONE, _Body.done_then),
}
