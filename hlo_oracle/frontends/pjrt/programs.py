"""Read, verify and compile programs for a mode."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import backend_c
import hlo
import interp
from hlo.errors import ArgumentError, Unsupported
from hlo.module import Module
from hlo.types import ArrayShape, TupleShape, leaves
from hlo.values import Array, Value
from hlo_oracle import rank_runs
from hlo_oracle.frontends.pjrt.callbacks import TARGET, callbacks, calls_python
from hlo_oracle.frontends.pjrt.compile_options import CompileOptions, compile_options
from hlo_oracle.frontends.pjrt.modes import Mode
from hlo_oracle.frontends.pjrt.partitioning import Partitioner
from hlo_oracle.frontends.pjrt.stablehlo import converted, text_of

Arguments = Sequence[tuple[Array | None, ...]]  # of each rank
Run = Callable[[Arguments], tuple[Value, ...]]

_LOGGER = logging.getLogger(__name__)
_FORMAT = "hlo-oracle executable 1"


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program.

    ``text`` is its HLO, ``proto`` the same as an HloModuleProto, ``options`` its compile options as
    bytes. ``donated`` are the numbers of parameters whose buffers a run consumes; ``takes_tokens``
    says whether a parameter is a token.
    """

    name: str
    text: str
    proto: bytes
    options: bytes
    module: Module
    ranks: CompileOptions
    mode: Mode
    parameters: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    donated: frozenset[int]
    takes_tokens: bool
    code_bytes: int
    run: Run

    @property
    def is_joint(self) -> bool:
        """Whether all ranks run together, on the arguments of all; as C each rank runs on its
        own."""
        return self.ranks.ranks > 1 and not self.code_bytes

    @property
    def fingerprint(self) -> str:
        """A hash of all that determines the results."""
        parts = (self.mode.value, str(self.ranks), self.text)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def serialized(self) -> bytes:
        """Encode the program for :func:`deserialized`; its C stays in the cache of libraries."""
        kept = {"format": _FORMAT, "mode": self.mode.value, "text": self.text}
        binary = {"options": self.options.hex(), "proto": self.proto.hex()}
        return json.dumps(kept | binary).encode()


def compiled(
    code: bytes, form: str, options: bytes, mode: Mode, partitioner: Partitioner
) -> Program:
    """Compile a program, given in a PJRT_Program's format, for a mode.

    Raises Error for a program that cannot be read, partitioned or compiled.
    """
    text, proto = converted(code, form)
    ranks = compile_options(options)
    if ranks.partitions > 1:
        devices = 1 + max(ranks.devices, default=ranks.ranks - 1)
        proto = partitioner(code, options, devices)
        text = text_of(proto)
    return of_text(text, proto, options, mode)


def deserialized(data: bytes, options: bytes = b"") -> Program:
    """Restore a program from :meth:`Program.serialized`. Non-empty ``options`` replace those it was
    compiled with, as they name other devices."""
    try:
        kept = json.loads(data)
        if kept["format"] != _FORMAT:
            raise ValueError(kept["format"])
        before, proto = (bytes.fromhex(kept[name]) for name in ("options", "proto"))
        text, mode = str(kept["text"]), Mode(kept["mode"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"these bytes are no executable of {_FORMAT!r}") from error
    return of_text(text, proto, options or before, mode)


def of_text(text: str, proto: bytes, options: bytes, mode: Mode) -> Program:
    """Compile a program of HLO text."""
    ranks = compile_options(options)
    module = hlo.parse(text)
    hlo.verify(module)
    run, code_bytes = runner(module, mode, rank_runs.Ranks(ranks.replicas, ranks.partitions))
    parameters = tuple(_array(p.shape) for p in module.entry.parameters)
    results = leaves(module.entry.root_instruction.shape)
    return Program(
        *(module.name, text, proto, options, module, ranks, mode),
        parameters=parameters,
        results=results,
        donated=_donated(module),
        takes_tokens=not all(shape.element_type.is_array for shape in parameters),
        code_bytes=code_bytes,
        run=run,
    )


def runner(module: Module, mode: Mode, ranks: rank_runs.Ranks) -> tuple[Run, int]:
    """Make the function that runs a module on each rank's arguments; return it, and the size of its
    C (0 if it is interpreted).

    Ranks that exchange values are interpreted, as C runs a single rank; so is, with a warning, a
    module that the backend does not support.
    """

    def interpreted(arguments: Arguments) -> tuple[Value, ...]:
        given: Any = tuple(arguments)
        return rank_runs.interpreted(module, ranks, given, seed=0)

    if calls_python(module):
        _LOGGER.warning("%s is interpreted: it calls Python", module.name)
        return _calling_python(module, ranks), 0
    # Generated C is one rank, so ranks that exchange values are interpreted.
    if mode is Mode.INTERP or not rank_runs.is_for_c(module, ranks):
        return interpreted, 0
    try:
        numerics = "fast" if mode is Mode.FAST else "exact"
        executable = backend_c.compile(module, numerics=numerics)
    except Unsupported as error:
        why, _, others = str(error).partition(";")  # what there is instead is not asked for
        _, found, place = others.rpartition(" (from ")
        told = f"{why} (from {place}" if found else why
        _LOGGER.warning("%s is interpreted: %s", module.name, told)
        return interpreted, 0

    def run(arguments: Arguments) -> tuple[Value, ...]:
        return tuple(executable(*mine) for mine in arguments)

    return run, sum(map(len, executable.source.values()))


def _calling_python(module: Module, ranks: rank_runs.Ranks) -> Run:
    """Make the function that interprets a module whose custom calls are callbacks."""

    def run(arguments: Arguments) -> tuple[Value, ...]:
        given: Any = arguments[0] if ranks.size == 1 else arguments
        found: Any = interp.evaluate(
            *(module, *given),
            replicas=ranks.replicas,
            partitions=ranks.partitions,
            custom_calls={TARGET: callbacks().call},
        )
        return (found,) if ranks.size == 1 else found

    return run


def _array(shape: Any) -> ArrayShape:
    """Return a parameter's shape, which must be an array: PJRT has no tuples."""
    if isinstance(shape, TupleShape):
        raise Unsupported("a parameter that is a tuple: clients of PJRT pass arrays")
    assert isinstance(shape, ArrayShape)
    return shape


def _donated(module: Module) -> frozenset[int]:
    """Return the numbers of the parameters that may alias a result or are donated."""
    aliases: Any = module.attributes.get("input_output_alias", ())
    donors: Any = module.attributes.get("buffer_donor", ())
    return frozenset(entry.number for entry in (*aliases, *donors))
