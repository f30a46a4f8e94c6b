"""Run a test file on a platform of JAX in processes of its own: a test that ends its process, or
has no end, has failed, and a new process runs those that are left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlo.operating_system import signal_name
from selftest.scoring.outcomes import FAILED, Outcome

OURS, THEIRS = "hlo_oracle", "cpu"
BESIDE = f"{OURS},{THEIRS}"  # ours by default, and XLA:CPU for what asks for it by name
SKIPPED = "skipped"
BEGUN = "begun"  # what a session notes of a test before its outcome
# Statuses of a file on a platform: a session's last note, and that of a file that took too long.
ENDED, NOT_COLLECTED, STOPPED = "ended", "not collected", "stopped"

_ROOT = Path(__file__).parents[2]
# Test files ask XLA:CPU for devices by this flag, which no other platform reads.
_DEVICES = re.compile(rb"xla_force_host_platform_device_count=(\d{1,3})\b")


@dataclass(slots=True)
class FileRun:
    """Runs the tests of a file on a platform.

    ``chosen`` are the names of the tests, None for all; ``left_out`` those that have an outcome.
    ``seconds`` limit a test, ``file_seconds`` all of them.
    """

    name: str
    file: Path
    platform: str
    mode: str
    seconds: float
    file_seconds: float
    chosen: Collection[str] | None = None
    left_out: set[str] = field(default_factory=set)

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the outcome of each test, and at last one without a name, of the file: ENDED,
        NOT_COLLECTED, STOPPED by the limit of time, or FAILED if a process died between tests."""
        end = time.monotonic() + self.file_seconds
        while True:
            notes, how = self._process(end - time.monotonic())
            begun = ""
            for note in notes:
                if note["status"] == BEGUN:
                    begun = note["name"]
                    continue
                begun = ""
                self.left_out.add(note["name"])
                yield Outcome(self.name, setting=self.platform, **note)
            if how == ENDED:
                return
            if how != STOPPED and begun:
                self.left_out.add(begun)
                yield Outcome(self.name, begun, self.platform, FAILED, how)
                continue
            is_stopped = how == STOPPED
            why = f"no end in {self.file_seconds:g} s" if is_stopped else how
            yield Outcome(self.name, "", self.platform, STOPPED if is_stopped else FAILED, why)
            return

    def _process(self, seconds: float) -> tuple[list[dict[str, Any]], str]:
        """Run one process. Return its notes, and how it ended: ENDED, STOPPED by the limit of time,
        or how it died."""
        with tempfile.TemporaryDirectory() as directory:
            notes, stacks = Path(directory, "notes"), Path(directory, "stacks")
            request = {
                "file": str(self.file),
                "notes": str(notes),
                "stacks": str(stacks),
                "chosen": None if self.chosen is None else sorted(self.chosen),
                "left_out": sorted(self.left_out),
                "seconds": self.seconds,
            }
            status = self._status(request, directory, max(seconds, 1.0))
            found = [*map(json.loads, _whole_lines(notes))]
            if status is None:
                return found, STOPPED
            if found and found[-1]["status"] in (ENDED, NOT_COLLECTED):
                return found, ENDED
            if stacks.exists() and stacks.stat().st_size:
                return found, f"no answer in {self.seconds:g} s"
            return found, f"killed by {signal_name(-status)}" if status < 0 else f"exit {status}"

    def _status(self, request: object, directory: str, seconds: float) -> int | None:
        """Run a session in a directory; return its exit status, None beyond the limit of time."""
        path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        devices = _DEVICES.search(self.file.read_bytes())
        environ = {
            **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "JAX_PLATFORMS": self.platform,
            "HLO_ORACLE_MODE": self.mode,
            "PYTHONPATH": path,
            "HLO_ORACLE_DEVICES": devices[1].decode() if devices else "1",
        }
        command = [sys.executable, "-m", "selftest.package_suites.session"]
        try:
            return subprocess.run(
                command,
                input=json.dumps(request),
                text=True,
                env=environ,
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


def _whole_lines(file: Path) -> list[str]:
    """Return the lines of a file but for one that its process did not end."""
    if not file.exists():
        return []
    return [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
