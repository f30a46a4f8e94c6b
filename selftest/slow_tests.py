"""Name the tests that `make test-fast` leaves out: ``pytest --durations=0 -vv | python -m
selftest.slow_tests``.

Reads what pytest says of durations, and writes tests/slow_tests.txt: each function whose cases take
more than half a second together, setup and teardown included. To be run of the whole suite, with
nothing beside it, on two cores (``-n 2``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

SLOW_TESTS = Path(__file__).resolve().parents[1] / "tests" / "slow_tests.txt"
MOST = 0.5  # seconds

_DURATION = re.compile(r"([\d.]+)s (?:setup|call|teardown) +(tests/[^\[\s]+)")


def slow(lines: Iterable[str]) -> list[str]:
    """List the test functions that take more than ``MOST`` seconds, sorted."""
    seconds: dict[str, float] = {}
    for line in lines:
        if found := _DURATION.match(line.strip()):
            seconds[found[2]] = seconds.get(found[2], 0.0) + float(found[1])
    return sorted(name for name, taken in seconds.items() if taken > MOST)


def main() -> int:
    names = slow(sys.stdin)
    if not names:
        print("no durations: pytest --durations=0 -vv prints them", file=sys.stderr)
        return 2
    SLOW_TESTS.write_text("".join(f"{name}\n" for name in names), "utf-8")
    print(f"{len(names)} functions of tests take more than {MOST} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
