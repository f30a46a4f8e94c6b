"""Measure the speed of hlo.parse beside XLA's C++ parser (through jaxlib), in one run.

    python -m bench.parse [FILE…|DIR…] [--repetitions N] [--megabytes N] [--json]

Without files: those of examples/. From them a module of ``--megabytes`` is made by
repeating computations under new names. The parsers take turns, text by text, and of each text the
best of the repetitions counts. Seconds are of the processor: both parsers are one thread, and what
else runs on the machine counts less. Peak memory is that of a fresh process that reads the large
module.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import hlo
from hlo_oracle.program_paths import program_files

EXAMPLES = Path(__file__).parents[1] / "examples"
_DEFINITION = re.compile(r"^(?:ENTRY )?%?[\w.\-]+ (?:\(.*\) -> .* )?\{$", re.M)
# Where a computation is named: each match ends with its name.
_CALLS = "to_apply|calls|body|condition|true_computation|false_computation|select|scatter"
_NAMED = re.compile(rf"^%?[\w.\-]+(?= (?:\(.*\) -> .* )?\{{$)|(?<=, )(?:{_CALLS})=%?[\w.\-]+", re.M)
Parser = Callable[[str], object]


def parsers() -> dict[str, Parser]:
    """Return the parsers: this project's, and jaxlib's if it is installed."""
    found: dict[str, Parser] = {"hlo.parse": hlo.parse}
    if find_spec("jaxlib") is not None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it warns of file tables
        found["jaxlib"] = import_module("jaxlib._hlo").hlo_module_from_text
    return found


def repeated(texts: Iterable[str], size: int) -> str:
    """Make a module of about ``size`` characters by repeating the computations of texts under new
    names; the last one is the entry."""
    blocks = []
    for text in texts:
        start = _DEFINITION.search(text)
        if start is not None and "_computations={" not in text:
            body = text[start.start() :].replace("\nENTRY ", "\n").removeprefix("ENTRY ")
            ends = [0, *(match.end() for match in _NAMED.finditer(body)), len(body)]
            blocks.append([body[one:two] for one, two in pairwise(ends)])
    pieces, total, number = ["HloModule repeated\n\n"], 0, 0
    while blocks and total < size:
        piece = f".r{number}".join(blocks[number % len(blocks)]).strip() + "\n\n"
        pieces.append(piece)
        total += len(piece)
        number += 1
    return "".join(pieces)


def seconds(found: dict[str, Parser], texts: Sequence[str], repetitions: int) -> dict[str, float]:
    """Sum over all texts the least processor time of each parser."""
    best = {name: [math.inf] * len(texts) for name in found}
    for _ in range(repetitions):
        for number, text in enumerate(texts):
            for name, parse in found.items():
                start = time.process_time()
                module = parse(text)
                taken = time.process_time() - start
                del module
                best[name][number] = min(best[name][number], taken)
    return {name: sum(times) for name, times in best.items()}


# Linux: VmHWM is the peak of this process alone; getrusage also counts those before exec.
_PEAK = """
import re, sys
from bench.parse import parsers
def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
text = open(sys.argv[2]).read()
parse = parsers()[sys.argv[1]]
before = kilobytes("VmRSS")
module = parse(text)
print(kilobytes("VmHWM") - before)
"""


def peak_megabytes(name: str, path: Path) -> float:
    """Measure the peak memory that a fresh process needs to read a file."""
    run = [sys.executable, "-c", _PEAK, name, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    options.add_argument("files", nargs="*", type=Path, metavar="FILE|DIR")
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--megabytes", type=int, default=50, help="0: no large module")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    texts = [path.read_text() for path in program_files(given.files or [EXAMPLES])]
    found = parsers()
    rows = [_row(f"{len(texts)} files", texts, found, given.repetitions)]
    if given.megabytes:
        large = repeated(texts, given.megabytes * 10**6)
        rows.append(_row("repeated", [large], found, max(1, given.repetitions // 2)))
        with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
            file.write(large)
            file.flush()
            peaks = {name: round(peak_megabytes(name, Path(file.name))) for name in found}
        rows[-1]["peak_mb"] = peaks
    print(json.dumps(rows) if given.json else _table(rows, list(found)))


_Raw = argparse.RawDescriptionHelpFormatter


def _row(
    name: str, texts: Sequence[str], found: dict[str, Parser], repetitions: int
) -> dict[str, Any]:
    size = sum(map(len, texts)) / 10**6
    speeds = {
        parser: round(size / taken, 1)
        for parser, taken in seconds(found, texts, repetitions).items()
    }
    return {"text": name, "megabytes": round(size, 1), "mb_per_second": speeds}


def _table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    lines = ["text              MB   " + "".join(f"{name + ' MB/s':>18}" for name in names)]
    for row in rows:
        speeds = "".join(f"{row['mb_per_second'][name]:18.1f}" for name in names)
        lines.append(f"{row['text']:12}{row['megabytes']:8.1f}   {speeds}")
    for row in rows:
        for name, peak in row.get("peak_mb", {}).items():
            lines.append(f"peak memory of {name} on {row['text']}: {peak} MB more than before")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
