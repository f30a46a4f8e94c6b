"""PyTorch's results of functions as its users write them are not outside.

A dozen of tests/programs/everyday_torch; ``cd tests && python -m programs.everyday_torch`` judges
all. Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from __future__ import annotations

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

from programs.everyday_torch.__main__ import judged, main, notes, table  # noqa: E402
from programs.everyday_torch.table import FAMILIES, all_functions, functions  # noqa: E402

from interp.envelope.verdict import OUTSIDE, UNDETERMINED  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch warns of is its own affair

_CHOSEN = (
    ("attention.grouped_queries", "bf16"),
    ("language_models.penalty_of_repetition", "f32"),
    ("vision.intersection_over_union", "f16"),
    ("audio.companding_by_mu_law", "bf16"),
    ("graphs.graph_attention", "f32"),
    ("optimizers.step_of_adamw", "f32"),
    ("optimizers.momentum_in_place", "bf16"),
    ("norms_and_activations.batch_norm_in_training", "f32"),
    ("losses_and_gradients.angular_margin", "f32"),
    ("segments_and_orders.cumulative_folds", "f16"),
    ("matrices_and_spectra.real_transforms", "f32"),
    ("densities_and_functions.black_scholes", "bf16"),
    ("integers_and_quantisation.nibbles_unpacked", "f16"),
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "floats"), _CHOSEN)
def test_nothing_is_outside(name: str, floats: str) -> None:
    row = judged(all_functions()[name], floats, 0, 120.0, compiled=False)
    assert "none" not in row, row["note"]
    assert not row[OUTSIDE], row["note"]


def test_the_table_has_a_line_for_each_family_and_type() -> None:
    rows = {
        ("graphs.page_rank", "f32"): {
            "equal": 4, "within": 1, UNDETERMINED: 1, OUTSIDE: 0, "note": "why", "seconds": 1.0,
        },
        ("graphs.page_rank", "bf16"): {"none": "no kernel", "note": "no", "seconds": 0.0},
    }  # fmt: skip
    _, _, *lines = table(rows)
    assert [line.split(" | ")[0] for line in lines] == ["| graphs"] * 2 + ["| all"] * 2
    assert lines[0] == "| graphs | f32 | 1 | 0 | 4 | 1 | 1 | 0 | 16.67% | 0 | 0 | 1 |"
    assert [*notes(rows)] == ["graphs.page_rank, f32, 1.0 s: ", "    why"]


def test_every_family_has_functions_that_the_command_finds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(all_functions()) == sum(len(functions(family)) for family in FAMILIES) > 250
    folder = ROOT / "tests" / "programs" / "everyday_torch"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    assert files == {*FAMILIES, "function", "table"}
    assert main(["--only", "graphs page_rank", "--floats", "f32"]) == 0
    assert "| graphs | f32 | 1 | 0 |" in capsys.readouterr().out


def test_arguments_follow_from_the_seed() -> None:
    one = all_functions()["optimizers.adam_by_hand"]
    first, again, other = (one.called("bf16", seed)[1] for seed in (1, 1, 2))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])
    assert {x.dtype for x in first} == {torch.bfloat16}
