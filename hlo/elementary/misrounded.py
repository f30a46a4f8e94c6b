"""List the operands at which rounding a sequence's float64 result to f32 misrounds.

There the exact result is so close to the midpoint of two f32 that the sequence's error decides.
``python -m selftest.prove FUNCTION`` finds them by trying every f32, and fails if one is missing.
Per function: pairs (operand, correctly rounded f32). Odd and even functions list x >= 0 only.
"""

from __future__ import annotations

from collections.abc import Mapping

MISROUNDED: Mapping[str, tuple[tuple[float, float], ...]] = {
    name: tuple((float.fromhex(x), float.fromhex(y)) for x, y in pairs)
    for name, pairs in {
        "acos": (
            ("0x1.110b460000000p-26", "0x1.921fb60000000p+0"),
            ("0x1.04c4440000000p-12", "0x1.920f6a0000000p+0"),
        ),
        "atan": (("0x1.1ad6460000000p-4", "0x1.1a63860000000p-4"),),
        "cosine": (
            ("0x1.3170f00000000p+63", "0x1.fe29760000000p-1"),
            ("0x1.2b96220000000p+67", "0x1.f0285e0000000p-1"),
        ),
        "logistic": (("-0x1.250c020000000p-10", "0x1.ffb6be0000000p-2"),),
        "sine": (("0x1.3333300000000p+13", "-0x1.63f4ba0000000p-2"),),
        "sinh": (("0x1.250bfe0000000p-11", "0x1.250bfe0000000p-11"),),
    }.items()
}
