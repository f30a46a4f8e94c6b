"""Provide a program's arguments: from a seed, from a recipe, or from a file.

A recipe file is JSON: ``{NAME: {"seed": 7, "arguments": [...], "outputs": [...]}}``. An argument:

    ["normal", shape, dtype, scale]         standard normal in f32, times scale
    ["uniform", shape, dtype, low, high]    uniform in f32
    ["randint", shape, dtype, low, high]    integers, high excluded
    ["full", shape, dtype, value]

drawn in this order by one ``numpy.random.default_rng(seed)`` and cast to dtype. ``outputs`` has the
sum and the sum of magnitudes of each result, accumulated in float64, as XLA computed them on a CPU.

Rank r of several draws with the seed plus r. In a file of arrays ``x@1`` is the argument ``x`` of
rank 1, and ``x`` that of every rank without its own. Numbered arrays are those of rank 0, of rank 1
and so on; or of every rank, if they are no more than one rank takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from hlo import archive
from hlo.caller_values import require_count
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.operating_system import main_memory
from hlo.program_file import named
from hlo.types import (
    TOKEN,
    ArrayShape,
    Shape,
    TupleShape,
    array_leaves,
    element_type_of,
    is_bounded,
    leaves,
)
from hlo.values import Array, Value, placed_arrays, unflattened
from hlo_oracle import named_arrays, option_types
from hlo_oracle.program_paths import program_name
from interp.evaluator import checked
from interp.exact.conversion import converted
from interp.values import conforms

_FORM = '{"seed": 7, "arguments": [["normal", [2, 3], "float32", 1.0], …]}'
# What the parts of a recipe raise that are of another type or size.
_INVALID = (KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Sums:
    """The recorded sum and sum of magnitudes of one output."""

    sum: float
    abs_sum: float


@dataclass(frozen=True, slots=True)
class Recipe:
    where: str
    seed: int
    arguments: tuple[Sequence[object], ...]
    outputs: tuple[Sums, ...] = ()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --seed, --args and --recipe, the sources of a program's arguments."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--seed", type=option_types.seed, metavar="N", help="draw them by their shapes (default: 0)"
    )
    source.add_argument(
        "--args",
        type=option_types.path,
        metavar="FILE.npz",
        help="arrays by the parameters' names (x is also x.1; of a tuple t: t{0}, t{1,0}, …), or in"
        " order as arr_0, arr_1, …; a FILE.npy is that of the first parameter",
    )
    source.add_argument(
        "--recipe",
        metavar="FILE.json[:NAME]",
        help="recipes for programs; NAME is the program's file name up to the first dot",
    )
    parser.add_argument(
        "--cast",
        action="store_true",
        help="convert arrays of --args that are only wider or narrower, as s64 is than s32",
    )


class Options(Protocol):
    """Parsed options of :func:`add_options`: at most one of ``args`` and ``recipe`` is set."""

    @property
    def cast(self) -> bool: ...

    @property
    def seed(self) -> int | None: ...
    @property
    def args(self) -> Path | str | None: ...
    @property
    def recipe(self) -> str | None: ...


def require_use(options: Options, *, used: bool = True, by: str = "") -> None:
    """Raise ArgumentError for options that would have no effect: sources of arguments unless they
    are ``used``, which ``by`` says when they are, and --cast without arrays."""
    names = [name for name in ("seed", "args", "recipe") if getattr(options, name) is not None]
    if names and not used:
        raise ArgumentError(f"--{names[0]} is for {by}, which is not asked for")
    if options.cast and options.args is None:
        raise ArgumentError("--cast is for --args FILE.npz, which is not given")


def are_asked_for(options: Options) -> bool:
    """Test whether any option for the source of arguments is given."""
    return (options.seed, options.args, options.recipe) != (None, None, None)


def given(module: Module, path: Path, options: Options) -> tuple[Value, ...]:
    """Provide the arguments of a single rank, from the source that the options name."""
    return per_rank(module, path, options, 1)[0]


def per_rank(
    module: Module, path: Path, options: Options, size: int
) -> tuple[tuple[Value, ...], ...]:
    """Provide the arguments of each of ``size`` ranks."""
    if options.args is not None:
        return from_archive(module, Path(options.args), size, cast=options.cast)
    recipe = find_recipe(path, options.recipe)
    if recipe is not None:
        recipes = [replace(recipe, seed=recipe.seed + rank) for rank in range(size)]
        return tuple(from_recipe(module, mine) for mine in recipes)
    seed = options.seed or 0
    return tuple(from_seed(module, seed, rank) for rank in range(size))


def find_recipe(path: Path, named: str | None) -> Recipe | None:
    """Find the recipe of the program in a file; ``named`` is the option, ``FILE.json`` or
    ``FILE.json:NAME``. None if there is no such option."""
    if named is None:
        return None
    file, _, name = named.partition(":") if not Path(named).exists() else (named, "", "")
    name = name or program_name(path)
    try:
        recipes = json.loads(Path(file).read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ArgumentError(f"{file}:{error.lineno}:{error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file}: not JSON: byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise ArgumentError(f"{file}: not a file of recipes: nested too deeply") from error
    if not isinstance(recipes, dict) or name not in recipes:
        raise ArgumentError(f"{file}: no recipe for '{name}'")
    return _recipe(f"{file}: {name}", recipes[name])


def _recipe(where: str, entry: object) -> Recipe:
    try:
        fields = cast("dict[str, object]", entry)
        outputs = cast("list[dict[str, float]]", fields.get("outputs", []))
        sums = tuple(Sums(float(o["sum"]), float(o["abs_sum"])) for o in outputs)
        arguments = tuple(cast("list[Sequence[object]]", fields["arguments"]))
        seed = int(cast(int, fields["seed"]))
        if seed < 0:
            raise ValueError("the seed is negative")
        return Recipe(where, seed, arguments, sums)
    except (*_INVALID, AttributeError) as error:
        raise ArgumentError(f"{where}: not a recipe, which is {_FORM}: {error!r}") from error


def _normal(rng: np.random.Generator, dims: tuple[int, ...], scale: float) -> Array:
    return np.asarray(rng.standard_normal(dims, dtype=np.float32) * scale)


def _uniform(rng: np.random.Generator, dims: tuple[int, ...], low: float, high: float) -> Array:
    return np.asarray(rng.random(dims, dtype=np.float32) * (high - low) + low)


def _randint(rng: np.random.Generator, dims: tuple[int, ...], low: int, high: int) -> Array:
    return np.asarray(rng.integers(low, high, dims))


def _full(rng: np.random.Generator, dims: tuple[int, ...], value: float) -> Array:
    return np.full(dims, value)


_DRAWN: dict[str, Callable[..., Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "randint": _randint,
    "full": _full,
}


def from_recipe(module: Module, recipe: Recipe) -> tuple[Array, ...]:
    """Draw all arguments; a program with fewer parameters takes those that match, in order."""
    rng = np.random.default_rng(recipe.seed)
    try:
        drawn = [
            _DRAWN[str(kind)](rng, tuple(cast("list[int]", dims)), *numbers).astype(str(dtype))
            for kind, dims, dtype, *numbers in recipe.arguments
        ]
    except _INVALID as error:
        raise ArgumentError(f"{recipe.where}: not a recipe, which is {_FORM}: {error!r}") from error
    except MemoryError as error:
        raise ArgumentError(f"{recipe.where}: its arguments do not fit into memory") from error
    wanted = [p.shape for p in module.entry.parameters]
    return _matched(drawn, wanted, recipe.where) if len(drawn) > len(wanted) else tuple(drawn)


def _matched(drawn: list[Array], wanted: list[Shape], where: str) -> tuple[Array, ...]:
    """Pick for each parameter the next drawn array that fits: frontends drop unused parameters."""
    found: list[Array] = []
    rest = iter(drawn)
    for shape in wanted:
        array = next((a for a in rest if conforms(a, shape)), None)
        if array is None:
            raise ArgumentError(f"{where}: no argument is left for a parameter {shape}")
        found.append(array)
    return tuple(found)


def from_seed(module: Module, seed: int, rank: int = 0) -> tuple[Value, ...]:
    """Draw arguments by their shapes. Floats are normal, with the deviation of a layer's initial
    weights, so that deep models stay finite (NaN everywhere would compare as equal everywhere);
    integers are 0 and 1, which are labels and indices of almost anything.

    Bounded dimensions are at least 1 long; those of one bound are equally long, on all ranks, as
    the dimensions of one batch are.
    """
    shapes = [_sized(p.shape, seed) for p in module.entry.parameters]
    needed = sum(_bytes(leaf) for shape in shapes for leaf in leaves(shape))
    there = main_memory()
    if there is not None and needed > there:
        raise ArgumentError(
            f"the arguments of {module.name} take {needed} bytes; this machine has {there}"
        )
    rng = np.random.default_rng(seed + rank)
    return tuple(_drawn(rng, shape) for shape in shapes)


def _sized(shape: Shape, seed: int) -> Shape:
    """Replace the bounds of dimensions by sizes that depend on the seed and the bound only."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_sized(element, seed) for element in shape.elements))
    dims = tuple(
        _size(dim, seed) if is_bounded(shape, d) else dim for d, dim in enumerate(shape.dims)
    )
    return ArrayShape(shape.element_type, dims)


