"""Describe the passes of fast Fourier transforms, and write the operations on single numbers.

A pass has the transforms along one dimension. Its numbers lie in workspace while they are
transformed, real and imaginary parts apart; where exactly is for the lanes of a thread
(:mod:`.fast_fourier`) or blocks of threads (:mod:`.block_fourier`) to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.fourier_plan import (
    Chirp,
    chirp,
    interleaved_roots,
    is_smooth,
)
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers
from backend_c.kernels.parts.fourier.real_fourier import (
    Parts,
    halve_spectrum,
    is_real,
    spectrum_of_signal,
)
from hlo.types import F32, F64, PRED, ElementType

NAMES = {F32: "float", F64: "double"}  # of types in functions of the runtime
Index = tuple[Expr, ...]
# Maps the real and the imaginary part of a result, and its index, to what is stored.
Value = Callable[[Expr, Expr, Index], Expr]


@dataclass(frozen=True)
class Target:
    """Describe the array of ``dims`` that a pass stores to; ``value`` is its epilogue.

    ``exchanged``: in memory this dimension and the next have changed places.
    """

    array: Array
    dims: tuple[int, ...]
    value: Value
    exchanged: int | None = None

    def offset(self, index: Index) -> Expr:
        """Return the offset of a result."""
        if self.exchanged is None:
            return ix.linearize(index, self.dims)
        d, order = self.exchanged, list(range(len(self.dims)))
        order[d : d + 2] = d + 1, d
        return ix.linearize([index[d] for d in order], [self.dims[d] for d in order])


@dataclass
class Pass:
    """Describe transforms of ``length`` numbers along ``axis`` of ``source``, a reader.

    ``is_inverse`` exchanges real and imaginary parts. ``is_half``: of a real signal's spectrum the
    source has the first half; it is mirrored, X[n - k] = conj(X[k]), and the constant and, for even
    lengths, the middle coefficient count as real. ``has_signal``: the source (of an inverse
    transform the target) are real signals of twice the length, pairs of numbers read as complex
    ones; the other side is the first half of their spectra.
    """

    scope: Scope
    part: ElementType
    source: Element
    axis: int
    length: int
    target: Target
    is_inverse: bool
    is_half: bool = False
    has_signal: bool = False
    chirp: Chirp | None = field(init=False)

    def __post_init__(self) -> None:
        self.chirp = None if is_smooth(self.length) else chirp(self.length)

    @property
    def is_last(self) -> bool:
        """Return whether the last dimension is transformed."""
        return self.axis == len(self.target.dims) - 1

    @property
    def numbers(self) -> int:
        """Return the length that the stages transform: n, or that of Bluestein's convolution."""
        return self.chirp.length if self.chirp else self.length

    @property
    def places_read(self) -> int:
        """Return how many numbers of each line are read from the source."""
        places = self.length // 2 + 1 if self.is_half else self.length
        return places + (self.has_signal and self.is_inverse)

    def tables(self) -> dict[str, Array]:
        """Add the constant tables of the transforms to the kernel; return them by name."""
        dtype = self.part.numpy
        tables = {"roots": interleaved_roots(self.numbers).astype(dtype)}
        if self.has_signal:
            tables["signal"] = interleaved_roots(2 * self.length)[: 2 * self.length + 2].astype(
                dtype
            )
        if self.chirp:
            tables["factors"] = self.chirp.factors.astype(dtype)
            tables["spectrum"] = self.chirp.spectrum.astype(dtype)
        return {name: self.scope.table(table) for name, table in tables.items()}


class PassWriter(ABC):
    """Write the transforms of a pass on numbers in workspace."""

    def __init__(self, of: Pass) -> None:
        self.of = of

    def transform(self, buffers: Buffers, tables: dict[str, Array]) -> None:
        """Write the transforms: the stages, or Bluestein's convolution, which has them twice."""
        of = self.of
        if of.chirp is None:
            self._stages(buffers, tables)
            return
        self._multiply(buffers, tables["factors"], of.length)
        self._clear(buffers)
        self._meet()
        self._stages(buffers, tables)
        # The inverse transform is the forward one between two exchanges of the parts.
        self._multiply(buffers, tables["spectrum"], of.numbers, is_exchanged=True)
        self._meet()
        self._stages(buffers, tables)
        # Back from the inverse transform: parts are exchanged once more.
        self._multiply(buffers, tables["factors"], of.length, swaps=True)
        self._meet()

    @abstractmethod
    def _stages(self, buffers: Buffers, tables: dict[str, Array]) -> None:
        """Write the stages (butterflies) of a transform of smooth length."""

    @abstractmethod
    def _multiply(
        self,
        buffers: Buffers,
        factors: Array,
        numbers: int,
        *,
        is_exchanged: bool = False,
        swaps: bool = False,
    ) -> None:
        """Multiply numbers by a table of factors.

        ``swaps`` exchanges real and imaginary parts before, ``is_exchanged`` after it.
        """

    @abstractmethod
    def _clear(self, buffers: Buffers) -> None:
        """Zero the numbers of a convolution beyond those of the transform."""

    @abstractmethod
    def _meet(self) -> None:
        """Write a barrier, if threads share the numbers in workspace."""


