"""Write a select-and-scatter whose windows tile the operand: each element is in one of them.

So is the gradient of max pooling by 2 x 2. A window selects one of its elements and adds its source
to that, without a place in memory for what it selected:

    for window: best = argmax of a[taps];  for tap: r[tap] = tap == best ? init + source : init
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.convolution.small_windows import have_few_taps
from backend_c.kernels.parts.convolution.window_positions import Windows
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.scatter.selected_taps import selected_tap
from hlo.types import PRED, S32


def are_tiles(windows: Windows) -> bool:
    """Return whether windows of few elements cover an operand, each element once."""
    return have_few_taps(windows) and all(
        (d.stride if count > 1 else d.size) == d.size
        and count * d.size == extent
        and (d.padding_low, d.window_dilation) == (0, 1)
        for d, count, extent in zip(
            windows.dimensions, windows.positions, windows.operand.shape.dims, strict=True
        )
    )


def write_tiles(
    windows: Windows,
    sources: tuple[Element, Element],
    select: Combiner,
    scatter: Combiner,
    write: Writer,
) -> None:
    """Write the results of all windows; ``sources`` are the source and the init."""
    scope, (source, init) = windows.scope, sources
    first = scope.bind(init.at())

    def write_window(place: Sequence[Expr]) -> None:
        index = [windows.at(place, tap)[0] for tap in windows.every_tap]
        chosen = selected_tap(windows, place, select)
        (added,) = apply_combiner(scope, scatter, (first, source.at(*place)))
        for number, i in enumerate(index):
            is_chosen = apply("compare-EQ", chosen, Constant(S32, number), type=PRED)
            write(i, (apply("select", is_chosen, added, first, type=added.type),))

    nest.write_map(scope, windows.positions, 4 * windows.elements, write_window)
