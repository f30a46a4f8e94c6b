"""Read programs from files, in every form: :func:`read_program`."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

import bisect_dump
import hlo
from bisect_dump import Stage
from hlo import archive
from hlo.errors import Error
from hlo.io_errors import of_file
from hlo.module import Module
from hlo.program_file import named
from hlo.values import Array, Value, arrays_of
from hlo_oracle import arguments
from hlo_oracle.frontends.symbolic_shapes import Given
from hlo_oracle.loading import conversion, elided_constants, literal_protos
from hlo_oracle.loading.recognition import MOST_BYTES, Kind, module_proto, recognised
from hlo_oracle.loading.wire_format import messages
from hlo_oracle.plurals import counted
from hlo_oracle.program_paths import programs_in

_ARGUMENTS, _RESULT = 2, 3  # fields of an HloSnapshot
_PARTITIONS = 2  # field of an HloUnoptimizedSnapshot
_BLOCK = 1 << 24  # bytes that are read at a time


@dataclass(frozen=True, slots=True)
class Program:
    """A verified module with its context.

    ``text`` is HLO text of it, for other compilers. ``notes`` say where it differs from the file:
    constants that were filled in, so that results are not those of the program itself.
    ``arguments`` and ``results`` are those of a run recorded in a snapshot. ``is_refined`` of a
    program of symbolic shapes, which became those of arrays that were given.
    """

    module: Module
    text: str
    notes: tuple[str, ...] = ()
    arguments: tuple[Value, ...] | None = None
    results: tuple[Array, ...] | None = None
    is_refined: bool = False  # symbolic shapes became those of the arrays given


class Options(Protocol):
    """Parsed options of :func:`add_options`."""

    @property
    def elided(self) -> str | None: ...


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --elided: how constants that the text leaves out are filled in."""
    parser.add_argument(
        "--elided",
        type=elided_constants.way,
        metavar="random:SEED|zeros",
        help=elided_constants.HELP,
    )


def given(path: Path, options: Options) -> Program:
    """Read a command's program; print on standard error where it differs from its file."""
    program = read_program(path, options.elided, given=sizes_of(options))
    for note in program.notes:
        print(f"{path}: {note}", file=sys.stderr)
    return program


def sizes_of(options: object) -> Given | None:
    """Return a function that reads the sizes of the arrays of --args; None without that option."""
    file = getattr(options, "args", None)
    if file is None:
        return None
    return lambda: {name: array.shape for name, array in archive.read(Path(file)).items()}


def values(program: Program, path: Path, options: arguments.Options) -> tuple[Value, ...]:
    """Provide a program's arguments from the source that the options name; by default those
    recorded with it."""
    return per_rank(program, path, options, 1)[0]


def per_rank(
    program: Program, path: Path, options: arguments.Options, size: int
) -> tuple[tuple[Value, ...], ...]:
    """Provide the arguments of each of ``size`` ranks, from the source that the options name; by
    default those recorded with the program."""
    asked = arguments.are_asked_for(options)
    if program.arguments is not None and not asked and size == 1:
        return (program.arguments,)
    return arguments.per_rank(program.module, path, options, size)


def read_program(
    path: Path,
    elided: str | None = None,
    name: str | None = None,
    given: Given | None = None,
) -> Program:
    """Read a program from a file, from standard input (``-``), or from a dump of XLA.

    A file has HLO text, StableHLO (text or bytecode), or a proto of XLA, perhaps compressed by
    gzip. In a directory that XLA wrote ``name`` names one of several modules, which is read as it
    was before optimisations. ``elided`` (``random:SEED``, ``zeros``) fills in constants that are
    left out; ``given`` says the sizes of the arrays that the program will take, which those of
    symbolic shapes need. Raises Error, whose text begins with the file.
    """
    if path.is_dir():
        return read_stage(_first_stage(path, name), elided)
    with _named(path):
        return of_bytes(read_bytes(path), elided, given)


def read_stage(stage: Stage, elided: str | None = None) -> Program:
    """Read a stage of a dump as :func:`read_program` reads its file; where that is text that leaves
    constants out, and the dump has the stage as a proto, too, it is read of that."""
    if stage.proto is None:
        return read_program(stage.path, elided)
    program = read_program(stage.path)
    if elided_constants.has_elided(program.module):
        return read_program(stage.proto)
    return program


