"""Parallel loops run on one team of threads of the process, whoever calls, forks or is unloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import backend_c
import hlo
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.thread_team import is_linked, linking_words
from backend_c.native.toolchain import known_compiler, links, require, run
from hlo.module import Module
from hlo.operating_system import most_threads, processors

_STRESS = Path(__file__).with_name("thread_team_stress.c")
_COUNT = 400_000
_SETTINGS = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")

_CACHE = open_cache(default_directory(os.environ))
_COMPILER = known_compiler(os.environ, _CACHE)
pytestmark = pytest.mark.skipif(not is_linked(_COMPILER), reason="the team is for gcc on Linux")


def _scaled(factor: int) -> Module:
    """Make a program of one parallel loop, whose library is its own."""
    return hlo.parse(
        f"HloModule m ENTRY e {{ x = s32[{_COUNT}] parameter(0) f = s32[] constant({factor})"
        f" b = s32[{_COUNT}] broadcast(f), dimensions={{}} ROOT r = s32[{_COUNT}] multiply(x, b) }}"
    )


_TELLING = """
#include <stdio.h>
int hlo_team_threads(void);
int main(void) {
    int shares = 0;
    for (int round = 0; round < 3; ++round) {
        shares = 0;
#pragma omp parallel reduction(+ : shares)
        ++shares;
    }
    printf("%d %d\\n", hlo_team_threads(), shares);
    return 0;
}
"""
_X = np.arange(_COUNT, dtype=np.int32)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_each_element_is_computed_in_any_number_of_shares(threads: int) -> None:
    executable = backend_c.compile(_scaled(3), threads=threads)
    for _ in range(20):
        assert (executable(_X) == 3 * _X).all()


def test_callers_at_once_get_their_own_results() -> None:
    executables = [backend_c.compile(_scaled(factor), threads=4) for factor in (5, 6, 7)]

    def called(number: int) -> bool:
        return all((executables[number](_X) == (5 + number) * _X).all() for _ in range(40))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(called, range(3)))


_PROCESS = """
import glob, os
import backend_c
from tests.backend_c.native.test_thread_team import _X, _scaled

def blocked(thread):
    lines = open(f"{thread}/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("SigBlk")).split()[1], 16)

before = set(glob.glob("/proc/self/task/*"))
for factor in range(2, 5):  # the library of the first hosts the team
    executable = backend_c.compile(_scaled(factor), threads=3)
    assert (executable(_X) == factor * _X).all()
    if factor < 4:
        del executable
helpers = set(glob.glob("/proc/self/task/*")) - before
assert len(helpers) == 2, helpers
assert all(blocked(helper) >> 1 & 1 for helper in helpers), "SIGINT is for Python's thread"
assert "gomp" not in open("/proc/self/maps").read()
child = os.fork()
if child == 0:
    os._exit(int(not (executable(_X) == 4 * _X).all()))
assert os.waitpid(child, 0)[1] == 0, "a child process has a team of its own"
"""


def test_a_process_has_one_team() -> None:
    root = Path(backend_c.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=False, timeout=120,
        cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_environment_is_read_as_by_libgomp(tmp_path: Path) -> None:
    (tmp_path / "told.c").write_text(_TELLING, "utf-8")
    _build("told", ("-fopenmp",), linking_words(_COMPILER, _CACHE, str(tmp_path)), tmp_path)
    cases = {
        "": processors(),
        "OMP_NUM_THREADS=3": 3,
        "OMP_NUM_THREADS=5,2": 5,
        "OMP_NUM_THREADS=many": processors(),
        "OMP_NUM_THREADS=-1": processors(),
        "OMP_NUM_THREADS=3 OMP_WAIT_POLICY=PASSIVE": 3,
        "OMP_NUM_THREADS=3 OMP_WAIT_POLICY=active": 3,
        "OMP_NUM_THREADS=2 GOMP_SPINCOUNT=infinity": 2,
        "OMP_NUM_THREADS=2 GOMP_SPINCOUNT=9": 2,
    }
    alone = [word for name in _SETTINGS for word in ("-u", name)]
    for given, number in cases.items():
        done = run(["env", *alone, *given.split(), str(tmp_path / "told")])
        assert (done.returncode, done.stdout) == (0, f"{number} {number}\n"), given


def test_threads_beyond_what_shares_are_for_do_no_harm() -> None:
    executable = backend_c.compile(_scaled(11), threads=most_threads())
    assert (executable(_X) == 11 * _X).all()


def _sanitizers() -> Iterator[tuple[str, ...]]:
    yield ()
    for flags in (("-fsanitize=thread",), ("-fsanitize=address,undefined",)):
        if links(_COMPILER.command, flags):
            yield flags


@pytest.mark.parametrize("flags", [*_sanitizers()], ids=lambda flags: " ".join(flags) or "plain")
def test_regions_of_several_callers_do_not_race(flags: tuple[str, ...], tmp_path: Path) -> None:
    words = [*linking_words(_COMPILER, _CACHE, str(tmp_path))]
    if flags:  # the team, too, is to be checked
        words = ["-pthread", str(Path(backend_c.__file__).parent / "native" / "thread_team.c")]
    (tmp_path / "stress.c").write_text(_STRESS.read_text("utf-8"), "utf-8")
    _build("stress", ("-fopenmp", *flags), [*flags, *words], tmp_path)
    done = run([str(tmp_path / "stress")])
    assert (done.returncode, done.stderr) == (0, "")


def _build(name: str, flags: Sequence[str], linking: Sequence[str], directory: Path) -> None:
    """Compile a program of one file in a directory, and link it with the team."""
    compile_ = [*_COMPILER.command, *flags, "-g", "-O1", "-c", f"{name}.c"]
    require(run(compile_, str(directory)), _COMPILER)
    link = [*_COMPILER.command, f"{name}.o", *linking, "-o", name]
    require(run(link, str(directory)), _COMPILER)
