"""List the wrong elements of a result with their bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.judge.failure import outside
from hlo.values import Array
from interp.envelope.trying import Found, Output

MOST = 16  # elements of an array that are shown


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a result that is outside the envelope."""

    place: str
    actual: str
    exact: str
    legal: str


def elements(found: Found) -> Iterator[Element]:
    """Yield the first wrong elements of each output; if there are none as no bounds are known, the
    first that are not the exact ones."""
    masks = [outside(output.actual, output.legal) for output in found.outputs]
    if not any(mask.any() for mask in masks) and any(step.why for step in found.wrong):
        masks = [np.asarray(output.actual != output.exact) for output in found.outputs]
    for output, mask in zip(found.outputs, masks, strict=True):
        for row in np.argwhere(mask)[:MOST]:
            yield _element(output, tuple(int(i) for i in row))


def _element(output: Output, index: tuple[int, ...]) -> Element:
    place = f"{output.place} [{','.join(map(str, index))}]" if index else output.place
    legal = output.legal
    low, high = number(legal.low, index), number(legal.high, index)
    bounds = f"{low} only" if low == high else f"{low} to {high}"
    nan = " or NaN" if legal.nan[index] and low != "nan" else ""
    return Element(place, shown(output.actual, index), shown(output.exact, index), f"{bounds}{nan}")


def shown(array: Array, index: tuple[int, ...]) -> str:
    """Format an element with its bits."""
    return f"{number(array, index)} ({bits(array, index)})"


def number(array: Array, index: tuple[int, ...]) -> str:
    return str(array[index])


def bits(array: Array, index: tuple[int, ...]) -> str:
    """Format an element's bits in hexadecimal, most significant first; of a complex number both
    parts."""
    if array.dtype.kind == "c":
        return f"{bits(array.real, index)}, {bits(array.imag, index)}"
    return f"0x{np.asarray(array[index]).tobytes()[::-1].hex()}"


def listed(array: Array) -> str:
    """Format a short array with its bits; describe a long one."""
    if array.size > MOST:
        return f"{array.dtype}{list(array.shape)}, in arguments.npz"
    if array.ndim == 0:
        return shown(array, ())
    found: list[Any] = [shown(array.reshape(-1), (n,)) for n in range(array.size)]
    return ", ".join(found) or "no elements"
