"""A bound call, a call into given arrays and a plain call give the same bits."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import backend_c
import fuzz
import hlo
from backend_c.native.executable import Executable
from backend_c.native.in_place import is_fixed
from backend_c.native.marshalling import Array, Value
from hlo.bit_equality import differences
from hlo.errors import ArgumentError

_TEXT = """HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  a = f32[2,3] add(x, y)
  b = f32[2,3] multiply(x, y)
  ROOT r = (f32[2,3], f32[2,3]) tuple(a, b)
}
"""
_ONE = np.arange(6, dtype=np.float32).reshape(2, 3)
_TWO = np.full((2, 3), 2, np.float32)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return backend_c.compile(hlo.parse(_TEXT))


def _arrays(value: Value) -> Iterator[Array]:
    """Yield the arrays of a value."""
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif value is not None:
        yield value


def _filled(value: Value) -> Value:
    """Return arrays like those of a value, full of other bits."""
    if isinstance(value, tuple):
        return tuple(map(_filled, value))
    return None if value is None else np.full_like(value, 1)


def _required(value: Value) -> Value:
    """Return a value as arrays that C takes where they are."""
    if isinstance(value, tuple):
        return tuple(map(_required, value))
    return None if value is None else np.require(np.asarray(value), None, ("C", "A"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_all_ways_to_call_give_the_same_bits(data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    arrays = tuple(map(_required, data.draw(fuzz.arguments(module))))
    compiled = backend_c.compile(module, numerics="exact")
    expected = compiled(*arrays, seed=3)
    shapes = [p.shape for p in module.entry.parameters]
    if not all(map(is_fixed, [*shapes, module.entry.root_instruction.shape])):
        with pytest.raises(ArgumentError, match="is converted at each call"):
            compiled.bind(*arrays)
        return
    out = _filled(expected)
    assert compiled(*arrays, seed=3, out=out) is out
    assert not differences(expected, out)
    bound = compiled.bind(*arrays, seed=3)
    for _ in range(2):
        assert not differences(expected, bound())
    for array in _arrays(bound.result):
        array[...] = np.zeros((), array.dtype)
    assert not differences(expected, bound())
    into = compiled.bind(*arrays, seed=3, out=out)
    assert into() is out
    assert not differences(expected, out)


def test_bound_calls_read_what_the_arrays_hold_then(executable: Executable) -> None:
    one = _ONE.copy()
    run = executable.bind(one, _TWO)
    first = run()
    assert first[0].tolist() == (_ONE + 2).tolist()
    one += 5
    again = run()
    assert again is first
    assert again[1].tolist() == ((_ONE + 5) * 2).tolist()


def test_an_executable_says_what_it_takes_and_gives(executable: Executable) -> None:
    assert repr(executable.in_threads(2)) == (
        "Executable((f32[2,3], f32[2,3]) -> (f32[2,3], f32[2,3]), threads=2)"
    )


def test_results_of_plain_calls_are_their_own(executable: Executable) -> None:
    first = executable(_ONE, _TWO)
    kept = first[0].copy()
    second = executable(_TWO, _TWO)
    assert not any(np.may_share_memory(a, b) for a in first for b in second)
    assert first[0].tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (lambda x: x.T, r"parameter 0 \(x\): expected f32\[2,3\], got float32\[3,2\]"),
        (lambda x: x.astype(np.float64), r"expected f32\[2,3\], got float64\[2,3\]"),
        (lambda x: np.asfortranarray(x), r"row-major and aligned: numpy.require"),
        (lambda x: x.tolist(), r"expected an array f32\[2,3\]"),
        (lambda x: None, r"expected an array f32\[2,3\], got None"),
        (lambda x: x.astype(">f4"), r"expected f32\[2,3\]"),
    ],
)
def test_arrays_that_are_not_bound(executable: Executable, view: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        executable.bind(view(_ONE), _TWO)


def test_arrays_that_are_converted_run_all_the_same(executable: Executable) -> None:
    """Lists, columns, and other views: a call takes them, and gives the same."""
    expected = executable(_ONE, _TWO)
    for one in (_ONE.tolist(), np.asfortranarray(_ONE), np.repeat(_ONE, 2, 1)[:, ::2]):
        taken = np.asarray(one, np.float32) if isinstance(one, list) else one
        assert not differences(expected, executable(taken, _TWO))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (_ONE.copy(), r"out: expected \(f32\[2,3\], f32\[2,3\]\), got float32\[2,3\]"),
        ((_ONE.copy(),), r"out: expected \(.*\), got \(float32\[2,3\]\)"),
        ((_ONE.copy(), _ONE.astype(int)), r"out, element 1: expected f32\[2,3\], got int64"),
        ((_ONE.copy(), np.asfortranarray(_ONE)), r"out, element 1: the array is not row-major"),
        ((_ONE.copy(), np.broadcast_to(np.float32(0), (2, 3))), r"out, element 1: the array is"),
    ],
)
def test_results_that_do_not_fit(executable: Executable, out: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        executable(_ONE, _TWO, out=out)
    with pytest.raises(ArgumentError, match=message):
        executable.bind(_ONE, _TWO, out=out)


def test_read_only_results(executable: Executable) -> None:
    locked = _ONE.copy()
    locked.flags.writeable = False
    with pytest.raises(ArgumentError, match="out, element 0: the array is read-only"):
        executable(_ONE, _TWO, out=(locked, _ONE.copy()))
    assert executable(locked, _TWO)[0].tolist() == (_ONE + 2).tolist()


@given(starts=st.tuples(*[st.integers(0, 24)] * 4))
def test_results_apart_from_all_else(executable: Executable, starts: tuple[int, ...]) -> None:
    """Arguments may overlap with each other, results with nothing."""
    memory = np.zeros(30, np.float32)
    one, two, three, four = (memory[start : start + 6].reshape(2, 3) for start in starts)
    pairs = [(one, three), (one, four), (two, three), (two, four), (three, four)]
    if any(np.shares_memory(*pair) for pair in pairs):
        with pytest.raises(ArgumentError, match="out shares memory"):
            executable(one, two, out=(three, four))
        with pytest.raises(ArgumentError, match="out shares memory"):
            executable.bind(one, two, out=(three, four))
    else:
        memory[...] = range(30)
        expected = executable(one, two)
        assert not differences(expected, executable(one, two, out=(three, four)))


def test_bound_calls_keep_what_they_need() -> None:
    """The executable, the arrays and the library may be forgotten."""
    run = backend_c.compile(hlo.parse(_TEXT)).bind(_ONE.copy(), _TWO.copy())
    np.zeros(1 << 16)
    assert run()[0].tolist() == (_ONE + 2).tolist()


def test_threads_share_an_executable(executable: Executable) -> None:
    wrong = list[int]()

    def work(number: int) -> None:
        mine = np.full((2, 3), number, np.float32)
        bound = executable.bind(mine, _TWO)
        for _ in range(200):
            results = [executable(mine, _TWO), bound(), executable(np.asfortranarray(mine), _TWO)]
            if any((result[0] != number + 2).any() for result in results):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_example_of_the_documents_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/calls.md").read_text(), re.DOTALL)
    program = program.replace('"examples/', f'"{ROOT}/examples/')
    exec(compile(program, "docs/calls.md", "exec"), {})


def test_large_results_are_recycled_and_right() -> None:
    """Each result keeps its bits while it lives, whatever is computed after it."""
    text = (
        "HloModule m\nENTRY e { x = f32[2000000] parameter(0)\n ROOT y = f32[2000000] negate(x) }"
    )
    negate = backend_c.compile(hlo.parse(text))
    arrays = [np.full(2_000_000, n, np.float32) for n in range(4)]
    for _ in range(3):
        results = [negate(array) for array in arrays]
        assert all((result == -n).all() for n, result in enumerate(results))
        for one, other in zip(results, results[1:], strict=False):
            assert not np.may_share_memory(one, other)
