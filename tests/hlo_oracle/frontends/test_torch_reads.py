"""PyTorch functions whose path, or whose results' sizes, depend on the numbers of their tensors."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import Error, Unsupported  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

X = torch.randn((6, 3), generator=torch.Generator().manual_seed(0))
ROWS = torch.tensor([True, False, True, True, False, False])
TWO = torch.tensor(2)
LENGTHS = torch.tensor([2, 6, 1, 5])


def halved_until_small(x: Any) -> Any:
    count = 0
    while x.norm() > 1:
        x, count = x / 2, count + 1
    return x, torch.tensor(count)


def by_branches(x: Any) -> Any:
    if (x > 0).any():
        x = x + 1
    return x * float(x.max()) if torch.equal(x, x) else x


def written_at_masks(x: Any) -> Any:
    y = x.clone()
    y[y > 0] = y[y > 0] * 2
    y[y < -1] = 0
    return y


def gradient_of_some(x: Any) -> Any:
    x = x.clone().requires_grad_()
    loss = x[x > 0].square().sum()
    if loss.item() > 0:
        loss = loss * 2
    return torch.autograd.grad(loss, x)[0]


class Gated(torch.nn.Module):
    """A module that counts the calls whose mean is above a bound."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        if y.mean() > -100:
            self.count += 1
        return y[y > 0], self.count


def unique(x: Any) -> Any:
    return torch.unique(x, return_inverse=True, return_counts=True)


def packed(x: Any, lengths: Any) -> Any:
    return pad_packed_sequence(pack_padded_sequence(x, lengths, batch_first=True))


class Packed(torch.nn.Module):
    """A recurrent network over sequences of different lengths, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(3, 2, bidirectional=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        rows, last = self.gru(pack_padded_sequence(x, lengths, enforce_sorted=False))
        return pad_packed_sequence(rows, padding_value=-1.0, total_length=7)[0], last


def gradient_of_packed(x: Any, lengths: Any) -> Any:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(packed(x, lengths)[0].square().sum(), x)


PATHS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a loop until something holds": (halved_until_small, (X,)),
    "branches": (by_branches, (X,)),
    "a module": (Gated(), (X,)),
    "an index that is a tensor": (lambda x, i: x[i], (X, TWO)),
    "a slice that ends at a tensor": (lambda x, i: x[: i.item()], (X, TWO)),
    "a check of arguments": (torch.nn.functional.gaussian_nll_loss, (X[0], X[1], X[2].abs())),
    "a gradient": (gradient_of_some, (X,)),
    "a gradient of torch.func": (torch.func.grad(lambda x: x[x > 0].square().sum()), (X,)),
}
SIZES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nonzero": (torch.nonzero, (X > 0,)),
    "nonzero of a scalar": (torch.nonzero, (TWO,)),
    "where": (lambda x: torch.where(x > 0), (X,)),
    "masks": (lambda x, rows: (x[rows], x[rows, 1], x[x > 0]), (X, ROWS)),
    "a mask of nothing": (lambda x: x[x > 99], (X,)),
    "writes at masks": (written_at_masks, (X,)),
    "one number at a mask": (lambda x, y: x.index_put((x > 0,), y), (X, torch.tensor(2.0))),
    "masked_select": (lambda x, rows: x.masked_select(rows[:, None]), (X, ROWS)),
    "unique": (unique, (torch.tensor([[3, 1], [1, 2]]),)),
    "unique of nothing": (unique, (torch.zeros(0, 2),)),
    "unique of NaN and zeros": (torch.unique, (torch.tensor([1, torch.nan, torch.nan, -0.0, 0]),)),
    "unique_consecutive": (torch.unique_consecutive, (torch.tensor([1, 1, 2, 1]),)),
    "unique rows": (
        lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True),
        (torch.tensor([[2, 1, 1], [0, 2, 0], [2, 1, 0], [0, 2, 0], [2, 1, 1]]),),
    ),
    "unique columns": (lambda x: torch.unique(x, dim=1), (X.round(),)),
    "unique_consecutive of rows": (
        lambda x: torch.unique_consecutive(x, dim=0, return_inverse=True),
        (torch.tensor([[1, 2], [1, 2], [1, 1], [1, 2]]),),
    ),
    "packed sequences": (packed, (X[:, :, None], torch.tensor([3, 3, 2, 2, 1, 1]))),
    "a gradient of packed sequences": (
        gradient_of_packed,
        (X[:, :, None], torch.tensor([3, 2, 2, 2, 1, 1])),
    ),
    "a network over packed sequences": (Packed(), (X[:, None].expand(6, 4, 3), LENGTHS)),
    "repeat_interleave": (
        lambda x, counts: torch.repeat_interleave(x, counts, dim=0),
        (X, torch.tensor([0, 1, 2, 0, 3, 1])),
    ),
    "bincount": (torch.bincount, (torch.tensor([1, 1, 4]), torch.rand(3))),
    "bincount of integers": (
        lambda x, weights: torch.bincount(x, weights, minlength=9),
        (torch.tensor([1, 1, 4]), torch.tensor([7, 8, 9])),
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths(name: str) -> None:
    function, given = PATHS[name]
    verdict = ho.check(function, *given)
    assert verdict and not verdict.undetermined, verdict


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    function, given = SIZES[name]
    verdict = ho.check(function, *given)
    assert verdict and not verdict.undetermined, verdict


def test_running_statistics_that_a_decomposition_writes() -> None:
    assert ho.check(torch.nn.InstanceNorm1d(2, track_running_stats=True), X.reshape(3, 2, 3))


@pytest.mark.parametrize("seed", range(3))
def test_a_path_that_a_rounding_decides_is_not_proven_wrong(seed: int) -> None:
    """A bound that is an element of eager's product: the exact one may be on its other side."""
    draw = torch.Generator().manual_seed(seed)
    x, y = torch.randn((8, 64), generator=draw), torch.randn((64, 4), generator=draw)
    bound = float((x @ y).flatten()[seed])
    for some in (
        lambda x, y: (x @ y)[(x @ y) > bound],
        lambda x, y: torch.nonzero((x @ y) >= bound),
        lambda x, y: x * ((x @ y) > bound).sum().item(),
    ):
        assert ho.check(some, x, y)


