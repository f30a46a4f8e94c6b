"""Verify execution threads: the callees of fusions, loops and conditionals run on their caller's.

Sources: ``CheckCallableInstructionThreadName`` of XLA's ``hlo_verifier.cc``, ``SetThreadName`` of
``hlo_instruction.cc``. A call may lead to another thread; XLA asks nothing of reducers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, having
from hlo.text.string_escapes import read_string
from hlo.verification.async_chains import Fault
from hlo.walk import called

MAIN = "main"
_ASYNC = having(ASYNC)
IN_PLACE = frozenset(("fusion", "while", "conditional"))  # a decision: only these are asked


def thread_of_start(start: Instruction) -> str:
    """Return the thread on which an async-start runs its computation."""
    return str(start.attributes.get("async_execution_thread", MAIN))


def execution_threads(module: Module) -> Mapping[str, str]:
    """Map each computation to its thread: the annotated one, or main.

    An async-start puts its callee, and what that calls in turn, on its own thread; if several reach
    a computation, the last in the text decides.
    """
    computations = {c.name: c for c in module.computations}
    threads = {name: _written(c) for name, c in computations.items()}
    starts = [i for c in module.computations for i in c.instructions if i.opcode == "async-start"]
    reached: set[str] = set()
    # The last start in the text decides, so it is first to mark what it reaches.
    for start in reversed(starts):
        thread = thread_of_start(start)
        left = list(called(start))
        while left:
            name = left.pop()
            if name in reached or name not in computations:
                continue
            reached.add(name)
            threads[name] = thread
            for instruction in computations[name].instructions:
                left += () if instruction.opcode in _ASYNC else called(instruction)
    return threads


def _written(computation: Computation) -> str:
    text = computation.annotations.get("execution_thread", MAIN)
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return read_string(text) if is_quoted else text


def thread_faults(
    instruction: Instruction, thread: str, threads: Mapping[str, str]
) -> Iterator[Fault]:
    """Yield callees of an in-place call (fusion, while, conditional) that are on another thread."""
    for name in called(instruction):
        if threads[name] != thread:
            message = f"{name} is of thread {threads[name]!r}, its caller of {thread!r}"
            yield Fault(instruction, "thread", message)
