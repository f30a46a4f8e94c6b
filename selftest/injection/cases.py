"""Programs with arguments for bugs: drawn ones, and small models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hlo
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import GENERATORS, program
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.draw.values import arguments
from hlo.errors import Error
from hlo.literal import Literal
from hlo.module import Computation, Module
from hlo.passes.inline import inline
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import arrays_of
from hlo.walk import live
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge
from interp.evaluator import evaluate
from interp.values import Value
from selftest.injection.peer import FUEL, Site

MOST_INSTRUCTIONS = 50  # of a program, its calls inlined
PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 2  # for the enclosure of a program; those that take longer are left out
_COMPANY = 12  # other opcodes beside the one that a program is drawn for
# Computations that are run as they are, not on whole arrays of arguments.
_RUN = ("body", "condition", "true_computation", "false_computation")


@dataclass(frozen=True, slots=True)
class Case:
    """A program with calls inlined, its arguments, exact results, judge, and sites of bugs."""

    name: str
    module: Module
    values: tuple[Value, ...]
    exact: tuple[np.ndarray[Any, Any], ...]
    judge: Judge
    sites: tuple[Site, ...]


def case(name: str, module: Module, values: Sequence[Value], peer: Budget) -> Case | None:
    """Prepare a case; None if the program is too long, does not end soon, or has no enclosure."""
    try:
        flat = inline(module)
        if length(flat) > MOST_INSTRUCTIONS:
            return None
        _protect(flat)
        with time_limit(SECONDS):
            exact = list(arrays_of(evaluate(flat, *values, fuel=FUEL)))
            judge = Judge(flat, values, [("", array) for array in exact], peer=peer)
            _ = judge.enclosed
    except (Error, TooLongError):
        return None
    sites = tuple(_sites(flat))
    return Case(name, flat, tuple(values), tuple(exact), judge, sites)


def length(module: Module) -> int:
    """Count the executed instructions of a program without its parameters; those of loops count
    once."""
    return sum(
        instruction.opcode != "parameter"
        for computation in _reached(module)
        for instruction in computation.instructions
    )


def _protect(module: Module) -> None:
    """Make constants read-only, since bugs may write into their operands."""
    for computation in module.computations:
        for instruction in computation.instructions:
            literal = instruction.attributes.get("literal")
            if isinstance(literal, Literal) and isinstance(literal.value, np.ndarray):
                literal.value.flags.writeable = False


def _reached(module: Module) -> list[Computation]:
    """List the computations that run: the entry, and those of its loops and branches."""
    found: dict[str, Computation] = {}
    todo = [module.entry]
    while todo:
        computation = todo.pop()
        found[computation.name] = computation
        for instruction in computation.instructions:
            names = [instruction.attributes.get(name) for name in _RUN]
            names += instruction.attributes.get("branch_computations", ())  # type: ignore[arg-type]
            todo += [module.computation(name) for name in names if isinstance(name, str)]
    return list(found.values())


def _sites(module: Module) -> Iterator[Site]:
    for computation in _reached(module):
        names = live(computation, lambda instruction: False)
        for instruction in computation.instructions:
            if instruction.name in names and instruction.opcode != "parameter":
                yield Site(computation, instruction)


def drawn(opcode: str, seed: int, number: int, peer: Budget) -> Case | None:
    """Draw case ``number`` of the programs that may contain an opcode, reproducibly for a seed. Odd
    numbers are the programs of the even ones with a model's arguments in place of telling ones."""
    rng = np.random.default_rng([seed, sum(map(ord, opcode))])
    others = rng.choice(sorted(GENERATORS), _COMPANY, replace=False).tolist()
    chosen = tuple(name for name in GENERATORS if name == opcode or name in others)

    def one(choices: Choices) -> tuple[Module, Any]:
        module = program(choices, max_instructions=30, opcodes=chosen)
        return module, arguments(choices, module)

    name = f"{opcode} {seed} {number // 2}"
    made = examples(one, number // 2 + 1, seed)
    simple = [model_arguments(module, rng) for module, _ in made]
    module, values = made[-1]
    if number % 2:
        return case(f"{name} plain", module, simple[-1], peer)
    return case(name, module, values, peer)


def model(number: int, peer: Budget, seed: int = 0) -> Case:
    """Read model ``number`` of ``programs/`` with arguments; numbers beyond the last model are the
    same models with other arguments."""
    paths = sorted(PROGRAMS.glob("*.hlo"))
    turn, which = divmod(number, len(paths))
    rng = np.random.default_rng(seed + turn)
    modules = [hlo.parse(path.read_text()) for path in paths[: which + 1]]
    values = [model_arguments(module, rng) for module in modules]
    found = case(paths[which].stem, modules[which], values[which], peer)
    assert found is not None, f"{paths[which]} cannot be judged"
    return found


def model_count() -> int:
    """Count the models in ``programs/``."""
    return len(list(PROGRAMS.glob("*.hlo")))


def model_arguments(module: Module, rng: np.random.Generator) -> tuple[Value, ...]:
    """Draw arguments as models get them."""
    return tuple(model_value(parameter.shape, rng) for parameter in module.entry.parameters)


def model_value(shape: Shape, rng: np.random.Generator) -> Value:
    """Draw an array as models get it: normal floats, small integers."""
    if isinstance(shape, TupleShape):
        return tuple(model_value(part, rng) for part in shape.elements)
    element_type = shape.element_type
    dims = _actual(shape, rng)
    make = _KINDS[element_type.kind]
    return make(rng, dims, element_type.bits).astype(element_type.numpy)


def _actual(shape: ArrayShape, rng: np.random.Generator) -> tuple[int, ...]:
    bounded = shape.dynamic or (False,) * shape.rank
    return tuple(
        int(rng.integers(0, size + 1)) if dynamic else size
        for size, dynamic in zip(shape.dims, bounded, strict=True)
    )


_Make = Callable[[np.random.Generator, tuple[int, ...], int], Any]
_KINDS: dict[str, _Make] = {
    "float": lambda rng, dims, bits: rng.standard_normal(dims),
    "complex": lambda rng, dims, bits: rng.standard_normal(dims) + 1j * rng.standard_normal(dims),
    "signed": lambda rng, dims, bits: (
        rng.integers(-(2 ** (min(bits, 4) - 1)), 6, dims) if bits > 3 else rng.integers(-1, 2, dims)
    ),
    "unsigned": lambda rng, dims, bits: rng.integers(0, 2 ** min(bits, 3), dims),
    "pred": lambda rng, dims, bits: rng.integers(0, 2, dims),
}
