"""Write the files of a report.

No text of the program reaches Python code or a file name: ``reproduce.py`` is the same in every
report and reads the other files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import hlo
from fuzz.judge.failure import Failure
from fuzz.report import machine
from fuzz.report.evidence import elements
from fuzz.report.issue import issue
from fuzz.report.report import Report
from hlo import archive
from hlo.types import leaves
from hlo.values import Array, arrays_of
from interp.envelope.verdict import KINDS

_SCRIPT = Path(__file__).with_name("reproduce.txt")


def write(report: Report, directory: Path) -> Path:
    """Write the folder, and beside it the same as .zip, whose path is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    versions = machine.versions()
    texts = {
        "reduced.hlo": hlo.format(report.module),
        "facts.json": json.dumps(_facts(report, versions), indent=1) + "\n",
        "issue.md": issue(report, versions),
    }
    if report.judged.command is None:
        texts["reproduce.py"] = _SCRIPT.read_text()
    for name, text in texts.items():
        (directory / name).write_text(text)
    (directory / "original.hlo").write_bytes(report.original)
    _save(directory / "arguments.npz", archive.numbered(tuple(report.arrays)))
    _save(directory / "original_arguments.npz", archive.numbered(tuple(report.original_arrays)))
    _save(directory / "expected.npz", _expected(report.judged.failure).items())
    whole = directory.resolve()
    shutil.make_archive(str(whole), "zip", whole.parent, whole.name)
    return directory.parent / f"{whole.name}.zip" if directory.name else Path(f"{whole}.zip")


def _save(path: Path, arrays: Iterable[tuple[str, Array]]) -> None:
    archive.write(path, arrays, is_compressed=True)


def _expected(failure: Failure) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    outputs = failure.found.outputs if failure.found is not None else ()
    for n, output in enumerate(outputs):
        legal = output.legal
        parts = (output.exact, legal.low, legal.high, legal.nan, output.actual)
        for name, part in zip(("exact", "low", "high", "nan", "actual"), parts, strict=True):
            arrays[f"{name}{n}"] = np.array(part, order="C")
    return arrays


def _facts(report: Report, versions: Mapping[str, str]) -> dict[str, Any]:
    failure, found = report.judged.failure, report.judged.failure.found
    outputs = found.outputs if found is not None else ()
    shape = report.module.entry.root_instruction.shape
    return {
        "kind": failure.kind,
        "signs": sorted(failure.signs),
        "crash": failure.crash,
        "mismatch": found.mismatch if found is not None else None,
        "verdicts": [{k: output.verdict.counts[k] for k in KINDS} for output in outputs],
        "wrong": [
            {"element": e.place, "actual": e.actual, "expected": e.exact, "legal": e.legal}
            for e in (elements(found) if found is not None else ())
        ],
        "arguments": [str(array.dtype) for array in arrays_of(report.arrays)],
        "outputs": len(leaves(shape)),
        "results": [
            [str(leaf.element_type.numpy), list(leaf.dims)]
            for leaf in leaves(shape)
            if leaf.element_type.is_array
        ],
        "seed": report.seed,
        "seconds": report.seconds,
        "versions": dict(versions),
        "processor": machine.processor(),
        "XLA_FLAGS": machine.xla_flags(),
    }
