"""Checks of a session of JAX: a process that test_jax_plugin.py starts and reads."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hlo_oracle.frontends import pjrt

Check = Callable[[], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Let :func:`run` run a function."""
    CHECKS.append(function)
    return function


def run() -> None:
    """Run the checks, and the snippets of a page that are the process's arguments; print the name
    of each check that holds."""
    pjrt.initialize()  # as JAX does by the entry point, where this package is installed
    for each in CHECKS:
        each()
        print(each.__name__, flush=True)
    for snippet in sys.argv[1:]:
        exec(compile(snippet, "docs/jax_plugin.md", "exec"), {})
        print("snippet", flush=True)
