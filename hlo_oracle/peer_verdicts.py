"""Judge another compiler's results element by element: ``hlo check --against``.

The error envelope (:mod:`interp.envelope`) encloses every result of a compiler whose instructions
each stay within its budget; a result outside of it is proven wrong.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import hlo
from fuzz.peers.jaxlib_modules import compiler_name
from fuzz.peers.plugin import Plugin, is_plugin, parsed
from hlo.errors import ArgumentError, Unsupported
from hlo.module import Module
from hlo.values import Array, Value, arrays_of, placed, placed_arrays
from hlo_oracle.required_packages import require_package
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.judgement import Judge
from interp.envelope.nested_values import FirstOutside
from interp.envelope.random_rounding import DEVIATIONS
from interp.envelope.trying import Found, Output
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, Verdict

if TYPE_CHECKING:
    from fuzz.peers.command import Command
    from fuzz.peers.pjrt import PJRT
    from fuzz.peers.synchronous_form import Forms
    from fuzz.peers.xla import XLA, Answer

_MOST_LINES = 8
_TIMEOUT = 600.0  # seconds for one program
_TOKEN = "a parameter is a token, which arrays alone cannot give: have after-all() make it"
TRIALS = 24  # of programs with values in between, until they give the results that are judged


class Peer(NamedTuple):
    """A compiler to judge: a function that starts it, its budget, the packages it needs, the extra
    that installs them, and the equivalent forms of a program that it refuses."""

    start: Callable[[float], XLA | PJRT | Command]  # with the seconds that one program may take
    budget: Budget
    needs: tuple[str, ...]
    extra: str
    equivalent: Forms | None = None


def _xla(timeout: float) -> XLA:
    from fuzz.peers.xla import XLA  # starts processes, which nothing else here needs

    return XLA(timeout=timeout)


def _in_stablehlo(module: Module) -> Iterable[tuple[Module, str]]:
    from fuzz.peers.synchronous_form import equivalent_forms

    return equivalent_forms(module)


PEERS = {"xla": Peer(_xla, XLA_CPU, ("jaxlib",), "jax", _in_stablehlo)}
METAVAR = "|".join((*PEERS, "pjrt:PLUGIN.so", "COMMAND"))
HELP = (
    f"{', '.join(PEERS)}; a plugin of PJRT: pjrt:PLUGIN.so,KEY=VALUE,... with options of its client"
    " (budget=NAME: what it may do); or a command: COMMAND PROGRAM.hlo ARGUMENTS.npz RESULTS.npz"
)


def peer(name: str) -> Peer:
    """Find a compiler: by name, a PJRT plugin, or a command; ArgumentError if it is none of
    these."""
    if name in PEERS:
        return PEERS[name]
    if is_plugin(name):
        plugin = parsed(name)
        start = partial(_pjrt, plugin)
        return Peer(start, plugin.budget, ("pypjrt", "jaxlib"), "pjrt", _in_stablehlo)
    try:
        words = shlex.split(name)
    except ValueError as error:
        raise ArgumentError(f"--against {name}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise ArgumentError(f"--against {name}: neither {', '.join(PEERS)} nor a command")
    return Peer(partial(_command, words), UNKNOWN, (), "")


def title(name: str) -> str:
    """Name a peer in a sentence: XLA with the version of jaxlib, a command or a plugin as it is
    given."""
    return compiler_name() if name in PEERS else name


def label(name: str) -> str:
    """Shorten a peer's name to a column title."""
    if name in PEERS:
        return name.upper()
    return "PJRT" if is_plugin(name) else Path(shlex.split(name)[0]).name[:8]


def _pjrt(plugin: Plugin, timeout: float) -> PJRT:
    from fuzz.peers.pjrt import PJRT  # which needs pypjrt

    return PJRT(plugin, timeout)


