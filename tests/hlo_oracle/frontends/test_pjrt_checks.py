"""HLO_ORACLE_MODE=check: another compiler is judged beside the plugin."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np

import hlo
from hlo_oracle.frontends.pjrt.callbacks import TARGET
from hlo_oracle.frontends.pjrt.checks import Checks, Settings, settings_of

PROGRAM = """HloModule jit_f
ENTRY main {
  x = s32[4] parameter(0)
  ROOT y = s32[4] add(x, x)
}
"""
# A compiler that gets every sum wrong.
WRONG = """
import sys, numpy as np
x, = np.load(sys.argv[2]).values()
np.savez(sys.argv[3], r0=x + x + 1)
"""


def test_what_is_proven_wrong_is_told_and_reported(tmp_path: Path) -> None:
    compiler = tmp_path / "wrong.py"
    compiler.write_text(WRONG)
    settings = Settings(f"{sys.executable} {compiler}", tmp_path / "reports", 2)
    checks, told = Checks(settings), io.StringIO()
    checks.judge(hlo.parse(PROGRAM), PROGRAM, (np.arange(4, dtype=np.int32),))
    checks.leave_out("jit_g: it runs on 2 devices: one is judged")
    checks.tell(told)
    first, second, third = told.getvalue().splitlines()
    assert first.startswith("hlo-oracle: OUTSIDE: jit_f on ")
    assert second == "hlo-oracle: not judged: jit_g: it runs on 2 devices: one is judged"
    folder = Path(third.removeprefix("hlo-oracle: report: "))
    assert folder == tmp_path / "reports" / "000_jit_f" and (folder / "issue.md").exists()


def test_a_compiler_that_is_not_there_is_no_failure_of_the_program() -> None:
    checks, told = Checks(Settings("no-such-compiler")), io.StringIO()
    checks.judge(hlo.parse(PROGRAM), PROGRAM, (np.arange(4, dtype=np.int32),))
    checks.tell(told)
    assert "not judged: jit_f: --against no-such-compiler" in told.getvalue()


def test_a_program_that_calls_python_is_not_judged() -> None:
    """The custom call is one that XLA:CPU has, whose functions are those of its own process."""
    call = PROGRAM.replace("add(x, x)", f'custom-call(x), custom_call_target="{TARGET}"')
    checks, told = Checks(Settings("no-such-compiler")), io.StringIO()
    checks.judge(hlo.parse(call), call, (np.arange(4, dtype=np.int32),))
    checks.tell(told)
    assert told.getvalue() == (
        "hlo-oracle: not judged: jit_f: it calls Python, which the compiler cannot\n"
    )


def test_settings_come_from_the_environment() -> None:
    assert settings_of({}) == Settings()
    given = {"HLO_ORACLE_AGAINST": "cc", "HLO_ORACLE_REPORTS": "there"}
    assert settings_of(given) == Settings("cc", Path("there"))
