"""Assign views to the values of one computation: slices, and parts of concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.lower.block import Block
from backend_c.lower.placements import Placements, slice_view
from backend_c.lower.plan import Buffer, Value, View
from backend_c.lower.views import is_dense, window


@dataclass(frozen=True, slots=True)
class Views:
    """Select the arrays that become views of other buffers instead of copies.

    Slices of arguments and constants always do, slices of workspace buffers if ``of_workspace``,
    and parts of concatenations if ``of_parts``. Without ``are_slices`` only reshapes do: an array
    that a slice lies in cannot be updated in place while the slice is read.
    """

    of_parts: bool = True
    of_workspace: bool = True
    are_slices: bool = True


class ComputationViews:
    """Find the view, if any, in which an instruction's result lies or is to be written.

    Buffers of concatenations are allocated when their first part is. Without ``wanted`` every
    instruction has memory of its own.
    """

    def __init__(self, block: Block, wanted: Views | None, placements: Placements) -> None:
        self._block, self._wanted, self._placements = block, wanted, placements
        self._whole: dict[str, Buffer] = {}

    def value(self, name: str, operands: Sequence[Value]) -> Buffer | None:
        """Return the buffer of an instruction that is a view or a placed concatenation; else None.

        Parts of a concatenation that were computed elsewhere are copied there by kernels.
        """
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
        """Return the view that an instruction is computed in; None for a buffer of its own."""
        if self._wanted is None or not self._wanted.of_parts:
            return None
        return self._placements.view(name, self._concatenated)

    def _concatenated(self, name: str) -> Buffer:
        """Return the buffer of a concatenation, or its view of another one; allocate it once."""
        if name not in self._whole:
            place, shape = self.place(name), self._placements.found[name].shape
            made = self._block.view(shape, place) if place else self._block.new_buffers(shape)
            assert isinstance(made, Buffer)
            self._whole[name] = made
        return self._whole[name]

    def _sliced(self, name: str, operands: Sequence[Value]) -> Buffer | None:
        """Return an instruction's result as a view of its operand.

        None if it is no slice or reshape, or if a user needs its elements side by side.
        """
        assert self._wanted is not None
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
        if not self._wanted.are_slices and shape.elements != operand.shape.elements:
            return None
        if not is_dense(shape, view.dims) and not self._placements.is_read_by_index(name):
            return None
        return self._block.view(shape, view)

    def _may_view(self, view: View) -> bool:
        """Return whether the policy allows a view of this base."""
        assert self._wanted is not None
        return self._wanted.of_workspace or view.base in self._block.outside
