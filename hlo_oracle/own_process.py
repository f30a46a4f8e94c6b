"""Ask a module that runs in a process of its own: a crash is an answer, and so is running out of
memory, and the peak of memory is that of one question.

The module reads one JSON object from standard input and writes one to standard output.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Died:
    """How the process ended without an answer: a signal, or the last line of its error."""

    how: str


def asked(module: str, question: Mapping[str, object]) -> dict[str, Any] | Died:
    """Run ``python -m module`` on a question and return its answer. Lists in it were tuples:
    JSON has no others."""
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True)
    if done.returncode == 0:
        answer = json.loads(done.stdout)
        return {key: tuple(x) if isinstance(x, list) else x for key, x in answer.items()}
    if done.returncode < 0:
        return Died(f"killed by {signal.Signals(-done.returncode).name}")
    unindented = [line for line in done.stderr.splitlines() if line[:1].isalpha()]
    return Died(unindented[-1] if unindented else f"exit {done.returncode}")
