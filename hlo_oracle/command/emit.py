"""hlo emit: a program as C for a target, without running it.

openmp is what runs here; embedded is self-contained C99 without malloc; cuda is for nvcc: no GPU
has run it yet, but emulated on the CPU it gives the same bits in blocks of any size. With --check,
embedded gets a main.c that runs the program on these arguments and compares the results with the
interpreter's, bit by bit. --numerics fast computes in f32 and reorders sums, as other compilers do:
no bits to compare.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import backend_c
import interp
from hlo.errors import Unsupported
from hlo.program_file import named, read
from hlo_oracle import arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--target", choices=("openmp", "cuda", "embedded"), default="openmp")
    parser.add_argument("--check", action="store_true", help="with a main.c that checks bits")
    parser.add_argument("--numerics", choices=("exact", "fast"), default="exact")
    arguments.add_options(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True)


def main(options: argparse.Namespace) -> int:
    if options.check and options.numerics == "fast":
        raise Unsupported("--check compares bits: it takes --numerics exact")
    module = read(options.file)
    with named(options.file):
        recorded = None
        if options.check:
            values = arguments.given(module, options.file, options)
            recorded = values, interp.evaluate(module, *values)
        files = backend_c.emit(module, options.target, options.numerics, recorded=recorded)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = options.output / name
        file.write_bytes(content)
        print(file)
    return 0
