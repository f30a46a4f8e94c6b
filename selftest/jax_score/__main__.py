"""``python -m selftest.jax_score``: how many of JAX's functions give what XLA:CPU gives.

JAX's harnesses of its primitives, its records of operations of lax, and tables of calls of its
public functions run on the plugin and on XLA:CPU, and are compared as JAX's tests compare. A case
that crashes or hangs is a row like others. Cases are run in an order drawn from their names, so
that a run that ends early is a sample of all, x64 on and off having half of ``--minutes`` each;
``--sample N`` takes one of N in each group. With ``--state FILE`` a run goes on where the last one
ended. On a machine with other work raise ``--seconds``, which are no processor time. Exit status: 1
if anything failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from hlo_oracle.required_packages import require_package
from selftest.jax_score.examiner import case_runner
from selftest.jax_score.table import markdown, rows
from selftest.scoring import runs
from selftest.scoring.outcomes import Journal

_SETTINGS = {"both": ("x64", "x32"), "on": ("x64",), "off": ("x32",)}
_WHAT = "what JAX's functions give on the plugin, beside XLA:CPU in the same process"


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    require_package("to compare as JAX's tests do", "absl", "score")
    journal = Journal(given.state, given.mode)
    openers = {one: partial(case_runner, given.mode, one) for one in _SETTINGS[given.x64]}
    outcomes = runs.run(given, journal, openers)
    page = markdown(outcomes, runs.described(given, journal, "jax_score", _WHAT))
    return runs.report(given, outcomes, page, rows(outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = runs.score_parser("jax_score", __doc__ or "", "of the plugin")
    parser.add_argument("--x64", choices=_SETTINGS, default="both")
    return parser


if __name__ == "__main__":
    sys.exit(main())
