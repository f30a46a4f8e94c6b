"""Check generated CUDA on the first GPU, some minutes at a time.

    python -m selftest.gpu.check [--minutes 8] [--workers N] [--state DIR] [--write FILE]

Every op on every type, large ops, regressions and corpus, drawn programs: their bits against the
interpreter's, each run twice; arrays to and from other libraries; large ops under compute-sanitizer
where that is on the path; and the time of programs (bench.gpu), also by XLA and PyTorch where they
are installed. Units run in processes of their own, as many side by side as there are processors:
one that crashes or hangs is noted, and its programs are run one by one. What is done is kept in
``--state``: the same command goes on where it was. Exit status 0 if all is done and right, 1 if
something is wrong, 75 if the time is up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hlo.errors import Error
from selftest.gpu.records import Records
from selftest.gpu.report import text
from selftest.gpu.side_by_side import Unit, run_units

UNFINISHED = 75  # EX_TEMPFAIL
_PIECES = ("large ops", "ops", "files", "drawn")
_TOOLS = ("memcheck", "racecheck", "synccheck")
_SANITIZED = "large ops"
_NO_UNIT, _NO_GPU, _FOUND = 3, 69, 86
_ROOT = Path(__file__).parents[2]
_UNIT_SECONDS = 240  # of one unit, compiling included: then it hangs
_BENCH_SECONDS = 400  # of a unit of programs, with their compilers
_EXCHANGE = "exchange"
_BENCH, _BENCH_OF = "bench", "bench by "
_PEERS = {"xla": "jax", "eager": "torch", "inductor": "torch"}  # and the packages that they need


class NoGpuError(Error):
    """Raised if there is no GPU to check on; the message is that of the first unit."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the check: deadline, options, records, and the number of parallel processes."""

    records: Records
    deadline: float
    options: tuple[str, ...]
    workers: int = 1

    def is_over(self) -> bool:
        """Test whether the deadline has passed."""
        return time.monotonic() >= self.deadline


def pieces(run: Run) -> bool:
    """Run the remaining units of all pieces; return whether all are done."""
    return all(_run(run, piece, partial(_unit, run, piece)) for piece in _PIECES)


def _run(run: Run, piece: str, unit: Unit, workers: int | None = None) -> bool:
    """Run the remaining units of a piece; return whether all are done."""
    return run_units(piece, unit, run.records, workers or run.workers, run.is_over)


def _unit(run: Run, piece: str, number: int) -> Iterator[dict[str, Any]]:
    """Run a unit; if a program loses the device, run the unit's programs one by one."""
    row, status = _asked(run, [piece, str(number)])
    if status == _NO_UNIT:
        yield {"piece": piece, "done": True}
    elif row is None:
        why = f"unit {number}: the process ended with status {status}"
        yield _failed(piece, number, why)
    else:
        yield _alone(run, row) if row["lost"] >= 0 else row


def _alone(run: Run, whole: dict[str, Any]) -> dict[str, Any]:
    """Run the programs of a unit one by one; return the sum of their rows."""
    total = whole | {"left out": 0, "other bits": 0, "errors": 0, "wrong": [], "lost": -1}
    for place in range(whole["programs"]):
        words = [whole["piece"], str(whole["unit"]), "--only", str(place)]
        row, status = _asked(run, words)
        if row is None:
            row = _failed(whole["piece"], whole["unit"], f"program {place}: status {status}")
        for column in ("left out", "other bits", "errors", "wrong"):
            total[column] += row[column]
    return total


def _failed(piece: str, number: int, why: str) -> dict[str, Any]:
    """Make the row of a unit that gave none."""
    return {"piece": piece, "unit": number, "programs": 0, "left out": 0, "other bits": 0,
            "errors": 1, "wrong": [why], "lost": -1, "seconds": 0}  # fmt: skip


def _asked(
    run: Run,
    words: Sequence[str],
    before: Sequence[str] = (),
    module: str = "selftest.gpu.unit",
) -> tuple[dict[str, Any] | None, int]:
    """Run a unit in a process; return its row, None if it gave none, and its exit status."""
    command = [*before, sys.executable, "-m", module, *words, *run.options]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_UNIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None, 124
    if done.returncode == _NO_GPU:
        raise NoGpuError(done.stderr.strip())
    rows = [line for line in done.stdout.splitlines() if line.startswith('{"piece"')]
    if not rows and done.returncode != _NO_UNIT:
        print(done.stderr[-2000:], file=sys.stderr)
    return json.loads(rows[-1]) if rows else None, done.returncode


