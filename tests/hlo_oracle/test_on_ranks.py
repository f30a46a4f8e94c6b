"""``hlo run`` and ``hlo check`` on several ranks, and of arguments of bounded dimensions."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
from hlo import archive
from hlo_oracle.arguments import from_seed
from hlo_oracle.command.main import main

needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

SUM = """HloModule sum, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  z = f32[3] subtract(x, y)
  ROOT sum = f32[3] all-reduce(z), replica_groups={}, to_apply=add
}
"""
ALONE = """HloModule alone
ENTRY main {
  x = f32[<=7,2] parameter(0)
  y = s32[<=7] parameter(1)
  z = f32[<=9] parameter(2)
  n = f32[<=7,2] negate(x)
  ROOT all = (f32[<=7,2], s32[<=7], f32[<=9]) tuple(n, y, z)
}
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def run(*words: object) -> int:
    return main(["run", *map(str, words)])


def results(directory: Path, *words: object) -> dict[str, np.ndarray]:
    out = directory / "out.npz"
    assert run(*words, "--save", out) == 0
    return archive.read(out)


def test_the_header_says_how_many_ranks_there_are(tmp_path: Path) -> None:
    path = written(tmp_path / "sum.hlo", SUM)
    found = results(tmp_path, path, "--seed", 5)
    drawn = [from_seed(hlo.parse(SUM), seed) for seed in (5, 6)]
    wanted = np.sum([x - y for x, y in drawn], axis=0, dtype=np.float64).astype(np.float32)
    assert list(found) == ["result@0", "result@1"]
    assert all(np.array_equal(array, wanted) for array in found.values())


def test_partitions(tmp_path: Path) -> None:
    text = SUM.replace(", replica_count=2", "").replace("{},", "{}, channel_id=1,")
    path = written(tmp_path / "sum.hlo", text)
    options = ("--replicas", 2, "--partitions", 3)
    assert list(results(tmp_path, path, *options)) == [f"result@{rank}" for rank in range(6)]
    assert list(results(tmp_path, path)) == ["result"]


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"x": numbers(1, 2, 3), "y": numbers(1, 1, 1)}, [0, 2, 4]),
        ({"x": numbers(1, 2, 3), "y@0": numbers(1, 1, 1), "y@1": numbers(0, 0, 1)}, [1, 3, 4]),
        ({"x": numbers(1, 2, 3), "y": numbers(1, 1, 1), "y@1": numbers(0, 0, 1)}, [1, 3, 4]),
        ({"p1": numbers(1, 1, 1), "p0": numbers(1, 2, 3)}, [0, 2, 4]),
        ({f"p{n}": numbers(*[n] * 3) for n in range(4)}, [-2, -2, -2]),
    ],
)
def test_arguments_of_each_rank(
    given: dict[str, np.ndarray], wanted: list[float], tmp_path: Path
) -> None:
    path, arrays = written(tmp_path / "sum.hlo", SUM), tmp_path / "given.npz"
    np.savez(arrays, **given)  # type: ignore[arg-type]  # its keywords are typed as flags
    found = results(tmp_path, path, "--args", arrays)
    assert [array.tolist() for array in found.values()] == [wanted, wanted]


def test_what_ranks_cannot_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, arrays = written(tmp_path / "sum.hlo", SUM), tmp_path / "given.npz"
    np.savez(arrays, *[numbers(1, 2, 3)] * 3)
    for words, said in (
        (("--on", "c"), "one rank, not 2"),
        (("--replicas", 3), "made for replicas=2"),
        (("--args", arrays), "2 arguments are expected, 3 were given"),
    ):
        assert run(path, *words) == 2
        message = capsys.readouterr().err
        assert said in message and message.count("\n") == 1
    with pytest.raises(SystemExit):
        run(path, "--partitions", 0)


@needs_c
def test_ranks_that_know_nothing_of_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C is run once for each."""
    path = written(tmp_path / "alone.hlo", ALONE)
    words = (path, "--replicas", 2, "--seed", 1)
    found = [results(tmp_path, *words, "--on", on) for on in ("interp", "c")]
    assert list(found[0]) == list(found[1])
    assert list(found[0])[2:4] == ["{2}@0", "{0}@1"]
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])
    assert main(["check", "--json", *map(str, words)]) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (len(row["outputs"]), row["run"] is None) == (6, False)


def test_check_runs_no_c_where_ranks_meet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(written(tmp_path / "sum.hlo", SUM))]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("2 outputs, C not run")


def test_seeds_draw_sizes() -> None:
    """1 to the bound, of equal bounds equal ones, on all ranks; and static arguments as before."""
    module = hlo.parse(ALONE)
    seen = set()
    for seed in range(60):
        x, y, z = from_seed(module, seed)
        assert [array.shape for array in from_seed(module, seed, 1)] == [x.shape, y.shape, z.shape]
        assert len(x) == len(y) and x.shape[1:] == (2,)
        seen.add((len(x), len(z)))
    assert {one for one, _ in seen} == set(range(1, 8))
    assert {other for _, other in seen} == set(range(1, 10))
    assert len(seen) > 20
    (nothing,) = from_seed(hlo.parse("ENTRY e { ROOT x = f32[<=0,3] parameter(0) }"), 0)
    assert nothing.shape == (0, 3)


@pytest.mark.parametrize("on", ["interp", pytest.param("c", marks=needs_c)])
def test_archives_have_actual_sizes(
    on: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, arrays = written(tmp_path / "alone.hlo", ALONE), tmp_path / "given.npz"

    def saved(rows: int) -> None:
        x = np.ones((rows, 2), np.float32)
        np.savez(arrays, x=x, y=np.ones(0, np.int32), z=np.ones(9, np.float32))

    saved(3)
    found = results(tmp_path, path, "--args", arrays, "--on", on)
    assert [array.shape for array in found.values()] == [(3, 2), (0,), (9,)]
    capsys.readouterr()
    saved(8)
    assert run(path, "--args", arrays, "--on", on) == 2
    said = capsys.readouterr().err
    assert "parameter 0 (x): expected f32[<=7,2], got float32[8,2]" in said
