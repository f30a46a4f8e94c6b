"""The compilers to measure, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.speed.peers import iree, ours, pytorch, xla
from bench.speed.peers.subject import Question, Subject


@dataclass(frozen=True, slots=True)
class Peer:
    """A compiler. ``ready`` prepares a program in the worker. ``needs`` are the packages that must
    be installed, ``extra`` what installs them. ``programs`` lists the programs that it has; None
    means all of them."""

    label: str
    ready: Callable[[Question], Subject]
    needs: tuple[str, ...] = ()
    extra: str = ""
    programs: Callable[[], frozenset[str]] | None = None


PEERS: dict[str, Peer] = {
    "fast": Peer("fast", partial(ours.ready, numerics="fast")),
    "exact": Peer("exact", partial(ours.ready, numerics="exact")),
    "xla": Peer("XLA:CPU", xla.ready, ("jax", "jaxlib"), "xla"),
    "torch": Peer(
        "torch",
        partial(pytorch.ready, compiled=False),
        ("torch",),
        "bench",
        pytorch.eager_programs,
    ),
    "compile": Peer(
        "torch.compile",
        partial(pytorch.ready, compiled=True),
        ("torch",),
        "bench",
        pytorch.compiled_programs,
    ),
    "iree": Peer("IREE", iree.ready, ("iree.compiler", "iree.runtime", "jax"), "bench"),
}
OURS = ("fast", "exact")
