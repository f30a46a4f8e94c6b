"""The state shared by the plugin's functions."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from hlo_oracle.frontends.pjrt.checks import Checks, settings_of
from hlo_oracle.frontends.pjrt.foreign_memory import Kept
from hlo_oracle.frontends.pjrt.handles import Handles
from hlo_oracle.frontends.pjrt.interrupts import Interrupts
from hlo_oracle.frontends.pjrt.modes import Mode
from hlo_oracle.frontends.pjrt.partitioning import Partitioner


@dataclass(slots=True)
class Plugin:
    """Handles of the objects that clients hold, and strings that live as long as the process.

    ``mode`` is None until a client is created.
    """

    nothing_to_free: int = 0  # a C function for clients to call: what they get, the objects hold
    interrupts: Interrupts | None = None
    handles: Handles = field(default_factory=Handles)
    kept: Kept = field(default_factory=Kept)
    mode: Mode | None = None
    checks: Checks | None = None  # of the mode check
    names: Iterator[int] = field(default_factory=count)
    partitioner: Partitioner = field(default_factory=Partitioner)

    def next_name(self) -> str:
        """Make a name for the next client, the same in each of its processes."""
        return f"hlo_oracle/{next(self.names)}"

    def choose(self, mode: Mode) -> None:
        """Set the mode of programs compiled from now on."""
        self.mode = mode
        if self.interrupts is not None:
            self.interrupts.install()
        if mode is Mode.CHECK and self.checks is None:
            self.checks = Checks(settings_of(os.environ))
            atexit.register(self.checks.tell)
