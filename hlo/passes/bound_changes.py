"""Make changes of dynamic bounds explicit: insert a ``copy`` where the bounds of a shape change.

Tuples, calls and control flow may declare a bounded dimension as a static one, or the other way
round (docs/dynamic_shapes.md). Afterwards the shape of every such instruction is exactly that of
the values that flow into it, and only a ``copy``, which computes like any other instruction,
changes bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import IDENTITY, IN_TWO_STEPS, having
from hlo.ops.constraints import one_or_tuple
from hlo.passes.rewriting import Names, Rebuilt, integer
from hlo.types import ArrayShape, Shape, TupleShape, bounded, compatible, is_bounded
from hlo.walk import call as call_op
from hlo.walk import called, column, function_name, keywords

# Their shapes are what hlo/ops infers from the operands' new shapes.
_INFERRED = (
    *("all-reduce", "all-to-all", "collective-broadcast", "collective-permute"),
    *("async-done", "get-tuple-element", "recv-done", "scan"),
)
# Where results are in what a start gives, beside the operands; all-reduce-start gives no others.
_RESULTS = {"all-gather-start": 1, "collective-permute-start": 1, "copy-start": 0}


def explicit_bounds(module: Module) -> Module:
    """Insert a ``copy`` at each change of bounds; the module's results stay the same."""
    if not any(has_bounds(i.shape) for c in module.computations for i in c.instructions):
        return module
    return _Module(module).done()


