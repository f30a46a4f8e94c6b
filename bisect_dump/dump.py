"""Find the stages of each module among the files that ``--xla_dump_to`` writes.

With ``--xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*`` a directory holds, among other files,

    module_0008.NAME.before_optimizations.txt
    module_0008.NAME.0007.PIPELINE.after_PASS.before_NEXT.txt     for each pass that changed it
    module_0008.NAME.cpu_after_optimizations.txt                  or sm_8.0_gpu_after_…

where NAME is left out if it is very long, and a time stamp may come first. With
``--xla_dump_hlo_as_proto`` the same names end in ``.hlo.pb``, or, with
``--xla_dump_compress_protos``, in ``.hlo.pb.gz``. ``--xla_dump_hlo_snapshots`` and
``--xla_dump_hlo_unoptimized_snapshots`` write what was run, with its arguments:

    module_0008.NAME.snapshot.NUMBER.pb                           and the results
    module_0008.NAME.execution_0000.hlo_unoptimized_snapshot.pb

Source: XLA's ``dump.cc`` (FilenameFor, DumpHloModuleImpl, DumpHloModuleBetweenPassesIfEnabled,
DumpHloSnapshotIfEnabled). Names are untrusted input.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hlo.errors import Error
from hlo.text.patterns import pattern

# File names have at most 255 bytes. NAME may look like a stage itself: what counts is the end.
_MODULE = r"(?P<module>(?:\d++\.)?+module_\d++(?:\..*)?)"
_FORM = r"(?:\.txt|\.hlo\.pb(?:\.gz)?+)"
_BETWEEN = pattern(
    rf"{_MODULE}\.(?P<number>\d{{4,}}+)\.(?P<pipeline>[^.]*+)"
    r"\.after_(?P<after>[^.]*+)(?:\.before_[^.]*+)?+" + _FORM,
    re.ASCII | re.DOTALL,
)
_FIRST = pattern(rf"{_MODULE}\.before_optimizations{_FORM}", re.ASCII | re.DOTALL)
_LAST = pattern(
    r"(?P<module>(?:\d++\.)?+module_\d++(?:\..*?)??)"
    r"\.(?P<label>(?:sm_\d++\.)?+[^.]*+)(?<=after_optimizations)" + _FORM,
    re.ASCII | re.DOTALL,
)
_SNAPSHOT = pattern(
    rf"{_MODULE}\.(?:snapshot\.-?\d++|execution_\d++\.hlo_(?:unoptimized_)?+snapshot)\.pb(?:\.gz)?+",
    re.ASCII | re.DOTALL,
)
_REPORT = pattern(rf"{_MODULE}\.(?P<label>[^.]*+)\.(?:txt|pb)(?:\.gz)?+", re.ASCII | re.DOTALL)
_OF_A_DUMP = pattern(r"(?:\d++\.)?+module_\d{4,}+\.[^.]++\.", re.ASCII)
_OPTIONS = ("compile_options.pb", "topology.pb")  # beside module.mlir, in a directory for each
_START = "pipeline-start"  # in the place of a pass: nothing has run in this pipeline yet


@dataclass(frozen=True, slots=True)
class Stage:
    """Hold one file of a dump, a module between two passes. ``after`` is the pass that produced it,
    "" if the file's name does not tell. ``proto`` is a file with the same module as a proto, which
    has the constants that the text at ``path`` may leave out."""

    path: Path
    label: str
    pipeline: str = ""
    after: str = ""
    proto: Path | None = None

    @property
    def maker(self) -> str:
        """Return the name of the pass that produced this stage, for messages."""
        if self.after:
            return f"{self.after} (of {self.pipeline})" if self.pipeline else self.after
        return f"what ran before {self.label}"


@dataclass(frozen=True, slots=True)
class Dumped:
    """Hold a module of a dump: its stages in the order of compilation."""

    name: str
    stages: tuple[Stage, ...]


def is_dump(directory: Path) -> bool:
    """Return whether a directory was written by ``--xla_dump_to``, judging by file names: XLA does
    not call programs ``.hlo`` or ``.mlir``."""
    names = (path.name for path in directory.iterdir() if path.suffix not in (".hlo", ".mlir"))
    return any(map(_OF_A_DUMP.match, names))


def is_report(path: Path) -> bool:
    """Return whether a file is XLA's report on a module: its memory, buffers, steps or options."""
    if path.name in _OPTIONS:
        return True
    match = _REPORT.fullmatch(path.name)
    label = "" if match is None else match["label"]
    return "after_optimizations-" in label or label == "thunk_sequence"


