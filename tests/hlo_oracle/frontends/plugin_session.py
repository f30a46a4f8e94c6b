"""A session of JAX on the platform hlo_oracle, beside XLA:CPU: test_jax_plugin.py runs it."""

from __future__ import annotations

import contextlib
import gc
import importlib
import re
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback, serialize_executable
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from session_checks import check, run

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def same(function: Callable[..., Any], *arguments: Any, tolerance: float = 1e-5) -> None:
    """The two platforms agree."""
    found = []
    for platform in ("hlo_oracle", "cpu"):
        with jax.default_device(jax.devices(platform)[0]):
            result = function(*map(jnp.asarray, arguments))
            leaves = jax.tree.leaves(result)
            assert all(leaf.devices() == {jax.devices(platform)[0]} for leaf in leaves)
            found.append([np.asarray(leaf) for leaf in leaves])
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(*(np.asarray(x, np.float64) for x in (ours, theirs)), tolerance)


@check
def eager_operations() -> None:
    same(lambda x: jnp.sort(x, axis=1)[::-1] + 1, X)
    assert (jnp.zeros((0, 3)) + 1).shape == (0, 3)


@check
def a_program_without_results() -> None:
    assert jax.jit(lambda v: ())(X) == ()


@check
def random_keys() -> None:
    same(lambda: jax.random.uniform(jax.random.key(3), (5,)))


@check
def gradients_through_loops() -> None:
    @jax.jit
    def f(tree: dict[str, Any]) -> Any:
        step = lambda c, x: (jnp.tanh(c @ tree["w"]) + x, c.sum())  # noqa: E731
        last, sums = jax.lax.scan(step, tree["x"], jnp.ones((3, 1, 4)))
        return jax.lax.cond(sums[0] > 0, lambda v: v.sum(), lambda v: (v * v).sum(), last)

    same(lambda x, w: jax.grad(f)({"x": x, "w": w}), X, np.eye(4, dtype=np.float32))


@check
def lapack() -> None:
    matrix = X @ X.T + 3 * np.eye(3, dtype=np.float32)
    same(lambda a: (jnp.linalg.cholesky(a), jnp.linalg.eigh(a)[0]), matrix)


@check
def narrow_types() -> None:
    same(
        jax.jit(lambda x: (x.astype("bfloat16") * 3, x.astype("int4"), x.astype("float8_e5m2"))), X
    )


@check
def donated_buffers_are_used_up() -> None:
    x = jnp.ones((5,))
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted() and float(y.sum()) == 10
    try:
        x + 1
    except RuntimeError as error:
        assert "deleted" in str(error)


@check
def host_memory_is_shared_to_read() -> None:
    x = jnp.arange(64.0)
    ours = np.asarray(x)
    assert ours.__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    del x
    assert ours.sum() == 2016


@check
def other_libraries_share_memory() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    address, theirs = x.unsafe_buffer_pointer(), np.from_dlpack(x)
    again = jnp.from_dlpack(x)
    assert theirs.__array_interface__["data"][0] == address == again.unsafe_buffer_pointer()
    del x
    assert theirs.sum() == float(again.sum()) == 66
    given = np.arange(64, dtype=np.int32)
    taken = jnp.from_dlpack(given)
    assert taken.unsafe_buffer_pointer() == given.__array_interface__["data"][0]
    assert taken.devices() == set(jax.devices("hlo_oracle")[:1])
    del given
    assert int(taken.sum()) == 2016 and jnp.from_dlpack(jnp.ones(3, "bfloat16")).sum() == 3
    try:
        jnp.ones(3, "float8_e5m2").__dlpack__()
    except BufferError as error:
        assert "float8_e5m2" in str(error)


@check
def donated_memory_is_used_again() -> None:
    """The memory of donated large arrays is used again: results take turns in a few blocks."""
    step, x = jax.jit(lambda v: v + 1, donate_argnums=0), jnp.zeros(1 << 21)
    places = set()
    for _ in range(6):
        x = step(x)
        places.add(x.unsafe_buffer_pointer())
    assert len(places) <= 3 and float(x[5]) == 6


@check
def libraries_go_with_their_programs() -> None:
    def mapped() -> int:
        return len({line.split()[-1] for line in open("/proc/self/maps")})

    before = mapped()
    for number in range(5):
        assert jax.jit(lambda v, k=number: (v * k).sum())(X) == number * X.sum()
        gc.collect()
    assert mapped() <= before + 1


@check
def examples_run() -> None:
    """Two steps of each that needs JAX alone; the waves donate their buffers."""
    sys.path.append(str(Path(__file__).parents[3] / "examples" / "jax"))
    for name in ("planets", "waves_donated"):
        program, seen = importlib.import_module(name), []
        for platform in ("hlo_oracle", "cpu"):
            with jax.default_device(jax.devices(platform)[0]):
                state = program.start()
                for number in range(2):
                    state, found = program.step(state, number)
                seen.append(jax.tree.leaves(found))
        np.testing.assert_allclose(*seen, rtol=1e-4)


