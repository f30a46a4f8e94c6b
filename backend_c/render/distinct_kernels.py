"""Render kernels, and share one C function between those of equal text."""

from __future__ import annotations

from backend_c.ir.deep_expressions import deep_expressions
from backend_c.ir.loop_ir import Kernel
from backend_c.lower.plan import Plan
from backend_c.render.block_versions import versioned
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.distributed_functions import with_distributed_functions
from backend_c.render.eager_loads import with_eager_loads
from backend_c.render.gathered_elements import with_gathered_elements
from backend_c.render.half_precision import with_converted_halves
from backend_c.render.interleaved_rows import with_interleaved_rows
from backend_c.render.lane_sums import with_lane_sums
from backend_c.render.marked_statements import unmarked, with_marks_of_both
from backend_c.render.moved_words import with_moved_words
from backend_c.render.narrow_indices import with_narrow_indices
from backend_c.render.overlapping_blocks import with_overlapping_blocks
from backend_c.render.statements import Body, kernel_text

# A loop that threads share goes on by as many iterations as there are threads: beyond its end, too.
_MOST_OF_A_GRID = 2**30


class DistinctKernels:
    """Name distinct kernels ``kernel_0``, …, as they are met; ``body`` renders statements."""

    def __init__(self, dialect: Dialect, body: type[Body] = Body) -> None:
        self.dialect, self._body = dialect, body
        self._names: dict[str, str] = {}  # by text, without marks
        self._marked: dict[str, str] = {}  # text with marks, if the body has them, by name
        self._met: dict[int, tuple[Kernel, str]] = {}  # kernels and their names, by identity

    def name(self, kernel: Kernel) -> str:
        """Return the C function's name of a kernel, which is rendered the first time."""
        # Rendered under a placeholder: texts, and so kernels, are equal but for the name.
        met = self._met.get(id(kernel))
        if met is None:
            met = self._met[id(kernel)] = kernel, self._named(self._text(kernel))
        return met[1]

    def names(self, plan: Plan) -> tuple[str, ...]:
        """Return the C function's name of each of a plan's kernels, in order."""
        return tuple(map(self.name, plan.kernels))

    def _named(self, text: str) -> str:
        """Return the name of the kernel with this text; with the marks of all such kernels, which
        do not decide whether two are equal."""
        plain, _ = unmarked(text)
        name = self._names.setdefault(plain, f"kernel_{len(self._names)}")
        before = self._marked.get(name, text)
        self._marked[name] = text if before == text else with_marks_of_both(before, text)
        return name

    @deep_expressions()
    def _text(self, kernel: Kernel) -> str:
        """Rewrite a kernel for the dialect and render it, with ``@`` for its name."""
        if self.dialect is OPENMP:
            # Words before halves: rows of f16 that are only copied are of u16 then, not converted.
            kernel = with_moved_words(with_lane_sums(versioned(kernel)))
            kernel = with_distributed_functions(with_interleaved_rows(kernel))
            kernel = with_converted_halves(with_gathered_elements(kernel))
            kernel = with_eager_loads(with_overlapping_blocks(kernel))
        elif self.dialect is EMBEDDED:
            kernel = with_narrow_indices(kernel)
        else:
            kernel = with_narrow_indices(kernel, _MOST_OF_A_GRID)
        return kernel_text(kernel, "@", self.dialect, self._body)

    def text(self, name: str) -> str:
        """Return the text of a kernel by its name."""
        return self._marked[name].replace("@", name, 1)
