"""List the arrays of a call with their names in C, and tell how they lie in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from backend_c.lower.plan import Buffer, Plan
from backend_c.projects.c_names import result_names
from backend_c.render.translation_units import with_sizes
from hlo.types import ArrayShape


class CallArray(NamedTuple):
    """An array that a call takes or gives, in the order of its pointers."""

    name: str
    buffer: Buffer
    is_result: bool


def call_arrays(plan: Plan, parameters: Sequence[str]) -> list[CallArray]:
    """List the arrays of a call: ``parameters`` are the names of its arguments.

    A bounded array is followed by its sizes.
    """
    results = result_names(buffer.shape for buffer in plan.results)
    named = [(parameters, plan.arguments, False), (results, plan.results, True)]
    return [
        CallArray(own, array, is_result)
        for names, buffers, is_result in named
        for name, buffer in zip(names, buffers, strict=True)
        for own, array in zip((name, f"{name}_sizes"), with_sizes([buffer]))
    ]


def layout_notes(shapes: Iterable[ArrayShape]) -> str:
    """Return lines of a comment, each of which begins with a newline, about the shapes that C has
    no arrays for: narrow integers, and bounded arrays."""
    listed = tuple(shapes)
    narrow = sorted({s.element_type for s in listed if _is_narrow(s)}, key=lambda t: t.name)
    lines = list[str]()
    if narrow:
        extended = {"signed": "sign", "unsigned": "zero"}
        told = ", ".join(f"{t.name} {extended[t.kind]}-extended" for t in narrow)
        lines += [f"One element of less than 8 bits is one byte, {told}, which arguments must be."]
    if any(shape.is_dynamic for shape in listed):
        lines += [
            "The pointer after that of an array with bounded dimensions (<=) is to its sizes, an",
            "int32_t for each dimension, of which those of bounded ones are read. Such an array",
            "has the memory and the strides of its bounds: what is beyond the sizes has no effect,",
            "and is anything in results. Sizes below 0 are 0, above the bound they are the bound.",
        ]
    return "".join(f"\n * {line}" for line in lines)


def _is_narrow(shape: ArrayShape) -> bool:
    """Test for integers that have fewer bits than the byte they are in."""
    return shape.element_type.is_integer and shape.element_type.bits < 8
