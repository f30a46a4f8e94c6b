"""Observe every call of a program that JAX compiles: its text, arguments and results.

JAX has no public way to do so. Its private functions that compile and run programs are replaced
while :func:`observed` is open (JAX from 0.4.35 to 0.10 has them), and JAX's C++ fast path of calls,
which would bypass them, is off.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hlo.errors import Unsupported
from hlo.values import Array
from hlo_oracle.frontends.jax_functions import CALLS_PYTHON, Device, array_of, text_of_stablehlo
from hlo_oracle.required_packages import require_package

Wants = Callable[["Compiled"], bool]
LeaveOut = Callable[["Compiled", str], None]  # a program, and why it cannot be observed

# Whether the calls that are made now are nobody's: set by :func:`unobserved`.
_IS_UNOBSERVED = ContextVar("is_unobserved", default=False)


@dataclass(slots=True)
class Compiled:
    """A program that JAX compiled: its name (``jit_f``), StableHLO bytecode, and how often it was
    called before."""

    name: str
    stablehlo: bytes  # empty if it was compiled before
    executable: Any = field(repr=False)  # held, so that its identity stays its own
    calls: int = 0

    def text(self) -> str:
        """Return the program as HLO text."""
        return text_of_stablehlo(self.stablehlo)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a program, numbered from 0: its argument and result arrays, in order, and its
    device."""

    program: Compiled
    number: int
    arrays: tuple[Array, ...]
    results: tuple[Array, ...]
    device: Device


@contextmanager
def unobserved() -> Iterator[None]:
    """Let no observer see the calls that this thread makes in a block."""
    token = _IS_UNOBSERVED.set(True)
    try:
        yield
    finally:
        _IS_UNOBSERVED.reset(token)


@contextmanager
def observed(wants: Wants, observe: Callable[[Call], None], leave_out: LeaveOut) -> Iterator[None]:
    """Call ``observe`` with each call in a block for which ``wants`` returns True.

    For programs of several devices, and for those that call Python, ``leave_out`` is called, with
    the reason. Functions jitted before are compiled again. An exception of ``observe`` propagates
    from the call. Raises Unsupported for a version of JAX that does not have the functions to
    replace.
    """
    require_package("to see what JAX calls", "jax", "jax")
    import jax

    try:
        from jax._src import compiler, pjit
        from jax._src.interpreters.pxla import ExecuteReplicated

        compile_, run = compiler.compile_or_get_cached, ExecuteReplicated.__call__
        assert callable(pjit._get_fastpath_data)
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"JAX {jax.__version__} has other internals: {error}") from error
    observer = _Observer(wants, observe, leave_out, compile_, run)
    jax.clear_caches()  # type: ignore[no-untyped-call]
    try:
        with (
            patch.object(compiler, "compile_or_get_cached", observer.compiled),
            patch.object(ExecuteReplicated, "__call__", observer.caller()),
            patch.object(pjit, "_get_fastpath_data", lambda *given, **named: None),
        ):
            yield
    finally:
        jax.clear_caches()  # type: ignore[no-untyped-call]


class _Observer:
    """Replacements of JAX's private functions that compile and run programs."""

    def __init__(
        self,
        wants: Wants,
        observe: Callable[[Call], None],
        leave_out: LeaveOut,
        compile_: Callable[..., Any],
        run: Callable[..., Any],
    ) -> None:
        self._wants, self._observe, self._leave_out = wants, observe, leave_out
        self._compile, self._run = compile_, run
        self._known: dict[int, Compiled] = {}
        self._observing: set[int] = set()  # threads

    def compiled(self, backend: Any, computation: Any, *given: Any, **named: Any) -> Any:
        """Compile as JAX does, and remember the executable's program."""
        from jax._src.interpreters import mlir

        bytecode = mlir.module_to_bytecode(computation)
        name = str(computation.operation.attributes["sym_name"]).strip('"')
        executable = self._compile(backend, computation, *given, **named)
        self._known[id(executable)] = Compiled(name, bytecode, executable)
        return executable

    def caller(self) -> Callable[..., Any]:
        """Make the method that replaces the call of JAX's executables."""

        def call(executable: Any, *arguments: Any) -> Any:
            return self._called(executable, arguments)

        return call

    def _called(self, executable: Any, arguments: tuple[Any, ...]) -> Any:
        # What an observer itself runs is not observed.
        if _IS_UNOBSERVED.get() or threading.get_ident() in self._observing:
            return self._run(executable, *arguments)
        compiled = executable.xla_executable
        program = self._known.get(id(compiled))
        if program is None:
            # JAX calls it jit(f) here, and jit_f in its module.
            name = re.sub(r"\W+", "_", executable.name).strip("_")
            program = self._known[id(compiled)] = Compiled(name, b"", compiled)
        number, is_wanted = program.calls, self._wants(program)
        reason = _reason_against(program, executable)
        if is_wanted and reason:
            self._leave_out(program, reason)
        program.calls += 1
        if not is_wanted or reason:
            return self._run(executable, *arguments)
        self._observing.add(threading.get_ident())
        try:
            taken = [arguments[n] for n in sorted(executable.kept_var_idx)]
            arrays = tuple(array_of(x).copy() for x in taken)  # the call may overwrite its own
            results = self._run(executable, *arguments)
            (device,) = executable._local_devices
            place = Device(device.platform, str(device))
            self._observe(Call(program, number, arrays, tuple(map(array_of, results)), place))
        finally:
            self._observing.discard(threading.get_ident())
        return results


def _reason_against(program: Compiled, executable: Any) -> str:
    """Return the reason why calls of a program cannot be observed; empty if they can."""
    if executable.ordered_effects or executable.has_unordered_effects:
        return CALLS_PYTHON
    if executable.has_host_callbacks:
        return CALLS_PYTHON
    if executable.mut:
        return "it writes to references, which HLO does not describe"
    count = len(executable._local_devices)
    if count != 1:
        return f"it runs on {count} devices: programs of one are judged"
    return "" if program.stablehlo else "it was compiled before"
