"""Render a ``main`` for the embedded target that checks recorded bits.

It has the arguments and the expected results as constants, runs the module, and exits with 0 if
every result has the expected bits (any NaN stands for any other), else with the number of the first
result that differs, counted from 1, or 255 if it does not run. It needs no more of C than the
module does. A bounded array is as many bytes as its bound; those within its actual sizes, an array
of their own behind it, are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from backend_c.projects.byte_array import aligned_bytes
from backend_c.projects.embedded_project import EmbeddedProject
from backend_c.render.translation_units import stored_bytes
from hlo.errors import ArgumentError, Unsupported
from hlo.module import Module
from hlo.types import S32, ArrayShape, Shape, TupleShape, is_bounded

SAME = """
/* Whether elements are equal, or both NaN: their bits under `mask` exceed those of infinity. Of
 * bounded arrays only those count whose bytes in `there` are not zero. */
static int same(const unsigned char *found, const unsigned char *expected,
                const unsigned char *there, uint32_t bytes, uint32_t size, uint64_t mask,
                uint64_t infinity) {
    uint32_t start;
    for (start = 0; start < bytes; start += size) {
        uint64_t one = 0, other = 0;
        if (there && !there[start]) {
            continue;
        }
        memcpy(&one, found + start, size);
        memcpy(&other, expected + start, size);
        if (one != other && ((one & mask) <= infinity || (other & mask) <= infinity)) {
            return 0;
        }
    }
    return 1;
}
"""
_WORKSPACE = """
static union {{
    unsigned char bytes[{macro}_WORKSPACE_BYTES];
    uint64_t words;
}} workspace;

"""
_FAILS = "        return 255;\n    }"
_MOST_BYTES = 8 << 20  # as text four times as many
# Types with several NaNs: element size, the mask of all bits but the sign, and the bits of
# infinity, or of the largest number where there is none. A NaN is what lies above.
INFINITY = {
    "f8e3m4": (1, 0x7F, 0x70),
    "f8e4m3": (1, 0x7F, 0x78),
    "f8e4m3fn": (1, 0x7F, 0x7E),
    "f8e5m2": (1, 0x7F, 0x7C),
    "f16": (2, 0x7FFF, 0x7C00),
    "bf16": (2, 0x7FFF, 0x7F80),
    "f32": (4, 0x7FFFFFFF, 0x7F800000),
    "c64": (4, 0x7FFFFFFF, 0x7F800000),
    "f64": (8, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
    "c128": (8, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
}


def test_text(
    project: EmbeddedProject, module: Module, arguments: Sequence[Any], expected: Any, seed: int
) -> str:
    """Render ``NAME_test.c``; ``expected`` is the module's value for ``arguments``.

    Raises Unsupported if these are more than 8 MiB, which is more than compilers like as text.
    """
    parameters = [p.shape for p in module.entry.parameters]
    inputs = [
        leaf for p, a in zip(parameters, arguments, strict=True) for leaf in recorded_leaves(p, a)
    ]
    results = list(recorded_leaves(module.entry.root_instruction.shape, expected))
    size = sum(len(leaf.data) + len(leaf.there) for leaf in (*inputs, *results))
    if size > _MOST_BYTES:
        raise Unsupported(
            f"a test of recorded bits would have {size >> 20} MiB of arrays as text, at most"
            f" {_MOST_BYTES >> 20}: leave out --check, or record a smaller program"
        )
    lines = [f'#include "{project.name}.h"', *([SAME] if results else [])]
    lines.append(_WORKSPACE.format(macro=project.macro))
    lines += [aligned_bytes(f"argument{n}", leaf.data) for n, leaf in enumerate(inputs)]
    for n, (_, data, there) in enumerate(results):
        lines.append(aligned_bytes(f"expected{n}", data))
        lines += [aligned_bytes(f"there{n}", there)] if there else []
        lines.append(
            f"static union {{\n    unsigned char bytes[{max(len(data), 1)}];\n"
            f"    uint64_t words;\n}} result{n};\n"
        )
    pointers = [f"(const void *)argument{n}.bytes" for n in range(len(inputs))]
    pointers += [f"(void *)result{n}.bytes" for n in range(len(results))]
    if project.takes_weights:
        lines.append(aligned_bytes("weights", project.weights_file))
        pointers.append("weights.bytes")
    call = ", ".join([*pointers, "workspace.bytes", *[f"{seed}u"] * project.takes_seed])
    lines += ["int main(void) {"]
    if project.takes_weights:
        lines += [f"    if ({project.name}_check_weights(weights.bytes) != 0) {{", _FAILS]
    lines += [f"    if ({project.name}_run({call}) != 0) {{", _FAILS]
    for n, (shape, data, there) in enumerate(results):
        # Types without NaN, or with one, are compared byte by byte: no mask is set.
        size, mask, infinity = INFINITY.get(shape.element_type.name, (1, 0, 0))
        which = f"there{n}.bytes" if there else "0"
        numbers = f"{len(data)}, {size}, {mask}u, {infinity}u"
        test = f"result{n}.bytes, expected{n}.bytes, {which}, {numbers}"
        lines += [f"    if (!same({test})) {{", f"        return {min(n + 1, 254)};", "    }"]
    return "\n".join([*lines, "    return 0;", "}", ""])


class Leaf(NamedTuple):
    """Hold the bytes of a recorded array.

    ``there`` is a mask of as many bytes, nonzero within the actual sizes of a bounded array; empty
    for a static one.
    """

    shape: ArrayShape
    data: bytes
    there: bytes = b""


def recorded_leaves(shape: Shape, value: Any) -> list[Leaf]:
    """Return the arrays of a value in order, a bounded one's sizes after it."""
    if isinstance(shape, TupleShape):
        pairs = zip(shape.elements, value, strict=True)
        return [leaf for element, part in pairs for leaf in recorded_leaves(element, part)]
    if not shape.element_type.is_array:
        return []
    array = np.asarray(value)
    # A static dimension must match; a bounded one may be shorter.
    fits = len(array.shape) == shape.rank and all(
        size == dim or (is_bounded(shape, d) and size < dim)
        for d, (size, dim) in enumerate(zip(array.shape, shape.dims, strict=True))
    )
    if not fits or array.dtype != shape.element_type.numpy:
        raise ArgumentError(f"recorded value {array.dtype}{list(array.shape)} is no {shape}")
    if not shape.is_dynamic:
        return [Leaf(shape, stored_bytes(array))]
    whole = np.zeros(shape.dims, array.dtype)
    there = np.zeros((*shape.dims, array.dtype.itemsize), np.uint8)
    inside = tuple(map(slice, array.shape))
    whole[inside] = array
    there[inside] = 1
    sizes = np.array(array.shape, np.int32)
    counted = Leaf(shape, stored_bytes(whole), there.tobytes())
    return [counted, Leaf(ArrayShape(S32, sizes.shape), sizes.tobytes())]
