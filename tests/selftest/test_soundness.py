"""The campaign that no legal result is outside, in short."""

from pathlib import Path

import numpy as np
import pytest

import hlo
from interp.envelope.budget import XLA_CPU
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES
from selftest.legal_compilers.sums import fused
from selftest.soundness import drawn, examined, judged, main, model


def test_nothing_legal_is_outside() -> None:
    findings = examined(1, 0, 25)
    assert findings.counts["programs"] == 25
    assert not findings.wrong, findings.wrong[0]


@pytest.mark.parametrize("chunk", range(1, 60, 6))
def test_no_legal_result_of_a_model_is_outside(chunk: int) -> None:
    module, values = model(2, chunk)
    for how, found in judged(module, values, chunk):
        assert not found.counts["outside"] and not found.wrong, how


def test_a_run_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--chunk", "2", "--state", str(tmp_path / "state.json")]
    assert main(["--count", "2", *state]) == 0
    assert main(["--count", "4", *state]) == 0
    assert "4 programs" in capsys.readouterr().err.splitlines()[-1]
    kept = (tmp_path / "state.json").read_text()
    assert main(["--count", "4", "--chunk", "2", "--state", str(tmp_path / "other.json")]) == 0
    assert (tmp_path / "other.json").read_text() == kept


def test_programs_are_the_same_for_a_seed() -> None:
    one, other = (drawn(0, 3, 4) for _ in range(2))
    assert [hlo.format(module) for module, _ in one] == [hlo.format(module) for module, _ in other]


def test_fused() -> None:
    """f32 of a product plus a number: float64 would be halfway, and round to even."""
    half, tiny = 1 + 2.0**-24, 2.0**-60
    assert fused(np.array([half]), np.array([tiny])).tolist() == [1 + 2.0**-23]
    assert fused(np.array([half]), np.array([-tiny])).tolist() == [1.0]
    assert fused(np.array([half]), np.array([0.0])).tolist() == [1.0]


@pytest.mark.parametrize("mode", MODES)
def test_values_stay_wide_and_products_unrounded(mode: str) -> None:
    module = hlo.parse("""HloModule m
ENTRY main {
  x = bf16[64] parameter(0)
  y = bf16[64] multiply(x, x)
  z = bf16[64] add(y, x)
  ROOT f = f32[64] convert(z)
}
""")
    x = np.linspace(1, 2, 64, dtype=np.float32).astype(hlo.types.BF16.numpy)
    runs = [Perturbed(XLA_CPU, seed, mode)(module, x) for seed in range(8)]
    assert len({run.tobytes() for run in runs}) > 1


def test_what_is_kept_is_beside_what_is_shown() -> None:
    """A conversion that shows 4 as two numbers below could not be of 4 in f32."""
    x = np.array([4, 4.001, 3.999, 1, -2, 65472, 7e-5], np.float32)
    peer = Perturbed(XLA_CPU, 0, "all down")
    module = hlo.parse(
        "HloModule m\nENTRY e {\n x = f32[7] parameter(0)\n"
        " c = f16[7] convert(x)\n ROOT b = f16[7] copy(c)\n}\n"
    )
    shown = np.asarray(peer(module, x))
    assert (shown.astype(np.float32) <= x).all()
    assert (np.nextafter(shown, np.float16(np.inf)).astype(np.float32) >= x).all()
