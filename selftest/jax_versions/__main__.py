"""``python -m selftest.jax_versions [VERSION ...] --into DIR``: which versions of JAX work.

For each version a virtual environment in DIR gets this project and that version of JAX, from the
package index, and every door (:mod:`selftest.jax_versions.doors`) is tried in it. An environment
that is there is used as it is. Exit status: 1 if a door fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

from hlo_oracle.progress_line import ProgressLine

# The last of each series that the extra ``jax`` admits, and the first one.
VERSIONS = (
    *("0.4.35", "0.4.38", "0.5.3", "0.6.0", "0.6.2", "0.7.0", "0.7.2", "0.8.0", "0.8.3"),
    *("0.9.0", "0.9.2", "0.10.0", "0.10.1", "0.10.2"),
)
_ROOT = Path(__file__).parents[2]
_SECONDS = 600.0  # for the doors of a version
_INSTALLED = "installed"  # a file that says that an environment is complete


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.jax_versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=VERSIONS)
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="environments")
    given, shown, failed = parser.parse_args(words), ProgressLine(), 0
    print("| JAX | doors that open | others |\n|:--|--:|:--|")
    for version in given.versions:
        with shown.phase(f"JAX {version}"):
            outcomes = dict(_outcomes(_environment(given.into, version)))
        errors = {door: error for door, error in outcomes.items() if error}
        told = "; ".join(f"{door}: {error}" for door, error in errors.items()).replace("|", "\\|")
        print(f"| {version} | {len(outcomes) - len(errors)} | {told} |", flush=True)
        failed += len(errors)
    return 1 if failed else 0


def _environment(into: Path, version: str) -> Path:
    """Return the Python of the environment of a version, made if it is not there."""
    directory = into / version
    python = directory / "bin" / "python"
    if not (directory / _INSTALLED).exists():
        venv.create(directory, clear=True, with_pip=True)
        own = [f"jax=={version}", f"jaxlib=={version}", "absl-py"]  # which jax.export imports
        wanted = [*own, "-e", f"{_ROOT}[jax,test]"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
        (directory / _INSTALLED).touch()
    return python


def _outcomes(python: Path) -> Iterator[tuple[str, str]]:
    """Yield each door with its error, or an empty text; one that ends Python has failed, and those
    behind it are tried in a new process."""
    listed = _told(python, "-c", _LIST)
    rest = listed.stdout.splitlines()
    if listed.returncode:
        yield "all", (listed.stderr.splitlines() or [f"exit status {listed.returncode}"])[-1]
    while rest:
        done = _told(python, "-m", "selftest.jax_versions.doors", *rest)
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for one in told:
            yield one["door"], one["failed"]
        ended, rest = rest[len(told) :][:1], rest[len(told) + 1 :]
        yield from ((door, f"exit status {done.returncode}") for door in ended)


def _told(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), *words], capture_output=True, text=True, cwd=_ROOT, timeout=_SECONDS,
        check=False,
    )  # fmt: skip


_LIST = "from selftest.jax_versions.doors import DOORS; print('\\n'.join(DOORS))"

if __name__ == "__main__":
    sys.exit(main())
