"""The names of XLA's dumps, and directories that are none."""

import re
from functools import partial
from pathlib import Path

import pytest
from conftest import ROOT
from cost import cost

from bisect_dump import dump
from hlo.errors import Error
from hlo_oracle.command.main import main
from hlo_oracle.program_paths import is_program
from hlo_oracle.terminal import one_line, printable

PAGE = (ROOT / "docs" / "dumps.md").read_text()
NAMES = {
    "module_0008.jit_f.before_optimizations.txt": ("module_0008.jit_f", "before_optimizations", ""),
    "module_0008.jit_f.0007.simplification.after_algsimp.before_dce.txt": (
        *("module_0008.jit_f", "0007 simplification: algsimp", "algsimp"),
    ),
    "module_0008.jit_f.0000.fusion.after_pipeline-start.before_fusion.txt": (
        *("module_0008.jit_f", "0000 fusion: pipeline-start", ""),
    ),
    "module_0008.jit_f.0034.copy-insertion.after_removing_unnecessary_copies.txt": (
        *(
            "module_0008.jit_f",
            "0034 copy-insertion: removing_unnecessary_copies",
        ),
        "removing_unnecessary_copies",
    ),
    "module_0008.jit_f.cpu_after_optimizations.txt": (
        *("module_0008.jit_f", "cpu_after_optimizations", ""),
    ),
    "module_0008.jit_f.sm_8.0_gpu_after_optimizations.txt": (
        *("module_0008.jit_f", "sm_8.0_gpu_after_optimizations", ""),
    ),
    "module_0008.sm_9.0a_gpu_after_optimizations.txt": (
        *("module_0008", "sm_9.0a_gpu_after_optimizations", ""),
    ),
    # XLA leaves out a very long name, and puts the time in front if asked to.
    "module_0008.0001.spmd.after_x.before_y.txt": ("module_0008", "0001 spmd: x", "x"),
    "1795276113520915.module_0000.f.before_optimizations.txt": (
        *("1795276113520915.module_0000.f", "before_optimizations", ""),
    ),
    # Protos, and those that --xla_dump_compress_protos compresses.
    "module_0008.jit_f.before_optimizations.hlo.pb": (
        *("module_0008.jit_f", "before_optimizations", ""),
    ),
    "module_0008.jit_f.0007.simplification.after_algsimp.before_dce.hlo.pb": (
        *("module_0008.jit_f", "0007 simplification: algsimp", "algsimp"),
    ),
    "module_0008.jit_f.sm_8.0_gpu_after_optimizations.hlo.pb.gz": (
        *("module_0008.jit_f", "sm_8.0_gpu_after_optimizations", ""),
    ),
    # A function may have the name of a stage.
    "module_1.a.0003.p.after_x.before_y.0004.q.after_z.txt": (
        *("module_1.a.0003.p.after_x.before_y", "0004 q: z", "z"),
    ),
}
OTHERS = [
    "module_0000.jit_f.cpu_after_optimizations-buffer-assignment.txt",
    "module_0000.jit_f.cpu_after_optimizations-memory-usage-report.txt",
    "module_0000.jit_f.0001.p.after_x.before_y.txt.bak",
    "module_0000.jit_f.ir-with-opt.ll",
    "module_0000.jit_f.before_optimizations.hlo.pb.txt",
    "module_0000.jit_f.cpu_after_optimizations.memory-usage-report.hlo.pb",
    "module_0000.jit_f.debug_options",
    "module_0000.jit_f.thunk_sequence.txt",
    "attention.before_optimizations.txt",
    "module_.before_optimizations.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_stages(name: str) -> None:
    (module,) = dump.grouped([Path(name)])
    (stage,) = module.stages
    assert (module.name, stage.label, stage.after) == NAMES[name]


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_left_out(name: str) -> None:
    assert dump.grouped([Path(name)]) == []


def test_the_order_of_stages() -> None:
    names = [f"module_0000.f.{n:04}.p.after_x{n}.txt" for n in (12000, 3, 20)]
    names += ["module_0000.f.cpu_after_optimizations.txt", "module_0000.f.before_optimizations.txt"]
    names += ["module_0001.g.before_optimizations.txt"]
    first, second = dump.grouped(map(Path, names))
    labels = [stage.label.split()[0] for stage in first.stages]
    middle = ["0003", "0020", "12000"]
    assert labels == ["before_optimizations", *middle, "cpu_after_optimizations"]
    assert second.name == "module_0001.g"


def test_text_and_proto_of_a_stage_are_one() -> None:
    """The text is read, and the proto is known."""
    ends = (".txt", ".hlo.pb.gz", ".hlo.pb")
    files = [Path(f"module_0000.f.{part}{end}") for part in ("before_optimizations",
             "0001.p.after_x", "cpu_after_optimizations") for end in ends]  # fmt: skip
    (module,) = dump.grouped(files)
    assert [stage.path for stage in module.stages] == files[::3]
    assert [stage.proto for stage in module.stages] == files[2::3]
    (protos,) = dump.grouped(path for path in files if path.suffix != ".txt")
    assert [stage.path for stage in protos.stages] == files[2::3]
    (texts,) = dump.grouped(files[::3])
    assert [stage.proto for stage in texts.stages] == [None] * 3


REPORTS = [
    "module_0000.jit_f.cpu_after_optimizations-buffer-assignment.txt",
    "module_0000.jit_f.cpu_after_optimizations-buffer-assignment-values.txt",
    "module_0000.jit_f.cpu_after_optimizations-live-range.txt",
    "module_0000.jit_f.cpu_after_optimizations-memory-usage-report.pb.gz",
    "module_0000.jit_f.thunk_sequence.txt",
    "module_0000.jit_f/compile_options.pb",
    "module_0000.jit_f/topology.pb",
]


def test_reports_are_no_programs() -> None:
    assert all(dump.is_report(Path(name)) for name in REPORTS)
    assert not any(is_program(Path(name)) for name in REPORTS)
    others = (*NAMES, "buffer-assignment.txt", "module_0000.f.snapshot.7.pb")
    assert not any(dump.is_report(Path(name)) for name in others)


def test_programs_named_as_modules_are_no_dump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule m\nENTRY e { ROOT x = s32[] constant(7) }"
    (tmp_path / "module_0001.jit_f.hlo").write_text(text)
    assert main(["check", "--no-c", str(tmp_path)]) == 0
    assert "1 output" in capsys.readouterr().out


def test_snapshots_are_told_from_stages(tmp_path: Path) -> None:
    names = [
        "module_0000.f.execution_0012.hlo_snapshot.pb",
        "module_0000.f.execution_0012.hlo_unoptimized_snapshot.pb.gz",
        "module_0000.f.snapshot.-501283990.pb",
    ]
    for name in (*names, "module_0000.f.snapshot.x.pb", "module_0000.f.debug_options"):
        (tmp_path / name).write_bytes(b"")
    assert dump.contents(tmp_path) == ([], [tmp_path / name for name in names])


def test_patterns_take_linear_time() -> None:
    """Names are input: each pattern meets its worst case."""
    for part in (
        ".0000.p.after_",
        ".cpu_after_optimizations-",
        ".snapshot.0",
        ".execution_0",
        ".hlo.pb",
        ".before_optimizations",
        ".sm_8.0",
        "0",
        ".",
    ):
        path = Path(f"module_0{part * 20000}")
        assert dump.grouped([path]) == []
        assert cost(partial(dump.grouped, [path]), 300) < 300


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["module_0000.f.before_optimizations.dot"], "a dump with *.dot alone"),
        (["module_0000.f.debug_options", "module_0000.f.ir.ll"], "no stage of a module is here"),
        ([], "an empty directory"),
    ],
)
def test_a_dump_without_stages(names: list[str], said: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"\x08\x01")
    with pytest.raises(Error, match="--xla_dump_hlo_as_text") as raised:
        dump.modules(tmp_path)
    assert said in str(raised.value)
    assert main(["bisect", str(tmp_path)]) == 2


def test_what_a_terminal_would_obey_is_escaped() -> None:
    assert printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\nb\\u202e"
    assert one_line("a\nb\udcff") == "a\\nb\\udcff"


def without_times(text: str) -> str:
    return re.sub(r" +[0-9]+ ms", " #", text)


def test_the_page_is_true(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands print what it says."""
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for part in re.split(r"^\$ hlo ", block, flags=re.MULTILINE)[1:]:
        command, expected = part.split("\n", 1)
        assert main(command.split()) == 1
        assert without_times(capsys.readouterr().out.rstrip()) == without_times(expected.rstrip())
