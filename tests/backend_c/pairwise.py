"""Pairwise coverage: test cases in which every two values of different parameters meet.

What takes gcc seconds, all operations of all types in all shapes, takes a third so, and a defect
still shows that needs a type and a shape, an operation and a shape, or a type and an operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def pairwise(operations: Mapping[str, Sequence[str]], number: int) -> list[tuple[str, str]]:
    """Return (type, operation) for the shape of this number: each type and each operation of the
    types that have the same ones; after as many shapes as there are types, all pairs of them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for element_type, own in operations.items():
        alike.setdefault(tuple(own), []).append(element_type)
    return [
        (types[(place + number) % len(types)], own[place % len(own)])
        for own, types in alike.items()
        for place in range(max(len(own), len(types)))
    ]
