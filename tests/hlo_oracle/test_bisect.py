"""``hlo check DUMP`` and ``hlo bisect DUMP``: stages of a compilation, some of them corrupted."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from hlo_oracle.command.main import main

EXAMPLE = ROOT / "examples" / "dump"  # transpose-folding lost the transpose
WRONG = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
RIGHT = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
FOLDED = ("transpose-folding", "after_fusion", "cpu_after_optimizations.txt")
# What goes wrong: in which stage, what stands there, what stands there then, the instruction named.
CORRUPTIONS = {
    "operands of a difference": (
        *("after_algsimp", "subtract(%slice.1, %sub.10)", "subtract(%sub.10, %slice.1)", "sub.11"),
    ),
    "a constant": (
        *("after_fusion", "%constant.13 = f32[] constant(0.333333343)"),
        *("%constant.13 = f32[] constant(0.25)", "multiply.6"),
    ),
    "a dropped transpose": (
        *("call-inliner", "dot(%x.1, %transpose.1)", "dot(%x.1, %w.1)", "dot_general.1"),
    ),
    "limits of a slice": (
        *("after_algsimp", "slice={[0:6], [1:5]}", "slice={[0:6], [0:4]}", "slice.1"),
    ),
    "a comparator": (
        *("after_fusion", "compare(%select, %select.1), direction=LT"),
        *("compare(%select, %select.1), direction=GT", "sort.0"),
    ),
    "the body of a loop": (
        *(
            "cpu_after_optimizations.txt",
            "%add.0 = f32[] add(",
            "%add.0 = f32[] subtract(",
            "add.0",
        ),
    ),
    "the condition of a loop": (
        *("cpu_after_optimizations.txt", "%lt.0 = pred[] compare(%param_0.18, %param_1.26), "),
        *("%lt.0 = pred[] compare(%param_1.26, %param_0.18), ", "lt.0"),
    ),
    "the init of a sum": (
        *("after_algsimp", "%constant.21 = f32[] constant(0)", "%constant.21 = f32[] constant(1)"),
        "constant.21",
    ),
}


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    """The example as it should be."""
    directory = tmp_path / "dump"
    directory.mkdir()
    for path in EXAMPLE.iterdir():
        text = path.read_text()
        is_folded = any(part in path.name for part in FOLDED)
        (directory / path.name).write_text(text.replace(WRONG, RIGHT) if is_folded else text)
    return directory


def the_file(directory: Path, part: str) -> Path:
    (path,) = (path for path in directory.iterdir() if part in path.name)
    return path


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def bisected(directory: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    status = main(["bisect", "--json", str(directory)])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["status"] == status
    return found


def checked(directory: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main(["check", "--json", str(directory)])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_nothing_changed(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(stages)]) == 0
    said = capsys.readouterr().out
    assert "the first" in said and said.rstrip().endswith("6 compared, none changed")
    assert main(["bisect", str(stages)]) == 0
    assert capsys.readouterr().out == "module_0000.jit_scores: 7 stages, nothing changed\n"
    rows = checked(stages, capsys)
    assert [row["verdict"] for row in rows] == ["first", *["equal"] * 2, "within", *["equal"] * 3]


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_the_culprit(what: str, stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part, old, new, name = CORRUPTIONS[what]
    path = the_file(stages, part)
    replaced(path, old, new)
    found = bisected(stages, capsys)
    assert (found["status"], found["after"]) == (1, str(path))
    assert found["instruction"]["name"] == name
    lines = path.read_text().splitlines()
    shown = found["instruction"]["after"]
    assert all(place["text"] in lines[place["line"] - 1] for place in shown)
    assert any(new in place["text"] for place in shown)


# The stage that is renamed is beside itself: what is named there where that is more exact.
NEARER = {"a constant": "constant.13"}


def disguised(text: str, fresh: bool) -> tuple[str, dict[str, str]]:
    """The program without metadata, all names changed: to new ones, or to those of others."""
    text = re.sub(r", metadata=\{[^}]*\}", "", text)
    head, body = text.split("\n", 1)
    body = body[body.index("\n%") :]
    names = list(dict.fromkeys(re.findall(r"%([\w.-]+)", body)))
    others = [f"v{n}" for n in range(len(names))] if fresh else [*names[3:], *names[:3]]
    by_name = dict(zip(names, reversed(others), strict=True))
    body = re.sub(r"%([\w.-]+)", lambda match: f"%{by_name[match[1]]}", body)
    return f"{head}\n{body}", by_name


@pytest.mark.parametrize("fresh", [True, False], ids=["new names", "names of others"])
@pytest.mark.parametrize("what", CORRUPTIONS)
def test_the_culprit_after_all_was_renamed(
    what: str, fresh: bool, stages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values that are equal bit for bit tell what is the same."""
    part, old, new, name = CORRUPTIONS[what]
    path = the_file(stages, part)
    before = tmp_path / "before.hlo"
    before.write_text(path.read_text())
    replaced(path, old, new)
    text, names = disguised(path.read_text(), fresh)
    after = tmp_path / "after.hlo"
    after.write_text(text)
    assert main(["bisect", "--json", str(before), str(after)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["instruction"]["name"] == names[NEARER.get(what, name)]


def test_a_bug_that_stays(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by halves; the pass and where in the source it comes from."""
    found = bisected(EXAMPLE, capsys)
    assert found["pass"] == "transpose-folding"
    assert found["pipeline"] == "HLO_passes_through_layout_assignment"
    assert found["instruction"]["name"] == "dot_general.1"
    assert [place["text"].split(" = ")[0] for place in found["instruction"]["before"]] == [
        *("%transpose.1", "%dot_general.1")
    ]
    assert found["source"] == "jit(scores)/dot_general at scores.py:6"
    verdicts = [row["verdict"] for row in checked(EXAMPLE, capsys)]
    assert verdicts.count("changed") == 1 and verdicts[4] == "changed"
    assert main(["check", str(EXAMPLE)]) == 1
    assert "CHANGED by transpose-folding" in capsys.readouterr().out


def test_files_in_any_order_or_of_any_names(
    stages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in sorted(stages.iterdir())]
    assert main(["bisect", *reversed(files)]) == 0
    assert "7 stages" in capsys.readouterr().out
    ours = [tmp_path / name for name in ("b.hlo", "a.hlo")]
    ours[0].write_text(the_file(EXAMPLE, "algsimp").read_text())
    ours[1].write_text(the_file(EXAMPLE, "transpose-folding").read_text())
    assert main(["bisect", *map(str, ours)]) == 1
    assert "what ran before a.hlo" in capsys.readouterr().out


def test_a_stage_that_is_no_program(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stage that is no program is named and left out; the others are compared."""
    path = the_file(stages, "call-inliner")
    path.write_bytes(b"\x00\x1b]0;title\x07" * 50)
    assert main(["check", str(stages)]) == 2
    said = capsys.readouterr().out
    assert "5 compared, 1 not checked, none changed" in said
    assert "\x1b" not in said and "\x07" not in said
    assert main(["bisect", str(stages)]) == 2
    said = capsys.readouterr().out
    assert f"not checked: {path.name}" in said and "\x1b" not in said


def test_a_stage_that_cannot_be_evaluated(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = the_file(stages, "algsimp")
    replaced(path, "broadcast(%constant.4), dimensions={}", "constant({...})")
    found = bisected(stages, capsys)
    assert found["status"] == 2
    assert "--xla_dump_large_constants" in found["not_checked"][str(path)]


def test_a_loop_without_end(
    stages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bisect_dump.shared_values.FUEL", 20_000)
    path = the_file(stages, "algsimp")
    replaced(path, "compare(%get-tuple-element.6, %constant.11), direction=LT", "constant(true)")
    assert "used up its fuel" in bisected(stages, capsys)["not_checked"][str(path)]


def test_other_arrays_are_not_compared(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stages of other shapes, as after SPMD partitioning, are said not to be compared."""
    for name, size in (("0007.spmd.after_spmd-partitioning", 3), ("0008.p.after_x", 3)):
        path = stages / f"module_0001.f.{name}.txt"
        path.write_text(f"HloModule f\nENTRY e {{ ROOT x = f32[{size}] parameter(0) }}\n")
    first = stages / "module_0001.f.before_optimizations.txt"
    first.write_text("HloModule f\nENTRY e { ROOT x = f32[6] parameter(0) }\n")
    assert main(["check", str(stages)]) == 0
    said = capsys.readouterr().out
    assert "from (f32[6]) -> (f32[6])" in said and "to (f32[3]) -> (f32[3])" in said
    assert main(["bisect", str(stages)]) == 0
    assert "not compared: 0007 spmd: spmd-partitioning" in capsys.readouterr().out


def test_tuples_may_hold_the_arguments(tmp_path: Path) -> None:
    """Parameters and results in other tuples are the same arrays."""
    texts = (
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] parameter(1)\n"
        "  ROOT r = (f32[3], f32[2]) tuple(y, x)\n}\n",
        "HloModule m\nENTRY e {\n  p = (f32[2], f32[3]) parameter(0)\n"
        "  x = f32[2] get-tuple-element(p), index=0\n  y = f32[3] get-tuple-element(p), index=1\n"
        "  i = (f32[2]) tuple(x)\n  ROOT r = (f32[3], (f32[2])) tuple(y, i)\n}\n",
    )
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.hlo").write_text(text)
    assert main(["bisect", *map(str, sorted(tmp_path.iterdir()))]) == 0


def test_ranks_are_compared_bit_by_bit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Envelopes are of one rank."""
    text = (
        "HloModule m, num_partitions=2\nadd { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT s = f32[] add(a, b) }\nENTRY e { x = f32[4] parameter(0)\n"
        " y = f32[4] SCALED\n ROOT r = f32[4] all-reduce(y), replica_groups={{0,1}},"
        " channel_id=1, use_global_device_ids=true, to_apply=add }\n"
    )
    for number, scaled in enumerate(("copy(x)", "negate(x)")):
        (tmp_path / f"{number}.hlo").write_text(text.replace("SCALED", scaled))
    files = sorted(map(str, tmp_path.iterdir()))
    assert main(["bisect", files[0], files[0]]) == 0
    assert main(["bisect", *files]) == 0
    assert "nothing is proven, suspect" in capsys.readouterr().out


def test_one_stage_is_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "module_0000.f.before_optimizations.txt"
    path.write_text("HloModule f\nENTRY e { ROOT x = f32[2] parameter(0) }\n")
    assert main(["bisect", str(tmp_path)]) == 2
    assert "--xla_dump_hlo_pass_re" in capsys.readouterr().err


def test_hostile_names(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "HloModule f\nENTRY e { ROOT x = f32[2] parameter(0) }\n"
    name = "module_0000.\x1b[31m\n\u202e[red].before_optimizations.txt"
    (stages / name).write_text(text)
    (stages / name.replace("before", "after")).write_text(text.replace("f32[2]", "\x1b[2J"))
    (stages / "module_0000.link.before_optimizations.txt").symlink_to(stages / "nowhere")
    (stages / "module_0000.loop.before_optimizations.txt").symlink_to(stages)
    os.mkfifo(stages / "module_0000.pipe.before_optimizations.txt")
    assert main(["check", str(stages)]) == 2
    assert main(["bisect", str(stages)]) == 2
    said = capsys.readouterr()
    assert all(char.isprintable() or char == "\n" for char in said.out + said.err)
    assert "[red]" in said.out


def test_a_dump_is_not_compiled(stages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--same", str(stages)]) == 2
    assert "--same is for programs" in capsys.readouterr().err


COMPILE = """
import sys
import jax, jax.extend.backend
from jaxlib import xla_client
from fuzz.peers.jaxlib_modules import compiled, of_hlo, of_mlir
client = jax.extend.backend.get_backend("cpu")
devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
module = of_hlo().hlo_module_from_text(sys.stdin.read())
computation = of_hlo().XlaComputation(module.as_serialized_hlo_module_proto())
program = of_mlir().mlir.xla_computation_to_mlir_module(computation)
compiled(client, program, devices, xla_client.CompileOptions())
"""


def test_a_dump_of_jaxlib(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("jaxlib") is None:
        pytest.skip("no jaxlib")
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    text = the_file(EXAMPLE, "before_optimizations").read_text()
    command = [sys.executable, "-c", COMPILE]
    subprocess.run(command, input=text, text=True, check=True, capture_output=True, env=environment)
    found = bisected(tmp_path, capsys)
    assert (found["status"], found["not_checked"], found["not_compared"]) == (0, {}, {})
    assert found["stages"] > 20
    path = max(tmp_path.glob("*.after_algsimp.*"))
    line = next(line for line in path.read_text().splitlines() if " exponential(" in line)
    replaced(path, line, line.replace(" exponential(", " tanh("))
    found = bisected(tmp_path, capsys)
    assert (found["pass"], found["after"]) == ("algsimp", str(path))
    assert found["instruction"]["after"][-1]["text"] in line.replace(" exponential(", " tanh(")


def test_what_is_started_and_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values of a chain are put into the earlier stage without breaking it."""
    text = """HloModule m
ENTRY e {
  x = f32[] parameter(0)
  i = f32[] parameter(1)
  w = f32[] subtract(x, i)
  start = (f32[], f32[], u32[]) copy-start(w)
  done = f32[] copy-done(start)
  ROOT r = (f32[], f32[]) tuple(done, i)
}
"""
    (tmp_path / "0.hlo").write_text(text)
    (tmp_path / "1.hlo").write_text(text.replace("copy-start(w)", "copy-start(x)"))
    assert main(["bisect", *map(str, sorted(tmp_path.iterdir()))]) == 1
    said = capsys.readouterr().out
    assert "first different value: %done" in said and "copy-start(w)" in said


def test_directories_among_the_files_of_a_dump(
    stages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stages / "module_0000.jit_scores").mkdir()
    assert main(["bisect", *map(str, sorted(stages.iterdir()))]) == 0
    assert "7 stages" in capsys.readouterr().out


OTHER = """HloModule other
ENTRY e {
  only = f32[3] parameter(0)
  ROOT r = f32[3] negate(only)
}
"""


@pytest.mark.parametrize("command", ["check", "bisect"])
def test_a_module_that_arguments_do_not_fit_is_one_line(
    command: str, stages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for label in ("before_optimizations", "0001.p.after_a.before_b", "cpu_after_optimizations"):
        (stages / f"module_9999.other.{label}.txt").write_text(OTHER)
    arguments = tmp_path / "one.npz"
    np.savez(arguments, only=np.ones(3, np.float32))
    assert main([command, str(stages), "--args", str(arguments)]) == 2
    first, *others = capsys.readouterr().out.splitlines()
    assert re.match(r"module_\S+: 7 stages, not checked: \S+one\.npz: .* missing", first)
    assert others[0].startswith("module_9999.other: 3 stages") and "missing" not in str(others)


def test_faults_of_one_reason_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of three stages take another array, which is not there."""
    first, *others = (
        tmp_path / f"module_0001.other.{label}.txt"
        for label in ("before_optimizations", "0001.p.after_a.before_b", "cpu_after_optimizations")
    )
    first.write_text(OTHER)
    for path in others:
        path.write_text(OTHER.replace("only", "another").replace("f32[3]", "f32[4]"))
    arguments = tmp_path / "one.npz"
    np.savez(arguments, only=np.ones(3, np.float32))
    for command, told in (("bisect", f"{others[0].name} and 1 more"), ("check", "2 not checked")):
        assert main([command, str(tmp_path), "--args", str(arguments)]) == 2
        said = capsys.readouterr().out
        assert told in said and said.count("another is missing") == 1
