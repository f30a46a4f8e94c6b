"""Check the answers of XLA, and how its crashes are named."""

from __future__ import annotations

from signal import Signals

import numpy as np
import pytest

import hlo
from fuzz.peers.xla import XLA
from fuzz.worker_pool import Death
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

NEGATE = """HloModule negated
ENTRY main {
  x = f64[3] parameter(0)
  ROOT r = (f64[3], f64[3]) tuple(x, x)
}
"""


def test_xla_answers() -> None:
    pytest.importorskip("jaxlib")
    with XLA() as xla:
        answer = xla(NEGATE, [np.array([1.0, 1 / 3, np.nan])])
        assert answer.outputs is not None and answer.compile > 0
        assert [x.dtype for x in answer.outputs] == [np.float64] * 2
        assert np.array_equal(answer.outputs[1], [1.0, 1 / 3, np.nan], equal_nan=True)
        refused = xla(NEGATE.replace("tuple", "pair"), [])
        assert refused.error is not None and "pair" in refused.error


def test_a_program_that_is_kept_takes_other_arguments() -> None:
    pytest.importorskip("jaxlib")
    with XLA() as xla:
        for value in (1.0, 2.0):
            answer = xla(NEGATE, [np.full(3, value)])
            assert answer.outputs is not None
            assert np.array_equal(answer.outputs[0], np.full(3, value))


def test_the_state_of_random_numbers_begins_anew_with_each_question() -> None:
    pytest.importorskip("jaxlib")
    text = """HloModule random
ENTRY main {
  ROOT r = u64[2] rng-get-and-update-state(), delta=1
}
"""
    with XLA() as xla:
        first, second = (xla(text, []).outputs for _ in range(2))
        assert first is not None and second is not None
        assert np.array_equal(first[0], second[0])


class _Dying:
    """In place of processes: they all die in the same way."""

    death = Death()
    calls = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *_: object) -> Death:
        type(self).calls += 1
        return self.death

    def close(self) -> None:
        pass


CHECK = "F1122 literal.cc:2519] Unhandled"


@pytest.mark.parametrize(
    ("death", "crash", "calls"),
    [
        (Death(Signals.SIGABRT, lines=(CHECK, "and so on")), f"SIGABRT: {CHECK}", 3),
        (Death(Signals.SIGSEGV), "SIGSEGV", 4),
        (Death(limit=60.0, lines=("at it",)), "no answer in 60 s: at it", 2),
    ],
)
def test_a_death_counts_if_a_new_process_dies_too(
    death: Death, crash: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.peers.xla.WorkerPool", _Dying)
    monkeypatch.setattr(_Dying, "death", death)
    monkeypatch.setattr(_Dying, "calls", 0)
    with XLA() as run:
        assert [run("", ()).crash for _ in range(2)] == [crash] * 2
    assert _Dying.calls == calls


ALL_TO_ALL = """HloModule exchange
ENTRY main {
  x = f32[] parameter(0)
  ROOT r = (f32[]) all-to-all(x)
}
"""

DIVISION = """HloModule division
ENTRY main {
  x = s32[] constant(7)
  y = s32[] constant(0)
  ROOT r = s32[] divide(x, y)
}
"""

CONVERSION = """HloModule conversion
ENTRY main {
  x = c64[] constant((1, 2))
  ROOT r = s32[] convert(x)
}
"""


def test_the_function_of_xla_that_crashes_is_named() -> None:
    pytest.importorskip("jaxlib")
    with XLA() as xla:
        answers = [xla(ALL_TO_ALL, [np.float32(1)]), xla(DIVISION, []), xla(CONVERSION, [])]
    assert [answer.crash for answer in answers] == [
        "SIGSEGV in mlir::stablehlo::AllToAllOp::getSplitDimension",
        "SIGFPE in mlir::stablehlo::FoldDivOpPattern",  # not what this calls for signed numbers
        "SIGSEGV in mlir::stablehlo::foldConvert",  # not the list of numbers that it reads
    ]


CHOLESKY = """HloModule factor
ENTRY main {
  x = f32[2,2]{0,1} parameter(0)
  ROOT f = (f32[2,2]{0,1}, s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi", operand_layout_constraints={f32[2,2]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}
}
"""  # noqa: E501 (one instruction)


def test_xla_has_lapack() -> None:
    """XLA answers a Cholesky custom call of LAPACK within the envelope: a factor nearby, and
    whether there is one."""
    pytest.importorskip("jaxlib")
    matrix = np.array([[4, 2], [2, 3]], np.float32)
    with XLA() as xla:
        answer = xla(CHOLESKY, [matrix])
    assert answer.outputs is not None, answer.error or answer.crash
    factor, info = enclose(hlo.parse(CHOLESKY), matrix, peer=XLA_CPU).result
    assert contains(factor, answer.outputs[0]).all() and (factor.high - factor.low < 1e-4).all()
    assert answer.outputs[1] == info.low == info.high == 0
    factor, info = enclose(hlo.parse(CHOLESKY), matrix - 4, peer=XLA_CPU).result
    assert factor.nan.any() and info.low < info.high
