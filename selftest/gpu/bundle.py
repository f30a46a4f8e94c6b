"""Pack all that a check of a GPU takes where there is no network.

    python -m selftest.gpu.bundle [--architecture sm_90 …] [--python 3.11 …] [-o FILE]

This tree as it is committed, the packages that it imports for each version of Python, and the
programs of :mod:`selftest.gpu.programs` as cubins for each architecture: a file of at most 60 MB.
Compiling takes about a minute for a unit of programs; cubins are kept (``--cubins``), so that a
bundle is packed again in a minute. nvcc or NVRTC is needed, a GPU is not.
"""

from __future__ import annotations

import argparse
import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from backend_c.ir.settings import Numerics, launched
from backend_c.native.cache import CUBIN, Cache, open_cache
from backend_c.native.cuda_compilers import CudaCompiler, cubin, find_cuda_compiler
from backend_c.pipeline import lowered
from backend_c.projects.targets import cuda_parts
from fuzz.compilers.packed_cubins import VERSION
from fuzz.oracles.exact import runs
from fuzz.oracles.oracle import each
from hlo.errors import Error, ToolchainError
from hlo.module import Module
from selftest.gpu.programs import PIECES, unit

LIMIT = 60 << 20
_NAME = "gpu-bundle"
# What the check imports, and what that needs.
_PACKAGES = ("numpy", "ml_dtypes", "cffi", "pycparser")
_TESTS = "/tests/"  # of packages: not needed
_ROOT = Path(__file__).parents[2]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.gpu.bundle",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--architecture", nargs="+", default=["sm_90"], metavar="SM")
    parser.add_argument("--python", nargs="+", default=[own, "3.12"], metavar="VERSION")
    parser.add_argument("--cubins", type=Path, default=Path("gpu_cubins"), metavar="DIR")
    parser.add_argument("--pieces", nargs="*", choices=PIECES, default=list(PIECES))
    parser.add_argument("-o", "--output", type=Path, default=Path(f"{_NAME}.tar.xz"))
    given = parser.parse_args(words)
    started, compiler = time.time(), find_cuda_compiler(os.environ)
    cache = open_cache(given.cubins)
    (given.cubins / VERSION).write_text(compiler.version, "utf-8")
    for piece in given.pieces:
        _compile_piece(piece, given.architecture, compiler, cache)
    words = ["--compile", *given.architecture, "--cubins", str(given.cubins)]
    subprocess.run([sys.executable, "-m", "bench.gpu", *words], check=True)
    with tempfile.TemporaryDirectory() as directory:
        files = {**_tree(), **_cubins(given.cubins, started)}
        for version in dict.fromkeys(given.python):
            files |= _packages(version, Path(directory))
        given.output.write_bytes(packed(files))
    size = given.output.stat().st_size
    print(f"{given.output}: {size / 1e6:.1f} MB, {len(files)} files")
    if size > LIMIT:
        print(f"that is more than {LIMIT / 1e6:.0f} MB: fewer architectures or versions of Python")
    return int(size > LIMIT)


def _compile_piece(
    piece: str, architectures: Sequence[str], compiler: CudaCompiler, cache: Cache
) -> None:
    """Compile all units of a piece to cubins."""
    number = 0
    while (named := unit(piece, number)) is not None:
        # As the oracle does: what the interpreter refuses is not compiled.
        outcomes = each(runs)([case for _, case in named])
        modules = [case.module for (_, case), o in zip(named, outcomes, strict=True) if o is None]
        _compile(f"{piece} {number}", modules, architectures, compiler, cache)
        number += 1


def _compile(
    name: str,
    modules: Sequence[Module],
    architectures: Sequence[str],
    compiler: CudaCompiler,
    cache: Cache,
) -> None:
    """Compile modules as one unit for each architecture; print those that cannot be compiled."""
    if not modules:
        return
    settings = launched(Numerics.EXACT)
    try:
        text, _ = cuda_parts([lowered(module, settings) for module in modules])
        sizes = [len(cubin(text, one, compiler, cache)) for one in architectures]
    except ToolchainError as error:
        print(f"{name}: {error}", flush=True)
    except Error as error:
        print(f"{name} is left out: {error}", flush=True)
    else:
        print(f"{name}: {', '.join(f'{size:,}' for size in sizes)} bytes", flush=True)


def _tree() -> dict[str, bytes]:
    """Return the committed files of this tree, and the commit."""
    command = ["git", "-C", str(_ROOT), "archive", "HEAD"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar.getmembers():
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name] = content.read()
    commit = subprocess.run(["git", "-C", str(_ROOT), "rev-parse", "HEAD"], capture_output=True,
                            check=True).stdout  # fmt: skip
    return files | {"commit.txt": commit}


def _cubins(directory: Path, since: float) -> dict[str, bytes]:
    """Return the cubins of a cache that were made or used since a time, with their hashes."""
    wanted = [directory / VERSION]
    for file in sorted(directory.glob(f"*{CUBIN}")):
        if file.stat().st_mtime >= since - 1:  # some file systems have whole seconds
            wanted += [file, file.with_suffix(".sha256")]
    return {f"cubins/{file.name}": file.read_bytes() for file in wanted}


def _packages(version: str, directory: Path) -> dict[str, bytes]:
    """Return the unpacked wheels for a version of Python, without their tests."""
    place = directory / version
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest",
               str(place), "--only-binary=:all:", "--python-version", version, "--implementation",
               "cp", "--platform", "manylinux_2_28_x86_64", "--platform",
               "manylinux_2_27_x86_64", "--platform", "manylinux2014_x86_64"]  # fmt: skip
    subprocess.run([*command, *_PACKAGES], check=True)
    return {f"site/{version}/{name}": data for name, data in _unpacked(place)}


def _unpacked(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of wheels."""
    for wheel in sorted(place.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and _TESTS not in name:
                    yield name, archive.read(name)


def packed(files: dict[str, bytes]) -> bytes:
    """Pack files as a compressed tar; equal files of several versions are adjacent."""
    made = io.BytesIO()
    options = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 27}]
    with lzma.open(made, "wb", filters=options) as out, tarfile.open(fileobj=out, mode="w") as tar:
        for name in sorted(files, key=lambda name: (name.rpartition("/")[2], name)):
            entry = tarfile.TarInfo(f"{_NAME}/{name}")
            entry.size, entry.mode = len(files[name]), 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return made.getvalue()


if __name__ == "__main__":
    sys.exit(main())
