"""Classify a compiler's failure on a program, as a kind that smaller programs are held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hlo
import interp
from fuzz.judge.plausibility import plausibility
from fuzz.judge.undefined_behaviour import left_open, undefined
from fuzz.peers.crash import sign
from fuzz.peers.synchronous_form import asked_again, equivalent_forms
from fuzz.peers.xla import Answer
from fuzz.reducer.cutting import affordable, can_be_shown
from fuzz.reducer.search import Case
from hlo.bit_equality import differences as differences_of_bits
from hlo.errors import Error, OutOfFuel
from hlo.module import Instruction, Module
from hlo.opcodes import CALLS, GIVEN, having
from hlo.passes.inline import inline
from hlo.types import ArrayShape, TupleShape, leaves
from hlo.values import Array, arrays_of, unflattened
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, contains, is_nan
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.followed import followed
from interp.envelope.recorded_values import exposed
from interp.envelope.trying import Found, Named
from interp.envelope.verdict import EQUAL, OUTSIDE
from interp.values import Value

Run = Callable[[str, Sequence[Array]], Answer]

CRASH, HANG, WRONG = "crash", "hang", "wrong result"

_FUEL = 1 << 22  # instructions of one evaluation
_GIVEN = having(GIVEN)
# The result of each is another instruction's, in a callee or put into a tuple: blame that one.
_BLAMELESS = having(CALLS) | {"conditional", "get-tuple-element", "map", "tuple", "while"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Describe a failure: its kind, and ``signs`` that tell failures of a kind apart (the failed
    check, or how numbers are wrong). ``crash`` is how the process ended, ``found`` the judged
    result. ``taken`` is the equivalent form that the compiler takes where it refuses the
    program."""

    kind: str
    signs: frozenset[str]
    crash: str | None = None
    found: Found | None = None
    taken: Module | None = None

    def is_like(self, other: Failure | None) -> bool:
        """Return whether another failure has this kind, and a sign in common."""
        return other is not None and self.kind == other.kind and bool(self.signs & other.signs)


@dataclass(frozen=True, slots=True)
class Judged:
    """Hold a compiler's failure, and the budget its results were judged by. ``command`` runs the
    compiler, if it is not XLA."""

    failure: Failure
    budget: Budget
    command: str | None = None


@dataclass(frozen=True, slots=True)
class WrongStep:
    """Hold a wrong instruction of an inlined program, and the compiler's own values by name."""

    case: Case
    instruction: Instruction
    values: Mapping[str, Array]


class Against:
    """Compare a compiler with the interpreter."""

    def __init__(self, run: Run, budget: Budget, seed: int = 0) -> None:
        self._run, self.budget, self._seed = run, budget, seed
        self.refusal: str | None = None  # why the last program was not judged
        self.is_refused = False  # whether the compiler does not take it
        self.counts: dict[str, int] = {}  # its elements of each verdict, where they were judged

    def failure(self, module: Module, arrays: Sequence[Value]) -> Failure | None:
        """Return the compiler's failure on a program, or None: if it is right, refuses the program,
        or if the program is undefined. Raises Error if the interpreter has no result to compare
        with."""
        self.counts, self.is_refused = {}, False
        why = undefined(module, arrays)
        if why is not None:  # and it is not run: it may damage the process
            self.refusal = f"the program means nothing: {why}"
            return None
        found = self._failure(module, arrays)
        why = left_open(module, arrays) if found is not None and found.kind == WRONG else None
        if why is not None:
            self.refusal = f"the result is open: {why}"
            return None
        return found

    def _failure(self, module: Module, arrays: Sequence[Value]) -> Failure | None:
        exact: Value | Error
        try:
            exact = interp.evaluate(module, *arrays, seed=self._seed, fuel=_FUEL)
        except OutOfFuel:
            raise  # the compiler's program would not end either
        except Error as error:
            exact = error
        asked, answer = self._answer(module, arrays)
        taken = None if asked is module else asked
        self.refusal, self.is_refused = answer.error, answer.error is not None
        if answer.crash is not None:
            return replace(ended(answer.crash), taken=taken)
        if answer.outputs is None:
            return None
        if isinstance(exact, Error):
            raise exact
        right = tuple(arrays_of(exact))
        if not differences_of_bits(right, answer.outputs):  # the literal evaluation is legal
            self.counts = {EQUAL: sum(array.size for array in right)}
            return None
        named: list[Named] = [(place(n), array) for n, array in enumerate(right)]
        judge = Judge(module, arrays, named, peer=self.budget, seed=self._seed)
        found = judge.judged(answer.outputs, lambda other: self._outputs(other, arrays))
        self.counts = found.counts
        signs = frozenset(_signs(found))
        return Failure(WRONG, signs, found=found, taken=taken) if signs else None

    def values(self, module: Module, arrays: tuple[Value, ...]) -> Value | None:
        """Return the compiler's result, None if it has none of the declared shape."""
        outputs = self._declared(module, arrays)
        shape = module.entry.root_instruction.shape
        return None if outputs is None else unflattened(shape, iter(outputs))

    def culprit(self, module: Module, arrays: tuple[Value, ...]) -> str | None:
        """Return the opcode of the first wrong step on the compiler's own values, None if there is
        none or the steps cannot be observed."""
        found = self.wrong_step(module, arrays)
        return None if found is None else found.instruction.opcode

    def wrong_step(self, module: Module, arrays: tuple[Value, ...]) -> WrongStep | None:
        """Return the first of :meth:`wrong_steps`, or None."""
        return next(iter(self.wrong_steps(module, arrays)), None)

    def wrong_steps(self, module: Module, arrays: tuple[Value, ...]) -> Sequence[WrongStep]:
        """Return the steps that are wrong on the compiler's own values, in the order of the inlined
        text; none if they cannot be observed. The first is to blame; the others may be wrong only
        because an operand is, which the program of that step alone decides."""
        try:
            return self._wrong_steps(inline(module), arrays)
        except Error:
            return ()

    def _wrong_steps(self, whole: Module, arrays: tuple[Value, ...]) -> Sequence[WrongStep]:
        names = affordable(filter(is_step, whole.entry.instructions))
        outputs = self._declared(exposed(whole, names), arrays)
        if outputs is None:
            return ()
        # Before them are the arrays of the program's own result, one or, of a tuple, several.
        known = dict(zip(names, outputs[len(outputs) - len(names) :], strict=True))
        _, wrong = followed(whole, known, *arrays, peer=self.budget, seed=self._seed)
        steps = [step.instruction for step in wrong]
        if steps and steps[0].opcode in _BLAMELESS:
            return ()
        case = Case(whole, arrays)
        return [WrongStep(case, step, known) for step in steps if step.opcode not in _BLAMELESS]

    def keeps(self, failure: Failure, module: Module, arrays: tuple[Value, ...]) -> Kept:
        """Return the predicate that reductions of ``module`` are held to."""
        opcode = self.culprit(module, arrays) if failure.kind == WRONG else None
        return Kept(self, failure, opcode)

    def _declared(self, module: Module, arrays: Sequence[Value]) -> Sequence[Array] | None:
        """Return the compiler's arrays if they have the declared shapes; None otherwise, as nothing
        can be learnt from such an answer."""
        outputs = self._outputs(module, arrays)
        declared = [
            s for s in leaves(module.entry.root_instruction.shape) if s.element_type.is_array
        ]
        if outputs is None or len(outputs) != len(declared):
            return None
        return outputs if all(map(_is_declared, outputs, declared)) else None

    def _outputs(self, module: Module, arrays: Sequence[Value]) -> Sequence[Array] | None:
        return self._answer(module, arrays)[1].outputs

    def _answer(self, module: Module, arrays: Sequence[Value]) -> tuple[Module, Answer]:
        """Run a program; if the compiler refuses it, run an equivalent form. Return the program
        that counts, and its answer."""
        given = tuple(arrays_of(tuple(arrays)))
        answer = self._run(hlo.format(module), given)
        if answer.error is None:
            return module, answer
        counted, answer, _ = asked_again(self._run, module, given, answer, equivalent_forms)
        return counted, answer


