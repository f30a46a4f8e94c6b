"""Judge the results of each compiler against the interpreter's, and cache verdicts.

A verdict depends on the program, its arguments, the bits of the results, and how they are judged,
so it is cached by the hash of these: what has been judged once is not judged again until a result
or the interpreter changes. Where the envelope takes longer than it may, the verdict is the distance
from the interpreter's results; where that takes too long, from XLA's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

import interp
from backend_c.native.cache import default_directory
from bench.speed import catalogue
from bench.speed.process import Process
from bench.speed.session import Place
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN

_MODULE = "bench.speed.result_judge"
_WITNESS = "xla"
_COMPARE = 600.0  # seconds to read and compare two results


@dataclass(frozen=True, slots=True)
class Verdict:
    """``text`` for the table; ``is_wrong``: proven wrong. ``seconds`` is the time limit that
    judging exceeded, None if it did not."""

    text: str
    is_wrong: bool = False
    seconds: float | None = None


class Memory:
    """A cache of verdicts by key, in a file that is appended to."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or default_directory(os.environ) / "bench_verdicts.jsonl"
        self._known: dict[str, Verdict] = {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                entry = json.loads(line)
                key = entry.pop("key")
                self._known[key] = Verdict(**entry)

    def get(self, key: str, seconds: float) -> Verdict | None:
        """Return a cached verdict; None if there is none, or more ``seconds`` may give a better
        one."""
        found = self._known.get(key)
        if found is None or (found.seconds is not None and found.seconds < seconds):
            return None
        return found

    def add(self, key: str, verdict: Verdict) -> None:
        """Store a verdict."""
        self._known[key] = verdict
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps({"key": key, **asdict(verdict)}) + "\n")


def verdicts(
    program: catalogue.Program,
    peers: Sequence[str],
    place: Place,
    memory: Memory,
    seconds: float,
) -> dict[str, Verdict]:
    """Judge the compilers' results in a place, each question within ``seconds``."""
    judge = judge_digest()
    keys = {peer: key(program, peer, place, judge) for peer in peers}
    found = {peer: memory.get(known, seconds) for peer, known in keys.items()}
    missing = [peer for peer in peers if found[peer] is None]
    for peer, verdict in _judged(program, missing, place, seconds).items():
        memory.add(keys[peer], verdict)
        found[peer] = verdict
    return {peer: verdict for peer, verdict in found.items() if verdict is not None}


@cache
def judge_digest(package: ModuleType = interp) -> str:
    """Hash the source of the judge: the interpreter, its envelope included."""
    (folder,) = package.__path__
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def key(program: catalogue.Program, peer: str, place: Place, judge: str) -> str:
    """Hash all that a verdict depends on."""
    digest = hashlib.sha256(f"{peer} {judge}".encode())
    for path in (Path(program.path), place.arguments, place.results(peer)):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:40]


def _judged(
    program: catalogue.Program, peers: Sequence[str], place: Place, seconds: float
) -> dict[str, Verdict]:
    """Ask a judging process; one that takes too long is killed, and the next question gets a new
    one."""
    found: dict[str, Verdict] = {}
    left = list(peers)
    distances: dict[str, float] = {}
    while left:
        with Process(_MODULE) as process:
            answer = process.ask({"do": "interpret", **asdict(program)}, seconds)
            if "error" in answer:
                return found | _beside(program, left, place, answer["error"], seconds)
            for peer in left:
                results = {"results": str(place.results(peer))}
                if peer not in distances:
                    told = process.ask({"do": "compare", **results}, seconds)
                    distances[peer] = told.get("distance", float("inf"))
                if distances[peer] == 0.0 or peer == "exact":
                    found[peer] = of_distance(distances[peer], is_exact=True)
                    continue
                told = process.ask({"do": "judge", "peer": peer, **results}, seconds)
                if "counts" in told:
                    found[peer] = of_counts(told["counts"], distances[peer])
                    continue
                unjudged = of_distance(distances[peer], is_exact=False, seconds=seconds)
                found[peer] = replace(unjudged, text=f"{unjudged.text} ({told['error']})")
                break
        left = [peer for peer in left if peer not in found]
    return found


def _beside(
    program: catalogue.Program, peers: Sequence[str], place: Place, why: str, seconds: float
) -> dict[str, Verdict]:
    """Compare results with XLA's if the interpreter gives none, for the reason ``why``."""
    found = dict.fromkeys(peers, Verdict(f"not judged: {why}", seconds=seconds))
    if not place.results(_WITNESS).exists():
        return found
    others = str(place.results(_WITNESS))
    with Process(_MODULE) as process:
        for peer in [one for one in peers if one != _WITNESS]:
            question = {"program": program.path, "results": str(place.results(peer))}
            told = process.ask({"do": "beside", **question, "others": others}, _COMPARE)
            if "distance" in told:
                text = f"not judged, off by {told['distance']:.0e} from XLA's"
                found[peer] = Verdict(text, told["distance"] == float("inf"), seconds)
    return found


def of_distance(distance: float, *, is_exact: bool, seconds: float | None = None) -> Verdict:
    """Make the verdict on results that must be equal, or that the envelope could not judge."""
    if distance == 0.0:
        return Verdict("equal")
    text = f"off by {distance:.0e}"
    return Verdict(text, is_exact or distance == float("inf"), None if is_exact else seconds)


def of_counts(counts: Mapping[str, int], distance: float = 0.0) -> Verdict:
    """Make the verdict from the numbers of elements by verdict; with the distance, if some are
    undetermined or outside."""
    for kind in (OUTSIDE, UNDETERMINED):
        if counts.get(kind):
            total = sum(counts.values())
            text = f"{counts[kind]} of {total} {kind}, off by {distance:.0e}"
            return Verdict(text, kind == OUTSIDE)
    return Verdict(WITHIN if counts.get(WITHIN) else EQUAL)
