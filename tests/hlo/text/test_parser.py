"""Check what the parser returns: golden files per dialect, unusual forms, hostile patterns."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import CORPUS
from cost import cost

import hlo
from hlo.errors import ArgumentError
from hlo.literal import Literal
from hlo.types import F32, S32, ArrayShape, TupleShape

# One of each dialect: before and after optimisation, JAX and TensorFlow, with operand shapes,
# tables of files, fusions, bounded dimensions, computations in attributes.
GOLDEN = [
    "jax/while_scalar.before_optimizations",
    "jax/while_scalar.cpu_after_optimizations",
    "jax/scalar_tiny.cpu_after_optimizations",
    "jax/conv3x3_14_256.before_optimizations",
    "tensorflow/simple_add.before_optimizations",
    "tensorflow/concat_dynamic_sig.cpu_after_optimizations",
]


def outline(module: hlo.Module) -> str:
    """All that a module holds, one line per thing."""
    lines = [f"module {module.name} entry {module.entry_name}"]
    lines += [f"  {name} = {text}" for name, text in module.attributes.items()]
    lines += [f"  | {line}" for line in module.preamble.splitlines()]
    for computation in module.computations:
        lines.append(f"computation {computation.name} root {computation.root}")
        lines += [f"  {name} = {text}" for name, text in computation.annotations.items()]
        for instruction in computation.instructions:
            operands = " ".join(instruction.operands)
            line = f"  {instruction.name}: {instruction.shape} {instruction.opcode} {operands}"
            lines.append(line.rstrip())
            lines += [f"    {k} = {value(v)}" for k, v in instruction.attributes.items()]
            lines += [f"    {k} : {text}" for k, text in instruction.annotations.items()]
    return "\n".join(lines) + "\n"


def value(attribute: object) -> str:
    if isinstance(attribute, Literal) and isinstance(attribute.value, np.ndarray):
        return f"{attribute.shape} {attribute.value.tolist()}"
    return repr(attribute)


@pytest.mark.parametrize("name", GOLDEN)
def test_modules_are_these(name: str, golden: Callable[[str, str], None]) -> None:
    module = hlo.parse((CORPUS / f"{name}.txt").read_text())
    golden(f"parser/{name.replace('/', '_')}.txt", outline(module))


SUM = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def entry(body: str, before: str = "") -> hlo.Module:
    return hlo.parse(f"HloModule m\n{before}ENTRY e {{\n  x = f32[2] parameter(0)\n{body}\n}}\n")


def last(body: str, before: str = "") -> hlo.Instruction:
    return entry(body, before).entry.instructions[-1]


def test_a_module_on_one_line() -> None:
    module = hlo.parse(
        "HloModule m, is_scheduled=true ENTRY e { x = f32[2] parameter(0)"
        " y = f32[2] reverse(x), dimensions={0} ROOT z = f32[2] negate(y) }"
    )
    assert module.attributes == {"is_scheduled": "true"}
    assert [i.name for i in module.entry.instructions] == ["x", "y", "z"]
    assert module.entry.instructions[1].attributes == {"dimensions": (0,)}


def test_an_instruction_over_many_lines() -> None:
    body = """  y = f32[] // the sum
      reduce(x, /* from */ x),
      dimensions=
        {0}
      , to_apply=%add,
      metadata={op_name="//x /*" source_line=3}"""
    instruction = last(body, SUM)
    assert instruction.operands == ("x", "x")
    assert instruction.attributes == {"dimensions": (0,), "to_apply": "add"}
    assert instruction.annotations == {"metadata": '{op_name="//x /*" source_line=3}'}


def test_equal_tails_with_other_metadata() -> None:
    module = entry(
        '  y = f32[2] reverse(x), dimensions={0}, metadata={op_name="a}"}\n'
        '  z = f32[2] reverse(y), dimensions={0}, metadata={op_name="b"}\n'
        '  u = f32[2] reverse(z), dimensions={}, metadata={op_name="c"}, sharding={replicated}\n'
        "  v = f32[2] reverse(u), dimensions={0}"
    )
    _, y, z, u, v = module.entry.instructions
    assert [i.attributes["dimensions"] for i in (y, z, u, v)] == [(0,), (0,), (), (0,)]
    assert y.annotations == {"metadata": '{op_name="a}"}'}
    assert z.annotations == {"metadata": '{op_name="b"}'}
    assert u.annotations == {"metadata": '{op_name="c"}', "sharding": "{replicated}"}
    assert v.annotations == {}


def test_metadata_inside_of_another_attribute() -> None:
    module = entry(
        '  y = f32[2] negate(x), frontend_attributes={a="1", metadata={op_name="a"}}\n'
        '  z = f32[2] negate(y), frontend_attributes={a="1", metadata={op_name="b"}}'
    )
    texts = [i.annotations["frontend_attributes"] for i in module.entry.instructions[1:]]
    assert texts == ['{a="1", metadata={op_name="a"}}', '{a="1", metadata={op_name="b"}}']


def test_names() -> None:
    body = '  %"a name" = f32[2] negate(%x)\n  ROOT -b = f32[2] negate(x)'
    with pytest.raises(hlo.ParseError, match="expected an instruction"):
        entry(body)
    instruction = last('  %"a name" = f32[2] negate(%x)\n  ROOT b-1.c = f32[2] negate("a name")')
    assert (instruction.name, instruction.operands) == ("b-1.c", ("a name",))


def test_the_root_is_the_last_and_the_entry_too_unless_told() -> None:
    module = hlo.parse(f"HloModule m\n{SUM}\n other {{ y = f32[] parameter(0) z = f32[] tan(y) }}")
    assert module.entry_name == "other"
    assert module.entry.root == "z"


def test_bare_computations() -> None:
    module = hlo.parse(SUM + "// end")
    assert (module.name, module.entry_name, module.attributes) == ("module_add", "add", {})


def test_elided_constants_of_every_rank_but_0() -> None:
    literal = last("  c = f32[3,2]{1,0} constant({...})").attributes["literal"]
    assert isinstance(literal, Literal)
    assert literal.is_elided
    with pytest.raises(hlo.ParseError, match="does not stand for a scalar"):
        entry("  c = f32[] constant({...})")


def test_elided_constants_differ_from_those_that_are_there() -> None:
    elided, there, other = (
        last(f"  c = f32[2] constant({text})").attributes["literal"]
        for text in ("{...}", "{1, 2}", "{...}")
    )
    assert elided != there
    assert there != elided
    assert elided == other
    whole, part = (
        last(f"  c = (f32[2], f32[1]) constant(({text}, {{1}}))").attributes["literal"]
        for text in ("{1, 2}", "{...}")
    )
    assert whole != part
    assert part != whole


def test_tuple_shapes_and_comments_in_them() -> None:
    shape = last("  t = (f32[2], /*index=1*/(s32[], f32[2])) tuple(x, x)").shape
    vector = ArrayShape(F32, (2,))
    assert shape == TupleShape((vector, TupleShape((ArrayShape(S32), vector))))


def test_tiled_layouts_and_bounds() -> None:
    shape = last("  c = bf16[8,<=128]{1,0:T(8,128)(2,1)S(1)} custom-call(x)").shape
    assert str(shape) == "bf16[8,<=128]{1,0:T(8,128)(2,1)S(1)}"


def test_operand_shapes_are_compared() -> None:
    assert last("  y = f32[2] negate(f32[2]{0} %x)").operands == ("x",)
    assert last("  y = f32[2] negate(f32[2] x)").shape == ArrayShape(F32, (2,))
    with pytest.raises(hlo.ParseError, match=r"operand 'x' is f32\[2\], not f32\[3\]"):
        entry("  y = f32[2] negate(f32[3]{0} %x)")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('metadata={op_name="abc}', 43),
        ("metadata={op_name='abc}", 43),
        ('metadata={op_name="abc\\"}', 43),
        ('metadata={op_name="abc\\', 43),
        ('metadata={op_name="a" source_file="abc}', 59),
        ('metadata={op_name="abc}\n  z = f32[2] negate(y), metadata={op_name="def"}', 43),
    ],
)
def test_a_string_without_an_end_is_to_blame(text: str, column: int) -> None:
    """Not the brace around it, whose end it hides; nor the last one of a text, if it begins where
    another should end."""
    with pytest.raises(hlo.ParseError) as caught:
        entry(f"  y = f32[2] negate(x), {text}")
    assert caught.value.message == "nothing closes this string"
    assert caught.value.column == column and "negate(x)" in caught.value.source


def test_a_string_without_an_end_on_the_last_line_is_to_blame() -> None:
    text = 'HloModule m\nENTRY e { x = f32[] parameter(0), metadata={op_name="abc} }'
    with pytest.raises(hlo.ParseError, match="2:53: nothing closes this string"):
        hlo.parse(text)


def test_a_string_of_two_lines_is_one() -> None:
    found = last('  y = f32[2] negate(x), metadata={op_name="a\nb"}')
    assert "a\nb" in found.annotations["metadata"]


def test_a_byte_order_mark_is_skipped() -> None:
    text = "HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }"
    assert hlo.parse("\ufeff" + text) == hlo.parse(text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  y = f32[2] negate(x), dimensions={0}, dimensions={0}", "given twice"),
        ("  y = f32[2] map(x), to_apply=ad", "computation 'ad' is not defined above; did you mean"),
        ("  y = f32[2] negate(x), metadata={(a}", "unexpected '}'"),
        ('  y = f32[2] negate(x), backend_config="abc', "nothing closes this string"),
        ("  y = f32[2] negate(x]", "unexpected ']'"),
        ("  y = f32[2] parameter(x)", "expected the number of a parameter"),
        ("  y = f32[2] parameter(99999999999)", "expected the number of a parameter"),
        (
            "  y = f32[2] constant({1,2}), literal=s32[] 1",
            "unexpected attribute 'literal' of a constant",
        ),
        ("  y = f32[9223372036854775808] negate(x)", "more elements than 64 bits"),
        ("  y = f32[4294967296,4294967296] negate(x)", "more elements than 64 bits"),
        ("  y = f32[99999999999999999999] negate(x)", "expected a dimension"),
        ("  y = f32[2]{1} negate(x)", "does not permute 1 dimensions"),
        ("  y = f32[2]{a} negate(x)", "expected a layout"),
        ("  y = f32[²] negate(x)", "expected a dimension"),
        ("  y = " + "(" * 70 + ")" * 70 + " negate(x)", "nested deeper than 64"),
        ("  y = reshape(x)", "expected a shape"),
        ("  y = f32[2] negate(x) z", "expected an instruction"),
        ("  /* y = f32[2] negate(x)", "nothing closes this comment"),
        ("  ROOT y = f32[2] negate(x)\n  ROOT z = f32[2] negate(x)", "a second ROOT"),
    ],
)
def test_what_is_no_program(body: str, message: str) -> None:
    with pytest.raises(hlo.ParseError) as caught:
        entry(body, SUM)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule m, is_scheduled=true, is_scheduled=true\n" + SUM, "given twice"),
        ("HloModule m, a=1\n" + SUM, "unexpected attribute 'a' of a module; allowed: alias_"),
        (f"HloModule m\n{SUM}{SUM}", "computation 'add' is defined twice"),
        (f"HloModule m\nENTRY {SUM}ENTRY b {SUM[4:]}", "a second ENTRY"),
        ("HloModule m\nENTRY e { }", "a computation needs an instruction"),
        ("HloModule m\nENTRY e () f32[] {", "expected ->"),
        ("HloModule m\nENTRY e () -> f32[] x {", "expected {"),
        ("HloModule m\nadd (a: f32[]) -> s32[] " + SUM[4:], "the result is declared s32[], root"),
        ('HloModule m\nFileNames\n1 "a.py"\nnonsense', "expected a computation"),
    ],
)
def test_what_is_no_module(text: str, message: str) -> None:
    with pytest.raises(hlo.ParseError) as caught:
        hlo.parse(text)
    assert message in caught.value.message


def test_a_line_of_megabytes_is_shown_in_part() -> None:
    with pytest.raises(hlo.ParseError) as caught:
        entry("  y = f32[1000000] constant({" + "1, " * 999_999 + "x})")
    assert "expected a number" in caught.value.message
    assert len(str(caught.value)) < 400


def test_mutations_are_modules_or_parse_errors() -> None:
    paths = sorted(CORPUS.glob("*/*.txt"))
    texts = [text for path in paths if len(text := path.read_text()) < 5000]
    tokens = list("(){}[],=%\"'\\\n²\0") + ["/*", "*/", "//", "->", "1e999", "nan", "...", "ROOT "]
    generator = random.Random(2)
    for _ in range(600):
        text = generator.choice(texts)
        for _ in range(generator.randint(1, 4)):
            first = generator.randrange(len(text) + 1)
            behind = first + generator.choice((0, 0, 1, 9))
            piece = generator.choice(tokens) * generator.choice((0, 1, 1, 200))
            text = text[:first] + piece + text[behind:]
        try:
            module = hlo.parse(text)
        except hlo.ParseError:
            continue
        assert hlo.parse(hlo.format(module)) == module


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "unit",
    ['\\"', "'\"", '//"', '/*"*/', "(f32[2],", "f32[2] x ", " ", "\n", ", a={", "metadata={", "{}"],
)
@pytest.mark.parametrize(
    "before", ["  y = f32[2] negate(", "  y = (", "  y = f32[2] negate(x), a="]
)
def test_time_is_linear(unit: str, before: str) -> None:
    """Four times the text takes at most some ten times as long."""

    def taken(count: int) -> float:
        text = f"HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n{before}" + unit * count

        def refuse() -> None:
            with pytest.raises(hlo.ParseError):
                hlo.parse(text)

        return cost(refuse, 0)

    taken(1000)
    assert taken(40_000) < max(12 * taken(10_000), 150)


_LINES = {
    "computations without a name": (
        "r{0} = f32[] reduce(x, c), dimensions={{0}}, to_apply="
        "{{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }}"
    ),
    "starts": "q{0} = ((f32[2]), f32[2]) negate-start(x)\n d{0} = f32[2] negate-done(q{0})",
    "elements": "e{0} = f32[] negate(t#0)",
}


@pytest.mark.parametrize("what", [*_LINES, "undefined"])
def test_time_is_linear_in_names_that_are_made(what: str) -> None:
    """Four times the text takes less than eight times as long."""

    def text(count: int) -> str:
        if what == "undefined":
            shapes = ", ".join(["f32[]"] * count)
            return f"({shapes}) tuple({', '.join(f'f32[] x{n}' for n in range(count))})"
        start = "x = f32[2] parameter(0)\nt = (f32[]) parameter(1)\nc = f32[] constant(0)\n"
        lines = "\n".join(_LINES[what].format(n) for n in range(count))
        return f"HloModule m\nENTRY e {{\n{start}{lines}\n}}\n"

    # The fewest that tell: much faster ones are measured with more of them.
    count = 500 if what in ("elements", "undefined") else 200
    short, long = text(count), text(4 * count)
    hlo.parse(short)
    most = 8 * cost(lambda: hlo.parse(short), 0)
    assert cost(lambda: hlo.parse(long), most) < most


def test_reading_leaves_nothing_to_the_garbage_collector() -> None:
    """Parsing makes no cyclic garbage: its objects go to the oldest generation without a
    collection, where garbage would stay for long."""
    text = "\n".join(
        (
            "HloModule m",
            "ENTRY e { x = f32[2] parameter(0)",
            "  y = f32[2] map(x), dimensions={0}, to_apply={ a = f32[] parameter(0)",
            "    ROOT b = f32[] negate(a) }",
            "  ROOT z = f32[2] add(y, multiply(x, y)) }",
        )
    )
    hlo.parse(text)
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()  # Python 3.12 freezes some itself
    gc.collect()
    gc.disable()
    try:
        hlo.parse(text)
        assert gc.collect() == 0
        assert gc.get_freeze_count() == frozen
    finally:
        if enabled:
            gc.enable()


def test_the_name_of_a_file_is_no_program() -> None:
    with pytest.raises(hlo.ParseError, match=r"1:1: .*the name of a file; hlo_oracle\.load"):
        hlo.parse("dump/module_0001.jit_f.before_optimizations.txt")
    with pytest.raises(hlo.ParseError, match=r"an instruction\n"):
        hlo.parse("no program")


@pytest.mark.parametrize("given", [Path("model.hlo"), b"HloModule m", None])
def test_what_is_no_text_is_named(given: object) -> None:
    with pytest.raises(ArgumentError, match=r"parse reads a str, not .*hlo_oracle\.load"):
        hlo.parse(given)  # type: ignore[arg-type]
