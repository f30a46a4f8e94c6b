"""Store the findings of a campaign: deduplicated and counted, in one folder each."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.campaign import atomic_files
from fuzz.campaign.file_locks import locked
from fuzz.campaign.subject import Finding, Suspect, Told
from fuzz.peers.crash import is_place

FILE = "finding.json"
_ISOLATED, _TIMES = "isolated", "times"
UNREDUCED = "unreduced"  # in FILE: it waits for its reduction

_CRASH, _HANG = "crash: ", "hang: "
_MOST_AT_A_PLACE = 3  # findings: what is left of one defect may have other opcodes each time


def is_unplaced(kind: str) -> bool:
    """Return whether a kind is a crash or a hang without a place, which different defects share: a
    signal, an exit status, or generated code, where damaged memory of any cause shows."""
    return kind.startswith((_CRASH, _HANG)) and not _says_all(kind)


def _says_all(kind: str) -> bool:
    """Return whether a kind is a crash at a place in a source, which is mostly one defect."""
    return kind.startswith(_CRASH) and is_place(kind.removeprefix(_CRASH))


def key(oracle: str, found: Finding) -> str:
    """Return the name of a finding's folder, which hashes what tells defects apart: oracle, kind,
    flakiness, opcodes, and, unless the kind is a place in a compiler's source, blamed
    instruction."""
    blamed = [] if _says_all(found.kind) else [found.blamed]
    told = [*blamed, *sorted(found.opcodes)]
    apart = json.dumps([oracle, found.kind, found.is_flaky, told])
    name = _words(f"{'flaky ' * found.is_flaky}{oracle} {found.kind}")
    return f"{name}-{_hashed(apart)}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _words(text: str) -> str:
    # Cut off, as kinds hold names of C++ functions and a file's name has 255 bytes at most. Kinds
    # that begin alike are told apart by the hash in :func:`key`, and by finding.json.
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


def is_known(findings: Path, suspect: Suspect) -> bool:
    """Return whether a finding covers a suspect. If so, it is counted; of those that the isolated
    instructions tell, the tenth, hundredth, … suspect counts as unknown, so that it is reduced all
    the same."""
    covering = covered(findings, suspect)
    if covering is None:
        return False
    times = _counted(covering)
    # Equal instructions may hide another defect behind the known one, which a reduction shows:
    # False for 10, 100, 1000, …
    return _is_told_by_place(suspect) or str(times).rstrip("0") != "1"


def covered(findings: Path, suspect: Suspect) -> Path | None:
    """Return the finding that covers a suspect, and count nothing: same oracle and kind, and,
    unless the kind suffices, the same isolated instructions."""
    if _is_told_by_place(suspect):
        return _covered_by_place(findings, suspect)
    if suspect.isolated is None:
        return None
    for path, kept in _of_kind(findings, suspect):
        if _told(suspect.isolated) in [*kept[_ISOLATED], [kept["blamed"], kept["opcodes"]]]:
            return path
    return None


def _is_told_by_place(suspect: Suspect) -> bool:
    return not suspect.told_by_reduction or _says_all(suspect.kind)


def _covered_by_place(findings: Path, suspect: Suspect) -> Path | None:
    """Return a finding of a suspect's kind that covers it: one of opcodes that the suspect's
    program has as well, or any of several."""
    kept = list(_of_kind(findings, suspect))
    has = suspect.opcodes
    covering = [path for path, one in kept if has is None or has.issuperset(one["opcodes"])]
    if not covering and len(kept) >= _MOST_AT_A_PLACE:
        covering = [path for path, _ in kept]
    return covering[0] if covering else None


def siblings(findings: Path, suspect: Suspect) -> int:
    """Count the findings of the suspect's oracle and kind whose blamed instruction has the same
    opcode, and constants or not, whatever its types: mostly one defect. 0 without an isolated
    one: several instructions may be wrong together in many ways. Of a place in a compiler's source
    all its findings count."""
    if _says_all(suspect.kind):
        return sum(1 for _ in _of_kind(findings, suspect))
    if suspect.isolated is None or suspect.several:
        return 0
    family = _family(suspect.isolated.blamed)
    return sum(_family(kept["blamed"]) == family for _, kept in _of_kind(findings, suspect))


def _of_kind(findings: Path, suspect: Suspect) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the path and the content of each finding of a suspect's oracle and kind."""
    beginning = _words(f"{suspect.oracle} {suspect.kind}")
    for path in sorted(findings.glob(f"{beginning}-*/{FILE}")):
        kept = json.loads(path.read_text("utf-8"))
        if (kept["oracle"], kept["kind"]) == (suspect.oracle, suspect.kind):
            yield path, kept


def _family(blamed: str) -> tuple[str, bool]:
    """Reduce ``convert(constant f32) -> s8`` to its opcode, and whether it has constants."""
    opcode, _, types = blamed.partition("(")
    return opcode, "constant " in types


def _told(isolated: Told | None) -> list[object]:
    """Convert an isolated instruction's identity to JSON."""
    return [] if isolated is None else [isolated.blamed, sorted(isolated.opcodes)]


@dataclass(frozen=True, slots=True)
class Origin:
    """Locate an example: the seed of the campaign, the chunk, the number in it."""

    seed: int
    chunk: int
    program: int


