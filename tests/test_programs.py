"""XLA's results of functions as users of JAX write them are not outside, but for known defects.

A dozen of tests/programs; ``cd tests && python -m programs`` judges all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

jax = pytest.importorskip("jax")

from programs.__main__ import by_name, chosen, notes, table  # noqa: E402
from programs.campaign import REFUSED, Examiner, Functions  # noqa: E402
from programs.known import REAL, find  # noqa: E402
from programs.table import FAMILIES, all_functions, functions  # noqa: E402

from fuzz.campaign.subject import whole  # noqa: E402
from fuzz.peers.xla import XLA, Answer  # noqa: E402
from interp.envelope.verdict import KINDS, OUTSIDE  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what JAX warns of is its own affair

_CHOSEN = (
    ("activations.ratio_of_large_exponentials", "f16"),
    ("activations.there_and_back_in_nested_jits", "f32"),
    ("activations.divided_by_a_huge_number", "f32"),
    ("narrow_types.gradient_of_layer_norm_f16", "f32"),
    ("narrow_types.cumulative_sum_bf16", "f32"),
    ("solvers.kalman_step", "f32"),
    ("solvers.solve_complex", "f32"),
    ("factorizations.log_density_of_a_gaussian", "f32"),
    ("recurrent.gated_recurrent_unit", "f32"),
    ("recurrent.connectionist_likelihood", "f32"),
    ("sorting.quantiles", "f32"),
    ("indexing.softmax_of_segments", "bf16"),
    ("spectral.low_pass", "f64"),
    ("random_numbers.metropolis_steps", "f32"),
    ("training.adam_step", "f32"),
    ("by_hand.state_estimation.systematic_resampling", "f32"),
    ("by_hand.quantised_arithmetic.int8_product_by_channels", "f32"),
    ("by_hand.series_and_integrals.entropies_and_divergences", "f32"),
    ("by_hand.graphs_and_tables.orders_with_equal_keys", "f32"),
    ("everyday.losses_and_optimisers.nesterov_in_f16", "f32"),
    ("everyday.quantised_layers.int8_product_of_bf16_with_bf16_scales", "f32"),
    ("everyday.windows_and_folds.gated_recurrence_by_a_scan_in_bf16", "f32"),
    ("everyday.segments_and_places.gathers_by_each_mode", "bf16"),
    ("everyday.batched_matrices.rotations_by_procrustes", "f32"),
    ("everyday.integers_and_images.packed_bits_and_run_lengths", "f32"),
)


@pytest.fixture(scope="module")
def xla() -> Iterator[XLA]:
    with XLA() as run:
        yield run


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "floats"), _CHOSEN)
def test_nothing_but_known_defects_is_outside(name: str, floats: str, xla: XLA) -> None:
    found = whole(Examiner(Functions((name,), 0, 60.0, floats), xla).chunk(0))
    counts = found.tally(name)
    assert sum(counts[kind] for kind in KINDS) > 0, found.notes
    assert find(name, floats) or not counts[OUTSIDE], found.notes
    assert not found.suspects


@pytest.mark.parametrize(
    "name",
    [
        "by_hand.singular_matrices.gradient_through_shampoo",
        "by_hand.singular_matrices.whitened_by_cholesky",
        "by_hand.mere_roundings.gradient_of_decibels_of_a_tone",
    ],
)
def test_what_follows_is_judged_on_shown_values(xla: XLA, name: str) -> None:
    counts = whole(Examiner(Functions((name,), 0, 60.0), xla).chunk(0)).tally(name)
    assert not counts["undetermined"] and not counts[OUTSIDE] and sum(counts.values())


def test_what_is_wrong_is_outside(xla: XLA) -> None:
    """XLA's results, but for the first element."""

    def wrong(text: str, arrays: list[np.ndarray]) -> Answer:
        answer = xla(text, arrays)
        outputs = [x.copy() for x in answer.outputs or ()]
        outputs[0].flat[0] += 0.01
        return replace(answer, outputs=tuple(outputs))

    name = "training.momentum_step"
    found = whole(Examiner(Functions((name,), 0, 60.0), wrong).chunk(0))
    assert found.tally(name)[OUTSIDE] == 1
    (suspect,) = found.suspects
    assert suspect.kind == f"outside: {name}"
    assert "outside" in "\n".join(notes([name], found))
    *_, row, total = table(by_name([name], found))
    assert row.split(" | ")[1:] == total.split(" | ")[1:]


def test_functions_that_take_no_such_type_are_refused(xla: XLA) -> None:
    name = "integers.fast_inverse_square_root"
    found = whole(Examiner(Functions((name,), 0, 60.0, "f16"), xla).chunk(0))
    assert found.counts == {REFUSED: 1} and name in found.notes


def test_every_family_has_functions() -> None:
    assert len(all_functions()) == sum(len(functions(family)) for family in FAMILIES) > 300
    assert min(len(functions(family)) for family in FAMILIES) >= 12
    folder = ROOT / "tests" / "programs"
    files = {".".join(p.relative_to(folder).with_suffix("").parts) for p in folder.rglob("*.py")}
    assert files.issuperset(FAMILIES)
    assert len(chosen("solvers solve")) > 2


def test_arguments_follow_from_the_seed() -> None:
    one = all_functions()["sums.matmul"]
    first, again, other = one.arguments(1), one.arguments(1), one.arguments(2)
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))
    assert not np.array_equal(*first)


@pytest.mark.parametrize("row", REAL, ids=lambda row: row.name)
def test_known_defects_are_reported(row: object) -> None:
    assert row.name in all_functions()
    assert (ROOT / "docs" / "found" / row.folder / "issue.md").exists()
