"""Write docs/gpu.md from what was run on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
_COUNTS = ("programs", "left out", "other bits", "errors")
_ABOUT = {
    "large ops": "ops large enough for many blocks, and for tiles",
    "ops": "every op on every type that interpreter and C take",
    "files": "`tests/regressions`, and programs of `tests/corpus` of at most 4 million elements",
    "drawn": "drawn programs, seed 15",
    "memcheck": "large ops under compute-sanitizer's memcheck",
    "racecheck": "the same under racecheck",
    "synccheck": "the same under synccheck",
}
_MOST_WRONG = 20
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
_NOTHING = (
    "**Not measured.** No GPU has run what this project generates: nvcc takes it, and on emulated"
    " threads it gives the interpreter's bits ([cuda.md](cuda.md)).\n"
)


def text(rows: Rows, when: str = "") -> str:
    """Return the page; ``when`` says the date and the commit."""
    checked = [row for row in rows if row["piece"] in _ABOUT]
    where = dict.fromkeys(row["where"] for row in checked if "where" in row)
    told = f"{'; '.join(where)}, {when}.\n" if rows else _NOTHING
    lines = ["# On a GPU", "", told, _HOW]
    if checked:
        lines += ["## Bits", *_checked(checked), ""]
    timed = [row for row in rows if row["piece"] == "bench"]
    if timed:
        lines += ["## Time", *_timed(timed), ""]
    return "\n".join(lines)


def _checked(rows: Rows) -> Iterator[str]:
    """Yield the table of pieces, and what is wrong."""
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
    yield "Least of the runs by the GPU's clock, fast numerics, arrays on the GPU. GB/s counts"
    yield "arguments and results once; % is of a copy on the same GPU, and of the data sheet's peak"
    yield "for the type."
    yield ""
    yield "| program | ms | GB/s | % of copy | TFLOP/s | % of peak |"
    yield "|---|---:|---:|---:|---:|---:|"
    for row in rows:
        if "error" in row:
            yield f"| `{row['name']}` | {row['error']} | | | | |"
        else:
            columns = ("ms", "GB/s", "% of copy", "TFLOP/s", "% of peak")
            cells = ["" if row.get(c) is None else f"{row[c]:.3g}" for c in columns]
            yield f"| `{row['name']}` | {' | '.join(cells)} |"