def modules(directory: Path) -> list[Dumped]:
    """Return the modules of a dump by name; raise Error if none has a stage."""
    found, snapshots = contents(directory)
    if not found:
        why = "no stages, but snapshots of runs, which are programs: give them as files"
        raise Error(f"{directory}: {why}, {snapshots[0].name}")
    return found


def contents(directory: Path) -> tuple[list[Dumped], list[Path]]:
    """Return the modules of a dump by name, and its snapshots of runs, which are programs with
    their arguments; raise Error if there is neither."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    found = grouped(files), [path for path in files if _SNAPSHOT.fullmatch(path.name)]
    if found == ([], []):
        raise Error(f"{directory}: {_why_nothing([path.name for path in files])}")
    return found


def grouped(files: Iterable[Path]) -> list[Dumped]:
    """Group files into modules by their names; files that are no stage are left out. Text and proto
    of a stage are one."""
    forms: dict[tuple[Path, str], dict[_Place, list[Stage]]] = defaultdict(dict)
    for path in files:
        known = _stage(path)
        if known is not None:
            module, order, stage = known
            forms[path.parent, module].setdefault((order, stage.label), []).append(stage)
    return [
        Dumped(module, tuple(_in_all_forms(each[place]) for place in sorted(each)))
        for (_, module), each in sorted(forms.items())
    ]


_Place = tuple[tuple[int, int], str]  # of a stage in its module: a sort key, and its label


def _in_all_forms(forms: Sequence[Stage]) -> Stage:
    """Return one stage of the files that hold it: the text, which is read sooner and has lines to
    show, with the proto beside it."""
    ordered = sorted(forms, key=lambda stage: (stage.path.suffix != ".txt", stage.path.name))
    protos = [stage.path for stage in ordered[1:] if stage.path.suffix != ".txt"]
    return replace(ordered[0], proto=protos[0]) if protos else ordered[0]


def in_order(files: Iterable[Path]) -> Dumped:
    """Return files with any names, in this order, as the stages of one module."""
    stages = tuple(Stage(path, path.name) for path in files)
    return Dumped(stages[0].path.name, stages)


def _stage(path: Path) -> tuple[str, tuple[int, int], Stage] | None:
    """Parse a file name: the module, a sort key among its stages, the stage; None for another
    file."""
    name = path.name
    if match := _FIRST.fullmatch(name):
        return match["module"], (0, 0), Stage(path, "before_optimizations")
    if match := _LAST.fullmatch(name):
        return match["module"], (2, 0), Stage(path, match["label"])
    if match := _BETWEEN.fullmatch(name):
        label = f"{match['number']} {match['pipeline']}: {match['after']}"
        after = "" if match["after"] == _START else match["after"]
        stage = Stage(path, label, match["pipeline"], after)
        return match["module"], (1, int(match["number"])), stage
    return None


def _why_nothing(names: list[str]) -> str:
    """Return why a directory has no stage, and which flags write them."""
    flags = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*'"
    if not names:
        return f"an empty directory; write a dump with {flags}"
    for end in (".pbtxt", ".dot", ".html", ".url"):
        if any(name.endswith(end) for name in names):
            return f"a dump with *{end} alone, of which none is read: write it again with {flags}"
    return f"no stage of a module is here, as text or proto: write them with {flags}"