def of_bytes(data: bytes, elided: str | None = None, given: Given | None = None) -> Program:
    """Read a program from the bytes of a file: :func:`read_program`."""
    found = recognised(data)
    if found.kind is Kind.HLO:
        return _of_text(found.text, elided)
    if found.kind is Kind.STABLEHLO:
        text, is_refined = conversion.hlo_text(conversion.STABLEHLO, found.data, given)
        return replace(_of_text(text, elided), is_refined=is_refined)
    module = module_proto(found.data)
    assert module is not None
    program = _of_text(conversion.hlo_text(conversion.MODULE, module)[0], elided)
    arguments, results = _recorded_run(found.data, module)
    return Program(program.module, program.text, program.notes, arguments, results)


def _recorded_run(
    data: bytes, module: bytes
) -> tuple[tuple[Value, ...] | None, tuple[Array, ...] | None]:
    """Decode the arguments and the results of a run that a proto has beside its module; None for
    what it has not.

    In an HloSnapshot the module is nested two messages deep; an HloUnoptimizedSnapshot has the
    arguments of each partition, of which one is taken, and no results.
    """
    if data == module:
        return None, None
    (inside,) = messages(data, 1)
    if inside != module:
        results = tuple(arrays_of(_values_in(data, _RESULT)))
        return _values_in(data, _ARGUMENTS), results or None
    partitions = messages(data, _PARTITIONS)
    return (_values_in(partitions[0], 1) if len(partitions) == 1 else None), None


def _values_in(data: bytes, field: int) -> tuple[Value, ...]:
    """Decode the LiteralProtos in a field."""
    return tuple(map(literal_protos.value, messages(data, field)))


def _of_text(text: str, elided: str | None) -> Program:
    return of_module(hlo.parse(text), text, elided)


def of_module(module: Module, text: str, elided: str | None = None) -> Program:
    """Make a program of a module and its text, constants filled in as :func:`read_program` does."""
    hlo.verify(module)
    if elided is None:
        return Program(module, text)
    made, count = elided_constants.filled(module, elided)
    if not count:
        return Program(module, text)
    what = f"{counted(count, 'constant')} {'is' if count == 1 else 'are'}"
    note = f"{what} not in the text, and filled in with {elided}: results are not the program's own"
    return Program(made, hlo.format(made), (note,))


def read_bytes(path: Path) -> bytes:
    """Read a file, or standard input."""
    if str(path) == "-":
        stream = getattr(sys.stdin, "buffer", None) or io.BytesIO(sys.stdin.read().encode())
        with of_file("standard input"):
            return _all(stream)
    with of_file(path), path.open("rb") as file:
        return _all(file)


@contextmanager
def with_standard_input(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield paths with a file ``stdin``, which is there during the block, in place of ``-``: for
    programs that are read in other processes."""
    if Path("-") not in paths:
        yield list(paths)
        return
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "stdin"
        file.write_bytes(read_bytes(Path("-")))
        yield [file if str(path) == "-" else path for path in paths]


def _all(stream: BinaryIO) -> bytes:
    """Read to the end, which a device or a pipe need not have."""
    blocks, size = [], 0
    while block := stream.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        if size > MOST_BYTES:
            raise Error(f"more than {MOST_BYTES} bytes")
    return b"".join(blocks)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    with named(Path("standard input") if str(path) == "-" else path):
        yield


def _first_stage(directory: Path, name: str | None) -> Stage:
    """Find a module's first stage in a dump directory."""
    if not bisect_dump.is_dump(directory) and (files := programs_in(directory)):
        raise Error(f"{directory}: no dump of XLA: give one of its files, as {files[0].name}")
    modules = bisect_dump.modules(directory)
    if name is not None:
        modules = [dumped for dumped in modules if name in (dumped.name, _short(dumped.name))]
    if len(modules) != 1:
        known = ", ".join(_short(dumped.name) for dumped in bisect_dump.modules(directory))
        wanted = f"none, or several, is {name!r}"
        if name is None:
            by_name = f"hlo_oracle.load(…, name={_short(modules[0].name)!r})"
            wanted = f"name one of them, {by_name}, or give a file of it"
        raise Error(f"{directory}: a dump of {known}: {wanted}")
    return modules[0].stages[0]


def _short(name: str) -> str:
    """Extract a module's own name from its dump's: ``jit_f`` from ``module_0001.jit_f``."""
    return name.partition("module_")[2].partition(".")[2] or name
