"""``hlo check DIR`` and ``hlo bisect DIR``: stages as protos, and as files of every other form."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

import bisect_dump
import hlo_oracle as ho
from fuzz.peers.jaxlib_modules import of_hlo
from hlo_oracle.command.main import main
from hlo_oracle.loading.programs import read_program
from hlo_oracle.loading.wire_format import fields, message, messages

pytest.importorskip("jaxlib")

EXAMPLE = ROOT / "examples" / "dump"  # transpose-folding lost the transpose
ELIDED = """HloModule m
ENTRY e { w = f32[12] constant({...})
          x = f32[12] parameter(0)
          ROOT y = f32[12] add(w, x) }
"""
WHOLE = ELIDED.replace("...", ", ".join(map(str, range(12))))


def proto(text: str) -> bytes:
    """Return the HloProto of a text, as XLA dumps it: the HloModuleProto in its first field."""
    module = of_hlo().hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return message([(1, module)])


@pytest.fixture
def protos(tmp_path: Path) -> Path:
    """The example with its stages as protos alone, some of them compressed."""
    (module,) = bisect_dump.modules(EXAMPLE)
    for number, path in enumerate(stage.path for stage in module.stages):
        data = proto(path.read_text())
        name, packed = path.name.removesuffix(".txt"), number % 2
        file = tmp_path / f"{name}.hlo.pb{'.gz' * packed}"
        file.write_bytes(gzip.compress(data) if packed else data)
    return tmp_path


def test_a_dump_of_protos_is_judged_as_one_of_texts(
    protos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for directory in (EXAMPLE, protos):
        assert main(["check", "--json", str(directory)]) == 1
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        told.append([(row["stage"], row["verdict"], row["elements"]) for row in rows])
        assert main(["bisect", "--json", str(directory)]) == 1
        found = json.loads(capsys.readouterr().out)
        told.append([found["pass"], found["instruction"]["evidence"]])
    assert told[:2] == told[2:]
    assert main(["verify", str(protos)]) == 0
    assert capsys.readouterr().out == "7 programs: 7 valid\n"
    assert main(["bisect", str(protos), "--html", str(protos / "pages")]) == 1
    assert "transpose-folding" in (protos / "pages" / "module_0000.jit_scores.html").read_text()


def test_a_proto_that_is_damaged_is_a_fault(
    protos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = protos.glob("*after_call-inliner*")
    file.write_bytes(b"\x08\x01\xff")
    assert main(["check", str(protos)]) == 1  # the other stages are compared
    out = capsys.readouterr().out
    assert "1 not checked" in out and "neither text nor a proto" in out


def test_constants_that_the_text_leaves_out_are_those_of_the_proto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("before_optimizations", "cpu_after_optimizations"):
        (tmp_path / f"module_0000.m.{part}.txt").write_text(ELIDED)
    assert main(["check", str(tmp_path)]) == 2
    assert "left out of the text" in capsys.readouterr().out
    for part in ("before_optimizations", "cpu_after_optimizations"):
        (tmp_path / f"module_0000.m.{part}.hlo.pb").write_bytes(proto(WHOLE))
    assert main(["check", str(tmp_path)]) == 0
    assert "1 the same program as the one before" in capsys.readouterr().out
    assert (
        ho.load(tmp_path)
        == read_program(tmp_path / "module_0000.m.before_optimizations.hlo.pb").module
    )


WRONG = WHOLE.replace("add(w, x)", "subtract(w, x)")
FORMS: dict[str, Callable[[str], bytes]] = {
    "p.hlo": str.encode, "p.pb": proto, "p.hlo.gz": lambda text: gzip.compress(text.encode()),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("is_first", [True, False])
def test_any_two_files_and_standard_input_are_stages(
    name: str,
    is_first: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(FORMS[name](WHOLE))
    paths = ["-", name] if is_first else [name, "-"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FORMS[name](WRONG))))
    assert main(["bisect", *paths, "--json", "--html", "pages"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["before"], found["after"], found["instruction"]["name"]) == (*paths, "y")
    (page,) = Path("pages").iterdir()
    assert "subtract" in page.read_text() and "add" in page.read_text()


def test_a_single_stage_of_standard_input_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(WHOLE))
    assert main(["bisect", "-"]) == 2
    said = "hlo: standard input is a single stage: give another before or after the -\n"
    assert capsys.readouterr().err == said


RECORDED = Path(__file__).parent / "loading" / "snapshot.pb"  # of a run on XLA:CPU


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """A run as ``--xla_dump_hlo_snapshots`` and ``--xla_dump_hlo_unoptimized_snapshots`` write
    it."""
    snapshot = RECORDED.read_bytes()
    (tmp_path / "module_0003.jit_f.snapshot.-42.pb").write_bytes(snapshot)
    (module,) = messages(messages(snapshot, 1)[0], 1)
    partition = message([(1, argument) for argument in messages(snapshot, 2)])
    name = "module_0003.jit_f.execution_0000.hlo_unoptimized_snapshot.pb"
    (tmp_path / name).write_bytes(message([(1, module), (2, partition)]))
    (tmp_path / "module_0003.jit_f.debug_options").write_bytes(b"a: 1")
    return tmp_path


def test_snapshots_in_a_dump_are_programs(
    snapshots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--no-c", "--json", str(snapshots)]) == 0
    unoptimized, run = map(json.loads, capsys.readouterr().out.splitlines())
    assert run["verdicts"] == {"equal": 22, "within": 0, "outside": 0, "undetermined": 0}
    assert unoptimized["verdicts"] is None and len(unoptimized["outputs"]) == 6
    assert main(["verify", str(snapshots)]) == 0
    assert capsys.readouterr().out == "2 programs: 2 valid\n"
    assert main(["bisect", str(snapshots)]) == 2
    assert "snapshots of runs, which are programs" in capsys.readouterr().err
    (snapshots / "module_0003.jit_f.before_optimizations.txt").write_text(WHOLE)
    assert main(["check", "--no-c", str(snapshots)]) == 0
    out = capsys.readouterr().out
    assert "module_0003.jit_f: 1 stage\n" in out and "22 equal" in out
    assert main(["check", "--against", "true", str(snapshots)]) == 2
    assert "is a dump of stages" in capsys.readouterr().err


def test_an_unoptimized_snapshot_has_its_arguments(snapshots: Path) -> None:
    (file,) = snapshots.glob("*unoptimized*")
    program, recorded = read_program(file), read_program(RECORDED)
    assert program.arguments is not None and program.results is None
    assert str(program.arguments) == str(recorded.arguments)
    # Those of several partitions are not the arguments of one.
    found = fields(file.read_bytes())
    several = message([(1, *found[1]), (2, *found[2]), (2, *found[2])])
    file.write_bytes(several)
    assert read_program(file).arguments is None