class Wrong:
    """A function that is wrong once it is not traced any more: ``calls`` times it is."""

    __name__ = "wrong"

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, x: Any) -> Any:
        self.left -= 1
        most = x.max().item()
        return x / most if self.left >= 0 else x / most * 1.001


def test_what_is_wrong_is_proven() -> None:
    verdict = ho.check(Wrong(2), X)
    assert not verdict and verdict.outside == X.numel(), verdict


class Counting:
    """A function that goes another way at each call."""

    __name__ = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x * (x.new_zeros(()) + self.calls).item()


def test_a_run_that_reads_other_numbers_is_refused() -> None:
    with pytest.raises(Error, match="counting: its run read other numbers"):
        ho.check(Counting(), X)


@pytest.mark.parametrize("how", ["tolist", "numpy"])
def test_elements_outside_of_torch_are_refused(how: str) -> None:
    def outside(x: Any) -> Any:
        return torch.as_tensor(getattr(x, how)())

    with pytest.raises(Unsupported, match=f"{how} reads elements outside of PyTorch"):
        ho.check(outside, X)


def test_what_a_compiled_function_reads_is_not_judged() -> None:
    with pytest.raises(Error, match="torch cannot trace it"):
        ho.check(torch.compile(halved_until_small, backend="eager"), X)


def test_random_numbers_are_refused_and_not_drawn() -> None:
    before = torch.get_rng_state()
    with pytest.raises(Unsupported, match="generator of random numbers"):
        ho.check(lambda x: torch.rand(3) * x.max().item(), X)
    assert torch.equal(before, torch.get_rng_state())
