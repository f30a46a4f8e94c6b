"""Names that are elsewhere in other versions of JAX, for which the installed one stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fuzz.peers import jaxlib_modules
from hlo_oracle.frontends import jax_functions, jax_internals

jax = pytest.importorskip("jax")


def traced(static: tuple[int, ...]) -> Callable[..., None]:
    """A method as JAX up to 0.5 makes it for a jitted function, around what it was jitted with."""
    jit_info = SimpleNamespace(static_argnums=static, static_argnames=())

    def trace() -> None:
        print(jit_info)

    return trace


def test_static_arguments_of_a_closure() -> None:
    assert jax_functions._static(SimpleNamespace(trace=traced((1,)))) == ((1,), ())
    for other in (SimpleNamespace(), SimpleNamespace(trace=len)):
        assert jax_internals.jit_info(other) is None
        assert jax_functions._static(other) == ((), ())


def test_static_arguments_of_this_version() -> None:
    jitted = jax.jit(lambda x, n: x * n, static_argnums=1)
    assert jax_functions._static(jitted)[0] == (1,)


@pytest.mark.parametrize("is_wide", [False, True])
def test_types_of_64_bits(is_wide: bool) -> None:
    with jax_internals.with_x64(is_wide):
        assert jax.numpy.zeros(2).dtype == (np.float64 if is_wide else np.float32)


@pytest.mark.parametrize(
    "place",
    [
        lambda operation, sharding: operation.append(sharding),
        lambda ctx, operation, sharding: operation.append(f"{sharding} of {ctx}"),
    ],
)
def test_shardings(place: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src.interpreters import mlir

    monkeypatch.setattr(mlir, "set_sharding", place)
    operation: list[str] = []
    jax_internals.set_sharding("a module", operation, "replicated")
    assert operation in (["replicated"], ["replicated of a module"])


def test_callbacks_of_either_module(monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src import callback
    from jax._src.interpreters import mlir

    monkeypatch.setattr(callback, "emit_python_callback", None, raising=False)
    assert jax_internals.callback_emitter() is callback
    monkeypatch.delattr(callback, "emit_python_callback")
    assert jax_internals.callback_emitter() is mlir


def test_host_memory_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX 0.4 asks for the backend cpu in the function that imports."""
    dlpack = SimpleNamespace(xla_bridge=SimpleNamespace(get_backend=str.upper))
    monkeypatch.setattr(jax_internals, "import_module", lambda name: dlpack)
    jax_internals.import_host_memory_to("ours")
    assert [dlpack.xla_bridge.get_backend(name) for name in ("cpu", "cuda")] == ["OURS", "CUDA"]


def test_devices_of_a_client_by_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """jaxlib 0.4 has no argument for their number."""
    from jaxlib import xla_client

    def make_cpu_client(asynchronous: bool = True) -> Any:
        return os.environ["XLA_FLAGS"]

    monkeypatch.setattr(xla_client, "make_cpu_client", make_cpu_client)
    monkeypatch.setenv("XLA_FLAGS", "")
    assert jaxlib_modules.cpu_client(3) == "--xla_force_host_platform_device_count=3"
