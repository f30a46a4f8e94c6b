"""Run, compile and emit programs in any form."""

from __future__ import annotations

from typing import Any

import backend_c
import interp
from backend_c.native.cache import Directory
from hlo.seeds import whole_seed
from hlo_oracle import arguments as drawing
from hlo_oracle.frontends import jax_functions
from hlo_oracle.loading import objects


def run(program: object, *arguments: Any, seed: int = 0, **keywords: Any) -> Any:
    """Evaluate a program exactly: each operation on real numbers, rounded once.

    ``program`` is what :func:`load` takes, with the arrays of its parameters, in order or one
    mapping of their names to arrays, such as ``numpy.load`` returns of an ``.npz``; or a JAX
    function with its arguments, whose result has the structure that the function gives it (NumPy
    arrays as leaves).
    """
    objects.require_unambiguous(program, seed=(seed, 0))
    seed = whole_seed(seed)
    if objects.is_function(program):
        assert callable(program)
        made = jax_functions.lower(program, arguments, keywords)
        exact = interp.evaluate(objects.load(made.text), *made.arrays, seed=seed)
        return made.structured(exact)
    objects.require_no_keywords(keywords)
    module = objects.program_for(program, arguments).module
    return interp.evaluate(module, *drawing.of_caller(module, arguments), seed=seed)


def compile(
    program: object,
    *arguments: Any,
    numerics: str = "fast",
    threads: int | None = None,
    cache: Directory | None = None,
    **keywords: Any,
) -> backend_c.Executable:
    """Compile a program to C; the executable takes the arrays of its parameters.

    ``program`` is what :func:`load` takes: a function with its arguments and keywords, too.
    ``numerics`` (``fast`` or ``exact``), ``threads`` and ``cache`` are those of
    :func:`backend_c.compile`.
    """
    module = objects.load(program, *arguments, **keywords)
    return backend_c.compile(module, numerics=numerics, threads=threads, cache=cache)


def emit(
    program: object,
    *arguments: Any,
    target: str = "openmp",
    numerics: str = "fast",
    name: str | None = None,
    external_weights: bool = False,
    max_workspace: int | None = None,
    optimize: str | None = None,
    compiler: str | None = None,
    no_double: bool = False,
    simd: str | None = None,
    cublaslt: bool = False,
    **keywords: Any,
) -> dict[str, bytes]:
    """Generate a program's source files, by name: C for a target (``openmp``, ``embedded``,
    ``cuda``).

    ``program`` is what :func:`load` takes: a function with its arguments and keywords, too.
    ``name`` begins the names of files and in C; ``cublaslt`` is for ``cuda``; ``external_weights``,
    ``max_workspace``, ``optimize`` (``speed`` or ``size``), ``compiler``, ``no_double`` and
    ``simd`` (``auto``, ``none`` or ``cmsis``) are for ``embedded``: :func:`backend_c.emit`.
    """
    module = objects.load(program, *arguments, **keywords)
    return backend_c.emit(
        *(module, target, numerics),
        name=name,
        external_weights=external_weights,
        max_workspace=max_workspace,
        optimize=optimize,
        compiler=compiler,
        no_double=no_double,
        simd=simd,
        cublaslt=cublaslt,
    )
