"""Represent element types, shapes and layouts.

One table describes every element type; all other code asks it instead of comparing names. Source of
names and encodings: XLA's ``primitive_util.cc`` and the OCP/IEEE formats that ``ml_dtypes``
implements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

if not hasattr(ml_dtypes, "int1"):
    raise ImportError(
        f"ml_dtypes {ml_dtypes.__version__} is installed, and 0.6 is the oldest that works:"
        " pip install -U ml_dtypes"
    )


@dataclass(frozen=True, slots=True, eq=False)
class ElementType:
    """An element type: ``bits`` is its width in HLO, ``dtype`` its NumPy type (None without data).

    There is one object per type: comparing is ``is``.
    """

    name: str
    bits: int
    kind: str  # pred, signed, unsigned, float, complex, token or opaque
    dtype: np.dtype[np.generic] | None

    def __str__(self) -> str:
        return self.name

    # Pickled and copied by name, so that comparing by ``is`` also holds in worker processes.
    def __reduce__(self) -> tuple[Callable[[str], ElementType], tuple[str]]:
        return _element_type, (self.name,)

    @property
    def is_integer(self) -> bool:
        return self.kind in ("signed", "unsigned")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_inexact(self) -> bool:
        """Return whether results of arithmetic in the type are rounded: floats and complex."""
        return self.kind in ("float", "complex")

    @property
    def is_array(self) -> bool:
        """Return whether the type's arrays hold data (tokens and opaque values do not)."""
        return self.dtype is not None

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """Return the NumPy type; the element type must hold data."""
        assert self.dtype is not None, self.name
        return self.dtype


_ROWS: tuple[tuple[str, int, str, object], ...] = (
    ("pred", 8, "pred", np.bool_),
    ("s1", 1, "signed", ml_dtypes.int1),
    ("s2", 2, "signed", ml_dtypes.int2),
    ("s4", 4, "signed", ml_dtypes.int4),
    ("s8", 8, "signed", np.int8),
    ("s16", 16, "signed", np.int16),
    ("s32", 32, "signed", np.int32),
    ("s64", 64, "signed", np.int64),
    ("u1", 1, "unsigned", ml_dtypes.uint1),
    ("u2", 2, "unsigned", ml_dtypes.uint2),
    ("u4", 4, "unsigned", ml_dtypes.uint4),
    ("u8", 8, "unsigned", np.uint8),
    ("u16", 16, "unsigned", np.uint16),
    ("u32", 32, "unsigned", np.uint32),
    ("u64", 64, "unsigned", np.uint64),
    ("f4e2m1fn", 4, "float", ml_dtypes.float4_e2m1fn),
    ("f6e2m3fn", 6, "float", ml_dtypes.float6_e2m3fn),
    ("f6e3m2fn", 6, "float", ml_dtypes.float6_e3m2fn),
    ("f8e3m4", 8, "float", ml_dtypes.float8_e3m4),
    ("f8e4m3", 8, "float", ml_dtypes.float8_e4m3),
    ("f8e4m3b11fnuz", 8, "float", ml_dtypes.float8_e4m3b11fnuz),
    ("f8e4m3fn", 8, "float", ml_dtypes.float8_e4m3fn),
    ("f8e4m3fnuz", 8, "float", ml_dtypes.float8_e4m3fnuz),
    ("f8e5m2", 8, "float", ml_dtypes.float8_e5m2),
    ("f8e5m2fnuz", 8, "float", ml_dtypes.float8_e5m2fnuz),
    ("f8e8m0fnu", 8, "float", ml_dtypes.float8_e8m0fnu),
    ("f16", 16, "float", np.float16),
    ("bf16", 16, "float", ml_dtypes.bfloat16),
    ("f32", 32, "float", np.float32),
    ("f64", 64, "float", np.float64),
    ("c64", 64, "complex", np.complex64),
    ("c128", 128, "complex", np.complex128),
    ("token", 0, "token", None),
    ("opaque", 0, "opaque", None),
)

ELEMENT_TYPES: dict[str, ElementType] = {
    name: ElementType(name, bits, kind, None if scalar is None else np.dtype(scalar))  # type: ignore[call-overload]
    for name, bits, kind, scalar in _ROWS
}


def _element_type(name: str) -> ElementType:
    return ELEMENT_TYPES[name]


PRED = ELEMENT_TYPES["pred"]
S8, S16, S32, S64 = (ELEMENT_TYPES[name] for name in ("s8", "s16", "s32", "s64"))
U8, U16, U32, U64 = (ELEMENT_TYPES[name] for name in ("u8", "u16", "u32", "u64"))
F16, BF16, F32, F64 = (ELEMENT_TYPES[name] for name in ("f16", "bf16", "f32", "f64"))
C64, C128 = ELEMENT_TYPES["c64"], ELEMENT_TYPES["c128"]
TOKEN, OPAQUE = ELEMENT_TYPES["token"], ELEMENT_TYPES["opaque"]
PARTS = {C64: F32, C128: F64}  # the type of a complex type's components

_BY_DTYPE = {t.dtype: t for t in ELEMENT_TYPES.values() if t.dtype is not None}


