"""Write docs/gpu.md from the records of a GPU check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
_COUNTS = ("programs", "left out", "other bits", "errors")
_ABOUT = {
    "large ops": "ops large enough for many blocks, and for tiles",
    "ops": "every op on every type that interpreter and C take",
    "files": "`tests/regressions`, and programs of `tests/corpus` of at most 4 million elements",
    "drawn": "drawn programs, seed 15",
    "exchange": "arrays to and from CuPy, PyTorch and JAX, where they are",
    "memcheck": "large ops under compute-sanitizer's memcheck",
    "racecheck": "the same under racecheck",
    "synccheck": "the same under synccheck",
}
_MOST_WRONG = 20
_PEERS = {"xla": "XLA", "eager": "PyTorch", "inductor": "inductor"}  # and their titles
_COLUMNS = ("ms", "% of copy", "TFLOP/s", "% of peak", *_PEERS, "ours / XLA")
_HOW = (
    "    make gpu-check      # on a machine with a GPU; again until it says that all is done\n"
    "    make gpu-bundle     # on any machine: what the other one needs, which has no network\n"
    "    tar xf gpu-bundle.tar.xz && cd gpu-bundle && python3 -m selftest.gpu.start\n"
    "\n"
    "Each program is run twice and compared with the interpreter bit by bit. Units of programs are"
    " compiled together and run in processes of their own; what is done is kept, so that a run of"
    " eight minutes goes on where the last one ended. The bundle has Python's packages, this tree,"
    " and the programs' kernels as cubins; a GPU of another architecture needs nvcc or NVRTC."
    " Without a GPU the same runs on the emulated driver: `python -m selftest.gpu.check"
    " --emulated`.\n"
)
_HOW_TIMED = (
    "Milliseconds of a run that is queued again and again on arrays of the GPU, by one clock for"
    " all: the least of twelve batches, so that of what the host takes longer to start than the"
    " GPU to do it is the start that is measured. Ours is fast numerics. Percentages are of a copy"
    " on the same GPU (arguments and results once each), and of the data sheet's peak for the type."
    " XLA, through JAX, takes products of f32 in TF32 if nothing else is asked for, and so do"
    " cuDNN's convolutions; ours are of f32.\n"
)
_NOTHING = (
    "**Not measured.** No GPU has run what this project generates: nvcc takes it, and on emulated"
    " threads it gives the interpreter's bits ([cuda.md](cuda.md)).\n"
)


def text(rows: Rows, when: str = "") -> str:
    """Format the page; ``when`` has the date and the commit."""
    checked = [row for row in rows if row["piece"] in _ABOUT]
    where = dict.fromkeys(row["where"] for row in checked if "where" in row)
    told = f"{'; '.join(where)}, {when}.\n" if rows else _NOTHING
    lines = ["# On a GPU", "", told, _HOW]
    if checked:
        lines += ["## Bits", *_checked(checked), ""]
    timed = [row for row in rows if row["piece"].startswith("bench")]
    if timed:
        lines += ["## Time", *_timed(timed), ""]
    return "\n".join(lines)


def _checked(rows: Rows) -> Iterator[str]:
    """Yield the table of pieces, and the faults."""
    yield "| what | programs | left out | other bits | errors | seconds |"
    yield "|---|---:|---:|---:|---:|---:|"
    for piece, about in _ABOUT.items():
        of_piece = [row for row in rows if row["piece"] == piece]
        if of_piece:
            counts = [f"{sum(row[column] for row in of_piece):,}" for column in _COUNTS]
            seconds = sum(row["seconds"] for row in of_piece)
            yield f"| {about} | {' | '.join(counts)} | {seconds:,.0f} |"
    wrong = [one for row in rows for one in row["wrong"]]
    if wrong:
        yield ""
        yield from (f"    {' '.join(one.split())}" for one in wrong[:_MOST_WRONG])
        if len(wrong) > _MOST_WRONG:
            yield f"    and {len(wrong) - _MOST_WRONG} more"


def _timed(rows: Rows) -> Iterator[str]:
    """Yield the table of times."""
    yield _HOW_TIMED
    titles = ("program", *(_PEERS.get(column, column) for column in _COLUMNS))
    yield f"| {' | '.join(titles)} |"
    yield f"|---|{'---:|' * len(_COLUMNS)}"
    by_name: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_name.setdefault(row["name"], {}).update(
            row if row["piece"] == "bench" else {k: row[k] for k in _PEERS if k in row}
        )
    ratios = []
    for name, row in by_name.items():
        if "ms" not in row:
            yield f"| `{name}` | {row.get('error', '')} | | | | | | | |"
            continue
        if "xla" in row:
            row["ours / XLA"] = row["ms"] / row["xla"]
            ratios.append(row["ours / XLA"])
        cells = ["" if row.get(c) is None else f"{row[c]:.3g}" for c in _COLUMNS]
        yield f"| `{name}` | {' | '.join(cells)} |"
    if ratios:
        yield ""
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield f"Geometric mean of ours / XLA: {mean:.2f}, of {len(ratios)} programs."
