"""The campaign that no legal result is outside, in short."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from fuzz.campaign.subject import whole
from interp.envelope.budget import XLA_CPU
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES
from selftest.legal_compilers.sums import fused
from selftest.soundness import Soundness, SoundnessExaminer, drawn, main, model, verdicts


def test_nothing_legal_is_outside() -> None:
    found = whole(SoundnessExaminer(Soundness(1, 25)).chunk(0))
    assert found.counts["programs"] == 25
    assert not found.suspects, found.suspects[0]


@pytest.mark.parametrize("chunk", range(1, 60, 6))
def test_no_legal_result_of_a_model_is_outside(chunk: int) -> None:
    case = model(2, chunk)
    for how, found in verdicts(case.module, case.arrays, chunk):
        assert not found.counts["outside"] and not found.wrong, how


def test_a_run_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--chunk", "2", "--state", str(tmp_path / "state")]
    assert main(["--count", "2", *state]) == 0
    assert main(["--count", "4", *state]) == 0
    assert "4 programs" in capsys.readouterr().err.splitlines()[-1]
    kept = [path.read_text() for path in sorted(tmp_path.glob("state/*/*.json"))]
    assert len(kept) == 2
    assert main(["--count", "4", "--chunk", "2", "--state", str(tmp_path / "other")]) == 0
    assert [path.read_text() for path in sorted(tmp_path.glob("other/*/*.json"))] == kept


class Miscompiling(Perturbed):
    """Takes sums for differences."""

    def __call__(self, module: hlo.Module, *arguments: Any, **limits: Any) -> Any:
        return super().__call__(
            hlo.parse(hlo.format(module).replace(" add(", " subtract(")), *arguments, **limits
        )


def test_what_is_outside_is_found_and_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("selftest.soundness.Perturbed", Miscompiling)
    words = [
        "--count",
        "20",
        "--seed",
        "1",
        "--chunk",
        "20",
        "--state",
        str(tmp_path),
        "--reduce",
        "3",
    ]
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {one["kind"] for one in found} == {"outside"}
    assert ["add"] in [one["opcodes"] for one in found]
    for path in tmp_path.glob("findings/*/reduced.hlo"):
        hlo.verify(hlo.parse(path.read_text()))
        assert " add(" in path.read_text()


def test_programs_are_the_same_for_a_seed() -> None:
    one, other = (drawn(0, 3, 4) for _ in range(2))
    assert [hlo.format(case.module) for case in one] == [hlo.format(case.module) for case in other]


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
