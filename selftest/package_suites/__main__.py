"""``python -m selftest.package_suites [PACKAGE ...]``: other people's tests on the plugin.

The test files that packages carry in their wheels (optax, chex, rlax, distrax, haiku, jraph, or
those that are named) run by pytest in processes of their own, on XLA:CPU and, those tests that pass
there, with ``JAX_PLATFORMS=hlo_oracle``; tests that ask for a device of XLA:CPU by name run again
with ``hlo_oracle,cpu``. Told are the tests that fail on the plugin alone. A test that crashes, or
has no answer in ``--seconds``, is one that fails; the others of its file go on in a new process.
Files run in an order drawn from their names, so that a run that ends early is a sample, each
package having an equal share of ``--minutes``. With ``--state FILE`` a run goes on where the last
one ended. Exit status: 1 if a test fails on the plugin alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hlo_oracle import option_types
from hlo_oracle.progress_line import ProgressLine
from hlo_oracle.required_packages import require_package
from selftest.package_suites.files import DISTRIBUTIONS, Suite, suite
from selftest.package_suites.platforms import BESIDE, OURS, THEIRS, FileRun
from selftest.package_suites.table import markdown, only_here, rows
from selftest.scoring import runs
from selftest.scoring.outcomes import PASSED, Journal, Outcome


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    for package, extra in (("jax", "jax"), ("pytest", "test")):
        require_package("to run the tests of packages", package, extra)
    suites = [suite(package) for package in given.packages or DISTRIBUTIONS]
    journal, begun, shown = Journal(given.state, given.mode), time.monotonic(), ProgressLine()
    shares = runs.shares([one.package for one in suites], given.minutes)
    with shown.phase("beginning"):
        for one, (_, minutes) in zip(suites, shares, strict=True):
            _run(given, journal, one, begun + 60 * minutes, shown)
    files = {name for one in suites for name in one.files}
    outcomes = [one for one in journal.outcomes.values() if one.group in files]
    page = markdown(suites, outcomes, given.mode)
    return runs.report(given, only_here(outcomes), page, rows(suites, outcomes))


def _run(
    given: argparse.Namespace, journal: Journal, of: Suite, end: float, shown: ProgressLine
) -> None:
    """Run the files of a suite that the journal lacks on both platforms, until the time is over."""
    for name, file in of.files.items():
        if given.only not in name:
            continue
        for platform in (THEIRS, OURS, BESIDE):
            if time.monotonic() >= end:
                return
            known = {one.name for one in _of(journal, name, platform)}
            chosen = _chosen(journal, name, platform)
            if "" in known or chosen == set():  # the file ended, or none of its tests is asked for
                continue
            shown.show(f"{name} on {platform}")
            run = FileRun(
                *(name, file, platform, given.mode, given.seconds, given.file_seconds),
                chosen=chosen,
                left_out=known,
            )
            for outcome in run.outcomes():
                journal.add(outcome)


def _chosen(journal: Journal, file: str, platform: str) -> set[str] | None:
    """Return the names of the tests to run on a platform, None for all."""
    if platform == THEIRS:
        return None
    if platform == OURS:
        return {one.name for one in _of(journal, file, THEIRS) if one.status == PASSED}
    return {one.name for one in _of(journal, file, OURS) if "Unknown backend cpu" in one.why}


def _of(journal: Journal, file: str, platform: str) -> list[Outcome]:
    return [
        one for one in journal.outcomes.values() if (one.group, one.setting) == (file, platform)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.package_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(DISTRIBUTIONS))
    parser.add_argument("--mode", choices=("fast", "exact", "interp"), default="fast")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose names have it")
    parser.add_argument("--minutes", type=option_types.minutes, default=float("inf"))
    parser.add_argument("--seconds", type=option_types.duration, default=120.0, help="for a test")
    parser.add_argument(
        "--file-seconds", type=option_types.duration, default=900.0, help="for a file"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="outcomes, to go on with")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page of evidence")
    return parser


if __name__ == "__main__":
    sys.exit(main())