def _size(bound: int, seed: int) -> int:
    return int(np.random.default_rng((seed, bound)).integers(min(1, bound), bound, endpoint=True))


def _bytes(shape: ArrayShape) -> int:
    return shape.elements * (shape.element_type.numpy.itemsize if shape.element_type.dtype else 0)


def _drawn(rng: np.random.Generator, shape: Shape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_drawn(rng, element) for element in shape.elements)
    return None if shape.element_type is TOKEN else drawn_array(rng, shape)


def drawn_array(rng: np.random.Generator, shape: ArrayShape) -> Array:
    """Draw an array by its shape, as :func:`from_seed` says; ArgumentError if there is none."""
    element_type = shape.element_type
    if not element_type.is_array:
        raise ArgumentError(f"a parameter of type {element_type} cannot be drawn")
    scale = max(1, *shape.dims) ** -0.5 if shape.rank > 1 else 1.0
    if element_type.is_float:
        return _normal(rng, shape.dims, scale).astype(element_type.numpy)
    if element_type.is_complex:
        parts = _normal(rng, shape.dims, scale) + 1j * _normal(rng, shape.dims, scale)
        return np.asarray(parts).astype(element_type.numpy)
    most = 0 if element_type.name == "s1" else 1
    return np.asarray(rng.integers(0, most, shape.dims, endpoint=True)).astype(element_type.numpy)


