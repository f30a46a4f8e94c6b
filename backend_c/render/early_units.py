"""Render translation units of kernels while others are still being lowered.

Python lowers a program on one thread and the C compiler takes as long again, so that what is
rendered already is compiled beside. Maps wait for the whole plan, as they may be merged there
(:mod:`backend_c.lower.merging`).
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir.loop_ir import Kernel
from backend_c.lower.maps import may_be_map
from backend_c.render.dialect import OPENMP, Dialect
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.elementary_functions import definitions

# Characters of the first unit: of gcc's 120 ms for 6,000 of them it takes 17 to start. Each further
# one is longer by half, so that large programs have few.
_FIRST, _GROWTH = 4_500, 1.5
_SHARED = '__attribute__((visibility("hidden"))) void'  # a kernel that another unit calls


class EarlyUnits:
    """Collect kernels of OpenMP C as they are lowered into units, and have each ``started``.

    ``started`` is called with a unit's file name and text as soon as it is full; ``texts`` are all
    of these units.
    """

    def __init__(self, started: Callable[[str, str], object]) -> None:
        self.kernels = DistinctKernels(OPENMP)
        self.texts: dict[str, str] = {}
        self._started = started
        self._taken = set[str]()  # names of kernels, also those that wait
        self._waiting: dict[str, str] = {}
        self._limit = float(_FIRST)

    @property
    def names(self) -> set[str]:
        """Return the names of the kernels in units."""
        return self._taken - self._waiting.keys()

    def add(self, kernel: Kernel) -> None:
        """Render a kernel, and put it into a unit if it will stay as it is."""
        name = self.kernels.name(kernel)
        if name in self._taken or may_be_map(kernel):
            return
        # A unit that is long enough waits for one more kernel: alone it is compiled with the entry.
        if sum(map(len, self._waiting.values())) >= self._limit:
            self._start()
        self._taken.add(name)
        self._waiting[name] = self.kernels.text(name)

    def _start(self) -> None:
        """Make a unit of the kernels that wait."""
        self._limit *= _GROWTH
        file = f"unit_{len(self.texts)}{OPENMP.suffix}"
        body = "\n".join(self._waiting.values())
        self.texts[file] = unit_text(body, OPENMP, is_alone=False)
        self._waiting.clear()
        self._started(file, self.texts[file])


def unit_text(body: str, dialect: Dialect, *, is_alone: bool) -> str:
    """Render a translation unit around kernels: the headers and functions that they need. Kernels
    that another unit calls have hidden visibility instead of being static."""
    functions = definitions(body, dialect)
    blocks = (_prologue(dialect, functions + body), functions, body)
    text = "\n".join(filter(None, blocks))
    return text if is_alone else text.replace(f"\n{dialect.kernel} kernel_", f"\n{_SHARED} kernel_")


def _prologue(dialect: Dialect, code: str) -> str:
    """Render the includes that a unit's code needs."""
    # A name may be found within another: a header too many costs time, one too few an error.
    needed = [header for header, name in dialect.includes if name in code]
    includes = "".join(f'#include "{header}"\n' for header in needed)
    return f"{includes}\n{dialect.prologue}"
