"""Split kernels for CUDA: one launch for each nest of parallel loops.

Threads of different blocks can only wait for each other between launches, so a kernel that packs,
then multiplies, becomes two. Values bound outside the loops are computed again in each.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir.loop_ir import Kernel, Let, Loop
from backend_c.lower.plan import Launch, Plan, Step, map_steps


def split(plan: Plan) -> Plan:
    """Return the plan with every kernel split where all blocks must have finished."""
    kernels: list[Kernel] = []
    parts: list[range] = []
    for kernel in plan.kernels:
        first = len(kernels)
        kernels.extend(_phases(kernel))
        parts.append(range(first, len(kernels)))

    def relaunched(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, Launch):
            return (step,)
        return tuple(replace(step, kernel=number) for number in parts[step.kernel])

    return Plan(
        kernels,
        plan.buffers,
        map_steps(plan.steps, relaunched),
        plan.arguments,
        plan.results,
        plan.constants,
    )


def launch_shape(kernel: Kernel) -> str:
    """Return how a kernel is launched: as a ``grid`` of blocks, or one ``single`` thread."""
    return "single" if is_single(kernel) else "grid"


def is_single(kernel: Kernel) -> bool:
    """Return whether one thread must run a kernel alone: it is no single nest of parallel loops."""
    work = [statement for statement in kernel.body if not isinstance(statement, Let)]
    return not (len(work) == 1 and isinstance(work[0], Loop) and "parallel" in work[0].kind)


def _phases(kernel: Kernel) -> list[Kernel]:
    """Return one kernel per top-level loop, if these share values only; else the kernel itself."""
    lets = tuple(s for s in kernel.body if isinstance(s, Let))
    rest = [s for s in kernel.body if not isinstance(s, Let)]
    loops = [s for s in rest if isinstance(s, Loop)]
    if len(rest) < 2 or len(loops) != len(rest):
        return [kernel]
    return [replace(kernel, body=(*lets, loop)) for loop in rest]
