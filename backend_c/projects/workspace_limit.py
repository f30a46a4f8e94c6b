"""Check the workspace of an emitted program against the caller's limit."""

from __future__ import annotations

from itertools import islice

from backend_c.lower.buffers import Workspace, allocate_tightly, peak
from backend_c.lower.plan import Plan, in_order
from backend_c.projects.banded_plan import Bands
from hlo.errors import Unsupported


def required_workspace(
    plan: Plan, most: int | None = None, bands: tuple[Bands, ...] = ()
) -> Workspace:
    """Return the allocation of a plan; raise Unsupported if it exceeds ``most`` bytes.

    The error gives the liveness bound, and the instruction at which that much is alive.
    """
    workspace = allocate_tightly(plan)
    if most is None or workspace.bytes <= most:
        return workspace
    bound = peak(plan)
    # Loops have times of their own behind their steps: the last step before the peak is meant.
    steps = [step for _, step in islice(in_order(plan.steps), max(bound.step, 1))]
    origin = steps[-1].origin
    by = " and ".join(f"{one.rows} of %{one.instruction}" for one in bands)
    least = f", the least that was found, by bands of rows ({by})" if by else ""
    raise Unsupported(
        f"the workspace takes {workspace.bytes} bytes{least}, more than {most}: at"
        f" %{origin.instruction} of {origin.computation} {bound.bytes} bytes are alive, its"
        " operands, result and scratch and what is needed later"
    )