def _command(words: Sequence[str], timeout: float) -> Command:
    from fuzz.peers.command import Command

    return Command(words, timeout)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome for a program. ``counts``: elements by verdict. ``refused``: why there are no
    results. ``instead``: which other program ran, if not this one. ``crash``: the peer crashed or
    hung. ``outside`` and ``undetermined``: lines of evidence. ``unlikely``: a line per output with
    undetermined elements beyond 40 standard deviations of random rounding, which proves nothing."""

    compile: float = 0.0
    run: float = 0.0
    counts: dict[str, int] | None = None
    outside: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    unlikely: tuple[str, ...] = ()
    refused: str | None = None
    crash: str | None = None
    instead: str | None = None


def require(name: str) -> None:
    """Raise Error if a peer is not installed, or a plugin finds no device."""
    wanted = peer(name)
    for package in wanted.needs:
        require_package(f"--against {name}", package, wanted.extra)
    if is_plugin(name):
        from fuzz.peers.pjrt import facts

        facts(parsed(name))


def judge(
    name: str,
    module: Module,
    text: str,
    values: tuple[Value, ...],
    *,
    exact: Value,
    seed: int,
    budget: Budget | None = None,
) -> Judgement:
    """Run an installed peer (:func:`require`) on a program and judge its results against the exact
    ones, by its own budget unless one is given. Where the envelope alone cannot tell, the peer is
    also asked for intermediate values."""
    other = peer(name)
    used = budget or other.budget
    with other.start(_TIMEOUT) as run:
        given = used, module, text, values
        return peer_judgement(run, *given, exact=exact, seed=seed, equivalent=other.equivalent)


@dataclass(frozen=True, slots=True)
class Examination:
    """A peer's run of a program: ``found`` if there are results to judge, else why not, as in
    :class:`Judgement`. ``instead`` says which other program ran in place of one that was refused,
    and why. ``open_why`` says why the program has several right results, so that nothing
    is proven wrong; ``openings`` where the envelope opens; ``suspects`` are steps that seem wrong,
    of a run that proves nothing."""

    compile: float = 0.0
    run: float = 0.0
    found: Found | None = None
    open_why: str | None = None
    openings: tuple[str, ...] = ()
    refused: str | None = None
    crash: str | None = None
    instead: str | None = None
    suspects: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether an error is proven: in an element of a result, or a step on the peer's own
        values."""
        return self.found is not None and self.open_why is None and _is_wrong(self.found)


Run = Callable[[str, Sequence[Array]], "Answer"]  # a program's text on its arrays


def examined(
    run: Run,
    budget: Budget,
    module: Module,
    text: str,
    values: tuple[Value, ...],
    *,
    exact: Value,
    seed: int,
    equivalent: Forms | None = None,
) -> Examination:
    """Run a started peer on a program, unless its behaviour is undefined, and judge its results.
    Where the envelope alone cannot tell, the peer is also asked for intermediate values.
    ``equivalent`` yields forms of a program that the peer refuses, of which it may take one."""
    from fuzz.judge.undefined_behaviour import damaging, left_open, undefined

    arrays = list(arrays_of(values))
    why = damaging(module, values)
    if why is not None:
        return Examination(refused=f"the program means nothing: {why}")
    answer, instead = run(text, arrays), None
    if answer.error is not None and equivalent is not None:
        module, answer, instead = _asked_again(run, module, arrays, answer, equivalent)
    if answer.crash is not None:
        why = undefined(module, values)
        if why is not None:
            return Examination(refused=f"the program means nothing: {why}")
        return Examination(crash=_first_line(answer.crash))
    if answer.outputs is None:
        takes_token = any(leaf is None for _, leaf in placed(values))
        return Examination(refused=_TOKEN if takes_token else _first_line(answer.error or ""))
    right = list(placed_arrays(exact))
    judging = Judge(module, values, right, peer=budget, seed=seed, trials=TRIALS)
    found = judging.judged(answer.outputs, lambda module: run(hlo.format(module), arrays).outputs)
    # Whether several results are right is asked only where one seems wrong.
    why = left_open(module, values) if _is_wrong(found) else None
    openings = judging.enclosed.openings if found.counts.get(UNDETERMINED) else ()
    opened = tuple(map(str, openings[:_MOST_LINES]))
    disorder = undefined(module, values) if found.counts.get(UNDETERMINED) else None
    opened = opened if disorder is None else (disorder, *opened)
    return Examination(answer.compile, answer.run, found, why, opened, instead=instead)


