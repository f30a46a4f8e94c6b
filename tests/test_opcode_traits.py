"""Traits of opcodes, checked by what programs of those opcodes do: who has one shows it, and who
has it not shows that, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import hlo
import interp
from fuzz.draw.choices import Seeded, examples
from fuzz.draw.programs import GENERATORS, single_op
from fuzz.draw.values import arguments, from_bits
from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Module
from hlo.opcodes import (
    ASSOCIATIVE,
    BITWISE,
    COLLECTIVE,
    COMMUTATIVE,
    CONTROL,
    ELEMENTWISE,
    EXTREME,
    MONOID,
    MOVES,
    OPAQUE,
    RANDOM,
    READS_BITS,
    ROUNDS,
    SAME_SCALAR,
    SUM,
    having,
    of_family,
)
from hlo.ops.element_types import ANY, TAKES
from hlo.types import C64, ELEMENT_TYPES, F32, F64, PRED, ArrayShape, ElementType, element_type_of
from hlo.values import Array, arrays_of
from interp.algorithms.monoid_folds import UFUNCS

LENGTH = 64
PROGRAMS = 16  # of each opcode; half of them have no elements
# Of opcodes whose operand mostly is of another type, which few properties can be seen by.
MORE_PROGRAMS = {"bitcast": 96, "bitcast-convert": 96}


# Arithmetic


@cache
def values(element_type: ElementType, count: int, seed: int) -> tuple[Array, ...]:
    """Arrays of any bits, with notable numbers and small integers among them."""
    choices, program = Seeded(f"{element_type} {seed}"), _program("copy", element_type, 1)
    drawn = ([arguments(choices, program)[0] for _ in range(4)] for _ in range(count))
    rng = np.random.default_rng(seed)
    return tuple(rng.permutation(np.concatenate(x))[:LENGTH] for x in drawn)


@cache
def _program(opcode: str, element_type: ElementType, arity: int) -> Module:
    """``opcode(a, b)`` of arrays of the result's type."""
    shape, names = f"{element_type}[{LENGTH}]", "abc"[:arity]
    given = "\n".join(f"  {name} = {shape} parameter({n})" for n, name in enumerate(names))
    root = f"  ROOT r = {shape} {opcode}({', '.join(names)})"
    return hlo.parse("\n".join(("HloModule m", "ENTRY e {", given, root, "}")))


def applied(opcode: str, *operands: Array) -> Array:
    """Apply an elementwise opcode to operands of one type."""
    element_type = element_type_of(operands[0].dtype)
    assert element_type is not None
    result = interp.evaluate(_program(opcode, element_type, len(operands)), *operands)
    return np.asarray(result)


@cache
def _is_closed(opcode: str, element_type: ElementType, arity: int) -> bool:
    """Whether it is an operation of so many values of a type that gives such a value."""
    try:
        hlo.verify(_program(opcode, element_type, arity))
    except Error:
        return False
    return True


@cache
def operations(arity: int) -> dict[str, list[ElementType]]:
    """Elementwise operations that give values of the operands' type, and on which types."""
    types = {
        opcode: [t for t in TAKES[opcode].types if _is_closed(opcode, t, arity)]
        for opcode in sorted(of_family(ELEMENTWISE))
    }
    return {opcode: sorted(found, key=str) for opcode, found in types.items() if found}


def _names(arity: int) -> list[str]:
    """The opcodes of :func:`operations`, most of which their first type tells: tests are collected
    sooner."""
    return [
        opcode
        for opcode in sorted(of_family(ELEMENTWISE))
        if any(_is_closed(opcode, t, arity) for t in TAKES[opcode].types)
    ]


BINARY, UNARY = _names(2), _names(1)


def _integers(opcode: str) -> list[ElementType]:
    return [t for t in operations(2)[opcode] if t.is_integer or t is PRED]


def test_operations_are_known() -> None:
    assert len(BINARY) == 16 and len(UNARY) == 33
    assert [sorted(operations(arity)) for arity in (2, 1)] == [BINARY, UNARY]


@pytest.mark.parametrize("opcode", BINARY)
def test_commutative(opcode: str) -> None:
    pairs = [values(t, 2, 0) for t in operations(2)[opcode]]
    same = [not differences(applied(opcode, a, b), applied(opcode, b, a)) for a, b in pairs]
    assert all(same) == (opcode in having(COMMUTATIVE))


@pytest.mark.parametrize("opcode", BINARY)
def test_associative_where_nothing_is_rounded(opcode: str) -> None:
    types = [*_integers(opcode), *(operations(2)[opcode] if opcode in having(EXTREME) else ())]
    assert types or opcode not in having(ASSOCIATIVE)
    same = []
    for a, b, c in (values(t, 3, 0) for t in types):
        left = applied(opcode, applied(opcode, a, b), c)
        same.append(not differences(left, applied(opcode, a, applied(opcode, b, c))))
    assert (bool(same) and all(same)) == (opcode in having(ASSOCIATIVE))


def test_every_monoid_has_a_fold() -> None:
    assert set(UFUNCS) == having(MONOID)


