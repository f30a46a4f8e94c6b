"""Convert programs to HLO text by jaxlib, in a process of its own: its parsers may crash.

The question is ``{"kind": "stablehlo"|"module", "file": path, "into": path}``; the text is written
to ``into``, the answer is ``{}`` or ``{"error": text}`` (:mod:`hlo_oracle.own_process`).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hlo.errors import Error
from hlo_oracle import own_process
from hlo_oracle.frontends.jax_functions import printed
from hlo_oracle.required_packages import require_package

STABLEHLO, MODULE = "stablehlo", "module"
_WHAT = {STABLEHLO: "StableHLO", MODULE: "an HloModuleProto"}


def hlo_text(kind: str, data: bytes) -> str:
    """Return HLO text for StableHLO (text or bytecode) or an HloModuleProto.

    Raises Error if jaxlib is not installed, does not take it, or crashes over it.
    """
    require_package(f"to read {_WHAT[kind]}", "jaxlib", "jax")
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory) / "program", Path(directory) / "program.hlo"
        source.write_bytes(data)
        question = {"kind": kind, "file": str(source), "into": str(made)}
        answer = own_process.asked(__name__, question)
        if isinstance(answer, own_process.Died):
            raise Error(f"jaxlib, asked to convert {_WHAT[kind]}: {answer.how}")
        if "error" in answer:
            raise Error(f"jaxlib does not take it as {_WHAT[kind]}: {answer['error']}")
        return made.read_text("utf-8")


def _converted(kind: str, data: bytes) -> str:
    """Convert StableHLO or an HloModuleProto to HLO text, in this process."""
    from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

    if kind == STABLEHLO:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            data, use_tuple_args=False, return_tuple=False
        )
        data = computation.as_serialized_hlo_module_proto()
    return printed(_hlo.HloModule.from_serialized_hlo_module_proto(data))


def answer(question: dict[str, str]) -> dict[str, str]:
    """Convert the file of a question, write the text, and return an error if there is one."""
    try:
        text = _converted(question["kind"], Path(question["file"]).read_bytes())
    except Exception as error:  # jaxlib's own errors have no class in common
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"error": (lines or [type(error).__name__])[0][:300]}
    Path(question["into"]).write_text(text, "utf-8")
    return {}