def element_type_of(dtype: np.dtype[np.generic]) -> ElementType | None:
    """Return the element type that NumPy stores as ``dtype``, or None if the language has none."""
    return _BY_DTYPE.get(dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of an array's dimensions in memory.

    ``minor_to_major`` lists the dimensions, fastest varying first. ``suffix`` is the rest of the
    layout as printed (tiles, memory space, …): kept, without effect on values.
    """

    minor_to_major: tuple[int, ...]
    suffix: str = ""

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{self.suffix}}}" if self.suffix else f"{{{order}}}"


UNBOUNDED = -1  # the bound of a dimension that has none: it parses and prints, no more


@dataclass(frozen=True, slots=True, repr=False)
class ArrayShape:
    """``T[dims]{layout}``; tokens and opaque values are shapes of rank 0.

    ``dims`` are the bounds of bounded dimensions ``<=N``; ``dynamic`` is empty for a static shape,
    else it says which dimensions are bounded. Of a dimension ``?`` the bound is UNBOUNDED.
    """

    element_type: ElementType
    dims: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    def __str__(self) -> str:
        return (
            str(self.element_type) + self.dims_text + ("" if not self.layout else str(self.layout))
        )

    def __repr__(self) -> str:
        return str(self)

    @property
    def dims_text(self) -> str:
        if not self.dynamic:
            return f"[{','.join(map(str, self.dims))}]"
        shown = [
            f"<={dim}" if d else str(dim) for dim, d in zip(self.dims, self.dynamic, strict=True)
        ]
        texts = ("?" if dim == UNBOUNDED else s for dim, s in zip(self.dims, shown, strict=True))
        return f"[{','.join(texts)}]"

    @property
    def storage_bits(self) -> int:
        """Return the bits of an element in memory: the layout's ``E(4)``, else whole bytes."""
        packed = re.search(r"E\((\d{1,4})\)", self.layout.suffix) if self.layout else None
        return int(packed[1]) if packed else max(8, self.element_type.bits)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def elements(self) -> int:
        """Return the number of elements; bounded dimensions count with their bounds."""
        return math.prod(self.dims)

    @property
    def is_dynamic(self) -> bool:
        return bool(self.dynamic)

    @property
    def is_integer(self) -> bool:
        return self.element_type.is_integer

    @property
    def is_float(self) -> bool:
        return self.element_type.is_float

    @property
    def is_complex(self) -> bool:
        return self.element_type.is_complex

    @property
    def is_inexact(self) -> bool:
        return self.element_type.is_inexact


@dataclass(frozen=True, slots=True, repr=False)
class TupleShape:
    """``(shape, shape, …)``."""

    elements: tuple[Shape, ...] = ()

    def __str__(self) -> str:
        texts = [str(shape) for shape in self.elements]
        # XLA numbers every fifth element.
        marked = [f"/*index={i}*/{t}" if i and i % 5 == 0 else t for i, t in enumerate(texts)]
        return f"({', '.join(marked)})"

    def __repr__(self) -> str:
        return str(self)


Shape = ArrayShape | TupleShape


def bounded(
    element_type: ElementType, dims: tuple[int, ...], dynamic: tuple[bool, ...]
) -> ArrayShape:
    """Return an array shape without a layout; ``dynamic`` without a true entry means static."""
    return ArrayShape(element_type, dims, dynamic if any(dynamic) else ())


def is_bounded(shape: ArrayShape, dimension: int) -> bool:
    return bool(shape.dynamic) and shape.dynamic[dimension]


def without_layout(shape: Shape) -> Shape:
    """Return the shape without layouts, which values do not depend on."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(without_layout, shape.elements)))
    return (
        shape if shape.layout is None else ArrayShape(shape.element_type, shape.dims, shape.dynamic)
    )


def compatible(one: Shape, other: Shape) -> bool:
    """Return whether two shapes are equal up to layouts."""
    return one is other or without_layout(one) == without_layout(other)


def same_bounds(one: Shape, other: Shape) -> bool:
    """Return whether two shapes are equal up to layouts and to which dimensions are bounded."""
    if one is other:
        return True
    if isinstance(one, ArrayShape) and isinstance(other, ArrayShape):
        return one.element_type is other.element_type and one.dims == other.dims
    if isinstance(one, ArrayShape) or isinstance(other, ArrayShape):
        return False
    same = len(one.elements) == len(other.elements)
    return same and all(map(same_bounds, one.elements, other.elements))


def leaves(shape: Shape) -> tuple[ArrayShape, ...]:
    """Flatten a shape to its arrays and tokens, in order."""
    if isinstance(shape, ArrayShape):
        return (shape,)
    found: list[ArrayShape] = []
    for element in shape.elements:
        found += (element,) if isinstance(element, ArrayShape) else leaves(element)
    return tuple(found)


def array_leaves(shape: Shape) -> Iterator[ArrayShape]:
    """Yield the shapes of a shape's arrays, in order, without tokens."""
    return (leaf for leaf in leaves(shape) if leaf.element_type.is_array)