@dataclass(slots=True)
class Kept:
    """Test whether a smaller program fails in the same way, and contains the opcode to blame, if
    known. ``failure`` is that of the last program that was accepted."""

    against: Against
    failure: Failure
    opcode: str | None

    def __call__(self, module: Module, arrays: tuple[Value, ...]) -> Failure | None:
        return self.by(self.against)(module, arrays)

    def by(self, against: Against) -> Callable[[Module, tuple[Value, ...]], Failure | None]:
        """Return this predicate for another process of the same compiler."""

        def failure(module: Module, arrays: tuple[Value, ...]) -> Failure | None:
            if self.opcode is not None and self.opcode not in opcodes(module):
                return None
            found = against.failure(module, arrays)
            if found is None or not self.failure.is_like(found):
                return None
            if plausibility(found.found) < plausibility(self.failure.found):
                return None
            return replace(found, signs=found.signs & self.failure.signs)

        return failure

    def take(self, failure: Failure) -> None:
        """Accept a failure: smaller programs are held to the signs that it still has."""
        self.failure = failure


def opcodes(module: Module) -> frozenset[str]:
    """Return the opcodes of a module."""
    return frozenset(i.opcode for c in module.computations for i in c.instructions)


def place(number: int) -> str:
    """Return the name of a result's array, by its number."""
    return f"output {number}"


def is_step(instruction: Instruction) -> bool:
    """Return whether an instruction computes an array that can be a result."""
    is_array = not isinstance(instruction.shape, TupleShape) and can_be_shown(instruction)
    return is_array and instruction.opcode not in _GIVEN


def _is_declared(array: Array, shape: ArrayShape) -> bool:
    """Return whether an array has the declared dims, or, where bounded, fewer."""
    return array.shape == shape.dims or (bool(shape.dynamic) and array.ndim == len(shape.dims))


def ended(crash: str) -> Failure:
    """Make a failure of a process's end: hanging, or a crash with its place as sign."""
    if crash.startswith("no answer"):
        return Failure(HANG, frozenset((HANG,)), crash)
    return Failure(CRASH, frozenset((sign(crash),)), crash)


def _signs(found: Found) -> Iterator[str]:
    if found.mismatch is not None:
        yield "other types or sizes"
    for step in found.wrong:
        yield from [step.why] if step.why else differences(step.actual, None, step.legal)
    for output in found.outputs:
        if output.verdict.counts[OUTSIDE]:
            yield from differences(output.actual, output.exact, output.legal)


def outside(actual: Array, legal: Enclosure) -> Array:
    """Return a mask of the elements outside the envelope."""
    with np.errstate(all="ignore"):
        return ~np.asarray(contains(legal, actual))


def differences(actual: Array, exact: Array | None, legal: Enclosure) -> Iterator[str]:
    """Yield how elements outside differ from the exact ones: NaN, no NaN, another number."""
    wrong = outside(actual, legal)
    right = legal.low if exact is None else exact
    nans = is_nan(actual) & wrong
    lost = is_nan(right) & ~is_nan(actual) & wrong
    rest: Any = wrong & ~nans & ~lost
    for name, mask in (("NaN", nans), ("no NaN", lost), ("another number", rest)):
        if mask.any():
            yield name
