"""The constraints of elementwise ops."""

import pytest
from verdicts import label, rows

import hlo

KINDS = {
    "pred": "pred[2]",
    "signed": "s32[2]",
    "unsigned": "u8[2]",
    "float": "bf16[2]",
    "complex": "c64[2]",
}
# Which kinds of elements each op takes; XLA infers more shapes than it has meanings for.
UNARY = {
    "negate": "signed unsigned float complex",
    "abs sign": "signed float complex",
    "not": "pred signed unsigned",
    "popcnt count-leading-zeros": "signed unsigned",
    "ceil floor round-nearest-afz round-nearest-even erf cbrt is-finite": "float",
    "acos acosh asin asinh atanh cosine cosh exponential exponential-minus-one log log-plus-one"
    " logistic rsqrt sine sinh sqrt tan tanh real imag": "float complex",
}
BINARY = {
    "add multiply": "pred signed unsigned float complex",
    "maximum minimum": "pred signed unsigned float",
    "subtract divide power": "signed unsigned float complex",
    "remainder": "signed unsigned float",
    "and or xor": "pred signed unsigned",
    "shift-left shift-right-arithmetic shift-right-logical mulhi": "signed unsigned",
    "atan2": "float complex",
}
CASES = [
    (opcode, arity, kind, kind in kinds.split())
    for arity, table in ((1, UNARY), (2, BINARY))
    for opcodes, kinds in table.items()
    for opcode in opcodes.split()
    for kind in KINDS
]


@pytest.mark.parametrize(("opcode", "arity", "kind", "legal"), CASES)
def test_kinds_of_elements(opcode: str, arity: int, kind: str, legal: bool) -> None:
    shape = KINDS[kind]
    part = opcode in ("abs", "real", "imag") and kind == "complex"
    result = {"is-finite": "pred[2]"}.get(opcode, "f32[2]" if part else shape)
    instruction = f"{result} {opcode}({', '.join('ab'[:arity])})"
    assert label(f"{shape} {shape}", instruction) == ("" if legal else "C2")


