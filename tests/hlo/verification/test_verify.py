"""The verifier: what holds of every instruction, where errors point, and hostile modules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import CORPUS
from cost import python_calls
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from hlo.attributes import Attribute
from hlo.module import Computation, Instruction, Module
from hlo.types import F32, ArrayShape, Layout, Shape

PROGRAMS = sorted(CORPUS.glob("*/*.txt"))
SCALAR = ArrayShape(F32)

LOOP = """HloModule m
below { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
sum { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
next { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[2]{0} get-tuple-element(s), index=1
  o = f32[] constant(0)
  t = f32[] reduce(v, o), dimensions={0}, to_apply=sum
  b = f32[2]{0} broadcast(t), dimensions={}
  ROOT r = (s32[], f32[2]) tuple(j, b) }
ENTRY main { a = f32[2] parameter(0)
  k = s32[] parameter(1)
  s = (s32[], f32[2]) tuple(k, a)
  w = (s32[], f32[2]) while(s), condition=below, body=next
  u = f32[2] get-tuple-element(w), index=1
  p = f32[4]{0} pad(u, f), padding=1_1
  d = f32[2] dynamic-slice(p, k), dynamic_slice_sizes={2}
  ROOT q = f32[2,2] dot(d, u)
}""".replace("  p = ", "  f = f32[] constant(1)\n  p = ")


def instruction(
    name: str,
    opcode: str,
    operands: tuple[str, ...] = (),
    attributes: Mapping[str, Attribute] | None = None,
    shape: Shape = SCALAR,
) -> Instruction:
    return Instruction(name, shape, opcode, operands, attributes or {})


def parameter(number: int) -> Instruction:
    return instruction(f"p{number}", "parameter", (), {"parameter_number": number})


def computation(name: str, *instructions: Instruction) -> Computation:
    return Computation(name, instructions, instructions[-1].name)


def rejected(*computations: Computation) -> str:
    module = Module("m", computations, computations[-1].name)
    with pytest.raises(hlo.VerifyError) as error:
        hlo.verify(module)
    return str(error.value)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_real_programs(path: Path) -> None:
    hlo.verify(hlo.parse(path.read_text()))


def test_an_error_names_line_instruction_op_and_constraint() -> None:
    text = LOOP.replace("dynamic_slice_sizes={2}", "dynamic_slice_sizes={5}")
    line = text[: text.index("  d = ")].count("\n") + 1
    with pytest.raises(hlo.VerifyError) as error:
        hlo.verify(hlo.parse(text))
    expected = f"{line}: %d = dynamic-slice, C2: size 5 exceeds dimension 4 of f32[4]{{0}}"
    assert str(error.value) == expected


def test_the_declared_shape_is_the_inferred_one() -> None:
    text = LOOP.replace("ROOT q = f32[2,2]", "ROOT q = f32[4]")
    with pytest.raises(hlo.VerifyError, match=r"%q = dot, shape: .*f32\[2,2\].*f32\[4\]"):
        hlo.verify(hlo.parse(text))


def test_there_are_no_arrays_of_tokens() -> None:
    hlo.verify(hlo.parse("HloModule m\nENTRY e { ROOT x = token[] parameter(0) }"))
    with pytest.raises(hlo.VerifyError, match=r"rank: token\[2\]: there are no arrays of token"):
        hlo.verify(hlo.parse("HloModule m\nENTRY e { ROOT x = token[2] parameter(0) }"))


def test_parameters_are_numbered_from_zero() -> None:
    assert "p1 = parameter, parameters: " in rejected(computation("e", parameter(1)))
    twice = parameter(0)._replace(name="q")
    assert "q = parameter, parameters: " in rejected(computation("e", parameter(0), twice))
    none = instruction("p", "parameter")
    assert "p = parameter, parameters: " in rejected(computation("e", none))


def test_what_only_a_module_that_was_not_parsed_can_get_wrong() -> None:
    negate = instruction("n", "negate", ("x",))
    assert rejected(computation("e", negate)) == "%n = negate, operands: there is no 'x' above"
    again = instruction("p0", "negate", ("p0",))
    assert "%p0 = negate, names: " in rejected(computation("e", parameter(0), again))
    unknown = instruction("n", "frobnicate", ("p0",))
    assert "%n = frobnicate, opcode: " in rejected(computation("e", parameter(0), unknown))
    twisted = instruction("n", "copy", ("p0",), None, ArrayShape(F32, (), (), Layout((0,))))
    assert "%n = copy, layout: " in rejected(computation("e", parameter(0), twisted))
    assert "root 'x'" in rejected(Computation("e", (parameter(0),), "x"))
    same = computation("e", parameter(0))
    assert "defined twice" in rejected(same, same)
    with pytest.raises(hlo.VerifyError, match="entry"):
        hlo.verify(Module("m", (same,), "absent"))


def test_calls_go_to_computations_above() -> None:
    call = instruction("c", "call", ("p0",), {"to_apply": "f"})
    assert "%c = call, calls: " in rejected(computation("e", parameter(0), call))
    assert "%c = call, calls: " in rejected(computation("f", parameter(0), call))
    below = computation("f", parameter(0))
    assert "%c = call, calls: " in rejected(computation("e", parameter(0), call), below)


def test_calls_do_not_nest_without_end() -> None:
    chain = [computation("f0", parameter(0))]
    for n in range(1000):
        call = instruction("c", "call", ("p0",), {"to_apply": f"f{n}"})
        chain.append(computation(f"f{n + 1}", parameter(0), call))
    assert "calls nest deeper" in rejected(*chain)


@pytest.mark.parametrize("size", [2000, 20000])
def test_time_is_linear_in_the_instructions(size: int) -> None:
    found = [parameter(n) for n in range(size)]
    found += [instruction(f"n{n}", "negate", (f"p{n}",)) for n in range(size)]
    module = Module("m", (computation("e", *found),), "e")
    assert python_calls(lambda: hlo.verify(module)) < 100 * size


@pytest.mark.parametrize("size", [1000, 8000])
def test_time_is_linear_in_the_calls(size: int) -> None:
    long = [instruction(f"n{n}", "negate", ("p0",)) for n in range(size)]
    calls = [instruction(f"c{n}", "call", ("p0",), {"to_apply": "f"}) for n in range(size)]
    found = (computation("f", parameter(0), *long), computation("e", parameter(0), *calls))
    module = Module("m", found, "e")
    assert python_calls(lambda: hlo.verify(module)) < 100 * size


# A module that is nearly right is refused with a VerifyError, or accepted, but never breaks the
# verifier.


@st.composite
def mutations(draw: st.DrawFn, module: Module) -> Module:
    """The module with one instruction changed: another opcode, operand, shape or attribute."""
    where = draw(st.integers(0, len(module.computations) - 1))
    changed = module.computations[where]
    place = draw(st.integers(0, len(changed.instructions) - 1))
    before = changed.instructions[place]
    every = [i for c in module.computations for i in c.instructions]
    other = draw(st.sampled_from(every))
    above = tuple(i.name for i in changed.instructions[:place])
    operands = st.lists(st.sampled_from(above), max_size=5) if above else st.just([])
    numbers = st.integers(-2, 5)
    tuples = st.lists(numbers, max_size=3).map(tuple)
    attribute: dict[str, Attribute] = {}
    for name, value in before.attributes.items():
        if isinstance(value, tuple) and all(isinstance(x, int) for x in value):
            attribute[name] = draw(tuples)
        elif isinstance(value, int) and not isinstance(value, bool):
            attribute[name] = draw(numbers)
        elif value in [c.name for c in module.computations]:
            attribute[name] = draw(st.sampled_from(module.computations)).name
        else:
            attribute[name] = value
    after = draw(
        st.sampled_from(
            (
                before._replace(opcode=other.opcode),
                before._replace(opcode=other.opcode, attributes=other.attributes),
                before._replace(shape=other.shape),
                before._replace(operands=tuple(draw(operands))),
                before._replace(attributes=attribute),
                other._replace(name=before.name, operands=tuple(draw(operands))),
            )
        )
    )
    instructions = (*changed.instructions[:place], after, *changed.instructions[place + 1 :])
    new = Computation(changed.name, instructions, changed.root)
    found = (*module.computations[:where], new, *module.computations[where + 1 :])
    return Module(module.name, found, module.entry_name)


SMALL = [hlo.parse(LOOP)] + [
    hlo.parse(path.read_text()) for path in PROGRAMS if path.stat().st_size < 12_000
]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_mutated_modules_raise_nothing_but_verify_errors(data: st.DataObject) -> None:
    module = data.draw(st.sampled_from(SMALL))
    mutated = data.draw(mutations(module))
    try:
        hlo.verify(mutated)
    except hlo.VerifyError:
        return


@pytest.mark.parametrize(("operand", "is_right"), [("x", True), ("y", True), ("a", False)])
def test_alike_in_text_is_not_alike(operand: str, is_right: bool) -> None:
    """Instructions that are alike are checked once: alike in the shapes of operands, too."""
    module = hlo.parse(f"""HloModule alike
ENTRY main {{
  x = f32[2,3] parameter(0)
  y = f32[3,3] parameter(1)
  a = f32[1,3] slice(x), slice={{[1:2], [0:3]}}
  ROOT b = f32[1,3] slice({operand}), slice={{[1:2], [0:3]}}
}}
""")
    if is_right:
        hlo.verify(module)
    else:
        with pytest.raises(hlo.VerifyError, match="%b = slice, C"):
            hlo.verify(module)


_ADD = "sum { x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y) }\n"
_ONE = "one { ROOT x = f32[] parameter(0) }\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("ROOT r = f32[3] add(a)", "operands: 1 operand, 2 are needed"),
        ("ROOT r = f32[3] add(a, a, a)", "operands: 3 operands, 2 are needed"),
        ("ROOT r = f32[3] negate(a, a)", "operands: 2 operands, 1 is needed"),
        ("ROOT r = (f32[3]) tuple(b)", "parameter(9) of 2 parameters: numbers start at 0"),
        (
            "ROOT r = f32[3] map(a, a), dimensions={0}, to_apply=one",
            "C3: one has 1 parameter, 2 are passed",
        ),
        (
            "ROOT r = f32[3] map(a), dimensions={0}, to_apply=sum",
            "C3: sum has 2 parameters, 1 is passed",
        ),
        *(
            (
                f"ROOT r = f32[3] reduce-window(a, i), to_apply=sum, window={{{window}}}",
                f"C3: {said} of window dimension 0 is not positive",
            )
            for window, said in [
                ("size=2 stride=0", "stride=0"),
                ("size=0", "size=0"),
                ("size=2 lhs_dilate=0", "lhs_dilate=0"),
                ("size=2 rhs_dilate=0", "rhs_dilate=0"),
            ]
        ),
    ],
)
def test_messages_count_and_name(body: str, said: str) -> None:
    parameter = "b = f32[3] parameter(9)\n" if "tuple(b)" in body else ""
    text = f"HloModule m\n{_ADD}{_ONE}ENTRY e {{\na = f32[3] parameter(0)\n{parameter}"
    module = hlo.parse(f"{text}i = f32[] constant(0)\n{body} }}")
    with pytest.raises(hlo.VerifyError) as caught:
        hlo.verify(module)
    assert said in str(caught.value)


def test_a_parameter_of_one_is_told_in_the_singular() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT a = f32[3] parameter(9) }")
    with pytest.raises(hlo.VerifyError, match="of 1 parameter: numbers start at 0"):
        hlo.verify(module)
