"""Give values of one computation places within others, while its steps are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.lower.block import Block
from backend_c.lower.placements import Placements, slice_view
from backend_c.lower.plan import Buffer, Value, View
from backend_c.lower.views import is_dense, window


@dataclass(frozen=True, slots=True)
class Views:
    """Say which arrays lie within others: slices of arguments and constants, and those
    ``of_workspace``; parts of concatenations (``of_parts``)."""

    of_parts: bool = True
    of_workspace: bool = True


class ComputationViews:
    """Hold the buffers that the parts of concatenations are placed in, from the first part on;
    without ``wanted`` there are none."""

    def __init__(self, block: Block, wanted: Views | None, placements: Placements) -> None:
        self._block, self._wanted, self._placements = block, wanted, placements
        self._whole: dict[str, Buffer] = {}

    def value(self, name: str, operands: Sequence[Value]) -> Buffer | None:
        """Return the value of an instruction that needs no kernel of its own, or none but for some
        parts; None if it needs one."""
        if self._wanted is None:
            return None
        if self._wanted.of_parts and name in self._placements.found:
            whole = self._concatenated(name)
            for part, computation, numbers in self._placements.left(name):
                given = [operands[number] for number in numbers]
                self._block.launch(computation, given, placed=window(whole, part.starts))
            return whole
        return None if self.place(name) else self._sliced(name, operands)

    def place(self, name: str) -> View | None:
        """Return where an instruction is to write its result, if that is within another value."""
        if self._wanted is None or not self._wanted.of_parts:
            return None
        return self._placements.view(name, self._concatenated)

    def _concatenated(self, name: str) -> Buffer:
        """Return the buffer of a concatenation, which may be a part of another one."""
        if name not in self._whole:
            place, shape = self.place(name), self._placements.found[name].shape
            made = self._block.view(shape, place) if place else self._block.new_buffers(shape)
            assert isinstance(made, Buffer)
            self._whole[name] = made
        return self._whole[name]

    def _sliced(self, name: str, operands: Sequence[Value]) -> Buffer | None:
        """Return the part of an operand that an instruction is; None if it is none, or if not all
        that use it could read it there."""
        kernel = self._placements.kernels[name]
        if kernel is None or len(operands) != 1 or len(kernel.parameters) != 1:
            return None
        (operand,) = operands
        if not isinstance(operand, Buffer) or operand.sizes is not None:
            return None
        found = slice_view(kernel, operand)
        if found is None:
            return None
        view, shape = found
        if not self._may_view(view):
            return None
        if not is_dense(shape, view.dims) and not self._placements.is_read_by_index(name):
            return None
        return self._block.view(shape, view)

    def _may_view(self, view: View) -> bool:
        """Return whether slices are to be where their operand is."""
        assert self._wanted is not None
        return self._wanted.of_workspace or view.base in self._block.outside