@pytest.mark.parametrize("opcode", BINARY)
def test_sum(opcode: str) -> None:
    types = [t for t in operations(2)[opcode] if t.name == "s32"]
    for a, b in (values(t, 2, 0) for t in types):
        result = applied(opcode, a, b)
        is_sum = any(not differences(result, x) for x in (a + b, a - b))
        assert is_sum == (opcode in having(SUM))
    assert types or opcode not in having(SUM)


def _is_one_of(result: Array, *others: Array) -> bool:
    """Whether each element has the bits of one of the others', or is a NaN as one of those is."""
    one_of = np.zeros(result.shape, np.bool_)
    for other in others:
        one_of |= _bits(result) == _bits(other)
    nan = [np.isnan(x) if x.dtype.kind not in "biu" else np.False_ for x in (result, *others)]
    return bool((one_of | (nan[0] & np.logical_or.reduce(nan[1:]))).all())


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("opcode", BINARY)
def test_extreme(opcode: str) -> None:
    types = [t for t in operations(2)[opcode] if not t.is_complex]
    found = [_is_one_of(applied(opcode, a, b), a, b) for a, b in (values(t, 2, 0) for t in types)]
    assert (bool(found) and all(found)) == (opcode in having(EXTREME))


@pytest.mark.parametrize("opcode", sorted({*BINARY, *UNARY} - {"convert"}))
def test_bitwise(opcode: str) -> None:
    """u8 numbers as rows of truth values."""
    arity = 2 if opcode in BINARY else 1
    u8 = ELEMENT_TYPES["u8"]
    if not {u8, PRED} <= set(operations(arity)[opcode]):
        assert opcode not in having(BITWISE)
        return
    numbers = values(u8, arity, 0)
    rows = [np.unpackbits(x[:, None], axis=1).astype(np.bool_) for x in numbers]
    bits = np.stack([applied(opcode, *columns) for columns in zip(*(x.T for x in rows))], axis=1)
    same = (np.packbits(bits, axis=1)[:, 0] == applied(opcode, *numbers)).all()
    assert same == (opcode in having(BITWISE))


@pytest.mark.parametrize("opcode", sorted({*BINARY, *UNARY} - {"convert", "real", "imag"}))
def test_rounds(opcode: str) -> None:
    """An opcode that rounds has other results in f64 than in f32."""
    arity = 2 if opcode in BINARY else 1
    if F32 not in operations(arity)[opcode]:
        assert opcode not in having(ROUNDS)
        return
    operands = values(F32, arity, 0)
    with np.errstate(all="ignore"):
        narrow = applied(opcode, *operands).astype(np.float64)
        wide = applied(opcode, *(x.astype(np.float64) for x in operands))
    exact = {"remainder"}  # a multiple of what both operands are multiples of, below the second
    assert exact <= having(ROUNDS)  # for compilers go by way of the quotient
    assert bool(differences(narrow, wide)) == (opcode in having(ROUNDS) - exact)


def test_convert_rounds() -> None:
    (wide,) = values(F64, 1, 0)
    text = "HloModule m\nENTRY e {{ a = f64[64] parameter(0) ROOT r = {0}[64] convert(a) }}"
    narrow = interp.evaluate(hlo.parse(text.format("f32")), wide)
    with np.errstate(invalid="ignore"):
        assert differences(narrow.astype(np.float64), wide)
    assert "convert" in having(ROUNDS)


# Elements: programs of one instruction

# A number whose bits are 0 is what arrays are filled up with, but not in this type.
TYPES = [t for t in ANY.types if t is not PRED and t.bits >= 8 and t.name != "f8e8m0fnu"]
DATA = sorted((t for t in TYPES if t.is_inexact), key=str)
OTHERS = sorted((t for t in TYPES if t.is_integer), key=str)
WORDS = [*sorted((t for t in TYPES if 16 <= t.bits <= 64), key=str), PRED]
# Of one rank; what only hands values on gives whatever it is given.
DRAWN = sorted(set(GENERATORS) - of_family(CONTROL) - of_family(COLLECTIVE) - having(OPAQUE))


def _floats_if_any(opcode: str) -> list[ElementType]:
    """Floats are never indices, so that all of a type are data."""
    _, accepts = GENERATORS[opcode]
    of_floats = any(accepts(ArrayShape(t, (2,) * rank)) for t in DATA for rank in range(4))
    return DATA if of_floats else [*OTHERS, PRED]


def programs(opcode: str, types: Sequence[ElementType]) -> Iterator[tuple[Module, tuple[Any, ...]]]:
    """Programs of an opcode with results of some types, and arguments."""

    def drawn(choices: Seeded) -> tuple[Module, tuple[Any, ...]]:
        module = single_op(choices, opcode, element_types=types, max_elements=64)
        return module, arguments(choices, module)

    count = MORE_PROGRAMS.get(opcode, PROGRAMS)
    yield from examples(drawn, count, opcode)  # type: ignore[arg-type]