def _asked_again(
    run: Run,
    module: Module,
    arrays: Sequence[Array],
    refusal: Answer,
    equivalent: Forms,
) -> tuple[Module, Answer, str | None]:
    """Run an equivalent program in place of one that was refused; return the program that counts,
    the answer, and, if it is the other one, which it is and why."""
    from fuzz.peers.synchronous_form import asked_again

    other, answer, form = asked_again(run, module, arrays, refusal, equivalent)
    if answer.outputs is None:
        return module, refusal, None
    why = _first_line(refusal.error or "")
    return other, answer, f"refused as it is ({why}): judged {form}"


def peer_judgement(
    run: Run,
    budget: Budget,
    module: Module,
    text: str,
    values: tuple[Value, ...],
    *,
    exact: Value,
    seed: int,
    equivalent: Forms | None = None,
) -> Judgement:
    """Judge a started peer as :func:`judge` does. A program with undefined behaviour is not run,
    and for one with several right results nothing is proven wrong."""
    given = budget, module, text, values
    one = examined(run, *given, exact=exact, seed=seed, equivalent=equivalent)
    if one.found is None:
        return Judgement(refused=one.refused, crash=one.crash)
    counts = one.found.counts
    if one.open_why is not None:
        counts[UNDETERMINED] = counts.get(UNDETERMINED, 0) + counts[OUTSIDE]
        counts[OUTSIDE] = 0
        why = (f"the result is open: {one.open_why}",)
        return Judgement(one.compile, one.run, counts, (), why, instead=one.instead)
    lines = tuple(evidence(one.found))[:_MOST_LINES]
    hints = tuple(_hints(one.found))[:_MOST_LINES]
    told = lines, one.openings, hints
    return Judgement(one.compile, one.run, counts, *told, instead=one.instead)


def _is_wrong(found: Found) -> bool:
    """Test for an element or a step that is outside."""
    return bool(found.counts.get(OUTSIDE)) or bool(found.wrong)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "no reason given")[:200]


def evidence(found: Found) -> Iterator[str]:
    """Yield a line for each illegal step and for each output with elements outside."""
    if found.mismatch is not None:
        yield found.mismatch
    for step in found.wrong:
        place = f"%{step.instruction.name} = {step.instruction.opcode}"
        if step.why:
            yield f"{place}: {step.why}"
        else:
            yield _evidence(place, step.verdict, step.actual, None, step.legal)
    yield from filter(None, map(output_evidence, found.outputs))


def output_evidence(output: Output) -> str:
    """Format the evidence of one output; empty if none of its elements is outside."""
    if output.verdict.first_outside is None:
        return ""
    place = output.place or "result"
    return _evidence(place, output.verdict, output.actual, output.exact, output.legal)


def nested_evidence(first: FirstOutside) -> str:
    """Format the evidence of the first illegal value in loops, branches and calls."""
    return _evidence(f"%{first.instruction}", first.verdict, first.actual, None, first.legal)


def _hints(found: Found) -> Iterator[str]:
    """Yield a line for each output with undetermined elements beyond random rounding."""
    for output in found.outputs:
        if output.unlikely is None:
            continue
        index, likely = output.unlikely.first, output.unlikely.likely
        yield (
            f"unlikely, no proof: {output.place or 'result'}: {output.unlikely.count} undetermined"
            f" beyond {DEVIATIONS:g} standard deviations of random rounding, first at"
            f" [{','.join(map(str, index))}]: {output.actual[index]!s}, where"
            f" {output.exact[index]!s} is exact and {likely.low[index]!s} to"
            f" {likely.high[index]!s} likely"
        )


def _evidence(
    place: str, verdict: Verdict, actual: Array, exact: Array | None, legal: Enclosure
) -> str:
    index = verdict.first_outside
    assert index is not None
    nan = " or NaN" if legal.nan[index] else ""
    right = "" if exact is None else f"{exact[index]!s} is exact and "
    return (
        f"{place}: {verdict.counts[OUTSIDE]} of {actual.size} outside, first at"
        f" [{','.join(map(str, index))}]: {actual[index]!s}, where {right}"
        f"{legal.low[index]!s} to {legal.high[index]!s}{nan} legal"
    )


def require_one_rank(ranks: int) -> None:
    """Raise Unsupported for programs of several ranks, as peers run one."""
    if ranks > 1:
        raise Unsupported(f"--against runs one rank, not {ranks}")


def described(counts: Sequence[tuple[str, int]]) -> str:
    """Format counts: ``64 equal, 3 within``."""
    return ", ".join(f"{count} {kind}" for kind, count in counts if count)
