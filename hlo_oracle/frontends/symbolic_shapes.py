"""Refine StableHLO of symbolic shapes, as ``jax.export.symbolic_shape`` makes it, to static shapes.

XLA compiles static shapes alone. JAX makes all of them static once those of the arguments are:
``jaxlib``'s ``refine_polymorphic_shapes``, which also checks what the program asserts of its
dimensions. Functions here run jaxlib in this process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.peers.jaxlib_modules import refined_shapes, register_dialects
from hlo.errors import ArgumentError, Error
from hlo_oracle import named_arrays
from hlo_oracle.plurals import counted

Sizes = Mapping[str, Sequence[int]]  # of arrays, by the names that an .npz gives them
Given = Callable[[], Sizes]  # asked for only where shapes are symbolic

_BYTECODE = b"ML\xefR"  # of MLIR
_ATTRIBUTE = b"uses_shape_polymorphism"  # that jax.export sets
# A size that is not known, of a type without bounds: those of bounded dimensions stay.
_DYNAMIC = re.compile(rb"tensor<(?:\d+x)*+\?[^<>,]*+>")
_PLATFORM = "_platform_index"  # which a program for several platforms takes
_HOW = (
    "give the arrays that it takes: ho.run(it, x), ho.check(it, x), ho.compile(it, x), or --args"
    " FILE.npz of hlo run, check, emit, explain, reduce and report"
)


def in_order(arrays: Sequence[Any]) -> Sizes:
    """Return the sizes of arrays given in order, or as one mapping of names to arrays."""
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        return {str(name): np.shape(array) for name, array in arrays[0].items()}
    return {f"arr_{n}": np.shape(array) for n, array in enumerate(arrays)}


def lowered(stage: object) -> bytes | None:
    """Return the StableHLO text of what JAX traced or lowered if it has symbolic shapes; None for
    anything else."""
    if type(stage).__module__.partition(".")[0] != "jax":
        return None
    found: Any = stage.lower() if hasattr(stage, "lower") else stage
    compiled = getattr(getattr(found, "_lowering", None), "compile_args", {})
    if not getattr(compiled.get("shape_poly_state"), "uses_dim_vars", False):
        return None
    operation = found.compiler_ir("stablehlo").operation
    # With locations, of which XLA takes the names of parameters.
    return bytes(operation.get_asm(enable_debug_info=True), "utf-8")


def may_be_symbolic(stablehlo: bytes) -> bool:
    """Test cheaply whether StableHLO, as text or bytecode, may have symbolic shapes."""
    if stablehlo.startswith(_BYTECODE):
        return _ATTRIBUTE in stablehlo
    return _DYNAMIC.search(stablehlo) is not None


def refined(stablehlo: bytes, given: Sizes | None) -> tuple[bytes, bool]:
    """Make all shapes static; also tell whether the program's parameters had symbolic ones.

    ``given`` are the sizes of the arrays that it will take. Raises ArgumentError if they are needed
    and missing, or another number of arrays or dimensions, and Error for what jaxlib does not
    refine: sizes that contradict what the program asserts, too.
    """
    made, were_symbolic = _with_static_parameters(stablehlo, given)
    try:
        found = refined_shapes(made)
    except Exception as error:  # jaxlib's own errors have no class in common
        raise Error(f"its symbolic shapes cannot be refined: {_reason(error)}") from error
    return found, were_symbolic


def _with_static_parameters(stablehlo: bytes, given: Sizes | None) -> tuple[bytes, bool]:
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo as dialect

    with _context() as context, ir.Location.unknown():
        module = _parsed(context, stablehlo)
        parameters, names = _parameters(module)
        types = [p.type for p in parameters if isinstance(p.type, ir.RankedTensorType)]
        were_symbolic = not all(x.has_static_shape or x.encoding for x in types)
        if were_symbolic:
            static = _static_types(types, names, given)
            text = f"builtin.module(stablehlo-refine-arguments{{types={','.join(static)}}})"
            dialect.register_stablehlo_passes()
            passmanager.PassManager.parse(text).run(module.operation)
        return _bytecode(module), were_symbolic


def _parsed(context: Any, stablehlo: bytes) -> Any:
    """Parse text, portable bytecode, or bytecode of this version."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo as dialect

    if stablehlo.startswith(_BYTECODE):
        try:
            return dialect.deserialize_portable_artifact(context, stablehlo)
        except Exception:  # not portable; jaxlib's own errors have no class in common
            pass
    try:
        return ir.Module.parse(stablehlo, context)
    except Exception as error:
        raise Error(f"jaxlib does not take it as StableHLO: {_reason(error)}") from error