class _Module:
    """Rebuild a module's computations in order, so that callees are done before their callers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names = Names(c.name for c in module.computations)
        self._computations: list[Computation] = []
        self.done_by_name: dict[str, Computation] = {}

    def done(self) -> Module:
        """Rebuild every computation of the module, callees first."""
        for computation in self.module.computations:
            self.add(_Body(self, computation).done())
        return replace(self.module, computations=tuple(self._computations))

    def add(self, computation: Computation) -> None:
        """Append a rebuilt computation."""
        self._computations.append(computation)
        self.done_by_name[computation.name] = computation

    def adapted(self, name: str, operand: Shape, result: Shape) -> str:
        """Return the name of a computation that computes ``name`` with other bounds of its one
        parameter and its result.

        That is ``name`` itself if its bounds agree, else a new adapter that copies the parameter,
        calls ``name`` and copies the result.
        """
        callee = self.done_by_name[name]
        (taken,) = (p.shape for p in callee.parameters)
        returned = callee.root_instruction.shape
        if compatible(taken, operand) and compatible(returned, result):
            return name
        parameter = Instruction("operand", operand, "parameter", (), {"parameter_number": 0})
        fresh, annotations = self._names.fresh(f"{name}.bounds"), callee.annotations
        empty = Computation(fresh, (parameter,), parameter.name, annotations)
        body = _Body(self, empty)
        body.shapes[parameter.name] = operand
        body.rebuilt.add(parameter)
        passed = body.converted(parameter.name, taken)
        called_result = body.fresh("call", returned, passed, to_apply=name)
        root = body.converted(called_result, result)
        self.add(replace(body.rebuilt.done(), root=root))
        return empty.name


class _Body:
    """Rebuild one computation; ``shapes`` maps each new value to its shape with actual bounds."""

    def __init__(self, owner: _Module, computation: Computation) -> None:
        self._owner, self._computation = owner, computation
        self.rebuilt = Rebuilt(computation)
        self.shapes: dict[str, Shape] = {}
        self._declared: dict[str, Shape] = {}  # by name: what a replaced start declares
        self._finished: set[str] = set()  # results of replaced starts

    def done(self) -> Computation:
        """Rebuild all instructions; convert each result to the bounds that the text declares."""
        for instruction in self._computation.instructions:
            resolved = self.rebuilt.resolved(instruction)
            rule = _RULES.get(instruction.opcode)
            rewritten = resolved if rule is None else rule(self, resolved)
            self._add(rewritten)
            declared = self._declared.get(rewritten.name)
            name = self.converted(rewritten.name, declared or instruction.shape)
            self._finished |= {name} if declared else set()
            if name != instruction.name:
                self.rebuilt.forward(instruction.name, name)
        return self.rebuilt.done()

    def _add(self, instruction: Instruction) -> str:
        self.shapes[instruction.name] = instruction.shape
        return self.rebuilt.add(instruction)

    def fresh(self, opcode: str, shape: Shape, *operands: str, **attributes: object) -> str:
        """Append a new instruction with a fresh name; return it."""
        name = self.rebuilt.names.fresh(opcode)
        return self._add(Instruction(name, shape, opcode, operands, attributes))  # type: ignore[arg-type]

    def converted(self, name: str, wanted: Shape) -> str:
        """Return the name of a value equal to ``name`` with the bounds of ``wanted``: itself if
        they agree, else a copy (of a tuple: of the elements that differ)."""
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

    def operand_shapes(self, instruction: Instruction) -> list[Shape]:
        """Return the shapes that the operands now have."""
        return [self.shapes[name] for name in instruction.operands]

    # Rules, one for each way of handing a value on: the instruction with the shapes that it gets

    def tuple_(self, instruction: Instruction) -> Instruction:
        """Give a tuple its operands' shapes."""
        return instruction._replace(shape=TupleShape(tuple(self.operand_shapes(instruction))))

    def with_first_shape(self, instruction: Instruction) -> Instruction:
        """Give the result the first operand's shape."""
        return instruction._replace(shape=self.operand_shapes(instruction)[0])

    def with_inferred_shape(self, instruction: Instruction) -> Instruction:
        """Give the result the shape that shape inference gives."""
        shapes = self.operand_shapes(instruction)
        attributes = keywords(self._owner.module, instruction, _root_shape)
        op = column("hlo.ops")[function_name(instruction.opcode)]
        return instruction._replace(shape=call_op(op, instruction, shapes, attributes, shapes))

    def async_start(self, instruction: Instruction) -> Instruction:
        """Keep an asynchronous start, or replace it by what it starts where bounds change.

        No copy may stand between a start and its done, so the change cannot be made explicit
        otherwise.
        """
        opcode, shape = instruction.opcode.removesuffix("-start"), instruction.shape
        attributes = dict(instruction.attributes)
        # Of copy-start only: a copy has no such attribute.
        attributes.pop("cross_program_prefetch_index", None)
        shapes = self.operand_shapes(instruction)
        source = shapes[0] if "slice_sizes" in attributes else one_or_tuple(shapes)
        place = _RESULTS.get(instruction.opcode)
        declared, taken = shape, source
        if place is not None:
            assert isinstance(shape, TupleShape)
            declared, taken = shape.elements[place], shape.elements[1 - place]
        synchronous = instruction._replace(opcode=opcode, shape=declared, attributes=attributes)
        synchronous = (
            synchronous if opcode == "all-gather" else self.with_inferred_shape(synchronous)
        )
        if compatible(synchronous.shape, declared) and compatible(taken, source):
            return instruction
        self._declared[instruction.name] = declared
        return synchronous

    def async_done(self, instruction: Instruction) -> Instruction:
        """Replace the done of a start that was replaced: its operand is the result already."""
        if instruction.operands[0] not in self._finished:
            return self.with_inferred_shape(instruction)
        (shape,) = self.operand_shapes(instruction)
        return instruction._replace(opcode="opt-barrier", shape=shape, attributes={})

    def send(self, instruction: Instruction) -> Instruction:
        """Convert the data to the bounds of the declared result."""
        assert isinstance(instruction.shape, TupleShape)
        data, token = instruction.operands
        return instruction._replace(
            operands=(self.converted(data, instruction.shape.elements[0]), token)
        )

    def call(self, instruction: Instruction) -> Instruction:
        """Convert operands to the parameters' shapes; the result has that of the callee's root."""
        (name,) = called(instruction)
        callee = self._owner.done_by_name[name]
        parameters = sorted(callee.parameters, key=lambda p: integer(p, "parameter_number"))
        operands = self._all_converted(instruction.operands, [p.shape for p in parameters])
        return instruction._replace(shape=callee.root_instruction.shape, operands=operands)

    def while_(self, instruction: Instruction) -> Instruction:
        """Give the state a bounded dimension if the init or the body's result has one; adapt body
        and condition to that."""
        condition, body = (str(instruction.attributes[name]) for name in ("condition", "body"))
        after = self._owner.done_by_name[body].root_instruction.shape
        state = _bounded_in_either(self.operand_shapes(instruction)[0], after)
        predicate = self._owner.done_by_name[condition].root_instruction.shape
        attributes = {
            **instruction.attributes,
            "condition": self._owner.adapted(condition, state, predicate),
            "body": self._owner.adapted(body, state, state),
        }
        operands = self._all_converted(instruction.operands, [state])
        return instruction._replace(shape=state, operands=operands, attributes=attributes)

    def conditional(self, instruction: Instruction) -> Instruction:
        """Adapt every branch to its operand's shape and to the declared result."""
        shapes = self.operand_shapes(instruction)[1:]
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


def _root_shape(computation: Computation) -> Callable[..., Shape]:
    """Return the callee for shape inference: a function that returns its root's shape."""
    return lambda *arguments: computation.root_instruction.shape


def _bounded_in_either(one: Shape, other: Shape) -> Shape:
    """Return the shape whose dimensions are bounded where those of either shape are."""
    if isinstance(one, TupleShape) and isinstance(other, TupleShape):
        return TupleShape(tuple(map(_bounded_in_either, one.elements, other.elements)))
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
    **dict.fromkeys(having(IDENTITY), _Body.with_first_shape),
    **dict.fromkeys(_INFERRED, _Body.with_inferred_shape),
    **{f"{opcode}-start": _Body.async_start for opcode in IN_TWO_STEPS},
    **{f"{opcode}-done": _Body.async_done for opcode in IN_TWO_STEPS},
}
