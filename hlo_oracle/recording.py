"""Record programs, arguments and results of what JAX runs, to be judged elsewhere: :func:`record`.

Each call is a folder: ``program.hlo.gz``, ``arguments.npz``, ``results.npz`` and, written last,
``facts.json``. ``hlo check DIR`` judges all of them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from hlo import archive
from hlo.errors import ArgumentError, Error
from hlo_oracle.frontends.jax_calls import Call, Compiled
from hlo_oracle.program_paths import (
    RECORDED_ARGUMENTS,
    RECORDED_FACTS,
    RECORDED_PROGRAM,
    RECORDED_RESULTS,
)
from hlo_oracle.watching import Chosen
from interp.envelope.budget import ANY_PLATFORM, PLATFORMS

_MOST_BYTES = 1 << 30


class Recording(Chosen):
    """Writes calls to a directory, as :func:`record` says.

    ``calls`` counts the calls written, ``too_large`` those left out for their size; ``left_out``
    has a line for each call of a program that cannot be recorded.
    """

    def __init__(self, directory: Path, every: int, names: str | None, most_bytes: int) -> None:
        super().__init__(every, names)
        self._directory, self._most_bytes = directory, most_bytes
        self.calls, self.too_large = 0, 0
        self.left_out: list[str] = []

    def __enter__(self) -> Recording:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Error(
                f"{self._directory}: no directory to record in ({error.strerror})"
            ) from error
        super().__enter__()
        return self

    def wants(self, program: Compiled) -> bool:
        """Decide before a call whether to record it; calls that an earlier run recorded are not
        wanted."""
        return super().wants(program) and not self._facts(program).exists()

    def _facts(self, program: Compiled, number: int | None = None) -> Path:
        """Return the path of a call's ``facts.json``, by default of the next call; the folder's
        name has the program's name and hash, and the call's number."""
        digest = hashlib.sha256(program.stablehlo).hexdigest()[:12]
        name = re.sub(r"\W", "_", program.name, flags=re.ASCII)[:80]
        count = program.calls if number is None else number
        return self._directory / f"{name}.{digest}.{count:06}" / RECORDED_FACTS

    def observe(self, call: Call) -> None:
        """Write a call's program, arguments and results."""
        if sum(array.nbytes for array in (*call.arrays, *call.results)) > self._most_bytes:
            self.too_large += 1
            return
        last = self._facts(call.program, call.number)
        folder = last.parent
        folder.mkdir(exist_ok=True)
        (folder / RECORDED_PROGRAM).write_bytes(
            gzip.compress(call.program.text().encode(), mtime=0)
        )
        archive.write(folder / RECORDED_ARGUMENTS, archive.numbered(call.arrays))
        archive.write(folder / RECORDED_RESULTS, archive.numbered(call.results))
        budget = PLATFORMS.get(call.device.platform, ANY_PLATFORM)
        facts = {
            "name": call.program.name,
            "call": call.number,
            "platform": call.device.platform,
            "device": str(call.device),
            "budget": budget.name,
        }
        # Renamed into place last: a folder with facts is complete, even if the process was killed.
        made = folder / f".{RECORDED_FACTS}"
        made.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
        os.replace(made, last)
        self.calls += 1

    def leave_out(self, program: Compiled, reason: str) -> None:
        """Note a call that cannot be recorded."""
        self.left_out.append(f"{program.name}, call {program.calls}: {reason}")


def record(
    directory: str | os.PathLike[str],
    every: int = 1000,
    names: str | None = None,
    most_bytes: int = _MOST_BYTES,
) -> Recording:
    """Record the calls of JAX programs in a block, or in a function that this decorates::

        with ho.record("calls"):
            train()

    Of each program the first call is written, and then each one of ``every``, unless an earlier run
    did; ``names`` is a regular expression for the names of programs, and calls with more than
    ``most_bytes`` of arrays are left out. ``hlo check calls`` judges them, on any machine. For a
    script as it is: ``python -m hlo_oracle.record -o calls script.py``.
    """
    if not isinstance(directory, str | os.PathLike):
        raise ArgumentError(f"a directory to record in is a path, not {type(directory).__name__}")
    return Recording(Path(directory), every, names, most_bytes)


def main(words: Sequence[str] | None = None) -> int:
    """Run a script and record what JAX computes in it."""
    parser = argparse.ArgumentParser(prog="python -m hlo_oracle.record", description=__doc__)
    parser.add_argument("-o", "--output", default="recorded", metavar="DIR", help="(%(default)s)")
    parser.add_argument("--every", type=int, default=1000, metavar="N", help="(%(default)s)")
    parser.add_argument("--names", metavar="RE", help="of programs: all of them by default")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    given = parser.parse_args(words)
    if not Path(given.script).is_file():
        parser.error(f"{given.script}: there is no such file")
    try:
        recording = record(given.output, given.every, given.names)
        try:
            with recording:
                _run(given.script, given.arguments)
        finally:  # also for a script that ends by sys.exit or an exception
            large = f", {recording.too_large} too large" if recording.too_large else ""
            others = len(recording.left_out)
            large += f", {others} left out: {recording.left_out[0]}" if others else ""
            print(f"{given.output}: {recording.calls} calls recorded{large}", file=sys.stderr)
    except Error as error:
        print(f"hlo: {error}", file=sys.stderr)
        return 2
    return 0


def _run(script: str, arguments: Sequence[str]) -> None:
    """Run a script as ``python script`` does: with its arguments, and its directory first on the
    path."""
    path = [str(Path(script).resolve().parent), *sys.path]
    with patch.object(sys, "argv", [script, *arguments]), patch.object(sys, "path", path):
        runpy.run_path(script, run_name="__main__")
