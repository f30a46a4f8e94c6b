"""Load a module from a program in any form: :func:`load`."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hlo
from hlo.errors import ArgumentError, Error
from hlo.module import Module
from hlo_oracle.frontends import jax_functions, symbolic_shapes
from hlo_oracle.loading import programs
from hlo_oracle.loading.programs import Program

_TAKEN = (
    "HLO text, a path, the bytes of a file, a Module, what JAX traced, lowered or compiled, or a"
    " function and its arguments"
)


def load(
    program: object,
    *arguments: Any,
    elided: str | None = None,
    name: str | None = None,
    **keywords: Any,
) -> Module:
    """Load a program in any form as a verified module.

    ``program`` is HLO text; the path of a file with HLO text, StableHLO (text or bytecode), an
    HloModuleProto, HloProto or HloSnapshot, or what ``jax.export`` serialises, each perhaps
    compressed by gzip, or of a directory that ``--xla_dump_to`` wrote; the bytes of such a file; a
    ``jax.stages`` Traced, Lowered or Compiled, or a ``jax.export.Exported``; or a Python function,
    which JAX lowers for ``arguments`` and ``keywords``. ``elided`` (``random:SEED``, ``zeros``)
    fills in constants that the text leaves out; ``name`` is one of several modules of a dump. A
    program of symbolic shapes has those of the arrays in ``arguments``. Raises Error, which says
    what is wrong and what works.
    """
    return program_of(program, arguments, keywords, elided=elided, name=name).module


def program_for(program: object, arrays: Sequence[Any], elided: str | None = None) -> Program:
    """Load a program that is no function, and will be given these arrays, in order or as one
    mapping: symbolic shapes become theirs."""
    return _loaded(program, partial(symbolic_shapes.in_order, arrays) if arrays else None, elided)


def program_of(
    program: object,
    arguments: tuple[Any, ...] = (),
    keywords: dict[str, Any] | None = None,
    *,
    elided: str | None = None,
    name: str | None = None,
) -> Program:
    """Load a program in any form as :func:`load` does, with its arguments and notes."""
    if is_function(program):
        assert callable(program)
        _refuse_torch(program)  # its exported programs can be called, to raise an error
        made = jax_functions.lower(program, arguments, keywords or {}, keep_unused=True)
        return programs.of_bytes(made.text.encode(), elided)
    require_no_keywords(keywords or {})
    given = partial(symbolic_shapes.in_order, arguments) if arguments else None
    found = _loaded(program, given, elided, name)
    if arguments and not found.is_refined:
        raise ArgumentError("arguments are for a Python function; a program has its own shapes")
    return found


def _loaded(
    program: object,
    given: symbolic_shapes.Given | None,
    elided: str | None = None,
    name: str | None = None,
) -> Program:
    """Load a program that is no function: :func:`program_of`."""
    if isinstance(program, Module):
        return programs.of_module(program, hlo.format(program), elided)
    if isinstance(program, os.PathLike) or (isinstance(program, str) and is_path(program)):
        path = Path(program)
        if str(path) != "-" and not os.path.exists(path):  # False where the name is too long
            raise Error(f"{path}: there is no such file")
        return programs.read_program(path, elided, name, given)
    if isinstance(program, str):
        return programs.of_bytes(program.encode("utf-8", "replace"), elided, given)
    if isinstance(program, bytes | bytearray | memoryview):
        return programs.of_bytes(bytes(program), elided, given)
    _refuse_torch(program)
    stablehlo = jax_functions.exported(program) or symbolic_shapes.lowered(program)
    if stablehlo is not None:
        return programs.of_bytes(stablehlo, elided, given)
    return programs.of_bytes(_text(program).encode(), elided, given)


def _refuse_torch(program: object) -> None:
    """Raise ArgumentError for an object of PyTorch."""
    if type(program).__module__.partition(".")[0] == "torch":
        raise ArgumentError(
            f"{type(program).__name__} of PyTorch is no program of HLO: ho.check(it, *arguments)"
            ' judges it, and torch.compile(…, backend="hlo_oracle") runs a module'
        )


def require_no_keywords(keywords: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a keyword argument given with a program that is no function."""
    if keywords:
        raise ArgumentError(
            f"no function, and so no argument {next(iter(keywords))!r}; nor is there such an option"
        )


def require_unambiguous(program: object, **options: tuple[object, object]) -> None:
    """Raise ArgumentError for an option of ours that a function has a parameter of the name of, if
    its value is not the default: pairs of both."""
    if not is_function(program):
        return
    assert callable(program)
    try:
        parameters = inspect.signature(program).parameters
    except (TypeError, ValueError):  # of what is built in
        return
    bound = program.keywords if isinstance(program, partial) else {}
    for name, (value, default) in options.items():
        is_default = value is default or (isinstance(value, int | str) and value == default)
        if name in parameters and name not in bound and not is_default:
            raise ArgumentError(
                f"{name}= is an option here, and an argument of {jax_functions.name_of(program)}:"
                f" give that in order, or by functools.partial(…, {name}=…)"
            )


def is_function(program: object) -> bool:
    """Test for a Python function, jitted or not, that has yet to be lowered."""
    if isinstance(program, type) or not callable(program):
        return False
    is_stage = jax_functions.is_jax(program) and not hasattr(program, "trace")
    return not is_stage


def is_path(text: str) -> bool:
    """Test for a path: of a file that exists, or one line that is no program text."""
    if os.path.exists(text):
        return True
    return "\n" not in text.strip() != "" and re.search(r"[{}();=]|HloModule", text) is None


def _text(program: object) -> str:
    """Return the HLO text of a program object of JAX or jaxlib."""
    if jax_functions.is_jax(program):
        if hasattr(program, "as_hlo_module"):
            program = program.as_hlo_module()
        if hasattr(program, "as_serialized_hlo_module_proto"):
            return jax_functions.printed(program)
        return jax_functions.text_of(program)
    if hasattr(program, "operation") and hasattr(program, "context"):  # an MLIR module
        return str(program)
    raise ArgumentError(f"{type(program).__name__} is no program: {_TAKEN} is")
