"""Render bitcasts: reinterpret a value's bits as a type of the same width, a narrower or a wider
one.

Part 0 of a wider value is its low bits, which little-endian memory has first. Everything goes over
unsigned integers of up to 64 bits; c128 is two of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.render.c_types import integer_type, is_narrow
from hlo.errors import Unsupported
from hlo.types import C64, C128, PRED, ElementType


def cast(texts: Sequence[str], types: Sequence[ElementType], result: ElementType) -> str:
    """Render ``bitcast(value)`` to a type of the same width."""
    _require_words(types[0], result)
    return _value(_word(texts[0], types[0]), result)


def part(texts: Sequence[str], types: Sequence[ElementType], result: ElementType) -> str:
    """Render ``bitcast-part(value, index)``: bits [index·w, (index+1)·w), w the result's width."""
    (value, index), source = texts, types[0]
    if source is C128 and result is C64:
        return f"hlo_part_c128({value}, {index})"
    _require_words(source, result)
    return _value(f"((uint64_t){_word(value, source)} >> {index} * {result.bits})", result)


def joined(texts: Sequence[str], types: Sequence[ElementType], result: ElementType) -> str:
    """Render ``bitcast-join(values…)``: concatenate the bits of values, the first one lowest."""
    source = types[0]
    if source is C64 and result is C128:
        return f"hlo_join_c128({', '.join(texts)})"
    _require_words(source, result)
    # The cast to uint64_t extends the sign of a signed word: the mask takes those bits away.
    mask = f"0x{2**source.bits - 1:x}u"
    words = [f"((uint64_t){_word(text, source)} & {mask})" for text in texts]
    shifted = [f"{word} << {n * source.bits}" if n else word for n, word in enumerate(words)]
    return _value(f"({' | '.join(shifted)})", result)


def _require_words(source: ElementType, result: ElementType) -> None:
    """Raise Unsupported for c128, which no integer type holds."""
    if C128 in (source, result):
        raise Unsupported(f"C has no integer for the bits of {source} as {result}")


def _word(text: str, source: ElementType) -> str:
    """Render the bits of a value as an integer; bits above its width are undefined."""
    if source.is_integer or source is PRED:
        return text
    return f"hlo_store_{source}({text})" if is_narrow(source) else f"hlo_bits_{source}({text})"


def _value(word: str, result: ElementType) -> str:
    """Render the value that the low bits of an integer encode."""
    if result is PRED:
        return f"((uint8_t){word} != 0)"
    if result.is_integer:
        cast = f"({integer_type(result)}){word}"
        return f"hlo_wrap_{result}((uint64_t){word})" if result.bits < 8 else cast
    width = max(8, result.bits)
    low = f"{word} & {2**result.bits - 1}u" if result.bits < 8 else word
    bits = f"(uint{width}_t)({low})" if result.bits < 8 else f"(uint{width}_t){word}"
    return f"hlo_load_{result}({bits})" if is_narrow(result) else f"hlo_{result}_from_bits({bits})"
