"""Lower a JAX function as jax.jit would: its HLO, its arguments as arrays, and how to run it.

JAX is imported when it is needed. Private names of it are used where there are no others: those of
``jax_internals`` (which arguments of a jitted function are static), ``_lowering`` of what is
lowered (which of the others the program takes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import MethodType
from typing import Any

import numpy as np

from fuzz.peers.jaxlib_modules import computation_of, of_hlo
from hlo.errors import ArgumentError, Error, Unsupported
from hlo.values import Array, Value, arrays_of
from hlo_oracle.frontends import jax_internals, symbolic_shapes
from hlo_oracle.required_packages import require_package


@dataclass(frozen=True, slots=True)
class Device:
    """A device, and its platform by PJRT's name (cpu, gpu, tpu)."""

    platform: str
    name: str

    def __str__(self) -> str:
        return f"jaxlib {version('jaxlib')}, {self.name}"


class JittedFunction:
    """A function that is jitted, with the arguments that precede those of each call, for what
    wraps one: JAX traces this, not the wrapper."""

    def __init__(self, jitted: Any, own: tuple[Any, ...]) -> None:
        self._jitted, self._own = jitted, own

    def parts(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the jitted function and the arguments that precede those of each call."""
        return self._jitted, self._own


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """A function and its arguments as a program: HLO text, its argument arrays in order, and the
    pytree paths of its results. The arrays are the constants that JAX makes parameters of, then the
    leaves ``kept`` (by number) of the arguments that are not static."""

    name: str
    text: str
    constants: tuple[Array, ...]
    kept: tuple[int, ...]
    arrays: tuple[Array, ...]
    paths: tuple[str, ...]
    structure: Any  # the pytree of its results
    device: Device
    call: Callable[[], Any]  # the function as JAX runs it, its arguments not donated

    def structured(self, value: Value) -> Any:
        """Convert the program's flat result to the pytree that the function returns."""
        import jax

        return jax.tree.unflatten(self.structure, list(arrays_of(value)))

    def results(self) -> tuple[Array, ...]:
        """Run the function on the user's device; return its result arrays in order."""
        import jax

        leaves = jax.tree.leaves(self.call())
        return tuple(map(array_of, leaves))


CALLS_PYTHON = (
    "it calls Python while it runs (a callback, debug.print), which HLO does not describe"
)
_STAGES = ("lower", "compiler_ir", "runtime_executable", "as_serialized_hlo_module_proto")


def is_jax(x: object) -> bool:
    """Test for a program object of JAX: Traced, Lowered, Compiled, or a module of jaxlib."""
    package = type(x).__module__.partition(".")[0]
    return package in ("jax", "jaxlib") and any(hasattr(x, name) for name in _STAGES)


def exported(x: object) -> bytes | None:
    """Return the StableHLO bytecode of a ``jax.export.Exported``; None for anything else."""
    if type(x).__module__.partition(".")[0] != "jax":
        return None
    bytecode = getattr(x, "mlir_module_serialized", None)
    return None if bytecode is None else bytes(bytecode)


def text_of(stage: Any) -> str:
    """Return the HLO text of a ``jax.stages`` Traced, Lowered or Compiled."""
    if hasattr(stage, "runtime_executable"):
        modules = stage.runtime_executable().hlo_modules()
        if len(modules) != 1:
            raise Unsupported(f"an executable of {len(modules)} HLO modules")
        return printed(modules[0])
    lowered = stage if hasattr(stage, "compiler_ir") else stage.lower()
    stablehlo = symbolic_shapes.lowered(lowered)
    if stablehlo is not None:
        return text_of_stablehlo(symbolic_shapes.refined(stablehlo, None)[0])
    computation = lowered.compiler_ir("hlo")
    if computation is None:
        raise Unsupported("JAX has no HLO of it")
    return printed(computation.as_hlo_module())


def text_of_stablehlo(stablehlo: bytes) -> str:
    """Convert StableHLO of static shapes to HLO text by jaxlib, in this process."""
    return printed(computation_of(stablehlo).as_hlo_module())


def printed(hlo_module: Any) -> str:
    """Return the text of jaxlib's HloModule, all constants included."""
    style = of_hlo().HloPrintOptions()
    style.print_large_constants = True
    return str(hlo_module.to_string(style))


def lower(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    *,
    keep_unused: bool = False,
) -> LoweredFunction:
    """Lower a function, jitted or not, for its arguments.

    Static arguments are named here, or where the function was jitted. JAX drops the arguments that
    nothing reads, unless the function was jitted otherwise, or ``keep_unused``. Raises
    ArgumentError for arguments that do not fit, and Error where JAX cannot trace or lower it.
    """
    require_no_tensorflow(function)
    require_package("to lower a function", "jax", "jax")
    import jax

    static = static_argnums, static_argnames
    jitted, bound = jitted_function(function, *static, keep_unused=keep_unused)
    arguments = (*bound, *arguments)
    name = name_of(jitted)
    try:
        lowered = jitted.lower(*arguments, **keywords)
    except Error:  # of this package: a miscompile that is proven meanwhile
        raise
    except Exception as error:  # whatever the function raises while it is traced
        raise Error(f"{name}: JAX cannot trace it: {_described(error)}") from error
    text = text_of(lowered)
    own, named, _ = _divided(jitted, arguments, keywords)
    leaves, tree = jax.tree.flatten((own, named))
    if tree != lowered.in_tree:
        raise Unsupported(
            "which arguments are static cannot be told: give the function that is not jitted, and"
            " static_argnums"
        )
    constants, kept = _taken(lowered, len(leaves), name)
    if keep_unused and len(kept) < len(leaves):  # the caller's own jax.jit dropped some
        return lower(_with_unused(jitted), arguments, keywords)
    paths = [jax.tree_util.keystr(path) for path, _ in _with_paths(lowered.out_info)]
    device = _device(arguments, keywords)

    def call() -> Any:
        # A donated argument is gone after the call: the caller keeps its own.
        own = jax.tree.map(
            lambda x: x.copy() if isinstance(x, jax.Array) else x,
            (tuple(arguments), dict(keywords)),
        )
        try:
            return jitted(*own[0], **own[1])
        except Error:
            raise
        except Exception as error:  # whatever JAX raises for arguments that have no values
            raise Error(f"{name}: JAX cannot run it: {_described(error)}") from error

    return LoweredFunction(
        name,
        text,
        constants,
        kept,
        (*constants, *(array_of(leaves[n]) for n in kept)),
        tuple(paths),
        structure=lowered.out_tree,
        device=Device(device.platform, str(device)),
        call=call,
    )


def require_no_tensorflow(function: object) -> None:
    """Raise ArgumentError for a function or a model of TensorFlow, which JAX cannot trace."""
    package = type(function).__module__.partition(".")[0]
    if package in ("keras", "tensorflow"):
        raise ArgumentError(
            f"{type(function).__name__} of TensorFlow is no function of JAX:"
            " hlo_oracle.tensorflow.jit(it) runs it as C, and .text(*arguments) of that is its HLO"
        )


def jitted_function(
    function: Callable[..., Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    *,
    keep_unused: bool = False,
) -> tuple[Any, tuple[Any, ...]]:
    """Jit a function by ``jax.jit``, unless it is jitted; return it with the arguments that precede
    those of each call: the object of a jitted method, which is static as a rule.

    Raises ArgumentError if static arguments are named for a function that is already jitted, and
    where JAX does not jit it.
    """
    import jax

    own: tuple[Any, ...] = ()
    method: Any = function
    if isinstance(method, JittedFunction):
        function, own = method.parts()
    elif isinstance(method, MethodType) and isinstance(method.__func__, jax.stages.Wrapped):
        function, own = method.__func__, (method.__self__,)
    if not isinstance(function, jax.stages.Wrapped):
        try:
            return jax.jit(
                function,
                static_argnums=static_argnums,
                static_argnames=static_argnames,
                keep_unused=keep_unused,
            ), own
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name_of(function)}: JAX cannot jit it: {error}") from error
    if static_argnums is not None or static_argnames is not None:
        raise ArgumentError("the function is jitted: its static arguments are named there")
    return function, own


def _with_unused(jitted: Any) -> Any:
    """Jit a jitted function again, with the same static arguments, so that all others are kept."""
    import jax

    numbers, names = _static(jitted)
    return jax.jit(jitted, static_argnums=numbers, static_argnames=names, keep_unused=True)


def name_of(function: Any) -> str:
    """Return a function's name for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def _described(error: Exception) -> str:
    """Format an exception with all lines of its message: the last ones often have the reason."""
    return ": ".join(part for part in (type(error).__name__, str(error).strip()) if part)


def array_of(leaf: Any) -> Array:
    """Convert an argument or result of JAX to a NumPy array, in the type that JAX gives it.

    Raises ArgumentError for an integer that the type cannot hold.
    """
    import jax

    if isinstance(leaf, jax.Array):
        dtype: Any = leaf.dtype
        if not isinstance(dtype, np.dtype):  # a key of random numbers
            leaf = jax.random.key_data(leaf)
        # To find out that the buffer has a type that NumPy lacks takes 9 us, the method 3.
        elif dtype.kind == "V":
            array: Array = leaf.__array__()
            return array
        return np.asarray(leaf)
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        dtype = jax.dtypes.canonicalize_dtype(np.int64)
        try:
            return np.array(leaf, dtype)
        except OverflowError:
            raise ArgumentError(f"the argument {leaf} does not fit into {dtype}") from None
    array = np.asarray(leaf)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _with_paths(tree: Any) -> list[tuple[Any, Any]]:
    import jax

    found: list[tuple[Any, Any]] = jax.tree_util.tree_flatten_with_path(tree)[0]
    return found


def _device(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Find the device that the function runs on: that of its arguments, else JAX's default."""
    import jax

    for leaf in jax.tree.leaves((arguments, keywords)):
        if isinstance(leaf, jax.Array) and getattr(leaf, "committed", False):
            return next(iter(leaf.devices()))
    default = jax.config.jax_default_device  # type: ignore[attr-defined]
    return default if hasattr(default, "platform") else jax.devices()[0]


def kind_of(
    jitted: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[Any], object]:
    """Return the leaves of the non-static arguments, and the cache key of a compilation: their
    structure, shapes and types, and the static arguments.

    Raises Unsupported inside of JAX's transformations, and ArgumentError for a static argument
    without a hash.
    """
    import jax

    own, named, static = _divided(jitted, arguments, keywords)
    for place, value in static:
        try:
            hash(value)
        except TypeError as error:
            raise ArgumentError(f"the static argument {place!r} has no hash: {error}") from error
    # JAX tells 1, 1.0 and True, which are equal, by their types: functions may, too.
    typed = tuple((place, type(value), value) for place, value in static)
    leaves, tree = jax.tree.flatten((own, named))
    is_wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    return leaves, (tree, typed, is_wide, *map(_leaf_kind, leaves))


def _leaf_kind(leaf: Any) -> object:
    """Return the key of a leaf: an array's shape and type, or a number's Python type.

    Raises ArgumentError for a masked array, as JAX does: C would compute what the mask hides.
    """
    if isinstance(leaf, np.ma.MaskedArray):
        raise ArgumentError("JAX takes no masked arrays: fill them first (x.filled(0))")
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.shape, leaf.dtype, False
    import jax

    if isinstance(leaf, jax.core.Tracer):
        raise Unsupported(
            "ho.jit is called inside of jax.jit, grad or vmap, which see no C: transform the"
            " function first, as in ho.jit(jax.grad(f))"
        )
    if isinstance(leaf, jax.Array):
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)
    return type(leaf)


