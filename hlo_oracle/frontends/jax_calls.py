"""Observe every call of a program that JAX compiles: its text, arguments and results.

JAX has no public way to do so. Its private functions that compile and run programs are replaced
while :func:`observed` is open (JAX 0.5 and later have them), and JAX's C++ fast path of calls,
which would bypass them, is off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from hlo.errors import Unsupported
from hlo.values import Array
from hlo_oracle.frontends.jax_functions import Device, array_of, printed
from hlo_oracle.required_packages import require_package

Wants = Callable[["Compiled"], bool]


@dataclass(slots=True)
class Compiled:
    """A program that JAX compiled: its name (``jit_f``), StableHLO bytecode, and how often it was
    called before."""

    name: str
    stablehlo: bytes
    executable: Any = field(repr=False)  # held, so that its identity stays its own
    calls: int = 0

    def text(self) -> str:
        """Return the program as HLO text."""
        from jaxlib import _jax

        computation = _jax.mlir.mlir_module_to_xla_computation(
            self.stablehlo, use_tuple_args=False, return_tuple=False
        )
        return printed(computation.as_hlo_module())


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
def observed(wants: Wants, observe: Callable[[Call], None]) -> Iterator[None]:
    """Call ``observe`` with each call in a block for which ``wants`` returns True.

    Programs of several devices, and those that call Python, are left out. Programs compiled before
    are compiled again. An exception of ``observe`` propagates from the call. Raises Unsupported for
    a version of JAX that does not have the functions to replace.
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
    observer = _Observer(wants, observe, compile_, run)
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
        compile_: Callable[..., Any],
        run: Callable[..., Any],
    ) -> None:
        self._wants, self._observe = wants, observe
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
        program = self._known.get(id(executable.xla_executable))
        is_left_out = (
            program is None
            or threading.get_ident() in self._observing  # what an observer itself runs
            or executable.ordered_effects
            or executable.has_unordered_effects
            or executable.has_host_callbacks
            or executable.mut
            or len(executable._local_devices) != 1
        )
        if program is None or is_left_out:
            return self._run(executable, *arguments)
        number, is_wanted = program.calls, self._wants(program)
        program.calls += 1
        if not is_wanted:
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
