"""Judge what JAX computes in tests: the fixture ``hlo_check``, and ``pytest --hlo-check``.

    def test_layer(hlo_check):
        hlo_check(layer, params, x)      # fails if a result is proven wrong

``pytest --hlo-check`` judges the first call of each program that JAX compiles during the session,
and then each one of ``--hlo-check-every``: a test in which a result is proven wrong fails.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hlo_oracle.verdicts import Verdict
    from hlo_oracle.watching import Checking


_MOST_LINES = 20  # of calls that are not judged


@pytest.fixture
def hlo_check() -> Callable[..., Verdict]:
    """Provide a function that judges another one on its arguments, and fails if an error is
    proven."""
    from hlo_oracle.function_check import check

    def checked(function: object, *arguments: Any, **keywords: Any) -> Verdict:
        verdict = check(function, *arguments, **keywords)
        if not verdict:
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return checked


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the session."""
    group = parser.getgroup("hlo-oracle")
    group.addoption("--hlo-check", action="store_true", help="judge what JAX computes in tests")
    group.addoption(
        "--hlo-check-every", type=int, default=100, metavar="N",
        help="judge the first call of each program, and each one of N (default 100)",
    )  # fmt: skip
    group.addoption("--hlo-check-names", metavar="RE", help="of programs (default: all)")


def pytest_configure(config: pytest.Config) -> None:
    """Start judging the session's programs if an option asks for it."""
    if config.getoption("--hlo-check"):
        config.pluginmanager.register(_Session(config), "hlo-check-session")


class _Session:
    """The plugin that judges the programs of a session."""

    def __init__(self, config: pytest.Config) -> None:
        from hlo.errors import Error
        from hlo_oracle.watching import checking

        every, names = (config.getoption(f"--hlo-check-{x}") for x in ("every", "names"))
        self._stack = ExitStack()
        try:
            self._checking: Checking = checking(every, names, raises=True)
            self._stack.enter_context(self._checking)
        except Error as error:
            raise pytest.UsageError(f"--hlo-check: {error}") from error

    def pytest_unconfigure(self) -> None:
        """Stop judging at the end of the session."""
        self._stack.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how many calls were judged, and which are proven wrong."""
        found = self._checking
        wrong = [verdict for verdict in found.verdicts if not verdict]
        terminalreporter.section("hlo-check")
        terminalreporter.write_line(
            f"{len(found.verdicts)} calls judged, {len(wrong)} proven wrong,"
            f" {len(found.not_judged)} not judged"
        )
        for verdict in wrong:
            terminalreporter.write_line(verdict.line)
        for line in found.not_judged[:_MOST_LINES]:
            terminalreporter.write_line(f"not judged: {line}")