def _divided(
    jitted: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
    """Split arguments into non-static positional ones, non-static named ones, and the static ones
    with their positions and names."""
    numbers, names = _static(jitted)
    if not numbers and not names:
        return tuple(arguments), dict(keywords), ()
    count = len(arguments)
    static = {n % count for n in numbers if -count <= n < count}
    return (
        tuple(x for n, x in enumerate(arguments) if n not in static),
        {name: x for name, x in keywords.items() if name not in names},
        (
            *((n, arguments[n]) for n in sorted(static)),
            *((name, x) for name, x in sorted(keywords.items()) if name in names),
        ),
    )


def _static(jitted: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the numbers and the names of the static arguments of a jitted function."""
    info = jax_internals.jit_info(jitted)
    return getattr(info, "static_argnums", ()), getattr(info, "static_argnames", ())


def _taken(lowered: Any, count: int, name: str) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """Return the constants that the lowered program takes, and the numbers of those of its
    ``count`` leaves that it keeps: JAX drops unused ones."""
    compiled = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    if compiled.get("host_callbacks") or compiled.get("ordered_effects"):
        raise Unsupported(
            f"{name}: {CALLS_PYTHON}: call outside of it, or run it with"
            " JAX_PLATFORMS=hlo_oracle, which calls"
        )
    if compiled.get("num_devices", 1) != 1:
        raise Unsupported(f"{name} runs on {compiled['num_devices']} devices: one is judged")
    kept = compiled.get("kept_var_idx", range(count))
    constants = tuple(compiled.get("const_args") or ())
    return tuple(map(array_of, constants)), tuple(sorted(kept))
