"""Convert programs to HLO text by jaxlib, in a process of its own: its parsers may crash.

The question is ``{"kind": "stablehlo"|"module", "file": path, "into": path}``; the text is written
to ``into``, the answer is ``{}`` or ``{"error": text}`` (:mod:`hlo_oracle.own_process`). Of
StableHLO with symbolic shapes the question has ``"given"``, the sizes of arrays, too, and the
answer ``"refined": true`` if they made them static.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzz.peers.jaxlib_modules import computation_of, of_hlo
from hlo.errors import ArgumentError, Error
from hlo_oracle import own_process
from hlo_oracle.frontends import symbolic_shapes
from hlo_oracle.frontends.jax_functions import printed
from hlo_oracle.required_packages import require_package

STABLEHLO, MODULE = "stablehlo", "module"
_WHAT = {STABLEHLO: "StableHLO", MODULE: "an HloModuleProto"}


def hlo_text(
    kind: str, data: bytes, given: symbolic_shapes.Given | None = None
) -> tuple[str, bool]:
    """Return HLO text for StableHLO (text or bytecode) or an HloModuleProto, and whether the sizes
    of the arrays ``given`` took the place of symbolic ones.

    Raises Error if jaxlib is not installed, does not take it, or crashes over it; ArgumentError for
    symbolic shapes that the arrays do not fit, or without arrays.
    """
    require_package(f"to read {_WHAT[kind]}", "jaxlib", "jax")
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory) / "program", Path(directory) / "program.hlo"
        source.write_bytes(data)
        question: dict[str, object] = {"kind": kind, "file": str(source), "into": str(made)}
        if given is not None and kind == STABLEHLO and symbolic_shapes.may_be_symbolic(data):
            question["given"] = {name: list(sizes) for name, sizes in given().items()}
        answer = own_process.asked(__name__, question)
        if isinstance(answer, own_process.Died):
            raise Error(f"jaxlib, asked to convert {_WHAT[kind]}: {answer.how}")
        if "argument" in answer:
            raise ArgumentError(answer["argument"])
        if "shapes" in answer:
            raise Error(answer["shapes"])
        if "error" in answer:
            raise Error(f"jaxlib does not take it as {_WHAT[kind]}: {answer['error']}")
        return made.read_text("utf-8"), "refined" in answer


def _converted(kind: str, data: bytes) -> str:
    """Convert StableHLO or an HloModuleProto to HLO text, in this process."""
    if kind == STABLEHLO:
        data = computation_of(data).as_serialized_hlo_module_proto()
    return printed(of_hlo().HloModule.from_serialized_hlo_module_proto(data))


def answer(question: Mapping[str, Any]) -> dict[str, object]:
    """Convert the file of a question, write the text, and return an error if there is one."""
    kind, data, was_symbolic = question["kind"], Path(question["file"]).read_bytes(), False
    try:
        if kind == STABLEHLO and symbolic_shapes.may_be_symbolic(data):
            data, was_symbolic = symbolic_shapes.refined(data, question.get("given"))
        text = _converted(kind, data)
    except ArgumentError as error:
        return {"argument": str(error)}
    except Error as error:
        return {"shapes": str(error)}
    except Exception as error:  # jaxlib's own errors have no class in common
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"error": (lines or [type(error).__name__])[0][:300]}
    Path(question["into"]).write_text(text, "utf-8")
    return {"refined": True} if was_symbolic else {}
