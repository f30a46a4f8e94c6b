"""Run tests of one file by pytest, and note each as it begins and as it ends.

The request comes as a JSON object on standard input: ``file``; ``notes`` and ``stacks``, files to
write; ``chosen``, the names of tests, or null for all; ``left_out``, names; and ``seconds``, after
which a test ends the process. A note is a line of JSON. That a test began is noted, too, so that
whoever reads the notes of a process that died knows which one it was.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from selftest.package_suites.platforms import BEGUN, ENDED, NOT_COLLECTED, SKIPPED
from selftest.scoring.outcomes import FAILED, PASSED, REFUSED, shortened

_LOGGER = "hlo_oracle.frontends.pjrt.programs"  # tells why a program is interpreted


class Notes(logging.Handler):
    """A plugin of pytest that chooses tests and notes their outcomes; as a logging handler it notes
    which programs are interpreted."""

    def __init__(self, request: Mapping[str, Any], notes: IO[str], stacks: IO[str]) -> None:
        super().__init__()
        self._chosen, self._left_out = request["chosen"], set(request["left_out"])
        self._seconds: float = request["seconds"]
        self._notes, self._stacks = notes, stacks
        self._begun, self._not_collected = 0.0, ""
        self._reports: list[pytest.TestReport] = []
        self._interpreted: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note why a program is interpreted, from the log record."""
        self._interpreted.append(record.getMessage())

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file cannot be imported."""
        if report.failed:
            self._not_collected = _reason(report)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that are asked for."""
        chosen = None if self._chosen is None else set(self._chosen) - self._left_out
        items[:] = [
            item
            for item in items
            if (name := _name(item.nodeid)) not in self._left_out
            and (chosen is None or name in chosen)
        ]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins, and begin its time."""
        self._note(_name(nodeid), BEGUN)
        self._reports.clear()
        self._interpreted.clear()
        self._begun = time.monotonic()
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._stacks)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a phase of a test, or a part of it, gave."""
        self._reports.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note the outcome of a test: that of the first phase that did not pass."""
        faulthandler.cancel_dump_traceback_later()
        first = next((one for one in self._reports if one.failed), None)
        status, why = PASSED, ""
        if first is not None:
            why = _reason(first)
            status = REFUSED if "UNIMPLEMENTED" in first.longreprtext else FAILED
        elif any(one.skipped for one in self._reports):
            status = SKIPPED
        self._note(
            *(_name(nodeid), status, why),
            interpreted=shortened("; ".join(dict.fromkeys(self._interpreted))),
            seconds=round(time.monotonic() - self._begun, 2),
        )

    def pytest_sessionfinish(self) -> None:
        """Note the end of the file."""
        why = self._not_collected
        self._note("", NOT_COLLECTED if why else ENDED, why)

    def _note(self, name: str, status: str, why: str = "", **others: object) -> None:
        note = {"name": name, "status": status, "why": why, **others}
        self._notes.write(json.dumps(note) + "\n")
        self._notes.flush()


def _name(nodeid: str) -> str:
    """Return the name of a test in its file."""
    return nodeid.partition("::")[2]


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return the message of the error that a report is of, or the last line that is told of it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return shortened(crash.message)
    last = next(reversed(report.longreprtext.strip().splitlines()), "no message")
    return shortened(last.removeprefix("E "))


def main() -> int:
    request = json.load(sys.stdin)
    # An empty file in place of the settings of a project that happens to lie around the packages.
    settings = Path("pytest.ini")
    settings.write_text("[pytest]\n")
    words = ["-q", "-c", str(settings), "-p", "no:cacheprovider", "--import-mode=importlib"]
    with open(request["notes"], "w") as notes, open(request["stacks"], "w") as stacks:
        plugin = Notes(request, notes, stacks)
        logging.getLogger(_LOGGER).addHandler(plugin)
        return int(pytest.main([*words, request["file"]], plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main())
