"""Text to modules and back: the corpus, the errors, the constants."""

import contextlib

import numpy as np
import pytest
from conftest import CORPUS
from cost import cost
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from hlo.text.literals import LiteralError, read_literal, show_literal
from hlo.types import ELEMENT_TYPES, ArrayShape

FILES = sorted(CORPUS.glob("*/*.txt"))

HEAD = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_corpus_round_trips(path) -> None:  # type: ignore[no-untyped-def]
    module = hlo.parse(path.read_text())
    for dialect in ("short", "long"):
        assert hlo.parse(hlo.format(module, dialect)) == module


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "expected HloModule", 1, 1),
        ("HloModule m\n", "a module needs a computation", 2, 1),
        (HEAD + "  y = f32[2] addd(x, x)\n}", "unknown opcode 'addd'; did you mean 'add'?", 4, 14),
        (HEAD + "  y = f32[2] add(x, y0)\n}", "operand 'y0' is not defined above", 4, 21),
        (HEAD + "  y = f32[2] add(x, x), foo=1\n}", "unexpected attribute 'foo'", 4, 25),
        (HEAD + "  y = q32[2] add(x, x)\n}", "unknown element type 'q32'", 4, 7),
        (HEAD + "  x = f32[2] add(x, x)\n}", "instruction 'x' is defined twice", 4, 3),
        (HEAD + "  y = f32[2] add(x, x", "nothing closes this '('", 4, 17),
        (HEAD + "  y = f32[2] add(x, x)", "expected an instruction", 4, 23),
        (HEAD + "  y = f32[2] constant({1})\n}", "expected 2 elements for f32[2], found 1", 4, 23),
        (HEAD + "  y = s8[] constant(128)\n}", "value 128 is out of range for s8", 4, 21),
        (HEAD + "  y = f32[2] reverse(f32[3] x)\n}", "operand 'x' is f32[2], not f32[3]", 4, 22),
        (HEAD + "  y = f32[2] reverse(x), dimensions={a}\n}", "dimensions: expected", 4, 37),
    ],
)
def test_errors_say_where(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(hlo.ParseError) as caught:
        hlo.parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_an_error_shows_the_line_and_a_caret() -> None:
    with pytest.raises(hlo.ParseError) as caught:
        hlo.parse(HEAD + "  y = f32[2] addd(x, x)\n}")
    assert str(caught.value).splitlines() == [
        "4:14: unknown opcode 'addd'; did you mean 'add'?",
        "  y = f32[2] addd(x, x)",
        "             ^",
    ]


@pytest.mark.parametrize("cut", range(0, 2000, 37))
def test_every_prefix_is_a_module_or_an_error_of_ours(cut: int) -> None:
    text = (CORPUS / "jax" / "mnist_train.cpu_after_optimizations.txt").read_text()
    with contextlib.suppress(hlo.ParseError):
        assert hlo.parse(text[: 3000 + cut]).computations


NUMBERS = [name for name, t in ELEMENT_TYPES.items() if t.is_array]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", NUMBERS)
@settings(deadline=None)  # the first example of a type fills caches
@given(data=st.data())
def test_constants_keep_every_bit(name: str, data: st.DataObject) -> None:
    """Values with NaN (and its payload where the type is IEEE's), infinities, subnormals."""
    element_type = ELEMENT_TYPES[name]
    width = max(8, element_type.bits)
    if element_type.kind == "pred":
        value = np.array(data.draw(st.lists(st.booleans(), min_size=3, max_size=3)), bool)
    elif element_type.bits < 8 and element_type.is_integer:
        low = -(2 ** (element_type.bits - 1)) if element_type.kind == "signed" else 0
        numbers = st.integers(low, low + 2**element_type.bits - 1)
        value = np.array([data.draw(numbers) for _ in range(3)]).astype(element_type.numpy)
    else:
        codes = st.integers(0, 2 ** min(element_type.bits, width) - 1)
        raw = b"".join(data.draw(codes).to_bytes(width // 8, "little") for _ in range(3))
        value = np.frombuffer(raw, element_type.numpy)
    shape = ArrayShape(element_type, (3,))
    text = show_literal(hlo.literal.Literal(shape, value))
    again = read_literal(shape, text).value
    assert isinstance(again, np.ndarray)
    wide = np.complex128 if element_type.is_complex else np.float64
    plain = value.astype(wide) == value.astype(wide)  # narrow NaNs have no payload in text
    if name in ("f16", "bf16", "f32", "f64"):
        plain[:] = True
    assert [again[n].tobytes() for n in range(3) if plain[n]] == [
        value[n].tobytes() for n in range(3) if plain[n]
    ]


def test_decimals_are_rounded_once() -> None:
    """1 + 2^-24 + 2^-60 is above the middle of two f32: rounding to f64 first would lose that."""
    text = "1.00000005960464477626"  # 2^-24 is 5.9604644775390625e-08
    value = read_literal(ArrayShape(ELEMENT_TYPES["f32"]), text).value
    assert float(value) == 1.0000001192092896  # type: ignore[arg-type]
    value = read_literal(ArrayShape(ELEMENT_TYPES["f32"]), "1.000000059604644775390625").value
    assert float(value) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("f16", "65520"), ("f32", "3.5e38"), ("f8e4m3fn", "465"), ("u4", "16"), ("s4", "-9"),
        ("pred", "1.5"), ("f32", "true"), ("f32", "+1"), ("f32", ".5"), ("f32", "0x10"),
        ("f32", "nan(0x0)"), ("f32", "nan(0xffffffff)"), ("f32", "{...}"), ("s32", "1e3"),
        ("c64", "(1)"), ("f32", "1e999999999999"),
    ],
)  # fmt: skip
def test_what_is_no_constant(type_name: str, text: str) -> None:
    with pytest.raises(LiteralError):
        read_literal(ArrayShape(ELEMENT_TYPES[type_name]), text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "unit",
    ["(", "{", "/*", "/* */", '"', "//\n", "f32[", "x = ", "a, ", "{{1},", "1,", "\\", "%x", "->"],
)
def test_time_is_linear_in_hostile_text(unit: str) -> None:
    """Four times the text takes at most some ten times as long."""

    def taken(count: int) -> float:
        text = HEAD + "  y = f32[2] constant(" + unit * count

        def refuse() -> None:
            with pytest.raises(hlo.ParseError):
                hlo.parse(text)

        return cost(refuse, 0)

    taken(1000)
    assert taken(40_000) < max(12 * taken(10_000), 150)
