"""Generate random bits from counters (runtime/hlo_random.h), and the legacy rng.

Layouts as in XLA's prng.cc: PHILOX gives four 32-bit words (two of 64) per count, in order;
THREE_FRY one 64-bit word, or two 32-bit ones that are neighbours along the first even dimension
(the largest if none is even), cut off at its size. rng is PHILOX keyed by the seed of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Address, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from hlo.errors import Unsupported
from hlo.types import (
    ELEMENT_TYPES,
    F32,
    F64,
    PRED,
    U32,
    U64,
    ArrayShape,
    ElementType,
    Shape,
)

__all__ = ["rng", "rng_bit_generator", "rng_get_and_update_state"]

_ZERO = Constant(U64, 0)
_SMALLEST = {F32: Constant(F32, 2.0**-23), F64: Constant(F64, 2.0**-52)}


def rng_bit_generator(
    state: Element, *, algorithm: str, shape: Shape, write: Writer, block: Scope
) -> None:
    """Return (new state, bits), or only bits where ``shape`` is an array's.

    Raises Unsupported for other algorithms and states.
    """
    words = state.shape.dims[0]
    number = len(write.shapes) - 1
    wanted = write.shapes[number].element_type
    kind = _ALGORITHMS.get((algorithm.lower(), words))
    if kind is None or wanted.kind == "pred" or wanted.bits < 8:
        raise Unsupported(f"{algorithm} of {wanted} with a state of {words} words")
    held = [block.bind(state.at(ix.constant(word))) for word in range(words)]
    after = kind(held, number, write, block)
    for word, value in enumerate(after if number else ()):
        write.some((0,), (ix.constant(word),), (value,))


def _philox_of_two(state: Sequence[Expr], number: int, write: Writer, scope: Scope) -> list[Expr]:
    """Write PHILOX from a state {key, low}; as in XLA the key is the counter's high word, too."""
    key, low = state
    return _philox((key, low, key), number, write, scope)[:2]


