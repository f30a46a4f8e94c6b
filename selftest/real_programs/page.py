"""Write the page of evidence on real programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Runs = Mapping[str, Any]  # by platform, as the session tells


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a program in each mode; ``same_bits``: whether exact C and the interpreter
    agree in all bits, None if it is not known."""

    name: str
    title: str
    steps: int
    fast: Runs
    exact: Runs
    same_bits: bool | None
    verdicts: Mapping[str, str]
    faults: Sequence[str]


def largest_difference(runs: Runs) -> float | None:
    """Compute the largest difference between two platforms, relative to the largest number of its
    column; None if there is nothing to compare."""
    if not runs:
        return None
    ours, theirs = (runs[platform]["seen"] for platform in ("hlo_oracle", "cpu"))
    columns = list(zip(zip(*ours), zip(*theirs)))
    return max((_difference(*column) for column in columns), default=None)


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    scale = max(map(abs, theirs)) or 1.0
    return max(abs(x - y) for x, y in zip(ours, theirs, strict=True)) / scale


def markdown(results: Sequence[Result]) -> str:
    """Format the page."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Sequence[Result]) -> Iterator[str]:
    yield "# Real programs on this backend"
    yield ""
    yield (
        "`python -m selftest.real_programs`: the programs of `examples/jax`, each of which runs as"
        " it is with `JAX_PLATFORMS=hlo_oracle` and with `JAX_PLATFORMS=cpu`."
    )
    yield ""
    yield "| program | steps | fast | exact | exact and interp |"
    yield "|---|---|---|---|---|"
    for one in results:
        shown = [_shown(largest_difference(runs)) for runs in (one.fast, one.exact)]
        same = {True: "same bits", False: "DIFFERENT", None: ""}[one.same_bits]
        yield f"| {one.name}: {one.title} | {one.steps} | {' | '.join(shown)} | {same} |"
    yield ""
    yield (
        "`fast`, `exact`: the largest difference of what a program prints from XLA:CPU's numbers"
        " (losses, energies, means of draws), relative to the largest of them. Steps build on each"
        " other, so that a rounding that differs grows where the program is chaotic."
    )
    yield from ("", "| program | start and first step | XLA:CPU | a step | XLA:CPU |")
    yield "|---|---|---|---|---|"
    for one in results:
        cells = [_seconds(one.fast, what, of) for what in ("first", "least") for of in _BOTH]
        yield f"| {one.name} | {' | '.join(cells)} |"
    yield ""
    yield (
        "Times are those of `fast`; of a step the least, the two platforms in turn in one process,"
        " with the time of all processors in brackets. Libraries of earlier runs are in the cache."
    )
    yield from _notes(results)


_BOTH = ("hlo_oracle", "cpu")


def _notes(results: Sequence[Result]) -> Iterator[str]:
    judged = [one for one in results if one.verdicts]
    if judged:
        yield from ("", "## The first step, judged", "")
    for one in judged:
        told = "; ".join(f"{of}: {verdict}" for of, verdict in one.verdicts.items())
        yield f"* {one.name}: {told}"
    interpreted = [(one.name, why) for one in results for why in _interpreted(one.fast)]
    if interpreted:
        yield from ("", "## Interpreted", "")
    for name, why in interpreted:
        yield f"* {name}: {why}"
    if any(one.faults for one in results):
        yield from ("", "## Failed", "")
    for one in results:
        for fault in one.faults:
            yield f"* {one.name}: {fault}"


def _interpreted(runs: Runs) -> list[str]:
    return list(dict.fromkeys(runs["hlo_oracle"]["interpreted"])) if runs else []


def _shown(difference: float | None) -> str:
    return "" if difference is None else f"{difference:.1e}" if difference else "equal"


def _seconds(runs: Runs, what: str, platform: str) -> str:
    if not runs:
        return ""
    run = runs[platform]
    if what == "first":
        return f"{run['first']:.1f} s"
    return f"{1000 * run['least']:.2f} ms ({1000 * run['processor']:.2f})"
