"""Write the text of an issue: what is wrong, what is the evidence, how to reproduce it."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import hlo
from fuzz.judge.failure import CRASH, HANG, Failure, Judged
from fuzz.peers.jaxlib_modules import compiler_name
from fuzz.peers.plugin import is_plugin, parsed
from fuzz.report.evidence import elements, listed
from fuzz.report.jax_line import SETUP, line
from fuzz.report.report import Report
from fuzz.report.rules import rule
from hlo.module import Module
from hlo.opcodes import STRUCTURAL, having
from hlo.values import arrays_of
from hlo.walk import column, function_name
from interp.envelope.budget import Budget
from interp.values import Value

_CONTRACT = (
    "element by element the exact result, rounded once to the result's type where it does not fit."
)
_BACKWARD_STABLE = (
    "Factors that a backward stable algorithm computes are those of a matrix near the operand: the"
    " residual of the equation that defines them is a small multiple of its roundings (LAPACK"
    " Users' Guide, 3rd edition, chapter 5, has the thresholds of LAPACK's own tests). Here it is"
    " more than the square of the dimension times that threshold, underflow admitted."
)
_ROLE = re.compile(r":\w+:(?=`)")  # of docstrings
_ENDED = {CRASH: "The process ends:", HANG: "The process does not answer:"}
_UNNAMED = having(STRUCTURAL)
TAKEN = "taken.hlo"  # the program in the form that the compiler takes


def issue(report: Report, versions: dict[str, str]) -> str:
    """Write the issue as Markdown. Of the program it only has what :func:`hlo.format` prints, in a
    fence that the text cannot close."""
    failure, budget = report.judged.failure, report.judged.budget
    text = hlo.format(report.module).strip()
    named = [
        opcode
        for opcode in dict.fromkeys(i.opcode for i in reversed(report.module.entry.instructions))
        if opcode not in _UNNAMED
    ]
    lines = [
        f"# {_compiler(report.judged)}: {failure.kind}"
        f" of {', '.join(map(_code, named)) or 'a program'}",
        "",
        *_fenced(text),
        "",
        *_arguments(report.arrays),
        *_facts(failure),
        "",
        "## Why this is wrong",
        *_rule(report.module, failure),
        *_definitions(named, failure),
        *_bounds(failure, budget),
        "",
        "## How to see it",
        *_how(report.judged.command, failure.taken is not None),
        *_in_jax(report),
        "",
        f"Seen with {', '.join(f'{name} {version}' for name, version in versions.items())};"
        " the processor and the flags are in facts.json.",
    ]
    return "\n".join(lines) + "\n"


def _compiler(judged: Judged) -> str:
    """Name the compiler; a plugin or a command by its file."""
    command = judged.command
    if command is None:
        return compiler_name()
    path = parsed(command).path if is_plugin(command) else shlex.split(command)[0]
    return Path(path).name


def _how(command: str | None, is_refused: bool) -> Iterator[str]:
    if is_refused:
        yield (
            f"The compiler refuses `reduced.hlo` as it stands, and takes `{TAKEN}`, in which calls"
            " and async instructions are inlined, and layouts left out."
        )
        yield ""
    name = TAKEN if is_refused else "reduced.hlo"
    check = ("hlo", "check", name, "--args", "arguments.npz", "--against")
    if command is None:
        yield (
            f"`python reproduce.py` in this folder runs `{name}` with jaxlib alone; its exit"
            f" status is 1 as long as the failure is there. With hlo-oracle: `{' '.join(check)}"
            " xla`."
        )
        return
    yield "With hlo-oracle, the exit status is 1 as long as the failure is there:"
    yield ""
    yield from _fenced(shlex.join((*check, command)))


def _code(text: str) -> str:
    return f"`{text}`"


def _fenced(text: str) -> Iterator[str]:
    # CommonMark (section 4.5): only a line of at least as many backticks closes a fence.
    longest = max(map(len, re.findall(r"`++", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, text, fence)


def _arguments(arrays: Sequence[Value]) -> Iterator[str]:
    for number, array in enumerate(arrays_of(tuple(arrays))):
        yield f"- argument {number}: {listed(array)}"
    yield ""


def _facts(failure: Failure) -> Iterator[str]:
    if failure.crash is not None:
        yield from (_ENDED[failure.kind], "", *_fenced(failure.crash))
        return
    found = failure.found
    assert found is not None
    if found.mismatch is not None:
        yield f"Other types or sizes than expected: {found.mismatch}."
        return
    yield from ("| element | actual | expected | legal |", "|---|---|---|---|")
    for element in elements(found):
        yield f"| {element.place} | {element.actual} | {element.exact} | {element.legal} |"
    for step in found.wrong:
        yield ""
        told = step.why or "also outside on the compiler's own values in between"
        yield f"{_code(step.instruction.opcode)}: {told}."


def _rule(module: Module, failure: Failure) -> Iterator[str]:
    """State what the instruction to blame must compute; "" for a crash."""
    if failure.found is None:
        return
    if any(step.why for step in failure.found.wrong):
        yield from (_BACKWARD_STABLE, "")
        return
    steps = [step.instruction.opcode for step in failure.found.wrong]
    yield from (rule(module, steps[0] if steps else None), "")


def _in_jax(report: Report) -> Iterator[str]:
    """Show the program as a line of JAX, if there is one, which may differ in layouts and names."""
    text = line(report.module, report.arrays)
    if text is None or report.judged.command is not None:
        return
    yield from ("", "In JAX:", "")
    yield from _fenced(f"{SETUP}\n{text}")


def _definitions(named: Sequence[str], failure: Failure) -> Iterator[str]:
    if failure.crash is not None:
        yield "The program is valid: no compiler may end its process, or never end, on it."
        return
    for opcode in named:
        op = column("interp.ops").get(function_name(opcode))
        said = inspect.getdoc(op.function) if op is not None else None
        text = _ROLE.sub("", " ".join((said or _CONTRACT).split()).replace("``", "`"))
        yield f"- {_code(opcode)}: {text}"


def _bounds(failure: Failure, budget: Budget) -> Iterator[str]:
    if failure.found is None:
        return
    errors = [f"{name} {ulps:g}" for name, ulps in sorted(budget.ulps.items())]
    others = f"{'other ' * bool(errors)}functions {budget.elementary:g}"
    units = "; ".join([", ".join(errors), others] if errors else [others])
    *first, last = ["adds in any order", *_permissions(budget)]
    allowed = f"{', '.join(first)} and {last}" if first else last
    source = "" if budget.is_measured else ", which was not measured"
    yield ""
    yield (
        "“Legal” encloses every result of a compiler whose instructions each err by no more than"
        f" the budget {budget.name}{source} (units in the last place: {units}; all else correctly"
        f" rounded), that {allowed}. The expected"
        " result is exact: the real one, rounded once."
    )


def _permissions(budget: Budget) -> Iterator[str]:
    """Yield what a compiler may do by its budget, beside errors of single instructions."""
    if budget.contracts:
        yield "contracts products into sums"
    if budget.keeps_wide:
        yield "keeps narrow types wide"
    if budget.through_f32:
        yield "rounds to f32 before it converts to narrower types"
    if budget.operand_bits:
        yield "rounds factors of products of matrices"
    if budget.rewrites:
        yield "rewrites chains of operations by identities of real numbers"
    if budget.flushes:
        yield "flushes subnormals to zero"
