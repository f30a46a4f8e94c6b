"""Import what jaxlib has of XLA: its versions keep the same names in different modules.

| | up to 0.5 | from 0.6 on | from 0.10.1 on |
|---|---|---|---|
| HLO modules, computations, options of printing | `xla_extension` | `_jax` | `_hlo` |
| conversions of MLIR | `xla_extension` | `_jax` | `_jax` |

(Dialects of MLIR moved in 0.7, the method of a client that compiles in 0.6.)
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from hlo.errors import Error

# For processes that import them before they are forked, as far as they are there.
PRELOADED = ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension")


def compiler_name() -> str:
    """Name the compiler: XLA:CPU with the version of jaxlib that it is in."""
    try:
        return f"XLA:CPU of jaxlib {version('jaxlib')}"
    except PackageNotFoundError:
        return "XLA:CPU"


@cache
def of_hlo() -> ModuleType:
    """Return the module of HLO modules, computations and their texts. Raises Error if there is none
    in this version."""
    return _with("HloModule", ("_hlo", "_jax", "xla_extension"))


@cache
def of_mlir() -> ModuleType:
    """Return the module whose ``mlir`` converts StableHLO and HLO. Raises Error if there is none in
    this version."""
    return _with("mlir", ("_jax", "xla_extension"))


def register_dialects(registry: Any) -> None:
    """Register the dialects of MLIR that JAX's programs have, but StableHLO and its kind."""
    libraries = "jaxlib.mlir._mlir_libs"
    try:
        found = import_module(f"{libraries}._jax_mlir_ext")
    except ImportError:
        found = import_module(f"{libraries}.register_jax_dialects")
    found.register_dialects(registry)


def computation_of(stablehlo: bytes) -> Any:
    """Convert StableHLO of static shapes, text or bytecode, to a computation of XLA."""
    convert = of_mlir().mlir.mlir_module_to_xla_computation
    return convert(stablehlo, use_tuple_args=False, return_tuple=False)


def refined_shapes(program: bytes) -> bytes:
    """Make the shapes of StableHLO static where those of its parameters are."""
    refine, checks = of_mlir().mlir.refine_polymorphic_shapes, (True, True)  # of shapes, of results
    try:
        made: bytes = refine(program, *checks, enable_shardy=True)
    except TypeError:  # jaxlib 0.4 has no such argument
        made = refine(program, *checks)
    return made


def cpu_client(devices: int) -> Any:
    """Make a client of XLA:CPU with so many devices, always as many in one process."""
    from jaxlib import xla_client

    try:
        return xla_client.make_cpu_client(num_devices=devices)
    except TypeError:  # jaxlib 0.4 reads the flags of a process once
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        return xla_client.make_cpu_client()


def compiled(client: Any, program: str | bytes, devices: Any, options: Any) -> Any:
    """Compile StableHLO for devices of a client: a DeviceList of ``xla_client``."""
    if hasattr(client, "compile_and_load"):
        return client.compile_and_load(program, devices, options)
    return client.compile(program, options)  # for the first of its devices


def _with(name: str, modules: tuple[str, ...]) -> ModuleType:
    import jaxlib

    for module in modules:
        try:
            found = import_module(f"jaxlib.{module}")
        except ImportError:
            continue
        if hasattr(found, name):
            return found
    version = getattr(jaxlib, "__version__", "")
    raise Error(
        f"jaxlib {version} has {name} in none of the modules that are known here: versions 0.4.35"
        " to 0.10 were tried"
    )
