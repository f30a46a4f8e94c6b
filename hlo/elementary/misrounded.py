"""Operands at which rounding a sequence's float64 result to f32 gives the wrong neighbour.

``python -m prove FUNCTION`` finds them by trying every f32, and fails if one is missing. Per
function: (operand, a float64 that rounds correctly). Odd and even functions list x >= 0 only.
"""

from __future__ import annotations

from collections.abc import Mapping

MISROUNDED: Mapping[str, tuple[tuple[float, float], ...]] = {}
