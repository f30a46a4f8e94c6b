"""A process of a campaign: chunk after chunk, until there are no more or time is up."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fuzz.campaign import finding
from fuzz.campaign.chunk import examined
from fuzz.campaign.directory import Corpus
from fuzz.campaign.finding import Origin
from fuzz.campaign.plan import Plan, cases
from fuzz.oracles import Difference
from fuzz.oracles.isolation import by_name, narrower
from fuzz.oracles.oracle import Property
from fuzz.reducer.search import Case


@contextmanager
def opened(plan: Plan) -> Iterator[Mapping[str, Property]]:
    """The properties of a plan, each where a crash does no harm."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(by_name(name)) for name in plan.oracles}


def work(directory: Path, plan: Plan, numbers: Iterable[int], end: float, reducing: float) -> None:
    """Do those chunks that nobody else does, until the time ``end``; reduce each finding for at
    most ``reducing`` seconds."""
    corpus = Corpus(directory, plan)
    with opened(plan) as properties:
        for number in corpus.claimed(numbers):
            drawn = cases(plan, number)
            found = examined(drawn, properties)
            for suspect in found.suspects:
                origin = Origin(suspect.oracle, plan.seed, number, suspect.program)
                case = suspect.found.case or drawn[suspect.program]
                examine(corpus, origin, suspect.found, case, properties[suspect.oracle], reducing)
            corpus.done(number, found)
            if time.time() > end or _is_left():
                return


def _is_left() -> bool:
    """Whether the process that started this one is gone: nobody wants the campaign any more."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()


def examine(
    corpus: Corpus, origin: Origin, found: Difference, case: Case, of: Property, reducing: float
) -> None:
    """Reduce and keep a finding that is not known. One that is not seen again in the program alone
    is kept as it is."""
    if finding.is_known(corpus.findings, origin.oracle, found.kind, case.module):
        return
    with narrower(found, of) as asked:
        small = finding.reduced(asked, case, found.kind, reducing)
        (outcome,) = asked([small])
    if isinstance(outcome, Difference):
        finding.keep(corpus.findings, origin, outcome, small, case)
    else:
        finding.keep(corpus.findings, origin, found, case, case)


def main(words: Sequence[str]) -> None:
    """``python -m fuzz.campaign.worker DIRECTORY FIRST STOP REDUCING``: those chunks of its
    campaign."""
    directory, first, stop, reducing = Path(words[0]), int(words[1]), int(words[2]), float(words[3])
    work(directory, Corpus.plan_of(directory), range(first, stop), float("inf"), reducing)


if __name__ == "__main__":
    main(sys.argv[1:])
