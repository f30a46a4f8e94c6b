"""Divide programs into classes, each with its own goal, by what they are made of."""

from __future__ import annotations

from bench.speed.limits import Limits
from bench.speed.work import Work

PRODUCTS, MEMORY, IRREGULAR, SMALL = "products", "memory", "irregular", "small"
KINDS = {
    PRODUCTS: "large dots and convolutions",
    MEMORY: "memory-bound maps, reductions, row chains, transposes",
    IRREGULAR: "sort, scan, gather and scatter, windows, n-body, factorisations",
    SMALL: "small programs, calls, loops",
}
_IRREGULAR = frozenset(
    ("sort", "gather", "scatter", "topk", "reduce-window", "select-and-scatter")
    + ("fft", "cholesky", "triangular-solve", "custom-call", "rng-bit-generator")
)
_SMALL = 20e-6  # seconds at the limit: what a few calls take
_BUSY = 4.0  # times what memory takes: then arithmetic counts


def kind(work: Work, limits: Limits) -> str:
    """Classify a program: small where the machine's limit is, or a loop makes it up; by its
    opcodes where one is irregular; else by whether products or memory bound it."""
    limit = limits.seconds(work.read, work.written, work.operations)
    products = {name for name in ("dot", "convolution") if work.opcodes.get(name)}
    arithmetic = limits.seconds(0, 0, work.operations)
    if limit < _SMALL or "while" in work.opcodes:
        return SMALL
    if products and arithmetic > limits.seconds(work.read, work.written, {}):
        return PRODUCTS
    if _IRREGULAR & set(work.opcodes):
        return IRREGULAR
    if arithmetic > _BUSY * limits.seconds(work.read, work.written, {}):
        return IRREGULAR
    return PRODUCTS if products else MEMORY
