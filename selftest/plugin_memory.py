"""``python -m selftest.plugin_memory``: does memory grow with the programs that JAX has compiled?

So many different programs are compiled, called and dropped in one process, on the plugin or, to
compare, on another platform (``--platform cpu``). Told is the resident memory after each quarter,
in MiB: the first one fills caches, and what the others add is a leak. Exit status: 1 if they add
more than ``--more``.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from hlo_oracle import option_types
from hlo_oracle.required_packages import require_package

_QUARTERS = 4
_MIB = 1 << 20


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    require_package("to compile programs", "jax", "jax")
    os.environ["JAX_PLATFORMS"] = given.platform
    found = []
    for number, mebibytes in resident(given.programs):
        found.append(mebibytes)
        print(f"{number:,} programs: {mebibytes:.1f} MiB", flush=True)
    return int(max(found) - found[0] > given.more)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.plugin_memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole = partial(option_types.whole, _QUARTERS)
    parser.add_argument("--programs", type=whole(1 << 20, "a number from 4"), default=1000)
    parser.add_argument("--platform", default="hlo_oracle", help="of JAX")
    parser.add_argument("--more", type=float, default=8.0, metavar="MIB", help="that may be added")
    return parser


def resident(programs: int) -> Iterator[tuple[int, float]]:
    """Compile programs that differ by a constant; yield their number and the resident memory in MiB
    after each quarter."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(5, 12)
    quarter = -(-programs // _QUARTERS)
    for number in range(1, programs + 1):
        # A constant of its own makes each a program that no cache knows.
        step = jax.jit(lambda v, k=float(number): jnp.tanh(v @ v.T * k).sum())
        jax.block_until_ready(step(x))  # type: ignore[no-untyped-call]
        if number % quarter == 0 or number == programs:
            del step
            jax.clear_caches()  # type: ignore[no-untyped-call]
            gc.collect()
            yield number, _resident()


def _resident() -> float:
    """Return this process's resident memory in MiB; its peak where the system does not report
    it."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / _MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