def evaluated(module: Module, given: Sequence[Any]) -> list[Array] | None:
    """The arrays of the result; None where it means nothing for the arguments."""
    try:
        return list(arrays_of(interp.evaluate(module, *given)))
    except Error:
        return None


def _relabelled(array: Array) -> Array:
    """Other bits in place of each element's, the same for the same, all zeros staying so."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    bits = np.ascontiguousarray(array).view(f"u{size}").copy()
    with np.errstate(over="ignore"):
        bits ^= bits >> bits.dtype.type(3 * size)
        bits *= bits.dtype.type(0x9E3779B97F4A7C15 % 2 ** (8 * size) | 1)
        bits ^= bits >> bits.dtype.type(4 * size)
    return bits.view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize("opcode", DRAWN)
def test_moves(opcode: str) -> None:
    """An opcode that moves elements does not look at them: it moves others in the same way."""
    is_drawn, moves = False, True
    for moves in _moved(opcode):
        is_drawn = True
        if not moves:
            break
    assert (is_drawn and moves) == (opcode in having(MOVES))


def _moved(opcode: str) -> Iterator[bool]:
    """Yield for each program whether it moved other elements in the same way."""
    for module, given in programs(opcode, _floats_if_any(opcode)):
        results = evaluated(module, given)
        if results is None:
            continue
        dtypes = {x.dtype for x in results} & {t.numpy for t in TYPES}
        if opcode == "bitcast" and dtypes.isdisjoint(x.dtype for x in given):
            continue  # its bits are elements of another type
        others = [_relabelled(x) if x.dtype in dtypes else x for x in given]
        again = evaluated(module, others)
        wanted = [_relabelled(x) if x.dtype in dtypes else x for x in results]
        changed = any(x.tobytes() != y.tobytes() for x, y in zip(wanted, results))
        if again is not None and changed:
            yield [x.tobytes() for x in again] == [x.tobytes() for x in wanted]


def _with_nan(array: Array, bits: int) -> Array:
    """NaN of some bits in every second place."""
    element_type = element_type_of(array.dtype)
    if element_type is None or not element_type.is_float or not array.size:
        return array
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}.get(element_type.name)
    if mantissa is None:
        return array
    exponent = (1 << (element_type.bits - 1 - mantissa)) - 1
    nan = from_bits(element_type, bits << (element_type.bits - 1) | exponent << mantissa | 1 + bits)
    where = np.arange(array.size).reshape(array.shape) % 2 == 0
    return np.where(where, nan, array).astype(array.dtype)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("opcode", sorted(set(DRAWN) - of_family(RANDOM)))
def test_reads_bits(opcode: str) -> None:
    """Opcodes with the trait READS_BITS tell one NaN from another, and no other opcode does."""
    assert any(_told_apart(opcode)) == (opcode in having(READS_BITS))


def _told_apart(opcode: str) -> Iterator[bool]:
    """Yield for each program whether its result depends on the bits of NaN."""
    for module, given in programs(opcode, WORDS):
        if "TOTALORDER" in hlo.format(module):
            continue  # of a computation that is called
        one, other = (evaluated(module, [_with_nan(x, n) for x in given]) for n in (0, 1))
        if one is not None and other is not None:
            yield bool(differences(tuple(one), tuple(other)))


# Scalars

SCALAR = {
    "broadcast": "x), dimensions={}",
    "reverse": "x), dimensions={}",
    "transpose": "x), dimensions={}",
    "slice": "x), slice={}",
    "add-dependency": "x, t)",
    "domain": 'x), domain={kind="sharding", entry={replicated}, exit={replicated}}',
}
ON_SCALARS = """HloModule m
f {{
  x = {type}[] parameter(0)
  t = token[] after-all()
  y = {type}[] {opcode}({rest}
  ROOT r = {type}[] negate(y)
}}
ENTRY e {{
  x = {type}[{n}] parameter(0)
  ROOT r = {type}[{n}] map(x), dimensions={{0}}, to_apply=f
}}
"""


def test_forms_of_one_scalar() -> None:
    alike = {"bitcast", "copy", "opt-barrier", "reshape"}  # without attributes
    assert having(SAME_SCALAR) == set(SCALAR) | alike


@pytest.mark.parametrize("opcode", sorted(having(SAME_SCALAR)))
@pytest.mark.parametrize("element_type", [F32, C64, ELEMENT_TYPES["s8"]], ids=str)
def test_same_scalar(opcode: str, element_type: ElementType) -> None:
    """An opcode that returns a scalar as it is does so for one scalar and for all elements of an
    array at once."""
    text = ON_SCALARS.format(
        type=element_type, opcode=opcode, rest=SCALAR.get(opcode, "x)"), n=LENGTH
    )
    (x,) = values(element_type, 1, 0)
    module = hlo.parse(text)
    fuel = None if opcode == "add-dependency" else 12  # a token is not of elements
    assert not differences(interp.evaluate(module, x, fuel=fuel), applied("negate", x))
    alone = hlo.parse(text.replace("[64]", "[1]"))
    assert not differences(interp.evaluate(alone, x[:1]), applied("negate", x)[:1])
