"""``python -m selftest.versions jax|torch [VERSION ...] --into DIR``: which versions work.

For each version a virtual environment in DIR gets this project and that version of JAX or PyTorch,
from the package index, and every door (:mod:`selftest.versions.jax_doors`,
:mod:`selftest.versions.torch_doors`) is tried in it. An environment that is there is used as it is.
Exit status: 1 if a door fails.
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

# Of what the extras admit: the last of each series, and some of the first.
VERSIONS = {
    "jax": (
        *("0.4.35", "0.4.38", "0.5.3", "0.6.0", "0.6.2", "0.7.0", "0.7.2", "0.8.0", "0.8.3"),
        *("0.9.0", "0.9.2", "0.10.0", "0.10.1", "0.10.2"),
    ),
    "torch": ("2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"),
}
# What a version needs beside the extra: absl is imported by jax.export.
_BESIDE = {"jax": ("jaxlib=={version}", "absl-py"), "torch": ()}
_ROOT = Path(__file__).parents[2]
_SECONDS = 600.0  # for the doors of a version
_INSTALLED = "installed"  # a file that says that an environment is complete


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("package", choices=VERSIONS)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="all by default")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="environments")
    given, shown, failed = parser.parse_args(words), ProgressLine(), 0
    print(f"| {given.package} | doors that open | others |\n|:--|--:|:--|")
    for version in given.versions or VERSIONS[given.package]:
        with shown.phase(f"{given.package} {version}"):
            python = _environment(given.into, given.package, version)
            outcomes = dict(outcomes_of(python, given.package))
        errors = {door: error for door, error in outcomes.items() if error}
        told = "; ".join(f"{door}: {error}" for door, error in errors.items()).replace("|", "\\|")
        print(f"| {version} | {len(outcomes) - len(errors)} | {told} |", flush=True)
        failed += len(errors)
    return 1 if failed else 0


def _environment(into: Path, package: str, version: str) -> Path:
    """Return the Python of the environment of a version, made if it is not there."""
    directory = into / f"{package}-{version}"
    python = directory / "bin" / "python"
    if not (directory / _INSTALLED).exists():
        venv.create(directory, clear=True, with_pip=True)
        own = [f"{package}=={version}", *(one.format(version=version) for one in _BESIDE[package])]
        wanted = [*own, "-e", f"{_ROOT}[{package},test]"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
        (directory / _INSTALLED).touch()
    return python


def outcomes_of(python: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield each door with its error, or an empty text; one that ends Python has failed, and those
    behind it are tried in a new process."""
    module = f"selftest.versions.{package}_doors"
    listed = _told(python, "-m", module, "--list")
    rest = listed.stdout.splitlines()
    if listed.returncode:
        yield "all", (listed.stderr.splitlines() or [f"exit status {listed.returncode}"])[-1]
    while rest:
        done = _told(python, "-m", module, *rest)
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


if __name__ == "__main__":
    sys.exit(main())
