"""Arguments and options of the door: by order and by name, of programs and of functions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo_oracle as ho
from hlo.errors import ArgumentError, Error

jax = pytest.importorskip("jax")
jnp = jax.numpy
MATRIX = """HloModule m
ENTRY e { p__w__.1 = f32[3] parameter(0)
          x.1 = f32[3] parameter(1)
          ROOT y = f32[3] subtract(x.1, p__w__.1) }"""


def test_arguments_by_their_names(tmp_path: Path) -> None:
    """One mapping of names to arrays is all arguments, as numpy.load returns it."""
    w, x = np.float32([1, 2, 3]), np.float32([4, 4, 4])
    np.savez(tmp_path / "named.npz", x=x, **{"p['w']": w})
    np.savez(tmp_path / "numbered.npz", w, x)
    for given in ({"x": x, "p['w']": w}, *map(np.load, tmp_path.iterdir())):
        assert ho.run(MATRIX, given).tolist() == [3, 2, 1]
        assert ho.check(MATRIX, given, results=[x - w])
    for given, said in (
        ([{"x": x}], "the arrays given: p__w__.1 is missing; there are x"),
        ([tmp_path / "named.npz"], r"an argument is an array, no path: numpy.load\('"),
        ([[w, x]], "2 arguments are expected, 1 was given: a program takes the leaves of dicts"),
    ):
        for call in (ho.run, ho.check):
            with pytest.raises(ArgumentError, match=said):
                call(MATRIX, *given)  # type: ignore[operator]


def test_numbers_are_what_they_are_for_the_program() -> None:
    """ho.check converts Python's numbers as ho.run does, and an array is the only result."""
    given = [1.0, 2.0, 3.0], [4, 4, 4]
    assert ho.run(MATRIX, *given).tolist() == [3, 2, 1]
    assert ho.check(MATRIX, *given, results=np.float32([3, 2, 1])).equal == 3
    assert ho.check(MATRIX, *given, results=np.float32([[3, 2, 1]])).equal == 3  # a sequence of one
    assert ho.check(MATRIX, *given, results=jnp.float32([3, 2, 1])).equal == 3
    with pytest.raises(ArgumentError, match="2 recorded results, where m has 1"):
        ho.check(MATRIX, *given, results=np.ones(2, np.float32))


def test_a_function_with_keywords_is_compiled_and_emitted() -> None:
    x = np.float32([1, 2])
    executable = ho.compile(lambda x, *, by: x / by["scale"], x, by={"scale": np.float32(2)})
    assert executable(x, np.float32(2)).tolist() == [0.5, 1]
    files = ho.emit(lambda x, *, by: x / by, x, by=2.0, target="cuda", name="half")
    assert {"half.cu", "half.h"} < files.keys()
    for call in (ho.load, ho.compile, ho.emit, ho.run, ho.check):
        with pytest.raises(ArgumentError, match="no argument 'taget'; nor is there such an option"):
            call(MATRIX, taget="cuda")


@pytest.mark.parametrize("call", [ho.check, ho.run])
@pytest.mark.parametrize("seed", [3, np.uint32([0, 3])], ids=["a number", "a key"])
def test_an_option_that_is_an_argument_of_the_function_is_no_guess(call: Any, seed: Any) -> None:
    """ho.check(f, x, seed=3) would call f by its own default."""

    def noisy(x: Any, seed: Any = 0) -> Any:
        return x + jnp.asarray(seed).sum()

    x = np.float32([1, 2])
    with pytest.raises(ArgumentError, match=r"seed= is an option here, and an argument of noisy:"):
        call(noisy, x, seed=seed)
    assert (
        call(noisy, x, seed) is not None and call(partial(noisy, seed=seed), x, seed=2) is not None
    )


def test_functions_of_tensorflow_are_told_from_those_of_jax() -> None:
    function = type("Function", (), {"__module__": "tensorflow.python", "__call__": abs})()
    for call in (ho.check, ho.load, ho.run, ho.compile, ho.jit):
        with pytest.raises(ArgumentError, match="Function of TensorFlow is no function of JAX"):
            call(function)


def test_a_directory_that_is_no_dump(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(MATRIX)
    with pytest.raises(Error, match=r": no dump of XLA: give one of its files, as m\.hlo"):
        ho.load(tmp_path)
    for name in ("fingerprint.pb", "saved_model.pb"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(Error, match=r"give one of its files, as saved_model\.pb"):
        ho.load(tmp_path)
