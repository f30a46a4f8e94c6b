"""Drawn programs are valid, survive printing, and run."""

import importlib
import pkgutil
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from fuzz.draw import generators
from fuzz.draw.builder import MOST_CONSTANT_ELEMENTS, Builder
from fuzz.draw.choices import Choices, OftenEmpty, OftenLong, Seeded, examples
from fuzz.draw.loosening import OF_OPERANDS, loosened
from fuzz.draw.programs import GENERATORS, READS, menu, nested_op, program, rows, single_op
from fuzz.draw.scalar_computations import comparator
from fuzz.draw.shapes import ALL_TYPES, TYPES, by_kind
from hlo.errors import ArgumentError
from hlo.literal import Literal
from hlo.module import Computation, Instruction
from hlo.opcodes import OPCODES
from hlo.types import C64, F32, S32, ArrayShape, TupleShape, leaves
from hlo.values import placed
from hlo.walk import function_name


def _of(module: hlo.Module, opcode: str) -> list[Instruction]:
    return [i for i in module.entry.instructions if i.opcode == opcode]


def _takes(module: hlo.Module, opcode: str, operand: str) -> bool:
    names = {i.name for i in _of(module, operand)}
    return any(i.operands[0] in names for i in _of(module, opcode))


def _slices_padded(module: hlo.Module) -> bool:
    return _takes(module, "slice", "pad")


def _transposes(module: hlo.Module) -> bool:
    return bool(_of(module, "transpose"))