@dataclass(frozen=True)
class Numbers:
    """Load and store number ``k`` of a line in workspace.

    ``place`` maps (k, line, 0 or 1 for the real or imaginary part) to an array and an offset.
    """

    of: Pass
    place: Callable[[Expr, Expr, int], tuple[Array, Expr]]

    def put(self, k: Expr, line: Expr, value: Expr) -> None:
        """Store a number that was read, and its mirror image if the source has half a spectrum."""
        of, scope, none = self.of, self.of.scope, Constant(self.of.part, 0.0)
        real: Expr = value
        imag: Expr = none
        if value.type.is_complex:
            named = scope.bind(value)
            real, imag = (apply(name, named, type=of.part) for name in ("real", "imag"))
        if not of.is_half:
            self.store(k, line, real, imag)
            return
        own = scope.bind(apply("select", is_real(of.length, k), none, imag, type=of.part))
        real = scope.bind(real)
        # Those that mirror themselves are written twice, the same both times.
        mirrored = ix.modulo(ix.subtract(of.length, k), of.length)
        self.store(mirrored, line, real, apply("negate", own))
        self.store(k, line, real, own)

    def store(self, k: Expr, line: Expr, real: Expr, imag: Expr) -> None:
        """Store both parts, exchanged for the inverse transform."""
        parts = (imag, real) if self.of.is_inverse else (real, imag)
        for number, part in enumerate(parts):
            self.of.scope.store(*self.place(k, line, number), part)

    def _stored(self, k: Expr, line: Expr) -> list[Expr]:
        """Load both parts in the order in which they are stored."""
        scope = self.of.scope
        return [scope.bind(scope.load(*self.place(k, line, number))) for number in (0, 1)]

    def load(self, k: Expr, line: Expr) -> Parts:
        """Load (real, imaginary), which are exchanged for the inverse transform."""
        parts = self._stored(k, line)
        return Parts(*reversed(parts)) if self.of.is_inverse else Parts(*parts)

    def multiply(
        self, k: Expr, line: Expr, factor: Parts, *, is_exchanged: bool, swaps: bool = False
    ) -> None:
        """Multiply a number by a factor, in place; see :meth:`PassWriter._multiply`."""
        scope, (c, d) = self.of.scope, factor
        a, b = self._stored(k, line)
        if swaps:
            a, b = b, a
        real = apply("subtract", apply("multiply", a, c), apply("multiply", b, d))
        imag = apply("add", apply("multiply", a, d), apply("multiply", b, c))
        made = [scope.bind(real), scope.bind(imag)]
        for number, value in enumerate(reversed(made) if is_exchanged else made):
            scope.store(*self.place(k, line, number), value)

    def halve(self, k: Expr, line: Expr, roots: Array) -> None:
        """Turn numbers k and h - k of a real signal's spectrum into those of h complex numbers."""
        scope, half, part = self.of.scope, self.of.length, self.of.part

        def load(number: Expr) -> Parts:
            real, imag = self.load(number, line)
            ends = (apply("compare-EQ", number, ix.constant(end), type=PRED) for end in (0, half))
            none = Constant(part, 0.0)
            own = apply("select", apply("or", *ends), none, imag, type=part)
            return Parts(real, scope.bind(own))

        def store(number: Expr, parts: Parts) -> None:
            self.store(number, line, *parts)

        halve_spectrum(scope, (load, store), roots, half, k)

    def result(self, k: Expr, line: Expr, tables: dict[str, Array]) -> Parts:
        """Return number k of the result, for signals by the formula of :mod:`.real_fourier`."""
        of = self.of
        if of.has_signal and not of.is_inverse:
            return spectrum_of_signal(
                of.scope, lambda number: self.load(number, line), tables["signal"], of.length, k
            )
        return self.load(k, line)


def complex_at(scope: Scope, table: Array, k: Expr) -> Parts:
    """Load number k of a table of interleaved complex constants."""
    places = (ix.add(ix.multiply(k, 2), number) for number in (0, 1))
    return Parts(*(scope.bind(scope.load(table, place)) for place in places))
