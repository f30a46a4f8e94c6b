"""Let JAX share this platform's arrays by DLPack, as they lie in host memory.

jaxlib itself exports from its own platforms only, and imports host memory to XLA:CPU only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from backend_c.native.dlpack import CPU, exported
from hlo_oracle.frontends import jax_internals
from hlo_oracle.frontends.pjrt.foreign_memory import address_of
from hlo_oracle.frontends.pjrt.modes import PLATFORM

_HERE = (CPU, 0)


def allow() -> None:
    """Patch JAX to export this platform's arrays, and to import host memory to it if it is the
    default."""
    import jax
    from jax._src import array

    arrays: Any = array.ArrayImpl
    arrays.__dlpack__ = _exporter(arrays.__dlpack__)
    arrays.__dlpack_device__ = _teller(arrays.__dlpack_device__)
    platforms = getattr(jax.config, "jax_platforms", None) or ""
    if platforms.partition(",")[0] == PLATFORM:
        jax_internals.import_host_memory_to(PLATFORM)


def _is_ours(array: Any) -> bool:
    return bool(array.platform() == PLATFORM and len(array.devices()) == 1)


def _exporter(known: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method that exports an array, adding this platform."""

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if not _is_ours(self):
            options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
            return known(self, stream=stream, **options)
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) != _HERE:
            raise BufferError("arrays of hlo_oracle lie in host memory: DLPack's device (1, 0)")
        here = np.array(self) if copy else np.asarray(self)
        return exported(address_of(here), here.shape, here.dtype, _HERE, here)

    return __dlpack__


def _teller(known: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method that returns an array's DLPack device, adding this platform."""

    def __dlpack_device__(self: Any) -> Any:
        from jax._src.typing import DLDeviceType

        return (DLDeviceType.kDLCPU, 0) if _is_ours(self) else known(self)

    return __dlpack_device__