@check
def compiled_programs_describe_themselves() -> None:
    compiled = jax.jit(lambda v: v @ v.T).lower(X).compile()
    assert "dot" in compiled.as_text() and compiled.cost_analysis()["bytes accessed"] == 84
    assert compiled.memory_analysis().argument_size_in_bytes == 48
    kept, here = serialize_executable.serialize(compiled), jax.devices()[:1]
    again = serialize_executable.deserialize_and_load(*kept, execution_devices=here)
    np.testing.assert_array_equal(again(X), compiled(X))


@check
def errors_have_our_words() -> None:
    x = jax.jit(lambda v: v + 1).lower(X).compile()
    try:
        x.runtime_executable().execute([])
    except RuntimeError as error:
        assert "argument is expected" in str(error), error
    else:
        raise AssertionError("no arguments were enough")


@check
def errors_name_the_line_of_python() -> None:
    f = jax.jit(lambda v: jax.ffi.ffi_call("nobody", jax.ShapeDtypeStruct(v.shape, v.dtype))(v))
    try:
        f(X)
    except jax.errors.JaxRuntimeError as error:
        assert "UNIMPLEMENTED" in str(error) and "'nobody'" in str(error)
        assert re.search(r"at \S*plugin_session\.py:\d+\)", str(error)), error
    else:
        raise AssertionError("a custom call that nobody knows ran")


@check
def arrays_go_while_an_exception_is_raised() -> None:
    """Destructors run with the exception set: they call into Python."""

    def failing() -> None:
        x = jnp.ones(3)
        raise LookupError(x.shape)

    try:
        failing()
    except LookupError as error:
        assert error.args == ((3,),)


@check
def an_interrupt_reaches_the_program() -> None:
    """Ctrl-C while the interpreter runs a program, which is Python."""
    f = jax.jit(lambda v: jnp.linalg.eigh(jnp.broadcast_to(v, (40, 8, 8)))[0])
    matrix = jnp.eye(8) + 1
    f(matrix)
    done = []
    timer = threading.Timer(0.01, lambda: (signal.raise_signal(signal.SIGINT), done.append(1)))
    timer.start()
    try:
        while not done:
            f(matrix)
        jnp.sin(matrix)
    except KeyboardInterrupt:
        timer.join()
        return
    raise AssertionError("the interrupt was lost")


@check
def a_second_interrupt_ends_the_program() -> None:
    """Each trip of the loop presses Ctrl-C; the program's error stands for both interrupts."""
    seen = []

    def pressed(x: Any) -> Any:
        seen.append(1)
        signal.raise_signal(signal.SIGINT)
        return x

    f = jax.jit(lambda v: jax.lax.fori_loop(0, 5, lambda _, x: jax.pure_callback(pressed, x, x), v))
    try:
        f(X)
    except RuntimeError as error:
        assert "CANCELLED: KeyboardInterrupt" in str(error), error
    else:
        raise AssertionError("the program ran to its end")
    jnp.sin(X)  # no interrupt is left
    assert len(seen) == 2 and float(jnp.sum(X)) == float(X.sum())


@check
def programs_call_python() -> None:
    seen: list[Any] = []

    @jax.jit
    def f(x: Any) -> Any:
        jax.debug.callback(seen.append, x, ordered=True)
        io_callback(lambda v: seen.append(-v), None, x, ordered=True)
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    np.testing.assert_array_equal(f(X), np.sin(X) + 1)
    jax.effects_barrier()
    assert sorted(float(v.sum()) for v in seen) == sorted([float(X.sum()), -float(X.sum())])
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        wrong = jax.pure_callback(lambda v: 1 / 0, jax.ShapeDtypeStruct((), X.dtype), X)
        raise AssertionError(f"a callback failed and gave {wrong}")


def mesh(kind: AxisType) -> jax.sharding.Mesh:
    return jax.make_mesh((4,), ("i",), axis_types=(kind,), devices=jax.devices("hlo_oracle"))


@check
def ranks_meet() -> None:
    there = mesh(AxisType.Explicit)
    ring = [(n, (n + 1) % 4) for n in range(4)]
    shared = partial(jax.shard_map, mesh=there, in_specs=P("i"))
    x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(there, P("i")))
    both = jax.jit(
        lambda v: (
            shared(lambda a: jax.lax.psum(a, "i"), out_specs=P())(v),
            shared(lambda a: jax.lax.ppermute(a, "i", ring), out_specs=P("i"))(v),
        )
    )
    total, moved = both(x)
    np.testing.assert_array_equal(total, [12, 16])
    np.testing.assert_array_equal(moved, [6, 7, 0, 1, 2, 3, 4, 5])


@check
def shardings_are_resolved() -> None:
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    placed = jax.device_put(x, NamedSharding(mesh(AxisType.Auto), P("i", None)))
    result = jax.jit(lambda a: (a @ a.T).sum(0))(placed)
    np.testing.assert_array_equal(result, (x @ x.T).sum(0))
    assert len(result.sharding.device_set) == 4


if __name__ == "__main__":
    run()
