"""How many drawn programs a second `hlo fuzz --against xla` judges with one process, and who takes
the time.

    python -m bench.against_xla [--programs N] [--seed N] [--json]

*here* is what this process takes (drawing, interpreting, judging), *XLA* what it waits for:
compiling, running, and beginning anew after a crash. Of the programs some are *left out*, most of
them refused by XLA, and some *violated*, most of them by a crash. `bench.same_bits` has the kinds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from bench.same_bits import KINDS, drawn
from fuzz.oracles import Difference, LeftOut
from fuzz.oracles.compilers import xla
from fuzz.oracles.oracle import Property


def measured(kind: str, count: int, seed: int, judge: Property) -> dict[str, Any]:
    """Measure a row of the table: milliseconds of a program."""
    begin, busy = time.perf_counter(), time.process_time()
    outcomes = judge(drawn(kind, count, seed))
    whole, here = time.perf_counter() - begin, time.process_time() - busy
    return {
        "kind": kind,
        "programs": count,
        "left_out": sum(isinstance(outcome, LeftOut) for outcome in outcomes),
        "violated": sum(isinstance(outcome, Difference) for outcome in outcomes),
        "here": round(1000 * here / count, 1),
        "XLA": round(1000 * (whole - here) / count, 1),
        "programs_per_second": round(count / whole, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--programs", type=int, default=200, help="of each kind")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    with xla() as judge:
        judge(drawn("single_op(…)", 2, given.seed))  # so that its process is there
        rows = [measured(kind, given.programs, given.seed, judge) for kind in KINDS]
    print(json.dumps(rows) if given.json else _table(rows))


def _table(rows: Sequence[dict[str, Any]]) -> str:
    titles = ("left out", "violated", "here", "XLA", "programs/s")
    lines = [f"{'milliseconds of a program':30}" + "".join(f"{title:>12}" for title in titles)]
    for row in rows:
        count = row["programs"]
        shares = [f"{row[name] / count:12.0%}" for name in ("left_out", "violated")]
        numbers = [f"{row[name]:12.1f}" for name in ("here", "XLA", "programs_per_second")]
        lines.append(f"{row['kind']:30}" + "".join([*shares, *numbers]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
