"""Classify programs; each class has its own goal."""

from __future__ import annotations

from bench.speed.work import Work

PRODUCTS, MEMORY, IRREGULAR, SMALL = "products", "memory", "irregular", "small"
KINDS = {
    PRODUCTS: "large dots and convolutions",
    MEMORY: "memory-bound maps, reductions, row chains, transposes",
    IRREGULAR: "sort, scan, gather and scatter, windows, n-body, factorisations",
    SMALL: "small programs, calls, loops",
}
_SMALL_BYTES, _SMALL_OPERATIONS = 1 << 18, 5_000_000  # microseconds: a call counts
_PRODUCTS = 4.0  # operations of products for each byte: they take longer than to read the operands
_BUSY = 30.0  # operations for each byte: they take longer than memory even in vectors
_IRREGULAR = 16  # a program is irregular if a part of so many of its bytes is
_LOOP = 16  # trips: fewer are those of random numbers, which XLA unrolls


def kind(work: Work) -> str:
    """Classify a program: small if the call or its loop dominates; then by its products, its
    irregular bytes, and its arithmetic intensity."""
    size = work.read + work.written
    operations = sum(work.operations.values())
    if work.trips >= _LOOP or (size < _SMALL_BYTES and operations < _SMALL_OPERATIONS):
        return SMALL
    if work.products > _PRODUCTS * size:
        return PRODUCTS
    if _IRREGULAR * work.irregular > size or operations > _BUSY * size:
        return IRREGULAR
    return MEMORY
