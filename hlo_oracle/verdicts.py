"""The verdict on a program's results, by the path of each result: the value of ``check``."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hlo.errors import Error
from hlo.module import Module
from hlo.values import Value
from hlo_oracle import peer_verdicts
from hlo_oracle.peer_verdicts import Examination
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of the results: its path in the pytree (or ``{1}`` in a tuple), its type and sizes,
    the number of elements by verdict, and the evidence for elements outside."""

    path: str
    type: str
    counts: dict[str, int]
    evidence: str = ""

    @property
    def kind(self) -> str:
        """The worst verdict of its elements."""
        kinds = (OUTSIDE, UNDETERMINED, WITHIN)
        return next((kind for kind in kinds if self.counts.get(kind)), EQUAL)


@dataclass(frozen=True, repr=False, eq=False)
class Verdict:
    """The verdict on one run of a program. It is true unless an error is proven.

    ``what`` names the program, ``peer`` the compiler that ran it. ``evidence`` has a line for each
    proof, and for each reason why there is no verdict. ``module`` and ``arguments`` are what was
    judged.
    """

    what: str
    peer: str
    leaves: tuple[Leaf, ...]
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    module: Module | None = field(default=None)
    arguments: tuple[Value, ...] = ()

    def __bool__(self) -> bool:
        return not self.outside

    @property
    def outside(self) -> int:
        """The number of elements proven wrong."""
        return self._count(OUTSIDE)

    @property
    def undetermined(self) -> int:
        """The number of elements without a verdict."""
        return self._count(UNDETERMINED)

    @property
    def within(self) -> int:
        """The number of elements that differ from the exact ones, but are legal."""
        return self._count(WITHIN)

    @property
    def equal(self) -> int:
        """The number of elements equal to the exact ones."""
        return self._count(EQUAL)

    def _count(self, kind: str) -> int:
        return sum(leaf.counts.get(kind, 0) for leaf in self.leaves)

    @property
    def line(self) -> str:
        """The verdict in one line."""
        counts = peer_verdicts.described([(kind, self._count(kind)) for kind in KINDS])
        if self.outside:
            return f"OUTSIDE: {self.what} on {self.peer} is proven wrong: {counts}"
        if self.undetermined:
            return f"undetermined: {self.what} on {self.peer}: {counts}"
        return f"legal: {self.what} on {self.peer}: {counts or 'no elements'}"

    def __repr__(self) -> str:
        return f"<Verdict {self.line}>"

    def __str__(self) -> str:
        return "\n".join((self.line, *(f"    {line}" for line in (*self.evidence, *self.notes))))

    def table(self) -> str:
        """Return one row per result array: path, type, and counts by verdict."""
        rows: list[tuple[str, ...]] = [("result", "type", *KINDS)]
        rows += [
            (leaf.path or "result", leaf.type, *(str(leaf.counts.get(k, 0)) for k in KINDS))
            for leaf in self.leaves
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if n < 2 else cell.rjust(width)
                for n, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        """Format a table for notebooks."""

        def row(cells: Sequence[str], tag: str) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        body = "".join(
            row([leaf.path or "result", leaf.type, leaf.kind, leaf.evidence], "td")
            for leaf in self.leaves
        )
        head = row(["result", "type", "verdict", "evidence"], "th")
        return f"<p><b>{html.escape(self.line)}</b></p><table>{head}{body}</table>"

    def report(self, directory: str | Path, seconds: float = 300.0) -> Path:
        """Reduce the failing program and write a report; return the archive's path.

        The failure is reproduced with XLA:CPU. Raises Error if it has none.
        """
        from hlo_oracle import reporting

        if self.module is None:
            raise Error("nothing was run: there is nothing to report")
        given = reporting.Reduction(seconds=seconds)
        return reporting.report(self.module, self.arguments, Path(directory), "xla", given).archive


def verdict(
    what: str,
    peer: str,
    examined: Examination,
    paths: Sequence[str],
    module: Module,
    arguments: tuple[Value, ...],
) -> Verdict:
    """Make the verdict of an examination; ``paths`` name its outputs, in order.

    Raises Error if the peer crashed or did not take the program.
    """
    found = examined.found
    if found is None:
        why = examined.crash or examined.refused or "no results"
        raise Error(f"{what} on {peer}: nothing to judge: {why}")
    if len(paths) == len(found.outputs):
        named = (replace(x, place=p) for x, p in zip(found.outputs, paths, strict=True))
        found = replace(found, outputs=tuple(named))
    is_open = examined.open_why is not None
    evidence = [] if is_open else [*peer_verdicts.evidence(found)]
    if is_open:
        evidence.append(f"the result is open: {examined.open_why}")
    leaves = [] if found.outputs else [Leaf("", "", found.counts)]
    for output in found.outputs:
        counts = dict(output.verdict.counts)
        if is_open:
            counts[UNDETERMINED] += counts[OUTSIDE]
            counts[OUTSIDE] = 0
        line = "" if is_open else peer_verdicts.output_evidence(output)
        name = f"{output.actual.dtype}{list(output.actual.shape)}"
        leaves.append(Leaf(output.place, name, counts, line))
    if found.wrong and not is_open and not any(leaf.counts.get(OUTSIDE) for leaf in leaves):
        # A step on the peer's own values is wrong: proof enough, though its results are legal.
        steps = {**dict.fromkeys(KINDS, 0), OUTSIDE: len(found.wrong)}
        leaves.append(Leaf("(a step in between)", "", steps))
    if any(leaf.counts.get(UNDETERMINED) for leaf in leaves):
        evidence.extend(examined.openings)
    evidence.extend(examined.suspects)
    told = () if examined.instead is None else (examined.instead,)
    return Verdict(what, peer, tuple(leaves), tuple(evidence), told, module, arguments)
