"""Arrays of a file are given to parameters by names, as JAX users know them, or by numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.values import Array
from hlo_oracle import named_arrays
from hlo_oracle.command.main import main

FILE = Path("f.npz")
_NAMES = st.lists(
    st.sampled_from(["x.1", "x.2", "x", "y.7", "y", "p0.3", "Arg_1.2", "t.1{0}", "t.1{1,0}", "z"]),
    unique=True,
    min_size=1,
)


def arrays(*names: str) -> dict[str, Array]:
    """An array for each name, which is its place."""
    return {name: np.asarray(n) for n, name in enumerate(names)}


def order(names: list[str], *keys: str) -> list[int]:
    return [int(a) for a in named_arrays.of_rank(FILE, names, arrays(*keys), 0, 1)]


@given(_NAMES, st.randoms(use_true_random=False))
def test_the_names_of_the_program_in_any_order(names: list[str], random: st.DataObject) -> None:
    keys = [f"%{name}" if n % 2 else name for n, name in enumerate(names)]
    shuffled = sorted(keys, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert order(names, *shuffled) == [shuffled.index(key) for key in keys]


@pytest.mark.parametrize(
    ("names", "keys", "places"),
    [
        ("x.1 y.1", "y x", [1, 0]),
        ("x.1 y.1", "%y.1 %x", [1, 0]),
        ("x.1 y.1", "unused y x", [2, 1]),  # JAX drops parameters that nothing reads
        ("p__w__.1 a_0_.1", "a[0] p['w']", [1, 0]),
        ("t.1{0} t.1{1,0}", "t{1,0} t{0}", [1, 0]),
        ("x.1 x", "x.1 x", [0, 1]),
        ("x.1 y.1", "arr_1 arr_0", [1, 0]),
        ("x.1 y.1", "p1 p0", [1, 0]),
        ("x.1 y.1", "arg0 arg1", [0, 1]),
        ("Arg_0.1 Arg_1.1", "Arg_1 Arg_0", [1, 0]),
        ("x.1 p0.2", "p0 p1", [0, 1]),
        ("x.1 y.1", "{1,0} {0}", [1, 0]),  # results of a run
        ("x.1", "result", [0]),
    ],
)
def test_names_and_numbers(names: str, keys: str, places: list[int]) -> None:
    assert order(names.split(), *keys.split()) == places


def test_twelve_numbers_are_sorted_as_numbers() -> None:
    names = [f"x.{n}" for n in range(12)]
    keys = [f"arr_{n}" for n in reversed(range(12))]
    assert order(names, *keys) == list(reversed(range(12)))


@pytest.mark.parametrize(
    ("names", "keys", "said"),
    [
        ("x.1 y.1", "Y x", r"y.1 is missing; there are Y, x, where x.1, y.1 are expected"),
        ("x.1 x.2", "x y", r"x.1, x.2 are missing"),
        ("x.1 y.1", "arr_1 arr_2", r"x.1, y.1 are missing"),
        ("x.1 y.1", "arr_0 p1", r"x.1, y.1 are missing"),
        ("x.1", "z", r"x.1 is missing; there are z"),
        ("p1.1 p0.1", "p0 p1", r"p0, p1 may be names or numbers of p1.1, p0.1"),
    ],
)
def test_names_that_do_not_match_are_no_order(names: str, keys: str, said: str) -> None:
    with pytest.raises(hlo.ArgumentError, match=rf"f\.npz: {said}"):
        order(names.split(), *keys.split())


def test_arrays_of_ranks() -> None:
    def of_rank(rank: int, *keys: str) -> list[int]:
        found = named_arrays.of_rank(FILE, ["x.1", "y.1"], arrays(*keys), rank, 2)
        return [int(a) for a in found]

    assert [of_rank(r, "y", "x", "x@1") for r in range(2)] == [[1, 0], [2, 0]]
    assert [of_rank(r, "p0", "p1", "p2", "p3") for r in range(2)] == [[0, 1], [2, 3]]
    assert [of_rank(r, "p1", "p0") for r in range(2)] == [[1, 0], [1, 0]]


def test_results_are_numbered() -> None:
    assert named_arrays.results(FILE, arrays("r1", "r0")) == [1, 0]
    assert named_arrays.results(FILE, arrays("{1}", "{0}")) == [1, 0]
    assert named_arrays.results(FILE, arrays("loss")) == [0]
    with pytest.raises(hlo.ArgumentError, match="results are in order, and loss, grad tell none"):
        named_arrays.results(FILE, arrays("loss", "grad"))


# As JAX 0.10 writes ``lambda x, y: (x - y, y - x)``.
_JAX = """HloModule jit_f, entry_computation_layout={(f32[1]{0}, f32[1]{0})->(f32[1]{0}, f32[1]{0})}

ENTRY main.1 {
  x.1 = f32[1]{0} parameter(0)
  y.1 = f32[1]{0} parameter(1)
  sub.1 = f32[1]{0} subtract(x.1, y.1)
  sub.2 = f32[1]{0} subtract(y.1, x.1)
  ROOT tuple.1 = (f32[1]{0}, f32[1]{0}) tuple(sub.1, sub.2)
}
"""


def test_a_program_of_jax(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments and results by the names that users know, in another order than the program's."""
    file, given_, results = (tmp_path / name for name in ("f.hlo", "args.npz", "results.npz"))
    file.write_text(_JAX)
    one, ten, nine = (np.array([n], np.float32) for n in (1, 10, 9))
    np.savez(given_, y=one, x=ten)
    assert main(["run", str(file), "--args", str(given_)]) == 0
    assert capsys.readouterr().out == "{0} float32[1]\n[9.]\n{1} float32[1]\n[-9.]\n"
    np.savez(results, r1=-nine, r0=nine)
    words = ["check", str(file), "--no-c", "--args", str(given_), "--results", str(results)]
    assert main(words) == 0
    assert "2 equal" in capsys.readouterr().out
    np.savez(given_, b=one, a=ten)
    assert main(["run", str(file), "--args", str(given_)]) == 2
    assert "x.1, y.1 are missing; there are b, a" in capsys.readouterr().err
