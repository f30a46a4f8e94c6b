"""Judge one run of a program, usually of a function on the user's own device: :func:`check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import hlo
import interp
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.seeds import whole_seed
from hlo.values import Array, Value, require_no_mask
from hlo_oracle import arguments as drawing
from hlo_oracle import peer_verdicts, verdicts
from hlo_oracle.frontends import jax_calls, jax_functions
from hlo_oracle.frontends import torch as torch_functions
from hlo_oracle.frontends.jax_functions import Device
from hlo_oracle.loading import objects
from hlo_oracle.recorded_results import RecordedResults, budget_named, notes, recorded
from hlo_oracle.types_as_written import on_other_readings
from hlo_oracle.values_between import on_values_between
from hlo_oracle.verdicts import Verdict
from interp.envelope.budget import ANY_PLATFORM, PLATFORMS, UNKNOWN, Budget

if TYPE_CHECKING:
    from fuzz.peers.xla import XLA
    from hlo_oracle.frontends.torch.functions import TracedFunction

_TIMEOUT = 600.0  # seconds for one program


def check(
    program: object,
    *arguments: Any,
    against: str | None = None,
    results: Sequence[Any] | None = None,
    budget: str | Budget | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    seed: int = 0,
    elided: str | None = None,
    **keywords: Any,
) -> Verdict:
    """Judge a compiler's results for a program: is each element one that a legal compiler gives?

    ``program`` is a JAX function, jitted or not, with its ``arguments`` and ``keywords`` (pytrees,
    keys, Python numbers): it runs on the user's device as JAX runs it, and every array of its
    results is judged by its path. So is a PyTorch function or module, whether torch.compile made it
    or not, by the operations of ATen that it is made of. Or it is a program as :func:`load` takes
    it, with the arrays of its parameters (without them: those recorded with it, else drawn from
    ``seed``), which the compiler ``against`` runs (``xla`` by default, or a command); or
    ``results``, the arrays that some compiler gave, are judged.

    ``budget`` says what that compiler may do to an instruction, by its name in
    ``interp.envelope.budget.BUDGETS``; by default that of the compiler. Returns a
    :class:`Verdict`, which is false if something is proven wrong. Raises Error if there is nothing
    to judge.
    """
    seed = whole_seed(seed)
    if objects.is_function(program):
        if against is not None or results is not None or elided is not None:
            raise ArgumentError("a function runs on its own device: give against, results or elided"
                                " with load(function, *arguments)")  # fmt: skip
        assert callable(program)
        # What a block of ho.checking or pytest --hlo-check would judge once more.
        with jax_calls.unobserved():
            traced = torch_functions.lowered(program, arguments, keywords)
            if traced is not None:
                return of_tensors(traced, budget=budget, seed=seed)
            static = static_argnums, static_argnames
            made = jax_functions.lower(program, arguments, keywords, *static)
            ran = made.text, made.arrays, made.results(), made.device, made.name
            return of_run(*ran, paths=made.paths, budget=budget, seed=seed)
    objects.require_no_keywords(keywords)
    if against is not None and results is not None:
        raise ArgumentError("results are judged as given: the compiler against would not run")
    if not isinstance(against, str | None):
        raise ArgumentError(f"against is a compiler's name, not {type(against).__name__}")
    found = objects.program_of(program, elided=elided)
    if results is not None and not arguments and found.arguments is None:
        _require_no_parameters(found.module)
    values = _values(found.module, arguments or found.arguments, seed)
    # Recorded results are those of the recorded arguments.
    given = found.results if results is None and not arguments else results
    exact = interp.evaluate(found.module, *values, seed=seed)
    if given is not None and against is None:
        used = budget_named(budget)
        examined = peer_verdicts.examined(
            recorded(found, given), used, found.module, found.text, values, exact=exact, seed=seed
        )
        made_by = "the compiler of these results"
    else:
        name = against or "xla"
        peer_verdicts.require(name)
        peer = peer_verdicts.peer(name)
        used, made_by = (
            budget_named(budget, peer.budget),
            peer_verdicts.title(name),
        )
        with peer.start(_TIMEOUT) as run:
            examined = peer_verdicts.examined(
                *(run, used, found.module, found.text, values),
                exact=exact,
                seed=seed,
                equivalent=peer.equivalent,
            )
    judged = verdicts.verdict(found.module.name, made_by, examined, (), found.module, values)
    return replace(judged, notes=(*found.notes, *judged.notes, *notes(used)))


def _require_no_parameters(module: Module) -> None:
    if module.entry.parameters:
        raise ArgumentError(
            f"results are those of certain arguments: give what {module.name} was run with"
        )


def _values(module: Module, given: Sequence[Any] | None, seed: int) -> tuple[Value, ...]:
    if given is None or (not given and module.entry.parameters):
        return drawing.from_seed(module, seed)
    for x in given:
        require_no_mask(x)
    return tuple(x if isinstance(x, tuple) else np.asarray(x) for x in given)


def of_run(
    text: str,
    arrays: tuple[Array, ...],
    results: Sequence[Array],
    device: Device,
    name: str,
    *,
    paths: Sequence[str] = (),
    budget: str | Budget | None = None,
    seed: int = 0,
) -> Verdict:
    """Judge the results that a program had on a device.

    On a CPU intermediate values are asked for, too; on other devices only the results are judged.
    """
    used = budget_named(budget, PLATFORMS.get(device.platform, ANY_PLATFORM))
    module = hlo.parse(text)
    hlo.verify(module)
    values: tuple[Value, ...] = arrays
    exact = interp.evaluate(module, *values, seed=seed)
    start = _started if device.platform == "cpu" else None
    with RecordedResults(text, results, start) as run:
        examined = peer_verdicts.examined(run, used, module, text, values, exact=exact, seed=seed)
    judged = verdicts.verdict(name, f"XLA ({device})", examined, paths, module, values)
    return replace(judged, notes=notes(used))


def of_tensors(
    traced: TracedFunction, *, budget: str | Budget | None = None, seed: int = 0
) -> Verdict:
    """Run a PyTorch function as its user does, and judge its results; where these alone cannot
    tell, on the values that its operations have one by one.
    """
    used = budget_named(budget, UNKNOWN)
    module = hlo.parse(traced.text)
    hlo.verify(module)
    exact = interp.evaluate(module, *traced.arrays, seed=seed)
    results = traced.results()
    with RecordedResults(traced.text, results, None) as run:
        examined = peer_verdicts.examined(
            run, used, module, traced.text, traced.arrays, exact=exact, seed=seed
        )
    examined = on_other_readings(
        examined, module, traced.arrays, used, seed, partial(_other_programs, traced)
    )
    examined = on_values_between(examined, traced, used, seed)
    judged = verdicts.verdict(
        traced.name, traced.peer, examined, traced.paths, module, traced.arrays
    )
    return replace(judged, notes=notes(used))


def _other_programs(traced: TracedFunction) -> Iterator[tuple[Module, Sequence[Array]]]:
    return ((hlo.parse(text), arrays) for text, arrays in traced.other_programs())


def _started() -> XLA:
    from fuzz.peers.xla import XLA  # starts processes, which nothing else here needs

    return XLA(timeout=_TIMEOUT)
