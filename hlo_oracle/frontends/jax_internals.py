"""Find what JAX keeps private, or under other names, in its versions.

| | up to 0.4 | 0.5 | from 0.6 on | from 0.8 on | from 0.10 on |
|---|---|---|---|---|---|
| static arguments | variable of `trace` | variable of `trace` | `_jit_info` | | |
| `emit_python_callback` | `mlir` | `callback` | | | |
| `set_sharding` | | | | | takes the module's context first |
| platforms of DLPack | inside of functions | `_DL_DEVICE_TO_PLATFORM` | | | |
| `enable_x64` | `jax.experimental` | | | `jax` | |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any


def with_x64(is_wide: bool) -> AbstractContextManager[Any]:
    """Let JAX have types of 64 bits, or not, in a block."""
    import jax

    place: Any = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")
    made: AbstractContextManager[Any] = place.enable_x64(is_wide)
    return made


def jit_info(jitted: Any) -> Any:
    """Return what a jitted function was jitted with; None if it cannot be told."""
    if hasattr(jitted, "_jit_info"):
        return jitted._jit_info
    trace: Any = inspect.unwrap(getattr(jitted, "trace", None))  # type: ignore[arg-type]
    names = getattr(getattr(trace, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(trace, "__closure__", None) or (), strict=True))
    return cells["jit_info"].cell_contents if "jit_info" in cells else None


def callback_emitter() -> ModuleType:
    """Return the module whose ``emit_python_callback`` lowers all callbacks."""
    from jax._src import callback
    from jax._src.interpreters import mlir

    return callback if hasattr(callback, "emit_python_callback") else mlir


def set_sharding(context: Any, operation: Any, sharding: Any) -> None:
    """Give an operation of a module that is lowered its sharding."""
    from jax._src.interpreters import mlir

    place: Callable[..., None] = mlir.set_sharding
    takes_context = next(iter(inspect.signature(place).parameters)) == "ctx"
    place(*(context,) * takes_context, operation, sharding)


def import_host_memory_to(platform: str) -> None:
    """Let JAX import DLPack's host memory to a platform, not to XLA:CPU."""
    from jax._src.typing import DLDeviceType

    dlpack: Any = import_module("jax._src.dlpack")
    if hasattr(dlpack, "_DL_DEVICE_TO_PLATFORM"):
        dlpack._DL_DEVICE_TO_PLATFORM[DLDeviceType.kDLCPU] = platform
        return
    known = dlpack.xla_bridge

    def get_backend(name: str) -> Any:
        return known.get_backend(platform if name == "cpu" else name)

    vars(dlpack)["xla_bridge"] = SimpleNamespace(get_backend=get_backend)


def foreign_call(
    ctx: Any, target: str, operands: Sequence[Any], *, has_side_effect: bool, **attributes: Any
) -> Any:
    """Lower a call of XLA's FFI with the types of a rule's context; return the operation."""
    try:
        from jax._src import ffi
    except ImportError:  # JAX 0.4
        return _foreign_call(ctx, target, operands, has_side_effect, attributes)
    lower = ffi.build_ffi_lowering_function(target, has_side_effect=has_side_effect)
    return lower(ctx, *operands, **attributes)


def _foreign_call(
    ctx: Any, target: str, operands: Sequence[Any], has_side_effect: bool, attributes: Any
) -> Any:
    mlir: Any = import_module("jax._src.interpreters.mlir")
    return mlir.custom_call(
        target,
        result_types=mlir.flatten_ir_types([mlir.aval_to_ir_type(aval) for aval in ctx.avals_out]),
        operands=operands,
        backend_config={name: mlir.ir_attribute(value) for name, value in attributes.items()},
        has_side_effect=has_side_effect,
        api_version=4,
        operand_layouts=[_row_major(aval) for aval in ctx.avals_in],
        result_layouts=[_row_major(aval) for aval in ctx.avals_out],
    )


def _row_major(aval: Any) -> list[int]:
    return [*reversed(range(len(getattr(aval, "shape", ()))))]