def _philox(state: Sequence[Expr], number: int, write: Writer, scope: Scope) -> list[Expr]:
    """Write PHILOX from a state {key, counter low, counter high}; return the state that follows."""
    key, low, high = state
    shape = write.shapes[number]
    per_block = 2 if shape.element_type.bits == 64 else 4
    blocks = -(-shape.elements // per_block)
    with nest.outer(scope, (blocks,), 32) as (block,):
        words = scope.local(U32, 4)
        counter = _advanced(low, high, apply("convert", block, type=U64), scope)
        scope.call("hlo_philox", key, *counter, Pointer(words, ix.constant(0)))
        values = [scope.load(words, ix.constant(word)) for word in range(4)]
        bits = values if per_block == 4 else [_joined(*values[:2]), _joined(*values[2:])]
        for part, value in enumerate(bits):
            offset = ix.add(ix.multiply(block, per_block), part)
            # Words that every block has, even the last one, need no test.
            if part < (shape.elements - 1) % per_block + 1:
                _store(value, offset, number, write)
                continue
            inside = apply("compare-LT", offset, ix.constant(shape.elements), type=PRED)
            with scope.when(inside):
                _store(value, offset, number, write)
    return [key, *_advanced(low, high, Constant(U64, blocks), scope)]


def _store(bits: Expr, offset: Expr, number: int, write: Writer) -> None:
    """Write a word as the element at an offset."""
    shape = write.shapes[number]
    index = ix.delinearize(offset, shape.dims)
    write.some((number,), index, (_narrowed(bits, shape.element_type),))


def _advanced(low: Expr, high: Expr, count: Expr, scope: Scope) -> tuple[Expr, Expr]:
    """Return a 128-bit counter after ``count`` blocks."""
    after = scope.bind(apply("add", low, count))
    carry = apply("convert", apply("compare-LT", after, low, type=PRED), type=U64)
    return after, scope.bind(apply("add", high, carry))


def _joined(low: Expr, high: Expr) -> Expr:
    """Return a 64-bit word of two halves."""
    wide = [apply("convert", word, type=U64) for word in (low, high)]
    return apply("or", wide[0], apply("shift-left", wide[1], Constant(U64, 32)))


def _narrowed(bits: Expr, element_type: ElementType) -> Expr:
    """Return the low bits of a word as an element."""
    if element_type.is_integer:
        return _as(bits, element_type)
    unsigned = _as(bits, ELEMENT_TYPES[f"u{element_type.bits}"])
    return apply("bitcast", unsigned, type=element_type)


def _as(value: Expr, element_type: ElementType) -> Expr:
    """Build a conversion, unless the value has the type already."""
    return value if value.type is element_type else apply("convert", value, type=element_type)


def _three_fry(state: Sequence[Expr], number: int, write: Writer, scope: Scope) -> list[Expr]:
    """Write THREE_FRY from a state {key, counter}; return the state that follows."""
    key, counter = state
    shape = write.shapes[number]
    is_wide = shape.element_type.bits == 64
    dims = shape.dims or (1,)
    even = [d for d, extent in enumerate(dims) if extent % 2 == 0]
    split = even[0] if even else dims.index(max(dims))
    half = [-(-n // 2) if d == split and not is_wide else n for d, n in enumerate(dims)]
    count = math.prod(half)
    with nest.outer(scope, (count,), 16) as (place,):
        counted = apply("add", counter, apply("convert", place, type=U64))
        word = scope.bind(apply("threefry", key, counted, type=U64))
        if is_wide:
            _store(word, place, number, write)
        else:
            index = [scope.bind(i) for i in ix.delinearize(place, half)]
            _store_pair(word, index, split, number, write)
    return [key, apply("add", counter, Constant(U64, count))]


def _store_pair(word: Expr, index: Sequence[Expr], split: int, number: int, write: Writer) -> None:
    """Write the halves of a word, neighbours along ``split``."""
    shape, scope = write.shapes[number], write.scope
    dims = shape.dims or (1,)
    high = apply("shift-right-logical", word, Constant(U64, 32))
    for part, value in enumerate((word, high)):
        along = ix.add(ix.multiply(index[split], 2), part)
        place = (*index[:split], along, *index[split + 1 :])
        narrow = _narrowed(apply("convert", value, type=U32), shape.element_type)
        target = place if shape.dims else ()
        if ix.bounds(along)[1] < dims[split]:
            write.some((number,), target, (narrow,))
            continue
        with scope.when(apply("compare-LT", along, ix.constant(dims[split]), type=PRED)):
            write.some((number,), target, (narrow,))


_ALGORITHMS = {
    ("rng_three_fry", 2): _three_fry,
    ("rng_philox", 2): _philox_of_two,
    ("rng_philox", 3): _philox,
    ("rng_default", 2): _philox_of_two,
    ("rng_default", 3): _philox,
}


def rng_get_and_update_state(*, delta: int, shape: ArrayShape, write: Writer, block: Scope) -> None:
    """result = the state, to which ``delta`` is then added; it starts as {seed, 0}."""
    result = Pointer(write.arrays[0], ix.constant(0))
    block.call("hlo_seed_advance", block.seed(), Constant(U64, delta % 2**64), result)


# Word(position): the words of one draw.
_Word = Callable[[Expr], Expr]


def rng(
    *operands: Element, distribution: str, shape: ArrayShape, write: Writer, block: Scope
) -> None:
    """result[i] is uniform in [a, b), or normal with mean and deviation.

    Element i of n is made of word i of the draw, and a normal one of word n + i, too.
    """
    element_type = shape.element_type
    sample = _SAMPLES.get((distribution, element_type.kind))
    if sample is None:
        raise Unsupported(f"{distribution} of {element_type}")
    key, draw = block.mutable(U64), block.mutable(U64)
    block.call("hlo_seed_draw", block.seed(), Address(key), Address(draw))
    stream = block.bind(key), _ZERO, block.bind(draw)

    def word(position: Expr) -> Expr:
        name, kind = ("philox-u64", U64) if _is_wide(element_type) else ("philox-u32", U32)
        return block.bind(apply(name, *stream, apply("convert", position, type=U64), type=kind))

    first, second = (operand.at() for operand in operands)
    with nest.flat(block, shape.dims, 32) as index:
        place = ix.linearize(index, shape.dims)
        value = sample(word, place, shape.elements, (first, second), element_type)
        write(index, (_as(value, element_type),))


def _is_wide(element_type: ElementType) -> bool:
    """Return whether an element takes 64-bit words."""
    return element_type.bits == 64


def _computed_in(element_type: ElementType) -> ElementType:
    """Return the float type that the steps are computed in."""
    return F64 if element_type is F64 else F32


def _unit(word: Expr) -> Expr:
    """Return a number in [0, 1), a multiple of 2**-23, or of 2**-52 from a 64-bit word."""
    wide = word.type is U64
    high = apply("shift-right-logical", word, Constant(word.type, 12 if wide else 9))
    number = apply("convert", high, type=F64 if wide else F32)
    return apply("multiply", number, _SMALLEST[number.type])


def _uniform(
    word: _Word, place: Expr, count: int, ends: tuple[Expr, Expr], element_type: ElementType
) -> Expr:
    """Return a + u * (b - a)."""
    a, b = (_as(end, _computed_in(element_type)) for end in ends)
    return apply("add", a, apply("multiply", _unit(word(place)), apply("subtract", b, a)))


def _integers(
    word: _Word, place: Expr, count: int, ends: tuple[Expr, Expr], element_type: ElementType
) -> Expr:
    """Return a + word mod (b - a)."""
    a, b = (_as(end, U64 if _is_wide(element_type) else U32) for end in ends)
    # If b is a, word mod 0 is the word.
    return apply("add", a, apply("remainder", word(place), apply("subtract", b, a)))


def _normal(
    word: _Word, place: Expr, count: int, ends: tuple[Expr, Expr], element_type: ElementType
) -> Expr:
    """Return mean + deviation * z by Box and Muller, z = sqrt(-2 log u1) cos(2 pi u2).

    Each step is an instruction of f32 (of f64 for f64).
    """
    kind = _computed_in(element_type)
    mean, deviation = (_as(end, kind) for end in ends)
    # u1 is in (0, 1]: the logarithm of 0 would be infinite.
    u1 = apply("add", _unit(word(place)), _SMALLEST[kind])
    u2 = _unit(word(ix.add(place, count)))
    square = apply("multiply", Constant(kind, -2.0), apply("log", u1))
    turn = 2 * math.pi if kind is F64 else 6.2831855  # rounded to f32, as each step is
    angle = apply("multiply", Constant(kind, turn), u2)
    z = apply("multiply", apply("sqrt", square), apply("cosine", angle))
    return apply("add", mean, apply("multiply", deviation, z))


_SAMPLES = {
    ("rng_uniform", "float"): _uniform,
    ("rng_uniform", "signed"): _integers,
    ("rng_uniform", "unsigned"): _integers,
    ("rng_normal", "float"): _normal,
}
