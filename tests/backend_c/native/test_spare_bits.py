"""Arguments made of bytes that have more bits set than their element type has."""

from __future__ import annotations

import numpy as np
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import Array

SHORT = [t for t in ELEMENT_TYPES.values() if t.is_array and (t.bits < 8 or t.name == "pred")]
BYTES = np.array([[0xF2, 0xFF], [0xF0, 1]], np.uint8).T  # not row-major


def clean(name: str, bits: int) -> Array:
    """The bytes that the type has the bits of."""
    return (BYTES != 0).view(np.uint8) if name == "pred" else BYTES & np.uint8(2**bits - 1)


def test_bits_that_a_type_lacks_are_ignored() -> None:
    shapes = [f"{t.name}[2,2]" for t in SHORT]
    lines = [f"x{n} = {shape} parameter({n})" for n, shape in enumerate(shapes)]
    lines += [f"y{n} = f32[2,2] convert(x{n})" for n in range(len(shapes))]
    results = [f"x{n}" for n in range(len(shapes))] + [f"y{n}" for n in range(len(shapes))]
    whole = ", ".join(shapes + ["f32[2,2]"] * len(shapes))
    lines.append(f"ROOT r = ({whole}) tuple({', '.join(results)})")
    module = hlo.parse("HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n")
    given = [BYTES.view(t.numpy) for t in SHORT]
    wanted = interp.evaluate(module, *(clean(t.name, t.bits).view(t.numpy) for t in SHORT))
    found = [interp.evaluate(module, *given)]
    if has_c_compiler():
        found.append(backend_c.compile(module)(*given))
    for values in found:
        assert [x.tobytes() for x in values] == [x.tobytes() for x in wanted]
