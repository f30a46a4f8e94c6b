"""Find the programs to triage: files, directories of any depth, and zip archives."""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hlo.errors import Error
from hlo_oracle.program_paths import KNOWN, is_program

_MOST_BYTES = 1 << 30  # of what an archive holds, after decompression


@dataclass(frozen=True, slots=True)
class Input:
    """A program to triage: its display name, its file, and the file of its arguments, if there is
    one."""

    name: str
    path: Path
    arguments: Path | None

    @property
    def digest(self) -> str:
        """Hash the program and its arguments."""
        found = hashlib.sha256(self.path.read_bytes())
        if self.arguments is not None:
            found.update(self.arguments.read_bytes())
        return found.hexdigest()


def inputs(paths: Sequence[Path], unpacked: Path) -> list[Input]:
    """List the programs of files, directories and archives, which are unpacked into a directory.

    The arguments of ``f.hlo`` are those in ``f.npz`` beside it. Programs are named by their places
    in a directory or archive; those of one name also by that. One that is given twice is listed
    once. Raises Error if there are no programs, or an archive is damaged or holds too much.
    """
    found: dict[Path, tuple[Path, Input]] = {}
    for path in paths:
        for one in _inside(path, unpacked):
            found.setdefault(one.path.resolve(), (path, one))
    if not found:
        raise Error(f"{paths[0]}: no {KNOWN} is there")
    times = Counter(one.name for _, one in found.values())
    return [
        one if times[one.name] == 1 else replace(one, name=_with_source(path, one))
        for path, one in found.values()
    ]


def _inside(path: Path, unpacked: Path) -> Iterator[Input]:
    """List the programs in a file, a directory or an archive."""
    if path.is_dir():
        yield from _beside(path, path)
    elif zipfile.is_zipfile(path):
        directory = unpacked / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        _unpack(path, directory)
        yield from _beside(directory, directory)
    else:
        yield _input(path.name, path)


def _with_source(path: Path, one: Input) -> str:
    return str(path if path == one.path else path / one.name)


def _beside(directory: Path, root: Path) -> Iterator[Input]:
    """List the programs in a directory and below it."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and is_program(path):
            yield _input(str(path.relative_to(root)), path)


def _input(name: str, path: Path) -> Input:
    stem = path.name.removesuffix(".gz")
    beside = path.with_name(stem.rpartition(".")[0] + ".npz")
    return Input(name, path, beside if beside.is_file() else None)


def _unpack(archive: Path, directory: Path) -> None:
    """Extract the members of an archive that can be programs or arguments.

    Names are untrusted input: none leads out of the directory.
    """
    if (directory / ".done").exists():
        return
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [x for x in opened.infolist() if not x.is_dir() and _is_wanted(x.filename)]
            if sum(member.file_size for member in members) > _MOST_BYTES:
                raise Error(f"{archive}: more than {_MOST_BYTES} bytes when it is unpacked")
            for member in members:
                parts = [p for p in Path(member.filename).parts if p not in ("/", "..", ".")]
                target = directory.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(opened.read(member))
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise Error(f"{archive}: a damaged archive ({error})") from error
    # Written last: without it an archive is unpacked again, as after an interruption.
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".done").write_text("", "utf-8")


def _is_wanted(name: str) -> bool:
    path = Path(name)
    return is_program(path) or path.suffix == ".npz"
