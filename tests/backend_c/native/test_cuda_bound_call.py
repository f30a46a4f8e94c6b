"""A program that is bound to memory of a GPU runs again and again, by graphs where it can."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler
from cuda_programs import CONTROL
from test_cuda_executable import CHOICES, ByDlpack, Foreign, X, compiled, device

import hlo
import interp
from backend_c.native.cuda_driver import Driver
from backend_c.native.device_arrays import DeviceArray
from hlo.bit_equality import differences
from hlo.values import Value

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
# Two launches in a row: a graph.
CHAIN = """HloModule chain
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }
ENTRY e { x = f32[300] parameter(0)
          zero = f32[] constant(0)
          total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
          all = f32[300] broadcast(total), dimensions={}
          less = f32[300] subtract(x, all)
          again = f32[] reduce(less, zero), dimensions={0}, to_apply=add
          ROOT both = (f32[300], f32[]) tuple(less, again) }"""


def _arrays(value: Value) -> Value:
    assert isinstance(value, tuple)
    return tuple(one.numpy() for one in value if isinstance(one, DeviceArray))


def test_runs_are_queued_and_read_the_arguments_anew() -> None:
    """Results of each run, from the first ones to those of a graph."""
    executable, module = compiled(CHAIN, device()), hlo.parse(CHAIN)
    first = executable.on_device(X)
    assert isinstance(first, tuple)
    bound = executable.bind(first[0])
    expected = interp.evaluate(module, _arrays(first)[0])
    for _ in range(5):
        bound.enqueue()
        bound.wait()
        assert not differences(expected, _arrays(bound.results))
    for _ in range(7):
        bound.enqueue()
    bound.wait()
    assert not differences(expected, _arrays(bound.results))


def _on_host(array: DeviceArray) -> np.ndarray:
    return array.numpy()


def _by_another(give: Callable[[DeviceArray], Any]) -> Callable[[DeviceArray], np.ndarray]:
    """Return what copies an array by a program that takes it as another library gives it."""

    def copied(array: DeviceArray) -> np.ndarray:
        found = compiled(_COPY, device()).on_device(give(array))
        assert isinstance(found, DeviceArray)
        return found.numpy()

    return copied


_COPY = "HloModule copy\nENTRY e { x = f32[300] parameter(0)\n ROOT y = f32[300] copy(x) }"


@pytest.mark.parametrize(
    "read", [_on_host, _by_another(lambda x: x), _by_another(Foreign), _by_another(ByDlpack)]
)
@pytest.mark.parametrize("is_closed", [False, True])
def test_results_are_waited_for(read: Callable[[DeviceArray], np.ndarray], is_closed: bool) -> None:
    """Nobody reads a result before the runs that write it, which closing waits for, too."""
    executable = compiled(CHAIN, device())
    bound = executable.bind(X)
    bound.enqueue()
    results = bound.results
    assert isinstance(results, tuple) and isinstance(results[0], DeviceArray)
    if is_closed:
        executable.close()
    (expected, _) = interp.evaluate(hlo.parse(CHAIN), X)
    assert not differences(expected, read(results[0]))


def test_a_program_that_was_closed_says_so() -> None:
    executable = compiled(CHAIN, device())
    bound = executable.bind(X)
    for _ in range(2):
        executable.close()
    for run in (bound.enqueue, bound.wait, bound.time, bound.profile,
                lambda: executable(X), lambda: executable.bind(X),
                lambda: executable.on_device(X), lambda: executable.time(X)):  # fmt: skip
        with pytest.raises(hlo.DeviceError, match="the program was closed"):
            run()


def test_graphs_are_those_of_the_addresses() -> None:
    """Two sets of arrays in turn, and calls between: no graph writes to those of another one."""
    executable, module = compiled(CHAIN, device()), hlo.parse(CHAIN)
    arrays = X, X * np.float32(3)
    bounds = [executable.bind(array) for array in arrays]
    for number in (0, 0, 0, 0, 1, 1, 1, 1, 0, 1):
        bounds[number].enqueue()
        bounds[number].wait()
        assert not differences(interp.evaluate(module, arrays[number]),
                               _arrays(bounds[number].results))  # fmt: skip
        assert not differences(interp.evaluate(module, X), executable(X))


def test_what_is_bound_is_held_and_freed() -> None:
    on = device()
    gc.collect()  # what other tests left
    alive = on.driver.library.hlo_emulated_alive()
    bound = compiled(CHAIN, on).bind(X)
    for _ in range(5):
        bound.enqueue()
    bound.wait()
    assert not differences(interp.evaluate(hlo.parse(CHAIN), X), _arrays(bound.results))
    del bound
    gc.collect()
    assert on.driver.library.hlo_emulated_alive() == alive


def _fails(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Let all calls of a function of the driver fail, which is not made."""
    usual = Driver.call

    def call(self: Driver, name: str, *words: Any, doing: str = "") -> None:
        if name == function:
            raise hlo.DeviceError(f"{name} failed")
        usual(self, name, *words, doing=doing)

    monkeypatch.setattr(Driver, "call", call)