def keep(
    findings: Path, oracle: str, found: Finding, origin: Origin, isolated: Told | None = None
) -> Path:
    """Write a finding into its folder, or count it there; return the folder. ``isolated`` is the
    identity of the suspect's instruction if it fails alone."""
    folder = findings / key(oracle, found)
    _add(folder, _facts(oracle, found, origin, isolated), found.write)
    return folder


def _facts(oracle: str, found: Finding, origin: Origin, isolated: Told | None) -> dict[str, Any]:
    return {
        "oracle": oracle,
        "kind": found.kind,
        "detail": found.detail,
        "blamed": found.blamed,
        "opcodes": sorted(found.opcodes),
        "flaky": found.is_flaky,
        **found.facts,
        _TIMES: 1,
        _ISOLATED: [] if isolated is None else [_told(isolated)],
        **asdict(origin),
    }


def keep_unreduced(findings: Path, suspect: Suspect, found: Finding, origin: Origin) -> None:
    """Write a suspect that waits for its reduction, or count it there. It covers no others, as only
    its reduction shows what it is."""
    kept = _facts(suspect.oracle, found, origin, suspect.isolated)
    _add(unreduced(findings, suspect, origin), kept | {UNREDUCED: True}, found.write)


def unreduced(findings: Path, suspect: Suspect, origin: Origin) -> Path:
    """Return the folder of a suspect that waits for its reduction: its own."""
    told = [suspect.oracle, suspect.kind, _told(suspect.isolated), *asdict(origin).values()]
    name = _words(f"{UNREDUCED} {suspect.oracle} {suspect.kind}")
    return findings / f"{name}-{_hashed(json.dumps(told))}"


def waiting(findings: Path, chunk: int) -> dict[Path, int]:
    """Find what waits for its reduction: folders, and the number of the example in the chunk."""
    found = _read(findings.glob(f"{UNREDUCED}-*/{FILE}"))
    return {path.parent: int(kept["program"]) for path, kept in found if kept["chunk"] == chunk}


def remove(folder: Path) -> None:
    """Remove what waited for its reduction, and is reduced or known."""
    # First, as a folder without this file is no finding.
    (folder / FILE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def keep_as_it_is(folder: Path, *, is_flaky: bool) -> None:
    """Make what waits for its reduction a finding that is not reduced: ``is_flaky`` if it did not
    fail again."""
    kept = json.loads((folder / FILE).read_text("utf-8"))
    del kept[UNREDUCED]
    kept["flaky"] = is_flaky
    told = frozenset(kept["opcodes"])
    found = Finding(
        kept["kind"], "", told, lambda to: None, blamed=kept["blamed"], is_flaky=is_flaky
    )
    write = partial(shutil.copytree, folder, dirs_exist_ok=True)
    _add(folder.parent / key(kept["oracle"], found), kept, write)
    remove(folder)


def take(findings: Path, name: str, files: Mapping[str, bytes]) -> None:
    """Add the finding of another campaign's folder, given by its files, or count it."""
    if FILE not in files:  # left by a process that was killed
        return
    kept = json.loads(files[FILE])
    if kept.get(UNREDUCED) and (findings / name / FILE).exists():  # it was given, and comes back
        return

    def write(folder: Path) -> None:
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)

    _add(findings / name, kept, write)


def _add(folder: Path, kept: Mapping[str, Any], write: Callable[[Path], object]) -> None:
    """Add a finding, or add it to what the folder counts, if there is one: whichever process is
    first has its own files there."""
    told, new = folder / FILE, atomic_files.beside(folder)
    try:
        if not told.exists():
            new.mkdir(parents=True)
            write(new)
        with _locked(folder.parent):
            if told.exists():
                _merge(told, kept)
                return
            # A folder without this file is of a process that was killed.
            shutil.rmtree(folder, ignore_errors=True)
            (new / FILE).unlink(missing_ok=True)
            new.rename(folder)
            atomic_files.write(told, kept)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _counted(path: Path) -> int:
    """Count a finding once more; return how often it was found."""
    with _locked(path.parent.parent):
        return _merge(path, {_TIMES: 1})


def _merge(path: Path, other: Mapping[str, Any]) -> int:
    """Add how often a finding was found elsewhere, and the instructions that failed alone there;
    return how often it was found. The lock is held."""
    kept = json.loads(path.read_text("utf-8"))
    kept[_TIMES] += other[_TIMES]
    known = kept.setdefault(_ISOLATED, [])
    known += [told for told in other.get(_ISOLATED, ()) if told not in known]
    atomic_files.write(path, kept)
    return int(kept[_TIMES])


def _locked(findings: Path) -> AbstractContextManager[None]:
    # Beside them, as all that is in their folder is a finding.
    return locked(findings.with_name(f"{findings.name}.lock"))


def files(findings: Path) -> list[Path]:
    """List the ``finding.json`` of all findings. A folder without it is being written, or of a
    process that was killed."""
    return sorted(findings.glob(f"*/{FILE}"))


def all_kept(findings: Path) -> list[dict[str, Any]]:
    """Read all findings, the most frequent first."""
    kept = [one for _, one in _read(files(findings))]
    return sorted(kept, key=lambda one: -int(one[_TIMES]))


def _read(paths: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Read findings, in order; what waited for its reduction may be gone meanwhile."""
    for path in sorted(paths):
        with suppress(FileNotFoundError):
            yield path, json.loads(path.read_text("utf-8"))
