"""Copy narrow floats as words, where the result of a store is an operand: no conversions.

Registers hold floats narrower than f32 as ``float``, so that an element which is only copied would
be converted there and back. A store of loaded elements, of words that become elements, or of a
select between some, stores their words: the same bits, as every word stands for itself (a NaN keeps
its payload). Of such elements precision is reduced in their words, too. The maximum, minimum,
absolute value or negation of elements of bf16 is the upper half of an f32, not rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    Apply,
    Array,
    Constant,
    Expr,
    Kernel,
    Let,
    Load,
    Statement,
    Store,
    Variable,
    is_mutable,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks
from backend_c.render.c_types import is_converted, is_narrow
from hlo.types import BF16, F16, U8, U16, ElementType


class _Value(NamedTuple):
    """Hold what a variable's value is computed by (:func:`_parts`), and its word, if it has one."""

    parts: frozenset[str]
    word: Expr | None


_Values = Mapping[str, _Value]

# Operations whose results are operands, or such with another sign.
_EXACT = frozenset(("maximum", "minimum", "abs", "negate"))
# Those that are made of words. To reduce the precision of what a register holds takes a conversion
# to the word and one from it.
_MOVED = frozenset(("load", "select", "reduce-precision"))
_REDUCED = {F16: "reduced-word-f16", BF16: "reduced-word-bf16"}


def with_moved_words(kernel: Kernel) -> Kernel:
    """Return a kernel that does not round narrow floats which are numbers of their type already."""
    return replace(kernel, body=without_dead_lets(_moved(kernel.body, {})))


def as_words(array: Array) -> Array:
    """Reinterpret an array of narrow floats or pred as one of unsigned integers."""
    return array._replace(element_type=_word_type(array.element_type))


def _word_type(element_type: ElementType) -> ElementType:
    return U16 if element_type.bits == 16 else U8


def _moved(body: Sequence[Statement], outer: _Values) -> tuple[Statement, ...]:
    """Rewrite the stores in statements; ``outer`` maps names in scope to their values."""
    known, rewritten = dict(outer), list[Statement]()
    for statement in body:
        match statement:
            case Let(variable, value) if is_narrow(value.type) and value.type.bits % 8 == 0:
                rewritten.append(statement)
                # The store loads the element again, which must be what it was at the let.
                if not any(map(is_mutable, subexpressions(value))):
                    rewritten += _bound(variable.name, value, known)
                continue
            case Store(array, _, value) if _is_converted_whole(array):
                statement = _stored(statement, {*_parts(value, array.element_type, known)}, known)
            case _:
                statement = with_blocks(statement, lambda block: _moved(block, known))
        rewritten.append(statement)
    return tuple(rewritten)


def _bound(name: str, value: Expr, known: dict[str, _Value]) -> Iterator[Let]:
    """Add a variable's value to ``known``; yield the let of its word if that is computed."""
    parts = frozenset(_parts(value, value.type, known))
    word = _word(value, known) if parts <= _MOVED else None
    if isinstance(word, Apply):
        # Values that are selected from one another would be written again for each use.
        let = Let(Variable(word.type, f"{name}_word"), word)
        word = let.variable
        yield let
    known[name] = _Value(parts, word)


def _is_converted_whole(array: Array) -> bool:
    """Return whether an array's elements are whole bytes that registers hold as floats."""
    return is_converted(array) and array.memory is None and array.element_type.bits % 8 == 0


def _stored(store: Store, parts: set[str], known: _Values) -> Store:
    """Rewrite a store of a value composed of ``parts`` so that it does not round; or return it."""
    array, offset, value = store
    if "load" not in parts:  # the word of a constant is computed once
        return store
    if parts <= _MOVED:
        return Store(as_words(array), offset, _word(value, known))
    if array.element_type is BF16 and parts <= _MOVED | _EXACT:
        return Store(as_words(array), offset, Apply("upper-half", (value,), U16))
    return store


def _parts(value: Expr, element_type: ElementType, known: _Values) -> Iterator[str]:
    """Yield what an element is computed by: "load", operations that keep words, or "others"."""
    match value:
        case Constant():
            pass
        case Load(array, _) if _is_converted_whole(array) and array.element_type is element_type:
            yield "load"
        case Variable(_, name) if name in known:
            yield from known[name].parts
        case Apply("bitcast", (word,), kind) if kind is element_type and word.type.is_integer:
            yield "load"  # a word, too
        case Apply("reduce-precision", (operand, *_), kind) if kind is element_type in _REDUCED:
            yield "reduce-precision"
            yield from _parts(operand, element_type, known)
        case Apply("select", (_, *choices), kind) if kind is element_type:
            yield "select"
            for choice in choices:
                yield from _parts(choice, element_type, known)
        case Apply(operation, operands, kind) if kind is element_type and operation in _EXACT:
            yield operation
            for operand in operands:
                yield from _parts(operand, element_type, known)
        case _:
            yield "others"


def _word(value: Expr, known: _Values) -> Expr:
    """Return the bits of a loaded, constant or selected value as an unsigned integer."""
    match value:
        case Load(array, offset):
            return Load(as_words(array), offset)
        case Constant(element_type, number):
            word_type = _word_type(element_type)
            return Constant(
                word_type, int(np.array(number, element_type.numpy).view(word_type.numpy))
            )
        case Variable(_, name):
            known_word = known[name].word
            assert known_word is not None
            return known_word
        case Apply("bitcast", (word,), element_type):
            return Apply("bitcast", (word,), _word_type(element_type))
        case Apply("reduce-precision", (operand, *bits), element_type):
            return Apply(_REDUCED[element_type], (_word(operand, known), *bits), U16)
        case Apply(_, (condition, *choices), element_type):
            words = (_word(choice, known) for choice in choices)
            return Apply("select", (condition, *words), _word_type(element_type))
    raise AssertionError(value)
