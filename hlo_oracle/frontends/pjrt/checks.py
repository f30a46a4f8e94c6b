"""Judge XLA:CPU, or another compiler, on the programs that JAX runs here: HLO_ORACLE_MODE=check.

The compiler runs the first call of each program in a process of its own; what it gives is judged
against the exact result (docs/verdict.md). When Python ends, each program has a line on standard
error, and what is proven wrong a report.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import interp
from hlo.errors import Error
from hlo.io_errors import why
from hlo.module import Module
from hlo.values import Value
from hlo_oracle import peer_verdicts, reporting, verdicts
from hlo_oracle.frontends.pjrt.callbacks import calls_python
from hlo_oracle.peer_verdicts import Peer
from hlo_oracle.verdicts import Verdict

_SECONDS = 600.0  # for one program


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the mode ``check``: the compiler ``against``, as ``hlo check --against`` names it,
    the directory of reports, and the seconds that reducing for one may take."""

    against: str = "xla"
    directory: Path = Path("hlo_oracle_reports")
    seconds: float = 60.0


def settings_of(environ: Mapping[str, str]) -> Settings:
    """Read HLO_ORACLE_AGAINST and HLO_ORACLE_REPORTS."""
    given = Settings()
    return Settings(
        environ.get("HLO_ORACLE_AGAINST") or given.against,
        Path(environ.get("HLO_ORACLE_REPORTS") or given.directory),
    )


class Checks:
    """Judges programs and prints the outcome once: ``verdicts`` in the order of first calls,
    ``not_judged`` with a line for each program that could not be judged."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._run: peer_verdicts.Run | None = None
        self.verdicts: list[Verdict] = []
        self.not_judged: list[str] = []

    def judge(self, module: Module, text: str, values: tuple[Value, ...]) -> None:
        """Judge the compiler's results for a program on its arguments."""
        if calls_python(module):
            self.leave_out(f"{module.name}: it calls Python, which the compiler cannot")
            return
        against = self._settings.against
        try:
            peer = peer_verdicts.peer(against)
            run = self._started(peer)
            exact = interp.evaluate(module, *values, seed=0)
            examined = peer_verdicts.examined(
                run, peer.budget, module, text, values, exact=exact, seed=0
            )
            by = peer_verdicts.title(against)
            judged = verdicts.verdict(module.name, by, examined, (), module, values)
        except (Error, OSError) as error:
            if isinstance(error, OSError):  # of pipes: its processes are gone
                self.close()
            self.leave_out(f"{module.name}: {error}")
            return
        self.verdicts.append(judged)

    def _started(self, peer: Peer) -> peer_verdicts.Run:
        """Return the compiler's run function; start its process at the first call."""
        if self._run is None:
            peer_verdicts.require(self._settings.against)
            started = peer.start(_SECONDS)
            self._stack.enter_context(started)
            self._run = started
        return self._run

    def leave_out(self, why: str) -> None:
        """Note why a program is not judged."""
        self.not_judged.append(f"not judged: {why}")

    def close(self) -> None:
        """End the compiler's process."""
        self._run = None
        self._stack.close()

    def tell(self, stream: TextIO | None = None) -> None:
        """Print a line for each program, proven errors first, and write reports."""
        self.close()
        lines = [*(v.line for v in sorted(self.verdicts, key=bool)), *self.not_judged]
        print(*(f"hlo-oracle: {line}" for line in lines), sep="\n", file=stream or sys.stderr)
        for number, verdict in enumerate(self.verdicts):
            if not verdict:
                print(f"hlo-oracle: {self._reported(number, verdict)}", file=stream or sys.stderr)

    def _reported(self, number: int, verdict: Verdict) -> str:
        """Write a report on a proven error; return a line that says where it is, or why there is
        none."""
        assert verdict.module is not None
        name = re.sub(r"[^A-Za-z0-9_]", "_", verdict.what)[:80]
        directory = self._settings.directory / f"{number:03}_{name}"
        reduction = reporting.Reduction(seconds=self._settings.seconds)
        given = verdict.module, verdict.arguments, directory, self._settings.against, reduction
        try:
            return f"report: {reporting.report(*given).directory}"
        except (Error, OSError) as error:
            return f"no report on {verdict.what}: {why(error)}"
