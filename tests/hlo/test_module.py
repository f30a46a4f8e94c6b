"""Modules: what they hold is found by its name."""

from __future__ import annotations

from cost import python_calls

from hlo.module import Computation, Instruction, Module
from hlo.types import S32, ArrayShape


class _Name(str):
    """Compare names in Python, so that comparisons are counted."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, str(other))


def test_computations_are_found_by_their_hash() -> None:
    parameter = Instruction("x", ArrayShape(S32), "parameter", attributes={"parameter_number": 0})
    names = [f"c{n}" for n in range(300)]
    computations = tuple(Computation(_Name(name), (parameter,), "x") for name in names)
    module = Module("m", computations, names[-1])
    assert module.entry is computations[-1]
    assert [module.computation(name) for name in names] == [*computations]
    assert python_calls(lambda: [*map(module.computation, names)]) < 10 * len(names)
