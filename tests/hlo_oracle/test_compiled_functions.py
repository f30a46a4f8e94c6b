"""``ho.jit``: JAX functions as C, with the bits of the exact evaluation in exact mode."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler

import hlo_oracle as ho
from hlo.bit_equality import differences
from hlo.errors import ArgumentError, Error, Unsupported
from hlo_oracle.compiled_functions import CacheInfo
from hlo_oracle.frontends.jax_internals import with_x64

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="compiles C")

TABLE = np.arange(4, dtype=np.float32)  # a constant that functions close over


def tree(p: Any, x: Any, unused: Any) -> Any:
    return {"y": jnp.tanh(x @ p["w"]) + TABLE, "s": (x.sum(), p["n"] * 2)}


def keyed(key: Any) -> Any:
    return jax.random.normal(key, (3,))


def loss(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.sin(x @ w))


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (tree, ({"w": jnp.asarray(W), "n": 3}, X, 1.5)),
        (jax.value_and_grad(loss), (W, X)),
        (lambda x: x.astype(jnp.bfloat16) * 2, (X,)),
        (lambda x: jnp.concatenate([x, x]), (np.ones((0, 2), np.float32),)),
        (lambda a, b: (a, jnp.where(b, a, -a)), (2, True)),
        (jnp.linalg.cholesky, (np.eye(3, dtype=np.float32) * 4,)),
    ],
)
def test_exact_mode_has_the_bits_of_the_evaluation(function: Any, arguments: Any) -> None:
    found = ho.jit(function, numerics="exact")(*arguments)
    right = ho.run(function, *arguments)
    assert jax.tree.structure(found) == jax.tree.structure(right)
    assert not differences(tuple(jax.tree.leaves(right)), tuple(jax.tree.leaves(found)))


def test_keys_are_arguments() -> None:
    key = jax.random.key(7)
    assert np.allclose(ho.jit(keyed)(key), keyed(key), rtol=1e-5)


def test_a_function_is_compiled_once_for_each_kind_of_arguments() -> None:
    @ho.jit(static_argnames="times")
    def scaled(x: Any, times: int = 2) -> Any:
        """Multiply."""
        return x * times

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Multiply."
    assert scaled(X).tolist() == (X * 2).tolist()
    assert scaled(X + 1).tolist() == ((X + 1) * 2).tolist()
    assert scaled.cache_info() == CacheInfo(hits=1, misses=1, currsize=1)
    assert scaled(X, times=3).tolist() == (X * 3).tolist()  # another program
    assert scaled(X[0]).shape == (3,)  # another shape
    assert scaled(X.astype(np.float16)).dtype == np.float16  # another type
    assert scaled.cache_info() == CacheInfo(hits=1, misses=4, currsize=4)
    assert "hlo_entry" in "".join(scaled.source(X).values())
    assert len(scaled.explain(X).kernels) == 1
    assert scaled.cache_info().misses == 4
    scaled.cache_clear()
    assert scaled.cache_info() == CacheInfo(0, 0, 0)


def test_methods() -> None:
    class Layer:
        weight = 3.0

        @ho.jit(static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.weight

        @jax.jit
        def jitted(x: Any) -> Any:
            return x + 1

    assert Layer()(X).tolist() == (X * 3).tolist()
    assert ho.jit(Layer.jitted)(X).tolist() == (X + 1).tolist()


def test_what_c_does_not_take_is_named_with_its_line() -> None:
    def decomposed(a: Any) -> Any:
        return jnp.linalg.svd(a)

    line = decomposed.__code__.co_firstlineno + 1
    with pytest.raises(Unsupported, match=rf"^decomposed: .*{__file__}:{line}\); jax.jit compiles"):
        ho.jit(decomposed)(W)


def test_bad_calls() -> None:
    twice = ho.jit(lambda x: x * 2)
    assert twice(3) == 6
    with with_x64(False), pytest.raises(ArgumentError, match="does not fit into int32"):
        assert twice(3) == 6
        twice(2**40)
    with with_x64(True):
        assert twice(2**40) == 2**41  # another program
    with pytest.raises(Unsupported, match="transform the function first"):
        jax.grad(lambda x: twice(x).sum())(X)
    with pytest.raises(Error, match="TypeError"):
        twice("text")
    with pytest.raises(ArgumentError, match="static arguments are named there"):
        ho.jit(jax.jit(loss), static_argnums=0)
    with pytest.raises(Unsupported, match="calls Python while it runs.* JAX_PLATFORMS=hlo_oracle"):
        ho.jit(lambda x: jax.pure_callback(np.sin, x, x))(X)


def test_the_program_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/jit.md").read_text(), re.DOTALL)
    exec(compile(program, "docs/jit.md", "exec"), {})
    assert "CacheInfo(hits=0, misses=2, currsize=2)" in capsys.readouterr().out


def by_type(a: Any, s: Any) -> Any:
    return a + [int, bool, float].index(type(s))


def test_equal_static_arguments_of_other_types_are_other_arguments() -> None:
    x = np.zeros(1, np.float32)
    numbered, named = ho.jit(by_type, static_argnums=1), ho.jit(by_type, static_argnames="s")
    for n, static in enumerate((1, True, 1.0)):
        assert numbered(x, static).tolist() == named(x, s=static).tolist() == [n]


def test_a_static_argument_without_a_hash() -> None:
    with pytest.raises(ArgumentError, match=r"the static argument 1 has no hash: unhashable"):
        ho.jit(lambda a, s: a * len(s), static_argnums=1)(X, [1, 2])


def test_masked_arrays_are_refused_after_others_as_before() -> None:
    fast, x = ho.jit(lambda x: x + 1), np.zeros(2, np.float32)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="JAX takes no masked arrays"):
            fast(np.ma.masked_array(x, [True, False]))
        assert fast(x).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (3, {}),
        (loss, {"static_argnums": 5}),
        (loss, {"static_argnums": "a"}),
        (loss, {"static_argnames": "zz"}),
    ],
)
def test_what_jax_does_not_jit(function: Any, named: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="(loss|int): JAX cannot jit it: "):
        ho.jit(function, **named)


def test_what_is_compiled_is_checked_as_the_function_it_wraps() -> None:
    fast = ho.jit(lambda x, n: x * n, static_argnums=1)
    assert ho.check(fast, X, 3).equal == 6
    assert ho.run(fast, X, 3).tolist() == (X * 3).tolist()


@pytest.mark.parametrize("write", [pickle.dumps, copy.deepcopy])
def test_an_executable_cannot_be_pickled(write: Callable[[object], object]) -> None:
    """It is code of this process; copies of it in other numbers of threads are no pickles."""
    executable = ho.compile(lambda x: x + 1, np.float32(1), numerics="exact")
    with pytest.raises(Unsupported, match=r"cannot be pickled.*hlo\.format\(module\)"):
        write(executable)
    assert executable.in_threads(1)(np.float32(1)) == 2
