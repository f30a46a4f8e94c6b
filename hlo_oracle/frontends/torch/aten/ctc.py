"""Operations of ATen for connectionist temporal classification (Graves et al., 2006).

A target of S classes is extended by blanks before, between and behind them, to L = 2 S + 1 labels.
An alignment stays at its label from one step to the next, goes on by one, or by two where that
skips a blank between different classes. All sums are of probabilities, as their logarithms.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted


class _Labels(NamedTuple):
    """Extended targets: ``classes`` and ``skips``, where a step may go on by two, both [B, L]; the
    ``last`` label of each target, [B]; the number of steps of each, [B]."""

    classes: Any
    skips: Any
    last: Any
    steps: Any

    def is_within(self) -> Any:
        """Mark the labels of each target, [B, L]."""
        return jnp.arange(self.classes.shape[1]) <= self.last[:, None]


def _labels(targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> _Labels:
    """Extend targets, which are rows, or one behind the other."""
    longest = _longest(targets, target_lengths)
    lengths = jnp.asarray(target_lengths)
    column = jnp.arange(longest)
    if targets.ndim == 1:
        begins = jnp.cumsum(lengths) - lengths
        targets = jnp.take(targets, begins[:, None] + column, mode="clip")
    classes = jnp.where(column < lengths[:, None], targets[:, :longest], blank)
    extended = jnp.full((lengths.shape[0], 2 * longest + 1), blank, classes.dtype)
    extended = extended.at[:, 1::2].set(classes)
    before = jnp.pad(extended[:, :-2], ((0, 0), (2, 0)), constant_values=blank)[
        :, : 2 * longest + 1
    ]
    # At the first class ``before`` is padding: its skip is harmless, as no label is two before it.
    skips = (extended != blank) & (extended != before)
    return _Labels(extended, skips, 2 * lengths, jnp.asarray(input_lengths))


def _longest(targets: Any, target_lengths: Any) -> int:
    if isinstance(target_lengths, list | tuple):
        return max(target_lengths, default=0)
    return int(targets.shape[-1])  # of any target at most


def _finite(largest: Any) -> Any:
    """Return what to subtract before exponentials: 0 in place of -inf, where all are 0."""
    return jnp.where(jnp.isneginf(largest), jnp.zeros_like(largest), largest)


def _log_sum(*terms: Any) -> Any:
    """Compute log(Σ exp(term)); -inf where all terms are."""
    largest = _finite(reduce(jnp.maximum, terms))
    return jnp.log(sum(jnp.exp(term - largest) for term in terms)) + largest


def _moved(row: Any, by: int) -> Any:
    """Move logarithms of probabilities to later labels; none come to the first."""
    filled = jnp.pad(row, ((0, 0), (by, 0)), constant_values=-jnp.inf)
    return filled[:, : row.shape[1]]


def _of_labels(log_probs: Any, labels: _Labels) -> Any:
    """Read the logarithm of the probability of each label at each step, [T, B, L]."""
    index = jnp.broadcast_to(labels.classes, (log_probs.shape[0], *labels.classes.shape))
    return jnp.take_along_axis(log_probs, index, axis=2)


def _forward(log_probs: Any, labels: _Labels) -> Any:
    """Compute the sums over beginnings of alignments, α[t, b, l]."""
    given = _of_labels(log_probs, labels)
    nothing = jnp.full(given.shape[1:], -jnp.inf, given.dtype)
    begins = jnp.arange(given.shape[2]) <= jnp.minimum(labels.last, 1)[:, None]

    def step(row: Any, probability: Any) -> tuple[Any, Any]:
        skipped = jnp.where(labels.skips, _moved(row, 2), nothing)
        row = _log_sum(row, _moved(row, 1), skipped) + probability
        return row, row

    first = jnp.where(begins, given[0], nothing)
    return jnp.concatenate([first[None], lax.scan(step, first, given[1:])[1]])


def _backward(log_probs: Any, labels: _Labels) -> Any:
    """Compute the sums over ends of alignments, β[t, b, l]."""
    given = _of_labels(log_probs, labels)
    nothing = jnp.full(given.shape[1:], -jnp.inf, given.dtype)
    label = jnp.arange(given.shape[2])
    ends = (label == labels.last[:, None]) | (label == labels.last[:, None] - 1)
    is_skipped_to = jnp.pad(labels.skips[:, 2:], ((0, 0), (0, 2)))[:, : given.shape[2]]

    def step(row: Any, at: Any) -> tuple[Any, Any]:
        time, probability = at
        later = row[:, ::-1]
        one, two = _moved(later, 1)[:, ::-1], _moved(later, 2)[:, ::-1]
        summed = _log_sum(row, one, jnp.where(is_skipped_to, two, nothing)) + probability
        last = jnp.where(ends, probability, nothing)
        steps = labels.steps[:, None]
        row = jnp.where(time == steps - 1, last, jnp.where(time < steps - 1, summed, nothing))
        return row, row

    times = jnp.arange(given.shape[0])
    return lax.scan(step, nothing, (times, given), reverse=True)[1]


def _loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
    blank: int = 0, zero_infinity: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Compute -log P(target) of each row, and α[b, t, l]."""
    labels = _labels(targets, input_lengths, target_lengths, blank)
    alpha = _forward(log_probs, labels)
    row = jnp.arange(alpha.shape[1])
    final = alpha[jnp.maximum(labels.steps - 1, 0), row]
    whole = final[row, labels.last]
    without_blank = final[row, jnp.maximum(labels.last - 1, 0)]
    without_blank = jnp.where(labels.last > 0, without_blank, -jnp.inf)
    loss = -_log_sum(whole, without_blank)
    # Nothing is written in no step, with certainty.
    of_nothing = jnp.where(labels.last > 0, jnp.inf, 0).astype(loss.dtype)
    return jnp.where(labels.steps > 0, loss, of_nothing), jnp.swapaxes(alpha, 0, 1)


def _gradient(gradient: Any, log_probs: Any, targets: Any, *rest: Any) -> Any:
    """Compute the gradient of the loss with respect to what ``log_softmax`` made ``log_probs`` of,
    as ATen does: exp(log_probs) - P(class at this step | target). ``rest`` is both lengths, the
    loss, α, the blank, and whether infinite losses have gradients of zero."""
    input_lengths, target_lengths, loss, alpha, blank, *more = rest
    (zero_infinity,) = more or (False,)
    labels = _labels(targets, input_lengths, target_lengths, blank)
    both = jnp.swapaxes(alpha, 0, 1) + _backward(log_probs, labels)
    both = jnp.where(labels.is_within(), both, -jnp.inf)
    largest = _finite(jnp.max(both, axis=2, keepdims=True))
    row = jnp.arange(both.shape[1])[:, None]
    sums = jnp.zeros_like(log_probs).at[:, row, labels.classes].add(jnp.exp(both - largest))
    # α and β both contain the probability of this step: one of the two is divided out.
    posterior = jnp.exp(jnp.log(sums) + largest + loss[:, None] - log_probs)
    found = (jnp.exp(log_probs) - posterior) * gradient[:, None]
    is_step = jnp.arange(log_probs.shape[0])[:, None] < labels.steps
    if zero_infinity:
        is_step = is_step & ~jnp.isposinf(loss)
    return jnp.where(is_step[:, :, None], found, jnp.zeros_like(found))


OPS: dict[str, Operation] = {
    "_ctc_loss": unpromoted(_loss),
    "_ctc_loss_backward": unpromoted(_gradient),
}