def _static_types(types: Sequence[Any], names: Sequence[str], given: Sizes | None) -> list[str]:
    """Replace the symbolic dimensions of types by the sizes of the arrays of these names."""
    shown = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    if not given:
        raise ArgumentError(f"its shapes are symbolic ({shown}): {_HOW}")
    # Arrays of the sizes that take no memory.
    arrays = {name: np.broadcast_to(np.int8(0), tuple(sizes)) for name, sizes in given.items()}
    chosen = named_arrays.of_rank(Path("the arrays given"), names, arrays, 0, 1)
    if len(chosen) != len(types):
        raise ArgumentError(f"it takes {counted(len(types), 'array')} ({shown}), not {len(chosen)}")
    made = []
    for name, kind, array in zip(names, types, chosen, strict=True):
        if array.ndim != kind.rank:
            raise ArgumentError(f"{name} is {kind}: an array of shape {array.shape} is given")
        dims = (
            size if kind.is_dynamic_dim(d) else kind.get_dim_size(d)
            for d, size in enumerate(array.shape)
        )
        made.append(f"tensor<{''.join(f'{size}x' for size in dims)}{kind.element_type}>")
    return made


def _context() -> Any:
    """Make an MLIR context that knows the dialects of JAX's programs."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, sdy, chlo):
        dialect.register_dialect(context)
    return context


def _parameters(module: Any) -> tuple[list[Any], list[str]]:
    """List the arguments of the function ``main``, and their names; ArgumentError if dimensions
    are among them."""
    from jaxlib.mlir import ir

    for operation in module.body.operations:
        attributes = operation.attributes
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == "main":
            found = list(operation.regions[0].blocks[0].arguments)
            own = attributes["arg_attrs"] if "arg_attrs" in attributes else [{}] * len(found)
            constants = [_constant(one) for one in own]
            _require_no_dimensions(constants)
            return found, [x or _name(found[n], n) for n, x in enumerate(constants)]
    raise Error("StableHLO without a function main")


def _constant(attributes: Any) -> str:
    """Return JAX's name of a parameter that is a dimension or the platform; empty for others."""
    from jaxlib.mlir import ir

    name = "jax.global_constant"
    return str(ir.StringAttr(attributes[name]).value) if name in attributes else ""


def _require_no_dimensions(constants: Sequence[str]) -> None:
    """Raise ArgumentError for a program that takes dimensions as numbers: nothing is known of its
    shapes before it runs."""
    dimensions = [name for name in constants if name not in ("", _PLATFORM)]
    if dimensions:
        raise ArgumentError(
            f"it takes its dimensions ({', '.join(dimensions)}) as numbers, as what JAX lowers for"
            " symbolic shapes does: export it, jax.export.export(jax.jit(f))(…), or give f itself"
            " and its arrays"
        )


def _name(parameter: Any, number: int) -> str:
    """Return the name of a parameter that XLA takes from its location, else one by its number."""
    location = getattr(parameter, "location", "")  # jaxlib has it from 0.6 on
    found = re.match(r'loc\("([^"]*)"', str(location))
    return found[1] if found and found[1] else f"Arg_{number}"


def _bytecode(module: Any) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _reason(error: Exception) -> str:
    """Return the first line of an error that gives a reason, without the places and passes that it
    begins with."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip().rstrip(":")]
    if len(lines) > 1 and lines[0].endswith(":"):
        del lines[0]
    said = (lines or [type(error).__name__])[0].rpartition("error: ")[2]
    return re.sub(r'\Aloc\("[^"]*"\): ', "", said)[:600]
