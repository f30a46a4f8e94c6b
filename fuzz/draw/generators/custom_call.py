"""Generate custom calls of the targets that both interp and backend_c implement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.dynamic import size
from fuzz.draw.generators.linear_algebra import has_small_systems, positive
from fuzz.draw.generators.sort import wider
from fuzz.draw.shapes import Accepts, size_to
from hlo.aliasing import Alias
from hlo.attributes import Attribute, ConvolutionDimensions, Window, WindowDimension
from hlo.literal import Literal
from hlo.types import F32, F64, S32, ArrayShape, Layout, Shape, TupleShape, bounded

# Their value is their operand.
MARKERS = (
    *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"),
    *("xla.sdy.LocalToGlobalShape", "xla.sdy.GlobalToLocalShape", "LayoutConstraint"),
    *("ShardBarrierFrom", "ShardBarrierTo", "annotate_device_placement"),
    *("MoveToHost", "MoveToDevice", "Pin", "Unpin"),
)
_SIZE = ArrayShape(S32)
_LETTERS = {F32: "s", F64: "d"}
# What changes nothing here: an attribute and its values.
_UNUSED: tuple[tuple[str, tuple[Attribute, ...]], ...] = (
    ("custom_call_has_side_effect", (True,)),
    ("api_version", ("API_VERSION_ORIGINAL", "API_VERSION_TYPED_FFI")),
    ("schedule", ("SCHEDULE_LATEST", "SCHEDULE_EARLIEST")),
    ("padding_type", ("PADDING_VALID", "PADDING_SAME")),
    ("feature_group_count", (2,)),
    ("batch_group_count", (3,)),
    ("operand_precision", (("highest",), ("default", "high"))),
    ("window", (Window((WindowDimension(2),)),)),
    ("dim_labels", (ConvolutionDimensions(0, 1, (2,), 1, 0, (2,), 2, 0, (1,)),)),
    ("literal", (Literal(_SIZE, np.array(7, np.int32)),)),
)


def custom_call(builder: Builder, shape: ArrayShape) -> str:
    able = [target for target, accepts in _TARGETS if accepts(shape)]
    return builder.choice(able)(builder, shape)


def _emit(builder: Builder, target: str, shape: Shape, *operands: str, config: str = "") -> str:
    name, values = builder.choice(_UNUSED)
    unused = {name: builder.choice(values)} if builder.boolean() else _called(builder)
    given = {"custom_call_target": target, **_layouts_or_alias(builder, shape, operands), **unused}
    made = builder.emit("custom-call", shape, *operands, **given)
    if config:
        builder.annotate(made, backend_config=config)
    return made


def _called(builder: Builder) -> dict[str, Attribute]:
    """Draw called computations, which the targets ignore."""
    if builder.boolean():
        return {}
    scalar = ArrayShape(F32)
    names = builder.several(
        lambda: builder.computation([scalar], lambda inner, given: inner.value(scalar)), 1, 3
    )
    if len(names) == 1 and builder.boolean():
        return {"to_apply": names[0]}
    return {"called_computations": tuple(names)}


def _layouts_or_alias(
    builder: Builder, shape: Shape, operands: Sequence[str]
) -> dict[str, Attribute]:
    """Draw attributes that change nothing: layout constraints of static operands, or an alias of
    the result with the first operand."""
    shapes = [builder.shape(name) for name in operands]
    arrays = [one for one in shapes if isinstance(one, ArrayShape) and not one.is_dynamic]
    kind = builder.integer(0, 3)
    if kind == 0 and len(arrays) == len(shapes):
        return {"operand_layout_constraints": tuple(map(_row_major, arrays))}
    if kind == 1 and shape == shapes[0]:
        return {"output_to_operand_aliasing": (Alias((), 0, ()),)}
    return {}


def _row_major(shape: ArrayShape) -> ArrayShape:
    return replace(shape, layout=Layout(tuple(reversed(range(shape.rank)))) if shape.rank else None)


def _marked(builder: Builder, shape: ArrayShape) -> str:
    """Draw a marker of one value, or of several and a tuple of all."""
    target, count = builder.choice(MARKERS), builder.integer(1, 3)
    others = [ArrayShape(builder.element_type(lambda t: True), (2,)) for _ in range(count - 1)]
    names = [builder.value(one) for one in (shape, *others)]
    if count == 1:
        return _emit(builder, target, shape, *names)
    results = TupleShape((shape, *others))
    if builder.boolean():
        names = [builder.tuple(*names)]
    found = _emit(builder, target, results, *names)
    return builder.emit("get-tuple-element", shape, found, index=0)


def _topk(builder: Builder, shape: ArrayShape) -> str:
    """Draw a TopK, mostly of f32, which is all that XLA takes; return its values, converted, or, if
    the shape is s32, perhaps its indices."""
    is_places = shape.element_type is S32 and builder.boolean()
    operand = wider(builder, shape, is_places=is_places)
    if builder.integer(0, 3):
        operand = ArrayShape(F32, operand.dims)
    values = ArrayShape(operand.element_type, shape.dims)
    results = TupleShape((values, ArrayShape(S32, shape.dims)))
    found = _emit(builder, "TopK", results, builder.value(operand))
    result = shape if is_places else values
    chosen = builder.emit("get-tuple-element", result, found, index=int(is_places))
    return chosen if result == shape else builder.emit("convert", shape, chosen)


def _padded(builder: Builder, shape: ArrayShape) -> str:
    """Draw a PadToStatic of any array, or of one cut by SliceToDynamic; return the array, or a
    size."""
    is_size = shape == _SIZE and builder.boolean()
    dims = tuple(builder.several(lambda: size_to(builder, 4), 1, 3))
    whole = ArrayShape(builder.element_type(lambda t: True), dims) if is_size else shape
    value = builder.value(whole)
    if builder.integer(0, 3):
        sizes = [size(builder, bound) for bound in whole.dims]
        cut = bounded(whole.element_type, whole.dims, (True,) * whole.rank)
        value = _emit(builder, "SliceToDynamic", cut, value, *sizes)
    results = TupleShape((whole, *[_SIZE] * whole.rank))
    found = _emit(builder, "PadToStatic", results, value)
    index = builder.integer(1, whole.rank) if is_size else 0
    return builder.emit("get-tuple-element", shape, found, index=index)


def _potrf(builder: Builder, shape: ArrayShape) -> str:
    """Draw a Cholesky factor of any matrix, or of one that is mostly positive definite."""
    operand = builder.value(shape) if builder.boolean() else positive(builder, shape)
    results = TupleShape((shape, ArrayShape(S32, shape.dims[:-2])))
    target = f"lapack_{_LETTERS[shape.element_type]}potrf_ffi"
    found = _emit(builder, target, results, operand, config=_config(builder, uplo="LU"))
    return builder.emit("get-tuple-element", shape, found, index=0)


def _trsm(builder: Builder, shape: ArrayShape) -> str:
    side = builder.choice("LR")
    order = shape.dims[-2 if side == "L" else -1]
    a = builder.value(ArrayShape(shape.element_type, (*shape.dims[:-2], order, order)))
    config = _config(builder, diag="NU", side=side, trans_x="NTC", uplo="LU")
    target = f"lapack_{_LETTERS[shape.element_type]}trsm_ffi"
    return _emit(builder, target, shape, a, builder.value(shape), config=config)


def _config(builder: Builder, **letters: str) -> str:
    """Draw one letter per setting; format them as MLIR attributes, or as JSON."""
    chosen = {name: ord(builder.choice(able)) for name, able in letters.items()}
    form = builder.choice(("{} = {} : ui8", '"{}": {}'))
    return f"{{{', '.join(form.format(*setting) for setting in chosen.items())}}}"


def _is_solved(shape: ArrayShape) -> bool:
    return has_small_systems(shape) and shape.element_type in _LETTERS


_TARGETS: tuple[tuple[Generator, Accepts], ...] = (
    *[(_marked, lambda shape: True)] * 6,  # there are fourteen markers
    (_topk, lambda shape: shape.rank > 0 and not shape.is_complex),
    (_padded, lambda shape: True),
    *[(_potrf, lambda shape: _is_solved(shape) and shape.dims[-1] == shape.dims[-2])] * 3,
    *[(_trsm, _is_solved)] * 3,
)

# How many targets there are.
TARGETS = len({make for make, _ in _TARGETS}) - 1 + len(MARKERS)

GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "custom-call": (custom_call, lambda shape: True),
}
