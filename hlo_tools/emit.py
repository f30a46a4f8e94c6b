"""hlo emit: a program as C for a target, without running it.

openmp is what runs here; cuda is for nvcc; embedded is self-contained C99 without malloc.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import backend_c
from hlo_tools.source import read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--target", choices=("openmp", "cuda", "embedded"), default="openmp")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True)


def main(options: argparse.Namespace) -> int:
    module = read(options.file)
    files = backend_c.emit(module, target=options.target, numerics="exact")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = options.output / name
        file.write_bytes(content)
        print(file)
    return 0
