"""Register the plugin with JAX."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from hlo_oracle.frontends.pjrt import callbacks, host_arrays
from hlo_oracle.frontends.pjrt.modes import PLATFORM
from hlo_oracle.frontends.pjrt.shim import library

_PRIORITY = -1  # behind the CPU's, 0, where nobody names an order


def register() -> None:
    """Build and load the library; register the plugin and its lowering rules with JAX."""
    from jax._src import xla_bridge  # where plugins register: there is no public name
    from jaxlib import xla_client

    if xla_client.pjrt_plugin_loaded(PLATFORM):
        return
    xla_bridge.register_plugin(PLATFORM, priority=_PRIORITY, library_path=str(library()))
    _lower_as_for_the_cpu()
    _allow_donation()
    callbacks.lower()
    host_arrays.allow()


def _allow_donation() -> None:
    """Tell JAX that this platform consumes donated buffers."""
    from jax._src.interpreters import mlir

    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


def _lower_as_for_the_cpu() -> None:
    """Use JAX's lowering rules of the CPU where there are no general ones (calls of LAPACK, which
    are supported here by the same names), also those that modules imported later register."""
    from jax._src.interpreters import mlir

    rules: dict[str, Any] = mlir._platform_specific_lowerings
    rules[PLATFORM] = ChainMap(rules[PLATFORM], rules["cpu"])
