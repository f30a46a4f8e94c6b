"""Number values: equal digests for instructions that compute the same from the same parameters.

The digest of an instruction hashes its opcode, shape and attributes and the digests of its
operands, so it stands for the instruction's whole *cone*: itself and all its transitive producers
(hash-consing, as in global value numbering). Names and metadata do not count, layouts only for
bitcast, whose result depends on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import STATEFUL, having
from hlo.types import Shape, without_layout

_STATEFUL = having(STATEFUL)  # numbered in text order
_READS_LAYOUTS = frozenset(("bitcast",))
_SIZE = 16  # bytes of a digest


class Cones:
    """Compute digests of all instructions of a module, computation by computation, callees
    first."""

    def __init__(self, module: Module) -> None:
        self._computations = {c.name: c for c in module.computations}
        self._of: dict[str, Mapping[str, bytes]] = {}
        self._own: dict[str, Mapping[str, bytes]] = {}
        for computation in module.computations:  # callees stand before callers
            own = dict(self._each(computation))
            cones: dict[str, bytes] = {}
            for instruction in computation.instructions:
                digest = blake2b(own[instruction.name], digest_size=_SIZE)
                for operand in instruction.operands:
                    digest.update(cones[operand])
                cones[instruction.name] = digest.digest()
            self._own[computation.name], self._of[computation.name] = own, cones

    def of(self, computation: str) -> Mapping[str, bytes]:
        """Map each instruction of a computation to the digest of its cone."""
        return self._of[computation]

    def own(self, computation: str) -> Mapping[str, bytes]:
        """Map each instruction to the digest of itself alone, its operands left out."""
        return self._own[computation]

    def _each(self, computation: Computation) -> Iterator[tuple[str, bytes]]:
        shapes = {i.name: i.shape for i in computation.instructions}
        ran: Counter[str] = Counter()
        for instruction in computation.instructions:
            ran[instruction.opcode] += 1
            digest = blake2b(digest_size=_SIZE)
            for part in self._parts(instruction, shapes, ran[instruction.opcode]):
                # With lengths, as other parts could be the same bytes in a row.
                digest.update(len(part).to_bytes(8, "little") + part)
            yield instruction.name, digest.digest()

    def _parts(
        self, instruction: Instruction, shapes: Mapping[str, Shape], number: int
    ) -> Iterator[bytes]:
        yield instruction.opcode.encode()
        if instruction.opcode in _READS_LAYOUTS:
            yield f"{instruction.shape} {shapes[instruction.operands[0]]}".encode()
        else:
            yield str(without_layout(instruction.shape)).encode()
        # Each run of such an instruction gives another result, so the n-th equals an n-th only.
        if instruction.opcode in _STATEFUL:
            yield str(number).encode()
        # Elsewhere an annotation that changes no result; LAPACK's calls have their options there
        # (which triangle is read, whether vectors are computed).
        if instruction.opcode == "custom-call":
            yield instruction.annotations.get("backend_config", "").encode()
        for name, value in sorted(instruction.attributes.items()):
            yield name.encode()
            yield from self._attribute(name, value)

    def _attribute(self, name: str, value: Attribute) -> Iterator[bytes]:
        if isinstance(value, Literal):
            yield from _literal(value)
        elif name in COMPUTATION_ATTRIBUTES:
            for callee in (value,) if isinstance(value, str) else value:  # type: ignore[union-attr]
                yield self._of[str(callee)][self._computations[str(callee)].root]
        else:
            yield repr(value).encode()


def _literal(literal: Literal) -> Iterator[bytes]:
    yield str(without_layout(literal.shape)).encode()
    if isinstance(literal.value, tuple):
        for element in literal.value:
            yield from _literal(element)
    elif literal.value is not None:
        yield literal.value.tobytes()
