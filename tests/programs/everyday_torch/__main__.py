"""Judge PyTorch's results of functions as users write them by ``ho.check``, by family and type.

    cd tests && python -m programs.everyday_torch [--only WORDS] [--floats f32,bf16] [--compiled]

calls each function of programs/everyday_torch on arguments drawn from ``--seed``, of each of the
types ``--floats`` where they are f32, as eager PyTorch or, with ``--compiled``, as inductor runs
it. Prints the evidence of each that is not equal or within, and a table: functions that were
judged, those of them with elements outside, elements by verdict, refusals of eager (which has no
such kernel) and of the judge, seconds. With ``--state FILE`` a run goes on where the last one
ended. Exit status 1 if an element is outside or a judgement crashed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import hlo_oracle as ho
from fuzz.draw.time_limit import TooLongError, time_limit
from hlo.errors import Error
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN
from programs.everyday_torch.function import TorchFunction
from programs.everyday_torch.table import FAMILIES, all_functions

_ORDER = (EQUAL, WITHIN, UNDETERMINED, OUTSIDE)
_NO_KERNEL, _REFUSED, _CRASHED, _TOO_LONG = "no kernel", "refused", "crashed", "took too long"
assert set(_ORDER) == set(KINDS)

Row = Mapping[str, Any]  # of one judgement: its counts or why there is none


def judged(one: TorchFunction, floats: str, seed: int, seconds: float, compiled: bool) -> Row:
    """Judge a function of arguments of a type; ``note`` is the evidence, or the reason why there is
    no verdict."""
    begin = time.monotonic()
    row: dict[str, Any] = {}
    try:
        function, arguments = one.called(floats, seed)
        function(*arguments)
    except Exception as error:  # whatever PyTorch raises of a type
        row = {"none": _NO_KERNEL, "note": f"{type(error).__name__}: {error}"}
    else:
        function, arguments = one.called(floats, seed)  # which the call may have written
        if compiled:
            torch._dynamo.reset()
            function = torch.compile(function)
        try:
            with time_limit(seconds):
                verdict = ho.check(function, *arguments)
            row = {kind: getattr(verdict, kind) for kind in _ORDER}
            row["note"] = str(verdict) if verdict.outside or verdict.undetermined else ""
        except TooLongError:
            row = {"none": _TOO_LONG, "note": ""}
        except Error as error:
            row = {"none": _REFUSED, "note": f"{type(error).__name__}: {error}"}
        except Exception:  # a defect of the judge, or what inductor raises
            row = {"none": _CRASHED, "note": traceback.format_exc()}
    return {**row, "seconds": round(time.monotonic() - begin, 1)}


def table(rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """A line for each family and type that has rows, and one of all for each type. The keys are the
    names and types of functions."""
    heads = ("judged", "some outside", *_ORDER, "undetermined of all", _NO_KERNEL, "none", "s")
    yield f"| family | type | {' | '.join(heads)} |"
    yield "|:--|:--|" + "--:|" * len(heads)
    types = list(dict.fromkeys(floats for _, floats in rows))
    for family in (*FAMILIES, ""):
        for floats in types:
            own = [
                row
                for (name, other), row in rows.items()
                if other == floats and (not family or name.startswith(f"{family}."))
            ]
            if own:
                yield _line(family.replace("_", " ") or "all", floats, own)


def _line(family: str, floats: str, rows: Sequence[Row]) -> str:
    total: Counter[str] = Counter()
    for row in rows:
        total.update({kind: row.get(kind, 0) for kind in _ORDER})
    elements = [total[kind] for kind in _ORDER]
    verdicts = [row for row in rows if "none" not in row]
    without = [row["none"] for row in rows if "none" in row]
    cells = (
        family, floats, len(verdicts), sum(row[OUTSIDE] > 0 for row in verdicts), *elements,
        f"{total[UNDETERMINED] / max(sum(elements), 1):.2%}", without.count(_NO_KERNEL),
        len(without) - without.count(_NO_KERNEL), round(sum(row["seconds"] for row in rows)),
    )  # fmt: skip
    return f"| {' | '.join(f'{x:,}' if isinstance(x, int) else x for x in cells)} |"


def notes(rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """The evidence of each judgement that is not all equal or within, but for missing kernels."""
    for (name, floats), row in rows.items():
        if row["note"] and row.get("none") != _NO_KERNEL:
            yield f"{name}, {floats}, {row['seconds']} s: {row.get('none', '')}"
            yield from (f"    {line}" for line in str(row["note"]).splitlines())


def _read(state: Path | None) -> dict[tuple[str, str], Row]:
    if state is None or not state.exists():
        return {}
    lines = map(json.loads, state.read_text().splitlines())
    return {(line.pop("name"), line.pop("floats")): line for line in lines}


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m programs.everyday_torch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="WORDS", help="functions named so")
    parser.add_argument("--floats", default="f32,bf16,f16", metavar="TYPES", help="separated by ,")
    parser.add_argument("--seed", type=int, default=0, help="of the arguments")
    parser.add_argument("--seconds", type=float, default=240.0, help="for a judgement, at most")
    parser.add_argument("--compiled", action="store_true", help="by inductor, not by eager")
    parser.add_argument("--state", type=Path, help="a file of the judgements that are done")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Judge, and print what was found."""
    given = _options(words)
    torch.set_num_threads(1)
    rows = _read(given.state)
    for floats in given.floats.split(","):
        for name, one in all_functions().items():
            if (name, floats) in rows or not all(x in name for x in given.only.lower().split()):
                continue
            row = judged(one, floats, given.seed, given.seconds, given.compiled)
            rows[name, floats] = row
            if given.state is not None:
                with given.state.open("a") as file:
                    file.write(json.dumps({"name": name, "floats": floats, **row}) + "\n")
    for line in (*notes(rows), *table(rows)):
        print(line)
    return int(any(row.get(OUTSIDE) or row.get("none") == _CRASHED for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