def _pads_less(module: hlo.Module) -> bool:
    padding = [dimension for i in _of(module, "pad") for dimension in i.attributes["padding"]]
    return any(low < 0 for low, _, _ in padding)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_modules_are_valid(data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    note(hlo.format(module))
    hlo.verify(module)
    assert hlo.parse(hlo.format(module)) == module
    arrays = data.draw(fuzz.arguments(module))
    assert list(placed(interp.evaluate(module, *arrays)))


def test_sizes_are_zero_as_often_as_the_source_says() -> None:
    """Few programs have an array without elements, or most do."""

    def empty(choices: Choices) -> bool:
        (result,) = leaves(single_op(choices, "transpose").entry.root_instruction.shape)
        return not result.elements

    rarely = sum(empty(Seeded(n)) for n in range(300))
    often = sum(empty(OftenEmpty(Seeded(n))) for n in range(300))
    assert rarely < 30 and often > 120


def test_dimensions_are_as_long_as_the_source_says() -> None:
    """From 4,096 elements of an operand on XLA has other kernels for reductions."""

    def many(choices: Choices) -> bool:
        module = single_op(choices, "reduce", element_types=[F32])
        return any(
            leaf.elements >= 4096 for p in module.entry.parameters for leaf in leaves(p.shape)
        )

    rarely = sum(many(Seeded(n)) for n in range(300))
    often = sum(many(OftenLong(Seeded(n))) for n in range(300))
    assert 0 < rarely < 110 < often


def test_rows_are_as_long_as_vectors() -> None:
    """Rows are as long as vectors, or an element longer or shorter; all ways of reading memory are
    drawn, and types of each width are read as those of another."""
    opcodes, widths = set[str](), set[tuple[int, int]]()
    for module in examples(rows, 200, "rows"):
        hlo.verify(module)
        root = module.entry.root_instruction
        for shape in hlo.types.leaves(root.shape):
            assert min((shape.dims[-1] + d) % 16 for d in (-1, 0, 1)) == 0
        types = {i.name: i.shape for i in module.entry.instructions}
        for instruction in module.entry.instructions:
            opcodes.add(instruction.opcode)
            if instruction.opcode in ("convert", "bitcast-convert"):
                pair = types[instruction.operands[0]], instruction.shape
                widths.add(tuple(shape.element_type.bits for shape in pair))
    assert opcodes.issuperset(READS)
    assert widths >= {(a, b) for a in (8, 16, 32, 64) for b in (8, 16, 32, 64)}


def test_generators_are_named_as_their_opcodes() -> None:
    for opcode, (generator, _) in GENERATORS.items():
        assert getattr(generator, "__name__", "") in ("generator", function_name(opcode))


# Opcodes without a generator, and why.
NOT_DRAWN = {
    "parameter": "the builder makes one wherever a value is asked for",
    "infeed": "reads what a host sends",
    "outfeed": "sends to a host",
    "send": "another program, or the host, receives it",
    "send-done": "ends a send",
    "recv": "another program, or the host, sends it",
    "recv-done": "ends a recv",
}


def test_every_opcode_has_a_generator() -> None:
    missing = set(OPCODES) - set(GENERATORS) - set(NOT_DRAWN)
    assert not missing, f"no generator in fuzz/draw/generators: {sorted(missing)}"
    assert set(OPCODES) >= set(NOT_DRAWN) and not set(GENERATORS) & set(NOT_DRAWN)


@pytest.mark.parametrize("opcode", ["collective-permute", "custom-call", "pad", "reduce-window"])
def test_an_instruction_is_inside_of_what_runs_it(opcode: str) -> None:
    """A nested program has its instruction inside of branches, loops, calls and fusions, and of
    maps if it can compute scalars."""
    outer, inside = set[str](), 0
    for module in examples(lambda choices: nested_op(choices, opcode), 60, opcode):
        hlo.verify(module)
        assert hlo.parse(hlo.format(module)) == module
        called = [c for c in module.computations if c.name != module.entry_name]
        inside += any(i.opcode == opcode for c in called for i in c.instructions)
        outer |= {i.opcode for i in module.entry.instructions}
    scalar = GENERATORS[opcode][1](ArrayShape(F32))
    assert outer >= {"call", "conditional", "fusion", "while"} and ("map" in outer) == scalar
    assert inside > 50


def test_each_kind_of_types_is_as_likely() -> None:
    """Each kind of types is as likely, however many types it has; among ordinary types each type
    is."""
    choices = Seeded(1)
    drawn = Counter(by_kind(choices, ALL_TYPES).name for _ in range(3000))
    assert set(drawn) == {t.name for t in ALL_TYPES}
    assert drawn["f8e8m0fnu"] > 150 and drawn["f8e8m0fnu"] > 5 * drawn["s32"] / 2
    ordinary = Counter(by_kind(choices, TYPES).name for _ in range(3000))
    assert set(ordinary) == {t.name for t in TYPES} and ordinary["pred"] < 300


def test_operands_of_the_same_sizes_have_the_same_bounded_dimension() -> None:
    """Operands of the same sizes mostly have the same bounded dimension: an instruction of several
    operands takes no others."""

    def sums(choices: Choices) -> hlo.Module:
        builder = Builder(choices, menu(("add",)), TYPES, 0)
        shapes = [ArrayShape(F32, (3, 3, 3))] * 2
        names = [builder.leaf(shape) for shape in shapes]
        return builder.module([builder.emit("add", shapes[0], *names)])

    agree = list[bool]()
    for module in examples(lambda choices: loosened(choices, sums(choices), OF_OPERANDS), 150, 3):
        hlo.verify(module)
        sized = [i for i in module.entry.instructions if i.opcode == "set-dimension-size"]
        dimensions = [i.attributes["dimensions"] for i in sized[:2]]
        agree += [dimensions[0] == dimensions[1]] if len(dimensions) == 2 else []
    assert len(agree) > 40 and sum(agree) > 0.65 * len(agree)


def test_sorts_of_complex_numbers_alone_have_an_order() -> None:
    """It is irreflexive: no element is before another one."""
    shape = ArrayShape(C64, (3,))
    for seed in range(8):
        builder = Builder(Seeded(f"complex {seed}"), menu(), TYPES, 0)
        value = builder.leaf(shape)
        order = comparator(builder, [C64], [value])
        ordered = builder.emit("sort", shape, value, dimensions=(0,), to_apply=order)
        root = builder.module([ordered]).computation(order).root_instruction
        literal = root.attributes["literal"]
        assert isinstance(literal, Literal) and not literal.value


def test_every_family_of_generators_is_drawn_from() -> None:
    families = (
        importlib.import_module(f"{generators.__name__}.{info.name}")
        for info in pkgutil.iter_modules(generators.__path__)
    )
    there = {opcode: row for family in families for opcode, row in family.GENERATORS.items()}
    assert there == GENERATORS


def test_a_value_of_more_dimensions_than_are_drawn() -> None:
    """Some instructions must have one more for an operand."""
    wide = ArrayShape(F32, (2, 1, 2, 1, 1, 2))
    for opcode, (generator, accepts) in GENERATORS.items():
        for seed in range(6 if accepts(wide) else 0):
            generator(Builder(Seeded(f"{opcode} {seed}"), menu(), TYPES, 6), wide)


def test_a_choice_of_opcodes_and_types_is_kept() -> None:
    from hlo.types import F64

    chosen = fuzz.modules(
        opcodes=("add", "negate", "dynamic-slice"), element_types=(F64,), max_instructions=5
    )

    @settings(max_examples=20, deadline=None)
    @given(chosen)
    def check(module: hlo.Module) -> None:
        opcodes = {i.opcode for i in module.entry.instructions}
        assert opcodes <= {"add", "negate", "dynamic-slice", "parameter", "constant", "tuple"}

    check()


_FEW = ("add", "negate", "pad", "reshape", "slice", "transpose", "while")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("defect", "opcodes"),
    [(_transposes, _FEW), (_pads_less, _FEW), (_slices_padded, ("add", "pad", "slice"))],
)
def test_what_fails_shrinks_to_a_few_instructions(
    defect: Callable[[hlo.Module], bool], opcodes: tuple[str, ...]
) -> None:
    module = find(
        fuzz.modules(max_instructions=6, opcodes=opcodes),
        defect,
        settings=settings(max_examples=500, database=None, suppress_health_check=list(HealthCheck)),
        random=random.Random(1),
    )
    lines = [i for i in module.entry.instructions if i.opcode not in ("parameter", "constant")]
    assert len(lines) <= 4, hlo.format(module)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_computations_are_valid(data: st.DataObject) -> None:
    shapes = [ArrayShape(F32, (3,)), TupleShape((ArrayShape(S32),))]
    result = ArrayShape(F32, (2, 2))
    called = data.draw(fuzz.computations(shapes, result))
    assert [p.shape for p in called[-1].parameters] == shapes
    root = called[-1].root_instruction.shape
    assert isinstance(root, ArrayShape) and root.dims == result.dims
    parameters = [
        Instruction(f"p{n}", shape, "parameter", (), {"parameter_number": n})
        for n, shape in enumerate(shapes)
    ]
    call = Instruction("r", result, "call", ("p0", "p1"), {"to_apply": called[-1].name})
    hlo.verify(hlo.Module("m", (*called, Computation("e", (*parameters, call), "r")), "e"))


