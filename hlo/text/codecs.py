"""Parse and print attributes: one codec per attribute name, whatever the op."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.literal import Literal
from hlo.text.aliasing import read_aliases, show_aliases
from hlo.text.enumerations import PRECISION, WORDS
from hlo.text.literals import read_literal, show_literal
from hlo.text.named_parts import read_domain, read_sparsity, show_domain
from hlo.text.patterns import pattern
from hlo.text.replica_groups import read_groups, read_pairs, show_written
from hlo.text.scanning import NAME, fields, percent, plain_name
from hlo.text.shapes import ARRAY, ShapeReader
from hlo.text.string_escapes import read_string, show_string
from hlo.types import Shape, TupleShape

_NAME = pattern(NAME, re.ASCII)
_INTEGER = pattern(r"-?\d{1,20}+", re.ASCII)
_DECIMAL = pattern(r"-?\d{1,400}+(?:\.\d{0,400}+)?+(?:[eE][+\-]?\d{1,5}+)?+", re.ASCII)
_LARGEST = 2.0**128 - 2.0**104  # of f32
_MOST_NESTED = 64  # as tuple shapes
_BITS = 64  # of attributes in XLA, which takes numbers of either sign and keeps signed ones


@dataclass(frozen=True, slots=True)
class Codec:
    """Hold the parser and the printer of an attribute; ``read`` raises ValueError if malformed."""

    read: Callable[[str], Any]
    show: Callable[[Any], str]


def integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("expected an integer")
    value = int(text)
    if not -(2 ** (_BITS - 1)) <= value < 2**_BITS:
        raise ValueError("expected an integer of at most 64 bits")
    return value - 2**_BITS if value >= 2 ** (_BITS - 1) else value


def _boolean(text: str) -> bool:
    if text not in ("true", "false", "0", "1"):
        raise ValueError("expected true or false")
    return text in ("true", "1")


def _decimal(text: str) -> float:
    """Read a finite number in the range of f32, or NaN, as XLA does."""
    if text == "nan":
        return math.nan
    if not _DECIMAL.fullmatch(text):
        raise ValueError("expected a number")
    if abs(float(text)) > _LARGEST:
        raise ValueError("expected a number in the range of f32")
    return float(text)


def _braced(text: str) -> str:
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("expected {…}")
    return text[1:-1]


def _integers(text: str) -> tuple[int, ...]:
    inner = _braced(text).strip()
    return tuple(integer(part.strip()) for part in inner.split(",")) if inner else ()


def _show_integers(values: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _sizes(text: str) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """Read ``{1,2}`` (gather), or ``{{1,2},{3,4}}`` (collective-permute: sizes of each slice)."""
    rows = fields(_braced(text))
    return tuple(map(_integers, rows)) if text[1:].lstrip().startswith("{") else _integers(text)


def _show_sizes(values: tuple[int, ...] | tuple[tuple[int, ...], ...]) -> str:
    shown = (_show_integers(v) if isinstance(v, tuple) else str(v) for v in values)
    return "{" + ",".join(shown) + "}"


def _one_integer(text: str) -> int:
    """Read ``3`` or ``{3}``."""
    return integer(text[1:-1].strip() if text.startswith("{") else text)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("expected the name of a computation")
    return plain_name(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(map(_name, fields(_braced(text))))


def _name_or_names(text: str) -> str | tuple[str, ...]:
    return _names(text) if text.startswith("{") else _name(text)


def _show_name_or_names(value: str | tuple[str, ...]) -> str:
    return percent(value) if isinstance(value, str) else _show_names(value)


def _show_names(values: tuple[str, ...]) -> str:
    return "{" + ", ".join(map(percent, values)) + "}"


def _precisions(text: str) -> tuple[str, ...]:
    return tuple(map(PRECISION.read, fields(_braced(text))))


def _literal(text: str, depth: int = 0) -> Literal:
    """Read a literal: a shape and its value, ``f32[2] {1, 2}``, or a tuple of such."""
    if text.startswith("(") and text.endswith(")"):
        if depth == _MOST_NESTED:
            raise ValueError(f"expected literals nested at most {_MOST_NESTED} deep")
        elements = tuple(_literal(part.strip(), depth + 1) for part in fields(text[1:-1]))
        return Literal(TupleShape(tuple(element.shape for element in elements)), elements)
    shape = re.match(rf"({ARRAY})\s++", text, re.ASCII)
    if shape is None:
        raise ValueError("expected a shape and a value, like f32[2] {1, 2}")
    return read_literal(ShapeReader().read(shape[1]), text[shape.end() :])


def _show_literal(value: Literal) -> str:
    if isinstance(value.value, tuple):
        return f"({', '.join(map(_show_literal, value.value))})"
    return f"{value.shape} {show_literal(value)}"


_SLICE = pattern(r"\[\s*+(-?\d++)\s*+:\s*+(-?\d++)\s*+(?::\s*+(-?\d++)\s*+)?+\]", re.ASCII)


def _slices(text: str) -> tuple[tuple[int, int, int], ...]:
    result = []
    for part in fields(_braced(text)):
        match = _SLICE.fullmatch(part)
        if match is None:
            raise ValueError("expected {[start:limit], …} or {[start:limit:stride], …}")
        result.append((integer(match[1]), integer(match[2]), integer(match[3] or "1")))
    return tuple(result)


def _show_slices(value: tuple[tuple[int, int, int], ...]) -> str:
    parts = [f"[{a}:{b}]" if step == 1 else f"[{a}:{b}:{step}]" for a, b, step in value]
    return "{" + ", ".join(parts) + "}"


def _paddings(text: str) -> tuple[tuple[int, int, int], ...]:
    result = []
    for part in text.split("x") if text else ():
        numbers = [integer(number) for number in part.split("_")]
        if len(numbers) not in (2, 3):
            raise ValueError("expected low_high or low_high_interior for each dimension")
        result.append((numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0))
    return tuple(result)


def _show_paddings(value: tuple[tuple[int, int, int], ...]) -> str:
    # As XLA prints it: for all dimensions, or for none.
    interior = any(inner for _, _, inner in value)
    return "x".join(f"{a}_{b}_{c}" if interior else f"{a}_{b}" for a, b, c in value)


_WINDOW_FIELDS = {
    "size": ("size",),
    "stride": ("stride",),
    "pad": ("padding_low", "padding_high"),
    "lhs_dilate": ("base_dilation",),
    "rhs_dilate": ("window_dilation",),
    "rhs_reversal": ("reversal",),
}


def _window(text: str) -> Window:
    columns: dict[str, list[int]] = {}
    for field in _braced(text).split():
        key, _, value = field.partition("=")
        names = _WINDOW_FIELDS.get(key)
        if names is not None and names[0] in columns:
            raise ValueError(f"expected {key}= once in a window")
        if names is None:
            raise ValueError(f"expected one of {', '.join(_WINDOW_FIELDS)}, not {key!r}")
        rows = [[integer(number) for number in part.split("_")] for part in value.split("x")]
        if any(len(row) != len(names) for row in rows):
            raise ValueError(f"expected {'low_high' if key == 'pad' else 'a number'} in {key}")
        for column, name in enumerate(names):
            columns[name] = [row[column] for row in rows]
    if columns and "size" not in columns:
        raise ValueError("expected size= in a window")
    rank = len(columns.get("size", ()))
    if any(len(column) != rank for column in columns.values()):
        raise ValueError("expected as many numbers in each part of a window as in size")
    return Window(tuple(_window_dimension(columns, d) for d in range(rank)))


def _window_dimension(columns: dict[str, list[int]], d: int) -> WindowDimension:
    fields: dict[str, Any] = {name: column[d] for name, column in columns.items()}
    if "reversal" in fields:
        fields["reversal"] = bool(fields["reversal"])
    return WindowDimension(**fields)


def _show_window(window: Window) -> str:
    if not window.dimensions:
        return "{}"
    plain = WindowDimension(size=0)
    parts = []
    for key, names in _WINDOW_FIELDS.items():
        rows = [[int(getattr(d, name)) for name in names] for d in window.dimensions]
        default = [int(getattr(plain, name)) for name in names]
        if key == "size" or any(row != default for row in rows):
            parts.append(f"{key}=" + "x".join("_".join(map(str, row)) for row in rows))
    return "{" + " ".join(parts) + "}"


_LABELS = pattern(r"([0-9bf?]{2,}+)_([0-9io?]{2,}+)->([0-9bf?]{2,}+)", re.ASCII)


def _dim_labels(text: str) -> ConvolutionDimensions:
    match = _LABELS.fullmatch(text)
    if match is None:
        raise ValueError("expected labels like b01f_01io->b01f")
    operand, kernel, output = match[1], match[2], match[3]
    spatial = [_spatial(labels) for labels in (operand, kernel, output)]
    wanted = zip((operand, kernel, output), ("bf", "io", "bf"), strict=True)
    if any(labels.count(letter) != 1 for labels, letters in wanted for letter in letters):
        raise ValueError("expected each of b and f (i and o) once in dim_labels")
    if not len(spatial[0]) == len(spatial[1]) == len(spatial[2]):
        raise ValueError("expected as many spatial dimensions on each side of dim_labels")
    return ConvolutionDimensions(
        operand.index("b"), operand.index("f"), spatial[0],
        kernel.index("i"), kernel.index("o"), spatial[1],
        output.index("b"), output.index("f"), spatial[2],
    )  # fmt: skip


def _spatial(labels: str) -> tuple[int, ...]:
    """Return the positions of the spatial dimensions 0, 1, 2, …; `?` is an unused dimension."""
    digits = sorted(letter for letter in labels if letter.isdigit())
    if digits != [str(d) for d in range(len(digits))]:
        raise ValueError("expected the spatial dimensions 0, 1, … once each in dim_labels")
    return tuple(labels.index(digit) for digit in digits)


def _show_dim_labels(dimensions: ConvolutionDimensions) -> str:
    def side(first: tuple[int, str], second: tuple[int, str], spatial: tuple[int, ...]) -> str:
        places = {first[0]: first[1], second[0]: second[1]}
        places |= {place: str(d) for d, place in enumerate(spatial)}
        return "".join(places.get(place, "?") for place in range(max(places) + 1))

    d = dimensions
    operand = side((d.input_batch, "b"), (d.input_feature, "f"), d.input_spatial)
    kernel = side((d.kernel_input_feature, "i"), (d.kernel_output_feature, "o"), d.kernel_spatial)
    output = side((d.output_batch, "b"), (d.output_feature, "f"), d.output_spatial)
    return f"{operand}_{kernel}->{output}"


def _constraints(text: str) -> tuple[Shape, ...]:
    """Read shapes with layouts: ``{f32[2,3]{1,0}, (s32[], f32[])}``."""
    return tuple(map(ShapeReader().read, fields(_braced(text))))


def _show_constraints(shapes: tuple[Shape, ...]) -> str:
    return "{" + ", ".join(map(str, shapes)) + "}"


_INTEGER_CODEC = Codec(_one_integer, str)
_INTEGERS = Codec(_integers, _show_integers)
_BOOLEAN = Codec(_boolean, lambda value: "true" if value else "false")
_QUOTED = Codec(read_string, show_string)
_ONE_NAME = Codec(_name, _show_name_or_names)


def _rows(codec: Codec, names: str) -> dict[str, Codec]:
    return dict.fromkeys(names.split(), codec)


CODECS: dict[str, Codec] = {
    **_rows(
        _INTEGERS,
        "dimensions broadcast_dimensions lhs_contracting_dims rhs_contracting_dims lhs_batch_dims"
        " rhs_batch_dims lhs_ragged_dims rhs_group_dims offset_dims collapsed_slice_dims"
        " start_index_map operand_batching_dims start_indices_batching_dims"
        " update_window_dims inserted_window_dims scatter_dims_to_operand_dims"
        " input_batching_dims scatter_indices_batching_dims dynamic_slice_sizes fft_length",
    ),
    **_rows(
        _INTEGER_CODEC,
        "index index_vector_dim iota_dimension inferred_dimension exponent_bits mantissa_bits"
        " feature_group_count batch_group_count feature_index channel_id k num_carries delta"
        " cross_program_prefetch_index",
    ),
    **_rows(
        _BOOLEAN,
        "indices_are_sorted unique_indices is_stable lower left_side unit_diagonal largest"
        " is_reverse is_associative is_composite is_host_transfer constrain_layout"
        " use_global_device_ids custom_call_has_side_effect has_dynamic_root",
    ),
    **_rows(_ONE_NAME, "to_apply condition body true_computation false_computation select scatter"),
    **_rows(_QUOTED, "custom_call_target async_execution_thread infeed_config outfeed_config"),
    "calls": Codec(_name_or_names, _show_name_or_names),
    "called_computations": Codec(_names, _show_names),
    "branch_computations": Codec(_names, _show_names),
    "slice_sizes": Codec(_sizes, _show_sizes),
    "slice": Codec(_slices, _show_slices),
    "padding": Codec(_paddings, _show_paddings),
    "window": Codec(_window, _show_window),
    "dim_labels": Codec(_dim_labels, _show_dim_labels),
    "operand_precision": Codec(_precisions, lambda value: "{" + ",".join(value) + "}"),
    **{name: Codec(words.read, str) for name, words in WORDS.items()},
    "replica_groups": Codec(read_groups, show_written),
    "source_target_pairs": Codec(read_pairs, show_written),
    "output_to_operand_aliasing": Codec(read_aliases, show_aliases),
    "operand_layout_constraints": Codec(_constraints, _show_constraints),
    "outfeed_shape": Codec(lambda text: ShapeReader().read(text), str),
    "domain": Codec(read_domain, show_domain),
    "sparsity_config": Codec(read_sparsity, str),
    "literal": Codec(_literal, _show_literal),
    "epsilon": Codec(_decimal, repr),
}
