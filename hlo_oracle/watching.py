"""Judge calls of programs that JAX compiles, while the user's own code runs: :func:`checking`."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator, ExitStack
from importlib.util import find_spec
from typing import Self

from hlo.errors import ArgumentError, Error
from hlo_oracle import function_check
from hlo_oracle.frontends import jax_calls
from hlo_oracle.frontends.jax_calls import Call, Compiled
from hlo_oracle.verdicts import Verdict


class MiscompileWarning(UserWarning):
    """A miscompile was proven; the text is the verdict."""


class Miscompile(Error):
    """Raised for a proven miscompile; ``verdict`` has the details."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(str(verdict))


class Chosen(ContextDecorator):
    """Observes some calls of each program that JAX compiles in a block, or in a function.

    ``every``: the first call of each program, and then each one of so many. ``names``: a regular
    expression searched for in the programs' names (``jit_f``). A block may be entered again.
    """

    def __init__(self, every: int, names: str | None) -> None:
        if not isinstance(every, int) or every < 1:
            raise ArgumentError(f"every={every!r}: 1 is every call, 100 each hundredth")
        try:
            self._names = re.compile(names or "")
        except (TypeError, re.error) as error:
            raise ArgumentError(f"names={names!r} is no regular expression: {error}") from error
        self._every = every
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(jax_calls.observed(self.wants, self.observe, self.leave_out))
        return self

    def __exit__(self, *of_exception: object) -> None:
        self._stack.close()

    def wants(self, program: Compiled) -> bool:
        """Decide before a call whether to observe it."""
        return program.calls % self._every == 0 and bool(self._names.search(program.name))

    def observe(self, call: Call) -> None:
        """Process an observed call."""
        raise NotImplementedError

    def leave_out(self, program: Compiled, reason: str) -> None:
        """Process the next call of a program, which cannot be observed for a reason."""
        raise NotImplementedError


class Checking(Chosen):
    """Judges calls; see :func:`checking`.

    ``verdicts`` are those so far; ``not_judged`` has a line for each call that could not be judged.
    """

    def __init__(
        self, every: int, names: str | None, tell: Callable[[Verdict], None], budget: str | None
    ) -> None:
        super().__init__(every, names)
        self._tell, self._budget = tell, budget
        self.verdicts: list[Verdict] = []
        self.not_judged: list[str] = []

    def observe(self, call: Call) -> None:
        """Judge a call; warn or raise if an error is proven."""
        name = f"{call.program.name}, call {call.number}"
        try:
            verdict = function_check.of_run(
                *(call.program.text(), call.arrays, call.results, call.device, name),
                budget=self._budget,
            )
        except Error as error:
            self.not_judged.append(f"{name}: {error}")
            return
        self.verdicts.append(verdict)
        if not verdict:
            self._tell(verdict)

    def leave_out(self, program: Compiled, reason: str) -> None:
        """Note a call that cannot be judged."""
        self.not_judged.append(f"{program.name}, call {program.calls}: {reason}")

    def table(self) -> str:
        """Format a line for each verdict, proven errors first."""
        return "\n".join([*(v.line for v in sorted(self.verdicts, key=bool)), *self.not_judged])


def checking(
    every: int = 100, names: str | None = None, raises: bool = False, budget: str | None = None
) -> Checking:
    """Judge what JAX computes in a block, or in a function that this decorates::

        with ho.checking(every=100, names="train_step") as checked:
            for batch in batches:
                state = train_step(state, batch)
        print(checked.table())

    Of each program that is called in it the first call is judged, and then each one of ``every``;
    ``names`` is a regular expression for the names of programs (``jit_train_step``; operations
    outside of any jit are programs of one instruction). What is proven wrong is a
    MiscompileWarning, or raises Miscompile from the call if ``raises``. The exact evaluation takes
    some hundred times as long as the call itself. ``budget`` as in :func:`check`.
    """
    return Checking(every, names, _raise if raises else _warn, budget)


def _warn(verdict: Verdict) -> None:
    warnings.warn(str(verdict), MiscompileWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Return the stack level, for a warning of the function that calls this, of the code that is
    neither of this package nor of JAX: the line that called the program."""
    packages = (find_spec(name) for name in ("hlo_oracle", "jax", "jaxlib"))
    places = (place for p in packages if p for place in p.submodule_search_locations or ())
    inside = tuple(f"{place}{os.sep}" for place in places)
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    return level or 1


def _raise(verdict: Verdict) -> None:
    raise Miscompile(verdict)
