"""``hlo check --same``: files that are one program, but for what roundings may do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_oracle import own_process
from hlo_oracle.command.main import main

PRODUCTS = """HloModule products
ENTRY main {{
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  z = f32[64] parameter(2)
  xy = f32[64] multiply(x, y)
  xyz = f32[64] multiply(xy, z)
  yz = f32[64] multiply(y, z)
  yzx = f32[64] multiply(yz, x)
  third = f32[] constant(0.333333343)
  thirds = f32[64] broadcast(third), dimensions={{}}
  three = f32[] constant(3)
  threes = f32[64] broadcast(three), dimensions={{}}
  ROOT r = f32[64] {root}
}}
"""


@pytest.mark.parametrize(
    ("one", "other", "kind", "status"),
    [
        ("multiply(xyz, x)", "multiply(x, xyz)", "equal", 0),
        ("divide(xyz, threes)", "multiply(xyz, thirds)", "within", 0),
        ("multiply(xy, z)", "multiply(x, yz)", "within", 0),
        # Nothing but rounding errors: of either sign, as large as the values.
        ("subtract(xyz, yzx)", "subtract(yzx, xyz)", "undetermined", 0),
        ("subtract(xyz, yzx)", "multiply(xyz, x)", "outside", 1),
        ("divide(xyz, threes)", "multiply(xyz, threes)", "outside", 1),
    ],
)
def test_verdicts(
    one: str,
    other: str,
    kind: str,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "p.hlo").write_text(PRODUCTS.format(root=one))
    (tmp_path / "p.later.hlo").write_text(PRODUCTS.format(root=other))
    assert main(["check", "--no-c", "--same", "--json", str(tmp_path)]) == status
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["kind"], found["status"]) == (kind, status)
    assert sum(found["elements"].values()) == 64 and found["elements"].get(kind)
    assert bool(found["lines"]) == (kind == "outside")
    assert bool(found["reasons"]) == (kind == "undetermined")


@pytest.mark.parametrize("as_json", [False, True])
def test_two_files_are_compared_whatever_their_names(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "before.hlo", tmp_path / "after.hlo"]
    for file, root in zip(files, ("add(x, y)", "subtract(x, y)"), strict=True):
        file.write_text(PRODUCTS.format(root=root))
    words = ["check", "--no-c", "--same", *map(str, files), *["--json"] * as_json]
    assert main(words) == 1
    said = capsys.readouterr().out
    if as_json:
        assert json.loads(said.splitlines()[-1])["kind"] == "outside"
    else:
        assert "before.hlo and after.hlo: DIFFERENT" in said


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "nothing to compare {}/p0.hlo with: give a second file"),
        (3, "nothing to compare among 3 files: give two, or some of one name up to the first dot"),
    ],
)
def test_without_a_pair_there_is_an_error(
    count: int,
    said: str,
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for n in range(count):
        (tmp_path / f"p{n}.hlo").write_text(PRODUCTS.format(root="add(x, y)"))
    assert main(["check", "--no-c", "--same", str(tmp_path), *options]) == 2
    assert said.format(tmp_path) in capsys.readouterr().err


def test_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roots = {
        "p": "subtract(xyz, yzx)",
        "p.same": "subtract(xyz, yzx)",
        "p.noise": "subtract(yzx, xyz)",
        "p.wrong": "add(yzx, xyz)",
    }
    for name, root in roots.items():
        (tmp_path / f"{name}.hlo").write_text(PRODUCTS.format(root=root))
    assert main(["check", "--no-c", "--same", str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()[5:]
    assert said[0].startswith("p.hlo and p.noise.hlo: elements ") and "undetermined (" in said[0]
    assert said[1].startswith("    result: ") and "undetermined, first at [" in said[1]
    assert "p.hlo and p.same.hlo: elements 64 equal" in said
    assert any(line.startswith("p.hlo and p.wrong.hlo: DIFFERENT: elements ") for line in said)
    assert said[-1] == "3 pairs of files: 1 equal, 1 undetermined, 1 outside"


def rooted(text: str, root: str) -> str:
    """The program with another root behind its own."""
    return text.replace("ROOT r =", "r =").removesuffix("}\n") + f"  ROOT {root}\n}}\n"


def test_other_interfaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other results are proven different; of other arguments only equal bits say something."""
    text = PRODUCTS.format(root="add(x, y)")
    parameter = "z = f32[64] parameter(2)"
    more = text.replace(parameter, f"{parameter}\n  w = f32[] parameter(3)")
    (tmp_path / "p.hlo").write_text(text)
    (tmp_path / "p.more.hlo").write_text(more)
    (tmp_path / "p.more_and_other.hlo").write_text(more.replace("add(x, y)", "subtract(x, y)"))
    (tmp_path / "p.short.hlo").write_text(rooted(text, "s = f32[2] slice(r), slice={[0:2]}"))
    (tmp_path / "p.tuple.hlo").write_text(rooted(text, "t = (f32[64]) tuple(r)"))
    assert main(["check", "--no-c", "--same", "--json", str(tmp_path)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()[5:]]
    assert [x["kind"] for x in found] == ["equal", "undetermined", "outside", "equal"]
    assert found[1]["reasons"][0] == "they take other arrays"
    assert found[2]["lines"] == ["p.hlo gives float32[64]", "p.short.hlo gives float32[2]"]


def test_the_end_of_the_judge_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hlo").write_text(PRODUCTS.format(root="subtract(x, y)"))
    (tmp_path / "p.later.hlo").write_text(PRODUCTS.format(root="subtract(y, x)"))
    (tmp_path / "aborting_judge.py").write_text(
        "import os\n\ndef answer(question):\n    os.abort()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    judge = {"hlo_oracle.same_program": "aborting_judge"}
    asked = own_process.asked
    monkeypatch.setattr(own_process, "asked", lambda name, q: asked(judge.get(name, name), q))
    assert main(["check", "--no-c", "--same", str(tmp_path)]) == 1
    assert "p.later.hlo: crashed: killed by SIGABRT" in capsys.readouterr().out


def test_recorded_sums_are_judged_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded sums are judged for the first file alone: the comparison decides the others."""
    for name in ("p", "p.later"):
        (tmp_path / f"{name}.hlo").write_text(PRODUCTS.format(root="add(x, y)"))
    arguments = [["full", [64], "float32", n] for n in (1, 2, 3)]
    outputs = [{"shape": [64], "dtype": "float32", "sum": 192, "abs_sum": 192}]
    recipe = {"p": {"seed": 1, "arguments": arguments, "outputs": outputs}}
    (tmp_path / "arguments.json").write_text(json.dumps(recipe))
    assert main(["check", "--no-c", "--same", "--json", str(tmp_path)]) == 0
    *rows, comparison = map(json.loads, capsys.readouterr().out.splitlines())
    counts = {"equal": 1, "within": 0, "undetermined": 0, "outside": 0}
    assert [row["sum_verdicts"] for row in rows] == [counts, None]
    assert comparison["kind"] == "equal"
