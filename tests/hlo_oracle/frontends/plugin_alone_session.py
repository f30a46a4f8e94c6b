"""A session of JAX on the platform hlo_oracle, with no other: test_jax_plugin.py runs it."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from session_checks import check, run

from hlo_oracle.frontends.pjrt.buffers import Buffer
from hlo_oracle.frontends.pjrt.loaded_executables import LoadedExecutable

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
LIKE_X = jax.ShapeDtypeStruct(X.shape, X.dtype)


@check
def there_is_no_other_platform() -> None:
    assert {device.platform for device in jax.devices()} == {"hlo_oracle"}
    with suppress(RuntimeError):
        raise AssertionError(jax.devices("cpu"))


@check
def rules_for_the_cpu_that_come_later() -> None:
    """Modules that are imported after the plugin was registered add them, as Pallas does."""
    later = Primitive("later")
    later.def_abstract_eval(lambda x: x)
    rule = mlir.lower_fun(lambda x: x + 1, multiple_results=False)
    mlir.register_lowering(later, rule, platform="cpu")
    np.testing.assert_array_equal(jax.jit(later.bind)(X), X + 1)


@check
def callbacks_need_no_cpu_of_xla() -> None:
    seen: list[float] = []

    @jax.jit
    def f(x: Any) -> Any:
        jax.debug.callback(lambda v: seen.append(float(v.sum())), x, ordered=True)
        io_callback(lambda v: seen.append(-float(v.sum())), None, x)
        return jax.pure_callback(lambda v: jnp.sin(v) + (v @ v.T).sum(), LIKE_X, x)

    wanted = np.sin(X) + (X @ X.T).sum()
    np.testing.assert_allclose(f(X), wanted, rtol=1e-6)  # programs ran while a program ran
    jax.effects_barrier()
    jax.debug.callback(lambda v: seen.append(float(v)), 3.0)  # outside of any program
    total = float(jnp.asarray(X).sum())
    assert sorted(seen) == sorted([total, -total, 3.0]), seen


@check
def callbacks_on_several_devices() -> None:
    """In manual regions each rank calls; else XLA's partitioner has one call for all."""
    mesh = jax.make_mesh((2,), ("i",), (AxisType.Auto,), devices=jax.devices()[:2])
    x = jax.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, P("i")))
    seen: list[Any] = []

    def f(v: Any) -> Any:
        jax.debug.callback(lambda u: seen.append(np.asarray(u).tolist()), v)
        return io_callback(lambda u: np.asarray(u) * 2, jax.ShapeDtypeStruct(v.shape, v.dtype), v)

    for function, wanted in (
        (jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")), [[0, 1], [2, 3]]),
        (f, [[0, 1, 2, 3]]),
    ):
        np.testing.assert_array_equal(jax.jit(function)(x), [0, 2, 4, 6])
        jax.effects_barrier()
        assert sorted(seen) == wanted, seen
        seen.clear()


@check
def what_a_callback_raises_arrives() -> None:
    def failing(v: Any) -> Any:
        raise LookupError(f"nothing at {v.shape}")

    for function, told in (
        (failing, "a callback raised LookupError: nothing at (3, 4)"),
        (lambda v: v[0], "result 0 of a callback has sizes (4,), and f32[3,4]"),
    ):
        try:
            jax.jit(lambda x, f=function: jax.pure_callback(f, LIKE_X, x))(X).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            assert told in str(error) and "\n" not in str(error).strip(), error
        else:
            raise AssertionError("a callback failed, and there was a result")
        np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1)


def together(*functions: Callable[[], None]) -> None:
    """Run each in a thread; raise what one of them raised."""
    faults: list[BaseException] = []

    def kept(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=kept, args=(each,)) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


@check
def threads_share_an_executable() -> None:
    """One of C, and one that is interpreted."""
    for f in (lambda x, k: x @ x.T + k, lambda x, k: jnp.linalg.eigh(x @ x.T + k)[0]):
        compiled = jax.jit(f)
        wanted = [np.asarray(compiled(X, k)) for k in range(4)]

        def calls(k: int, compiled: Any = compiled, wanted: Any = wanted) -> None:
            for _ in range(5):
                np.testing.assert_array_equal(compiled(X, k), wanted[k])

        together(*(lambda k=k: calls(k) for k in range(4)))