class _Declared(NamedTuple):
    """An array that a program takes: a parameter, or a part of a tuple, ``name{1,0}``."""

    name: str
    shape: ArrayShape


def _declared(module: Module) -> list[_Declared]:
    """List the arrays that a program takes, in order."""
    return [
        _Declared(parameter.name + place, shape)
        for parameter in module.entry.parameters
        for place, shape in placed_arrays(
            unflattened(parameter.shape, array_leaves(parameter.shape))
        )
    ]


def from_archive(
    module: Module, path: Path, size: int = 1, *, cast: bool = False
) -> tuple[tuple[Value, ...], ...]:
    """Read an ``.npz`` for each rank: :func:`from_arrays`."""
    return from_arrays(module, path, archive.read(path), size, cast=cast)


def of_caller(module: Module, given: Sequence[Any]) -> tuple[Value, ...]:
    """Convert what a caller of Python gave for the parameters: each in order, or one mapping of
    their names to arrays, such as ``numpy.load`` returns of an ``.npz``."""
    for one in given:
        if isinstance(one, str | PathLike):
            raise ArgumentError(f"an argument is an array, no path: numpy.load({str(one)!r})")
    if len(given) == 1 and isinstance(given[0], Mapping):
        arrays = {str(name): np.asarray(array) for name, array in given[0].items()}
        (given,) = from_arrays(module, Path("the arrays given"), arrays)
    return checked(module.entry, given)


def from_arrays(
    module: Module, path: Path, arrays: Mapping[str, Array], size: int = 1, *, cast: bool = False
) -> tuple[tuple[Value, ...], ...]:
    """Choose arrays of a file for each rank: by parameter names if all are there, else by the
    numbers that the arrays have for names (:mod:`hlo_oracle.named_arrays`).

    A tuple is given by its arrays: in order, or as ``name{1,0}``. Bounded dimensions have their
    actual sizes. ``cast`` converts arrays whose type is only wider or narrower than the
    parameter's. ArgumentError for them without it, for finite numbers that do not fit, and for
    another number of arrays.
    """
    declared = _declared(module)
    names = [d.name for d in declared]
    shapes = [parameter.shape for parameter in module.entry.parameters]
    each = []
    for rank in range(size):
        chosen = named_arrays.of_rank(path, names, arrays, rank, size)
        try:
            require_count(len(declared), chosen)
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from None
        typed = iter([_widened(path, d, a, cast) for d, a in zip(declared, chosen, strict=True)])
        each.append(tuple(unflattened(shape, typed) for shape in shapes))
    return tuple(each)


def _widened(path: Path, declared: _Declared, array: Array, cast: bool) -> Array:
    """Restore an array's element type, and convert it if that differs in width alone."""
    shape = declared.shape
    with named(path):
        array = archive.typed(array, shape)
    source, target = element_type_of(array.dtype), shape.element_type
    if source is None or source is target or source.kind != target.kind:
        return array  # which evaluating it refuses, unless it is of the type
    name = f"{path}: {declared.name}"
    if not cast:
        given = ArrayShape(source, array.shape)
        raise ArgumentError(f"{name} is {given}, and {shape} is expected: --cast converts it")
    with np.errstate(over="ignore"):  # which the next line tells
        found = converted(array, target)
    if source.is_integer:
        fits = converted(found, source) == array
    else:
        fits = np.isfinite(found) | ~np.isfinite(array)
    if not np.all(fits):
        first = array[~np.asarray(fits)].flat[0]
        raise ArgumentError(f"{name}: {first} does not fit into {target}")
    return found
