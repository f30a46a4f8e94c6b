"""hlo emit: a program as C for a target, without running it.

openmp is what runs here, with a build by CMake; embedded is self-contained C99 without malloc; cuda
is a project for nvcc and CMake: kernels, the host's part, a header. With --check, embedded and cuda
get a main that runs the program on these arguments and compares the results with the interpreter's,
bit by bit. --numerics fast computes in f32 and reorders sums, as other compilers do: no bits to
compare.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import backend_c
import interp
from hlo.errors import Unsupported
from hlo.io_errors import of_file
from hlo.module import Module
from hlo.passes.bound_parameters import with_bound_parameters
from hlo.program_file import named
from hlo.values import Value
from hlo_oracle import arguments, option_types
from hlo_oracle.loading import programs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    parser.add_argument(
        "--target",
        choices=("openmp", "cuda", "embedded"),
        default="openmp",
        help="what it is C for",
    )
    parser.add_argument("--check", action="store_true", help="with a main that checks bits")
    parser.add_argument(
        "--numerics", choices=("exact", "fast"), default="exact", help="exact bits, or fast"
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="what files and names in C begin with (default: module)",
    )
    parser.add_argument(
        "--external-weights",
        action="store_true",
        help="constants of embedded as a file, not as code",
    )
    parser.add_argument(
        "--weights",
        metavar="NAME,...",
        help="parameters that become constants: their values are those of the arguments",
    )
    parser.add_argument(
        "--max-workspace",
        type=int,
        metavar="BYTES",
        help="of embedded: the most that the workspace may have: by bands of rows, if need be",
    )
    parser.add_argument(
        "--optimize",
        choices=("speed", "size"),
        help="of embedded: what of its code matters more, by default speed",
    )
    parser.add_argument(
        "--compiler",
        metavar="COMMAND",
        help="of embedded: a gcc with its flags, whose bytes of code and stack are told",
    )
    parser.add_argument(
        "--no-double",
        action="store_true",
        help="of embedded: refuse a program that takes double precision",
    )
    parser.add_argument(
        "--simd",
        choices=("auto", "none", "cmsis"),
        help="of embedded: products of bytes several at a time, by default where there is a way",
    )
    parser.add_argument(
        "--cublaslt",
        action="store_true",
        help="of cuda: call NVIDIA's library for large products of matrices, where it is found",
    )
    arguments.add_options(parser)
    parser.add_argument("--json", action="store_true", help="the names of the files as JSON")
    parser.add_argument(
        "-o",
        "--output",
        type=option_types.path,
        metavar="DIR",
        required=True,
        help="write the files here",
    )


def main(options: argparse.Namespace) -> int:
    if options.check and options.numerics == "fast":
        raise Unsupported("--check compares bits: it takes --numerics exact")
    used = options.check or options.weights
    arguments.require_use(options, used=used, by="--check or --weights")
    program = programs.given(options.file, options)
    module = program.module
    with named(options.file):
        recorded = None
        values: tuple[Value, ...] = ()
        if options.check or options.weights:
            values = programs.values(program, options.file, options)
        if options.weights:
            module, values = _bound(module, values, options.weights.split(","))
        if options.check:
            recorded = values, interp.evaluate(module, *values)
        files = backend_c.emit(
            module,
            *(options.target, options.numerics, recorded),
            name=options.name,
            external_weights=options.external_weights,
            max_workspace=options.max_workspace,
            optimize=options.optimize,
            compiler=options.compiler,
            no_double=options.no_double,
            simd=options.simd,
            cublaslt=options.cublaslt,
        )
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with of_file(options.output / name):
            (options.output / name).write_bytes(content)
    written = [str(options.output / name) for name in files]
    print(json.dumps({"files": written}) if options.json else "\n".join(written))
    return 0


def _bound(
    module: Module, values: tuple[Value, ...], weights: Sequence[str]
) -> tuple[Module, tuple[Value, ...]]:
    """Bind the parameters named in ``weights`` as constants; return the module and the other
    arguments."""
    names = [parameter.name for parameter in module.entry.parameters]
    by_name = dict(zip(names, values, strict=True))
    bound = {name: by_name.get(name) for name in weights}
    left = tuple(value for name, value in by_name.items() if name not in bound)
    return with_bound_parameters(module, bound), left
