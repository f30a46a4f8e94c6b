"""Hash all generated C of each program: ``python -m fuzz.compilers.source_digests FILE…``.

The same program is the same C, byte for byte: whatever the process hashed, where it runs, when, and
what it compiled before. :func:`elsewhere` asks processes that differ in all of that.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import hlo
from backend_c.pipeline import emit
from backend_c.render.dialect import DIALECTS
from hlo.module import Module

_HASH_SEEDS = ("0", "4294967295")


def digest(module: Module) -> str:
    """Hash the files of every target."""
    found = hashlib.sha256()
    for target in DIALECTS:
        for name, content in sorted(emit(module, target).items()):
            found.update(f"{target} {name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def elsewhere(modules: Sequence[Module], directory: Path) -> list[list[str]]:
    """Return the digests that other processes find, in other directories and in another order."""
    files = []
    for number, module in enumerate(modules):
        files.append(directory / f"{number}.hlo")
        files[-1].write_text(hlo.format(module), "utf-8")
    packages = str(Path(__file__).parents[2])
    found = []
    for number, hash_seed in enumerate(_HASH_SEEDS):
        place = directory / f"place {number}"
        place.mkdir(exist_ok=True)
        step = -1 if number % 2 else 1
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, *map(str, files[::step])],
            cwd=place, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": packages},
        )  # fmt: skip
        found.append(done.stdout.split()[::step])
    return found


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(digest(hlo.parse(Path(path).read_text("utf-8"))))