def test_a_capture_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of a graph whose capture failed, and the next run has one."""
    on = device()
    bound = compiled(CHAIN, on).bind(X)
    for _ in range(2):
        bound.enqueue()
    bound.wait()
    alive = on.driver.library.hlo_emulated_alive()
    with monkeypatch.context() as patch:
        _fails(patch, "cuLaunchKernel")
        with pytest.raises(hlo.DeviceError, match="cuLaunchKernel failed"):
            bound.enqueue()
    assert on.driver.library.hlo_emulated_alive() == alive
    bound.enqueue()
    bound.wait()
    assert on.driver.library.hlo_emulated_alive() == alive + 1
    assert not differences(interp.evaluate(hlo.parse(CHAIN), X), _arrays(bound.results))


@pytest.mark.parametrize("function", ["cuModuleGetFunction", "cuEventRecord", "cuStreamWaitEvent"])
def test_calls_that_fail_leave_nothing(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Neither streams nor events are left where a kernel is not found, or nobody can wait."""
    on = device()
    given = compiled(CHAIN, on).on_device(X)
    assert isinstance(given, tuple) and isinstance(given[0], DeviceArray)
    gc.collect()
    alive = on.driver.library.hlo_emulated_alive()
    with monkeypatch.context() as patch:
        _fails(patch, function)
        with pytest.raises(hlo.DeviceError, match=f"{function} failed"):
            compiled(CHAIN, on).bind(Foreign(given[0], stream=1))
    gc.collect()
    assert on.driver.library.hlo_emulated_alive() == alive


def test_loops_of_the_host_have_graphs_of_their_bodies() -> None:
    bound, module = compiled(CONTROL, device()).bind(*CHOICES), hlo.parse(CONTROL)
    for seed in (0, 1, 1, 1, 1, 2):
        bound.enqueue(seed)
        bound.wait()
        assert not differences(interp.evaluate(module, *CHOICES, seed=seed), _arrays(bound.results))


def test_a_profile_names_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile names all kernels, also where each is launched alone (CUDA_LAUNCH_BLOCKING), so
    that an error belongs to one."""
    for blocking in ("0", "1"):
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", blocking)
        bound = compiled(CHAIN, device()).bind(X)
        found = bound.profile()
        assert {one.instruction for one in found} == {"less", "again"}
        assert all(one.milliseconds >= 0 and one.launches == 1 for one in found)
        assert bound.time(repeat=2) > 0


def test_results_that_are_converted_cannot_be_bound() -> None:
    text = """HloModule m
    ENTRY e { x = f32[6] parameter(0)
              n = s32[] parameter(1)
              ROOT r = f32[<=6] set-dimension-size(x, n), dimensions={0} }"""
    executable = compiled(text, device())
    with pytest.raises(hlo.ArgumentError, match=r"a result of f32\[<=6\].* is converted"):
        executable.bind(X[:6], np.asarray(np.int32(2)))
