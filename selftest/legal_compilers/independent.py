"""List compilers that follow no budget: XLA by many options, NumPy, generated C, and readings of
the text.

A *family* is what shares code: a fault of one of its members may be a fault of all. Two families
that give the same number outside of the envelope are evidence against the envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import hlo
from fuzz.oracles.optimisation_passes import PASSES
from fuzz.peers.synchronous_form import asked_again, equivalent_forms
from fuzz.peers.xla import XLA, Answer, Options
from fuzz.reducer.search import Case
from hlo.module import Module
from hlo.types import C128, F64, leaves
from hlo.values import Array, arrays_of
from interp.envelope.budget import XLA_CPU, Budget
from interp.values import Value
from selftest.legal_compilers.literal import Literal
from selftest.legal_compilers.numpy_types import all_types
from selftest.legal_compilers.over_the_reals import OverTheReals, has_extended_precision
from selftest.legal_compilers.torch_kernels import TorchKernels, has_torch

FUEL = 100_000
GENERATED_C = "generated C"  # the family of this project's own compiler
Runner = Callable[[Module, Sequence[Value]], Answer]

# Without these, fast math assumes that no NaN and no infinity comes up, and takes quotients for
# products with reciprocals, and functions for approximations.
_HONOURS = ("nans", "infs", "division", "functions")
_FAST = "xla_cpu_enable_fast_math"
_DEFAULT: tuple[tuple[str, Options], ...] = (("XLA", ()),)
_MODES: tuple[tuple[str, Options], ...] = (
    ("XLA, fast math off", ((_FAST, False),)),
    ("XLA, fast math", ((_FAST, True),)),
    (
        "XLA, fast math of finite numbers",
        ((_FAST, True), *((f"xla_cpu_fast_math_honor_{name}", False) for name in _HONOURS)),
    ),
    ("XLA, optimisation level 0", (("xla_backend_optimization_level", 0),)),
)
_LEFT_OUT: tuple[tuple[str, Options], ...] = tuple(
    (f"XLA without {name}", (("xla_disable_hlo_passes", name),)) for name in PASSES
)
XLA_SETS = len((*_DEFAULT, *_MODES, *_LEFT_OUT))  # of options
# A result in extended precision is rounded to f64 a second time: the error of an instruction is
# half a unit and 2**-12.
_TWICE_ROUNDED = replace(XLA_CPU, name="XLA:CPU, rounded twice", unrounded=True)


# Its square roots are those of MKL: off by 0.56 units in f32 and 0.74 in f64, of 4 million numbers.
_TORCH = replace(XLA_CPU, name="PyTorch", ulps={**XLA_CPU.ulps, "sqrt": 1.0})


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: its name, its family, its budget. ``is_fast``: fast math, which ignores the signs
    of zeros; ``is_finite``: and assumes that there are no NaNs or infinities."""

    name: str
    family: str
    budget: Budget
    run: Runner
    is_fast: bool = False
    is_finite: bool = False


def of_xla(peer: XLA, program: int, most: int = 3) -> Iterator[Compiler]:
    """Yield XLA by the sets of options whose turn it is in program number ``program``, ``most`` at
    most. In turn come: the default, one of the other modes, and all passes but one."""
    for name, options in _turns(program * most, min(most, XLA_SETS)).items():
        is_fast = (_FAST, True) in options
        run = partial(_by_xla, peer.by(options))
        yield Compiler(name, "XLA", XLA_CPU, run, is_fast, is_fast and len(options) > 1)


def _turns(first: int, count: int) -> dict[str, Options]:
    """Return the sets of options of turns ``first`` to ``first + count - 1``, all of them if there
    are so many turns as sets."""
    if count == XLA_SETS:
        return dict((*_DEFAULT, *_MODES, *_LEFT_OUT))
    kinds = (_DEFAULT, _MODES, _LEFT_OUT)
    taken = (divmod(turn, len(kinds)) for turn in range(first, first + count))
    return dict(kinds[kind][number % len(kinds[kind])] for number, kind in taken)


def of_numpy(module: Module) -> Iterator[Compiler]:
    """Yield NumPy's evaluations in all its types."""
    for name, evaluated in all_types():
        rounds_twice = name == "longdouble" and _has_doubles(module)
        budget = _TWICE_ROUNDED if rounds_twice else XLA_CPU
        yield Compiler(f"NumPy in {name}", "NumPy", budget, _evaluating(evaluated))


def _has_doubles(module: Module) -> bool:
    shapes = (i.shape for c in module.computations for i in c.instructions)
    return any(leaf.element_type in (F64, C128) for shape in shapes for leaf in leaves(shape))


def of_torch() -> Iterator[Compiler]:
    """Yield PyTorch, if it is installed."""
    if has_torch():
        yield Compiler("PyTorch", "PyTorch", _TORCH, _evaluating(TorchKernels()))


def of_text(seed: int) -> Iterator[Compiler]:
    """Yield evaluations of the text: literal, and over the reals."""
    yield Compiler("literally", "literally", XLA_CPU, _evaluating(Literal()))
    if has_extended_precision():
        over = OverTheReals(seed, always=True)
        yield Compiler("over the reals", "over the reals", XLA_CPU, _evaluating(over))


def of_answer(case: Case, answer: Answer | None) -> Compiler:
    """Make a compiler of a recorded answer, that of generated C, which refuses other programs."""

    def run(module: Module, arrays: Sequence[Value]) -> Answer:
        del arrays
        if answer is None or module is not case.module:
            return Answer(error="not asked")
        return answer

    return Compiler("C, fast", GENERATED_C, XLA_CPU, run)


def _by_xla(
    run: Callable[[str, Sequence[Array]], Answer], module: Module, arrays: Sequence[Value]
) -> Answer:
    given = tuple(arrays_of(tuple(arrays)))
    answer = run(hlo.format(module), given)
    if answer.error is None:
        return answer
    return asked_again(run, module, given, answer, equivalent_forms)[1]


def _evaluating(evaluated: Callable[..., Value]) -> Runner:
    def run(module: Module, arrays: Sequence[Value]) -> Answer:
        return Answer(tuple(arrays_of(evaluated(module, *arrays, fuel=FUEL))))

    return run
