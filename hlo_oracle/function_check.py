"""Judge one run of a program, usually of a function on the user's own device: :func:`check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import hlo
import interp
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.seeds import whole_seed
from hlo.values import Array, Value
from hlo_oracle import arguments as drawing
from hlo_oracle import option_types, peer_verdicts, verdicts
from hlo_oracle.frontends import jax_calls, jax_functions
from hlo_oracle.frontends import torch as torch_functions
from hlo_oracle.frontends.jax_functions import Device
from hlo_oracle.loading import objects
from hlo_oracle.plurals import counted
from hlo_oracle.progress_line import ProgressLine
from hlo_oracle.recorded_results import RecordedResults, budget_named, notes, recorded
from hlo_oracle.types_as_written import on_other_readings
from hlo_oracle.values_between import on_values_between
from hlo_oracle.verdicts import Verdict
from interp.envelope.budget import ANY_PLATFORM, PLATFORMS, UNKNOWN, Budget

if TYPE_CHECKING:
    from fuzz.peers.xla import XLA
    from hlo_oracle.frontends.torch.functions import TracedFunction

_TIMEOUT = 600.0  # seconds for one program
_JUDGING = "judging the results"
_QUIET = 3.0  # seconds before progress is shown: most checks have ended by then


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
    progress: str = "auto",
    **keywords: Any,
) -> Verdict:
    """Judge a compiler's results for a program: is each element one that a legal compiler gives?

    ``program`` is a JAX function, jitted or not, with its ``arguments`` and ``keywords`` (pytrees,
    keys, Python numbers): it runs on the user's device as JAX runs it, and every array of its
    results is judged by its path. So is a PyTorch function or module, whether torch.compile made it
    or not, by the operations of ATen that it is made of. Or it is a program as :func:`load` takes
    it, with the arrays of its parameters, in order or one mapping of their names to arrays (without
    them: those recorded with it, else drawn from ``seed``), which the compiler ``against`` runs
    (``xla`` by default, or a command); or ``results``, the arrays that some compiler gave, are
    judged.

    ``budget`` says what that compiler may do to an instruction, by its name in
    ``interp.envelope.budget.BUDGETS``; by default that of the compiler. A check of more than a few
    seconds shows on standard error what it is at, if that is a terminal (``progress="auto"``), in
    any case, line by line (``"plain"``), or not (``"none"``). Returns a
    :class:`Verdict`, which is false if something is proven wrong. Raises Error if there is nothing
    to judge.
    """
    unset = {"against": against, "results": results, "budget": budget, "elided": elided}
    own: dict[str, tuple[object, object]] = {name: (value, None) for name, value in unset.items()}
    objects.require_unambiguous(program, **own, seed=(seed, 0), progress=(progress, "auto"))
    seed, line = whole_seed(seed), _progress_line(progress)
    if objects.is_function(program):
        if against is not None or results is not None or elided is not None:
            raise ArgumentError("a function runs on its own device: give against, results or elided"
                                " with load(function, *arguments)")  # fmt: skip
        assert callable(program)
        static = static_argnums, static_argnames
        called = program, arguments, keywords, static
        return _of_function(*called, budget=budget, seed=seed, line=line)
    objects.require_no_keywords(keywords)
    if against is not None and results is not None:
        raise ArgumentError("results are judged as given: the compiler against would not run")
    if not isinstance(against, str | None):
        raise ArgumentError(f"against is a compiler's name, not {type(against).__name__}")
    with line.phase("reading the program"):
        found = objects.program_for(program, arguments, elided)
    if results is not None and not arguments and found.arguments is None:
        _require_no_parameters(found.module)
    values = _values(found.module, arguments or found.arguments, seed)
    # Recorded results are those of the recorded arguments.
    given = found.results if results is None and not arguments else results
    exact = _evaluated(found.module, values, seed, line)
    if given is not None and against is None:
        used = budget_named(budget)
        with line.phase(_JUDGING):
            examined = peer_verdicts.examined(
                *(recorded(found, given), used, found.module, found.text, values),
                exact=exact,
                seed=seed,
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
        with line.phase(f"asking {made_by}, and {_JUDGING}"), peer.start(_TIMEOUT) as run:
            examined = peer_verdicts.examined(
                *(run, used, found.module, found.text, values),
                exact=exact,
                seed=seed,
                equivalent=peer.equivalent,
            )
    judged = verdicts.verdict(found.module.name, made_by, examined, (), found.module, values)
    return replace(judged, notes=(*found.notes, *judged.notes, *notes(used)))


def _of_function(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    static: tuple[int | Sequence[int] | None, str | Sequence[str] | None],
    *,
    budget: str | Budget | None,
    seed: int,
    line: ProgressLine,
) -> Verdict:
    """Run a function of JAX or PyTorch as its user does, and judge its results."""
    # Within, what a block of ho.checking or pytest --hlo-check would judge once more.
    with jax_calls.unobserved():
        with line.phase("lowering the function"):
            traced = torch_functions.lowered(function, arguments, keywords)
        if traced is not None:
            return of_tensors(traced, budget=budget, seed=seed, line=line)
        with line.phase("lowering the function, and running it"):
            made = jax_functions.lower(function, arguments, keywords, *static)
            ran = made.text, made.arrays, made.results(), made.device, made.name
        return of_run(*ran, paths=made.paths, budget=budget, seed=seed, line=line)


def _progress_line(mode: str) -> ProgressLine:
    """Make the line of a check; ArgumentError for an unknown mode."""
    if mode not in option_types.PROGRESS:
        known = ", ".join(map(repr, option_types.PROGRESS))
        raise ArgumentError(f"progress={mode!r}: one of {known}")
    return ProgressLine(mode, after=_QUIET)


def _evaluated(module: Module, values: Sequence[Value], seed: int, line: ProgressLine) -> Value:
    """Evaluate a program exactly, and show that."""
    with line.phase(f"evaluating {counted(module.instruction_count, 'instruction')} exactly"):
        found: Value = interp.evaluate(module, *values, seed=seed)
    return found


def _require_no_parameters(module: Module) -> None:
    if module.entry.parameters:
        raise ArgumentError(
            f"results are those of certain arguments: give what {module.name} was run with"
        )


def _values(module: Module, given: Sequence[Any] | None, seed: int) -> tuple[Value, ...]:
    if given is None or (not given and module.entry.parameters):
        return drawing.from_seed(module, seed)
    return drawing.of_caller(module, given)


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
    line: ProgressLine | None = None,
) -> Verdict:
    """Judge the results that a program had on a device.

    On a CPU intermediate values are asked for, too; on other devices only the results are judged.
    """
    line = line or ProgressLine("none")
    used = budget_named(budget, PLATFORMS.get(device.platform, ANY_PLATFORM))
    module = hlo.parse(text)
    hlo.verify(module)
    values: tuple[Value, ...] = arrays
    exact = _evaluated(module, values, seed, line)
    start = _started if device.platform == "cpu" else None
    with line.phase(_JUDGING), RecordedResults(text, results, start) as run:
        examined = peer_verdicts.examined(run, used, module, text, values, exact=exact, seed=seed)
    judged = verdicts.verdict(name, f"XLA ({device})", examined, paths, module, values)
    return replace(judged, notes=notes(used))


def of_tensors(
    traced: TracedFunction,
    *,
    budget: str | Budget | None = None,
    seed: int = 0,
    line: ProgressLine | None = None,
) -> Verdict:
    """Run a PyTorch function as its user does, and judge its results; where these alone cannot
    tell, on the values that its operations have one by one.
    """
    line = line or ProgressLine("none")
    used = budget_named(budget, UNKNOWN)
    module = hlo.parse(traced.text)
    hlo.verify(module)
    exact = _evaluated(module, traced.arrays, seed, line)
    with line.phase("running the function"):
        results = traced.results()
    with line.phase(_JUDGING):
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
