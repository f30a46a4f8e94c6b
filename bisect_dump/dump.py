"""Find the stages of each module among the files that ``--xla_dump_to`` writes.

With ``--xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*`` a directory holds, among other files,

    module_0008.NAME.before_optimizations.txt
    module_0008.NAME.0007.PIPELINE.after_PASS.before_NEXT.txt     for each pass that changed it
    module_0008.NAME.cpu_after_optimizations.txt                  or sm_8.0_gpu_after_…

where NAME is left out if it is very long, and a time stamp may come first. Source: XLA's
``dump.cc`` (FilenameFor, DumpHloModuleBetweenPassesIfEnabled). Names are untrusted input.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hlo.errors import Error
from hlo.text.patterns import pattern

# File names have at most 255 bytes. NAME may look like a stage itself: what counts is the end.
_MODULE = r"(?P<module>(?:\d++\.)?+module_\d++(?:\..*)?)"
_BETWEEN = pattern(
    rf"{_MODULE}\.(?P<number>\d{{4,}}+)\.(?P<pipeline>[^.]*+)"
    r"\.after_(?P<after>[^.]*+)(?:\.before_[^.]*+)?+\.txt",
    re.ASCII | re.DOTALL,
)
_FIRST = pattern(rf"{_MODULE}\.before_optimizations\.txt", re.ASCII | re.DOTALL)
_LAST = pattern(
    r"(?P<module>(?:\d++\.)?+module_\d++(?:\..*?)??)"
    r"\.(?P<label>(?:sm_\d++\.)?+[^.]*+)(?<=after_optimizations)\.txt",
    re.ASCII | re.DOTALL,
)
_OF_A_DUMP = pattern(r"(?:\d++\.)?+module_\d{4,}+\.[^.]++\.", re.ASCII)
_START = "pipeline-start"  # in the place of a pass: nothing has run in this pipeline yet


@dataclass(frozen=True, slots=True)
class Stage:
    """Hold one file of a dump, a module between two passes. ``after`` is the pass that produced it,
    "" if the file's name does not tell."""

    path: Path
    label: str
    pipeline: str = ""
    after: str = ""

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
    """Return whether a directory was written by ``--xla_dump_to``, judging by file names."""
    return any(_OF_A_DUMP.match(path.name) for path in directory.iterdir())


def modules(directory: Path) -> list[Dumped]:
    """Return the modules of a dump by name; raise Error if none has a stage as text."""
    files = [path for path in directory.iterdir() if path.is_file()]
    found = grouped(files)
    if not found:
        raise Error(f"{directory}: {_why_nothing([path.name for path in files])}")
    return found


def grouped(files: Iterable[Path]) -> list[Dumped]:
    """Group files into modules by their names; files that are no stage are left out."""
    stages: dict[tuple[Path, str], list[tuple[tuple[int, int], Stage]]] = defaultdict(list)
    for path in files:
        known = _stage(path)
        if known is not None:
            module, order, stage = known
            stages[path.parent, module].append((order, stage))
    return [
        Dumped(module, tuple(stage for _, stage in sorted(each, key=_order)))
        for (_, module), each in sorted(stages.items())
    ]


def in_order(files: Iterable[Path]) -> Dumped:
    """Return files with any names, in this order, as the stages of one module."""
    stages = tuple(Stage(path, path.name) for path in files)
    return Dumped(stages[0].path.name, stages)


def _order(found: tuple[tuple[int, int], Stage]) -> tuple[tuple[int, int], str]:
    return found[0], found[1].path.name


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
    ends: Iterator[str] = (end for end in (".pb", ".pb.gz", ".pbtxt", ".dot", ".html", ".url"))
    if not names:
        return f"an empty directory; write a dump with {flags}"
    for end in ends:
        if any(name.endswith(end) for name in names):
            return f"a dump with *{end} and without text: write it again with {flags}"
    return f"no module of a dump is here as text: write it with {flags}"
