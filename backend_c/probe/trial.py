"""Run the questions with a compiler: build them, run them in a process of their own, compare
digests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import hlo
from backend_c.ir.settings import Settings
from backend_c.lower.lowering import lower
from backend_c.native.cache import Cache, workspace
from backend_c.native.toolchain import Compiler, objects, run
from backend_c.probe import inputs
from backend_c.probe.questions import Question, text
from backend_c.projects.byte_array import aligned_bytes
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import Program, render_plan
from hlo.errors import ToolchainError
from hlo.module import Module
from hlo.passes.pipelines import run as passes

_HERE = Path(__file__).parent
_SECONDS = 60.0
_GRAIN = 1 << 10  # element operations from which a loop is run by threads: some are
_NAMED = 3  # of the answers that are wrong


class Failure(NamedTuple):
    """Describe how a compiler failed: whether it built the questions, and what went wrong."""

    is_built: bool
    told: str


def module_of(asked: Sequence[Question]) -> Module:
    """Parse the program of the questions."""
    return hlo.parse(text(asked))


def answers() -> dict[str, int]:
    """Read the digest of the interpreter's result for each question by name."""
    lines = (_HERE / "answers.txt").read_text("utf-8").splitlines()
    return {name: int(digest, 16) for digest, _, name in (line.partition(" ") for line in lines)}


def sources(asked: Sequence[Question]) -> dict[str, str]:
    """Generate the questions as C, and the table that the driver reads."""
    made = render_plan(lower(passes(module_of(asked), "backend_c"), Settings(grain=_GRAIN)), OPENMP)
    return {**made.sources, "table.h": _table(asked, made)}


def failure(compiler: Compiler, files: Mapping[str, str], cache: Cache) -> Failure | None:
    """Build and run the :func:`sources` of questions; return the failure, None if there is none."""
    with workspace(cache) as directory:
        try:
            made = [*objects(files, compiler, directory), _driver(compiler, directory)]
        except ToolchainError as error:
            return Failure(False, f"does not compile questions ({_last_line(str(error))})")
        link = [*compiler.command, *compiler.flags, *made, "-o", "probe"]
        linked = run(link, directory)
        if linked.returncode:
            return Failure(False, f"does not link questions ({_last_line(linked.stderr)})")
        return _ran(directory)


def _driver(compiler: Compiler, directory: str) -> str:
    """Compile the driver without optimisation, by flags that any compiler has."""
    words = [*compiler.command, "-O0", "-w", f"-I{directory}", "-c", str(_HERE / "driver.c")]
    done = run([*words, "-o", "driver.o"], directory)
    if done.returncode:
        raise ToolchainError(f"{compiler.command[0]} failed:\n{done.stderr.strip()}")
    return "driver.o"


def _last_line(told: str) -> str:
    return (told.strip().splitlines() or ["no reason given"])[-1].strip()


def _ran(directory: str) -> Failure | None:
    environ = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    try:
        done = subprocess.run(
            ["./probe"], cwd=directory, env=environ, stdin=subprocess.DEVNULL, check=False,
            capture_output=True, text=True, errors="replace", timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Failure(True, f"takes more than {_SECONDS:.0f} s for known answers")
    except OSError as error:
        return Failure(False, f"makes a program that does not start ({error.strerror})")
    wrong = done.stdout.splitlines()
    if done.returncode < 0:
        return Failure(True, f"makes a program that crashes (signal {-done.returncode})")
    if done.returncode == 0:
        return None
    named = ", ".join(wrong[:_NAMED]) + (", …" if len(wrong) > _NAMED else "")
    return Failure(True, f"gets {len(wrong)} known answers wrong ({named})")


def _table(asked: Sequence[Question], made: Program) -> str:
    """Render the tables of driver.c: the arguments to fill, and the digests to expect."""
    names = [(question.name, n) for question in asked for n, _ in enumerate(question.parameters)]
    known = answers()
    rows = []
    for (name, n), shape in zip(names, made.parameters, strict=True):
        t, mask = shape.element_type, inputs.mask(shape.element_type)
        sign = (mask + 1) // 2 if t.kind == "signed" and t.bits < 8 else 0
        seed = inputs.seed(name, n)
        rows.append(f"{{{shape.elements}, {inputs.width(t)}, {mask}u, {sign}u, {seed}u}}")
    results = []
    for question, shape in zip(asked, made.results, strict=True):
        t = shape.element_type
        sizes = f"{shape.elements}, {inputs.width(t)}, {inputs.largest(t)}u"
        results.append(f'{{{sizes}, {known[question.name]}u, "{question.name}"}}')
    return "\n".join(
        [
            f"#define ARGUMENTS {len(rows)}\n#define RESULTS {len(results)}",
            f"#define WORKSPACE {max(made.workspace_bytes, 1)}",
            f"static const argument arguments[] = {{\n{_joined(rows)}}};",
            f"static const result results[] = {{\n{_joined(results)}}};",
            aligned_bytes("constants", made.constants),
        ]
    )


def _joined(rows: Sequence[str]) -> str:
    return "".join(f"    {row},\n" for row in rows)