@rows("""
 | f32[<=2,3] f32[2,3] | f32[<=2,3] add(a, b)
 | f32[2,3] f32[<=2,3] | pred[<=2,3] compare(a, b), direction=LT
 | f32[2]{0} f32[2] | f32[2] add(a, b)
 | f32[<=2,3] f32[2,3] | f32[2,3] add(a, b)
shape | f32[2] f32[2] | f32[3] add(a, b)
shape | f32[2] f32[2] | f16[2] add(a, b)
shape | f32[2] f32[2] | (f32[2]) add(a, b)
C3 | f32[2] f32[3] | f32[2] add(a, b)
C3 | f32[2] f16[2] | f32[2] add(a, b)
C3 | f32[2] f32[] | f32[2] add(a, b)
C1 | (f32[2]) f32[2] | f32[2] add(a, b)
C1 | f32[] token[] | f32[] add(a, b)
C1 | token[] | token[] negate(a)
operands | f32[2] | f32[2] add(a)
operands | f32[2] f32[2] | f32[2] add(a, b, b)
attributes | f32[2] f32[2] | f32[2] add(a, b), dimensions={0}
""")
def test_binary(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[2] f32[2] | pred[2] compare(a, b), direction=LT, type=TOTALORDER
 | f32[2] f32[2] | pred[2] compare(a, b), direction=LT, type=FLOAT
 | s32[2] s32[2] | pred[2] compare(a, b), direction=GE, type=SIGNED
 | u32[2] u32[2] | pred[2] compare(a, b), direction=GE, type=UNSIGNED
 | pred[2] pred[2] | pred[2] compare(a, b), direction=NE, type=UNSIGNED
 | c64[2] c64[2] | pred[2] compare(a, b), direction=EQ
attributes | f32[2] f32[2] | pred[2] compare(a, b)
shape | f32[2] f32[2] | f32[2] compare(a, b), direction=LT
C1 | f32[2] f32[3] | pred[2] compare(a, b), direction=LT
C1 | f32[2] f16[2] | pred[2] compare(a, b), direction=LT
C1 | f32[2] (f32[2]) | pred[2] compare(a, b), direction=LT
parse | f32[2] f32[2] | pred[2] compare(a, b), direction=XX
parse | f32[2] f32[2] | pred[2] compare(a, b), direction=LT, type=PARTIAL
C3 | f32[2] f32[2] | pred[2] compare(a, b), direction=LT, type=SIGNED
C3 | u32[2] u32[2] | pred[2] compare(a, b), direction=LT, type=SIGNED
C4 | c64[2] c64[2] | pred[2] compare(a, b), direction=LT
""")
def test_compare(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[] f32[2] f32[2] | f32[2] clamp(a, b, c)
 | f32[2] f32[<=2] f32[2] | f32[<=2] clamp(a, b, c)
C1 | f32[] (f32[2]) f32[] | f32[2] clamp(a, b, c)
C2 | f32[] f16[2] f16[] | f16[2] clamp(a, b, c)
C2 | c64[] c64[2] c64[] | c64[2] clamp(a, b, c)
C3 | f32[1] f32[2] f32[] | f32[2] clamp(a, b, c)
operands | f32[] f32[2] | f32[2] clamp(a, b)
 | pred[] f32[2] f32[2] | f32[2] select(a, b, c)
 | pred[<=2] f32[2] f32[2] | f32[<=2] select(a, b, c)
C1 | pred[] (f32[2]) (f32[2]) | (f32[2]) select(a, b, c)
C2 | s32[2] f32[2] f32[2] | f32[2] select(a, b, c)
C3 | pred[2] f32[2] f16[2] | f32[2] select(a, b, c)
C3 | pred[2] f32[2] f32[3] | f32[2] select(a, b, c)
C4 | pred[1] f32[2] f32[2] | f32[2] select(a, b, c)
""")
def test_ternary(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[2] f32[2] | c64[2] complex(a, b)
 | f64[2] f64[2] | c128[2] complex(a, b)
C1 | f32[2] (f32[2]) | c64[2] complex(a, b)
C2 | bf16[2] bf16[2] | c64[2] complex(a, b)
C3 | f32[2] f64[2] | c64[2] complex(a, b)
C3 | f32[2] f32[3] | c64[2] complex(a, b)
 | f32[<=2] | s8[<=2] convert(a)
 | f32[2] | c64[2] convert(a)
 | c128[2] | c64[2] convert(a)
C1 | f32[2] | s8[3] convert(a)
C1 | f32[2] | token[] convert(a)
 | c64[2] | f32[2] convert(a)
 | f32[<=2] | s8[2] convert(a)
 | f32[2] | f32[2] reduce-precision(a), exponent_bits=5, mantissa_bits=0
C1 | s32[2] | s32[2] reduce-precision(a), exponent_bits=5, mantissa_bits=10
C2 | f32[2] | f32[2] reduce-precision(a), exponent_bits=0, mantissa_bits=10
C3 | f32[2] | f32[2] reduce-precision(a), exponent_bits=5, mantissa_bits=-1
attributes | f32[2] | f32[2] reduce-precision(a), exponent_bits=5
 | f32[2] u32[2] | s8[2] stochastic-convert(a, b)
C1 | f32[2] u32[3] | s8[2] stochastic-convert(a, b)
C2 | f32[2] u16[2] | s8[2] stochastic-convert(a, b)
C2 | f32[2] s32[2] | s8[2] stochastic-convert(a, b)
C2 | s32[2] u32[2] | s8[2] stochastic-convert(a, b)
C3 | f32[2] u32[2] | c64[2] stochastic-convert(a, b)
""")
def test_conversions(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


def test_the_message_says_what_would_be_right() -> None:
    text = "HloModule m\nENTRY e {\n  a = s32[2] parameter(0)\n  ROOT r = s32[2] floor(a)\n}"
    with pytest.raises(hlo.VerifyError) as error:
        hlo.verify(hlo.parse(text))
    assert str(error.value) == "4: %r = floor, C2: s32[2] is not of a float type"
