"""``python -m selftest.torch_score``: how many of PyTorch's operations give what eager gives.

PyTorch's own samples of its operations (``op_db``) are compiled as ``torch.compile(backend=
"hlo_oracle")`` compiles the graphs that TorchDynamo finds, each operation in C, and are compared
with eager, and gradients with those of eager autograd. With ``--mode interp`` they are traced as
``ho.check`` traces functions, and interpreted: no C is compiled, which takes most of the time. A
case that crashes or hangs is a row like others. Cases are run in an order drawn from their names,
so that a run that ends early is a sample of all, each type having an equal share of ``--minutes``;
``--sample N`` takes one of N samples of each operation, and of its gradient, at least one. With
``--state FILE`` a run goes on where the last one ended. On a machine with other work raise
``--seconds``, which are no processor time. Exit status: 1 if anything failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from hlo_oracle.required_packages import require_package
from selftest.scoring import runs
from selftest.scoring.outcomes import Journal
from selftest.torch_score.examiner import case_runner
from selftest.torch_score.table import markdown, rows

TYPES = (
    "float32", "float64", "bfloat16", "float16", "int64", "uint8", "bool", "complex64",
    "int32", "int16", "int8", "complex128",
)  # fmt: skip
_DEFAULT = ",".join(TYPES[:8])
_WHAT = "what PyTorch's operations give here, beside eager, on PyTorch's own samples of them"


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    for package, extra in (("torch", "torch"), ("jax", "torch"), ("expecttest", "torch-score")):
        require_package("to compile PyTorch's samples of its operations", package, extra)
    journal = Journal(given.state, given.mode)
    openers = {one: partial(case_runner, given.mode, one) for one in given.types}
    outcomes = runs.run(given, journal, openers)
    page = markdown(outcomes, runs.described(given, journal, "torch_score", _WHAT))
    return runs.report(given, outcomes, page, rows(outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = runs.score_parser("torch_score", __doc__ or "", "of the C; or none")
    parser.add_argument("--types", type=_types, default=_DEFAULT, metavar="A,B", help=_DEFAULT)
    return parser


def _types(text: str) -> list[str]:
    for name in (names := text.split(",")):
        if name not in TYPES:
            raise argparse.ArgumentTypeError(f"type {name!r}: there are {', '.join(TYPES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
