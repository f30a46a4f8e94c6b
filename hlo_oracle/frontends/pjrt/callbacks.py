"""Call Python while a program runs: ``pure_callback``, ``io_callback``, ``debug.print`` of JAX.

JAX lowers callbacks for platforms that it knows. For this one they become XLA:CPU's custom call,
whose shardings XLA's partitioner supports, with the number of the function in this process; a
program that has one is interpreted.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from hlo.errors import Error
from hlo.module import Module
from hlo.types import ArrayShape, Shape, array_leaves
from hlo.values import Array, Value, unflattened
from hlo_oracle.frontends import jax_internals
from hlo_oracle.frontends.pjrt.modes import PLATFORM

TARGET = "xla_ffi_python_cpu_callback"


class Callback:
    """A Python function of arrays that returns a sequence of arrays; JAX keeps it alive with its
    program."""

    def __init__(self, function: Callable[..., Sequence[Any]]) -> None:
        self._function = function

    def results(self, arrays: Sequence[Array], shapes: Sequence[ArrayShape]) -> Iterator[Array]:
        """Call the function; yield its arrays. Raises Error if their shapes differ from ``shapes``,
        or the function fails."""
        try:
            found = [np.asarray(x) for x in self._function(*arrays)]
        except Exception as error:  # whatever the function of the user raises
            raise Error(f"a callback raised {type(error).__name__}: {error}") from error
        if len(found) != len(shapes):
            raise Error(f"a callback gave {len(found)} results of {len(shapes)}")
        for number, (array, shape) in enumerate(zip(found, shapes, strict=True)):
            if array.shape != shape.dims:
                told = f"result {number} of a callback has sizes {array.shape}"
                raise Error(f"{told}, and {shape} was promised")
            yield array.astype(shape.element_type.numpy, copy=False)


class Callbacks:
    """The numbered callbacks of a process, held weakly."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[int, Callback] = WeakValueDictionary()
        self._numbers = count()

    def number(self, callback: Callback) -> int:
        """Register a callback; return its number."""
        number = next(self._numbers)
        self._known[number] = callback
        return number

    def call(self, operands: tuple[Value | None, ...], shape: Shape, config: str) -> Value:
        """Evaluate the custom call, as a target for :func:`interp.evaluate`."""
        written = re.search(r"index = (\d{1,18})", config)
        callback = self._known.get(int(written[1])) if written else None
        if callback is None:
            raise Error("the program calls Python of another process: it cannot be saved")
        given: Any = [operand for operand in operands if operand is not None]
        arrays = [*callback.results(given, [*array_leaves(shape)])]
        value: Value = unflattened(shape, iter(arrays))
        return value


@cache  # JAX and its programs are the process's, too
def callbacks() -> Callbacks:
    """Return the callbacks of this process."""
    return Callbacks()


def calls_python(module: Module) -> bool:
    """Test for a program with callbacks."""
    return any(
        i.opcode == "custom-call" and i.attributes.get("custom_call_target") == TARGET
        for c in module.computations
        for i in c.instructions
    )


def lower() -> None:
    """Register lowering rules for this platform with JAX, and let callbacks run without XLA's CPU
    backend."""
    from jax._src import callback, debugging

    place: Any = jax_internals.callback_emitter()
    place.emit_python_callback = _emitter(place.emit_python_callback)
    for module in (callback, debugging):
        for name in filter(vars(module).__contains__, _BACKENDS):
            setattr(module, name, _Backends(getattr(module, name)))


_BACKENDS = ("xb", "xla_bridge", "jax")  # the names under which JAX's versions find devices there


class _Backends:
    """Stands for a module of JAX that finds devices, in its callbacks, which place their arguments
    on a CPU: where ``JAX_PLATFORMS`` leaves out the CPU, this platform takes its place, as its
    memory is the host's."""

    def __init__(self, known: ModuleType) -> None:
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)

    def local_devices(self, *places: Any, backend: str | None = None, **options: Any) -> list[Any]:
        """Return a backend's local devices; for ``cpu``, if there is none, this platform's."""
        find: Callable[..., list[Any]] = self._known.local_devices
        try:
            return find(*places, backend=backend, **options)
        except RuntimeError:  # JAX's, of a backend that was not asked for
            if backend != "cpu":
                raise
            return find(*places, backend=PLATFORM, **options)


def _emitter(known: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap JAX's function that emits a call of Python so that it accepts this platform."""

    def emit(
        ctx: Any,
        callback: Callable[..., Any],
        token: Any,
        operands: Sequence[Any],
        operand_avals: Sequence[Any],
        result_avals: Sequence[Any],
        *,
        has_side_effect: bool,
        sharding: Any = None,
        **options: Any,
    ) -> tuple[Sequence[Any], Any, Any]:
        if tuple(ctx.module_context.platforms) != (PLATFORM,):
            given = callback, token, operands, operand_avals, result_avals
            options |= {"has_side_effect": has_side_effect, "sharding": sharding}
            found: tuple[Sequence[Any], Any, Any] = known(ctx, *given, **options)
            return found
        from jax._src import core

        held = Callback(callback)
        ctx.module_context.add_keepalive(held)
        if token:
            avals = {name: [core.abstract_token, *getattr(ctx, name)] for name in _AVALS}
            ctx, operands = dataclasses.replace(ctx, **avals), [token, *operands]
            sharding = _with_token(sharding, len(result_avals))
        number = np.uint64(callbacks().number(held))
        call = jax_internals.foreign_call(
            ctx, TARGET, operands, has_side_effect=has_side_effect, index=number
        )
        if sharding is not None:
            jax_internals.set_sharding(ctx.module_context, call, sharding)
        results = list(call.results)
        return (results[1:], results[0], None) if token else (results, token, None)

    return emit


def _with_token(sharding: Any, results: int) -> Any:
    """Extend the shardings of the results by that of a token; without results the token takes the
    operation's sharding."""
    of_results = getattr(sharding, "shardings", ())  # of an SdyArrayList of JAX, of SdyArrays
    if not (results and of_results):
        return sharding
    first = of_results[0]
    devices = first.logical_device_ids
    token = type(first)(mesh_shape=(), dim_shardings=(), logical_device_ids=devices)
    return type(sharding)((token, *of_results))


_AVALS = ("avals_in", "avals_out")
