"""Store exact values, each computed once for all stages that have it.

Results are memoised by instruction and operand values, so a stage costs what its pass changed. A
value is named by its *reference*: the digest of an array's bytes, a tuple of references, None for a
token. Equal references are values that are equal bit for bit, whatever their instructions are
called.

Arrays are evicted when they exceed a limit, cheapest to recompute per byte first, and recomputed
(rematerialised) when they are asked for again.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any

import numpy as np

from bisect_dump.value_numbers import Cones
from hlo.module import Instruction, Module
from hlo.passes.inline import inline
from hlo.passes.rewriting import integer
from hlo.values import Array, arrays_of
from interp.exact.conversion import type_of
from interp.stepwise import Steps
from interp.values import Value

# Fuel of one evaluation, in instructions: a loop that needs more most likely does not end.
FUEL = 4_000_000

_MOST_BYTES = 1 << 30  # of arrays in memory
_SAMPLE = 1 << 12  # elements that a test of distinctness reads
_COMPARED = 64  # elements that stand for an array where arrays are compared
_TELLING = 4  # distinct elements that make equality by chance unlikely

Reference = Any  # bytes, None or a tuple of references


class Program:
    """Hold a stage with calls and fusions inlined, to be evaluated instruction by instruction."""

    def __init__(self, module: Module, seed: int, fuel: int | None = None) -> None:
        """Inline and number a module. ``fuel`` bounds each instruction (default :data:`FUEL`).
        Raises what :class:`interp.stepwise.Steps` raises."""
        self.module = inline(module)
        self.steps = Steps(self.module, seed=seed, fuel=FUEL if fuel is None else fuel)
        cones = Cones(self.module)
        self.cones = cones
        self._own = cones.own(self.module.entry_name)

    def key(self, instruction: Instruction, operands: Sequence[Reference]) -> bytes:
        """Return the memo key: equal for equal instructions on equal operands, in any program."""
        digest = blake2b(self._own[instruction.name], digest_size=16)
        digest.update(repr(operands).encode())
        return digest.digest()


@dataclass(frozen=True, slots=True)
class _Maker:
    """Hold what recomputes an evicted value: an instruction, and the references of its operands."""

    number: int  # greater than those of the operands
    program: Program
    instruction: Instruction
    operands: tuple[Reference, ...]
    result: Reference


class Values:
    """Store the arrays of any number of programs by reference. The interpreter's errors
    propagate."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: dict[bytes, Array] = {}
        self._cheapest: list[tuple[float, bytes]] = []  # a heap of those that can be given up
        self._known: dict[bytes, Reference] = {}
        self._makers: dict[bytes, _Maker] = {}
        self._shapes: dict[bytes, tuple[int, ...]] = {}
        self._telling: set[bytes] = set()
        self._samples: dict[bytes, Array] = {}

    def given(self, value: Value) -> Reference:
        """Store an argument, which is never evicted; return its reference."""
        if isinstance(value, tuple):
            return tuple(map(self.given, value))
        if value is None:
            return None
        reference = self._noted(value)
        self._kept.setdefault(reference, value)
        return reference

    def evaluated(
        self,
        program: Program,
        arguments: Sequence[Reference],
        instead: Mapping[str, Reference] | None = None,
    ) -> dict[str, Reference]:
        """Evaluate the live instructions of a program; map their names to references.
        ``instead`` gives some of them other values."""
        program.steps.begin()
        found: dict[str, Reference] = dict(instead or {})
        for instruction in program.steps.instructions:
            if instruction.name in found:
                continue
            if instruction.opcode == "parameter":
                found[instruction.name] = arguments[integer(instruction, "parameter_number")]
            else:
                operands = tuple(found[name] for name in instruction.operands)
                found[instruction.name] = self.reference(program, instruction, operands)
        return found

    def reference(
        self, program: Program, instruction: Instruction, operands: tuple[Reference, ...]
    ) -> Reference:
        """Evaluate one instruction (no parameter) on values, or look its result up."""
        if not program.steps.is_bounded:
            if instruction.opcode == "tuple":
                return operands
            if instruction.opcode == "get-tuple-element":
                return operands[0][integer(instruction, "index")]
        if program.steps.has_effect(instruction):
            value = program.steps.value(instruction, tuple(map(self.value, operands)))
            return self.given(value)  # effects cannot be repeated, so it is never evicted
        key = program.key(instruction, operands)
        if key not in self._known:
            arrays = tuple(map(self.value, operands))
            start = time.perf_counter()
            value = program.steps.value(instruction, arrays)
            seconds = time.perf_counter() - start
            result = self._result(value)
            maker = _Maker(len(self._known), program, instruction, operands, result)
            self._add(maker, value, seconds)
            self._known[key] = result
        return self._known[key]

    def value(self, reference: Reference) -> Value:
        """Return the value of a reference, recomputed if it was evicted."""
        if isinstance(reference, tuple):
            return tuple(map(self.value, reference))
        if reference is None:
            return None
        array = self._kept.get(reference)
        return self._again(reference) if array is None else array

    def shape(self, reference: bytes) -> tuple[int, ...]:
        """Return an array's dims."""
        return self._shapes[reference]

    def sample(self, reference: bytes) -> Array:
        """Return a few elements of an array, at places given by its size; floats as float64."""
        return self._samples[reference]

    def is_telling(self, reference: bytes) -> bool:
        """Return whether an array has enough distinct elements that an equal one is the same value,
        not a coincidence."""
        return reference in self._telling

    def _result(self, value: Value) -> Reference:
        if isinstance(value, tuple):
            return tuple(map(self._result, value))
        return None if value is None else self._noted(value)

    def _noted(self, array: Array) -> bytes:
        digest = sha256(f"{array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        found = digest.digest()[:16]
        if found not in self._shapes:
            self._shapes[found] = array.shape
            sample = _sampled(array, _SAMPLE)
            if _is_telling(sample):
                self._telling.add(found)
            self._samples[found] = _widened(_sampled(sample, _COMPARED))
        return found

    def _add(self, maker: _Maker, value: Value, seconds: float) -> None:
        for reference, array in _pairs(maker.result, value):
            if reference not in self._kept:
                self._makers.setdefault(reference, maker)
                self._keep(reference, array, seconds)

    def _keep(self, reference: bytes, array: Array, seconds: float) -> None:
        self._kept[reference] = array = _alone(array)
        self._bytes += array.nbytes
        # + 1: arrays may be empty.
        heapq.heappush(self._cheapest, (seconds / (array.nbytes + 1), reference))
        while self._bytes > self._most and self._cheapest:
            _, other = heapq.heappop(self._cheapest)
            self._bytes -= self._kept.pop(other).nbytes

    def _again(self, reference: bytes) -> Array:
        """Recompute an array from those in memory, dropping intermediates after their last use."""
        makers, there = self._needed(reference)
        left = Counter(leaf for maker in makers for leaf in arrays_of(maker.operands))
        left[reference] += 1
        for maker in makers:
            operands = tuple(_gathered(one, there) for one in maker.operands)
            start = time.perf_counter()
            value = maker.program.steps.value(maker.instruction, operands)
            self._add(maker, value, time.perf_counter() - start)
            there.update(pair for pair in _pairs(maker.result, value) if left[pair[0]])
            del operands, value
            for leaf in arrays_of(maker.operands):
                left[leaf] -= 1
                if not left[leaf]:
                    del there[leaf]
        return there[reference]

    def _needed(self, reference: bytes) -> tuple[list[_Maker], dict[bytes, Array]]:
        """Return the evaluations that recompute an array, in order, and the arrays in memory they
        start from."""
        makers: dict[int, _Maker] = {}
        there: dict[bytes, Array] = {}
        stack = [reference]
        while stack:
            leaf = stack.pop()
            if leaf in self._kept:
                there[leaf] = self._kept[leaf]
            else:
                maker = self._makers[leaf]
                if maker.number not in makers:
                    makers[maker.number] = maker
                    stack.extend(arrays_of(maker.operands))
        return [makers[number] for number in sorted(makers)], there


def _pairs(reference: Reference, value: Value) -> Iterator[tuple[bytes, Array]]:
    if isinstance(reference, tuple):
        for part, of_part in zip(reference, value, strict=True):
            yield from _pairs(part, of_part)
    elif reference is not None:
        yield reference, value


def _gathered(reference: Reference, arrays: Mapping[bytes, Array]) -> Value:
    if isinstance(reference, tuple):
        return tuple(_gathered(part, arrays) for part in reference)
    return None if reference is None else arrays[reference]


def _alone(array: Array) -> Array:
    """Copy a small view of a much larger array, which would keep that alive."""
    whole = array.base
    is_part = isinstance(whole, np.ndarray) and whole.nbytes > 2 * array.nbytes
    return array.copy() if is_part else array


def _sampled(array: Array, count: int) -> Array:
    """Return every n-th element: about ``count``, less than twice as many."""
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // count)]


def _widened(sample: Array) -> Array:
    """Copy elements, floats as float64. A view would keep the whole array in memory after it was
    evicted."""
    element_type = type_of(sample)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return np.array(sample, np.float64 if element_type.is_float else sample.dtype)


def _is_telling(sample: Array) -> bool:
    """Return whether a sample has many distinct elements: masks and small integers are often equal
    by chance."""
    if sample.dtype.itemsize < 2 or sample.size < _TELLING:
        return False
    return len(np.unique(sample.view(f"V{sample.dtype.itemsize}"))) >= _TELLING
