"""Test the choice between a team of threads and one thread, by times that tests make up."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.native.thread_choice import ONE, TEAM, ThreadChoice, entry_by_choice
from hlo.operating_system import processors

_PARALLEL = hlo.parse(
    "HloModule m ENTRY e { x = f32[4000000] parameter(0) ROOT r = f32[4000000] tanh(x) }"
)


def _spent(
    found: ThreadChoice, times: Iterator[tuple[float, float]]
) -> tuple[list[int], float, float]:
    """Return the choices for calls that take (team's, one thread's) seconds, the seconds they took,
    and the least that calls of one choice alone would have."""
    choices, taken, alone = [], 0.0, [0.0, 0.0]
    for both in times:
        choices.append(found.choice)
        taken += both[found.choice]
        alone = [sum(pair) for pair in zip(alone, both, strict=True)]
        found.note(both[found.choice])
    return choices, taken, min(alone)


def _noisy(team: float, one: float, calls: int, seed: int = 0) -> Iterator[tuple[float, float]]:
    """Yield times of calls, a fifth longer or shorter, one in fifty interrupted for 4 ms."""
    rng = np.random.default_rng(seed)
    for _ in range(calls):
        factors = rng.uniform(0.8, 1.2, 2)
        interrupted = 4e-3 * (rng.random(2) < 0.02)
        yield team * factors[0] + interrupted[0], one * factors[1] + interrupted[1]


@pytest.mark.parametrize("threads", [2, 16])
@pytest.mark.parametrize("team", [1e-4, 1e-2, 1.0])
def test_trials_cost_little_where_a_team_is_faster(team: float, threads: int) -> None:
    found = ThreadChoice(threads)
    choices, taken, least = _spent(found, _noisy(team, 0.8 * threads * team, 20_000))
    assert ONE in choices
    assert taken < 1.06 * least


@pytest.mark.parametrize("one", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("times_slower", [1.5, 8.0])
def test_one_thread_is_found_where_it_is_faster(one: float, times_slower: float) -> None:
    choices, taken, least = _spent(ThreadChoice(2), _noisy(times_slower * one, one, 20_000))
    assert ONE in choices[:20]
    assert taken < 1.08 * least


def test_a_team_that_waits_is_left_and_taken_again() -> None:
    found = ThreadChoice(2)
    for _ in range(2):
        quiet, _, _ = _spent(found, _noisy(1e-3, 1.7e-3, 3_000))
        beside, _, _ = _spent(found, _noisy(12e-3, 1.7e-3, 3_000))
        assert quiet[1_500:].count(TEAM) > 1_400
        assert beside[100:].count(ONE) > 2_750


def test_the_number_of_threads_is_given_back() -> None:
    threads, seen = [4], []

    def entry(fails: bool) -> None:
        seen.append(threads[0])
        if fails:
            raise ArithmeticError

    call = entry_by_choice(entry, lambda: threads[0], lambda number: threads.__setitem__(0, number))
    for _ in range(200_000):
        call(False)
        assert threads == [4]
        if 1 in seen:
            break
    else:
        pytest.fail("200,000 calls of one time, and none in one thread")
    with pytest.raises(ArithmeticError):
        for _ in range(10):
            call(True)
    assert threads == [4]
    assert set(seen) == {1, 4}


def test_a_given_number_of_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "backend_c.native.executable.entry_by_choice",
        lambda entry, chosen, choose: asked.append(chosen()) or entry,
    )
    backend_c.compile(_PARALLEL, threads=2)
    short = "HloModule m ENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] tanh(x) }"
    backend_c.compile(hlo.parse(short))
    assert asked == []
    backend_c.compile(_PARALLEL)
    assert all(threads > 1 for threads in asked)
    assert asked or processors() == 1 or "OMP_NUM_THREADS" in os.environ


def test_calls_by_choice_give_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=4_000_000).astype(np.float32)
    executable = backend_c.compile(_PARALLEL)
    wanted = backend_c.compile(_PARALLEL, threads=1)(x)
    for _ in range(12):
        assert executable(x).tobytes() == wanted.tobytes()
