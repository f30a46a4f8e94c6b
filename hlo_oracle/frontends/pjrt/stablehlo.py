"""Convert programs that clients hand over, StableHLO, by jaxlib in this process.

The client has parsed the program by the same library as a rule; a process of its own for each
(:mod:`hlo_oracle.loading.conversion`) takes half a second.
"""

from __future__ import annotations

import re
from functools import cache

from fuzz.peers.jaxlib_modules import computation_of, of_hlo
from hlo.errors import Error, Unsupported
from hlo_oracle.frontends.jax_functions import printed
from hlo_oracle.loading.wire_format import message, messages
from hlo_oracle.required_packages import require_package

MLIR = "mlir"
_HOST_PROGRAM_SHAPE = 4  # of xla/service/hlo.proto: HloModuleProto
_FALLBACK = (1, 0, 0), (0, 9, 0)  # without jaxlib nothing is read


@cache
def versions() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return jaxlib's version of StableHLO, and the oldest version that it reads."""
    try:
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        return _FALLBACK
    texts = stablehlo.get_current_version(), stablehlo.get_minimum_version()
    current, minimum = (tuple(map(int, re.findall(r"\d+", text)))[:3] for text in texts)
    return current, minimum


def with_config(proto: bytes, replicas: int, partitions: int) -> bytes:
    """Wrap an HloModuleProto as an HloModuleProtoWithConfig, whose configuration has the entry's
    layout, as in the module's shapes, and the numbers of ranks."""
    shapes = messages(proto, _HOST_PROGRAM_SHAPE)[-1]
    config = message([(1, shapes), (4, replicas), (5, partitions)])
    return message([(1, proto), (2, config)])


def converted(code: bytes, form: str) -> tuple[str, bytes]:
    """Convert a program, in a format of PJRT_Program, to HLO text and an HloModuleProto.

    Raises Error for a program that jaxlib does not accept.
    """
    if form != MLIR:
        raise Unsupported(f"a program in the format {form!r}: {MLIR!r} is taken")
    require_package("to read StableHLO", "jaxlib", "jax")
    try:
        computation = computation_of(code)
        return printed(computation.as_hlo_module()), computation.as_serialized_hlo_module_proto()
    except Exception as error:  # jaxlib's own errors have no class in common
        raise Error(f"jaxlib does not take the program: {error}") from error


def text_of(proto: bytes) -> str:
    """Convert an HloModuleProto to HLO text."""
    return printed(of_hlo().HloModule.from_serialized_hlo_module_proto(proto))
