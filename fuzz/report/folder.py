"""Write the files of a report.

No text of the program reaches Python code or a file name: ``reproduce.py`` is the same in every
report and reads the other files.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hlo
import interp
from fuzz.report import machine
from fuzz.report.evidence import elements
from fuzz.report.issue import TAKEN, issue
from fuzz.report.report import Report
from hlo import archive
from hlo.io_errors import of_file, write_text
from hlo.types import ArrayShape, leaves
from hlo.values import Array, arrays_of
from interp.envelope.verdict import KINDS

_SCRIPT = Path(__file__).with_name("reproduce.txt")


def write(report: Report, directory: Path) -> Path:
    """Write the folder of a report, and a .zip of what was written beside it; return the path of
    the .zip."""
    directory.mkdir(parents=True, exist_ok=True)
    versions, exact = machine.versions(), _exact(report)
    texts = {
        "reduced.hlo": hlo.format(report.module),
        "facts.json": json.dumps(_facts(report, exact, versions), indent=1) + "\n",
        "issue.md": issue(report, versions),
    }
    if report.judged.failure.taken is not None:
        texts[TAKEN] = hlo.format(report.judged.failure.taken)
    script, kept = _SCRIPT.read_text("utf-8"), directory / "reproduce.py"
    if report.judged.command is None:
        texts[kept.name] = script
    elif kept.exists() and kept.read_bytes().startswith(script.partition("\n")[0].encode()):
        kept.unlink()  # of another report: this is of no failure of XLA
    for name, text in texts.items():
        write_text(directory / name, text)
    with of_file(directory / "original.hlo"):
        (directory / "original.hlo").write_bytes(report.original)
    saved = {
        "arguments.npz": archive.numbered(tuple(report.arrays)),
        "original_arguments.npz": archive.numbered(tuple(report.original_arrays)),
        "expected.npz": _expected(report, exact).items(),
    }
    for name, arrays in saved.items():
        archive.write(directory / name, arrays, is_compressed=True)
    return _packed(directory, (*texts, "original.hlo", *saved))


def _packed(directory: Path, names: Iterable[str]) -> Path:
    """Pack these files of a directory, and no others that are there; return the archive's path."""
    whole = directory.resolve()
    # The directory ``.`` has no name of its own: its archive is beside it all the same.
    path = (directory.parent if directory.name else whole.parent) / f"{whole.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.write(directory / name, f"{whole.name}/{name}")
    return path


def _exact(report: Report) -> tuple[Array, ...]:
    """Evaluate the program, if its results are judged; () for a crash."""
    if report.judged.failure.found is None:
        return ()
    # Not the judged outputs: there are none where the compiler's have other types or sizes.
    return tuple(arrays_of(interp.evaluate(report.module, *report.arrays, seed=report.seed)))


def _expected(report: Report, exact: Iterable[Array]) -> dict[str, Array]:
    """Return the exact arrays, and, for results of the right types and sizes, the legal bounds."""
    arrays = {f"exact{n}": np.array(array, order="C") for n, array in enumerate(exact)}
    found = report.judged.failure.found
    for n, output in enumerate(found.outputs if found is not None else ()):
        legal = output.legal
        parts = (legal.low, legal.high, legal.nan, output.actual)
        for name, part in zip(("low", "high", "nan", "actual"), parts, strict=True):
            arrays[f"{name}{n}"] = np.array(part, order="C")
    return arrays


def _results(report: Report, exact: Sequence[Array]) -> dict[str, Any]:
    """Describe the arrays of the result by type and size, bounded ones also by their bounds, as a
    compiler may return arrays of that size. Sizes are the interpreter's; for a crash, the declared
    ones."""
    shapes = leaves(report.module.entry.root_instruction.shape)
    declared: list[ArrayShape] = [shape for shape in shapes if shape.element_type.is_array]
    dims = [list(array.shape) for array in exact] or [list(shape.dims) for shape in declared]
    types = [str(shape.element_type.numpy) for shape in declared]
    return {
        "outputs": len(shapes),
        "results": [list(pair) for pair in zip(types, dims, strict=True)],
        "bounds": [list(shape.dims) if shape.is_dynamic else None for shape in declared],
    }


def _facts(report: Report, exact: Sequence[Array], versions: Mapping[str, str]) -> dict[str, Any]:
    failure, found = report.judged.failure, report.judged.failure.found
    outputs = found.outputs if found is not None else ()
    return {
        "kind": failure.kind,
        "program": "reduced.hlo" if failure.taken is None else TAKEN,
        "signs": sorted(failure.signs),
        "crash": failure.crash,
        "mismatch": found.mismatch if found is not None else None,
        "verdicts": [{k: output.verdict.counts[k] for k in KINDS} for output in outputs],
        "wrong": [
            {"element": e.place, "actual": e.actual, "expected": e.exact, "legal": e.legal}
            for e in (elements(found) if found is not None else ())
        ],
        "steps": [*dict.fromkeys(step.why for step in found.wrong if step.why)] if found else [],
        "arguments": [str(array.dtype) for array in arrays_of(report.arrays)],
        **_results(report, exact),
        "seed": report.seed,
        "seconds": report.seconds,
        "versions": dict(versions),
        "processor": machine.processor(),
        "XLA_FLAGS": machine.xla_flags(),
    }