@check
def threads_compile() -> None:
    """Two of them the same program."""

    def compiles(k: int) -> None:
        np.testing.assert_array_equal(jax.jit(lambda x: jnp.where(x > k, x, k))(X), X.clip(k))

    together(*(lambda k=k: compiles(k) for k in (0, 1, 1)))


@check
def dropped_programs_leave_nothing() -> None:
    """python -m selftest.plugin_memory does it a thousand times, and measures."""

    def held() -> int:
        gc.collect()
        return sum(isinstance(each, LoadedExecutable | Buffer) for each in gc.get_objects())

    kept = jnp.ones(3)  # makes what JAX keeps of its own
    before = held()
    for size in range(1, 7):
        assert float(jax.jit(lambda x: (x * 2).sum())(np.ones(size, np.float32))) == 2 * size
    jax.clear_caches()
    assert held() <= before and kept.shape == (3,)


@check
def arrays_without_elements() -> None:
    none = np.zeros((0, 4), np.float32)
    np.testing.assert_array_equal(jnp.zeros((3, 0)) @ jnp.zeros((0, 2)), np.zeros((3, 2)))

    @jax.jit
    def f(x: Any) -> Any:
        last, each = jax.lax.scan(lambda c, row: (c + row.sum(), row), 1.0, x)
        return last, each, x.sum(), x.T, jnp.sort(x, 0), jnp.concatenate([x, x + 1])

    last, each, total, turned, in_order, both = f(none)
    assert (float(last), float(total)) == (1, 0) and turned.shape == (4, 0)
    assert each.shape == in_order.shape == both.shape == (0, 4)
    assert np.asarray(f.lower(none).compile()(none)[3]).shape == (4, 0)


@check
def widths_change_within_a_process() -> None:
    double = jax.jit(lambda x: x * 2)
    for is_wide, dtype in ((False, np.float32), (True, np.float64), (False, np.float32)):
        with jax.enable_x64(is_wide):
            result = double(np.full(3, 0.1))
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, 2 * np.full(3, 0.1, dtype))


@check
def buffers_are_donated_where_they_can_be() -> None:
    swap = jax.jit(lambda x, y: (y + 1, x + 1), donate_argnums=(0, 1))
    x, y = jnp.zeros(4), jnp.ones(4)
    np.testing.assert_array_equal(np.stack(swap(x, y)), [[2] * 4, [1] * 4])
    assert x.is_deleted() and y.is_deleted()
    add, z = jax.jit(lambda x, y: x + y, donate_argnums=0), jnp.ones(4)
    np.testing.assert_array_equal(add(z, z), [2] * 4)  # donated, and read
    assert z.is_deleted()


@check
def results_are_there_and_can_be_pickled() -> None:
    y = jax.jit(jnp.sin)(X)
    y.copy_to_host_async()
    assert y.is_ready() and y.block_until_ready() is y
    again = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(again, y)
    assert again.devices() == y.devices()


@check
def one_interrupt_is_one() -> None:
    """Ctrl-C in the middle of a long call: KeyboardInterrupt once, then all goes on."""

    def pressed(i: Any, x: Any) -> Any:
        if i == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return x

    body = lambda i, x: jax.pure_callback(pressed, LIKE_X, i, x)  # noqa: E731
    f = jax.jit(lambda v: jax.lax.fori_loop(0, 3, body, v))
    interrupts = 0
    for _ in range(2):
        try:
            np.testing.assert_array_equal(f(X), X)
            jnp.sin(X)
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 2, interrupts
    np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1)


@check
def a_second_interrupt_ends_a_program_whose_callbacks_run_programs() -> None:
    trips = []

    def pressed(x: Any) -> Any:
        y = jnp.sin(x)  # a long call within a long call
        trips.append(1)
        signal.raise_signal(signal.SIGINT)
        return y

    body = lambda _, x: jax.pure_callback(pressed, LIKE_X, x)  # noqa: E731
    try:
        jax.jit(lambda v: jax.lax.fori_loop(0, 5, body, v))(X)
    except RuntimeError as error:
        assert "CANCELLED: KeyboardInterrupt" in str(error), error
    else:
        raise AssertionError("the program ran to its end")
    jnp.sin(X)  # no interrupt is left
    assert len(trips) == 2, trips


if __name__ == "__main__":
    run()
