"""``python -m selftest.real_programs``: programs that people write, on the plugin and on XLA:CPU.

Each program of examples/jax runs in a process for each mode, its steps on the two platforms in
turn. What it prints is compared: in ``fast`` and ``exact`` with XLA:CPU's numbers, ``exact`` with
``interp`` bit by bit after a few steps. With ``--judge`` the first step's results are judged
(docs/verdict.md). Needs the packages of the programs: pip install optax flax diffrax equinox
numpyro. Exit status: 1 if a program failed, or if bits differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hlo_oracle import option_types
from selftest.real_programs.page import Result, markdown

_HERE = Path(__file__).parent
_PROGRAMS = _HERE.parents[1] / "examples" / "jax"
_OURS, _THEIRS = "hlo_oracle", "cpu"


@dataclass(slots=True)
class _Session:
    """Runs programs in processes; ``faults`` has the messages of those that failed."""

    name: str
    seconds: float
    faults: list[str] = field(default_factory=list)

    def told(self, mode: str, platforms: str, steps: int, what: str = "run") -> dict[str, Any]:
        """Run a process and return its JSON object; empty if it fails."""
        environ = os.environ | {"JAX_PLATFORMS": platforms, "HLO_ORACLE_MODE": mode}
        words = [self.name, str(steps), what]
        command = [sys.executable, "-W", "ignore", "-m", "selftest.real_programs.session", *words]
        try:
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=self.seconds
            )
        except subprocess.TimeoutExpired:
            self.faults.append(f"{mode} ({what}): no answer in {self.seconds:.0f} s")
            return {}
        if done.returncode:
            last = next(reversed(done.stderr.strip().splitlines()), "no message")
            self.faults.append(f"{mode} ({what}): {last[:300]}")
            return {}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    known = {one.name: one for one in _kept(given.state)}
    for name, title in _programs(given.only):
        if name in known:
            continue
        known[name] = found = _result(name, title, given)
        if given.state is not None:
            with given.state.open("a") as file:
                file.write(json.dumps(asdict(found)) + "\n")
    results = [known[name] for name in sorted(known)]
    if given.write is not None:
        given.write.write_text(markdown(results))
    print(markdown(results), end="")
    return int(any(one.faults or one.same_bits is False for one in results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.real_programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole = option_types.whole(0, 1000, "a number of steps")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose names have it")
    parser.add_argument("--steps", type=whole, default=12, help="of each program")
    parser.add_argument("--interp-steps", type=whole, default=2, help="compared bit by bit")
    parser.add_argument("--judge", action="store_true", help="judge the first step, too")
    parser.add_argument(
        "--seconds", type=option_types.duration, default=600.0, help="for a process"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="results, to go on with")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page of evidence")
    return parser


def _kept(path: Path | None) -> list[Result]:
    """Read the results of programs that an earlier run has finished."""
    if path is None or not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text().splitlines()]


def _programs(only: str) -> Iterator[tuple[str, str]]:
    """Yield each program's name and the first line of its docstring."""
    for path in sorted(_PROGRAMS.glob("*.py")):
        if only in path.stem:
            yield path.stem, path.read_text().partition('"""')[2].partition("\n")[0].rstrip('"')


def _result(name: str, title: str, given: argparse.Namespace) -> Result:
    session = _Session(name, given.seconds)
    both = f"{_OURS},{_THEIRS}"
    fast, exact = (session.told(mode, both, given.steps) for mode in ("fast", "exact"))
    few = given.interp_steps
    bits = [session.told(mode, _OURS, few) for mode in ("exact", "interp")] if few else []
    return Result(
        name,
        title,
        given.steps,
        fast=fast,
        exact=exact,
        same_bits=_are_equal(bits),
        verdicts=session.told("fast", both, 0, "judge") if given.judge else {},
        faults=session.faults,
    )


def _are_equal(runs: Sequence[Mapping[str, Any]]) -> bool | None:
    """Test whether all runs ended with the same bits; None if one did not end."""
    if not runs or not all(runs):
        return None
    one, other = (run[_OURS]["bits"] for run in runs)
    return bool(one == other)


if __name__ == "__main__":
    sys.exit(main())
