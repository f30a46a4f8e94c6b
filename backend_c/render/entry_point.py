"""Render the steps of a plan as the body of its entry point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from backend_c.lower.buffers import exchanged
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Copy,
    Exchange,
    Launch,
    Multiply,
    Plan,
    Repeat,
    Step,
    View,
)
from backend_c.render.c_types import memory_type
from backend_c.render.timers import Timers
from hlo.types import PRED

_FEW = 8  # elements that are copied one by one
_INDENT = "    "


class EntryPoint:
    """Render the steps of a plan as the body of its entry point."""

    def __init__(
        self,
        pointers: Mapping[Buffer, str],
        names: Sequence[str],
        plan: Plan,
        timers: Timers,
    ) -> None:
        self._groups = exchanged(plan.steps)
        self._moving = sorted((b for group in self._groups for b in group), key=lambda b: b.number)
        self._starts = pointers
        places = {buffer: f"place_{n}" for n, buffer in enumerate(self._moving)}
        self._pointers, self._names, self._plan = {**pointers, **places}, names, plan
        self._pointers |= {
            buffer: _view_pointer(self._pointers[view.base], buffer, view)
            for buffer in plan.buffers
            if (view := buffer.view) is not None and view.base in self._pointers
        }
        self._timers = timers

    def text(self) -> str:
        """Render the body."""
        lines = [line for step in self._plan.steps for line in self._step(step)]
        begin, end = self._places()
        lines = [*begin, *self._timers.started(), *lines, *end, *self._timers.ended()]
        unused = [
            f"(void){name};"
            for name in ("arguments", "results", "constants", "workspace")
            if not any(name in line for line in lines)
        ]
        seed = ["hlo_seed random;", "hlo_seed_start(&random, seed);"]
        if not any(k.uses_seed for k in self._plan.kernels):
            seed = ["(void)seed;"]
        body = "".join(f"{_INDENT}{line}\n" for line in (*unused, *seed, *lines))
        return f"{{\n{body}}}\n"

    def _places(self) -> tuple[list[str], list[str]]:
        """Render the pointer variables of exchanged buffers, and the copies of those that are
        results.

        A result that ends up elsewhere is copied to the caller's memory.
        """
        begin = [
            f"unsigned char *{self._pointers[buffer]} = (unsigned char *){self._starts[buffer]};"
            for buffer in self._moving
        ]
        results = dict.fromkeys(b for b in self._plan.results if b in self._moving)
        # Results are settled in order: only a later one of its group can be where one goes.
        left = [[b for b in results if b in group] for group in self._groups]
        return begin, [
            line
            for group in left
            for n, buffer in enumerate(group)
            for line in self._settled(buffer, group[n + 1 :])
        ]

    def _settled(self, result: Buffer, others: Sequence[Buffer]) -> Iterator[str]:
        """Yield lines that bring a result to the caller's memory. What is there may be one of the
        ``others``, which then goes to where the result was."""
        name, start = self._pointers[result], self._starts[result]
        yield f"if ({name} != {start}) {{"
        for other in others:
            there = self._pointers[other]
            yield f"{_INDENT}if ({there} == {start}) {{"
            yield f"{2 * _INDENT}for (int64_t n = 0; n < {result.bytes}; ++n) {{"
            yield f"{3 * _INDENT}const unsigned char kept = {there}[n];"
            yield f"{3 * _INDENT}{there}[n] = {name}[n];"
            yield f"{3 * _INDENT}{name}[n] = kept;"
            yield f"{2 * _INDENT}}}"
            yield f"{2 * _INDENT}{there} = {name};"
            yield f"{_INDENT}}} else"
        yield f"{_INDENT}memcpy({start}, {name}, {result.bytes});"
        yield "}"

    def _pointer(self, buffer: Buffer, const: bool) -> str:
        """Render a buffer's address as a typed pointer."""
        c_type = memory_type(buffer.shape.element_type)
        return f"({'const ' if const else ''}{c_type} *){self._pointers[buffer]}"

    def _step(self, step: Step) -> list[str]:
        """Render a step."""
        number = self._timers.next()
        match step:
            case Launch():
                return [self._launch(step), *self._timers.noted(number)]
            case Copy(source, target):
                if not source.bytes:
                    return []
                return [*self._copied(source, target), *self._timers.noted(number)]
            case Exchange(source, target):
                here, there = self._pointers[source], self._pointers[target]
                lines = [f"unsigned char *const kept = {here};", f"{here} = {there};",
                         f"{there} = kept;", *self._timers.noted(number)]  # fmt: skip
                return ["{", *(_INDENT + line for line in lines), "}"]
            case Repeat(condition, predicate, body):
                test = f"if (!*{self._pointer(predicate, True)}) break;"
                return ["for (;;) {", *self._steps(condition), f"{_INDENT}{test}",
                        *(_INDENT + line for line in self._timers.counted(number)),
                        *self._steps(body), "}"]  # fmt: skip
            case Branch(selector, cases):
                return [*self._timers.counted(number), *self._branch(selector, cases)]
            case Multiply():
                raise AssertionError("a step of the host: backend_c.cuda.host_plan")

    def _launch(self, step: Launch) -> str:
        """Render the call of a kernel."""
        kernel, name = self._plan.kernels[step.kernel], self._names[step.kernel]
        words = [self._pointer(b, True) for b in step.inputs]
        words += [self._pointer(b, False) for b in (*step.outputs, *step.scratch)]
        words += ["&random"] * kernel.uses_seed
        return f"{name}({', '.join(words)});"

    def _copied(self, source: Buffer, target: Buffer) -> list[str]:
        """Render a copy: ``memcpy``, or element by element for a few elements.

        A wide load of what several narrow stores just wrote would stall (no store forwarding).
        """
        count = source.shape.elements
        if 1 < count <= _FEW:
            into, out_of = self._pointer(target, False), self._pointer(source, True)
            return [f"({into})[{n}] = ({out_of})[{n}];" for n in range(count)]
        return [f"memcpy({self._pointers[target]}, {self._pointers[source]}, {source.bytes});"]

    def _steps(self, steps: Sequence[Step]) -> list[str]:
        """Render steps, indented."""
        return [_INDENT + line for step in steps for line in self._step(step)]

    def _branch(self, selector: Buffer, cases: Sequence[Sequence[Step]]) -> list[str]:
        """Render a branch as a switch, whose default is the last case."""
        value = f"*{self._pointer(selector, True)}"
        is_pred = selector.shape.element_type is PRED
        # The first computation of a conditional on a pred is the one for true.
        lines = [f"switch ({f'{value} ? 0 : 1' if is_pred else value}) {{"]
        for number, case in enumerate(cases):
            last = number == len(cases) - 1
            # An index out of range selects the last branch, as HLO defines it.
            lines += ["default: {" if last else f"case {number}: {{"]
            lines += [*self._steps(case), f"{_INDENT}break;", "}"]
        return [*lines, "}"]


def _view_pointer(base: str, buffer: Buffer, view: View) -> str:
    """Return the C expression of the address of a view, from that of its base."""
    offset = view.start * buffer.shape.element_type.numpy.itemsize
    if not offset:
        return base
    bytes_of = {"arguments": "(const unsigned char *)", "results": "(unsigned char *)"}
    return f"({bytes_of.get(base.partition('[')[0], '')}{base} + {offset})"