def sanitized(run: Run) -> bool:
    """Run a piece under compute-sanitizer's tools, if it is installed; return whether all is
    done."""
    found = shutil.which("compute-sanitizer")
    tools = _TOOLS if found else ()
    return all(_run(run, tool, partial(_under, run, [str(found)], tool)) for tool in tools)


def _under(run: Run, sanitizer: Sequence[str], tool: str, number: int) -> Iterator[dict[str, Any]]:
    """Run a unit under a tool, which reports an error by an exit status of its own."""
    if not run.records.has(_SANITIZED, number):
        yield {"piece": tool, "done": True}
        return
    before = [*sanitizer, "--tool", tool, "--error-exitcode", str(_FOUND)]
    row, status = _asked(run, [_SANITIZED, str(number)], before)
    yield _of_tool(tool, number, row, status)


def _of_tool(tool: str, number: int, row: dict[str, Any] | None, status: int) -> dict[str, Any]:
    """Make the row of a unit run under a tool."""
    why = f"{tool} of {_SANITIZED}, unit {number}: status {status}"
    found = row or _failed(tool, number, why)
    wrong = [*found["wrong"], why] if status == _FOUND else found["wrong"]
    return found | {"piece": tool, "errors": found["errors"] + (status == _FOUND), "wrong": wrong}


def exchanged(run: Run) -> bool:
    """Exchange arrays with other libraries; return whether that is done."""
    return _run(run, _EXCHANGE, partial(_exchange, run), workers=1)


def _exchange(run: Run, number: int) -> Iterator[dict[str, Any]]:
    """Run the single unit of exchanges."""
    if number:
        yield {"piece": _EXCHANGE, "done": True}
        return
    row, status = _asked(run, [], module="selftest.gpu.exchange")
    yield row or _failed(_EXCHANGE, 0, f"the process ended with status {status}")


def measured(run: Run) -> bool:
    """Time programs, also by other installed compilers, one unit at a time; return whether all is
    done."""
    # Emulated threads are beside no GPU that others could use.
    there = [] if "--emulated" in run.options else [p for p, n in _PEERS.items() if find_spec(n)]
    pieces = (_BENCH, *(f"{_BENCH_OF}{peer}" for peer in there))
    return all(_run(run, piece, partial(_benched, run, piece), workers=1) for piece in pieces)


def _benched(run: Run, piece: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a unit's programs, or the row that ends the piece."""
    is_peer = piece.startswith(_BENCH_OF)
    words = ["--peer", piece.removeprefix(_BENCH_OF)] if is_peer else list(run.options)
    command = [sys.executable, "-m", "bench.gpu", "--unit", str(number), "--json", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BENCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        yield {"piece": piece, "unit": number, "name": f"unit {number}", "error": "hangs"}
        return
    if done.returncode == _NO_UNIT:
        yield {"piece": piece, "done": True}
        return
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        error = (done.stderr.strip().splitlines() or ["no message"])[-1]
        rows.append({"name": f"unit {number}", "error": error})
    yield from (row | {"piece": piece, "unit": number} for row in rows)


def _when() -> str:
    """Format the date and the commit, that of the bundle or of this clone."""
    packed = _ROOT / "commit.txt"
    command = ["git", "-C", str(_ROOT), "rev-parse", "HEAD"]
    if packed.exists():
        commit = packed.read_text("utf-8")
    else:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        commit = done.stdout or "unknown"
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit.strip()[:10]}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.gpu.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--state", type=Path, default=Path("gpu_check"), metavar="DIR")
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the report goes")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true", help="on the emulated driver")
    given = parser.parse_args(words)
    options = ["--emulated"] * given.emulated
    options += ["--cubins", str(given.cubins)] if given.cubins else []
    records = Records(given.state)
    run = Run(records, time.monotonic() + 60 * given.minutes, tuple(options), given.workers)
    try:
        is_done = pieces(run) and exchanged(run) and sanitized(run) and measured(run)
    except NoGpuError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return 1
    report = text(records.rows(), _when())
    # Emulated threads are no GPU: what they did is told, and goes into no page.
    if given.write and is_done and not given.emulated:
        given.write.write_text(report, "utf-8")
    print(report)
    if not is_done:
        print(f"not finished: run the same command again ({given.state} has what is done)")
        return UNFINISHED
    return int(any(row.get("wrong") or row.get("error") for row in records.rows()))


if __name__ == "__main__":
    sys.exit(main())
