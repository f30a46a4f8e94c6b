"""Import HLO text as StableHLO with the broadcasts of dimensions of size 1 that it was made of.

HLO's broadcast has none: what JAX writes for ``x / x.sum(-1, keepdims=True)``, a
``broadcast_in_dim`` of f32[4,1] to f32[4,9], is three instructions in HLO, a broadcast to f32[4,1],
a reshape to f32[4] and a broadcast. As three operations of StableHLO they are folded before XLA
sees them, and XLA rewrites, fuses and rounds otherwise than it does for JAX. So the last of the
three is a custom call for the import, which is replaced.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fuzz.peers.jaxlib_modules import of_hlo, of_mlir
from fuzz.peers.negative_zeros import with_signed_zeros

Sizes = tuple[int, ...]

_MARK = "hlo_oracle_broadcast_in_dim"
_LINE = re.compile(
    r"^[ \t]*+\}|"
    r"^([ \t]*+(?:ROOT )?+%?+([\w.-]++) = \w++\[([\d,]*+)\](?:\{[\d,]*+\})?+ )(broadcast|reshape)"
    r"\(%?+([\w.-]++)\)(?:, dimensions=\{([\d,]*+)\})?+(?=[ \t]*+$|, metadata=)",
    re.MULTILINE,
)
_IMPORTED = re.compile(
    rf"stablehlo\.custom_call @{_MARK}\((%[\w#]++)\) "
    r'\{backend_config = "([\d, ]*+)"\} : '
)


class _Made(NamedTuple):
    """A broadcast or reshape; ``dimensions`` are those of a broadcast."""

    opcode: str
    dims: Sizes
    operand: str
    dimensions: Sizes


def imported(text: str) -> str:
    """Return StableHLO of an HLO text, which jaxlib may refuse by a RuntimeError or ValueError."""
    marked = _marked(text)
    program = _IMPORTED.sub(r"stablehlo.broadcast_in_dim \1, dims = [\2] : ", _import(marked))
    return program if _MARK not in program else _import(text)


def _import(text: str) -> str:
    proto = of_hlo().hlo_module_from_text(with_signed_zeros(text)).as_serialized_hlo_module_proto()
    return str(of_mlir().mlir.xla_computation_to_mlir_module(of_hlo().XlaComputation(proto)))


def _marked(text: str) -> str:
    """Make each broadcast that completes one of dimensions of size 1 a custom call of the array
    that all begins with."""
    made: dict[str, _Made] = {}  # of the computation so far

    def line(match: re.Match[str]) -> str:
        begin, name, dims, opcode, operand, dimensions = match.groups(default="")
        if not name:
            made.clear()
            return match[0]
        made[name] = _Made(opcode, _sizes(dims), operand, _sizes(dimensions))
        first = _first(made, made[name])
        if first is None:
            return match[0]
        over = ", ".join(map(str, first.dimensions))
        target = f'custom_call_target="{_MARK}", backend_config="{over}"'
        return f"{begin}custom-call(%{first.operand}), {target}"

    return _LINE.sub(line, text)


def _first(made: dict[str, _Made], last: _Made) -> _Made | None:
    """Find the broadcast that ``last`` goes on with, after a reshape without those dimensions of
    size 1 that ``last`` has in other sizes."""
    between = made.get(last.operand)
    first = made.get(between.operand) if between is not None else None
    if between is None or first is None or len(first.dims) != len(last.dims):
        return None
    if (first.opcode, between.opcode, last.opcode) != ("broadcast", "reshape", "broadcast"):
        return None
    pairs = list(enumerate(zip(first.dims, last.dims, strict=True)))
    kept = tuple(n for n, (one, other) in pairs if one == other)
    is_one = all(one == 1 for n, (one, _) in pairs if n not in kept)
    dims = tuple(last.dims[n] for n in kept)
    return first if is_one and (kept, dims) == (last.dimensions, between.dims) else None


def _sizes(text: str) -> Sizes:
    return tuple(map(int, text.split(","))) if text else ()