def test_no_module_of_the_package_hides_a_strategy() -> None:
    names = {path.stem for path in Path(fuzz.__file__).parent.iterdir()}
    assert not names & set(fuzz.__all__)


def test_a_long_program_ends_before_the_stack_does() -> None:
    hlo.verify(program(Seeded(5), max_instructions=200))


def test_called_computations_have_the_opcodes_of_the_program_alone() -> None:
    callers = ("call", "conditional", "map", "while")
    own = {"parameter", "constant", "broadcast", "tuple", "get-tuple-element", "compare", "add"}
    for number in range(20):
        module = program(Seeded(f"alone {number}"), opcodes=(*callers, "multiply"))
        drawn = {i.opcode for c in module.computations for i in c.instructions}
        assert drawn <= own.union(callers, ("multiply",))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no foo can be drawn"):
        program(Seeded(0), opcodes=("foo",))
    with pytest.raises(ArgumentError, match="no foo can be drawn"):
        single_op(Seeded(0), "foo")
    with pytest.raises(ArgumentError, match="popcnt has no result of f32: give s32, s8"):
        single_op(Seeded(0), "popcnt", element_types=(F32,))
    with pytest.raises(ArgumentError, match="no type of elements"):
        program(Seeded(0), element_types=())


def test_what_another_thread_computes_is_seen() -> None:
    """Some of its results depend on more than the first operand, and no constant is long."""
    masks = list[bool]()
    for number in range(100):
        module = program(Seeded(f"thread {number}"), opcodes=("async-done", "compare", "negate"))
        constants = dict[str, Literal]()
        for i in (i for c in module.computations for i in c.instructions):
            literal = i.attributes.get("literal")
            if isinstance(literal, Literal):
                assert literal.shape.elements <= MOST_CONSTANT_ELEMENTS
                constants[i.name] = literal
            elif i.opcode == "select":
                name = i.operands[0]
                masks.append(name in constants and bool(np.all(constants[name].value)))
    assert masks and sum(masks) < 0.8 * len(masks)


def test_dots_have_three_contracting_dimensions_and_floats_become_integers() -> None:
    def drawn(choices: Choices) -> hlo.Module:
        return single_op(choices, "dot", element_types=(S32,), operand_types=TYPES, max_elements=64)

    kinds, counts = set[str](), set[int]()
    for module in examples(drawn, 60, "dots"):
        hlo.verify(module)
        counts.add(len(module.entry.root_instruction.attributes["lhs_contracting_dims"]))
        kinds.update(
            leaf.element_type.kind for p in module.entry.parameters for leaf in leaves(p.shape)
        )
    assert counts == {0, 1, 2, 3} and "float" in kinds
