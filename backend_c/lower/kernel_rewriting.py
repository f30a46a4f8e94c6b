"""Optimize the loop IR of one kernel, before any dialect renders it."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.affine_indices import with_affine_indices
from backend_c.ir.conditions.bit_tests import with_bit_tests
from backend_c.ir.conditions.decided_selects import with_decided_selects
from backend_c.ir.conditions.invariant_conditions import with_hoisted_conditions
from backend_c.ir.conditions.logical_selects import with_logical_selects
from backend_c.ir.folded_divisions import with_folded_divisions
from backend_c.ir.fused_products import with_fused_products
from backend_c.ir.loop_ir import Statement
from backend_c.ir.narrow_integers import with_narrow_integers
from backend_c.ir.segmented_sums import with_segmented_sums
from backend_c.ir.settings import Settings
from backend_c.ir.value_ranges import with_short_sequences


def rewritten(body: Sequence[Statement], settings: Settings) -> tuple[Statement, ...]:
    """Run the rewrites of loop IR that settings ask for over a kernel's body."""
    if settings.has_lanes:
        body = with_segmented_sums(body)
    # Selects before indices: they have no form as such, as i < 0 ? i + n : i of NumPy's.
    body = with_affine_indices(with_decided_selects(body))
    if settings.is_fast and settings.has_lanes:
        body = with_folded_divisions(body)
    if settings.has_lanes:
        body = with_bit_tests(with_narrow_integers(body))
        body = with_hoisted_conditions(with_logical_selects(body))
    # Products last: intervals have no rule for multiply-add, and would end there.
    return with_fused_products(with_short_sequences(body)) if settings.is_fast else tuple(body)
