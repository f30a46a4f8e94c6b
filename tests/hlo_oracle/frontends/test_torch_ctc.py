"""The loss of connectionist temporal classification, against a sum over all alignments.

Nothing here needs PyTorch.
"""

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from hlo_oracle.frontends.jax_internals import with_x64  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.aten.table import operation_of  # noqa: E402 (after the skip)

CLASSES, STEPS, BLANK = 3, 4, 1
TARGETS = ([], [0], [2], [0, 2], [2, 2], [0, 0, 2], [2, 2, 2])  # the last one needs five steps
LENGTHS = (STEPS, 3, STEPS, 2, STEPS, STEPS, STEPS)


def computed(name: str, *given: Any, **named: Any) -> Any:
    operation = operation_of(name, "default")
    assert operation is not None
    with with_x64(True):
        return jax.tree.map(np.asarray, jax.jit(lambda: operation(None, *given, **named))())


def scores() -> Any:
    drawn = np.random.default_rng(0).standard_normal((STEPS, len(TARGETS), CLASSES))
    return drawn - np.log(np.exp(drawn).sum(-1, keepdims=True))


def brute_force(log_probs: Any, steps: int, target: list[int]) -> tuple[float, Any]:
    """Add up the probabilities of all rows of classes that are read as the target: return the loss,
    and the share of the rows with each class at each step, NaN if there are none."""
    shares, total = np.zeros((STEPS, CLASSES)), 0.0
    for row in product(range(CLASSES), repeat=steps):
        if [c for c, _ in groupby(row) if c != BLANK] == target:
            one = np.exp(sum(log_probs[t, c] for t, c in enumerate(row)))
            shares[range(steps), row] += one
            total += one
    with np.errstate(invalid="ignore", divide="ignore"):
        return -np.log(total), shares / total


def padded() -> Any:
    return np.array([[*target, *[0] * (3 - len(target))] for target in TARGETS])


def in_a_row() -> Any:
    return np.array([c for target in TARGETS for c in target])


def lengths(how: str) -> Any:
    both = LENGTHS, tuple(map(len, TARGETS))
    return both if how == "numbers" else tuple(map(np.array, both))


@pytest.mark.parametrize("how", ["numbers", "tensors"])
@pytest.mark.parametrize("targets", [padded, in_a_row])
def test_the_sum_over_all_alignments(targets: Any, how: str) -> None:
    log_probs = scores()
    loss, _ = computed("_ctc_loss", log_probs, targets(), *lengths(how), BLANK)
    expected = [
        brute_force(log_probs[:, n], steps, target)[0]
        for n, (steps, target) in enumerate(zip(LENGTHS, TARGETS, strict=True))
    ]
    assert np.allclose(loss, expected) and np.isposinf(loss[-1])


def test_no_step_writes_nothing() -> None:
    given = scores()[:, :2], np.zeros((2, 1), int), (0, 0), (0, 1), BLANK
    assert computed("_ctc_loss", *given)[0].tolist() == [0, np.inf]


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_gradients_are_those_of_what_the_softmax_took(zero_infinity: bool) -> None:
    """Probability less share at each step; where no alignment exists, NaN, or 0 on demand."""
    log_probs, given = scores(), (padded(), *lengths("numbers"))
    weights = np.arange(1.0, 1 + len(TARGETS))
    loss, alpha = computed("_ctc_loss", log_probs, *given, BLANK)
    name, last = "_ctc_loss_backward", (loss, alpha, BLANK, zero_infinity)
    found = computed(name, weights, log_probs, *given, *last)
    for n, (steps, target) in enumerate(zip(LENGTHS, TARGETS, strict=True)):
        expected = np.exp(log_probs[:, n]) - brute_force(log_probs[:, n], steps, target)[1]
        expected[steps:] = 0
        if zero_infinity and np.isposinf(loss[n]):
            expected[:] = 0
        assert np.allclose(found[:, n], weights[n] * expected, equal_nan=True), target
