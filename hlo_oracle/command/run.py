"""hlo run: evaluate a program and show its results.

With the interpreter (--on interp) or compiled to C (--on c): the bits are the same, but with
--numerics fast, which computes in f32 and reorders sums, as other compilers do. On several
ranks (--replicas, --partitions), what rank 3 gives is called result@3, or {0}@3.

--values shows the values of the instructions with these names (add.2, or body/add.2 for that of one
computation), or of all of the entry computation, in the order of evaluation. What is evaluated
several times, as in a loop, is add.2#0, add.2#1 and so on. --save writes them, too. --profile shows
where the time went, instruction by instruction.
"""

from __future__ import annotations

import argparse
import hashlib
import json

import numpy as np

import backend_c
import interp
from hlo import archive
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.program_file import named
from hlo.values import Value
from hlo_oracle import arguments, interruptible, option_types, rank_runs
from hlo_oracle.loading import programs
from hlo_oracle.progress_line import progress_line
from hlo_oracle.rank_runs import Ranks
from hlo_oracle.terminal import printable
from interp import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    arguments.add_options(parser)
    rank_runs.add_options(parser)
    parser.add_argument("--on", choices=("interp", "c"), default="interp", help="what evaluates it")
    parser.add_argument("--numerics", choices=("exact", "fast"), default="exact", help="of --on c")
    parser.add_argument(
        "--fuel",
        type=option_types.count,
        metavar="N",
        help="evaluate at most so many instructions, each time that a loop runs one",
    )
    parser.add_argument(
        "--values", nargs="*", metavar="NAME", help="also show the values of these instructions"
    )
    parser.add_argument(
        "--profile", action="store_true", help="show the time that each instruction takes instead"
    )
    parser.add_argument(
        "--save", type=option_types.results_file, metavar="OUT.npz", help="write the results here"
    )
    parser.add_argument("--json", action="store_true", help="shapes, sums and hashes as JSON")


def main(options: argparse.Namespace) -> int:
    _require_effects(options)
    line = progress_line(options)
    with line.phase(f"reading {options.file}"):
        program = programs.given(options.file, options)
    module = program.module
    ranks = rank_runs.ranks_of(module, options)
    values = programs.per_rank(program, options.file, options, ranks.size)
    way = "compiling and running" if options.on == "c" else "evaluating"
    with named(options.file), line.phase(f"{way} {module.instruction_count} instructions"):
        if options.profile:
            profile = _profile(module, ranks, values, options)
        else:
            found = _found(module, ranks, values, options)
    if options.profile:
        print(json.dumps(profile.json()) if options.json else printable(profile.table()))
        return 0
    if options.save is not None:
        archive.write(options.save, found)
    if options.json:
        print(json.dumps([_described(name, array) for name, array in found]))
    else:
        for name, array in found:
            print(printable(f"{name + ' ' if name else ''}{array.dtype}{list(array.shape)}"))
            print(np.array2string(array, threshold=20, edgeitems=3))
        if not found:
            print("no arrays: the results are tokens, or there are none")
    return 0


def _require_effects(options: argparse.Namespace) -> None:
    """Raise an error for options that would have no effect together."""
    arguments.require_use(options)
    if options.on == "c":
        if options.values is not None:
            raise Unsupported("--values are the interpreter's: leave out --on c")
        if options.fuel is not None:
            raise Unsupported("--fuel is the interpreter's: leave out --on c, or use --timeout")
        if options.profile and options.save is not None:
            raise Unsupported("--profile of --on c keeps no results: leave out --save")
    elif options.numerics != "exact":
        raise Unsupported("--numerics fast is for --on c, which is not given")
    if options.profile and options.values is not None:
        raise Unsupported("--profile shows times instead of --values: leave out one of them")


def _found(
    module: Module,
    ranks: Ranks,
    values: tuple[tuple[Value, ...], ...],
    options: argparse.Namespace,
) -> list[tuple[str, np.ndarray]]:
    """Run the program; return the watched values (--values) and then the results, each with its
    name."""
    if options.on == "c":
        return list(rank_runs.outputs_of(_compiled(module, ranks, values, options)))
    seed = options.seed or 0
    if options.values is None:
        found = rank_runs.interpreted(module, ranks, values, seed, options.fuel)
        return list(rank_runs.outputs_of(found))
    collected = interp.Collected(module, options.values, ranks.size)
    results = rank_runs.interpreted(module, ranks, values, seed, options.fuel, collected)
    outputs = rank_runs.outputs_of(results)
    named_outputs = [(name or "result", array) for name, array in outputs]
    return [*rank_runs.values_of(collected.values), *named_outputs]


def _profile(
    module: Module,
    ranks: Ranks,
    values: tuple[tuple[Value, ...], ...],
    options: argparse.Namespace,
) -> Profile | backend_c.Profile:
    """Profile by instruction in the interpreter, by kernel in compiled C."""
    if ranks.size > 1:
        raise Unsupported(f"--profile is of one rank, not of {ranks.size}")
    if options.on == "c":
        executable = backend_c.compile(module, numerics=options.numerics)
        seed = options.seed or 0
        return interruptible.called(lambda: executable.profile(*values[0], seed=seed))
    profile = interp.profile(module, *values[0], seed=options.seed or 0, fuel=options.fuel)
    if options.save is not None:
        archive.write(options.save, rank_runs.outputs_of((profile.result,)))
    return profile


def _compiled(
    module: Module,
    ranks: Ranks,
    values: tuple[tuple[Value, ...], ...],
    options: argparse.Namespace,
) -> tuple[Value, ...]:
    rank_runs.require_for_c(module, ranks)
    executable = backend_c.compile(module, numerics=options.numerics)
    seed = options.seed or 0
    return interruptible.called(lambda: rank_runs.compiled(executable, values, seed))


def _described(name: str, array: np.ndarray) -> dict[str, object]:
    described: dict[str, object] = {
        "output": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    }
    if array.dtype.kind != "c":
        wide = array.astype(np.float64)
        for key, total in (("sum", wide.sum()), ("abs_sum", np.abs(wide).sum())):
            described[key] = float(total) if np.isfinite(total) else str(total)
    return described
